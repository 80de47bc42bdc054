//! Patches and edits carried out on the files of a workspace, and windows of them.
//!
//! What a patch names is looked up without following links; [`patch`](crate::patch) says what is to be
//! done; and the file worker carries it out whole or not at all, if everything is still as it was when
//! it was looked up. These are functions over [`Files`], so they serve every sandbox; [`Session`] has
//! the same as methods.

mod edits;
mod look_up;
mod steps;

pub use edits::{Edited, edit_file, read_window};

use crate::edit::Edit;
use crate::patch::{MAX_PATCH_BYTES, Patch, PatchOutcome, PatchReport};
use crate::session::Session;
use crate::window::WindowOrder;
use cofferdam_core::{Files, Result};
use look_up::look_up;
pub(crate) use look_up::{bytes, name, sha256, sha256_of};
use std::ffi::OsStr;

/// Whether something is done, or only said what would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Doing {
    /// It is done.
    #[default]
    Real,
    /// Nothing is changed.
    DryRun,
}

/// Which way a patch is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// As it says.
    #[default]
    Forward,
    /// What it does is taken back.
    Reverse,
}

/// How a patch is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PatchOptions {
    /// Whether it is.
    pub doing: Doing,
    /// Which way.
    pub way: Way,
}

/// What came of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    /// Hunk by hunk.
    pub report: PatchReport,
    /// Whether files were changed.
    pub changed: bool,
}

/// Applies a patch, whole or not at all.
///
/// A patch that does not fit, or is applied already, is no error: its report says so, and nothing is
/// changed. A file that changes between the look and the change is a `Conflict`. Directories on the way
/// are made, and those that are emptied stay.
pub async fn apply_patch(files: &Files, text: &[u8], options: PatchOptions) -> Result<Patched> {
    let patch = Patch::parse(text)?;
    let patch = match options.way {
        Way::Forward => patch,
        Way::Reverse => patch.reversed()?,
    };
    let found = look_up(files, &patch).await?;
    let plan = patch.plan(&found.tree);
    let fits = plan.report.outcome == PatchOutcome::Fits;
    let changed = fits && options.doing == Doing::Real && !plan.changes.is_empty();
    if changed {
        files.carry(steps::steps(&found, plan.changes)).await?;
    }
    Ok(Patched { report: plan.report, changed })
}

/// The most bytes of a patch, for who reads one.
pub const MAX_PATCH_TEXT: usize = MAX_PATCH_BYTES;

impl Session {
    /// Applies a patch to its workspace; see [`apply_patch`].
    pub async fn apply_patch(&self, text: &[u8], options: PatchOptions) -> Result<Patched> {
        apply_patch(&self.files(), text, options).await
    }

    /// Edits a file of its workspace; see [`edit_file`].
    pub async fn edit_file(
        &self,
        path: impl AsRef<OsStr>,
        edits: &[Edit],
        doing: Doing,
    ) -> Result<Edited> {
        edit_file(&self.files(), path, edits, doing).await
    }

    /// A window of a file of its workspace; see [`read_window`].
    pub async fn read_window(
        &self,
        path: impl AsRef<OsStr>,
        order: WindowOrder,
    ) -> Result<crate::window::Window> {
        read_window(&self.files(), path, order).await
    }
}
