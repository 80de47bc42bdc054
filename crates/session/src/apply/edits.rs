//! Edits of a file, and windows of one.

use super::Doing;
use super::look_up::sha256;
use crate::edit::{Edit, EditReport, MAX_EDITED_BYTES, plan_edits};
use crate::window::{LARGE_HINT, NO_TEXT_HINT, Window, WindowOrder, window};
use cofferdam_core::files::{Before, Content, EntryKind, Load, Read, Step};
use cofferdam_core::{Error, ErrorKind, Files, GuestPath, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The largest file that is looked at through a window, in bytes.
const MAX_WINDOWED_BYTES: u64 = MAX_EDITED_BYTES as u64;

/// What came of edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// Edit by edit.
    pub report: EditReport,
    /// Whether the file was changed.
    pub changed: bool,
    /// The SHA-256 of what it holds now, in hexadecimal.
    pub sha256: String,
}

/// Edits a regular file: all edits, or none. No link is followed on the way to it.
///
/// An edit that is refused is no error: the report says so, and nothing is changed. A file that changes
/// between the look and the change is a `Conflict`. Its permissions stay.
pub async fn edit_file(
    files: &Files,
    path: impl AsRef<OsStr>,
    edits: &[Edit],
    doing: Doing,
) -> Result<Edited> {
    let path = plain(path.as_ref())?;
    let entry = files.stat(OsStr::from_bytes(path.as_bytes())).await?;
    if entry.kind == EntryKind::Link {
        let what = format!("edit {path:?}: it is a symbolic link");
        return Err(Error::new(ErrorKind::NotAFile, what).hint("Edit the file that it leads to."));
    }
    let mut content = Vec::new();
    let max_bytes = Some(MAX_EDITED_BYTES as u64);
    let order = Read { path: path.as_bytes().to_vec().into(), max_bytes, ..Read::default() };
    let mode = files.read_to(&order, &mut content).await?.mode;
    let before = sha256(&content);
    let plan = plan_edits(&content, edits)?;
    let Some(made) = plan.content.filter(|made| *made != content && doing == Doing::Real) else {
        return Ok(Edited { report: plan.report, changed: false, sha256: before });
    };
    let now = sha256(&made);
    let path = order.path;
    let is = Before::File { sha256: before, mode };
    let step = Step::File { path: path.clone(), mode: mode & 0o777, bytes: 0 };
    let write = Load { step, content: Content::Bytes(Arc::from(made)) };
    files.carry(vec![Step::Expect { path, is }.into(), write]).await?;
    Ok(Edited { report: plan.report, changed: true, sha256: now })
}

/// The path below the workspace, which may be said with the name that the workspace has inside.
fn plain(path: &OsStr) -> Result<GuestPath> {
    let bytes = path.as_bytes();
    GuestPath::new(bytes.strip_prefix(b"/workspace/").unwrap_or(bytes))
}

/// A part of a text file, by lines. What is no UTF-8 text is refused.
pub async fn read_window(
    files: &Files,
    path: impl AsRef<OsStr>,
    order: WindowOrder,
) -> Result<Window> {
    let path = path.as_ref();
    let content = files.read(path, MAX_WINDOWED_BYTES).await;
    let content = content.map_err(|error| match error.kind == ErrorKind::TooLarge {
        true => error.hint(LARGE_HINT),
        false => error,
    })?;
    window(&content, order)?.ok_or_else(|| {
        let what = format!("{} is not UTF-8 text, and so has no lines", path.display());
        Error::new(ErrorKind::NotAFile, what).hint(NO_TEXT_HINT)
    })
}
