//! A guest that plays.

use super::Fault;
use super::files::{Access, FakeFiles};
use super::inside::Inside;
use super::play::{Player, Received};
use crate::files::{Body, FileService, FileWatch, Files, Reply, Request, Watch};
use crate::{
    Cause, Command, Ending, Error, ErrorKind, Given, Guest, Killer, Output, PortStream, Process,
    ProcessEvent, ProcessId, ProcessInput, Result, Stdin, Terminal, run_by_spawning,
};
use async_trait::async_trait;
use cofferdam_wire::message::{Proof, Prove};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

/// The hatch to one sandbox of the fake backend.
#[derive(Debug)]
pub(super) struct FakeGuest {
    inside: Arc<Inside>,
}

/// A child that was left behind holds the output open this long.
const CHILD_LIVES: Duration = Duration::from_secs(3600);

/// How many bytes a connection to a port holds.
const ECHO_BYTES: usize = 64 << 10;

impl FakeGuest {
    pub(super) fn new(inside: Arc<Inside>) -> Self {
        Self { inside }
    }
}

/// Files as long as the sandbox is there.
struct InsideFiles {
    inside: Arc<Inside>,
    files: Arc<FakeFiles>,
}

#[async_trait]
impl FileService for InsideFiles {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        self.inside.still_there()?;
        self.files.call(request, body).await
    }

    async fn watch(&self, order: &Watch) -> Result<FileWatch> {
        self.inside.still_there()?;
        let mut gone = self.inside.gone.subscribe();
        self.files.watch_until(order, async move {
            // Nobody who could say it is left where this fails.
            let _ = gone.wait_for(|gone| *gone).await;
        })
    }

    async fn open(&self) -> Result<()> {
        self.inside.still_there()?;
        self.files.open().await
    }
}

#[async_trait]
impl Guest for FakeGuest {
    async fn spawn(&self, command: &Command) -> Result<Process> {
        self.inside.still_there()?;
        command.check()?;
        command.refuse_secrets()?;
        let fresh = self.inside.state().running.insert(command.id.clone());
        if !fresh && !self.inside.has(Fault::RunsTwice) {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("process id {} is in use", command.id),
            ));
        }
        let (send, events) = mpsc::channel(4);
        let (input, inputs) = mpsc::channel(8);
        let killer = Killer::default();
        let inside = Arc::clone(&self.inside);
        tokio::spawn(run(inside, command.clone(), send, inputs, killer.clone()));
        Ok(Process { id: command.id.clone(), events, input, killer })
    }

    async fn spawn_on(&self, _command: &Command, _given: Given) -> Result<Process> {
        Err(Error::new(ErrorKind::Unsupported, "nothing runs here that could use a descriptor"))
    }

    async fn run(&self, command: &Command, kept: usize) -> Result<Output> {
        run_by_spawning(self, command, kept).await
    }

    async fn files(&self) -> Result<Files> {
        self.inside.still_there()?;
        let files = match self.inside.has(Fault::FilesApart) {
            true => Arc::new(FakeFiles::new(Access::ReadWrite, BTreeSet::new())),
            false => Arc::clone(&self.inside.files),
        };
        let inside = Arc::clone(&self.inside);
        Ok(Files::new(Arc::new(InsideFiles { inside, files })))
    }

    async fn connect(&self, port: u16) -> Result<PortStream> {
        self.inside.still_there()?;
        if self.inside.has(Fault::PortsOfHost)
            && let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await
        {
            return Ok(PortStream::over(stream));
        }
        let listens = {
            let state = self.inside.state();
            state.ports.get(&port).is_some_and(|of| state.running.contains(of))
        };
        if !listens && !self.inside.has(Fault::PortsOpenAnyway) {
            let what = format!("nobody listens on port {port} of the sandbox");
            return Err(Error::new(ErrorKind::Unavailable, what));
        }
        let (ours, theirs) = duplex(ECHO_BYTES);
        tokio::spawn(echo(theirs, self.inside.has(Fault::PortsDropBytes)));
        Ok(PortStream::over(ours))
    }

    async fn processes(&self) -> Result<Vec<ProcessId>> {
        self.inside.still_there()?;
        Ok(self.inside.state().running.iter().cloned().collect())
    }

    async fn prove(&self, _prove: &Prove) -> Result<Proof> {
        Err(Error::new(ErrorKind::Unsupported, "nothing isolates a fake sandbox"))
    }
}

/// A program that sends back what it gets.
async fn echo(mut stream: DuplexStream, drops: bool) {
    let mut buffer = vec![0; ECHO_BYTES];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut bytes = buffer.get(..count).unwrap_or_default().to_vec();
        bytes.retain(|byte| !drops || byte.is_ascii());
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn run(
    inside: Arc<Inside>,
    command: Command,
    events: mpsc::Sender<ProcessEvent>,
    inputs: mpsc::Receiver<ProcessInput>,
    killer: Killer,
) {
    let (stdin, received) = mpsc::unbounded_channel();
    let (size, sizes) = watch::channel(command.terminal);
    let id = command.id.clone();
    let timeout = command.timeout.filter(|_| !inside.has(Fault::TimeoutIgnored));
    let keep_open =
        (command.stdin == Stdin::Piped || inside.has(Fault::StdinOpen)).then_some(stdin);
    let mut gone = inside.gone.subscribe();
    let mut player = Player::new(Arc::clone(&inside), command, events.clone(), received, sizes);
    let ending = tokio::select! {
        biased;
        // Nobody knows how it would have ended.
        _ = gone.wait_for(|gone| *gone) => None,
        () = killer.killed() => Some(Ending::Signaled(9)),
        () = sleep(timeout) => Some(Ending::Killed(Cause::Time)),
        ending = player.play() => Some(ending),
        signal = route(inputs, keep_open, size) => Some(Ending::Signaled(signal)),
    };
    drop(player);
    let has_child = inside.state().children.iter().any(|(_, of)| *of == id);
    if has_child && ending.is_some() && inside.has(Fault::WaitsForChildren) {
        tokio::time::sleep(CHILD_LIVES).await;
    }
    if !inside.has(Fault::LeaksChildren) {
        inside.state().children.retain(|(_, of)| *of != id);
    }
    inside.state().running.remove(&id);
    let Some(ending) = ending.map(|ending| disguise(&inside, ending)) else { return };
    let ended = ProcessEvent::Ended { ending, cpu_us: Some(1), peak_memory_bytes: Some(4096) };
    // Nobody may listen any more.
    events.send(ended).await.ok();
}

fn disguise(inside: &Inside, ending: Ending) -> Ending {
    match ending {
        Ending::Exited(_) if inside.has(Fault::WrongExitCode) => Ending::Exited(0),
        Ending::Signaled(signal) if inside.has(Fault::SignalHidden) => Ending::Exited(128 + signal),
        Ending::NotStarted { code, .. } if inside.has(Fault::NotStartedHidden) => {
            Ending::Exited(code)
        }
        Ending::Killed(Cause::Memory | Cause::MemoryWithin { .. })
            if inside.has(Fault::MemoryCauseHidden) =>
        {
            Ending::Signaled(9)
        }
        Ending::Exited(_)
        | Ending::Signaled(_)
        | Ending::Killed(_)
        | Ending::NotStarted { .. }
        | Ending::SetupFailed { .. }
        | Ending::Canceled
        | Ending::Lost => ending,
    }
}

async fn sleep(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// Takes what the caller does until it is a signal.
async fn route(
    mut inputs: mpsc::Receiver<ProcessInput>,
    mut stdin: Option<mpsc::UnboundedSender<Received>>,
    size: watch::Sender<Option<Terminal>>,
) -> i32 {
    loop {
        match inputs.recv().await {
            Some(ProcessInput::Bytes(bytes)) => {
                if let Some(stdin) = &stdin {
                    stdin.send(bytes).ok();
                }
            }
            Some(ProcessInput::Resize(new)) => {
                size.send_replace(Some(new));
            }
            Some(ProcessInput::Signal(signal)) => return signal,
            Some(ProcessInput::Kill) => return 9,
            Some(ProcessInput::Close) => stdin = None,
            None => {
                drop(stdin);
                return std::future::pending().await;
            }
        }
    }
}
