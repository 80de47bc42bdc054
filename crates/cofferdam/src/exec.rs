//! A command in a sandbox, step by step.

use crate::{PipedProcess, Sandbox};
use cofferdam_core::{
    Collector, Command, Error, ErrorKind, KillOnDrop, Output, Process, ProcessEvent, ProcessId,
    ProcessInput, Result, Stdin, Terminal,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc;

/// How much of each stream [`Exec::run`] keeps unless somebody says otherwise: 16 MiB.
const KEPT_BYTES: usize = 16 << 20;

/// How much input goes into one message.
const PIECE_BYTES: usize = 128 << 10;

/// Describes a command and starts it. Awaiting it is [`Exec::run`].
#[derive(Debug)]
#[must_use = "a command does nothing until it is run or spawned"]
pub struct Exec<'a> {
    sandbox: &'a Sandbox,
    id: Option<ProcessId>,
    argv: Vec<OsString>,
    cwd: Option<OsString>,
    env: BTreeMap<OsString, OsString>,
    prepared: Vec<u8>,
    input: Input,
    terminal: Option<Terminal>,
    timeout: Option<Duration>,
    max_output: usize,
}

/// What becomes of a command's input after what is prepared of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Ends,
    Open,
}

impl<'a> Exec<'a> {
    pub(crate) fn new(sandbox: &'a Sandbox, argv: Vec<OsString>) -> Self {
        Self {
            sandbox,
            id: None,
            argv,
            cwd: None,
            env: BTreeMap::new(),
            prepared: Vec::new(),
            input: Input::Ends,
            terminal: None,
            timeout: None,
            max_output: KEPT_BYTES,
        }
    }

    /// Its name, by which [`Guest::processes`](crate::Guest::processes) shows it. One that is in use
    /// by a running command is a conflict.
    pub fn id(mut self, id: ProcessId) -> Self {
        self.id = Some(id);
        self
    }

    /// Where it starts; a relative path is below the workspace. Without this: in the workspace.
    pub fn cwd(mut self, directory: impl Into<OsString>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// A variable over those of the sandbox.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// What it reads, before all else. Its input ends there, unless [`Exec::open_stdin`] is said too.
    /// Without this it reads nothing.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.prepared = bytes.into();
        self
    }

    /// It reads what is sent to it after [`Exec::spawn`] or [`Exec::piped`], and what was given to
    /// [`Exec::stdin`] before that. With [`Exec::run`] nobody is there to send more, and its input ends.
    pub fn open_stdin(mut self) -> Self {
        self.input = Input::Open;
        self
    }

    /// A pseudo-terminal of this size for all its streams. All output is standard output then.
    pub fn terminal(mut self, size: Terminal) -> Self {
        self.terminal = Some(size);
        self
    }

    /// It is killed with all its descendants after this long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many bytes of each stream [`Exec::run`] keeps; the rest is counted. Without this: 16 MiB.
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Runs it to its end. However it ends, that is no error: see [`Output::ending`].
    ///
    /// Giving up the call kills the command.
    pub async fn run(mut self) -> Result<Output> {
        let kept = self.max_output;
        if self.prepared.is_empty() && self.input == Input::Ends {
            let id = self.take_id()?;
            let guest = self.sandbox.guest()?;
            return guest.run(&self.command(id, Stdin::Null), kept).await;
        }
        let first = std::mem::take(&mut self.prepared);
        let process = self.start(Stdin::Piped).await?;
        let _running = KillOnDrop(process.killer.clone());
        let Process { mut events, input, .. } = process;
        let mut keeping = std::pin::pin!(keep(&mut events, kept));
        tokio::select! {
            output = &mut keeping => return output,
            () = feed(input, &first) => {}
        }
        keeping.await
    }

    /// Starts it, and gives its events as they come and a sender for its input. What was given to
    /// [`Exec::stdin`] is read first. Then its input ends, or, with [`Exec::open_stdin`], what is sent
    /// follows, and its input ends with [`ProcessInput::Close`] or with the last sender.
    /// [`Exec::max_output`] means nothing here.
    ///
    /// Dropping the process does not end the command.
    pub async fn spawn(mut self) -> Result<Process> {
        let first = std::mem::take(&mut self.prepared);
        if first.is_empty() {
            let stdin = match self.input {
                Input::Ends => Stdin::Null,
                Input::Open => Stdin::Piped,
            };
            return self.start(stdin).await;
        }
        let process = self.start(Stdin::Piped).await?;
        // ORDER: before the caller has the sender. In one piece, for the channel is empty and takes it, so
        // that this waits for nobody. Where it fails the command has ended, which its events say.
        let mut sent = process.input.send(ProcessInput::Bytes(first)).await;
        if self.input == Input::Ends && sent.is_ok() {
            sent = process.input.send(ProcessInput::Close).await;
        }
        drop(sent);
        Ok(process)
    }

    /// Starts it on pipes whose other ends come back: the fastest way for its output, which passes
    /// through no other process. Standard output is a pipe of 1 MiB where the system allows it.
    ///
    /// Fails with [`ErrorKind::Unsupported`] where the backend passes no descriptors. Dropping the
    /// process does not end the command; writing to a pipe that nobody reads any more does, as
    /// anywhere.
    pub async fn piped(mut self) -> Result<PipedProcess> {
        if !self.prepared.is_empty() {
            let message = "a command on pipes has no prepared input";
            return Err(Error::new(ErrorKind::Usage, message)
                .hint("Say `open_stdin`, and write to its pipe."));
        }
        let reads = self.input == Input::Open;
        let id = self.take_id()?;
        let guest = self.sandbox.guest()?;
        crate::piped::start(guest.as_ref(), &self.command(id, Stdin::Null), reads).await
    }

    async fn start(&mut self, stdin: Stdin) -> Result<Process> {
        let id = self.take_id()?;
        self.sandbox.guest()?.spawn(&self.command(id, stdin)).await
    }

    fn take_id(&mut self) -> Result<ProcessId> {
        let own = || ProcessId::new(format!("c{}", self.sandbox.next_command()));
        self.id.take().map_or_else(own, Ok)
    }

    fn command(&mut self, id: ProcessId, stdin: Stdin) -> Command {
        let workspace = Path::new(self.sandbox.workspace());
        Command {
            id,
            argv: std::mem::take(&mut self.argv),
            cwd: self.cwd.take().map(|cwd| workspace.join(cwd).into_os_string()),
            env: std::mem::take(&mut self.env),
            stdin,
            terminal: self.terminal,
            secrets: Vec::new(),
            timeout: self.timeout,
        }
    }
}

impl<'a> IntoFuture for Exec<'a> {
    type Output = Result<Output>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Output>> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

async fn keep(events: &mut mpsc::Receiver<ProcessEvent>, kept: usize) -> Result<Output> {
    let mut collector = Collector::new(kept);
    while let Some(event) = events.recv().await {
        if let Some(output) = collector.push(event) {
            return Ok(output);
        }
    }
    Err(collector.lost().into())
}

/// Sends all of it. The sender's end ends the input.
async fn feed(sender: mpsc::Sender<ProcessInput>, input: &[u8]) {
    for piece in input.chunks(PIECE_BYTES) {
        if sender.send(ProcessInput::Bytes(piece.to_vec())).await.is_err() {
            // It has ended, or reads no more.
            return;
        }
    }
}
