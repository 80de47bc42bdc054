//! What can go wrong between a client and a keeper.

use std::time::Duration;

/// A method of a durable backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Call {
    Create,
    Status,
    Pause,
    Resume,
    SetDeadlines,
    Destroy,
    Forget,
    Ids,
    List,
    Journal,
    Start,
    Execs,
    Watch,
    Read,
    Input,
    Network,
    SetNetwork,
    Connections,
    Files,
}

impl Call {
    /// All methods.
    pub const ALL: [Self; 19] = [
        Self::Create,
        Self::Status,
        Self::Pause,
        Self::Resume,
        Self::SetDeadlines,
        Self::Destroy,
        Self::Forget,
        Self::Ids,
        Self::List,
        Self::Journal,
        Self::Start,
        Self::Execs,
        Self::Watch,
        Self::Read,
        Self::Input,
        Self::Network,
        Self::SetNetwork,
        Self::Connections,
        Self::Files,
    ];
}

/// How one call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// Nothing is done, and the caller is told so.
    FailBefore,
    /// It is done, and the caller is told that it was not.
    FailAfter,
    /// Nothing is done, and no answer comes.
    HangBefore,
    /// It is done, and no answer comes.
    HangAfter,
    /// It is done after this long, whether or not the caller still waits.
    Late(Duration),
    /// The caller's process dies before anything is done; see
    /// [`FakeDurable::crashed`](super::FakeDurable::crashed).
    CrashBefore,
    /// The caller's process dies after it was done.
    CrashAfter,
    /// The sandbox and its keeper die first, and leave no word.
    Vanish,
}

impl Mishap {
    /// One of each sort; late means a second.
    pub const ALL: [Self; 8] = [
        Self::FailBefore,
        Self::FailAfter,
        Self::HangBefore,
        Self::HangAfter,
        Self::Late(Duration::from_secs(1)),
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Vanish,
    ];

    /// Whether the caller is expected to die of it.
    pub fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }
}
