//! What a process of the host gives up before it reads hostile bytes.
//!
//! The same steps that process 1 of a sandbox takes by its plan, for processes that are in no sandbox.
//! Each holds for the calling thread and what it starts, so they are for a process that has one thread.

use crate::apply::{CallFailed, confine, identity};
use crate::sys;
use std::io;
use std::path::PathBuf;

/// Becomes this user and group, without any other group. Capabilities stay until [`capabilities`].
pub fn user(id: u32) -> io::Result<()> {
    identity::keep_over_user_change().map_err(failed)?;
    identity::become_user(id, id).map_err(failed)
}

/// Gives up all capabilities, and where that is allowed the way to gain any again by another program.
pub fn capabilities() -> io::Result<()> {
    match identity::keep_capabilities(&[]) {
        Ok(()) => Ok(()),
        // To bound others takes a capability; to have none does not.
        Err(_) => sys::capset(0, 0, 0).map_err(io::Error::from),
    }
}

/// Leaves these files and directories to read, no other, and nothing to write or to run; no signal
/// reaches another process, and no abstract socket of another is reached. Answers the ABI of Landlock
/// that says so, or 0 where the kernel has none, and nothing was given up.
pub fn files_but(readable: &[PathBuf]) -> io::Result<u32> {
    confine::landlock_reading(readable).map_err(failed)
}

/// Gives up the system calls that this filter does not let pass.
pub fn calls(filter: &[(u16, u8, u8, u32)]) -> io::Result<()> {
    confine::seccomp(filter).map_err(failed)
}

fn failed(failure: CallFailed) -> io::Error {
    let errno = failure.errno();
    io::Error::new(io::Error::from(errno).kind(), format!("{}: {errno}", failure.call()))
}
