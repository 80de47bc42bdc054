//! Sandboxes of this machine for a program with a runtime.
//!
//! Sandboxes are cloned from one small launcher process, started with the first of them, and live
//! no longer than the process that asked for them: a line that closes ends its sandbox, and so does
//! the end of the launcher. What such an end leaves on disk is recorded, and removed by the next
//! start on the same state directory.
//!
//! Everything that may block (looking at the disk, making control groups, waiting for a process) runs
//! on the runtime's threads for that. A command in a living sandbox uses none of them.

mod carrier;
mod living;
mod making;
mod prober;
mod table;
mod terminal;

use crate::assemble::Farewell;
use crate::gate::GateProgram;
use crate::launcher::Launcher;
use crate::state::StateDirectory;
use crate::template::Templates;
use async_trait::async_trait;
pub(crate) use carrier::receive;
use cofferdam_core::{
    Backend, Capabilities, Destroyed, EgressGate, Enforced, Error, ErrorKind, Guest, NetworkPolicy,
    Pause, ProbeReport, Result, SandboxId, SandboxRecord, SandboxStatus, Spec, no_way_out,
};
pub(crate) use living::First;
use living::Living;
pub(crate) use making::keep_records_out;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use table::{Claim, Table};

/// Makes sandboxes on this machine.
///
/// Sandboxes of this process are all that it knows: [`Backend::list`] shows what one backend made,
/// and a record of an earlier process is of a sandbox that is gone. Dropping the backend ends all of
/// them and waits until nothing is left.
///
/// Needs a runtime with I/O and time enabled. A sandbox must be used on the runtime on which it was
/// opened first.
#[derive(Debug)]
pub struct LocalBackend {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    program: &'static [u8],
    state_home: PathBuf,
    preparation: Preparation,
    templates: Templates,
    launcher: Mutex<Option<Arc<Launcher>>>,
    table: Table,
    gate: Option<GateProgram>,
}

/// What is kept ready for sandboxes that come. What they are does not depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preparation {
    /// Each is built from nothing.
    Nothing,
    /// The part of the tree that sandboxes share, in at most eight processes and as many openers.
    Tree,
    /// Besides, in each tree, a process in namespaces of its own for the next sandbox. Each becomes one
    /// sandbox, and hears nothing of another.
    #[default]
    Next,
}

impl LocalBackend {
    /// The stable name, as in `--backend local`.
    pub const NAME: &str = "local";

    /// A backend that starts its launcher from the bytes of the static program, and keeps its
    /// records in `state_home`. Does nothing yet.
    pub fn new(program: &'static [u8], state_home: PathBuf) -> Self {
        Self::prepared(program, state_home, Preparation::default())
    }

    /// The same, keeping this much ready.
    pub fn prepared(program: &'static [u8], state_home: PathBuf, preparation: Preparation) -> Self {
        let inner = Inner {
            program,
            state_home,
            preparation,
            templates: Templates::default(),
            launcher: Mutex::default(),
            table: Table::default(),
            gate: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The same, with the program of the gate for sandboxes with a way out: the command. Without one
    /// they are refused. To be said before the first sandbox is made.
    #[must_use]
    pub fn with_gate(mut self, program: GateProgram) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.gate = Some(program);
        }
        self
    }

    /// Ends a sandbox as [`Backend::destroy`] does, and says what became of what it used. Nothing is
    /// said of a sandbox that was gone.
    pub async fn end(&self, sandbox: &SandboxRecord) -> Result<Farewell> {
        let inner = Arc::clone(&self.inner);
        let sandbox = sandbox.clone();
        blocking(move || inner.end(&sandbox)).await
    }

    /// Attacks a sandbox such as `spec` describes from inside, in a workspace of its own, and says what
    /// came of each attack. Takes a few seconds.
    pub async fn prove(&self, spec: &Spec) -> Result<ProbeReport> {
        let inner = Arc::clone(&self.inner);
        let spec = spec.clone();
        blocking(move || inner.probe(&spec)).await
    }

    fn find(&self, sandbox: &SandboxRecord) -> Option<Arc<Living>> {
        self.inner.table.find(&sandbox.id).filter(|living| living.is(sandbox))
    }

    fn living(&self, sandbox: &SandboxRecord) -> Result<Arc<Living>> {
        let gone = || Error::new(ErrorKind::NotFound, format!("sandbox {} is gone", sandbox.id));
        self.find(sandbox).ok_or_else(gone)
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: Pause::No, terminal: true, limits: true }
    }

    async fn probe(&self, spec: &Spec) -> Result<Enforced> {
        Ok(self.prove(spec).await?.enforced)
    }

    /// Giving up the call ends the sandbox as soon as it is made.
    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<SandboxRecord> {
        let inner = Arc::clone(&self.inner);
        let (claim, dead) = Claim::new(Arc::clone(&self.inner), id)?;
        let (number, id, spec) = (claim.number(), id.clone(), spec.clone());
        let made = blocking(move || {
            let ended = dead.map_or(Ok(Farewell::default()), |dead| dead.end());
            let made = ended.and_then(|_| inner.make(&id, &spec));
            inner.table.settle(&id, number, made)
        })
        .await;
        claim.keep();
        made
    }

    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        Ok(match self.find(sandbox) {
            Some(living) if living.is_there() => SandboxStatus::Running,
            Some(_) | None => SandboxStatus::Gone,
        })
    }

    async fn destroy(&self, sandbox: &SandboxRecord) -> Result<Destroyed> {
        let Farewell { new_control_files, leftovers } = self.end(sandbox).await?;
        match leftovers.into_iter().next() {
            None => Ok(Destroyed { new_control_files }),
            Some(error) => Err(error),
        }
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        Ok(self.inner.table.records())
    }

    async fn network(&self, sandbox: &SandboxRecord) -> Result<Option<NetworkPolicy>> {
        let living = self.living(sandbox)?;
        blocking(move || living.with_gate(|house| house.policy().clone())).await
    }

    async fn set_network(&self, sandbox: &SandboxRecord, policy: &NetworkPolicy) -> Result<()> {
        let (living, policy) = (self.living(sandbox)?, policy.clone());
        let set = blocking(move || living.with_gate(move |house| house.set_policy(&policy)));
        set.await?.unwrap_or_else(|| Err(no_way_out(&sandbox.id)))
    }

    /// The gate that was given last is the one that is asked.
    async fn open(
        &self,
        sandbox: &SandboxRecord,
        gate: Arc<dyn EgressGate>,
    ) -> Result<Arc<dyn Guest>> {
        self.living(sandbox)?.open(gate).await
    }
}

impl Inner {
    /// The launcher, started if there is none.
    fn launcher(&self) -> Result<Arc<Launcher>> {
        let mut place = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(launcher) = place.as_ref().filter(|launcher| launcher.is_there()) {
            return Ok(Arc::clone(launcher));
        }
        // One that died took its sandboxes with it. They stay in the table until they are ended.
        let launcher = Arc::new(Launcher::start(self.program)?);
        *place = Some(Arc::clone(&launcher));
        Ok(launcher)
    }

    fn state(&self) -> Result<StateDirectory> {
        StateDirectory::open(&self.state_home)
    }

    fn end(&self, sandbox: &SandboxRecord) -> Result<Farewell> {
        let Some(living) = self.table.find(&sandbox.id).filter(|living| living.is(sandbox)) else {
            // Of an earlier process, perhaps, which may have left something on disk.
            self.state()?.sweep()?;
            return Ok(Farewell::default());
        };
        let farewell = living.end()?;
        self.table.forget(sandbox);
        Ok(farewell)
    }
}

impl Drop for LocalBackend {
    fn drop(&mut self) {
        let all = self.inner.table.take_all();
        // All at once first, so that none is waited for from its beginning.
        all.iter().for_each(|living| living.kill());
        for living in all {
            // What could not be removed stays recorded for the next start.
            let _ = living.end();
        }
    }
}

/// Runs what may block. It runs to its end though the caller may have given up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    cofferdam_core::blocking(work).await.map_err(not_done)?
}

/// The same for what is nearly always over at once.
pub(crate) async fn briefly<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    cofferdam_core::briefly(work).await.map_err(not_done)?
}

fn not_done(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Unavailable, "the runtime is ending").source(error)
}
