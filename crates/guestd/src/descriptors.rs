//! Descriptors that a copy of a process must not keep.

use crate::sys;
use rustix::fd::{AsFd, AsRawFd};

/// Closes every descriptor above the three standard streams but these.
pub(crate) fn close_all_but(kept: impl IntoIterator<Item = impl AsFd>) {
    let number = |fd: &dyn AsFd| u32::try_from(fd.as_fd().as_raw_fd()).ok();
    let mut kept: Vec<u32> = kept.into_iter().filter_map(|fd| number(&fd)).collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            let _ = sys::close_range(first, fd - 1);
        }
        first = first.max(fd + 1);
    }
    let _ = sys::close_range(first, u32::MAX);
}
