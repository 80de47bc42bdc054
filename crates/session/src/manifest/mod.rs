//! Manifests: what a workspace is to hold when a session begins.
//!
//! [`Manifest::check`] is pure: every path is relative and inside, none is said twice or lies below what
//! is no directory, and limits hold. [`Checked::load`] looks at the host's files that are named. Then all
//! of it is carried out by the file worker, whole or not at all; see [`Files::carry`](cofferdam_core::Files).
//! What is there already as the manifest says is left alone; anything else there is a conflict.

mod archived;
mod fetch;
mod git;
mod guard;
mod host;
mod inlined;
mod load;
mod mounted;
mod own;
mod provide;
mod reach;
mod repository;
mod sys;

pub use archived::MAX_STRIPPED;
pub use git::{CLONE_LIMIT, MAX_CLONED, MAX_TOKEN_BYTES};
pub use inlined::MAX_INLINED_BYTES;
pub use load::Provisions;
pub use mounted::MAX_MOUNTS;
pub use repository::MAX_ADDRESS_BYTES;

use crate::patch::good_link;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use repository::{Repository, Said};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The format that this code reads.
pub const MANIFEST_VERSION: u32 = 1;
/// The most bytes of a manifest's text.
pub const MAX_MANIFEST_BYTES: usize = 16 << 20;
/// The most entries of a manifest.
pub const MAX_MANIFEST_ENTRIES: usize = 10_000;

/// What a workspace is to hold. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format: 1.
    pub version: u32,
    /// What tells it from any other, 64 hexadecimal digits, where somebody made it of another one. Without
    /// it what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// What it is to hold, in any order.
    #[serde(default)]
    pub entries: Vec<ManifestEntry>,
}

/// Something that a workspace is to hold. Paths are relative to the workspace; directories above them
/// are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ManifestEntry {
    /// A regular file, whose bytes are said in one of three ways.
    File {
        /// Where.
        path: String,
        /// What it holds, as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// What it holds, in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
        /// A regular file of the host that holds it, and no link; relative to the manifest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<PathBuf>,
        /// Its permissions, in octal, at most 777. Without it 644, or 755 where `from` can be executed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
    },
    /// A directory.
    Directory {
        /// Where.
        path: String,
        /// Its permissions, in octal, at most 777. Without it the usual ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
    },
    /// A symbolic link to something in the workspace.
    Link {
        /// Where.
        path: String,
        /// Where it leads, as it says.
        target: String,
    },
    /// A directory with all that is in a directory of the host: files, directories, and links that stay
    /// in the workspace.
    Copy {
        /// Where.
        path: String,
        /// The directory of the host; relative to the manifest.
        from: PathBuf,
    },
    /// What an archive of the host holds: files, directories, and links that stay in the workspace. A tar
    /// archive, plain or packed by gzip, xz or Zstandard.
    Archive {
        /// The directory that it is unpacked in.
        path: String,
        /// The archive, a regular file of the host and no link; relative to the manifest.
        from: PathBuf,
        /// How many leading names of each path in it are left out. What has no more is left out whole.
        #[serde(default, skip_serializing_if = "is_zero")]
        strip_components: u32,
        /// Its SHA-256, 64 hexadecimal digits. Another archive is an error, and nothing is unpacked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// A directory of the host that is shown read-only, as it is now and becomes, for as long as the
    /// session is there. Nothing of it is copied, and what `--read` refuses is refused here. Nothing may be
    /// at its path but an empty directory.
    Mount {
        /// Where.
        path: String,
        /// The directory of the host; relative to the manifest. Another one in its place is an error.
        from: PathBuf,
    },
    /// A clone of a git repository, with its `.git`, made by the host's git outside of the sandbox.
    /// One that this manifest brought before stays as it is; anything else at its path is a conflict.
    Git {
        /// Where.
        path: String,
        /// `https://`, `ssh://`, or a directory of the host that is a repository; relative to the
        /// manifest. Without a password: a token has a variable.
        url: String,
        /// The branch or tag that is checked out, or the id of a commit in full. Without it what the
        /// repository points to.
        #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
        /// How many commits of a branch or tag are fetched. Without it all are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
        /// The variable of the caller that holds a token for the server. The token is in nothing that
        /// is brought or kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credential_env: Option<String>,
        /// The name of the user that goes with the token; without it `x-access-token`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credential_user: Option<String>,
        /// Lets `http://` be used for an address of this machine.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        insecure_loopback: bool,
    },
}

/// A manifest that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Of its text, to know it again.
    fingerprint: String,
    wanted: BTreeMap<GuestPath, Wanted>,
}

/// What is wanted at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Bytes { bytes: Vec<u8>, mode: u32 },
    HostFile { from: PathBuf, mode: Option<u32> },
    Directory { mode: Option<u32> },
    Link { target: Vec<u8> },
    HostDirectory { from: PathBuf },
    Archive(archived::Said),
    Mount { from: PathBuf },
    Repository(Repository),
}

impl Manifest {
    /// Refuses what makes no sense. Looks at nothing.
    pub fn check(&self) -> Result<Checked> {
        if self.version != MANIFEST_VERSION {
            let what = format!("the manifest has version {}, not {MANIFEST_VERSION}", self.version);
            return Err(Error::new(ErrorKind::Usage, what).hint("Write version = 1."));
        }
        if self.entries.len() > MAX_MANIFEST_ENTRIES {
            let what = format!("the manifest has more than {MAX_MANIFEST_ENTRIES} entries");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Copy a directory instead."));
        }
        let mut wanted = BTreeMap::new();
        for entry in &self.entries {
            let (path, thing) = entry.wanted()?;
            if wanted.insert(path.clone(), thing).is_some() {
                return Err(wrong(&path, "is said twice"));
            }
        }
        for path in wanted.keys() {
            let is_closed = |above: &GuestPath| {
                wanted.get(above).is_some_and(|thing| !matches!(thing, Wanted::Directory { .. }))
            };
            if let Some(above) = path.ancestors().find(is_closed) {
                return Err(wrong(path, &format!("lies below {above:?}, which is all there is")));
            }
        }
        Ok(Checked { fingerprint: self.fingerprint()?, wanted })
    }
}

impl Manifest {
    fn fingerprint(&self) -> Result<String> {
        let is_hash = |text: &&String| text.len() == 64 && text.bytes().all(is_small_digit);
        match &self.known_as {
            None => Ok(crate::apply::sha256(&serde_json::to_vec(self).unwrap_or_default())),
            Some(text) => Some(text).filter(is_hash).cloned().ok_or_else(|| {
                let what = "the manifest has a known_as that is not 64 small hexadecimal digits";
                Error::new(ErrorKind::Usage, what).hint("Leave it out.")
            }),
        }
    }
}

fn is_small_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

impl ManifestEntry {
    fn wanted(&self) -> Result<(GuestPath, Wanted)> {
        match self {
            Self::File { path, text, base64, from, mode } => {
                let path = GuestPath::new(path)?;
                let mode = permissions(&path, mode.as_deref())?;
                let bytes = |bytes| Wanted::Bytes { bytes, mode: mode.unwrap_or(0o644) };
                let wanted = match (text, base64, from) {
                    (Some(text), None, None) => bytes(text.as_bytes().to_vec()),
                    (None, Some(text), None) => {
                        let decoded = BASE64_STANDARD.decode(text);
                        bytes(decoded.map_err(|e| wrong(&path, "is no base64").source(e))?)
                    }
                    (None, None, Some(from)) => Wanted::HostFile { from: from.clone(), mode },
                    (_, _, _) => return Err(wrong(&path, "needs one of text, base64 and from")),
                };
                Ok((path, wanted))
            }
            Self::Directory { path, mode } => {
                let path = GuestPath::new(path)?;
                let mode = permissions(&path, mode.as_deref())?;
                Ok((path, Wanted::Directory { mode }))
            }
            Self::Link { path, target } => {
                let path = GuestPath::new(path)?;
                good_link(&path, target.as_bytes())?;
                Ok((path, Wanted::Link { target: target.as_bytes().to_vec() }))
            }
            Self::Copy { path, from } => {
                Ok((GuestPath::new(path)?, Wanted::HostDirectory { from: from.clone() }))
            }
            Self::Archive { path, from, strip_components, sha256 } => {
                let path = GuestPath::new(path)?;
                let said = archived::Said::new(&path, from, *strip_components, sha256.as_deref())?;
                Ok((path, Wanted::Archive(said)))
            }
            Self::Mount { path, from } => {
                Ok((GuestPath::new(path)?, Wanted::Mount { from: from.clone() }))
            }
            Self::Git {
                path,
                url,
                reference,
                depth,
                credential_env,
                credential_user,
                insecure_loopback,
            } => {
                let path = GuestPath::new(path)?;
                let said = Said {
                    url,
                    reference: reference.as_deref(),
                    depth: *depth,
                    credential_env: credential_env.as_deref(),
                    credential_user: credential_user.as_deref(),
                    insecure_loopback: *insecure_loopback,
                };
                let repository = said.repository(&path)?;
                Ok((path, Wanted::Repository(repository)))
            }
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn permissions(path: &GuestPath, text: Option<&str>) -> Result<Option<u32>> {
    let Some(text) = text else { return Ok(None) };
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.map(Some)
        .ok_or_else(|| wrong(path, &format!("has permissions {text:?}, not up to 777 in octal")))
}

fn wrong(path: &GuestPath, what: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("the entry {path:?} of the manifest {what}"))
        .hint("Correct the manifest.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(entries: serde_json::Value) -> Result<Checked> {
        let manifest: Manifest =
            serde_json::from_value(json!({ "version": 1, "entries": entries })).unwrap();
        manifest.check()
    }

    #[test]
    fn paths_are_inside_and_said_once_and_lie_below_directories() {
        let file = |path: &str| json!({ "type": "file", "path": path, "text": "" });
        for bad in ["/etc/passwd", "../a", "a/../b", ""] {
            assert!(check(json!([file(bad)])).is_err(), "{bad:?}");
        }
        assert!(check(json!([file("a"), file("./a")])).is_err());
        assert!(check(json!([file("a"), file("a/b")])).is_err());
        let copy = json!({ "type": "copy", "path": "c", "from": "x" });
        assert!(check(json!([copy, file("c/d/e")])).is_err());
        let link = |target: &str| json!({ "type": "link", "path": "l/m", "target": target });
        assert!(check(json!([link("../a"), file("l/m/x")])).is_err());
        for out in ["/etc", "../../a", "a/../../../b", ""] {
            assert!(check(json!([link(out)])).is_err(), "{out:?}");
        }
        // The control.
        let directory = json!({ "type": "directory", "path": "a" });
        assert!(check(json!([directory, file("a/b"), file("a-b"), link("../a")])).is_ok());
    }

    #[test]
    fn a_file_says_its_bytes_in_one_way() {
        let file = |more: serde_json::Value| {
            let mut file = json!({ "type": "file", "path": "a" });
            file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            check(json!([file]))
        };
        for bad in [
            json!({}),
            json!({ "text": "a", "base64": "YQ==" }),
            json!({ "text": "a", "from": "b" }),
            json!({ "base64": "*" }),
            json!({ "text": "a", "mode": "4755" }),
            json!({ "text": "a", "mode": "rwx" }),
        ] {
            assert_eq!(file(bad.clone()).unwrap_err().kind, ErrorKind::Usage, "{bad}");
        }
        let same = [json!({ "text": "a" }), json!({ "base64": "YQ==" })];
        let wanted = same.map(|one| file(one).unwrap().wanted);
        assert_eq!(wanted[0], wanted[1]);
        assert!(file(json!({ "from": "b", "mode": "755" })).is_ok());
    }

    #[test]
    fn an_archive_and_a_mount_are_all_there_is_at_their_place() {
        let archive = |more: serde_json::Value| {
            let mut entry = json!({ "type": "archive", "path": "a", "from": "t.tgz" });
            entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            entry
        };
        let hash = "0123456789abcdefABCDEF".repeat(3)[..64].to_owned();
        for bad in [
            json!({ "sha256": "0123" }),
            json!({ "sha256": hash.replace('0', "g") }),
            json!({ "sha256": format!("{hash}0") }),
            json!({ "strip_components": MAX_STRIPPED + 1 }),
            json!({ "path": "../a" }),
        ] {
            assert!(check(json!([archive(bad.clone())])).is_err(), "{bad}");
        }
        let mount = json!({ "type": "mount", "path": "m/n", "from": "/data" });
        let file = |path: &str| json!({ "type": "file", "path": path, "text": "" });
        for bad in [
            json!([archive(json!({})), file("a/b")]),
            json!([mount.clone(), file("m/n/o")]),
            json!([mount.clone(), file("m/n")]),
            json!([mount.clone(), file("m")]),
            json!([mount.clone(), { "type": "mount", "path": "m/n/o", "from": "/other" }]),
        ] {
            assert!(check(bad.clone()).is_err(), "{bad}");
        }
        // The control.
        let good = archive(json!({ "sha256": hash, "strip_components": MAX_STRIPPED }));
        assert!(check(json!([good, mount, file("m/o"), file("a-b")])).is_ok());
    }

    #[test]
    fn a_manifest_has_a_version_known_fields_and_so_many_entries() {
        let manifest = |version, count| Manifest {
            version,
            known_as: None,
            entries: (0..count)
                .map(|at| ManifestEntry::Directory { path: format!("{at}"), mode: None })
                .collect(),
        };
        assert!(manifest(2, 0).check().is_err());
        assert!(manifest(1, MAX_MANIFEST_ENTRIES).check().is_ok());
        let error = manifest(1, MAX_MANIFEST_ENTRIES + 1).check().unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        let unknown =
            json!({ "version": 1, "entries": [{ "type": "link", "path": "a", "to": "b" }] });
        assert!(serde_json::from_value::<Manifest>(unknown).is_err());
    }
}
