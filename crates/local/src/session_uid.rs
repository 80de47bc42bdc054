//! An own host user per sandbox, where Cofferdam is started as root.
//!
//! Commands never run as user 0 of the host, and two sandboxes never as the same user: one would be
//! able to signal the other's processes and share its kernel quotas. An id is taken by a lock on one
//! byte of a file, at the offset of its number, so that the kernel gives it back when the owner dies.

mod sys;

use crate::state::{StateDirectory, io};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The file whose bytes stand for ids.
const LOCKS: &str = "session-uids";

/// Host ids that sandboxes may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UidRange {
    first: u32,
    count: u32,
}

impl UidRange {
    /// Single ids. Above what `useradd` hands out as subordinate ids (to 600,100,000), what systemd
    /// gives containers (to 1,879,048,191) and what directory services map by default (to
    /// 2,000,200,000); below systemd's foreign ids (from 2,147,352,576) and the sign bit.
    pub const SINGLE: Self = Self { first: 2_100_000_000, count: 65_536 };
    /// Blocks for sandboxes with a root of their own: 256 of them, after [`UidRange::SINGLE`].
    pub const BLOCKS: Self = Self { first: 2_100_100_000, count: 256 * SessionUid::BLOCK };

    /// For gates, which are in no sandbox: between the two. One has the id that the number of its process
    /// leads to, so that no two that matter are the same user.
    pub(crate) const GATES: Self = Self { first: 2_100_066_000, count: 32_768 };

    /// A range of one's own choice: above the ids of people and system services, below the sign bit,
    /// which breaks programs that keep ids in an `int`.
    pub fn new(first: u32, count: u32) -> Result<Self> {
        let end = u64::from(first) + u64::from(count);
        if count > 0 && first >= 65_536 && end <= u64::from(i32::MAX.unsigned_abs()) {
            return Ok(Self { first, count });
        }
        Err(Error::new(
            ErrorKind::Config,
            format!("{count} ids from {first} on cannot be session users"),
        )
        .hint("Use ids from 65536 to 2147483646."))
    }

    /// The id of the range that this number leads to.
    pub(crate) fn at(self, number: u32) -> u32 {
        self.first + number.checked_rem(self.count).unwrap_or(0)
    }

    /// The first id of the range.
    pub fn first(self) -> u32 {
        self.first
    }

    /// The first line of `/etc/subuid` or `/etc/subgid` that gives ids of this range to somebody, by
    /// that file's text.
    pub fn overlap(self, subordinate: &str) -> Option<&str> {
        let end = u64::from(self.first) + u64::from(self.count);
        subordinate.lines().find(|line| {
            let mut fields = line.split(':').skip(1).map(|field| field.trim().parse::<u64>());
            let (Some(Ok(first)), Some(Ok(count))) = (fields.next(), fields.next()) else {
                return false;
            };
            first < end && first.saturating_add(count) > u64::from(self.first)
        })
    }
}

/// A host user id, and a group id of the same number, that no other sandbox has while this lives.
#[derive(Debug)]
pub struct SessionUid {
    first: u32,
    count: u32,
    _lock: OwnedFd,
}

impl SessionUid {
    /// How many ids a block has: what a distribution's packages expect of a machine.
    pub const BLOCK: u32 = 65_536;

    /// Takes one free id of the range.
    pub fn acquire(state: &StateDirectory, range: UidRange) -> Result<Self> {
        take(state, range, 1)
    }

    /// Takes a free block of [`SessionUid::BLOCK`] ids, for a sandbox with a root of its own.
    pub fn acquire_block(state: &StateDirectory, range: UidRange) -> Result<Self> {
        take(state, range, Self::BLOCK)
    }

    /// The id, or the first of the block.
    pub fn uid(&self) -> u32 {
        self.first
    }

    /// How many ids are this sandbox's, from [`SessionUid::uid`] on.
    pub fn count(&self) -> u32 {
        self.count
    }
}

fn take(state: &StateDirectory, range: UidRange, size: u32) -> Result<SessionUid> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(state.directory(), LOCKS, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| io("open the locks of session users in", state.path(), e))?;
    let slots = range.count / size;
    let start = first_guess();
    for turn in 0..slots {
        // `turn` is below `slots`, so this is a remainder and never above the range.
        let slot = start.wrapping_add(turn) % slots;
        let first = range.first + slot * size;
        match sys::lock_range(file.as_fd(), first, size) {
            Ok(()) => return Ok(SessionUid { first, count: size, _lock: file }),
            Err(e) if is_taken(&e) => {}
            Err(e) => {
                let what = format!("lock a session user in {}", state.path().display());
                return Err(Error::new(ErrorKind::Io, what).source(e));
            }
        }
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!("all session users from {} on are taken", range.first),
    )
    .hint("End some sandboxes, or configure a larger range of session users."))
}

fn is_taken(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

/// Where to look first: near nobody else, so that the first try mostly succeeds.
fn first_guess() -> u32 {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let process = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    // An odd factor spreads neighbouring process ids over the range.
    process.wrapping_mul(2_654_435_761).wrapping_add(TURN.fetch_add(1, Ordering::Relaxed)) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;

    const SMALL: UidRange = UidRange { first: 2_100_000_000, count: 3 };

    #[test]
    fn an_id_is_taken_once_and_given_back() {
        let directory = TestDirectory::new("uid-once");
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        let mut held: Vec<_> =
            (0..3).map(|_| SessionUid::acquire(&state, SMALL).unwrap()).collect();
        let mut ids: Vec<_> = held.iter().map(SessionUid::uid).collect();
        ids.sort_unstable();
        assert_eq!(ids, [2_100_000_000, 2_100_000_001, 2_100_000_002]);
        let full = SessionUid::acquire(&state, SMALL).unwrap_err();
        assert_eq!(full.kind, ErrorKind::Unavailable);
        let freed = held.pop().unwrap().uid();
        assert_eq!(SessionUid::acquire(&state, SMALL).unwrap().uid(), freed);
    }

    #[test]
    fn blocks_do_not_touch_each_other_or_single_ids() {
        let directory = TestDirectory::new("uid-block");
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        let one = SessionUid::acquire_block(&state, UidRange::BLOCKS).unwrap();
        let two = SessionUid::acquire_block(&state, UidRange::BLOCKS).unwrap();
        assert!(one.uid().abs_diff(two.uid()) >= SessionUid::BLOCK);
        assert_eq!(one.count(), 65_536);
        assert!(one.uid() >= UidRange::SINGLE.first + UidRange::SINGLE.count);
        for range in [UidRange::SINGLE, UidRange::BLOCKS] {
            assert_eq!(UidRange::new(range.first, range.count).unwrap(), range);
        }
        assert!(UidRange::new(1000, 1).is_err());
        assert!(UidRange::new(u32::MAX, 2).is_err());
    }

    #[test]
    fn a_subordinate_range_that_overlaps_is_found() {
        let text = "# c\na:100000:65536\nb:2100000000:1\n";
        assert_eq!(UidRange::SINGLE.overlap(text), Some("b:2100000000:1"));
        assert_eq!(UidRange::SINGLE.overlap("a:100000:65536\n"), None);
        assert_eq!(UidRange::SINGLE.overlap("a:x:65536\nb\n"), None);
        assert_eq!(UidRange::SINGLE.overlap("a:2099999999:1\n"), None);
    }

    #[test]
    fn a_dead_owner_gives_its_id_back() {
        let directory = TestDirectory::new("uid-dead");
        let home = directory.path().join("s");
        let state = StateDirectory::open(&home).unwrap();
        let range = UidRange { first: 2_100_000_000, count: 1 };
        let held = SessionUid::acquire(&state, range).unwrap();
        // A copy of the descriptor keeps the id, as a forked child does until it closes it.
        let copy = rustix::io::dup(&held._lock).unwrap();
        drop(held);
        assert!(SessionUid::acquire(&state, range).is_err());
        drop(copy);
        SessionUid::acquire(&state, range).unwrap();
    }
}
