//! `cofferdam wait`.

use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::{Cause, Ending, Error, ErrorKind, Result, parse_duration};
use std::time::Duration;

/// Waits until a command of a session has ended, and exits with its code.
///
/// Works any number of times, and long after it ended.
///
/// Example: cofferdam wait agent-1 build-17
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit code:
  the command's own, as `exec` would give it; 124 it has not ended within --timeout, and goes on;
  125 Cofferdam could not do its part")]
pub(crate) struct WaitArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The command's id, or the beginning of one that nobody chose.
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,

    /// Waits no longer than this, with a unit. The command goes on.
    ///
    /// Time in which the session is paused counts here, and not for the --timeout of the command.
    ///
    /// Example: --timeout 5m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Prints the command as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Waits for the end of the command.
pub(super) fn perform(args: &WaitArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        let exec = sessions::find_exec(&session, &args.exec, sessions::Written::Whole).await?;
        let status = session.wait(&exec, args.timeout).await?;
        if args.json {
            render::print_json(&session.status(&exec).await?)?;
        }
        match &status.ended {
            Some(ended) => Ok(exit::of_ending(&ended.ending)),
            None if args.timeout.is_some() => {
                report::note(&format!("{exec} has not ended yet, and goes on"));
                Ok(exit::of_ending(&Ending::Killed(Cause::Time)))
            }
            None => Err(Error::new(ErrorKind::Unavailable, format!("{exec} has not ended"))),
        }
    })
}
