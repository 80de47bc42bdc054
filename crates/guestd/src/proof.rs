//! Runs the battery of attacks in a child of process 1.

use crate::descriptors::close_all_but;
use crate::{prove, sys};
use cofferdam_wire::message::Prove;
use rustix::fd::OwnedFd;
use rustix::io::Result;

/// Starts the battery. Its answer, as JSON, comes through the pipe until that ends.
pub(crate) fn start(request: &Prove, open_files: Option<u64>) -> Result<(i32, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match sys::fork()? {
        0 => {
            attack(request, &writer, open_files);
            sys::exit_now(0)
        }
        pid => Ok((pid, reader)),
    }
}

fn attack(request: &Prove, answer: &OwnedFd, open_files: Option<u64>) {
    // A command has three streams and nothing else open, its own limit of that, no blocked signal, and is
    // dumpable.
    close_all_but([answer]);
    if let Some(most) = open_files {
        let _ = sys::setrlimit(sys::OPEN_FILES, most);
    }
    sys::unblock_signals();
    let _ = sys::prctl(libc::PR_SET_DUMPABLE, 1);
    let proof = prove::run(request);
    let bytes = serde_json::to_vec(&proof).unwrap_or_default();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(answer, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
