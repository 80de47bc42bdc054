//! Which processes process 1 has to answer for.

use crate::sys;
use cofferdam_wire::message::{Ended, How};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};

/// The list of this process's children, as the kernel keeps it.
pub(crate) struct Children {
    list: Option<OwnedFd>,
}

impl Children {
    /// Opens the list. Must be called where /proc is the sandbox's own.
    pub(crate) fn open() -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Self {
            list: rustix::fs::openat(CWD, "/proc/thread-self/children", flags, Mode::empty()).ok(),
        }
    }

    /// The children that exist now, zombies included.
    pub(crate) fn now(&self) -> Vec<i32> {
        let Some(list) = &self.list else { return by_parent(own()) };
        let mut text = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let offset = u64::try_from(text.len()).unwrap_or(u64::MAX);
            match rustix::io::pread(list, &mut piece, offset) {
                Ok(0) => return numbers(&text),
                Ok(count) => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return by_parent(own()),
            }
        }
    }
}

fn numbers(text: &[u8]) -> Vec<i32> {
    text.split(|byte| !byte.is_ascii_digit())
        .filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .collect()
}

/// This process, which is the first only where it has a process namespace.
fn own() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// How many descendants are looked for: somebody inside may make them without end.
const MAX_DESCENDANTS: usize = 1 << 16;

/// All that a process started, and what that started, as far as it stands below it now.
pub(crate) fn descendants(of: i32) -> Vec<i32> {
    let mut all = children(of);
    let mut next = 0;
    while let Some(pid) = all.get(next).copied().filter(|_| all.len() < MAX_DESCENDANTS) {
        all.extend(children(pid));
        next += 1;
    }
    all
}

/// The children of all threads of a process.
fn children(of: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let mut all = Vec::new();
    for list in threads.flatten().map(|thread| thread.path().join("children")) {
        match std::fs::read(&list) {
            Ok(text) => all.extend(numbers(&text)),
            Err(_) if list.exists() => {}
            // A thread that has ended, or a kernel that keeps no list.
            Err(_) => return by_parent(of),
        }
    }
    all
}

/// The ending of a process that was waited for, without what is only known later.
pub(crate) fn ended(child: &sys::Waited) -> Ended {
    Ended {
        how: if libc::WIFSIGNALED(child.status) {
            How::Signaled(libc::WTERMSIG(child.status))
        } else {
            How::Exited(libc::WEXITSTATUS(child.status))
        },
        timed_out: false,
        killed_descendants: 0,
        cpu_us: child.cpu_us,
        peak_rss_bytes: child.peak_rss_bytes,
        left_below: None,
    }
}

/// The children of a process from /proc alone, for kernels that keep no list.
fn by_parent(parent: i32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    field(pid, 1)?.parse().ok()
}

/// Whether a process has ended, and only waits to be waited for.
pub(crate) fn has_ended(pid: i32) -> bool {
    field(pid, 0).is_none_or(|state| matches!(state.as_str(), "Z" | "X"))
}

/// What /proc says of a process behind its name.
fn field(pid: i32, at: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(at).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_also_where_they_left_their_group() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "setsid sh -c 'echo up; sleep 60 & wait' & wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(shell.id()).unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0; 2]).unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let mut all = Vec::new();
        while all.len() < 2 {
            assert!(std::time::Instant::now() < until, "{all:?}");
            all = descendants(pid);
        }
        assert!(all.iter().all(|pid| by_parent(parent_of(*pid).unwrap()).contains(pid)));
        for pid in all.into_iter().chain([pid]) {
            sys::kill(pid, libc::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
    }

    #[test]
    fn numbers_are_read_whatever_separates_them() {
        assert_eq!(numbers(b"12 345 6 "), [12, 345, 6]);
        assert_eq!(numbers(b""), [] as [i32; 0]);
    }
}
