//! Which processes process 1 has to answer for.

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
        let Some(list) = &self.list else { return by_parent() };
        let mut text = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let offset = u64::try_from(text.len()).unwrap_or(u64::MAX);
            match rustix::io::pread(list, &mut piece, offset) {
                Ok(0) => return numbers(&text),
                Ok(count) => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return by_parent(),
            }
        }
    }
}

fn numbers(text: &[u8]) -> Vec<i32> {
    text.split(|byte| !byte.is_ascii_digit())
        .filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .collect()
}

/// The same from /proc alone, for kernels that keep no list.
fn by_parent() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| parent_of(*pid) == Some(1))
        .collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_whatever_separates_them() {
        assert_eq!(numbers(b"12 345 6 "), [12, 345, 6]);
        assert_eq!(numbers(b""), [] as [i32; 0]);
    }
}
