//! How a program of the host is started that ends with us.
#![expect(unsafe_code, reason = "a child says what it wants before it becomes another program")]

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts a program that is told to end when this thread does, and that keeps one file open.
///
/// The file is kept open by this child alone: no other that is started meanwhile has it.
pub(super) fn spawn(command: &mut Command, kept: Option<&File>) -> io::Result<Child> {
    let number = kept.map(AsRawFd::as_raw_fd);
    let parent = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        if let Some(number) = number {
            // SAFETY: `kept` is borrowed until the child is another program.
            let kept = unsafe { BorrowedFd::borrow_raw(number) };
            fcntl_setfd(kept, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: all it does is to call the kernel: it takes no lock and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}
