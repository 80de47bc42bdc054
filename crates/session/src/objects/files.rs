//! What is told of files.

use crate::{SessionId, text_or_base64};
use cofferdam_archive::Imported;
use cofferdam_core::ByteString;
use cofferdam_core::files::{Copied, Entry, HasRead, Page, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// What `file write`, `append`, `mkdir`, `mv`, `cp`, `rm` and `chmod` print with `--json`. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDone {
    /// The id of the session.
    pub session: String,
    /// The path that was written, made, removed or set; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// How many bytes were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The SHA-256 of these bytes, in hexadecimal, as the sandbox counted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether it was not there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
}

/// What `file read --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// The id of the session.
    pub session: String,
    /// The path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The size of the whole file.
    pub size: u64,
    /// The SHA-256 of the whole file, in hexadecimal.
    pub sha256: Option<String>,
    /// The permissions, in octal.
    pub mode: String,
    /// When it was changed last, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Where what was read begins.
    pub offset: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// What was read, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What was read in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// What `file stat --json` prints, and an entry of `file list --json`. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// The path, where it is UTF-8; in a list below the directory that is listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// What it is: `file`, `directory`, `link`, `fifo`, `socket` or `device`.
    pub kind: String,
    /// Its size in bytes.
    pub size: u64,
    /// The permissions, in octal.
    pub mode: String,
    /// When it was changed last, in milliseconds since 1970.
    pub modified_ms: i64,
    /// How many names it has.
    pub links: u64,
    /// Where a link leads, as it says; bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// What `file list --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileList {
    /// The id of the session.
    pub session: String,
    /// The directory; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Its entries, in the order of names, each directory before what is in it.
    pub entries: Vec<FileEntry>,
    /// What `--after` is for the next page, if there is more and that is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The same in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_base64: Option<String>,
}

/// What `file cp --recursive --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCopied {
    /// The id of the session.
    pub session: String,
    /// The path of the copy; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// How many regular files were copied.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// How many links.
    pub links: u64,
    /// How many bytes the files hold.
    pub bytes: u64,
    /// What was skipped; the first of it.
    pub skipped: Vec<FileSkipped>,
    /// How much more was skipped.
    pub skipped_more: u64,
}

/// What `file import --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileImported {
    /// The id of the session.
    pub session: String,
    /// The directory that it went to; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// How many regular files the archive held.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// How many links.
    pub links: u64,
    /// How many bytes the files hold.
    pub bytes: u64,
    /// What is not as the archive says, in words; the first of it.
    pub notes: Vec<String>,
    /// How much more there was.
    pub notes_more: u64,
}

/// Something that was not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSkipped {
    /// The path below what was to be copied; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// What it is: `fifo`, `socket` or `device`.
    pub kind: String,
}

impl FileCopied {
    /// What was copied to this path.
    pub fn new(session: &impl AsRef<SessionId>, path: &OsStr, copied: &Copied) -> Self {
        let skipped = copied.skipped.iter().map(|skipped| FileSkipped {
            path: skipped.path.to_string(),
            kind: skipped.kind.name().to_owned(),
        });
        Self {
            session: session.as_ref().to_string(),
            path: path.to_string_lossy().into_owned(),
            files: copied.files,
            directories: copied.directories,
            links: copied.links,
            bytes: copied.bytes,
            skipped: skipped.collect(),
            skipped_more: copied.skipped_more,
        }
    }
}

impl FileImported {
    /// What was imported to this path.
    pub fn new(session: &impl AsRef<SessionId>, path: &OsStr, imported: &Imported) -> Self {
        Self {
            session: session.as_ref().to_string(),
            path: path.to_string_lossy().into_owned(),
            files: imported.files,
            directories: imported.directories,
            links: imported.links,
            bytes: imported.bytes,
            notes: imported.notes.first.iter().map(ToString::to_string).collect(),
            notes_more: imported.notes.more,
        }
    }
}

impl FileDone {
    /// Something that is done with this path.
    pub fn of(session: &impl AsRef<SessionId>, path: &OsStr) -> Self {
        Self {
            session: session.as_ref().to_string(),
            path: path.to_string_lossy().into_owned(),
            bytes: None,
            sha256: None,
            created: None,
        }
    }

    /// A directory that is there now.
    pub fn made(session: &impl AsRef<SessionId>, path: &OsStr, created: bool) -> Self {
        Self { created: Some(created), ..Self::of(session, path) }
    }

    /// A file that was written.
    pub fn written(session: &impl AsRef<SessionId>, path: &OsStr, written: &Written) -> Self {
        Self {
            bytes: Some(written.bytes),
            sha256: Some(written.sha256.clone()),
            created: Some(written.created),
            ..Self::of(session, path)
        }
    }
}

impl FileContent {
    /// What was read from this offset on.
    pub fn new(
        session: &impl AsRef<SessionId>,
        path: &OsStr,
        offset: u64,
        read: &HasRead,
        bytes: Vec<u8>,
    ) -> Self {
        let (text, base64) = text_or_base64(bytes);
        Self {
            session: session.as_ref().to_string(),
            path: path.to_string_lossy().into_owned(),
            size: read.size,
            sha256: read.sha256.clone(),
            mode: octal(read.mode),
            modified_ms: read.modified_ms,
            offset,
            bytes: read.bytes,
            text,
            base64,
        }
    }
}

impl FileEntry {
    /// An entry with its own path.
    pub fn of_entry(entry: &Entry) -> Self {
        Self::of_path(entry.path.as_os_str(), entry)
    }

    /// An entry that is at this path.
    pub fn of_path(path: &OsStr, entry: &Entry) -> Self {
        let (path, path_base64) = text_or_base64(ByteString::from(path).as_bytes().to_vec());
        Self {
            path,
            path_base64,
            kind: entry.kind.name().to_owned(),
            size: entry.size,
            mode: octal(entry.mode),
            modified_ms: entry.modified_ms,
            links: entry.links,
            target: entry.target.as_ref().map(ToString::to_string),
        }
    }
}

impl FileList {
    /// A page of this directory.
    pub fn new(session: &impl AsRef<SessionId>, path: &OsStr, page: &Page) -> Self {
        let next = page.next.as_ref().map(|next| text_or_base64(next.as_bytes().to_vec()));
        let (next, next_base64) = next.unwrap_or_default();
        Self {
            session: session.as_ref().to_string(),
            path: path.to_string_lossy().into_owned(),
            entries: page.entries.iter().map(FileEntry::of_entry).collect(),
            next,
            next_base64,
        }
    }
}

fn octal(mode: u32) -> String {
    format!("{mode:03o}")
}
