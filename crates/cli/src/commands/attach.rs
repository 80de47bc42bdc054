//! `cofferdam attach`.

use super::exec::{outcome, print_outcome, told_with_session};
use crate::args::{CommandOptions, DetachKeys};
use crate::detach_keys::KeyWatch;
use crate::door::Session;
use crate::follow::{Left, Memory, Passed, Streams, follow};
use crate::{exit, report, screen, sessions};
use clap::Args;
use cofferdam_core::{Cause, Ending, ExecStatus, ProcessId, Result, Seen};
use std::time::Duration;

/// Shows a command's output from its beginning and goes on with it, as `exec` would.
///
/// Any number of programs may be attached to a command, at any time. A command with a terminal gets
/// your keys and the size of your terminal; Ctrl-P Ctrl-Q leaves it running. Where a command has no
/// terminal, -i passes standard input on.
///
/// Example: cofferdam attach agent-1 build-17
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit code:
  0 the command has ended, or was left running; 1 Cofferdam could not do its part; 2 usage; that of
  `exec` where the session was stopped or removed, or its sandbox died: 130 or 137. `wait` exits
  with the command's own code.")]
pub(crate) struct AttachArgs {
    /// The session: its name or id, or the beginning of one; with --interactive a name must be whole.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The command's id, or the beginning of it.
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,

    /// Begins at this byte of each stream. Default: 0.
    ///
    /// Example: --offset 4096
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) offset: u64,

    /// Passes standard input on, and ends the command's with it.
    ///
    /// The command must have been started with -i.
    ///
    /// Example: echo quit | cofferdam attach agent-1 console -i
    #[arg(short = 'i', long)]
    pub(crate) interactive: bool,

    /// Leaves the terminal at these keys. Default: ctrl-p,ctrl-q.
    ///
    /// Keys separated by commas: ctrl-a to ctrl-z, ctrl-], a letter, a digit; or none.
    ///
    /// Example: --detach-keys ctrl-]
    #[arg(long, value_name = "KEYS", value_parser = DetachKeys::parse)]
    pub(crate) detach_keys: Option<DetachKeys>,

    /// Captures instead of streaming, and prints one JSON object when the command has ended.
    ///
    /// Example: --json
    #[arg(long, conflicts_with = "interactive")]
    pub(crate) json: bool,
}

/// Shows the command until it has ended or is left.
pub(super) fn perform(args: &AttachArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = match args.interactive {
            true => sessions::find_to_change(sessions, &args.session).await?,
            false => sessions::find(sessions, &args.session).await?,
        };
        let exec = sessions::find_exec(&session, &args.exec, sessions::Written::Cut).await?;
        sessions::wake_for(&session, &exec).await?;
        let from = Seen { stdout: args.offset, stderr: args.offset, ..Seen::default() };
        if args.json {
            return capture(&session, &exec, from).await;
        }
        let has_terminal = session.status(&exec).await?.terminal && screen::reads_keys();
        let passed = Passed {
            reads: args.interactive,
            has_terminal,
            keys: has_terminal.then(|| watch(args.detach_keys.as_ref())),
            signals: None,
        };
        let ended = shown(&session, &exec, from, passed).await?;
        Ok(told_end(&session, ended.as_deref()).await)
    })
}

/// How a command ended that its sandbox's end ended. What becomes of others is for `wait` to tell.
fn ended_with_its_sandbox(status: Option<&ExecStatus>) -> Option<&Ending> {
    let ending = &status?.ended.as_ref()?.ending;
    match ending {
        Ending::Canceled | Ending::Lost | Ending::Killed(Cause::Lease | Cause::SecretAlarm) => {
            Some(ending)
        }
        Ending::Exited(_)
        | Ending::Signaled(_)
        | Ending::Killed(
            Cause::Time
            | Cause::Memory
            | Cause::MemoryWithin { .. }
            | Cause::Output
            | Cause::Pids { .. }
            | Cause::Disk { .. },
        )
        | Ending::NotStarted { .. }
        | Ending::SetupFailed { .. } => None,
    }
}

/// The exit code of somebody to whom a command was shown: that of `exec`, and its words on standard error, where
/// the command ended with its sandbox.
pub(super) async fn told_end(session: &Session, status: Option<&ExecStatus>) -> u8 {
    let Some(ending) = ended_with_its_sandbox(status) else { return exit::DONE };
    if let Some(cause) = told_with_session(session, ending, &CommandOptions::default()).await {
        report::note(&cause);
    }
    exit::of_ending(ending)
}

/// Looks for these keys, or for the usual ones.
pub(super) fn watch(keys: Option<&DetachKeys>) -> KeyWatch {
    match keys {
        Some(keys) => KeyWatch::new(keys),
        None => KeyWatch::new(&DetachKeys::default()),
    }
}

/// Shows a command on the caller's streams until it has ended, which is returned, or is left.
pub(super) async fn shown(
    session: &Session,
    exec: &ProcessId,
    from: Seen,
    passed: Passed,
) -> Result<Option<Box<ExecStatus>>> {
    let mut sink = Streams {
        only: None,
        ends_with_its_reader: false,
        wants_what_is_left: false,
        limit_bytes: None,
    };
    let mut from = from;
    if passed.has_terminal {
        let now = session.follow(exec, Seen::default(), Duration::ZERO).await?;
        from.stops = Some(now.stops);
    }
    let left = follow((session, exec), from, &mut sink, passed).await?;
    match left {
        Left::Ended(status) => Ok(Some(status)),
        Left::Running | Left::Abandoned => {
            report::note(&format!("{exec} is left running in session {}", session.id()));
            Ok(None)
        }
    }
}

async fn capture(session: &Session, exec: &ProcessId, from: Seen) -> Result<u8> {
    let mut sink = Memory::of(super::run::CAPTURED_BYTES);
    let enforced = sessions::enforced(session, exec).await?;
    let left = follow((session, exec), from, &mut sink, Passed::nothing()).await?;
    let Left::Ended(status) = left else { return Ok(exit::DONE) };
    if let Some(outcome) = outcome(&status, sink, enforced) {
        print_outcome((session, &status), exec, outcome, None)?;
    }
    Ok(ended_with_its_sandbox(Some(&status)).map_or(exit::DONE, exit::of_ending))
}
