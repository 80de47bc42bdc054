//! Exit codes: the one table of them.

use crate::verb::VerbName;
use cofferdam_core::{Ending, ErrorKind};

/// Everything that was asked for was done.
pub(crate) const DONE: u8 = 0;
/// A verb other than `run` and `exec` could not do what was asked, or what it looked at is not in order.
pub(crate) const FAILED: u8 = 1;
/// The command line of another verb than those of [`NOT_SET_UP`] makes no sense.
pub(crate) const USAGE: u8 = 2;
/// `policy learn`: the rules suffice, and the command failed under them as it did before.
pub(crate) const COMMAND_FAILED: u8 = 3;
/// Cofferdam itself could not do its part of `run`, `exec`, `wait` or `probe`.
pub(crate) const NOT_SET_UP: u8 = 125;

/// The exit code of a command's ending.
pub(crate) fn of_ending(ending: &Ending) -> u8 {
    // A code is a byte to the system too; what does not fit is no success.
    u8::try_from(ending.exit_code()).unwrap_or(FAILED)
}

/// The exit code for an error of this kind in this verb.
///
/// `run`, `exec`, `wait` and `probe` keep 125 for every fault of Cofferdam's own, so that the codes
/// below it are the command's, or the verdict's.
#[expect(clippy::too_many_lines, reason = "a line a verb, so that a new one is thought of")]
pub(crate) fn of_error(verb: VerbName, kind: ErrorKind) -> u8 {
    match verb {
        VerbName::Run | VerbName::Exec | VerbName::Wait | VerbName::Probe => NOT_SET_UP,
        VerbName::Create
        | VerbName::Ensure
        | VerbName::Ps
        | VerbName::Logs
        | VerbName::Attach
        | VerbName::Signal
        | VerbName::Shell
        | VerbName::File
        | VerbName::Diff
        | VerbName::Apply
        | VerbName::Discard
        | VerbName::History
        | VerbName::Undo
        | VerbName::Snapshot
        | VerbName::Fork
        | VerbName::Port
        | VerbName::Network
        | VerbName::Approve
        | VerbName::Audit
        | VerbName::Policy
        | VerbName::Ls
        | VerbName::Show
        | VerbName::Pause
        | VerbName::Resume
        | VerbName::Stop
        | VerbName::Rm
        | VerbName::Extend
        | VerbName::Events
        | VerbName::Gc
        | VerbName::Image
        | VerbName::Explain
        | VerbName::Doctor
        | VerbName::Wrap
        | VerbName::Serve
        | VerbName::Key
        | VerbName::Mcp
        | VerbName::Secret
        | VerbName::Config
        | VerbName::Completions
        | VerbName::Man
        | VerbName::Complete
        | VerbName::Gate
        | VerbName::None => match kind {
            ErrorKind::Usage => USAGE,
            ErrorKind::Config
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::PathEscape
            | ErrorKind::NotAFile
            | ErrorKind::TooLarge
            | ErrorKind::Unsupported
            | ErrorKind::Denied
            | ErrorKind::Unenforceable
            | ErrorKind::Unavailable
            | ErrorKind::SetupFailed
            | ErrorKind::TimedOut
            | ErrorKind::Canceled
            | ErrorKind::Protocol
            | ErrorKind::Io => FAILED,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE_OF_ITS_OWN: [VerbName; 4] =
        [VerbName::Run, VerbName::Exec, VerbName::Wait, VerbName::Probe];

    #[test]
    fn every_fault_of_verbs_with_a_code_of_their_own_is_125() {
        for kind in ErrorKind::ALL {
            for verb in CODE_OF_ITS_OWN {
                assert_eq!(of_error(verb, kind), 125, "{verb:?} {kind:?}");
            }
        }
    }

    #[test]
    fn other_verbs_know_usage_and_failure() {
        for verb in VerbName::ALL {
            if CODE_OF_ITS_OWN.contains(&verb) {
                continue;
            }
            for kind in ErrorKind::ALL {
                let code = if kind == ErrorKind::Usage { 2 } else { 1 };
                assert_eq!(of_error(verb, kind), code, "{verb:?} {kind:?}");
            }
        }
    }
}
