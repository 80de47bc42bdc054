//! Links in git directories.
//!
//! HOSTILE: a link in place of what git writes leads its writing elsewhere, at any depth: a log of a
//! branch is appended to, with names that whoever made the branch chose.

use super::leading::has_leading;
use super::{Search, join};
use rustix::fs::FileType;

/// How many directories of a git directory are listed. A listing costs some 6 µs.
const MAX_DIRECTORIES: usize = 20_000;

impl Search<'_> {
    /// Notes the links of a git directory, its sockets, and what leads elsewhere by its content. Directories of objects are not entered: files are put there
    /// under the sum of their content, and never written to.
    pub(super) fn links(&mut self, git: &str) {
        self.links_in(git, vec![git.to_owned()]);
    }

    /// The same in these directories of it.
    pub(super) fn links_in(&mut self, git: &str, mut waiting: Vec<String>) {
        let mut listed = 0;
        while let Some(directory) = waiting.pop() {
            listed += 1;
            let is_of_objects = has_objects(&directory, git);
            let may_lead = has_leading(git, &directory);
            // Another git directory may lead there, too. HOSTILE: for that one it may be nothing to look into.
            if !self.listed.insert((directory.clone(), is_of_objects, may_lead)) {
                continue;
            }
            if listed > MAX_DIRECTORIES {
                let why = "it has too many directories to look for links in each";
                return self.unseen(git.to_owned(), why);
            }
            let is_wanted = |kind| matters(kind) || may_lead && kind == FileType::RegularFile;
            for (name, kind) in self.entries(&directory, usize::MAX, is_wanted) {
                let path = join(&directory, &name);
                if kind == FileType::RegularFile {
                    self.leading(git, &path);
                } else if kind == FileType::Symlink {
                    // What it leads to is as good as in its place.
                    let led = self.follow("", &path).end.filter(|end| !end.is_empty());
                    let target = rustix::fs::readlinkat(self.workspace, &path, Vec::new());
                    let target = format!("{target:?}");
                    self.found.state.insert(path, target);
                    self.found.pointed.extend(led.clone());
                    waiting.extend(led);
                } else if kind == FileType::Socket {
                    self.sockets.push(path.into_bytes());
                } else if !(is_of_objects && is_by_sum(&path)) {
                    if name == ".git" {
                        // No repository has one in there; an index could lead to it all the same.
                        self.found.present.insert(path.clone());
                    }
                    waiting.push(path);
                }
            }
        }
    }
}

/// A link, a socket, or what may have some in it.
fn matters(kind: FileType) -> bool {
    matches!(kind, FileType::Symlink | FileType::Socket | FileType::Directory)
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
