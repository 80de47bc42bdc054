//! Questions to the disk, and to the words of a path.

use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_wire::plan::Owner;
use rustix::fs::{FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A path that exists, with what it is.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Its canonical path.
    pub(crate) path: String,
    stat: Stat,
}

impl Found {
    pub(crate) fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Directory
    }

    pub(super) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::RegularFile
    }

    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.stat.st_dev, self.stat.st_ino)
    }

    /// Its permission bits, without those that give rights to whoever runs or makes a file.
    pub(crate) fn mode(&self) -> u32 {
        self.stat.st_mode & 0o1777
    }

    pub(crate) fn owner(&self) -> (u32, u32) {
        (self.stat.st_uid, self.stat.st_gid)
    }

    /// When anything about it changed last, in nanoseconds since 1970.
    pub(crate) fn changed_ns(&self) -> u64 {
        crate::layers::changed_ns(&self.stat)
    }

    /// When it was read and changed last.
    pub(crate) fn times(&self) -> Timestamps {
        let time = |seconds, rest: u64| Timespec {
            tv_sec: seconds,
            tv_nsec: i64::try_from(rest).unwrap_or(0),
        };
        Timestamps {
            last_access: time(self.stat.st_atime, self.stat.st_atime_nsec),
            last_modification: time(self.stat.st_mtime, self.stat.st_mtime_nsec),
        }
    }

    /// Its files as the sandbox's user's own, whoever they belong to on disk.
    pub(super) fn mapped(&self) -> Owner {
        let (uid, gid) = self.owner();
        Owner::Mapped { uid, gid }
    }
}

/// Resolves a path. `None` where nothing is there, where it cannot be reached, and where its
/// canonical path is not UTF-8.
pub(super) fn find(path: impl AsRef<Path>) -> Option<Found> {
    resolve(path.as_ref()).ok()
}

/// Resolves a path that the caller listed, or says why not.
pub(crate) fn find_listed(path: &Path, what: &str) -> Result<Found> {
    resolve(path).map_err(|error| {
        let message = format!("{what} {} ", path.display());
        if error.kind() == io::ErrorKind::NotFound {
            Error::new(ErrorKind::NotFound, format!("{message}does not exist"))
                .hint("Check the spelling; paths are those of this host.")
        } else if error.kind() == io::ErrorKind::InvalidData {
            Error::new(ErrorKind::Usage, format!("{message}is not UTF-8"))
                .hint("Rename it: its path becomes the name of a mount.")
        } else {
            Error::new(ErrorKind::Io, format!("{message}cannot be looked at"))
                .hint("Check the permissions of the directories above it.")
        }
        .source(error)
    })
}

/// Resolves the path of a workspace, which whoever took it from a caller made canonical.
///
/// HOSTILE: a command in a sandbox of a directory above may have put a link on its way since, before a session starts
/// again or between two looks.
pub(crate) fn find_workspace(path: &Path) -> Result<Found> {
    let found = find_listed(path, "workspace")?;
    if path == Path::new(&found.path) {
        return Ok(found);
    }
    let (was, now) = (path.display(), &found.path);
    let what = format!("workspace {was} leads to {now} by now, through a symbolic link");
    Err(Error::new(ErrorKind::Conflict, what)
        .hint(format!("Put the directory back in the place of the link, or name {now} itself.")))
}

/// One open and two questions instead of a question for each component.
fn resolve(path: &Path) -> io::Result<Found> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let path = rustix::fs::readlink(name, Vec::new())?;
    let path = path.into_string().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Found { path, stat })
}

/// Whether something is there, links not followed.
pub(super) fn exists(path: impl AsRef<Path>) -> bool {
    rustix::fs::lstat(path.as_ref()).is_ok()
}

/// What a name is, before any link is followed.
pub(super) enum Name {
    /// Nothing.
    Missing,
    /// A symbolic link that points there.
    Link(String),
    /// Anything else.
    Plain,
}

/// Asks what a name is, in one call.
pub(super) fn name(path: &str) -> Name {
    match rustix::fs::readlink(path, Vec::new()) {
        Ok(target) => target.into_string().map_or(Name::Missing, Name::Link),
        Err(rustix::io::Errno::INVAL) => Name::Plain,
        Err(_) => Name::Missing,
    }
}

/// The text of a regular file that is not longer than this. A link, a FIFO, a device or anything
/// else has none.
///
/// HOSTILE: a sandboxed command may have made the file, to hold up whoever opens it or to fill the
/// memory of whoever reads it. So nothing waits, and what was opened is looked at, not the name.
pub(super) fn text_of(path: &str, most_bytes: u64) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > most_bytes {
        return None;
    }
    let mut text = String::new();
    // It may have grown since.
    let bytes = file.take(most_bytes + 1).read_to_string(&mut text).ok()?;
    (bytes as u64 <= most_bytes).then_some(text)
}

/// Whose files a bind of `found` shows, seen from the host's root: below a directory that others
/// cannot search, such as `/root`, the sandbox's user could not be expected to read anything.
pub(super) fn owner_for_root(found: &Found) -> Owner {
    let mut end = 0;
    while let Some(next) = found.path.get(end + 1..).and_then(|rest| rest.find('/')) {
        end += 1 + next;
        let Some(ancestor) = found.path.get(..end) else { break };
        match rustix::fs::stat(ancestor) {
            Ok(stat) if stat.st_mode & 0o001 == 0 => return found.mapped(),
            Ok(_) | Err(_) => {}
        }
    }
    Owner::Same
}

/// Whether `path` is `above`, or lies below it. Both are absolute and without dots.
pub(crate) fn is_within(path: &str, above: &str) -> bool {
    match path.strip_prefix(above) {
        Some(rest) => rest.is_empty() || rest.starts_with('/') || above == "/",
        None => false,
    }
}

/// How many components a path has.
pub(crate) fn depth(path: &str) -> usize {
    path.split('/').filter(|part| !part.is_empty()).count()
}

/// Whether a configuration file may hold a secret. Rather one too many than one too few.
pub(super) fn may_hold_a_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["token", "credential", "password", "passwd", "secret", "authorization", "_auth", "askpass"]
        .iter()
        .any(|word| text.contains(word))
        || text.lines().any(|line| {
            line.split_once("://").is_some_and(|(_, rest)| {
                rest.split(['/', '"', '\'']).next().unwrap_or("").contains('@')
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_within_whole_components_only() {
        assert!(is_within("/a/b", "/a"));
        assert!(is_within("/a", "/a"));
        assert!(is_within("/a", "/"));
        assert!(!is_within("/ab", "/a"));
        assert!(!is_within("/a", "/a/b"));
    }

    #[test]
    fn configuration_with_a_secret_is_told_from_plain() {
        assert!(may_hold_a_secret("[registry]\ntoken = \"x\""));
        assert!(may_hold_a_secret("proxy = \"http://me:pw@proxy:80\""));
        assert!(may_hold_a_secret("[url \"https://x@github.com/\"]"));
        assert!(!may_hold_a_secret("[build]\nrustflags = []\nurl = \"https://a.b/c@d\""));
    }

    #[test]
    fn only_a_regular_file_of_bounded_size_has_a_text() {
        let directory = crate::test_directory::TestDirectory::new("text");
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), Mode::RWXU).unwrap();
        assert_eq!(text_of(&path("file"), 4).as_deref(), Some("text"));
        assert_eq!(text_of(&path("file"), 3), None);
        for other in [path("link"), path("zero"), path("fifo"), "/dev/zero".to_owned()] {
            assert_eq!(text_of(&other, 1 << 20), None, "{other}");
        }
    }

    #[test]
    fn a_path_with_links_is_resolved() {
        let found = find("/proc/self/../../usr").unwrap();
        assert_eq!(found.path, "/usr");
        assert!(found.is_directory());
        assert!(find("/no/such/path").is_none());
        let error = find_listed(Path::new("/no/such/path"), "--read").unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.message.contains("/no/such/path"), "{error}");
    }
}
