//! `cofferdam signal`.

use crate::{exit, render, sessions, signals};
use clap::Args;
use cofferdam_core::{Result, Signal};

/// Sends a signal to a command of a session and to its process group.
///
/// A paused session goes on first. A command that has ended takes no signal; where processes of a
/// detached one or of a shell go on, each of them gets it. KILL ends such a command with all that it
/// started.
///
/// Example: cofferdam signal agent-1 server TERM
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct SignalArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The command's id, or the beginning of one that nobody chose.
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,

    /// The signal: a name with or without SIG, or a number from 1 to 64.
    #[arg(value_name = "SIGNAL", value_parser = signals::parse)]
    pub(crate) signal: Signal,

    /// Prints the command as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Sends the signal.
pub(super) fn perform(args: &SignalArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        let exec = sessions::find_exec(&session, &args.exec, sessions::Written::Whole).await?;
        session.signal(&exec, args.signal.number()).await?;
        if args.json {
            render::print_json(&session.status(&exec).await?)?;
        }
        Ok(exit::DONE)
    })
}
