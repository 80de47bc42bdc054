//! The client's side of keepers: a backend of sandboxes that outlive this process.

use super::client::{AT_ONCE, Call, Known, STARTS_WITHIN, Trouble, odd};
use super::files::FilesInUse;
use super::marks::Marks;
use super::order::Order;
use super::output::Output;
use super::past::{Outline, Past, settle};
use super::place::Place;
use super::program::CarriedProgram;
use super::serve::MAX_PATIENCE;
use super::talk::{Reply, Request, Start};
use super::{asked, layers, program};
use crate::backend::{LocalBackend, Preparation, blocking, briefly, keep_records_out};
use crate::cow;
use crate::gate::{self, GateProgram, GatedSecrets};
use crate::handing;
use crate::state::StateDirectory;
use async_trait::async_trait;
use cofferdam_core::secret::SecretSource;
use cofferdam_core::{
    ApplyOrder, ApplyReport, Capabilities, Change, Chunk, Connections, Deadlines, DestroyReason,
    DiscardOrder, DurableBackend, Error, ErrorKind, Exchanged, ExecInput, ExecOrder, ExecStatus,
    Files, Found, GuestPath, JournalEntry, KeptLayer, LayerExchange, LayerLook, MappedFiles,
    NetworkPolicy, Part, Pause, Permission, PortLink, ProbeReport, ProcessId, Result, SandboxId,
    SandboxMetrics, SandboxOrder, SandboxRecord, SandboxStatus, Seen, Side, Spec, Verdict,
    WHOLE_INPUT_BYTES, WorkspaceEntry, WorkspaceOrder,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a command may take for one piece of its input; the keeper gives up before.
const TAKES_WITHIN: Duration = Duration::from_secs(40);
/// How often one backend looks for what dead processes left. Each look is at every record there is,
/// so where hundreds live, one for each sandbox would be a good part of what that takes to make.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Makes sandboxes on this machine that outlive this process.
///
/// Holds nothing but where things are, so any number of processes may use one state directory at
/// once. Needs a runtime with I/O and time enabled.
#[derive(Debug, Clone)]
pub struct KeptBackend {
    program: CarriedProgram,
    state_home: Arc<PathBuf>,
    swept: Arc<Mutex<Option<Instant>>>,
    pub(super) known: Arc<Known>,
    marks: Arc<Marks>,
    files: FilesInUse,
    gate: Option<GateProgram>,
    secrets: Option<Arc<dyn SecretSource>>,
}

impl KeptBackend {
    /// A backend that starts keepers from the static program, and keeps its records in
    /// `state_home`. Does nothing yet.
    pub fn new(program: CarriedProgram, state_home: PathBuf) -> Self {
        Self {
            program,
            state_home: Arc::new(state_home),
            swept: Arc::default(),
            known: Arc::default(),
            marks: Arc::default(),
            files: FilesInUse::default(),
            gate: None,
            secrets: None,
        }
    }

    /// The same, with the program of the gate for sandboxes with a way out. Without one they are
    /// refused.
    #[must_use]
    pub fn with_gate(mut self, program: GateProgram) -> Self {
        self.gate = Some(program);
        self
    }

    /// The same, with where the values of secrets come from that gates put in. Without that, sandboxes that
    /// are granted some are refused.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Arc<dyn SecretSource>) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// What a sandbox needs for the secrets that it is granted.
    fn granted(&self, id: &SandboxId, wanted: &SandboxOrder) -> Result<Option<GatedSecrets>> {
        if wanted.spec.secrets.is_empty() {
            return Ok(None);
        }
        match &self.secrets {
            None => gate::refuse_secrets(&wanted.spec).map(|()| None),
            Some(source) => {
                let granted = source.granted(&wanted.owner, id.as_str(), &wanted.spec)?;
                GatedSecrets::new(granted).map(Some)
            }
        }
    }

    /// Does something with the state directory where waiting is allowed.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&StateDirectory) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let home = Arc::clone(&self.state_home);
        blocking(move || work(&StateDirectory::open(&home)?)).await
    }

    /// Looks for something small there.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&StateDirectory) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let home = Arc::clone(&self.state_home);
        briefly(move || look(&StateDirectory::open(&home)?)).await
    }

    /// Removes what dead processes left: the first time, and after [`SWEEP_EVERY`].
    fn sweep(&self, state: &StateDirectory) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.is_none_or(|then| then.elapsed() >= SWEEP_EVERY) {
            *swept = Some(Instant::now());
            drop(swept);
            // What could not be removed stays recorded.
            let _ = state.sweep();
        }
    }

    /// The directory of a sandbox. A few questions to the disk that is in memory anyway.
    fn place(&self, id: &SandboxId) -> Result<Place> {
        Place::get(&StateDirectory::open(&self.state_home)?, id)
    }

    pub(super) async fn call<'a>(
        &'a self,
        sandbox: &'a SandboxRecord,
        request: Request,
        within: Duration,
    ) -> Result<Call<'a>, Trouble> {
        let place = || self.place(&sandbox.id);
        Call::new(place, (sandbox, &self.known), (request, &[]), within).await
    }

    async fn ask(&self, sandbox: &SandboxRecord, request: Request) -> Result<()> {
        Ok(self.call(sandbox, request, AT_ONCE).await?.done().await?)
    }

    /// What the journal tells, of the very sandbox of this record.
    async fn past(&self, sandbox: &SandboxRecord) -> Result<Past> {
        let id = sandbox.id.clone();
        let past = self.on_disk(move |state| Past::read(&Place::get(state, &id)?)).await?;
        match &past.record {
            Some(record) if record.external_id == sandbox.external_id => Ok(past),
            Some(_) | None => {
                let what = format!("this sandbox {} is gone, another has its id", sandbox.id);
                Err(Error::new(ErrorKind::Unavailable, what))
            }
        }
    }

    /// The commands as the keeper lists them.
    async fn listed(
        &self,
        sandbox: &SandboxRecord,
        since_ms: u64,
    ) -> Result<Vec<ExecStatus>, Trouble> {
        let mut call = self.call(sandbox, Request::Execs { since_ms }, AT_ONCE).await?;
        let mut all = Vec::new();
        loop {
            match call.reply().await? {
                Reply::Exec(status) => all.push(*status),
                Reply::Done => {
                    call.over();
                    return Ok(all);
                }
                reply @ (Reply::Status { .. }
                | Reply::Network(_)
                | Reply::Metrics(_)
                | Reply::Mapped(_)
                | Reply::Permissions(_)
                | Reply::Failed(_)) => {
                    return Err(Trouble::from(odd(&sandbox.id, &reply)));
                }
            }
        }
    }
}

#[async_trait]
impl DurableBackend for KeptBackend {
    fn name(&self) -> &'static str {
        LocalBackend::NAME
    }

    fn protects_what_it_finds(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: Pause::MemoryKept, terminal: true, limits: true }
    }

    /// Giving up the call does not give up the sandbox: it can be found.
    async fn create(&self, id: &SandboxId, order: &SandboxOrder) -> Result<SandboxRecord> {
        let needs_gate = order.spec.network_policy()?.is_some();
        let gate = self.gate.clone().filter(|_| needs_gate);
        if needs_gate && gate.is_none() {
            return Err(gate::no_program());
        }
        let (id, wanted) = (id.clone(), order.clone());
        let mut order = Order::new(&id, order, &self.state_home);
        order.brings_gate = gate.is_some();
        let backend = self.clone();
        self.on_disk(move |state| {
            let secrets = backend.granted(&id, &wanted)?;
            let words =
                |secrets: &GatedSecrets| (secrets.grants().to_vec(), secrets.trusted().clone());
            order.secrets = secrets.as_ref().map(words);
            let given = (gate.as_ref(), secrets.as_ref());
            let meanwhile = || backend.sweep(state);
            // ORDER: here and not by the keeper, which says nothing until its sandbox stands.
            let spec = order.spec()?;
            keep_records_out(&spec, state.path())?;
            let is_new = cow::layer::ensure(&spec, order.kept().as_deref(), state)?;
            let started = match program::start(backend.program, state, &order, given, meanwhile) {
                Err(error) => match (cow::copies_instead(&spec, &error), order.kept()) {
                    (Some(why), Some(kept)) if is_new => {
                        cow::layer::copy_instead(&spec, &kept, why, state)?;
                        program::start(backend.program, state, &order, given, || ())?
                    }
                    _ => return Err(error),
                },
                started => started?,
            };
            if let Some(record) = started {
                return Ok(record);
            }
            if let Some(place) = Place::find(state, &order.id)? {
                settle(&place, state)?;
                place.forget(state)?;
            }
            let what = format!("the keeper of {} died while it made the sandbox", order.id);
            Err(Error::new(ErrorKind::SetupFailed, what))
        })
        .await
    }

    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        self.live_status(sandbox).await
    }

    async fn pause(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.ask(sandbox, Request::Pause).await
    }

    async fn hold(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.ask(sandbox, Request::Hold).await
    }

    async fn mapped_files(&self, sandbox: &SandboxRecord) -> Result<MappedFiles> {
        Ok(self.mapped_in(sandbox).await)
    }

    async fn resume(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.ask(sandbox, Request::Resume).await
    }

    async fn resume_on_purpose(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.ask(sandbox, Request::ResumeOnPurpose).await
    }

    async fn set_deadlines(&self, sandbox: &SandboxRecord, deadlines: &Deadlines) -> Result<()> {
        self.ask(sandbox, Request::SetDeadlines(*deadlines)).await
    }

    async fn destroy(&self, sandbox: &SandboxRecord, reason: DestroyReason) -> Result<()> {
        match self.ask_to_end(sandbox, reason).await {
            Ok(()) | Err(Trouble::NoKeeper(_)) => {}
            // It cannot be asked, and whoever is to go goes all the same.
            Err(Trouble::Silent(silence)) => blocking(move || silence.end()).await?,
            // Forgotten, or another one by now.
            Err(Trouble::Failed(error))
                if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Unavailable) =>
            {
                return Ok(());
            }
            Err(Trouble::Failed(error)) => return Err(error),
        }
        let (id, external_id) = (sandbox.id.clone(), sandbox.external_id.clone());
        self.on_disk(move |state| {
            let Some(place) = Place::find(state, &id)? else { return Ok(()) };
            match Outline::read(&place)?.record {
                Some(record) if record.external_id != external_id => Ok(()),
                Some(_) | None => settle(&place, state),
            }
        })
        .await
    }

    async fn forget(&self, id: &SandboxId) -> Result<()> {
        let id = id.clone();
        self.on_disk(move |state| {
            let Some(place) = Place::find(state, &id)? else { return Ok(()) };
            settle(&place, state)?;
            let _lock = place.take_over()?;
            place.forget(state)
        })
        .await
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.all_found().await
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Found>> {
        let Some((found, asked)) = self.found(id).await? else { return Ok(None) };
        asked.map(|()| Some(found))
    }

    async fn ids(&self) -> Result<Vec<SandboxId>> {
        self.look(Place::all).await
    }

    async fn debts(&self, but: &[SandboxId]) -> Result<Vec<String>> {
        let but = but.to_vec();
        self.look(move |state| state.debts(&but)).await
    }

    async fn pay(&self, debt: &str) -> Result<bool> {
        let debt = debt.to_owned();
        self.on_disk(move |state| state.pay(&debt)).await
    }

    async fn journal(&self, id: &SandboxId, after: u64) -> Result<Vec<JournalEntry>> {
        let (id, marks) = (id.clone(), Arc::clone(&self.marks));
        self.on_disk(move |state| marks.entries(&Place::get(state, &id)?, &id, after)).await
    }

    async fn start(&self, sandbox: &SandboxRecord, order: &ExecOrder) -> Result<ExecStatus> {
        self.start_and_wait(sandbox, order, Duration::ZERO).await
    }

    async fn start_and_wait(
        &self,
        sandbox: &SandboxRecord,
        order: &ExecOrder,
        patience: Duration,
    ) -> Result<ExecStatus> {
        let values = order.command.secrets.iter().map(|secret| &secret.value);
        let given = handing::as_files(values, None)?;
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let start = Start { patience_ms, ..Start::of(order) };
        let request = (Request::Start(Box::new(start)), given.as_slice());
        let place = || self.place(&sandbox.id);
        let call = Call::new(place, (sandbox, &self.known), request, STARTS_WITHIN).await?;
        self.started(sandbox, call).await
    }

    async fn network(&self, sandbox: &SandboxRecord) -> Result<Option<NetworkPolicy>> {
        let mut call = self.call(sandbox, Request::Network, AT_ONCE).await?;
        let reply = call.reply().await?;
        let Reply::Network(policy) = reply else { return Err(odd(&sandbox.id, &reply)) };
        call.over();
        Ok(policy)
    }

    async fn set_network(&self, sandbox: &SandboxRecord, policy: &NetworkPolicy) -> Result<()> {
        self.ask(sandbox, Request::SetNetwork(policy.clone())).await
    }

    async fn metrics(&self, sandbox: &SandboxRecord) -> Result<SandboxMetrics> {
        let mut call = self.call(sandbox, Request::Metrics, AT_ONCE).await?;
        let reply = call.reply().await?;
        let Reply::Metrics(used) = reply else { return Err(odd(&sandbox.id, &reply)) };
        call.over();
        Ok(used)
    }

    async fn prove(&self, spec: &Spec) -> Result<ProbeReport> {
        let home = self.state_home.as_ref().clone();
        let prover = LocalBackend::prepared(self.program.bytes, home, Preparation::Nothing);
        let prover = match &self.gate {
            Some(gate) => prover.with_gate(gate.clone()),
            None => prover,
        };
        prover.prove(spec).await
    }

    async fn permissions(&self, sandbox: &SandboxRecord) -> Result<Vec<Permission>> {
        let mut call = self.call(sandbox, Request::Permissions, AT_ONCE).await?;
        let reply = call.reply().await?;
        let Reply::Permissions(all) = reply else { return Err(odd(&sandbox.id, &reply)) };
        call.over();
        Ok(all)
    }

    async fn answer_permission(
        &self,
        sandbox: &SandboxRecord,
        number: u64,
        verdict: Verdict,
    ) -> Result<()> {
        self.ask(sandbox, Request::AnswerPermission { number, verdict }).await
    }

    async fn connections(&self, id: &SandboxId, from: u64) -> Result<Connections> {
        let id = id.clone();
        self.on_disk(move |state| asked::connections(&Place::get(state, &id)?, from)).await
    }

    async fn execs(&self, sandbox: &SandboxRecord) -> Result<Vec<ExecStatus>> {
        self.execs_since(sandbox, 0).await
    }

    async fn execs_since(&self, sandbox: &SandboxRecord, ms: u64) -> Result<Vec<ExecStatus>> {
        match self.listed(sandbox, ms).await {
            Err(Trouble::NoKeeper(_)) => {
                let mut all = self.past(sandbox).await?.execs();
                all.retain(|exec| exec.is_of_interest_since(ms));
                Ok(all)
            }
            other => Ok(other?),
        }
    }

    async fn watch(
        &self,
        sandbox: &SandboxRecord,
        id: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        let patience = patience.min(MAX_PATIENCE);
        let request = Request::Watch {
            id: id.clone(),
            stdout: seen.stdout,
            stderr: seen.stderr,
            stops: seen.stops,
            end: seen.end,
            patience_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
        };
        let asked = async {
            self.call(sandbox, request, patience.saturating_add(AT_ONCE)).await?.exec().await
        };
        match asked.await {
            Err(Trouble::NoKeeper(_)) => self.past(sandbox).await?.exec(id),
            other => Ok(other?),
        }
    }

    async fn read(&self, sandbox: &SandboxId, id: &ProcessId, part: Part) -> Result<Chunk> {
        let (sandbox, id) = (sandbox.clone(), id.clone());
        let asked = (sandbox.clone(), id.clone());
        let kept =
            self.look(move |state| Output::of(state, &asked.0, &asked.1)?.read(part)).await?;
        match kept {
            Some(chunk) => Ok(chunk),
            None => self.on_disk(move |state| Output::of(state, &sandbox, &id)?.empty(part)).await,
        }
    }

    async fn input(
        &self,
        sandbox: &SandboxRecord,
        id: &ProcessId,
        input: &ExecInput,
    ) -> Result<()> {
        let id = id.clone();
        let request = match input {
            ExecInput::Bytes(bytes) => {
                for piece in bytes.chunks(WHOLE_INPUT_BYTES) {
                    let request = Request::Bytes { id: id.clone(), bytes: piece.to_vec() };
                    self.call(sandbox, request, TAKES_WITHIN).await?.done().await?;
                }
                return Ok(());
            }
            ExecInput::Close => Request::Close { id },
            ExecInput::Signal(signal) => Request::Signal { id, signal: *signal },
            ExecInput::Resize(size) => Request::Resize { id, size: *size },
            ExecInput::Unread(stream) => Request::Unread { id, stream: *stream },
            ExecInput::Kill => Request::Kill { id },
        };
        self.ask(sandbox, request).await
    }

    async fn files(&self, sandbox: &SandboxRecord) -> Result<Files> {
        Ok(Files::new(self.files.of(self, sandbox)))
    }

    async fn connect(&self, sandbox: &SandboxRecord, port: u16) -> Result<PortLink> {
        let call = self.call(sandbox, Request::Port { port }, AT_ONCE).await?;
        let (socket, lease) = call.connection().await?;
        PortLink::new(socket.into(), Some(lease), port)
    }

    async fn exchange_layer(
        &self,
        sandbox: &SandboxRecord,
        exchange: LayerExchange,
    ) -> Result<Exchanged> {
        self.exchange_under(sandbox, exchange).await
    }

    async fn changes(&self, layer: &KeptLayer, scope: &[GuestPath]) -> Result<Vec<Change>> {
        let (layer, scope) = (layer.clone(), scope.to_vec());
        self.on_disk(move |state| layers::open(&layer, state)?.changes(&scope)).await
    }

    async fn look_at_layer(&self, layer: &KeptLayer) -> Result<LayerLook> {
        let layer = layer.clone();
        self.on_disk(move |state| layers::open(&layer, state)?.look()).await
    }

    async fn layer_file(
        &self,
        layer: &KeptLayer,
        side: Side,
        path: &GuestPath,
        most_bytes: u64,
    ) -> Result<Vec<u8>> {
        let (layer, path) = (layer.clone(), path.clone());
        self.on_disk(move |state| layers::open(&layer, state)?.file(side, &path, most_bytes)).await
    }

    async fn look_at_workspace(
        &self,
        layer: &KeptLayer,
        order: &WorkspaceOrder,
    ) -> Result<BTreeMap<GuestPath, WorkspaceEntry>> {
        let (layer, order) = (layer.clone(), order.clone());
        self.on_disk(move |state| layers::open(&layer, state)?.look_at_workspace(&order)).await
    }

    async fn apply(&self, layer: &KeptLayer, order: &ApplyOrder) -> Result<ApplyReport> {
        let (layer, order) = (layer.clone(), order.clone());
        self.on_disk(move |state| layers::open(&layer, state)?.apply(&order, state)).await
    }

    async fn discard(&self, layer: &KeptLayer, order: &DiscardOrder) -> Result<Vec<Change>> {
        self.discard_from(layer, order).await
    }
}
