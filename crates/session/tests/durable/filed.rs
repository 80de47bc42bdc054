//! A backend whose sandboxes are empty files, so that processes share them. What is being made is one of another name.

use async_trait::async_trait;
use cofferdam_core::{
    Basis, Capabilities, Chunk, Deadlines, DestroyReason, DurableBackend, Enforced, Error,
    ErrorKind, ExecInput, ExecOrder, ExecStatus, Files, Found, JournalEntry, Part, Pause,
    ProcessId, Result, SandboxId, SandboxOrder, SandboxRecord, SandboxStatus, Seen,
};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Sandboxes are files of this directory; each that is made adds a byte to `made`.
pub(crate) struct Filed {
    pub(crate) state: PathBuf,
}

impl Filed {
    fn record(id: &SandboxId) -> SandboxRecord {
        SandboxRecord {
            id: id.clone(),
            backend: "filed".to_owned(),
            external_id: id.to_string(),
            workspace: "/workspace".to_owned(),
            enforced: Enforced::full(Basis::Applied),
            layer: None,
        }
    }

    fn file(&self, id: &SandboxId) -> PathBuf {
        self.state.join(format!("sandbox-{id}"))
    }

    fn unfinished(&self, id: &SandboxId) -> PathBuf {
        self.state.join(format!("making-{id}"))
    }
}

fn unsupported<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "nothing runs here"))
}

#[async_trait]
impl DurableBackend for Filed {
    fn name(&self) -> &'static str {
        "filed"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: Pause::No, terminal: false, limits: false }
    }

    async fn create(&self, id: &SandboxId, _order: &SandboxOrder) -> Result<SandboxRecord> {
        std::fs::write(self.unfinished(id), "").unwrap();
        // Long enough for the others to come.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut made = std::fs::OpenOptions::new();
        let mut made = made.append(true).create(true).open(self.state.join("made")).unwrap();
        made.write_all(b"x").unwrap();
        std::fs::rename(self.unfinished(id), self.file(id)).unwrap();
        Ok(Self::record(id))
    }

    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        Ok(match self.file(&sandbox.id).exists() {
            true => SandboxStatus::Running,
            false => SandboxStatus::Gone,
        })
    }

    async fn pause(&self, _sandbox: &SandboxRecord) -> Result<()> {
        unsupported()
    }

    async fn resume(&self, _sandbox: &SandboxRecord) -> Result<()> {
        unsupported()
    }

    async fn set_deadlines(&self, _sandbox: &SandboxRecord, _to: &Deadlines) -> Result<()> {
        Ok(())
    }

    async fn destroy(&self, sandbox: &SandboxRecord, _reason: DestroyReason) -> Result<()> {
        std::fs::remove_file(self.file(&sandbox.id)).ok();
        Ok(())
    }

    async fn forget(&self, _id: &SandboxId) -> Result<()> {
        Ok(())
    }

    async fn ids(&self) -> Result<Vec<SandboxId>> {
        Ok(self.list().await?.into_iter().map(|found| found.id).collect())
    }

    async fn list(&self) -> Result<Vec<Found>> {
        let names = std::fs::read_dir(&self.state).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        let found = names.filter_map(|name| {
            let (what, id) = name.split_once('-')?;
            let is_made = ["making", "sandbox"].iter().position(|one| *one == what)? == 1;
            let id = SandboxId::new(id).unwrap();
            let record = is_made.then(|| Self::record(&id));
            Some(Found { record, id, status: SandboxStatus::Running, unreachable: None })
        });
        Ok(found.collect())
    }

    async fn journal(&self, _id: &SandboxId, _after: u64) -> Result<Vec<JournalEntry>> {
        Ok(Vec::new())
    }

    async fn start(&self, _sandbox: &SandboxRecord, _order: &ExecOrder) -> Result<ExecStatus> {
        unsupported()
    }

    async fn execs(&self, _sandbox: &SandboxRecord) -> Result<Vec<ExecStatus>> {
        Ok(Vec::new())
    }

    async fn watch(
        &self,
        _sandbox: &SandboxRecord,
        _id: &ProcessId,
        _seen: Seen,
        _patience: Duration,
    ) -> Result<ExecStatus> {
        unsupported()
    }

    async fn read(&self, _sandbox: &SandboxId, _id: &ProcessId, _part: Part) -> Result<Chunk> {
        unsupported()
    }

    async fn files(&self, _sandbox: &SandboxRecord) -> Result<Files> {
        unsupported()
    }

    async fn input(
        &self,
        _sandbox: &SandboxRecord,
        _id: &ProcessId,
        _input: &ExecInput,
    ) -> Result<()> {
        unsupported()
    }
}
