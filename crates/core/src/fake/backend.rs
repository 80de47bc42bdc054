//! Sandboxes that are entries of a table.

use super::Fault;
use super::files::{Access, FakeFiles};
use super::guest::FakeGuest;
use super::inside::Inside;
use crate::{
    Axis, Backend, Basis, Capabilities, Degree, Destroyed, EgressGate, Enforced, Error, ErrorKind,
    Guest, LimitsCount, Pause, Result, SandboxId, SandboxRecord, SandboxStatus, Spec, Workspace,
    admit,
};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A backend in memory. See the [module](super) for what its commands can do.
#[derive(Debug)]
pub struct FakeBackend {
    faults: BTreeSet<Fault>,
    holds: Enforced,
    programs: BTreeMap<String, Vec<String>>,
    sandboxes: Mutex<BTreeMap<SandboxId, Sandbox>>,
    /// The directories of a host that never was, by path.
    directories: Mutex<BTreeMap<PathBuf, Arc<FakeFiles>>>,
    destroy_has_failed: Mutex<bool>,
}

#[derive(Debug)]
struct Sandbox {
    record: SandboxRecord,
    inside: Arc<Inside>,
}

impl Default for FakeBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeBackend {
    /// A backend without a fault that says it enforces everything.
    pub fn new() -> Self {
        Self {
            faults: BTreeSet::new(),
            holds: Enforced::full(Basis::Applied),
            programs: BTreeMap::new(),
            sandboxes: Mutex::default(),
            directories: Mutex::default(),
            destroy_has_failed: Mutex::new(false),
        }
    }

    /// Makes it wrong in one more way.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.insert(fault);
        self
    }

    /// Says how far its sandboxes enforce their policy.
    #[must_use]
    pub fn enforces(mut self, enforced: Enforced) -> Self {
        self.holds = enforced;
        self
    }

    /// Makes commands of this name do these steps, whatever their arguments.
    #[must_use]
    pub fn program(mut self, name: &str, steps: &[&str]) -> Self {
        let steps = steps.iter().map(|step| (*step).to_owned()).collect();
        self.programs.insert(name.to_owned(), steps);
        self
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    fn sandboxes(&self) -> MutexGuard<'_, BTreeMap<SandboxId, Sandbox>> {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a spec holds. Processor time is the one limit that cannot be played.
    fn enforced(&self, spec: &Spec) -> Enforced {
        let mut enforced = self.holds.clone();
        if spec.limits.cpu_millis.is_asked() {
            enforced.lower(Axis::Limits, Degree::Partial, "processor time is not limited");
        }
        enforced
    }

    fn admit(&self, spec: &Spec) -> Result<()> {
        spec.limits.check()?;
        if !spec.profile.egress(&spec.egress)?.is_empty() && !self.has(Fault::WayOutIgnored) {
            return Err(Error::new(ErrorKind::Unsupported, "the fake backend has no way out"));
        }
        if self.has(Fault::UnenforcedStarts) {
            return Ok(());
        }
        let limits = &spec.limits;
        let asked = limits.memory_bytes.is_asked()
            || limits.pids.is_asked()
            || limits.cpu_millis.is_asked()
            || limits.disk_bytes.is_asked();
        let count = if asked || spec.profile.requires_limits() {
            LimitsCount::Yes
        } else {
            LimitsCount::No
        };
        admit(spec.profile, count, spec.on_unavailable, &self.enforced(spec)).map(|_| ())
    }

    /// What is in the workspace of a sandbox. What is read-only is empty, and nobody else's.
    fn files(&self, spec: &Spec) -> Arc<FakeFiles> {
        let fresh = |access| Arc::new(FakeFiles::new(access, self.faults.clone()));
        if !spec.profile.writes_workspace() && !self.has(Fault::WritesReadOnly) {
            return fresh(Access::ReadOnly);
        }
        let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = |path: &PathBuf| {
            let kept = directories.entry(path.clone()).or_insert_with(|| fresh(Access::ReadWrite));
            Arc::clone(kept)
        };
        match &spec.workspace {
            Workspace::Private => fresh(Access::ReadWrite),
            Workspace::Directory(path) => found(path),
            Workspace::CopyOnWrite(path) if self.has(Fault::LayerLands) => found(path),
            Workspace::CopyOnWrite(_) if self.has(Fault::LayerUnseen) => fresh(Access::ReadWrite),
            Workspace::CopyOnWrite(path) => Arc::new(found(path).beside()),
        }
    }

    fn make(&self, id: &SandboxId, spec: &Spec) -> Result<SandboxRecord> {
        let mut sandboxes = self.sandboxes();
        if sandboxes.contains_key(id) && !self.has(Fault::SandboxIdReused) {
            return Err(Error::new(ErrorKind::Conflict, format!("sandbox id {id} is in use")));
        }
        let first = sandboxes.values().next().filter(|_| self.has(Fault::SharesSandboxes));
        let (external_id, inside) = match first {
            Some(first) => (first.record.external_id.clone(), Arc::clone(&first.inside)),
            None => {
                let files = self.files(spec);
                let inside = Inside::new(self.faults.clone(), self.programs.clone(), files, spec);
                (format!("fake-{id}"), inside)
            }
        };
        let record = SandboxRecord {
            id: id.clone(),
            backend: self.name().to_owned(),
            external_id,
            workspace: "/workspace".to_owned(),
            enforced: self.enforced(spec),
            layer: None,
        };
        sandboxes.insert(id.clone(), Sandbox { record: record.clone(), inside });
        Ok(record)
    }
}

#[async_trait]
impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: Pause::No, terminal: true, limits: true }
    }

    async fn probe(&self, spec: &Spec) -> Result<Enforced> {
        let held = if self.has(Fault::ProbeLies) {
            Enforced::full(Basis::Probed)
        } else {
            Enforced { basis: Basis::Probed, ..self.enforced(spec) }
        };
        Ok(held)
    }

    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<SandboxRecord> {
        if self.has(Fault::CreateHangs) {
            std::future::pending::<()>().await;
        }
        if self.has(Fault::CreateFails) {
            return Err(Error::new(ErrorKind::Unavailable, "no sandbox can be made now"));
        }
        self.admit(spec)?;
        let record = self.make(id, spec)?;
        if self.has(Fault::LosesReply) {
            return Err(Error::new(ErrorKind::Unavailable, "the reply was lost"));
        }
        Ok(record)
    }

    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        match self.sandboxes().contains_key(&sandbox.id) {
            true => Ok(SandboxStatus::Running),
            false => Ok(SandboxStatus::Gone),
        }
    }

    async fn destroy(&self, sandbox: &SandboxRecord) -> Result<Destroyed> {
        if self.has(Fault::DestroyDoesNothing) {
            return Ok(Destroyed::default());
        }
        if self.has(Fault::DestroyFailsOnce) {
            let mut failed = self.destroy_has_failed.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::replace(&mut *failed, true) {
                return Err(Error::new(ErrorKind::Unavailable, "the sandbox cannot be ended now"));
            }
        }
        match self.sandboxes().remove(&sandbox.id) {
            Some(ended) => {
                ended.inside.gone.send_replace(true);
                Ok(Destroyed::default())
            }
            None if self.has(Fault::DestroyNotRepeatable) => {
                Err(Error::new(ErrorKind::NotFound, format!("sandbox {} is gone", sandbox.id)))
            }
            None => Ok(Destroyed::default()),
        }
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        if self.has(Fault::ListForgets) {
            return Ok(Vec::new());
        }
        Ok(self.sandboxes().values().map(|sandbox| sandbox.record.clone()).collect())
    }

    async fn open(
        &self,
        sandbox: &SandboxRecord,
        _gate: Arc<dyn EgressGate>,
    ) -> Result<Arc<dyn Guest>> {
        match self.sandboxes().get(&sandbox.id) {
            Some(found) => Ok(Arc::new(FakeGuest::new(Arc::clone(&found.inside)))),
            None => Err(Error::new(ErrorKind::NotFound, format!("sandbox {} is gone", sandbox.id))),
        }
    }
}
