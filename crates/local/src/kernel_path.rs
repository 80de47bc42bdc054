//! The path by which the kernel names what a descriptor of this process stands for.

use rustix::fd::{AsFd, AsRawFd};

/// A path that leads to this very file, whatever has its name by now. Good while the descriptor is.
pub(crate) fn through(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}
