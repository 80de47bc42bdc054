//! `cofferdam pause`.

use super::show;
use crate::{exit, sessions};
use clap::Args;
use cofferdam_core::Result;

/// Stops everything in a session where it stands.
///
/// Memory is kept, and the processor is free. Pausing a paused session does nothing.
///
/// Example: cofferdam pause agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct PauseArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Prints the session as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Pauses the session.
pub(super) fn perform(args: &PauseArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        sessions.pause(&id).await?;
        show::print_if(args.json, sessions, &id).await?;
        Ok(exit::DONE)
    })
}
