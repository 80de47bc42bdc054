//! A command on pipes of ours.

use cofferdam_core::{
    Command, Ending, Error, ErrorKind, Given, Guest, Killer, Process, ProcessEvent, ProcessInput,
    Result, Signal,
};
use std::os::fd::{AsFd, OwnedFd};

/// Three times as fast as the default for a program that writes much.
const PIPE_BYTES: usize = 1 << 20;
/// What an ordinary user may have when the quota of pipe memory is nearly used up.
const SMALL_PIPE_BYTES: usize = 256 << 10;

/// A command that was started on pipes.
#[derive(Debug)]
pub struct PipedProcess {
    /// The end from which its standard output is read. Dropping it breaks the pipe.
    pub stdout: Option<OwnedFd>,
    /// The end from which its standard error is read. Dropping it breaks the pipe.
    pub stderr: Option<OwnedFd>,
    /// The end into which its standard input is written, where it was said that it reads. Dropping
    /// it ends the input.
    pub stdin: Option<OwnedFd>,
    process: Process,
    ended: Option<Ending>,
}

impl PipedProcess {
    /// Kills it with all its descendants.
    pub fn killer(&self) -> &Killer {
        &self.process.killer
    }

    /// Sends a signal to its process group. One that there is not is an error.
    pub async fn signal(&self, signal: i32) -> Result<()> {
        Signal::numbered(signal)?;
        self.process.input.send(ProcessInput::Signal(signal)).await.map_err(|_| gone())
    }

    /// Waits until it has ended and nothing of it is left. Its pipes should be read meanwhile or
    /// before; one that is full stops it. Asked again, it says the same.
    pub async fn wait(&mut self) -> Result<Ending> {
        loop {
            if let Some(ending) = &self.ended {
                return Ok(ending.clone());
            }
            match self.process.events.recv().await {
                Some(ProcessEvent::Ended { ending, .. }) => self.ended = Some(ending),
                Some(ProcessEvent::Output { .. }) => {}
                None => return Err(gone()),
            }
        }
    }
}

pub(crate) async fn start(
    guest: &dyn Guest,
    command: &Command,
    reads: bool,
) -> Result<PipedProcess> {
    let (stdout, their_stdout) = large_pipe()?;
    let (stderr, their_stderr) = pipe()?;
    let (their_stdin, stdin) = if reads { Some(pipe()?).unzip() } else { (None, None) };
    let given = Given { stdin: their_stdin, stdout: their_stdout, stderr: their_stderr };
    let process = guest.spawn_on(command, given).await?;
    Ok(PipedProcess { stdout: Some(stdout), stderr: Some(stderr), stdin, process, ended: None })
}

fn large_pipe() -> Result<(OwnedFd, OwnedFd)> {
    use rustix::pipe::fcntl_setpipe_size;
    let (read, write) = pipe()?;
    if fcntl_setpipe_size(write.as_fd(), PIPE_BYTES).is_err() {
        // A small pipe works too.
        let _ = fcntl_setpipe_size(write.as_fd(), SMALL_PIPE_BYTES);
    }
    Ok((read, write))
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|errno| {
        Error::new(ErrorKind::Io, "make a pipe").source(std::io::Error::from(errno))
    })
}

fn gone() -> Error {
    Error::new(ErrorKind::Unavailable, "the sandbox went away before its command ended")
}
