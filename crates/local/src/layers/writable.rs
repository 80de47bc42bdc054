//! Directories in which nobody may write, while they lose or get something.

use crate::kernel_path::through;
use rustix::fs::{FileType, Mode};
use std::os::fd::OwnedFd;

/// A directory that its owner may write as long as this is there. Then it has its permissions again.
///
/// Whoever is inside may have taken that right from everybody. Whatever loses or gets an entry needs it, and
/// so does a directory that changes its parent, which is written itself.
///
/// LIMIT: whoever dies meanwhile leaves it writable, which is then a change of the layer's.
pub(super) struct Writable<'d> {
    directory: &'d OwnedFd,
    /// What permissions it had, where they were others.
    had: Option<Mode>,
}

impl<'d> Writable<'d> {
    /// All of these that are directories.
    pub(super) fn all(files: impl IntoIterator<Item = Option<&'d OwnedFd>>) -> Vec<Self> {
        files.into_iter().flatten().map(Self::new).collect()
    }

    fn new(directory: &'d OwnedFd) -> Self {
        let mode = rustix::fs::fstat(directory).ok().and_then(|stat| {
            let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            is_directory.then(|| Mode::from_raw_mode(stat.st_mode & 0o7777))
        });
        // Where that is not allowed, what needs it fails and says so.
        let had = mode.filter(|mode| {
            let is_closed = !mode.contains(Mode::WUSR);
            is_closed && rustix::fs::chmod(through(directory), *mode | Mode::WUSR).is_ok()
        });
        Self { directory, had }
    }
}

impl Drop for Writable<'_> {
    fn drop(&mut self) {
        if let Some(had) = self.had {
            // Whoever could set others can set these.
            let _ = rustix::fs::chmod(through(self.directory), had);
        }
    }
}
