//! How a program of the host is started with one more open file.
#![expect(unsafe_code, reason = "a child says what it keeps before it becomes another program")]

use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts a program that keeps a file open, under the number that it has here.
///
/// It is kept open by this child alone: no other that is started meanwhile has it.
pub(super) fn spawn(command: &mut Command, kept: &File) -> io::Result<Child> {
    let number = kept.as_raw_fd();
    let prepare = move || {
        // SAFETY: `kept` is borrowed until the child is another program.
        let kept = unsafe { BorrowedFd::borrow_raw(number) };
        Ok(fcntl_setfd(kept, FdFlags::empty())?)
    };
    // SAFETY: all it does is to call the kernel: it takes no lock and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}
