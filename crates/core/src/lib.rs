//! The contract between Cofferdam's doors and its backends.
//!
//! A [`Backend`] makes, finds and ends sandboxes; a [`Guest`] is the hatch to what runs inside one.
//! What is wanted is a [`Spec`]; how far it holds is an [`Enforced`]; how a command ended is an
//! [`Ending`]. Nothing here knows the time, the environment or the disk.

mod backend;
mod blocking;
mod cause;
mod collect;
mod command;
mod denial;
mod durable;
mod effect;
mod ending;
mod enforcement;
mod error;
#[cfg(feature = "fake")]
pub mod fake;
pub mod files;
mod gate;
mod guest;
mod hidden;
mod id;
mod image;
mod journal;
mod layer;
mod limits;
pub mod line;
mod mapped;
mod metrics;
pub mod network;
mod path;
mod permission;
pub mod policy;
mod port;
mod progress;
pub mod proof;
mod quantity;
mod receipt;
mod report;
pub mod secret;
mod signal;
mod spec;
mod stored_spec;
pub mod way;

pub use backend::{Backend, Capabilities, Destroyed, Pause, SandboxRecord, SandboxStatus};
pub use blocking::{apart, beside, blocking, briefly, to_its_end};
pub use cause::{LimitHits, LimitWatch, NoWatch};
pub use cofferdam_wire::port::MAX_PORT_CONNECTIONS;
pub use cofferdam_wire::{ByteString, hexadecimal};
pub use collect::{Collector, KillOnDrop, Lost, Output, collect, run_by_spawning};
pub use command::{Command, Stdin, Terminal, check_terminal, check_variable};
pub use denial::{Denial, Denials, MAX_DENIAL_WORD_BYTES, MAX_DENIALS, denials};
pub use durable::{
    Chunk, Connections, Deadlines, DestroyReason, DurableBackend, Exchanged, ExecEnded, ExecInput,
    ExecOrder, ExecStatus, Found, KeptLayer, LayerExchange, Part, SandboxOrder, Seen, Spooled,
    WHOLE_INPUT_BYTES, no_way_out,
};
pub use effect::{Below, Effect, Former, LayerLook, LayerMark};
pub use ending::{Cause, Ending, EndingKind};
pub use enforcement::{
    Admission, Axis, Basis, Degree, Enforced, Enforcement, Limited, LimitsCount, OnUnavailable,
    admit,
};
pub use error::{Error, ErrorKind, Result};
pub use files::Files;
pub use gate::{Duplex, EgressGate, NoGate};
pub use guest::{Given, Guest, Killer, Process, ProcessEvent, ProcessInput, Standard};
pub use hidden::{is_hidden, made_visible};
pub use id::{ProcessId, SandboxId};
pub use image::{Image, ImageIds, ImageLayer, ImageRun};
pub use journal::{Happened, JournalEntry, PausedBy};
pub use layer::{
    ApplyOrder, ApplyReport, Change, ChangeKind, Conflict, ControlFiles, DiscardOrder, FileState,
    Held, LayerNote, LayerTier, MAX_LINK_BYTES, Side, Standing, WorkspaceEntry, WorkspaceOrder,
    is_at_or_below, is_within, leads_out,
};
pub use limits::{Limit, Limits};
pub use mapped::{MappedFiles, tells_of_stores};
pub use metrics::SandboxMetrics;
pub use network::{
    ConnectionDecision, ConnectionHow, ConnectionReport, FromGate, GateOrder, GateSocket,
    NetworkPolicy, SecretAlarm, ToGate,
};
pub use path::GuestPath;
pub use permission::{
    MAX_WAITING_REASON_BYTES, Opening, Permission, Settlement, Verdict, WaitingConnection,
};
pub use policy::{EgressRule, HostPattern, Profile};
pub use port::{PortLink, PortStream};
pub use progress::{Progress, Step, Unit};
pub use proof::{ProbeReport, Proof, Prove};
pub use quantity::{parse_bytes, parse_cpu, parse_duration};
pub use receipt::{FileSeen, FilesSeen, Receipt, SaidByGuest, SeenByHost};
pub use report::{
    EndingReport, ErrorBody, ErrorReport, Omitted, RunReport, StreamReport, UsageReport,
};
pub use signal::Signal;
pub use spec::{
    Caller, DirectoryIdentity, HostMount, LayerChoice, SensitiveWrites, Spec, User, Workspace,
};
pub use stored_spec::StoredSpec;
