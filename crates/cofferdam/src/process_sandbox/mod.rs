//! A sandbox as an argv, for runners that spawn processes themselves.
//!
//! The shape is that of `fluers-runtime`'s slot for process sandboxes: [`ProcessSandbox::prepare`]
//! once a session, [`ProcessSandbox::wrap`] for every command, [`ProcessSandbox::shutdown`] at the
//! end. [`CofferdamSandbox`] fills it with the `cofferdam` command: what it wraps runs in a fresh
//! sandbox on the session's workspace.
//!
//! [`attach`] does what a session does at its construction: it probes, decides by the
//! [`SandboxPolicy`], and prepares.
//!
//! ```no_run
//! use cofferdam::process_sandbox::{
//!     CofferdamSandbox, ExecSandboxContext, OnUnavailable, SandboxPolicy, SandboxProfile, attach,
//! };
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> cofferdam::Result<()> {
//! let context = ExecSandboxContext {
//!     workspace_path: "/srv/project".into(),
//!     cwd: None,
//!     profile: SandboxProfile::NoNetwork,
//!     egress: Vec::new(),
//! };
//! let policy = SandboxPolicy {
//!     profile: SandboxProfile::NoNetwork,
//!     egress: Vec::new(),
//!     on_unavailable: OnUnavailable::Refuse,
//! };
//! let backend = Arc::new(CofferdamSandbox::new().caller(cofferdam::current_caller()));
//! let attached = attach(backend, &policy, &context).await?;
//! if let Some(sandbox) = attached.sandbox {
//!     let wrapped = sandbox.wrap(&["cargo".into(), "test".into()], &context)?;
//!     println!("{:?}", wrapped.argv);
//! }
//! # Ok(())
//! # }
//! ```

mod attach;
mod command;
mod program;

use async_trait::async_trait;
use cofferdam_core::Result;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use attach::{Attached, attach};
pub use cofferdam_core::{Enforcement, OnUnavailable, Profile as SandboxProfile};
pub use command::CofferdamSandbox;

/// What a sandbox is told of the session, and of one call.
#[derive(Debug, Clone)]
pub struct ExecSandboxContext {
    /// The root of the session's workspace.
    pub workspace_path: PathBuf,
    /// The working directory of this call. `None`: the workspace.
    pub cwd: Option<PathBuf>,
    /// The profile that the session asked for.
    pub profile: SandboxProfile,
    /// Destinations that it may reach: `HOST[:PORT]`, `*.HOST[:PORT]` or `*`.
    pub egress: Vec<String>,
}

/// What a runner spawns instead of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedCommand {
    /// The argv to spawn. Never empty.
    pub argv: Vec<String>,
    /// Variables that it needs, to be set after the runner has cleared the environment.
    pub env: BTreeMap<String, String>,
}

/// What a session asks of its sandbox, and what is to be done where it cannot be had.
#[derive(Debug, Clone)]
pub struct SandboxPolicy {
    /// The profile that it asks for.
    pub profile: SandboxProfile,
    /// Destinations that it may reach.
    pub egress: Vec<String>,
    /// What to do where the profile cannot be enforced in full.
    pub on_unavailable: OnUnavailable,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// How far the profile is enforced.
    pub enforcement: Enforcement,
    /// Why not in full: one sentence each.
    pub reasons: Vec<String>,
}

/// A sandbox that turns argvs into other argvs.
#[async_trait]
pub trait ProcessSandbox: Send + Sync {
    /// Gets ready for a session. Called once before any [`ProcessSandbox::wrap`].
    async fn prepare(&self, ctx: &ExecSandboxContext) -> Result<()>;

    /// The argv that runs this one inside, and the variables that it needs. Cheap. An empty argv is
    /// an error.
    fn wrap(&self, argv: &[String], ctx: &ExecSandboxContext) -> Result<WrappedCommand>;

    /// Tries whether `profile` can be enforced on this host.
    async fn probe(&self, profile: &SandboxProfile) -> Result<Enforcement>;

    /// The same, with why it is less than all, as far as that is known. Whoever says nothing else knows none.
    async fn probe_with_reasons(&self, profile: &SandboxProfile) -> Result<Probed> {
        Ok(Probed { enforcement: self.probe(profile).await?, reasons: Vec::new() })
    }

    /// Gives back what the session used. Called once at its end; nothing can be wrapped after it.
    async fn shutdown(&self) -> Result<()>;
}
