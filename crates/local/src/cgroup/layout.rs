//! Where control groups are mounted, and which is our own.

use crate::kernel_text::kernel_text;
use cofferdam_core::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A hierarchy as this process sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The top directory that is visible.
    pub top: PathBuf,
    /// The directory of the group that this process is in; `top` or below it.
    pub own: PathBuf,
}

/// The hierarchies that matter here; `None` where one is not mounted, or our group is not visible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Version 2.
    pub unified: Option<Place>,
    /// The version 1 hierarchy with this controller.
    pub memory: Option<Place>,
    /// The version 1 hierarchy with this controller.
    pub pids: Option<Place>,
    /// The version 1 hierarchy with this controller.
    pub cpu: Option<Place>,
    /// The version 1 hierarchy with this controller.
    pub freezer: Option<Place>,
}

impl Layout {
    /// The layout of this process.
    pub fn read() -> Result<Self> {
        let read = |path: &str| {
            kernel_text(path)
                .map_err(|e| Error::new(ErrorKind::Io, format!("read {path}")).source(e))
        };
        Ok(Self::parse(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?))
    }

    /// The layout that the texts of `/proc/self/cgroup` and `/proc/self/mountinfo` describe.
    pub fn parse(cgroup: &str, mountinfo: &str) -> Self {
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
        let v1 = |controller: &str| {
            let own = own_path(cgroup, |names| names.split(',').any(|name| name == controller))?;
            place(&own, mounts.iter().filter(|mount| mount.has(controller)))
        };
        let unified = own_path(cgroup, str::is_empty)
            .and_then(|own| place(&own, mounts.iter().filter(|mount| mount.unified)));
        Self {
            unified,
            memory: v1("memory"),
            pids: v1("pids"),
            cpu: v1("cpu"),
            freezer: v1("freezer"),
        }
    }
}

/// A mounted hierarchy.
struct Mount<'a> {
    root: PathBuf,
    at: PathBuf,
    unified: bool,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// Reads `id parent major:minor root at options [optional…] - type source options`.
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, at) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        Some(Self { root: unescape(root), at: unescape(at), unified, options: after.nth(1)? })
    }

    fn has(&self, controller: &str) -> bool {
        !self.unified && self.options.split(',').any(|option| option == controller)
    }
}

/// Our own path in the hierarchy whose controllers `is_it` accepts.
fn own_path(cgroup: &str, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    cgroup.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        // A deleted group can have no children, and one above the namespace is not visible.
        let usable = is_it(names) && !path.ends_with(" (deleted)") && !path.starts_with("/..");
        usable.then(|| PathBuf::from(path))
    })
}

/// The last mount wins, because it covers those before it.
fn place<'a>(own: &Path, mounts: impl Iterator<Item = &'a Mount<'a>>) -> Option<Place> {
    mounts
        .filter_map(|mount| {
            let below = own.strip_prefix(&mount.root).ok()?;
            let own =
                if below.as_os_str().is_empty() { mount.at.clone() } else { mount.at.join(below) };
            Some(Place { top: mount.at.clone(), own })
        })
        .last()
}

/// Undoes the kernel's `\040` for a blank and its like.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok());
        if let (Some(byte), Some(tail)) = (code, after.get(3..)) {
            bytes.push(byte);
            rest = tail;
        } else {
            bytes.push(b'\\');
            rest = after;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_of(top: &str, own: &str) -> Option<Place> {
        Some(Place { top: top.into(), own: own.into() })
    }

    #[test]
    fn a_systemd_user_session_is_all_version_2() {
        let scope = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope";
        let layout = Layout::parse(
            &format!("0::{scope}\n"),
            "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
             31 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
        );
        let own = format!("/sys/fs/cgroup{scope}");
        assert_eq!(
            layout,
            Layout { unified: place_of("/sys/fs/cgroup", &own), ..Layout::default() }
        );
    }

    #[test]
    fn a_hybrid_host_has_both() {
        let layout = Layout::parse(
            "8:pids:/\n4:memory:/agent/1\n2:cpu,cpuacct:/\n6:freezer:/\n1:name=systemd:/\n0::/\n",
            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             38 31 0:35 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n\
             39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        assert_eq!(layout.unified, place_of("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"));
        assert_eq!(
            layout.memory,
            place_of("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/agent/1")
        );
        assert_eq!(
            layout.cpu,
            place_of("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct")
        );
        assert!(layout.pids.is_some() && layout.freezer.is_some());
    }

    #[test]
    fn a_container_without_a_namespace_sees_its_own_group_as_the_top() {
        let layout = Layout::parse(
            "4:memory:/docker/abc\n0::/docker/abc\n",
            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
             41 31 0:38 /docker/abc /sys/fs/cgroup/a\\040b rw - cgroup2 cgroup rw\n",
        );
        assert_eq!(layout.memory, place_of("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory"));
        assert_eq!(layout.unified, place_of("/sys/fs/cgroup/a b", "/sys/fs/cgroup/a b"));
    }

    #[test]
    fn what_is_not_visible_is_not_there() {
        assert_eq!(Layout::parse("", ""), Layout::default());
        let mounts = "41 31 0:38 / /c rw - cgroup2 cgroup2 rw\n";
        assert_eq!(Layout::parse("0::/../x\n", mounts).unified, None);
        assert_eq!(Layout::parse("0::/x (deleted)\n", mounts).unified, None);
        assert_eq!(Layout::parse("no colons\n1:x\n", "short line\n - \n").unified, None);
        let elsewhere = "41 31 0:38 /other /c rw - cgroup2 cgroup2 rw\n";
        assert_eq!(Layout::parse("0::/x\n", elsewhere).unified, None);
    }
}
