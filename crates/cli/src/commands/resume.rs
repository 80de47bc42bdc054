//! `cofferdam resume`.

use super::show;
use crate::{exit, sessions};
use clap::Args;
use cofferdam_core::Result;

/// Lets a paused session go on.
///
/// Resuming a session that runs does nothing; `exec` and `shell` resume by themselves.
///
/// Example: cofferdam resume agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ResumeArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Prints the session as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resumes the session.
pub(super) fn perform(args: &ResumeArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        sessions.resume(&id).await?;
        show::print_if(args.json, sessions, &id).await?;
        Ok(exit::DONE)
    })
}
