//! The protected names of repositories.
//!
//! HOSTILE: what looks like a repository may have been made by an earlier sandboxed command. None of
//! it makes a start fail: whatever stands in the place of a name is pinned as what it is. Nor does
//! something that is missing, such as `HEAD`, make a repository pass for none: an earlier command
//! may have taken it away, to put it back when nothing is pinned.

use super::{AbsentName, GIT_DIRECTORY, Nature, Search, join};
use cofferdam_core::Result;
use cofferdam_wire::plan::Access;
use rustix::fs::FileType;

impl Search<'_> {
    /// A repository whose work tree is at `tree`: the control files of both, and the way there.
    pub(super) fn repository(&mut self, tree: &str) -> Result<()> {
        let git = join(tree, ".git");
        self.found.present.insert(git.clone());
        if !tree.is_empty() {
            self.way(tree);
            self.work_tree(tree)?;
        }
        match self.kind(&git)? {
            Some((FileType::Directory, _)) => {
                self.way(&git);
                self.git_directory(&git)?;
            }
            Some((FileType::Symlink, _)) => {
                self.pin(git.clone(), Access::ReadOnly);
                self.unprotected(git, "it is a symbolic link to a git directory");
            }
            // A file says where the git directory is. For git, anything else is no repository.
            Some(_) => self.pin(git, Access::ReadOnly),
            None => {}
        }
        Ok(())
    }

    pub(super) fn git_directory(&mut self, git: &str) -> Result<()> {
        let info = join(git, "info");
        let under_info = match self.kind(&info)? {
            None => {
                let name = AbsentName { path: info.clone(), nature: Nature::GitDirectory };
                self.found.absent.push(name);
                true
            }
            Some((kind, _)) => kind == FileType::Directory,
        };
        if under_info {
            self.way(&info);
        } else {
            self.name(info, Nature::GitDirectory)?;
        }
        let names = GIT_DIRECTORY.iter().filter(|(name, _)| under_info || !name.contains('/'));
        for (name, nature) in names {
            self.name(join(git, name), *nature)?;
        }
        Ok(())
    }

    /// A bare repository below the workspace.
    pub(super) fn bare(&mut self, directory: &str) -> Result<()> {
        self.found.present.insert(directory.to_owned());
        self.way(directory);
        self.git_directory(directory)
    }

    /// A bare repository, as git would take it for one.
    pub(super) fn is_git_directory(&mut self, path: &str) -> Result<bool> {
        for name in ["HEAD", "objects", "refs"] {
            if self.kind(&join(path, name))?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
