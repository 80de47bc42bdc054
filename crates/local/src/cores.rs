//! Processes of ours that hold values of secrets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Has the kernel write no memory of this process down when it crashes, nor hand it to a program that would. It can
/// still be read while it lives: who makes sandboxes may not be closed to others of its user, or could not
/// map ids.
pub fn write_no_core() {
    let Rlimit { current, maximum } = getrlimit(Resource::Core);
    // Too little for any core. Where a program takes cores over a pipe 0 is no limit, and 1 is the kernel's sign that
    // there is to be none (`fs/coredump.c`).
    let least = current.unwrap_or(u64::MAX).min(maximum.unwrap_or(u64::MAX)).min(1);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(least), maximum });
}
