//! Links in git directories.
//!
//! HOSTILE: a link in place of what git writes leads its writing elsewhere, at any depth: a log of a
//! branch is appended to, with names that whoever made the branch chose.

use super::{Search, is_own, join};
use rustix::fs::{FileType, OFlags, RawDir};
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// How many directories of a git directory are listed. A listing costs some 6 µs.
const MAX_DIRECTORIES: usize = 20_000;
/// What one listing is read into.
const BUFFER_BYTES: usize = 16 * 1024;

impl Search<'_> {
    /// Notes the links of a git directory, and its sockets. Directories of objects are not entered: files are put there
    /// under the sum of their content, and never written to.
    pub(super) fn links(&mut self, git: &str) {
        let mut waiting = vec![git.to_owned()];
        let mut listed = 0;
        while let Some(directory) = waiting.pop() {
            listed += 1;
            // Another git directory may lead there, too.
            if !self.listed.insert(directory.clone()) {
                continue;
            }
            if listed > MAX_DIRECTORIES {
                let why = "it has too many directories to look for links in each";
                return self.unprotected(git.to_owned(), why);
            }
            let is_of_objects = has_objects(&directory, git);
            for (path, kind) in self.below(&directory) {
                if kind == FileType::Symlink {
                    // What it leads to is as good as in its place.
                    let led = self.follow("", &path).end.filter(|end| !end.is_empty());
                    let target = rustix::fs::readlinkat(self.workspace, &path, Vec::new());
                    let target = format!("{target:?}");
                    self.found.present.insert(path.clone());
                    self.found.state.insert(path, target);
                    self.found.pointed.extend(led.clone());
                    waiting.extend(led);
                } else if kind == FileType::Socket {
                    self.sockets.push(path.into_bytes());
                } else if !(is_of_objects && is_by_sum(&path)) {
                    waiting.push(path);
                }
            }
        }
    }

    /// The links, sockets and directories in a directory.
    fn below(&mut self, directory: &str) -> Vec<(String, FileType)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match self.open_as(directory, flags) {
            Ok(opened) => opened,
            Err(Errno::ACCESS) if is_own(self.workspace, directory.as_bytes()) => {
                self.unprotected(directory.to_owned(), "it may not be listed");
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut listing = RawDir::new(&opened, &mut buffer);
        let mut found = Vec::new();
        while let Some(Ok(entry)) = listing.next() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = super::scan::kind(&opened, name, entry.file_type());
            if matches!(kind, FileType::Symlink | FileType::Socket | FileType::Directory) {
                found.push((join(directory, &name.to_string_lossy()), kind));
            }
        }
        found
    }
}

/// Whether a directory of a git directory, or where a link of it leads, is one of objects.
fn has_objects(directory: &str, git: &str) -> bool {
    let below = directory.strip_prefix(git).unwrap_or(directory);
    below.split('/').any(|name| matches!(name, "objects" | "lfs"))
}

/// Whether a directory is named by the first byte of sums.
fn is_by_sum(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
