//! A sandbox runtime for AI agents.
//!
//! A [`Sandbox`] is an isolated computer on this machine: its own files, processes and network, and
//! a workspace that it shares with you if you wish. It takes commands until it is destroyed.
//!
//! ```
//! use cofferdam::Sandbox;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> cofferdam::Result<()> {
//! let sandbox = Sandbox::builder().private_workspace().create().await?;
//! let output = sandbox.exec(["sh", "-c", "echo $((6 * 7)); ls /home"]).await?;
//! assert_eq!(output.stdout, b"42\nsandbox\n");
//! sandbox.destroy().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is read from your process
//!
//! Policy comes from the builder alone. Nothing of your environment reaches a command unless you
//! hand it over: [`current_caller`] reads what the command line would (the `PATH`, to show the
//! toolchains on it, and the variables of its allowlist), and you pass that to
//! [`Builder::caller`]. [`local_backend`] reads where to keep its records, and nothing else.
//!
//! # What ends when
//!
//! A sandbox ends with [`Sandbox::destroy`], in the background when it is dropped, and with your
//! process, however that ends. [`Sandbox::destroy`] alone says that nothing is left.
//!
//! # The contract
//!
//! [`Backend`] and [`Guest`] are what a sandbox is made of, [`DurableBackend`] is what outlives a
//! process, and all may be used directly or implemented anew with what is named here, in [`files`],
//! [`proof`] and [`secret`], and with [`macro@async_trait`]. With feature `fake` there is a backend in memory, with faults to order, for your own tests.
//! [`process_sandbox`] is for runners that spawn processes themselves and only want an argv.

mod backend;
mod builder;
mod exec;
mod image;
mod piped;
pub mod process_sandbox;
mod sandbox;
mod surroundings;

pub use async_trait::async_trait;
pub use backend::{kept_backend, local_backend, own_backend, prepared_backend};
pub use builder::Builder;
pub use cofferdam_archive as archive;
#[cfg(feature = "fake")]
pub use cofferdam_core::fake;
pub use cofferdam_core::secret::GivenSecret;
pub use cofferdam_core::{
    Admission, ApplyOrder, ApplyReport, Axis, Backend, Basis, Below, ByteString, Caller,
    Capabilities, Cause, Change, ChangeKind, Chunk, Collector, Command, Conflict,
    ConnectionDecision, ConnectionHow, ConnectionReport, Connections, ControlFiles, Deadlines,
    Degree, Denial, DestroyReason, Destroyed, DirectoryIdentity, DiscardOrder, Duplex,
    DurableBackend, EgressGate, EgressRule, Ending, EndingKind, Enforced, Enforcement, Error,
    ErrorBody, ErrorKind, Exchanged, ExecEnded, ExecInput, ExecOrder, ExecStatus, FileState, Files,
    Former, Found, Given, Guest, GuestPath, Happened, Held, HostMount, HostPattern, Image,
    ImageIds, ImageLayer, ImageRun, JournalEntry, KeptLayer, KillOnDrop, Killer, LayerChoice,
    LayerExchange, LayerLook, LayerMark, LayerNote, LayerTier, Limit, Limits, LimitsCount, Lost,
    MappedFiles, NetworkPolicy, NoGate, Omitted, OnUnavailable, Output, Part, Pause, PausedBy,
    Permission, PortLink, PortStream, ProbeReport, Process, ProcessEvent, ProcessId, ProcessInput,
    Profile, Progress, Proof, Prove, Result, SandboxId, SandboxMetrics, SandboxOrder,
    SandboxRecord, SandboxStatus, SecretAlarm, Seen, SensitiveWrites, Settlement, Side, Signal,
    Spec, Spooled, Standard, Standing, Stdin, Step, Terminal, Unit, UsageReport, User, Verdict,
    WaitingConnection, Workspace, WorkspaceEntry, WorkspaceOrder, admit, collect, no_way_out,
    parse_bytes, parse_cpu, parse_duration, run_by_spawning,
};
pub use cofferdam_core::{files, proof, secret};
pub use cofferdam_local::assemble::Farewell;
pub use cofferdam_local::backend::{LocalBackend, Preparation};
pub use cofferdam_local::gate::GateProgram;
pub use cofferdam_local::keeper::KeptBackend;
pub use cofferdam_search as search;
pub use exec::Exec;
pub use image::open_image;
pub use piped::PipedProcess;
pub use sandbox::Sandbox;
pub use surroundings::{current_caller, state_home};
