//! What requests hold, and what a server tells beside the objects of every door. Reading them says nothing
//! of what they come to: that is for whoever takes the request.

mod execs;
mod files;
mod layers;
mod sandboxes;
mod server;
mod socket;

pub use execs::{
    ExecWish, FailureName, RunWish, ShellCheckWish, ShellRunWish, SignalWish, SizeWish, StartWish,
};
pub use files::{
    CaseWish, ChmodWish, CopyWish, EditWish, EditsWish, GlobWish, GrepWish, KindWish, MkdirWish,
    MoveWish, ReadManyWish, ScopeWish, TellWish,
};
pub use layers::{ApplyWish, ChosenWish, DiscardWish, ForkWish, SnapshotWish, UndoWish};
pub use sandboxes::{
    ExtendWish, LimitsWish, ProfileName, PullName, SandboxPage, SandboxWish, SpecWish,
};
pub use server::{
    AuditList, HealthReport, ProblemReport, ProblemWith, ToolArguments, ToolList, ToolOutcome,
    ToolReport,
};
pub use socket::{SocketAsked, SocketTold};
