#![expect(unsafe_code, reason = "locks of an open file description are not in rustix")]
//! The one call of this room that has no safe form.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Locks `count` bytes from `first` on for this open file, without waiting. The kernel lets the
/// lock go with the last descriptor of the open file.
///
/// Fails with `EAGAIN` where another open file holds one of the bytes.
pub(super) fn lock_range(file: BorrowedFd<'_>, first: u32, count: u32) -> io::Result<()> {
    #[expect(clippy::cast_possible_truncation, reason = "both constants are below 10")]
    let (kind, origin) = (libc::F_WRLCK as libc::c_short, libc::SEEK_SET as libc::c_short);
    let lock = libc::flock {
        l_type: kind,
        l_whence: origin,
        l_start: libc::off_t::from(first),
        l_len: libc::off_t::from(count),
        // Has to be 0 for this kind of lock.
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the kernel only reads the structure, which outlives the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
