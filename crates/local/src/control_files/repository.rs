//! The protected names of repositories.
//!
//! HOSTILE: what looks like a repository may have been made by an earlier sandboxed command. None of
//! it makes a start fail: whatever stands in the place of a name is pinned as what it is. Nor does
//! something that is missing, such as `HEAD`, make a repository pass for none: an earlier command
//! may have taken it away, to put it back when nothing is pinned.
//!
//! LIMIT: a directory that is shown writable by itself is not looked at, even if it is a repository.

use super::scan::BUFFER_BYTES;
use super::users::is_nothing;
use super::{
    AbsentName, GIT_DIRECTORY, GIT_DIRECTORY_IF_THERE, GIT_STATE, Nature, SIGNS_OF_GIT, Search,
    is_own, is_repository, join, parent_of,
};
use crate::kernel_path::through;
use crate::state::retry;
use cofferdam_core::Result;
use cofferdam_wire::plan::Access;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Git reads no longer pointer to a git directory.
const POINTER_BYTES: usize = 1 << 20;
/// How many entries of one directory are looked at. Hooks are some dozen.
pub(super) const MAX_ENTRIES: usize = 1000;

/// Where a path leads.
pub(super) enum Leads {
    /// To this place in the workspace.
    Inside(String),
    /// To this place of the host.
    Outside(PathBuf),
    /// To the workspace itself, which cannot be pinned. It was said.
    Top,
}

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
                self.git_directory(&git, tree)?;
            }
            Some((FileType::Symlink, _)) => {
                self.pin(git.clone(), Access::ReadOnly);
                let text = rustix::fs::readlinkat(self.workspace, &git, Vec::new());
                let text = text.ok().and_then(|text| text.into_string().ok());
                self.elsewhere(git, text, tree)?;
            }
            Some((FileType::RegularFile, _)) => {
                self.pin(git.clone(), Access::ReadOnly);
                let text = self.pointer(&git);
                let line = text.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
                let named = line.and_then(|line| line.lines().next());
                self.elsewhere(git, named.map(|named| named.trim().to_owned()), tree)?;
            }
            // For git, anything else is no repository.
            Some(_) => self.pin(git, Access::ReadOnly),
            None => {}
        }
        Ok(())
    }

    /// The text of a file that names a git directory. One that is too long for that may name any.
    fn pointer(&mut self, path: &str) -> Option<String> {
        match self.read_text(path, POINTER_BYTES) {
            Err(Errno::FBIG) => {
                self.unprotected(path.to_owned(), "it is too long to name a git directory");
                None
            }
            read => self.had(path, read),
        }
    }

    /// A git directory that another place names. One outside the workspace cannot be written from inside, or
    /// was shown on purpose; what it names can.
    fn elsewhere(&mut self, pointer: String, named: Option<String>, tree: &str) -> Result<()> {
        let Some(named) = named else { return Ok(()) };
        let git = match self.leads(&pointer, tree, &named) {
            Leads::Inside(git) => git,
            Leads::Outside(git) => return self.outside(&git, tree),
            Leads::Top => return Ok(()),
        };
        if self.is_fixed(&git) {
            self.followed(&git, tree)?;
            return self.common(&git, tree);
        }
        // LIMIT: what is no git directory yet is one that is made during the run.
        if !self.has_sign_of_git(&git)? {
            self.found.pointed.push(git);
            return Ok(());
        }
        self.way(&git);
        self.git_directory(&git, tree)
    }

    /// Where a path leads that git follows from `base`. The links of the workspace that it leads by are
    /// pinned, or they could be pointed elsewhere.
    pub(super) fn leads(&mut self, who: &str, base: &str, text: &str) -> Leads {
        let led = self.follow(base, text);
        let Some(end) = led.end else { return Leads::Outside(self.outer_path(base, text)) };
        if end.is_empty() {
            self.unprotected(who.to_owned(), "it names the workspace itself");
            self.found.pointed.push(end);
            return Leads::Top;
        }
        led.links.iter().for_each(|link| self.fix(link));
        Leads::Inside(end)
    }

    /// The same where only the workspace matters.
    pub(super) fn inside(&mut self, who: &str, base: &str, text: &str) -> Option<String> {
        match self.leads(who, base, text) {
            Leads::Inside(path) => Some(path),
            Leads::Outside(_) | Leads::Top => None,
        }
    }

    /// Whether a name is read-only already, by itself or with a directory that it is in.
    pub(super) fn is_fixed(&self, path: &str) -> bool {
        Path::new(path)
            .ancestors()
            .filter_map(Path::to_str)
            .any(|path| self.pins.get(path) == Some(&Access::ReadOnly))
    }

    /// The protected names of a git directory whose work tree is at `tree`, and of the one that it shares
    /// things with.
    pub(super) fn git_directory(&mut self, git: &str, tree: &str) -> Result<()> {
        self.links(git);
        self.names_of_git(git)?;
        self.followed(git, tree)?;
        self.common(git, tree)
    }

    fn names_of_git(&mut self, git: &str) -> Result<()> {
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
        for name in GIT_DIRECTORY_IF_THERE {
            self.if_there(join(git, name))?;
        }
        self.state_of_git(git);
        Ok(())
    }

    /// Notes what says how git goes on with what it began.
    pub(super) fn state_of_git(&mut self, git: &str) {
        for name in GIT_STATE {
            let path = join(git, name);
            if let Ok(stat) = rustix::fs::statat(self.workspace, &path, AtFlags::SYMLINK_NOFOLLOW) {
                let stamp = (stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
                self.found.state.insert(path, format!("{stamp:?}"));
            }
        }
    }

    /// Where a git directory has what it shares: its configuration and hooks are those that count. Git
    /// reads one such file, and none of where that leads.
    fn common(&mut self, git: &str, tree: &str) -> Result<()> {
        let pointer = join(git, "commondir");
        let Some(text) = self.pointer(&pointer) else { return Ok(()) };
        let named = text.trim_end_matches(['\n', '\r']);
        if self.follow(git, named).end.as_deref() == Some(git) {
            return Ok(());
        }
        let common = match self.leads(&pointer, git, named) {
            Leads::Inside(common) => common,
            Leads::Outside(common) => return self.outside(&common, tree),
            Leads::Top => return Ok(()),
        };
        if !self.has_sign_of_git(&common)? {
            self.found.pointed.push(common);
            return Ok(());
        }
        if self.shared.insert(common.clone()) {
            self.way(&common);
            self.links(&common);
            self.names_of_git(&common)?;
        }
        self.followed(&common, tree)
    }

    /// Hooks that can be changed by another name, or where a link leads.
    pub(super) fn hooks(&mut self, directory: &str) -> Result<()> {
        let led = self.follow("", directory);
        let Some(directory) = led.end.as_deref().filter(|end| !end.is_empty()) else {
            return match led.end {
                None if !led.links.is_empty() => self.outer_hooks(&self.root.join(directory)),
                _ => Ok(()),
            };
        };
        let entries = self.entries(directory, MAX_ENTRIES, |_| true);
        if entries.len() >= MAX_ENTRIES {
            let why = "it has too many entries to look at each";
            self.unprotected(directory.to_owned(), why);
        }
        for (name, _) in entries {
            let path = join(directory, &name);
            match self.kind(&path)? {
                Some((FileType::Symlink, _)) => self.link(&path)?,
                Some((FileType::RegularFile, links)) if links > 1 => {
                    self.unprotected(path, "the file has another name, a hard link");
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Pins what a configuration names, and has something put there where nothing is.
    pub(super) fn fix_at(&mut self, who: &str, path: &str, nature: Nature) -> Result<()> {
        match self.kind(path)? {
            None if self.open(parent_of(path)).is_err() => {
                self.unprotected(who.to_owned(), "what it names is not there, nor its directory");
                self.found.pointed.push(path.to_owned());
                return Ok(());
            }
            None => {
                let name = AbsentName { path: path.to_owned(), nature };
                self.found.absent.push(name);
            }
            Some((FileType::RegularFile, links)) if links > 1 => {
                self.unprotected(path.to_owned(), "the file has another name, a hard link");
            }
            Some(_) => {}
        }
        self.fix(path);
        Ok(())
    }

    /// A bare repository below the workspace.
    pub(super) fn bare(&mut self, directory: &str) -> Result<()> {
        self.found.present.insert(directory.to_owned());
        self.way(directory);
        self.git_directory(directory, directory)
    }

    /// A bare repository, as git would take it for one.
    pub(super) fn is_git_directory(&mut self, path: &str) -> Result<bool> {
        let signs = self.signs_of_git(path)?;
        Ok(is_repository(|sign| signs.contains(&sign)))
    }

    /// Something names it as a git directory, so that one sign is enough.
    fn has_sign_of_git(&mut self, path: &str) -> Result<bool> {
        Ok(!self.signs_of_git(path)?.is_empty())
    }

    fn signs_of_git(&mut self, path: &str) -> Result<Vec<&'static str>> {
        let mut found = Vec::new();
        for sign in SIGNS_OF_GIT {
            if self.kind(&join(path, sign))?.is_some() {
                found.push(sign);
            }
        }
        Ok(found)
    }

    pub(super) fn read_text(&self, path: &str, most_bytes: usize) -> Result<String, Errno> {
        self.read(path, most_bytes).map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    /// The content of a regular file, if it is no longer than this. Follows no link, and waits for
    /// nothing.
    pub(super) fn read(&self, path: &str, most_bytes: usize) -> Result<Vec<u8>, Errno> {
        let found = self.open_as(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let stat = rustix::fs::fstat(&found)?;
        // HOSTILE: somebody may wait at the other end of a pipe for it to be opened.
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(through(&found), flags, Mode::empty())?;
        let mut content = Vec::new();
        let mut chunk = [0_u8; 4096];
        loop {
            let count = retry(|| rustix::io::read(&file, &mut chunk))?;
            match chunk.get(..count) {
                None | Some([]) => return Ok(content),
                Some(bytes) => content.extend_from_slice(bytes),
            }
            if content.len() > most_bytes {
                return Err(Errno::FBIG);
            }
        }
    }

    /// What is in a directory and is wanted, at most so many. What cannot be listed and could be from inside is
    /// unprotected.
    pub(super) fn entries(
        &mut self,
        path: &str,
        most: usize,
        is_wanted: impl Fn(FileType) -> bool,
    ) -> Vec<(String, FileType)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match self.open_as(path, flags) {
            Ok(directory) => directory,
            Err(Errno::ACCESS) if is_own(self.workspace, path.as_bytes()) => {
                self.unseen(path.to_owned(), "it may not be listed");
                return Vec::new();
            }
            Err(errno) if errno == Errno::ACCESS || is_nothing(errno) => return Vec::new(),
            Err(errno) => {
                self.unseen(path.to_owned(), &format!("it cannot be listed: {errno}"));
                return Vec::new();
            }
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut listing = RawDir::new(&directory, &mut buffer);
        let mut entries = Vec::new();
        while let Some(Ok(entry)) = listing.next() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if entries.len() >= most {
                break;
            }
            let kind = super::scan::kind(&directory, name, entry.file_type());
            if is_wanted(kind) {
                entries.push((name.to_string_lossy().into_owned(), kind));
            }
        }
        entries
    }

    pub(super) fn open_as(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let path = if path.is_empty() { "." } else { path };
        rustix::fs::openat2(self.workspace, path, flags, Mode::empty(), rules)
    }
}
