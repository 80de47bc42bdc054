//! `cofferdam extend`.

use super::show;
use crate::{exit, sessions};
use clap::Args;
use cofferdam_core::{Result, parse_duration};
use std::time::Duration;

/// Gives a session so much more time.
///
/// Counts from the end that its --ttl gave it, or from now where that is over. A session without an
/// end needs no more time, so extending it is an error.
///
/// Example: cofferdam extend agent-1 30m
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ExtendArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// How much more: a number with its unit, ms, s, m, h or d.
    #[arg(value_name = "TIME", value_parser = parse_duration)]
    pub(crate) time: Duration,

    /// Prints the session as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Extends the session.
pub(super) fn perform(args: &ExtendArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        sessions.extend(&id, args.time).await?;
        show::print_if(args.json, sessions, &id).await?;
        Ok(exit::DONE)
    })
}
