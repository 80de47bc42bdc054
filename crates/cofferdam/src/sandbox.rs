//! A sandbox that takes commands.

use crate::{Builder, Exec};
use cofferdam_core::{
    Backend, Destroyed, EgressGate, Enforced, Error, ErrorKind, Files, Guest, NetworkPolicy,
    PortStream, Result, SandboxId, SandboxRecord, SandboxStatus,
};
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sandbox that takes commands, any number at a time.
///
/// Dropping it ends it in the background; [`Sandbox::destroy`] waits until nothing is left.
#[must_use = "a sandbox that is dropped is ended"]
pub struct Sandbox {
    backend: Arc<dyn Backend>,
    record: SandboxRecord,
    guest: Option<Arc<dyn Guest>>,
    commands: AtomicU64,
    is_owed: bool,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("id", &self.record.id).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Begins to describe one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn made(backend: Arc<dyn Backend>, record: SandboxRecord) -> Self {
        Self { backend, record, guest: None, commands: AtomicU64::new(0), is_owed: true }
    }

    pub(crate) async fn open(mut self, gate: Arc<dyn EgressGate>) -> Result<Self> {
        self.guest = Some(self.backend.open(&self.record, gate).await?);
        Ok(self)
    }

    /// Its name.
    pub fn id(&self) -> &SandboxId {
        &self.record.id
    }

    /// How far its policy holds, as applied and confirmed from outside.
    pub fn enforced(&self) -> &Enforced {
        &self.record.enforced
    }

    /// Where its workspace is inside.
    pub fn workspace(&self) -> &str {
        &self.record.workspace
    }

    /// What the backend knows it by.
    pub fn record(&self) -> &SandboxRecord {
        &self.record
    }

    /// The hatch to the inside, for what this type does not do.
    pub fn guest(&self) -> Result<&Arc<dyn Guest>> {
        let closed = || Error::new(ErrorKind::Unavailable, "the sandbox was not opened");
        self.guest.as_ref().ok_or_else(closed)
    }

    /// The files of its workspace, reached from inside: by the same user and under the same rules as
    /// its commands. Connections are opened when they are needed.
    pub async fn files(&self) -> Result<Files> {
        self.guest()?.files().await
    }

    /// Connects to a port of its own loopback. It is unavailable where nobody listens there.
    pub async fn connect(&self, port: u16) -> Result<PortStream> {
        self.guest()?.connect(port).await
    }

    /// What it may reach now. `None` where it has no way out.
    pub async fn network(&self) -> Result<Option<NetworkPolicy>> {
        self.backend.network(&self.record).await
    }

    /// Lets it reach what this policy says, from the next connection on. Its version is the one after
    /// that in force. Where it was made without a way out it gets none.
    pub async fn set_network(&self, policy: &NetworkPolicy) -> Result<()> {
        self.backend.set_network(&self.record, policy).await
    }

    /// What has become of it.
    pub async fn status(&self) -> Result<SandboxStatus> {
        self.backend.status(&self.record).await
    }

    /// Begins to describe a command: program and arguments, never read by a shell.
    pub fn exec<S: Into<OsString>>(&self, argv: impl IntoIterator<Item = S>) -> Exec<'_> {
        Exec::new(self, argv.into_iter().map(Into::into).collect())
    }

    /// Ends it and all that runs in it, and returns when nothing is left: what it left in the
    /// workspace that somebody should look at.
    ///
    /// Giving up the call goes on with it in the background.
    pub async fn destroy(mut self) -> Result<Destroyed> {
        let result = self.backend.destroy(&self.record).await;
        // Only now: a call that is given up before leaves the end to the drop.
        self.is_owed = result.is_err();
        result
    }

    /// A name for a command that no other one of this sandbox has.
    pub(crate) fn next_command(&self) -> u64 {
        self.commands.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.is_owed {
            return;
        }
        let (backend, record) = (Arc::clone(&self.backend), self.record.clone());
        // A thread of its own, because the caller's runtime may be about to end.
        let end = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                // Nobody is there to tell; the backend keeps what it could not end.
                let _ = runtime.block_on(backend.destroy(&record));
            }
        };
        let _ = std::thread::Builder::new().name("cofferdam-end".to_owned()).spawn(end);
    }
}
