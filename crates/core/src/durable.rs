//! Sandboxes that outlive the process that asked for them.

use crate::{
    ApplyOrder, ApplyReport, Change, ConnectionReport, Denial, DiscardOrder, Ending, Error,
    ErrorKind, GuestPath, JournalEntry, LayerLook, MappedFiles, NetworkPolicy, Permission,
    ProbeReport, SandboxMetrics, Side, UsageReport, Verdict, WorkspaceEntry, WorkspaceOrder,
};
use crate::{
    Capabilities, Command, Files, PortLink, ProcessId, Result, SandboxId, SandboxRecord,
    SandboxStatus, Spec, Standard, Terminal,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be done where a backend does not do something.
const ANOTHER_BACKEND: &str = "Use a session of the local backend.";

/// How much input of a command is taken whole or not at all. As bytes that are no text it is four times as
/// long in a message to a keeper, and zeros are six times, which a frame of 1 MiB still holds.
pub const WHOLE_INPUT_BYTES: usize = 64 << 10;

/// Makes sandboxes that somebody of its own keeps: they live on without the process that asked for
/// them, hold their deadlines themselves, and spool what their commands write. Every method may be
/// repeated.
///
/// What needs a living sandbox fails with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) where
/// it is gone, and with a conflict where it is paused. It is never resumed by itself.
#[async_trait]
pub trait DurableBackend: Send + Sync + 'static {
    /// Its stable name, as in `--backend local`.
    fn name(&self) -> &'static str;

    /// What it can do at all, whatever the host.
    fn capabilities(&self) -> Capabilities;

    /// Whether its sandboxes protect control files and repositories of a workspace that is worked in directly as they
    /// find them when they are made, and none that comes later.
    fn protects_what_it_finds(&self) -> bool {
        false
    }

    /// Makes a sandbox, marked with `id` so that [`DurableBackend::list`] finds it even if the caller
    /// crashed before it stored the record. An id that is in use is a conflict.
    async fn create(&self, id: &SandboxId, order: &SandboxOrder) -> Result<SandboxRecord>;

    /// What has become of a sandbox.
    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus>;

    /// Stops everything in it where it stands; memory is kept. Pausing what is paused succeeds.
    async fn pause(&self, sandbox: &SandboxRecord) -> Result<()>;

    /// Stops everything in it where it stands for a moment, until [`DurableBackend::resume`]. Where that
    /// can be told from a pause, nothing of it is written down and requests wait instead of failing.
    async fn hold(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.pause(sandbox).await
    }

    /// The files that processes of a sandbox, which is held, have mapped so that they could change them
    /// without a new time of change.
    async fn mapped_files(&self, _sandbox: &SandboxRecord) -> Result<MappedFiles> {
        Ok(MappedFiles::Any)
    }

    /// Lets everything go on. Resuming what runs succeeds.
    async fn resume(&self, sandbox: &SandboxRecord) -> Result<()>;

    /// The same by somebody who asks for it by name, and so after an alarm about a secret, too.
    async fn resume_on_purpose(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.resume(sandbox).await
    }

    /// Sets its deadlines anew.
    async fn set_deadlines(&self, sandbox: &SandboxRecord, deadlines: &Deadlines) -> Result<()>;

    /// Ends a sandbox and all that runs in it, and returns when nothing is left but its journal and
    /// spools. Ending what is gone succeeds, and removes what it left behind.
    async fn destroy(&self, sandbox: &SandboxRecord, reason: DestroyReason) -> Result<()>;

    /// Removes journal and spools of a sandbox that is gone. Repeating it succeeds.
    async fn forget(&self, id: &SandboxId) -> Result<()>;

    /// The ids of all that [`DurableBackend::list`] would list, at the cost of one look at a
    /// directory: no sandbox is asked.
    async fn ids(&self) -> Result<Vec<SandboxId>>;

    /// Everything that was made by way of this state directory and that still exists, or has left a
    /// journal. A sandbox of another state directory is never listed: who finds one here without a
    /// session ends it.
    async fn list(&self) -> Result<Vec<Found>>;

    /// The one of this id, as [`DurableBackend::list`] would give it. Worth doing without asking the
    /// others.
    async fn find(&self, id: &SandboxId) -> Result<Option<Found>> {
        Ok(self.list().await?.into_iter().find(|found| found.id == *id))
    }

    /// What processes that were killed left on this machine and nobody owns any more, by names of the
    /// backend's own: whoever made it, a session or not. Removes nothing. What these sandboxes may have
    /// left is not looked at: it costs nothing that there are many. Where nothing can be left so,
    /// there is nothing to say.
    async fn debts(&self, _but: &[SandboxId]) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Removes what one of these names stands for. `false` where somebody else did.
    async fn pay(&self, _debt: &str) -> Result<bool> {
        Ok(false)
    }

    /// What happened to a sandbox after the entry `after` of its journal (0: from the beginning), in
    /// order. Works for one that is gone until it is forgotten.
    async fn journal(&self, id: &SandboxId, after: u64) -> Result<Vec<JournalEntry>>;

    /// Starts a command. The same id again starts nothing and returns the status of the first, in a
    /// paused sandbox too; with other words in `argv` it is a conflict, and with other options where the
    /// backend knows them still. So is a new command for a sandbox that is paused: resume it first. An
    /// error of the kinds not found and conflict means that nothing was started.
    ///
    /// The time of a command stands still while its sandbox is paused.
    async fn start(&self, sandbox: &SandboxRecord, order: &ExecOrder) -> Result<ExecStatus>;

    /// The same for one who waits for its end: how it stands once it has ended or `patience` is over, as
    /// one answer. Worth doing where a question costs something; the caller asks on if it has not ended.
    async fn start_and_wait(
        &self,
        sandbox: &SandboxRecord,
        order: &ExecOrder,
        _patience: Duration,
    ) -> Result<ExecStatus> {
        self.start(sandbox, order).await
    }

    /// The commands of a sandbox, ended ones included, oldest first.
    async fn execs(&self, sandbox: &SandboxRecord) -> Result<Vec<ExecStatus>>;

    /// Those of them that run, have left something that does, or ended at this moment or later, in
    /// milliseconds since 1970. A backend that knows many commands asks for no others.
    async fn execs_since(&self, sandbox: &SandboxRecord, ms: u64) -> Result<Vec<ExecStatus>> {
        let mut all = self.execs(sandbox).await?;
        all.retain(|exec| exec.is_of_interest_since(ms));
        Ok(all)
    }

    /// Waits until there is news of a command beyond `seen`, or `patience` is over, and says how it
    /// stands. News is what it or those that it left wrote, its end, and where that is known the end
    /// of all that it left. While somebody waits so the sandbox is in use.
    async fn watch(
        &self,
        sandbox: &SandboxRecord,
        id: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus>;

    /// What a command wrote. Where the beginning of that part was dropped, the chunk begins at the
    /// next byte that is kept. Works after the sandbox is gone.
    async fn read(&self, sandbox: &SandboxId, id: &ProcessId, part: Part) -> Result<Chunk>;

    /// Does something to a command. One that has ended takes nothing: a conflict, except for
    /// [`ExecInput::Kill`] and [`ExecInput::Close`], and for [`ExecInput::Signal`] where processes of
    /// it go on. Bytes that are at most [`WHOLE_INPUT_BYTES`] are taken whole or not at all: what was not
    /// taken in time can be given again.
    async fn input(&self, sandbox: &SandboxRecord, id: &ProcessId, input: &ExecInput)
    -> Result<()>;

    /// What a sandbox may reach now. `None` where it has no way out.
    async fn network(&self, _sandbox: &SandboxRecord) -> Result<Option<NetworkPolicy>> {
        Ok(None)
    }

    /// Lets a sandbox reach what this policy says, from the next connection on; those that wait are
    /// decided again. Where it was made without a way out it is a conflict, and so is a policy whose
    /// version is not the one after that in force.
    async fn set_network(&self, sandbox: &SandboxRecord, _policy: &NetworkPolicy) -> Result<()> {
        Err(no_way_out(&sandbox.id))
    }

    /// What waits in a sandbox to be allowed, and what did so lately, in the order in which it began.
    /// Where there is no way out it is nothing.
    async fn permissions(&self, _sandbox: &SandboxRecord) -> Result<Vec<Permission>> {
        Ok(Vec::new())
    }

    /// Answers what waits by this number. What came of it, [`DurableBackend::permissions`] tells. One that
    /// waits no more is a conflict, one that never did is not found.
    async fn answer_permission(
        &self,
        _sandbox: &SandboxRecord,
        _number: u64,
        _verdict: Verdict,
    ) -> Result<()> {
        let what = format!("backend {} lets nothing wait to be allowed", self.name());
        Err(Error::new(ErrorKind::Unsupported, what)
            .hint("Allow it with `cofferdam network allow`."))
    }

    /// What its gate wrote down from the byte `from` on, 0 for the beginning, as much as one look
    /// takes. Works after the sandbox is gone, until it is forgotten; where there is no way out it is
    /// nothing.
    async fn connections(&self, _id: &SandboxId, from: u64) -> Result<Connections> {
        Ok(Connections { next: from, ..Connections::default() })
    }

    /// What a living sandbox uses, paused or not.
    async fn metrics(&self, _sandbox: &SandboxRecord) -> Result<SandboxMetrics> {
        let what = format!("backend {} does not tell what sandboxes use", self.name());
        Err(Error::new(ErrorKind::Unsupported, what).hint(ANOTHER_BACKEND))
    }

    /// Attacks a sandbox from inside that is made for it as this `spec` says, and is gone afterwards: what
    /// would stop one of that specification. Takes a few seconds.
    async fn prove(&self, _spec: &Spec) -> Result<ProbeReport> {
        let what = format!("backend {} gives no proof", self.name());
        Err(Error::new(ErrorKind::Unsupported, what).hint(ANOTHER_BACKEND))
    }

    /// The files of its workspace. Nothing is asked of the sandbox yet; it is in use from the first
    /// request, or [`FileService::open`](crate::files::FileService::open), until they are dropped.
    async fn files(&self, sandbox: &SandboxRecord) -> Result<Files>;

    /// Asks for a connection to a port of its own loopback. The sandbox is in use until it is dropped.
    /// Fails where there is no sandbox to ask; what came of it, the link tells.
    async fn connect(&self, _sandbox: &SandboxRecord, _port: u16) -> Result<PortLink> {
        let what = format!("backend {} connects to no ports", self.name());
        Err(Error::new(ErrorKind::Unsupported, what).hint(ANOTHER_BACKEND))
    }

    /// Ends all processes of a sandbox that is held, has `exchange` put another layer in the place of its
    /// layer, which nobody may use meanwhile, and lets the sandbox go on with that one. Fails where the
    /// exchange does; the sandbox ends then.
    async fn exchange_layer(
        &self,
        _sandbox: &SandboxRecord,
        exchange: LayerExchange,
    ) -> Result<Exchanged> {
        Ok(Exchanged::Refused(exchange))
    }

    /// What the sandboxes of a layer changed at these paths and below them, or everywhere where there
    /// is none, in the order of paths. Works when the sandbox is gone, and while it runs with no
    /// promise that all is of one moment: who needs that pauses it. Where there is no layer it is a
    /// conflict.
    async fn changes(&self, layer: &KeptLayer, _scope: &[GuestPath]) -> Result<Vec<Change>> {
        Err(no_layer(layer))
    }

    /// How a layer stands, to be compared with a later look. Like [`DurableBackend::changes`], at the
    /// price of what the layer holds.
    async fn look_at_layer(&self, layer: &KeptLayer) -> Result<LayerLook> {
        Err(no_layer(layer))
    }

    /// The content of a regular file on one side of a layer. One of more than `most_bytes` is too
    /// large, and one that is not there is not found.
    async fn layer_file(
        &self,
        layer: &KeptLayer,
        _side: Side,
        _path: &GuestPath,
        _most_bytes: u64,
    ) -> Result<Vec<u8>> {
        Err(no_layer(layer))
    }

    /// What the workspace that a layer lies on has now, whatever the layer hides or holds. What is not
    /// there is not in the answer. Nothing is reached through links, and there are limits.
    async fn look_at_workspace(
        &self,
        layer: &KeptLayer,
        _order: &WorkspaceOrder,
    ) -> Result<BTreeMap<GuestPath, WorkspaceEntry>> {
        Err(no_layer(layer))
    }

    /// Makes the workspace what the layer is, at the paths of the order: all that can land, or none of
    /// it where an error is told. A crash in the middle is finished or undone by the next start. The
    /// sandbox is paused or gone; what landed stays in the layer and is no change any more.
    async fn apply(&self, layer: &KeptLayer, _order: &ApplyOrder) -> Result<ApplyReport> {
        Err(no_layer(layer))
    }

    /// Drops changes from the layer, and says which. The sandbox must be gone, or it is a conflict,
    /// unless nothing is done.
    async fn discard(&self, layer: &KeptLayer, _order: &DiscardOrder) -> Result<Vec<Change>> {
        Err(no_layer(layer))
    }
}

/// The error for a sandbox that was made without a way out.
pub fn no_way_out(id: &SandboxId) -> Error {
    let what = format!("sandbox {id} was made without a way out, and gets none");
    Error::new(ErrorKind::Conflict, what)
        .hint("Make it with --egress, or with --ask for one that reaches nothing at first.")
}

fn no_layer(layer: &KeptLayer) -> Error {
    Error::new(ErrorKind::Conflict, format!("sandbox {} is not copy-on-write", layer.sandbox))
        .hint("What it did is in the workspace already. Make a session with --cow to look first.")
}

/// A sandbox that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxOrder {
    /// What it may do.
    pub spec: Spec,
    /// Whose it is, as the store of secrets has it: empty for the local user.
    pub owner: String,
    /// When it is paused or ended without anybody asking.
    pub deadlines: Deadlines,
    /// A directory of the host that is its home directory, made and removed by the caller. Without
    /// one the home directory is gone with the sandbox.
    pub home: Option<PathBuf>,
    /// A directory of the host for what else stays, made and removed by the caller: in `cow` there, the
    /// layer of a copy-on-write workspace. Without one that layer is gone with the sandbox.
    pub kept: Option<PathBuf>,
}

/// Puts another layer in the place of one.
pub type LayerExchange = Box<dyn FnOnce() -> Result<()> + Send>;

/// What came of a layer that was to be exchanged under a living sandbox.
pub enum Exchanged {
    /// It was, and the sandbox lives.
    Lives,
    /// It was, and the sandbox ends.
    Ends,
    /// Nothing was done: the sandbox has to be ended first.
    Refused(LayerExchange),
}

impl std::fmt::Debug for Exchanged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Lives => "Lives",
            Self::Ends => "Ends",
            Self::Refused(_) => "Refused",
        })
    }
}

/// The layer of a copy-on-write workspace, which outlives its sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLayer {
    /// The sandbox that has it now, or had it last.
    pub sandbox: SandboxId,
    /// What [`SandboxOrder::kept`] was.
    pub kept: PathBuf,
}

/// When a sandbox is paused or ended without anybody asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// It is paused after it was not in use for so long, in milliseconds.
    pub idle_pause_ms: Option<u64>,
    /// It is ended at this moment, in milliseconds since 1970.
    pub lease_until_ms: Option<u64>,
    /// It is ended at this moment because its work takes too long, in milliseconds since 1970.
    pub run_until_ms: Option<u64>,
}

/// Why a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DestroyReason {
    /// Its work was done, or somebody asked.
    Success,
    /// Its work failed.
    Error,
    /// Its work took too long.
    Timeout,
    /// Its caller gave up.
    Canceled,
    /// Its lease was over.
    Lease,
    /// It was found dead.
    Lost,
}

/// A sandbox that a backend made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: SandboxId,
    /// As it can be used; `None` while it is being made (it then counts as running), and where it
    /// never came to be or only its journal is left.
    pub record: Option<SandboxRecord>,
    /// What has become of it. One without a record that is not gone is being made.
    pub status: SandboxStatus,
    /// Why it could not be asked, which a list of many does not fail by. It counts as running then.
    pub unreachable: Option<String>,
}

/// A command that is to be run and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOrder {
    /// The command. Its id is the caller's, and repeating it runs nothing twice.
    pub command: Command,
    /// It outlives its caller's interest: it does not count as use, and is paused with the sandbox.
    /// What it starts outlives it: its end is told at once, and its processes go on, see
    /// [`ExecStatus::left`]. Those of any other command die with it.
    pub detached: bool,
    /// It counts as use though it is detached, and what it left does too.
    pub keep_awake: bool,
    /// How many bytes of a stream are kept on disk, and at least 64 KiB; older ones are dropped and
    /// counted.
    pub spool_bytes: u64,
    /// It is killed when a stream exceeds this many bytes.
    pub max_output_bytes: Option<u64>,
}

/// What the gate of a sandbox wrote down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connections {
    /// One entry a connection or question, in the order in which they were decided.
    pub reports: Vec<ConnectionReport>,
    /// Where they end, to go on from there.
    pub next: u64,
}

/// How a command stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecStatus {
    /// Its id.
    pub id: ProcessId,
    /// Its words, for people: bytes that are not text are replaced.
    pub argv: Vec<String>,
    /// Whether it was detached.
    pub detached: bool,
    /// Whether it has a terminal; all its output is then standard output.
    pub terminal: bool,
    /// How often a signal of job control stopped it; counted where it has a terminal.
    #[serde(default)]
    pub stops: u32,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// What came of it, once it ended.
    pub ended: Option<ExecEnded>,
    /// How many processes of it go on though it has ended, when this was asked; `None` once it can
    /// leave nothing any more. It was detached. What they write still comes to its streams, its limits
    /// of time and output hold for them, and they end with the sandbox at the latest.
    #[serde(default)]
    pub left: Option<u32>,
    /// Its standard output.
    pub stdout: Spooled,
    /// Its standard error.
    pub stderr: Spooled,
}

impl ExecStatus {
    /// Whether it runs, has left something that may, or ended at this moment or later, in milliseconds
    /// since 1970.
    pub fn is_of_interest_since(&self, ms: u64) -> bool {
        self.left.is_some() || self.ended.as_ref().is_none_or(|ended| ended.at_ms >= ms)
    }
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecEnded {
    /// How it ended.
    pub ending: Ending,
    /// When, in milliseconds since 1970. Nobody saw the end of one that was lost: it is the last moment at
    /// which it or its sandbox gave a sign, or where nothing tells that, when the loss was noticed.
    pub at_ms: u64,
    /// What it used.
    pub usage: UsageReport,
    /// How many descendants still ran when it ended, and were killed, as was said inside; `None` where
    /// nobody said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_descendants: Option<u32>,
    /// What the sandbox was denied while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
}

/// How much of a stream there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    /// Bytes that were written.
    pub written: u64,
    /// Bytes that were dropped for want of room: those at the beginning, or, where the file system
    /// can make no holes or is full, those at the end.
    pub dropped: u64,
}

/// How far somebody has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of standard output.
    pub stdout: u64,
    /// Of standard error.
    pub stderr: u64,
    /// How many stops of the command are known, where another one is news.
    pub stops: Option<u32>,
    /// Its end is known: what is waited for is the end of all that it left.
    pub end: bool,
}

/// A part of a stream that somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which stream.
    pub stream: Standard,
    /// Where it begins.
    pub offset: u64,
    /// How long it is at most, in bytes.
    pub len: u32,
}

/// A part of a stream that was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins.
    pub offset: u64,
    /// What was written there; empty where nothing is yet.
    pub bytes: Vec<u8>,
}

/// What is done to a command that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecInput {
    /// These bytes are its next standard input. Returns when all of them were taken.
    Bytes(Vec<u8>),
    /// Its standard input ends.
    Close,
    /// This signal goes to its process group; to every process that it left, if it has ended. SIGKILL
    /// ends a detached one with all its descendants.
    Signal(i32),
    /// Its terminal has a new size.
    Resize(Terminal),
    /// Nobody reads this stream any more: what it writes there from now on meets a pipe without a
    /// reader. A terminal is hung up.
    Unread(Standard),
    /// It is killed with all its descendants, and ends as canceled unless it ended by itself before.
    /// What it left is killed too.
    Kill,
}
