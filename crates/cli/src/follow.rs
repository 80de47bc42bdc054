//! A command of a session, followed from where somebody is to its end: what it writes goes to the
//! caller, what the caller types and sends goes to it.

mod input;
mod output;
mod permissions;

pub(crate) use input::Passed;
pub(crate) use output::{Memory, Sink, Streams};

use crate::door::Session;
use cofferdam_core::{ExecStatus, ProcessId, Result, Seen};

/// How a command was left.
#[derive(Debug)]
pub(crate) enum Left {
    /// It has ended.
    Ended(Box<ExecStatus>),
    /// The caller left it running.
    Running,
    /// The caller cannot wait any longer for it to take a signal.
    Abandoned,
}

/// Follows a command, from these places of its streams on, until it has ended or is left.
pub(crate) async fn follow(
    (session, exec): (&Session, &ProcessId),
    from: Seen,
    sink: &mut (impl Sink + Send),
    passed: Passed,
) -> Result<Left> {
    let caller = input::Caller::new(passed)?;
    tokio::select! {
        // What was written is shown before anything else is looked at.
        biased;
        ended = output::pump((session, exec), from, sink) => Ok(Left::Ended(Box::new(ended?))),
        left = caller.pass(session, exec) => left,
        never = permissions::tell(session) => match never {},
    }
}
