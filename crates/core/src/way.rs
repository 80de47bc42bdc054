//! The symbolic links that a path passes, and which of them a sandboxed command may have made.
//!
//! HOSTILE: a command that writes a directory can put a link in the place of what the caller names there,
//! and whoever follows it on the host later, for another sandbox, shows that one what the link leads to.
//! Which directories commands wrote before is not remembered: they are moved, copied and forgotten. So a
//! link counts as planted unless it lies where no command can write, or leads no further than the
//! directory that it lies in: whoever made it there could have put a copy in its place.

use crate::{Error, ErrorKind};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Directories that hold more than any one task may change, so that none of them is ever a workspace, or
/// written otherwise. What lies below them can be.
pub const NEVER_WRITTEN: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/lib",
    "/var/tmp",
    "/dev/shm",
];

/// The kernel follows no more either.
const MAX_LINKS: u32 = 40;

/// A symbolic link that a path passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedLink {
    /// The directory that it lies in, without any link.
    pub above: PathBuf,
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub target: PathBuf,
}

impl PassedLink {
    /// Whether it leads to something in its own directory, as far as its own words go: a further link on the
    /// way there is passed as well.
    pub fn stays(&self) -> bool {
        let climbs = self.target.components().any(|part| part == Component::ParentDir);
        !climbs && (self.target.is_relative() || self.target.starts_with(&self.above))
    }

    /// Whether it lies where no command ever writes: directly in a directory of the whole system, or in the
    /// home directory, given without links, or above it.
    pub fn is_out_of_reach(&self, home: Option<&Path>) -> bool {
        NEVER_WRITTEN.iter().any(|never| Path::new(never) == self.above)
            || home.is_some_and(|home| home.starts_with(&self.above))
    }
}

/// The first link on the way of an absolute path to `end`, where it was found to lead, that is doubted. `read`
/// says what a link holds, and `None` of what is none.
///
/// What was exchanged since `end` was found is doubted, too.
pub fn doubted_link(
    path: &Path,
    end: &Path,
    read: impl Fn(&Path) -> Option<PathBuf>,
    doubts: impl Fn(&PassedLink) -> bool,
) -> Option<PathBuf> {
    // The usual case: a path without links has none in it.
    if path == end {
        return None;
    }
    let mut at = PathBuf::from("/");
    let mut left = parts(path);
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let Some(target) = read(&next) else {
            at = next;
            continue;
        };
        links += 1;
        let link = PassedLink { above: at, path: next, target };
        if links > MAX_LINKS || doubts(&link) {
            return Some(link.path);
        }
        at = if link.target.is_absolute() { PathBuf::from("/") } else { link.above };
        left.extend(parts(&link.target));
    }
    (at != end).then_some(at)
}

/// Why a path that the caller named is not followed. `what` says what it was named as.
pub fn planted(what: &str, path: &Path, link: &Path, end: &Path) -> Error {
    let message = format!(
        "{what} {} leads through the symbolic link {}, which an earlier command in a sandbox may have made",
        path.display(),
        link.display()
    );
    let hint = format!("Remove the link, or list {} itself if you trust it.", end.display());
    Error::new(ErrorKind::Denied, message).hint(hint)
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The link that stops the way, where every link is doubted that leads further than its directory.
    fn stopped(path: &str, end: &str, links: &[(&str, &str)]) -> Option<String> {
        let read = |at: &Path| {
            let found = links.iter().find(|(link, _)| Path::new(link) == at);
            found.map(|(_, target)| PathBuf::from(target))
        };
        let home = Some(Path::new("/data/me"));
        let doubts = |link: &PassedLink| !link.stays() && !link.is_out_of_reach(home);
        let stopped = doubted_link(Path::new(path), Path::new(end), read, doubts);
        stopped.map(|link| link.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_link_that_leads_out_of_its_directory_is_doubted() {
        let link = ("/data/me/ws/d", "../private");
        let found = stopped("/data/me/ws/d/x", "/data/me/private/x", &[link]);
        assert_eq!(found.as_deref(), Some("/data/me/ws/d"));
        for target in ["/data/me/private", "e/../../private", "/data/me/ws/../private"] {
            let link = ("/data/me/ws/d", target);
            assert!(stopped("/data/me/ws/d", "/data/me/private", &[link]).is_some(), "{target}");
        }
        // By way of another one that stays.
        let links = [("/data/me/ws/d", "e"), ("/data/me/ws/e", "/data/me/private")];
        let found = stopped("/data/me/ws/d", "/data/me/private", &links);
        assert_eq!(found.as_deref(), Some("/data/me/ws/e"));
    }

    #[test]
    fn a_link_that_stays_and_one_where_nothing_is_written_are_followed() {
        for (path, end, link) in [
            ("/srv/x/d", "/srv/x/e", ("/srv/x/d", "e")),
            ("/srv/x/d", "/srv/x/e/f", ("/srv/x/d", "/srv/x/e/f")),
            ("/data/me/d", "/mnt/d", ("/data/me/d", "/mnt/d")),
            ("/data/me/d", "/old/me/d", ("/data", "/old")),
            ("/opt/java/bin", "/srv/java/bin", ("/opt/java", "/srv/java")),
        ] {
            assert_eq!(stopped(path, end, &[link]), None, "{path}");
        }
        assert_eq!(stopped("/a/../b", "/b", &[]), None);
    }

    #[test]
    fn what_was_exchanged_and_what_goes_in_circles_is_doubted() {
        assert!(stopped("/data/me/ws/d", "/data/me/private", &[]).is_some());
        assert!(stopped("/srv/x/d", "/srv/x/e", &[("/srv/x/d", "d")]).is_some());
    }
}
