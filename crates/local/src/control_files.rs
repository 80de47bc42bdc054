//! Files of a workspace that can turn a later, unsandboxed run against its user.
//!
//! Git hooks and configuration, shell start files, editor and agent configuration: whoever writes
//! them decides what the user's own tools do. They are pinned: made mounts of their own, read-only,
//! which cannot be renamed or removed, and neither can the directories on the way to them. Names
//! that are absent get a placeholder first ([`crate::placeholders`]), because an attacker would
//! simply make them.
//!
//! What is protected: the names below in the root of the workspace and of every nested repository
//! that a bounded scan finds, and the names below in their git directories. A case-insensitive
//! directory resolves every spelling to the one pinned entry, so that no spelling gets around it.
//!
//! LIMIT: a repository, bare ones included, that is made during the run is not protected. It is
//! reported afterwards ([`appeared`]). Neither are the contents of an outer git directory, which is
//! not part of the workspace.

mod around;
mod causes;
mod configuration;
mod follow;
mod git_config;
mod index;
mod leading;
mod links;
mod names;
mod outer;
mod repository;
mod scan;
mod sockets;
mod users;

pub(crate) use around::around;
use causes::sentences;
#[cfg(test)]
pub(crate) use index::of_one as index_of_one;
pub(crate) use leading::Read;
pub(crate) use names::{Named, named};
pub use scan::ScanEnd;
use scan::{MAX_DEPTH, Most};
use users::Users;

use crate::placeholders::{self, Unmade};
use crate::state::io;
use cofferdam_core::Result;
use cofferdam_wire::plan::Access;
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What a name is by nature, which decides what stands for it where it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// A directory of the work tree.
    Directory,
    /// A file of the work tree.
    File,
    /// A directory of a git directory, in which git on the host makes what it needs.
    GitDirectory,
    /// A file of a git directory, for which an empty one is the same as none.
    GitFile,
    /// Git's `commondir`, which has to name the git directory itself.
    CommonDir,
    /// A directory that something is mounted on, or on the way there.
    MountPoint,
}

/// Names in the root of a work tree.
const WORK_TREE: [(&str, Nature); 26] = [
    (".vscode", Nature::Directory),
    (".idea", Nature::Directory),
    (".claude", Nature::Directory),
    (".cursor", Nature::Directory),
    (".codex", Nature::Directory),
    (".gemini", Nature::Directory),
    (".windsurf", Nature::Directory),
    (".devcontainer", Nature::Directory),
    (".husky", Nature::Directory),
    (".mcp.json", Nature::File),
    (".devcontainer.json", Nature::File),
    (".envrc", Nature::File),
    (".gitmodules", Nature::File),
    (".gitconfig", Nature::File),
    ("cofferdam.toml", Nature::File),
    (".bashrc", Nature::File),
    (".bash_profile", Nature::File),
    (".bash_login", Nature::File),
    (".bash_logout", Nature::File),
    (".profile", Nature::File),
    (".zshrc", Nature::File),
    (".zshenv", Nature::File),
    (".zprofile", Nature::File),
    (".zlogin", Nature::File),
    (".zlogout", Nature::File),
    (".exrc", Nature::File),
];

/// Names in a git directory. `info` itself is pinned on the way to `attributes`. For `modules` there
/// is no real directory: one costs some 300 µs, and where there is no `.gitmodules`, git on the host
/// can make no submodule anyway while a placeholder stands for that.
const GIT_DIRECTORY: [(&str, Nature); 7] = [
    ("hooks", Nature::GitDirectory),
    ("config", Nature::GitFile),
    ("config.worktree", Nature::GitFile),
    ("commondir", Nature::CommonDir),
    ("modules", Nature::Directory),
    ("worktrees", Nature::GitDirectory),
    ("info/attributes", Nature::GitFile),
];

/// The same of names that most have not: what stands there is protected, what does not gets no placeholder
/// and is told of where it appears. Git takes from these where it pushes to and fetches from.
const GIT_DIRECTORY_IF_THERE: [&str; 2] = ["remotes", "branches"];

/// Names in the root of a work tree that most have not, as those above.
const WORK_TREE_IF_THERE: [&str; 33] = [
    ".hg/hgrc",
    ".hg/hgrc-not-shared",
    ".jj/repo/config.toml",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".helix",
    "opencode.json",
    "opencode.jsonc",
    ".qwen",
    ".roo",
    ".crush.json",
    "crush.json",
    ".amazonq",
    ".continue",
    ".kilocode",
    ".junie",
    "mise.toml",
    "mise.local.toml",
    "mise/config.toml",
    ".mise.local.toml",
    ".mise/config.toml",
    ".config/mise.toml",
    ".config/mise/config.toml",
    ".config/mise/conf.d",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".zed",
    ".opencode",
    ".kiro",
    ".mise.toml",
    ".cshrc",
    ".login",
];

/// Directories of a git directory that say how a rebase, a merge of mails or a series of picks goes on.
const GIT_STATE_DIRECTORIES: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// What of them names programs that git runs then. It is told of where it appears or changes and not pinned,
/// for whoever goes on with it inside writes it.
const GIT_STATE: [&str; 5] = [
    "rebase-merge/git-rebase-todo",
    "rebase-merge/strategy",
    "rebase-merge/strategy_opts",
    "sequencer/opts",
    "sequencer/todo",
];

/// Names by which git takes a directory for a repository.
pub(crate) const SIGNS_OF_GIT: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Whether git takes a directory that has these of [`SIGNS_OF_GIT`] for a repository. What is named by
/// `commondir` stands for the two others, with its configuration and hooks.
pub(crate) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// A name that is made a mount of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedName {
    /// Relative to the workspace.
    pub path: String,
    /// Whether it can be written. The way to a protected name can, the name itself cannot.
    pub access: Access,
}

/// A name that is protected and not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentName {
    /// Relative to the workspace.
    pub path: String,
    /// What has to stand for it.
    pub nature: Nature,
}

/// A name that cannot be protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprotected {
    /// Relative to the workspace.
    pub path: String,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// The control files of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlFiles {
    /// What is pinned, in this order: parents first. Absent names are among them.
    pub pins: Vec<PinnedName>,
    /// What is not there and needs a placeholder, parents first.
    pub absent: Vec<AbsentName>,
    /// What cannot be protected. Not empty means that the files axis is not fully enforced.
    pub unprotected: Vec<Unprotected>,
    /// Why the scan for nested repositories ended.
    pub scan: ScanEnd,
    /// What was there: control files and repositories, relative to the workspace.
    pub present: BTreeSet<String>,
    /// What names of control files lead to and is not pinned, with the links on the way, relative to the
    /// workspace. The empty path is all of it: where they lead is not known.
    pub pointed: Vec<String>,
    /// Sockets at which a program of the host listens, relative to the workspace.
    pub sockets: Vec<String>,
    /// Of what cannot be protected, where such sockets may be.
    pub unseen: Vec<Unprotected>,
    /// Links of git directories, and what says how git goes on with what it began, with what tells each from
    /// a later state of it.
    pub state: BTreeMap<String, String>,
    /// The indexes of git directories, each with what tells it from a later one.
    pub indexes: BTreeMap<String, String>,
}

impl ControlFiles {
    /// Leaves out of the pins what got no placeholder, and reports what needs one.
    #[must_use]
    pub fn without(mut self, unmade: Unmade) -> Self {
        let exposed = unmade.exposed.iter().map(|name| &name.path);
        let names: Vec<&String> = exposed.chain(&unmade.by_nobody).collect();
        let is_at_or_below = |path: &str, name: &str| {
            path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.pins.retain(|pin| !names.iter().any(|name| is_at_or_below(&pin.path, name)));
        self.unprotected.extend(unmade.exposed);
        self
    }

    /// Why not all is protected: a sentence for each cause, led by the axis and a colon.
    pub fn reasons(&self) -> Vec<String> {
        let scan = self.scan.reason().map(|reason| format!("files: {reason}"));
        sentences(&self.unprotected).into_iter().chain(scan).collect()
    }

    /// The same where nothing but sockets is covered.
    pub fn reasons_of_sockets(&self) -> Vec<String> {
        let scan = self.scan.reason_of_sockets().map(|reason| format!("files: {reason}"));
        sentences(&self.unseen).into_iter().chain(scan).collect()
    }
}

/// Where the repositories of a workspace are, relative; the workspace itself is the empty path.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repositories {
    /// Work trees.
    pub(crate) trees: BTreeSet<String>,
    /// Directories that are bare repositories.
    pub(crate) bare: BTreeSet<String>,
}

impl Repositories {
    /// These and those.
    pub(crate) fn with(mut self, others: &Self) -> Self {
        self.trees.extend(others.trees.iter().cloned());
        self.bare.extend(others.bare.iter().cloned());
        self
    }
}

/// Finds the repositories of a workspace, as far as a bounded scan goes. Costs what the workspace holds.
pub(crate) fn repositories<Fd: AsFd>(workspace: Fd) -> Result<Repositories> {
    let scan = scan::repositories(workspace.as_fd(), Most::Protected)?;
    let (trees, bare) = (scan.repositories.into_iter(), scan.bare.into_iter());
    Ok(Repositories { trees: trees.collect(), bare: bare.collect() })
}

/// Finds the control files of a workspace, and the sockets in it that somebody listens at. Changes nothing.
pub fn find<Fd: AsFd>(workspace: Fd) -> Result<ControlFiles> {
    find_with(workspace, None, Most::Protected)
}

/// The same where no name is protected: the sockets, and what cannot be looked into.
pub(crate) fn find_sockets<Fd: AsFd>(workspace: Fd) -> Result<ControlFiles> {
    find_with(workspace, None, Most::All)
}

/// `before` is what was found before a command that is over. Then sockets are left alone, which whoever
/// listens at one would notice, and what leads git elsewhere by its content is told of.
fn find_with<Fd: AsFd>(
    workspace: Fd,
    before: Option<&ControlFiles>,
    most: Most,
) -> Result<ControlFiles> {
    let scan = scan::repositories(workspace.as_fd(), most)?;
    let mut search = Search::new(workspace.as_fd(), real_path(workspace.as_fd())?);
    search.before = before;
    search.outer_state();
    search.all(&scan.repositories, &scan.bare)?;
    for (path, why) in scan.unreadable {
        search.unseen(path, why);
    }
    for path in scan.too_deep {
        search.too_deep(path);
    }
    let own = std::mem::take(&mut search.sockets);
    if before.is_none() {
        search.listening(scan.sockets.into_iter().chain(own).collect());
    }
    Ok(search.finish(scan.end))
}

/// Finds the control files of a workspace, or of a part of one, that has these repositories. Absolute
/// paths are meant for a workspace at `root`. Costs what the repositories hold.
pub(crate) fn find_in<Fd: AsFd>(
    workspace: Fd,
    root: &Path,
    known: &Repositories,
) -> Result<ControlFiles> {
    let mut search = Search::new(workspace.as_fd(), root.to_owned());
    search.all(&known.trees, &known.bare)?;
    Ok(search.finish(ScanEnd::Complete))
}

/// Control files that are there now and were not before, and what cannot be looked at now. To be asked when
/// the placeholders are gone.
pub fn appeared<Fd: AsFd>(before: &ControlFiles, workspace: Fd) -> Result<Vec<String>> {
    let now = find_with(workspace, Some(before), Most::Protected)?;
    let mut told: BTreeSet<String> = now.present.difference(&before.present).cloned().collect();
    let is_other = |(path, state): &(&String, &String)| before.state.get(*path) != Some(*state);
    told.extend(now.state.iter().filter(is_other).map(|(path, _)| path.clone()));
    // HOSTILE: what is closed to a look is not closed to git.
    let is_news = |name: &&Unprotected| !before.unprotected.contains(name);
    told.extend(now.unprotected.iter().filter(is_news).map(|name| name.path.clone()));
    if let Some(reason) = now.scan.reason().filter(|_| before.scan != now.scan) {
        told.insert(format!("({reason})"));
    }
    Ok(told.into_iter().collect())
}

/// What was found so far.
struct Search<'a> {
    workspace: BorrowedFd<'a>,
    /// Where it is, for paths that are absolute.
    root: PathBuf,
    pins: BTreeMap<String, Access>,
    found: ControlFiles,
    /// Git directories that others share and that were looked at.
    shared: BTreeSet<String>,
    /// Directories in which links were looked for, each with whether it was taken for one of objects, and for one of
    /// what leads git elsewhere by its content.
    listed: BTreeSet<(String, bool, bool)>,
    /// Configurations that were read, and for which work trees.
    read: BTreeSet<(String, Vec<String>)>,
    /// How many bytes of configurations were read, and how many of what they name was looked for.
    configuration_bytes: usize,
    targets: usize,
    /// How many bytes of indexes were read, and how many references.
    index_bytes: u64,
    references: usize,
    /// Sockets in git directories.
    sockets: Vec<Vec<u8>>,
    /// What the user's own configuration says, once it was read.
    users: Option<Users>,
    /// What was found before the command that is over.
    before: Option<&'a ControlFiles>,
}

impl<'a> Search<'a> {
    fn new(workspace: BorrowedFd<'a>, root: PathBuf) -> Self {
        Self {
            workspace,
            root,
            pins: BTreeMap::new(),
            found: ControlFiles::default(),
            shared: BTreeSet::new(),
            listed: BTreeSet::new(),
            read: BTreeSet::new(),
            configuration_bytes: 0,
            targets: 0,
            index_bytes: 0,
            references: 0,
            sockets: Vec::new(),
            users: None,
            before: None,
        }
    }

    /// The control files of the workspace itself and of these repositories in it.
    fn all<'n>(
        &mut self,
        trees: impl IntoIterator<Item = &'n String>,
        bare: impl IntoIterator<Item = &'n String>,
    ) -> Result<()> {
        self.work_tree("")?;
        self.around()?;
        if self.is_git_directory("")? {
            // What makes it one.
            self.found.present.insert("HEAD".to_owned());
            self.git_directory("", "")?;
        }
        trees.into_iter().try_for_each(|tree| self.repository(tree))?;
        bare.into_iter().try_for_each(|directory| self.bare(directory))
    }

    fn work_tree(&mut self, tree: &str) -> Result<()> {
        WORK_TREE.iter().try_for_each(|(name, nature)| self.name(join(tree, name), *nature))?;
        WORK_TREE_IF_THERE.iter().try_for_each(|name| self.if_there(join(tree, name)))
    }

    /// A name that is protected only where something stands.
    fn if_there(&mut self, path: String) -> Result<()> {
        if self.kind(&path)?.is_none() {
            return Ok(());
        }
        if !parent_of(&path).is_empty() {
            self.way(parent_of(&path));
        }
        self.name(path, Nature::File)
    }

    fn name(&mut self, path: String, nature: Nature) -> Result<()> {
        match self.kind(&path)? {
            None => self.found.absent.push(AbsentName { path: path.clone(), nature }),
            Some((FileType::Symlink, _)) => {
                self.found.present.insert(path.clone());
                self.link(&path)?;
            }
            Some((kind, links)) => {
                // Another run's are neither what was there nor news.
                if !placeholders::is_like_one(self.workspace, &path, nature, kind) {
                    self.found.present.insert(path.clone());
                }
                // A pin covers a name, not a file: another name would still lead to it.
                if kind == FileType::RegularFile && links > 1 {
                    self.unprotected(path.clone(), "the file has another name, a hard link");
                }
            }
        }
        self.pin(path, Access::ReadOnly);
        Ok(())
    }

    /// A protected name that is a symbolic link is pinned as a link, with every further one that it leads by,
    /// and so is what it names. What lies outside the workspace cannot be written from inside, or was shown on
    /// purpose; a link that leads in a circle leads nowhere for ever once it is pinned.
    fn link(&mut self, path: &str) -> Result<()> {
        let Some(end) = self.inside(path, "", path) else { return Ok(()) };
        if self.kind(&end)?.is_some() {
            self.fix(&end);
        } else if self.open(parent_of(&end)).is_ok() {
            // Something has to stand there, too.
            self.found.absent.push(AbsentName { path: end.clone(), nature: Nature::File });
            self.fix(&end);
        } else {
            self.unprotected(path.to_owned(), "it is a symbolic link to what is not there");
            self.found.pointed.push(end);
        }
        Ok(())
    }

    /// Opens a name below the workspace, without any link on the way.
    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open_as(path, OFlags::PATH | OFlags::CLOEXEC)
    }

    /// Pins a name read-only, and the way there.
    fn fix(&mut self, path: &str) {
        if !parent_of(path).is_empty() {
            self.way(parent_of(path));
        }
        self.pin(path.to_owned(), Access::ReadOnly);
    }

    /// Pins every directory down to this one, so that none can be moved out of the way.
    fn way(&mut self, path: &str) {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            if let Some(ancestor) = path.get(..end) {
                self.pin(ancestor.to_owned(), Access::ReadWrite);
            }
        }
    }

    /// Read-only wins over read-write.
    fn pin(&mut self, path: String, access: Access) {
        let known = self.pins.entry(path).or_insert(access);
        if access == Access::ReadOnly {
            *known = Access::ReadOnly;
        }
    }

    /// Notes what cannot be looked into, for control files and sockets alike.
    fn unseen(&mut self, path: String, why: &str) {
        self.found.unseen.push(Unprotected { path: path.clone(), why: why.to_owned() });
        self.unprotected(path, why);
    }

    fn too_deep(&mut self, path: String) {
        let why =
            format!("what is in it deeper than {MAX_DEPTH} levels is not looked into; remove that");
        self.found.unseen.push(Unprotected { path: path.clone(), why: why.clone() });
        self.unprotected(path, &format!("{why}, or use --cow"));
    }

    fn unprotected(&mut self, path: String, why: &str) {
        self.found.unprotected.push(Unprotected { path, why: why.to_owned() });
    }

    fn kind(&mut self, path: &str) -> Result<Option<(FileType, u64)>> {
        match rustix::fs::statat(self.workspace, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                // The width of the count differs between architectures.
                #[expect(clippy::useless_conversion, reason = "it is 32 bits wide elsewhere")]
                let links = u64::from(stat.st_nlink);
                Ok(Some((FileType::from_raw_mode(stat.st_mode), links)))
            }
            // No parent of a name may be a link: a name below one is looked for where it leads.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(Errno::NAMETOOLONG) => {
                self.unprotected(path.to_owned(), "its path is too long");
                Ok(None)
            }
            // Of somebody else's, nothing can be opened from inside; of one's own, it could be.
            Err(Errno::ACCESS) if is_own(self.workspace, parent_of(path).as_bytes()) => {
                self.unprotected(path.to_owned(), "it may not be looked at");
                Ok(None)
            }
            Err(Errno::ACCESS) => Ok(None),
            Err(e) => Err(io("look at the control file", Path::new(path), e)),
        }
    }

    fn finish(self, scan: ScanEnd) -> ControlFiles {
        let mut found = self.found;
        // INVARIANT: a map of paths lists every parent before what is below it.
        found.pins =
            self.pins.into_iter().map(|(path, access)| PinnedName { path, access }).collect();
        found.absent.sort_by(|a, b| a.path.cmp(&b.path));
        found.absent.dedup_by(|a, b| a.path == b.path);
        found.scan = scan;
        found
    }
}

/// The names of control files in a git directory, some of them in a directory of it.
pub(crate) fn in_git_directory() -> impl Iterator<Item = &'static str> {
    GIT_DIRECTORY.iter().map(|(name, _)| *name)
}

/// Whether a name of the root of a work tree is protected as a directory with all below it.
fn is_protected_directory(name: &str) -> bool {
    WORK_TREE.iter().any(|(known, nature)| *nature == Nature::Directory && name == *known)
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Whether a file's rights could be changed from inside. What hides its owner is as its parent is.
fn is_own(workspace: BorrowedFd<'_>, path: &[u8]) -> bool {
    let path = if path.is_empty() { b"." } else { path };
    rustix::fs::statat(workspace, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw())
}

/// Where an open file really is.
fn real_path(file: BorrowedFd<'_>) -> Result<PathBuf> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let target = rustix::fs::readlink(&path, Vec::new())
        .map_err(|e| io("read the link", Path::new(&path), e))?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

#[cfg(test)]
#[path = "control_files_tests.rs"]
mod tests;
