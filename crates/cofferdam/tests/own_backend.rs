//! A backend of somebody else, made with nothing but this crate.

use cofferdam::files::{Body, FileService, Files, Reply, Request};
use cofferdam::{
    ApplyOrder, ApplyReport, Backend, Basis, Capabilities, Change, Chunk, Command, Deadlines,
    DestroyReason, Destroyed, DurableBackend, EgressGate, Ending, Enforced, Error, ErrorKind,
    ExecInput, ExecOrder, ExecStatus, Found, Given, Guest, GuestPath, JournalEntry, KeptLayer,
    Killer, LayerLook, MappedFiles, Output, Part, Pause, Permission, PortLink, PortStream,
    ProbeReport, Process, ProcessEvent, ProcessId, Proof, Prove, Result, Sandbox, SandboxId,
    SandboxMetrics, SandboxOrder, SandboxRecord, SandboxStatus, Seen, Spec, Standard, async_trait,
    run_by_spawning,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

fn unsupported<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "nothing is here"))
}

/// Each command writes its own words.
struct Echo;

#[async_trait]
impl Guest for Echo {
    async fn spawn(&self, command: &Command) -> Result<Process> {
        command.check()?;
        let (events, heard) = mpsc::channel(2);
        let (input, _) = mpsc::channel(1);
        let words: Vec<_> = command.argv.iter().map(|word| word.to_string_lossy()).collect();
        let bytes = words.join(" ").into_bytes();
        let said = ProcessEvent::Output { stream: Standard::Output, offset: 0, bytes };
        let ending = Ending::Exited(0);
        let ended = ProcessEvent::Ended { ending, cpu_us: None, peak_memory_bytes: None };
        for event in [said, ended] {
            events.send(event).await.ok();
        }
        Ok(Process { id: command.id.clone(), events: heard, input, killer: Killer::default() })
    }

    async fn spawn_on(&self, _: &Command, _: Given) -> Result<Process> {
        unsupported()
    }

    async fn run(&self, command: &Command, kept: usize) -> Result<Output> {
        run_by_spawning(self, command, kept).await
    }

    async fn files(&self) -> Result<Files> {
        Ok(Files::new(Arc::new(Self)))
    }

    async fn connect(&self, _: u16) -> Result<PortStream> {
        unsupported()
    }

    async fn processes(&self) -> Result<Vec<ProcessId>> {
        Ok(Vec::new())
    }

    async fn prove(&self, _: &Prove) -> Result<Proof> {
        unsupported()
    }
}

#[async_trait]
impl FileService for Echo {
    async fn call(&self, _: &Request, _: Body<'_>) -> Result<Reply> {
        unsupported()
    }

    async fn open(&self) -> Result<()> {
        Ok(())
    }
}

const CAN: Capabilities = Capabilities { pause: Pause::No, terminal: false, limits: false };

#[async_trait]
impl Backend for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn capabilities(&self) -> Capabilities {
        CAN
    }

    async fn probe(&self, _: &Spec) -> Result<Enforced> {
        Ok(Enforced::full(Basis::Probed))
    }

    async fn create(&self, id: &SandboxId, _: &Spec) -> Result<SandboxRecord> {
        Ok(SandboxRecord {
            id: id.clone(),
            backend: "echo".to_owned(),
            external_id: id.to_string(),
            workspace: "/workspace".to_owned(),
            enforced: Enforced::full(Basis::Applied),
            layer: None,
        })
    }

    async fn status(&self, _: &SandboxRecord) -> Result<SandboxStatus> {
        Ok(SandboxStatus::Running)
    }

    async fn destroy(&self, _: &SandboxRecord) -> Result<Destroyed> {
        Ok(Destroyed::default())
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }

    async fn open(&self, _: &SandboxRecord, _: Arc<dyn EgressGate>) -> Result<Arc<dyn Guest>> {
        Ok(Arc::new(Self))
    }
}

/// Makes nothing, and says so with every word that there is.
struct Nothing;

#[async_trait]
impl DurableBackend for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn capabilities(&self) -> Capabilities {
        CAN
    }

    async fn create(&self, _: &SandboxId, _: &SandboxOrder) -> Result<SandboxRecord> {
        unsupported()
    }

    async fn status(&self, _: &SandboxRecord) -> Result<SandboxStatus> {
        Ok(SandboxStatus::Gone)
    }

    async fn pause(&self, _: &SandboxRecord) -> Result<()> {
        unsupported()
    }

    async fn mapped_files(&self, _: &SandboxRecord) -> Result<MappedFiles> {
        unsupported()
    }

    async fn resume(&self, _: &SandboxRecord) -> Result<()> {
        unsupported()
    }

    async fn set_deadlines(&self, _: &SandboxRecord, _: &Deadlines) -> Result<()> {
        unsupported()
    }

    async fn destroy(&self, _: &SandboxRecord, _: DestroyReason) -> Result<()> {
        Ok(())
    }

    async fn forget(&self, _: &SandboxId) -> Result<()> {
        Ok(())
    }

    async fn ids(&self) -> Result<Vec<SandboxId>> {
        Ok(Vec::new())
    }

    async fn list(&self) -> Result<Vec<Found>> {
        Ok(Vec::new())
    }

    async fn journal(&self, _: &SandboxId, _: u64) -> Result<Vec<JournalEntry>> {
        Ok(Vec::new())
    }

    async fn start(&self, _: &SandboxRecord, _: &ExecOrder) -> Result<ExecStatus> {
        unsupported()
    }

    async fn execs(&self, _: &SandboxRecord) -> Result<Vec<ExecStatus>> {
        Ok(Vec::new())
    }

    async fn watch(
        &self,
        _: &SandboxRecord,
        _: &ProcessId,
        _: Seen,
        _: Duration,
    ) -> Result<ExecStatus> {
        unsupported()
    }

    async fn read(&self, _: &SandboxId, _: &ProcessId, _: Part) -> Result<Chunk> {
        unsupported()
    }

    async fn input(&self, _: &SandboxRecord, _: &ProcessId, _: &ExecInput) -> Result<()> {
        unsupported()
    }

    async fn permissions(&self, _: &SandboxRecord) -> Result<Vec<Permission>> {
        Ok(Vec::new())
    }

    async fn metrics(&self, _: &SandboxRecord) -> Result<SandboxMetrics> {
        unsupported()
    }

    async fn prove(&self, _: &Spec) -> Result<ProbeReport> {
        unsupported()
    }

    async fn files(&self, _: &SandboxRecord) -> Result<Files> {
        Ok(Files::new(Arc::new(Echo)))
    }

    async fn connect(&self, _: &SandboxRecord, _: u16) -> Result<PortLink> {
        unsupported()
    }

    async fn changes(&self, _: &KeptLayer, _: &[GuestPath]) -> Result<Vec<Change>> {
        unsupported()
    }

    async fn look_at_layer(&self, _: &KeptLayer) -> Result<LayerLook> {
        unsupported()
    }

    async fn apply(&self, _: &KeptLayer, _: &ApplyOrder) -> Result<ApplyReport> {
        unsupported()
    }
}

#[tokio::test]
async fn a_backend_is_made_with_this_crate_alone() {
    let builder = Sandbox::builder().private_workspace().backend(Arc::new(Echo));
    let sandbox = builder.create().await.unwrap();
    assert_eq!(sandbox.exec(["a", "b"]).await.unwrap().stdout, b"a b");
    assert_eq!(sandbox.exec([""; 0]).await.unwrap_err().kind, ErrorKind::Usage);
    let durable: Arc<dyn DurableBackend> = Arc::new(Nothing);
    assert!(durable.ids().await.unwrap().is_empty());
    sandbox.destroy().await.unwrap();
}
