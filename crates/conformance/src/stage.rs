//! Where one check is played, and what is cleared away after it.

use crate::check::{Stop, Verdict};
use crate::fixture::{Action, Need};
use crate::subject::Subject;
use cofferdam_core::{
    Command, ErrorKind, Guest, NoGate, Output, Process, ProcessEvent, ProcessId, SandboxId,
    SandboxRecord, Spec, collect,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// The next number of an id. Ids of one process of the suite differ by it, those of two by theirs.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// How much output the checks keep.
pub(crate) const CAP_BYTES: usize = 1 << 20;

/// The sandboxes of one check.
pub struct Stage {
    subject: Subject,
    ids: Vec<SandboxId>,
}

impl Stage {
    pub(crate) fn new(subject: Subject) -> Self {
        Self { subject, ids: Vec::new() }
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// A spec to start from.
    pub(crate) fn spec(&self) -> Spec {
        self.subject.fixture.spec()
    }

    /// Skips the check where this need cannot be met.
    pub(crate) fn needs(&self, need: Need) -> Verdict {
        self.subject.fixture.missing(need).map_or(Ok(()), |reason| Err(Stop::Skipped(reason)))
    }

    /// A new id. What is made under it is cleared away after the check.
    pub(crate) fn id(&mut self) -> Result<SandboxId, Stop> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = SandboxId::new(format!("conformance-{}-{number}", std::process::id()))?;
        self.ids.push(id.clone());
        Ok(id)
    }

    /// Makes a sandbox.
    pub(crate) async fn create(&mut self, spec: &Spec) -> Result<SandboxRecord, Stop> {
        let id = self.id()?;
        Ok(self.subject.backend.create(&id, spec).await?)
    }

    /// Opens a sandbox.
    pub(crate) async fn open(&self, record: &SandboxRecord) -> Result<Arc<dyn Guest>, Stop> {
        Ok(self.subject.backend.open(record, Arc::new(NoGate)).await?)
    }

    /// A guest in a fresh sandbox with the fixture's own spec.
    pub(crate) async fn guest(&mut self) -> Result<Arc<dyn Guest>, Stop> {
        let record = self.create(&self.spec()).await?;
        self.open(&record).await
    }

    /// A command that does something, under a new id.
    pub(crate) fn command(&self, action: &Action) -> Result<Command, Stop> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = ProcessId::new(format!("p{number}"))?;
        Ok(Command::new(id, self.subject.fixture.argv(action)))
    }

    /// Starts a command that does something.
    pub(crate) async fn spawn(
        &self,
        guest: &Arc<dyn Guest>,
        action: &Action,
    ) -> Result<Process, Stop> {
        Ok(guest.spawn(&self.command(action)?).await?)
    }

    /// Does something to its end.
    pub(crate) async fn run(
        &self,
        guest: &Arc<dyn Guest>,
        action: &Action,
    ) -> Result<Output, Stop> {
        Ok(collect(self.spawn(guest, action).await?, CAP_BYTES).await?)
    }

    /// Does something for at most this long.
    pub(crate) async fn run_for(
        &self,
        guest: &Arc<dyn Guest>,
        action: &Action,
        limit: Duration,
    ) -> Result<Output, Stop> {
        let mut command = self.command(action)?;
        command.timeout = Some(limit);
        Ok(collect(guest.spawn(&command).await?, CAP_BYTES).await?)
    }

    /// Whether this id is among those that the backend knows.
    pub(crate) async fn lists(&self, id: &SandboxId) -> Result<bool, Stop> {
        Ok(self.subject.backend.list().await?.iter().any(|record| record.id == *id))
    }

    /// Ends what the check made.
    pub(crate) async fn clear(self) -> Verdict {
        let clearing = async {
            for record in self.subject.backend.list().await? {
                if self.ids.contains(&record.id) {
                    self.subject.backend.destroy(&record).await?;
                }
            }
            Ok(())
        };
        let late = || Err(Stop::Failed("the sandboxes could not be ended in time".to_owned()));
        timeout(self.subject.patience, clearing).await.unwrap_or_else(|_| late())
    }
}

/// Reads events until standard output contains this.
pub(crate) async fn wait_for(process: &mut Process, text: &[u8]) -> Verdict {
    let mut seen = Vec::new();
    while let Some(event) = process.events.recv().await {
        match event {
            ProcessEvent::Output { bytes, .. } => seen.extend(bytes),
            ProcessEvent::Ended { ending, .. } => {
                return Err(Stop::Failed(format!("ended as {ending:?} before its output")));
            }
        }
        if seen.windows(text.len()).any(|window| window == text) {
            return Ok(());
        }
    }
    Err(Stop::Failed("the sandbox went away".to_owned()))
}

/// Fails unless the result is an error of one of these kinds.
pub(crate) fn refused<T>(
    what: &str,
    result: Result<T, cofferdam_core::Error>,
    kinds: &[ErrorKind],
) -> Verdict {
    match result {
        Ok(_) => Err(Stop::Failed(format!("{what}: was done, and must be refused"))),
        Err(error) if kinds.contains(&error.kind) => Ok(()),
        Err(error) => {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            Err(Stop::Failed(format!(
                "{what}: refused as {}, expected {}: {}",
                error.kind.name(),
                names.join(" or "),
                error.chain()
            )))
        }
    }
}
