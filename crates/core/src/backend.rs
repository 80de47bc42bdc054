//! Where sandboxes come from.

use crate::{
    EgressGate, Enforced, Guest, LayerNote, NetworkPolicy, Result, SandboxId, Spec, no_way_out,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Makes, finds and ends sandboxes of one kind. Every method may be repeated.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Its stable name, as in `--backend local`.
    fn name(&self) -> &'static str;

    /// What it can do at all, whatever the host.
    fn capabilities(&self) -> Capabilities;

    /// Builds a throw-away sandbox for this spec, attacks it, and says how far it held.
    async fn probe(&self, spec: &Spec) -> Result<Enforced>;

    /// Makes a sandbox. Marked with `id`, so that [`Backend::list`] finds it even if the caller
    /// crashed before it stored the record. An id that is in use is a conflict.
    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<SandboxRecord>;

    /// What has become of a sandbox.
    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus>;

    /// Ends a sandbox and all that runs in it, and returns when nothing is left. Ending what is gone
    /// succeeds, and nothing is said of it.
    async fn destroy(&self, sandbox: &SandboxRecord) -> Result<Destroyed>;

    /// Everything that this backend made and that still exists.
    async fn list(&self) -> Result<Vec<SandboxRecord>>;

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

    /// The hatch to the inside. Requests for the way out are put to `gate`.
    async fn open(
        &self,
        sandbox: &SandboxRecord,
        gate: Arc<dyn EgressGate>,
    ) -> Result<Arc<dyn Guest>>;
}

/// What a sandbox left behind that somebody should look at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destroyed {
    /// Control files that appeared in the workspace while it was there, relative to it: hooks of git,
    /// configuration of shells, editors and agents. What stood there before was protected; these can
    /// turn a later run outside of a sandbox against its user.
    pub new_control_files: Vec<String>,
}

/// What a backend can do at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// What a pause keeps.
    pub pause: Pause,
    /// Pseudo-terminals.
    pub terminal: bool,
    /// Limits of memory, processes and processor time.
    pub limits: bool,
}

/// What a pause keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pause {
    /// There is no pause.
    No,
    /// Files are kept, processes are not.
    FilesKept,
    /// Everything is kept.
    MemoryKept,
}

/// A sandbox as data: what is stored is what is passed, so a restart rebuilds nothing. Holds no
/// secret. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// The caller's name for it.
    pub id: SandboxId,
    /// The backend's name.
    pub backend: String,
    /// How the backend finds it again.
    pub external_id: String,
    /// Where the workspace is inside.
    pub workspace: String,
    /// How far its policy holds.
    pub enforced: Enforced,
    /// What its layer is, where its workspace is copy-on-write and the layer is kept. Came later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<LayerNote>,
}

/// What has become of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxStatus {
    /// It takes commands.
    Running,
    /// It stands still and keeps what it holds.
    Paused,
    /// It is not there, or never was.
    Gone,
}
