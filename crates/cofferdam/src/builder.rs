//! A sandbox as somebody wants it, step by step.

use crate::{Sandbox, local_backend};
use cofferdam_core::{
    Backend, Caller, EgressGate, Enforced, Error, ErrorKind, Image, LayerChoice, Limit, Limits,
    NoGate, OnUnavailable, Profile, Result, SandboxId, SensitiveWrites, Spec, User, Workspace,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Describes a sandbox and makes it.
///
/// Without further words: profile `no-network`, an empty private workspace, nothing of the caller's
/// environment, the default limits, and refusal of what cannot be enforced here.
#[must_use]
pub struct Builder {
    spec: Spec,
    id: Option<SandboxId>,
    backend: Option<Arc<dyn Backend>>,
    gate: Arc<dyn EgressGate>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the spec: its variables may hold secrets.
        let backend = self.backend.as_ref().map(|backend| backend.name());
        let mut shown = f.debug_struct("Builder");
        shown.field("id", &self.id).field("profile", &self.spec.profile);
        shown.field("backend", &backend).finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            spec: Spec::new(Workspace::Private, Caller::default()),
            id: None,
            backend: None,
            gate: Arc::new(NoGate),
        }
    }
}

impl Builder {
    /// Works in this directory, at `/workspace` and at its own path. A relative one is below the
    /// current directory of the process.
    pub fn workspace(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spec.workspace = Workspace::Directory(directory.into());
        self
    }

    /// Shows this directory, and what is written there lands in a layer that is gone with the sandbox.
    /// The directory itself stays as it is.
    pub fn copy_on_write_workspace(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spec.workspace = Workspace::CopyOnWrite(directory.into());
        self
    }

    /// Chooses what makes that layer: the kernel's overlay, a copy of the directory, or, unless this is
    /// called, the first of the two that can be had.
    pub fn layer(mut self, choice: LayerChoice) -> Self {
        self.spec.layer = choice;
        self
    }

    /// Lies on this image in place of the host's root, of which nothing is shown then. What is written
    /// to it is gone with the sandbox. See [`open_image`](crate::open_image).
    pub fn image(mut self, image: Image) -> Self {
        self.spec.image = Some(image);
        self
    }

    /// Works in an empty directory of its own at `/workspace`, gone with the sandbox.
    pub fn private_workspace(mut self) -> Self {
        self.spec.workspace = Workspace::Private;
        self
    }

    /// What it may do. One that allows destinations takes them from [`Builder::egress`], and needs a gate
    /// as that says.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.spec.profile = profile;
        self
    }

    /// Shows a host path read-only, at its own place.
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.spec.read.push(path.into());
        self
    }

    /// Shows a host path for writing, at its own place.
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.spec.write.push(path.into());
        self
    }

    /// Hides a path, whatever shows it.
    pub fn hide(mut self, path: impl Into<PathBuf>) -> Self {
        self.spec.hide.push(path.into());
        self
    }

    /// A variable for every command.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.spec.env.insert(name.into(), value.into());
        self
    }

    /// The most memory that all its processes may use together. Refused where it cannot be held.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.spec.limits.memory_bytes = Limit::Asked(bytes);
        self
    }

    /// The most processes and threads, up to [`Limits::MOST_PIDS`]. Refused where it cannot be held.
    pub fn pids(mut self, count: u32) -> Self {
        self.spec.limits.pids = Limit::Asked(count);
        self
    }

    /// How much processor time it gets, in thousandths of a processor. Refused where it cannot be
    /// held.
    pub fn cpu_millis(mut self, millis: u32) -> Self {
        self.spec.limits.cpu_millis = Limit::Asked(millis);
        self
    }

    /// The size of its private writable space: `/tmp`, `/var/tmp`, `$HOME`, `/dev/shm`.
    pub fn disk_bytes(mut self, bytes: u64) -> Self {
        self.spec.limits.disk_bytes = Limit::Asked(bytes);
        self
    }

    /// Allows a destination: `HOST`, `HOST:PORT` or `HOST:FIRST-LAST`, where the host may be `*.NAME`,
    /// `ADDRESS/PREFIX`, or `*` for any public address. A rule that makes no sense is an error here, one
    /// that the profile does not allow at the making.
    ///
    /// Connections are made by a gate, which is a process of its own: the command `cofferdam`.
    /// [`local_backend`] has none, and refuses a sandbox with a way out. Name it, and give the backend
    /// to [`Builder::backend`]:
    ///
    /// ```no_run
    /// # fn main() -> cofferdam::Result<()> {
    /// use cofferdam::{GateProgram, Profile, Sandbox, own_backend, state_home};
    /// use std::{path::Path, sync::Arc};
    ///
    /// let gate = GateProgram::open(Path::new("/usr/local/bin/cofferdam"))?;
    /// let backend = Arc::new(own_backend(state_home()?).with_gate(gate));
    /// let builder = Sandbox::builder().profile(Profile::RepoWrite).backend(backend);
    /// let builder = builder.egress("example.com:443")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn egress(mut self, rule: &str) -> Result<Self> {
        self.spec.egress.push(rule.parse()?);
        Ok(self)
    }

    /// Who its commands are.
    pub fn user(mut self, user: User) -> Self {
        self.spec.user = user;
        self
    }

    /// What to do where a promise cannot be kept here. What was kept is in [`Sandbox::enforced`].
    pub fn on_unavailable(mut self, choice: OnUnavailable) -> Self {
        self.spec.on_unavailable = choice;
        self
    }

    /// Whether git hooks, start files and editor or agent configuration in the workspace can be
    /// written.
    pub fn sensitive_writes(mut self, choice: SensitiveWrites) -> Self {
        self.spec.sensitive_writes = choice;
        self
    }

    /// Who asks, as far as the view depends on it; see [`current_caller`](crate::current_caller).
    pub fn caller(mut self, caller: Caller) -> Self {
        self.spec.caller = caller;
        self
    }

    /// Its name, by which [`Backend::list`] shows it. One that is in use is a conflict. Without a
    /// name it gets one that nobody else has.
    pub fn id(mut self, id: SandboxId) -> Self {
        self.id = Some(id);
        self
    }

    /// Where it comes from. Without this: [`local_backend`].
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Who decides on connections that it asks for. Without this nobody, and none is made.
    pub fn gate(mut self, gate: Arc<dyn EgressGate>) -> Self {
        self.gate = gate;
        self
    }

    /// The same as data, checked, with paths made plain.
    pub fn spec(&self) -> Result<Spec> {
        let mut spec = self.spec.clone();
        match &mut spec.workspace {
            Workspace::Directory(directory) | Workspace::CopyOnWrite(directory) => {
                *directory = workspace(directory)?;
            }
            Workspace::Private => {}
        }
        for path in spec.read.iter_mut().chain(&mut spec.write).chain(&mut spec.hide) {
            *path = plain(path)?;
        }
        for path in spec.read.iter().chain(&spec.write) {
            std::fs::symlink_metadata(path).map_err(|cause| missing(path, cause))?;
        }
        check(&spec.limits)?;
        Ok(spec)
    }

    /// Makes the sandbox, and returns when it takes commands. Giving up the call ends it.
    ///
    /// Like all that is asynchronous here it has to be called in a tokio runtime with I/O and time, as
    /// `enable_all` makes one and `#[tokio::main]` does; elsewhere it panics.
    pub async fn create(self) -> Result<Sandbox> {
        let spec = self.spec()?;
        let backend = self.backend.map_or_else(shared, Ok)?;
        let id = self.id.map_or_else(own_id, Ok)?;
        let made = Sandbox::made(Arc::clone(&backend), backend.create(&id, &spec).await?);
        made.open(self.gate).await
    }

    /// Makes a throw-away sandbox of this description in a workspace of its own, attacks it from
    /// inside, and says how far it held. Takes seconds.
    pub async fn probe(self) -> Result<Enforced> {
        let spec = self.spec()?;
        self.backend.map_or_else(shared, Ok)?.probe(&spec).await
    }
}

fn shared() -> Result<Arc<dyn Backend>> {
    local_backend().map(|backend| backend as Arc<dyn Backend>)
}

/// A name that no other sandbox has: time and process tell those of other processes apart.
fn own_id() -> Result<SandboxId> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SandboxId::new(format!("{:x}-{:x}-{count:x}", std::process::id(), now.as_micros()))
}

fn workspace(directory: &Path) -> Result<PathBuf> {
    let found = directory.canonicalize().map_err(|cause| {
        let what = format!("the workspace {} cannot be used", directory.display());
        Error::new(ErrorKind::NotFound, what)
            .source(cause)
            .hint("Name a directory that exists, or use a private workspace.")
    })?;
    if !found.is_dir() {
        let what = format!("the workspace {} is not a directory", directory.display());
        return Err(Error::new(ErrorKind::Usage, what).hint("Show a file with `read` or `write`."));
    }
    Ok(found)
}

/// The path without `.` and `..`. One with `..` must exist, because what that means depends on
/// symbolic links.
fn plain(path: &Path) -> Result<PathBuf> {
    use std::path::Component;
    if path.components().any(|part| part == Component::ParentDir) {
        return path.canonicalize().map_err(|cause| missing(path, cause));
    }
    let path = std::path::absolute(path).map_err(|cause| missing(path, cause))?;
    Ok(path.components().collect())
}

fn missing(path: &Path, cause: std::io::Error) -> Error {
    Error::new(ErrorKind::NotFound, format!("{} cannot be shown", path.display()))
        .source(cause)
        .hint("Name a path that exists.")
}

/// A limit of nothing is no limit anybody means.
fn check(limits: &Limits) -> Result<()> {
    let asked = [
        ("memory_bytes", limits.memory_bytes),
        ("pids", u64_of(limits.pids)),
        ("cpu_millis", u64_of(limits.cpu_millis)),
        ("disk_bytes", limits.disk_bytes),
    ];
    match asked.into_iter().find(|(_, limit)| *limit == Limit::Asked(0)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::new(ErrorKind::Usage, format!("the limit {name} is 0"))
            .hint("Leave it out for the default.")),
    }
}

fn u64_of(limit: Limit<u32>) -> Limit<u64> {
    match limit {
        Limit::Default(value) => Limit::Default(value.into()),
        Limit::Asked(value) => Limit::Asked(value.into()),
    }
}
