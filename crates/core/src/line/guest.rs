//! A guest that is reached by a line.

use crate::files::LinkedFiles;
use crate::line::carrier::Carrier;
use crate::line::channel::{Line, Received};
use crate::line::files::FileLine;
use crate::line::process::{Registered, Running, Standards, Start, ask, run};
use crate::line::slot::Accepts;
use crate::line::table::parse_long;
use crate::line::whole::Whole;
use crate::{
    Command, EgressGate, Error, ErrorKind, Files, Given, Guest, Killer, LimitWatch, NoWatch,
    Output, PortStream, Process, ProcessId, Result, Stdin, run_by_spawning,
};
use async_trait::async_trait;
use cofferdam_wire::message::{Hello, HostOpens, News, Proof, Prove};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{mpsc, oneshot};

/// What commands find when they start, as far as they do not say otherwise.
#[derive(Clone)]
pub struct Surroundings {
    /// Where a command starts that names no directory; absolute inside.
    pub workspace: OsString,
    /// The sandbox's variables. Those of a command come over them.
    pub env: BTreeMap<OsString, OsString>,
    /// Tells which limit a command died of.
    pub watch: Arc<dyn LimitWatch>,
}

impl Surroundings {
    /// Surroundings without variables or a watch.
    pub fn new(workspace: impl Into<OsString>) -> Self {
        Self { workspace: workspace.into(), env: BTreeMap::new(), watch: Arc::new(NoWatch) }
    }
}

/// The one implementation of [`Guest`] over a line.
///
/// Dropping it, and every [`Process`] of it, closes the line.
pub struct WireGuest {
    line: Line,
    hello: Hello,
    surroundings: Surroundings,
    running: Running,
    /// Those that somebody has, so that all who ask share the connections that there may be.
    files: Mutex<Weak<LinkedFiles<FileLine>>>,
}

/// How many events of one command wait for their reader, beside what credit keeps waiting.
const WAITING_EVENTS: usize = 4;

/// How many inputs of one command wait.
const WAITING_INPUTS: usize = 8;

impl WireGuest {
    /// Reads the guest's greeting from a stream, and is ready. See [`Line::open`].
    pub async fn over(
        carrier: Carrier,
        gate: Arc<dyn EgressGate>,
        surroundings: Surroundings,
    ) -> Result<Self> {
        let (line, hello) = Line::open(carrier, gate).await?;
        let (running, files) = (Running::default(), Mutex::default());
        Ok(Self { line, hello, surroundings, running, files })
    }

    /// What the guest said about itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Fails with the reason once the sandbox is gone, or was left because it broke the protocol.
    pub fn still_there(&self) -> Result<()> {
        self.line.still_open()
    }

    /// Asks the guest for a sign of life.
    pub async fn ping(&self) -> Result<()> {
        let channel = self.line.open_channel(Accepts::Pong)?;
        channel.send_message(&HostOpens::Ping, Vec::new()).await?;
        channel.receive().await.map(|_| ())
    }

    /// Starts a command with these standard streams. [`Guest::spawn`] is this with
    /// [`Standards::Line`].
    pub async fn spawn_with(&self, command: &Command, standards: Standards) -> Result<Process> {
        let registered = self.admit(command)?;
        // ORDER: asked for here and not in the task, because a change of thread costs as much as the
        // start of a small program. From then on the task sees it through, whatever comes of us.
        let news = News::AtOnce;
        let asked = ask(&self.line, &self.surroundings, command, standards, news).await?;
        let (send_events, events) = mpsc::channel(WAITING_EVENTS);
        let (input, inputs) = mpsc::channel(WAITING_INPUTS);
        let killer = Killer::default();
        let start = Start {
            line: self.line.clone(),
            watch: Arc::clone(&self.surroundings.watch),
            registered,
            events: send_events,
            inputs,
            killer: killer.clone(),
        };
        let (answer, started) = oneshot::channel();
        tokio::spawn(run(start, asked, answer));
        started.await.map_err(|_| {
            Error::new(ErrorKind::Unavailable, "the runtime ended while the command started")
        })??;
        Ok(Process { id: command.id.clone(), events, input, killer })
    }

    fn admit(&self, command: &Command) -> Result<Registered> {
        command.check()?;
        if command.terminal.is_some() && self.line.descriptors().is_none() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this sandbox is reached by a stream that carries no terminal",
            ));
        }
        self.running.register(&command.id)
    }
}

#[async_trait]
impl Guest for WireGuest {
    async fn spawn(&self, command: &Command) -> Result<Process> {
        self.spawn_with(command, Standards::Line).await
    }

    async fn spawn_on(&self, command: &Command, given: Given) -> Result<Process> {
        if command.terminal.is_some() {
            return Err(Error::new(
                ErrorKind::Usage,
                "a command has a terminal or given streams, not both",
            ));
        }
        if self.line.descriptors().is_none() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this sandbox is reached by a stream that carries no descriptors",
            ));
        }
        self.spawn_with(command, Standards::Given(given)).await
    }

    /// The caller's own task does all of it. Another one costs a short command, by the changes from
    /// thread to thread, as much as its start.
    async fn run(&self, command: &Command, kept: usize) -> Result<Output> {
        if command.terminal.is_some() {
            return run_by_spawning(self, command, kept).await;
        }
        let command = Command { stdin: Stdin::Null, ..command.clone() };
        let registered = self.admit(&command)?;
        let (line, surroundings) = (&self.line, &self.surroundings);
        let asked = ask(line, surroundings, &command, Standards::Line, News::Together).await?;
        let watch = Arc::clone(&surroundings.watch);
        Whole::new(line.clone(), watch, registered, asked).see_through(kept).await
    }

    async fn files(&self) -> Result<Files> {
        let mut known = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = known.upgrade() {
            return Ok(Files::new(files));
        }
        let root = &self.surroundings.workspace;
        let files = FileLine::new(&self.line, &self.hello, root.as_os_str())?.files();
        *known = Arc::downgrade(&files);
        Ok(Files::new(files))
    }

    async fn connect(&self, port: u16) -> Result<PortStream> {
        super::port::connect(&self.line, &self.hello, port).await
    }

    async fn processes(&self) -> Result<Vec<ProcessId>> {
        // The host starts every command, so it need not believe the guest.
        self.line.still_open()?;
        Ok(self.running.ids())
    }

    async fn prove(&self, prove: &Prove) -> Result<Proof> {
        let channel = self.line.open_channel(Accepts::Messages)?;
        channel.send_message(&HostOpens::Prove(Box::new(prove.clone())), Vec::new()).await?;
        let proof = match channel.receive().await? {
            Received::Message(body, _) => parse_long(&body),
            Received::Data(_) | Received::End => {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    "the guest could not attack itself",
                ));
            }
        };
        proof.inspect_err(|error| self.line.close(error))
    }
}
