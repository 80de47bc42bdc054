//! Ways to be wrong.

/// One way in which a [`FakeBackend`](super::FakeBackend) is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No sandbox can be made.
    CreateFails,
    /// Making a sandbox never returns.
    CreateHangs,
    /// The sandbox is made and the caller is told that it is not.
    LosesReply,
    /// An id of a sandbox that is in use is taken once more.
    SandboxIdReused,
    /// All sandboxes are one.
    SharesSandboxes,
    /// The first try to end a sandbox fails.
    DestroyFailsOnce,
    /// Ending what is gone fails.
    DestroyNotRepeatable,
    /// A sandbox that was ended is there still.
    DestroyDoesNothing,
    /// What exists is not listed.
    ListForgets,
    /// The probe says that all is enforced, whatever is.
    ProbeLies,
    /// A sandbox starts though less is enforced than was asked for.
    UnenforcedStarts,
    /// A rule of the way out, which nobody serves, is dropped without a word.
    WayOutIgnored,
    /// A read-only workspace is written.
    WritesReadOnly,
    /// What is written to a copy-on-write workspace lands in the directory.
    LayerLands,
    /// What is written to a copy-on-write workspace is not seen there.
    LayerUnseen,
    /// Every command exits 0.
    WrongExitCode,
    /// A command that a signal ended seems to have exited.
    SignalHidden,
    /// A program that is not there seems to have run and exited.
    NotStartedHidden,
    /// An id of a command that is in use runs once more.
    RunsTwice,
    /// Standard error comes as standard output.
    MergesStreams,
    /// Bytes that are not text are lost.
    DropsBytes,
    /// Output past 64 KiB is lost without a count.
    OutputUncounted,
    /// What a command wrote before its time was over is lost.
    PartialOutputLost,
    /// Time limits are not kept.
    TimeoutIgnored,
    /// Children outlive their command.
    LeaksChildren,
    /// The end of a command waits for children that hold its output.
    WaitsForChildren,
    /// Standard input stays open though nobody asked for it.
    StdinOpen,
    /// A command whose output nobody reads stops all others.
    SlowReaderBlocksAll,
    /// A terminal is promised and pipes are given.
    TerminalPretended,
    /// A new size of the terminal does not arrive.
    ResizeLost,
    /// A command that used too much memory seems to have been killed by somebody.
    MemoryCauseHidden,
    /// The limit of processes is not kept.
    PidsUnlimited,
    /// Processes of the host are seen.
    HostPidVisible,
    /// Files of the host are read.
    HostFileReadable,
    /// The caller's variables are passed on.
    EnvironmentLeaks,
    /// Bytes of files that are not text are lost.
    FilesDropBytes,
    /// Files are others than those that commands see.
    FilesApart,
    /// A file is written whatever was to be so before.
    FilesOverwrite,
    /// Of several changes at once, those before one that fails stay.
    FilesCarryPart,
    /// Files are changed that are not as expected.
    FilesCarryStale,
    /// Removing what is not there succeeds.
    FilesRemoveAgain,
    /// Of several files none is read behind one that cannot be.
    FilesOneStopsAll,
    /// Links in a directory are not copied with it.
    FilesCopyForgetsLinks,
    /// A watch tells a new name as one that is gone and one that is made.
    FilesWatchSplitsNames,
    /// A watch tells nothing of what is in directories that were made since it began.
    FilesWatchMissesNew,
    /// A watch goes on without a word when its sandbox is gone.
    FilesWatchOutlives,
    /// A path may go up from the root of the workspace.
    PathsLeave,
    /// A link that leads out of the workspace is followed.
    LinksLeadOut,
    /// Bytes that are not text are lost on the way to a port and back.
    PortsDropBytes,
    /// A connection to a port is made though nobody listens there.
    PortsOpenAnyway,
    /// Ports are those of the host.
    PortsOfHost,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 51] = [
        Self::CreateFails,
        Self::CreateHangs,
        Self::LosesReply,
        Self::SandboxIdReused,
        Self::SharesSandboxes,
        Self::DestroyFailsOnce,
        Self::DestroyNotRepeatable,
        Self::DestroyDoesNothing,
        Self::ListForgets,
        Self::ProbeLies,
        Self::UnenforcedStarts,
        Self::WayOutIgnored,
        Self::WritesReadOnly,
        Self::LayerLands,
        Self::LayerUnseen,
        Self::WrongExitCode,
        Self::SignalHidden,
        Self::NotStartedHidden,
        Self::RunsTwice,
        Self::MergesStreams,
        Self::DropsBytes,
        Self::OutputUncounted,
        Self::PartialOutputLost,
        Self::TimeoutIgnored,
        Self::LeaksChildren,
        Self::WaitsForChildren,
        Self::StdinOpen,
        Self::SlowReaderBlocksAll,
        Self::TerminalPretended,
        Self::ResizeLost,
        Self::MemoryCauseHidden,
        Self::PidsUnlimited,
        Self::HostPidVisible,
        Self::HostFileReadable,
        Self::EnvironmentLeaks,
        Self::FilesDropBytes,
        Self::FilesApart,
        Self::FilesOverwrite,
        Self::FilesCarryPart,
        Self::FilesCarryStale,
        Self::FilesRemoveAgain,
        Self::FilesOneStopsAll,
        Self::FilesCopyForgetsLinks,
        Self::FilesWatchSplitsNames,
        Self::FilesWatchMissesNew,
        Self::FilesWatchOutlives,
        Self::PathsLeave,
        Self::LinksLeadOut,
        Self::PortsDropBytes,
        Self::PortsOpenAnyway,
        Self::PortsOfHost,
    ];
}
