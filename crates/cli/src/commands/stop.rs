//! `cofferdam stop`.

use super::show;
use crate::appeared::Watch;
use crate::{exit, sessions};
use clap::Args;
use cofferdam_core::Result;

/// Ends all processes of a session, and keeps everything else.
///
/// Its sandbox is gone, with its memory and /tmp. The workspace, $HOME, layer, history, output and
/// events stay, and the next command or `resume` makes a new sandbox. Stopping a stopped session does
/// nothing. Unlike `pause` it costs nothing until then; unlike `rm` nothing is lost but what ran.
///
/// Example: cofferdam stop agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct StopArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Prints the session as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stops the session.
pub(super) fn perform(args: &StopArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        let watch = Watch::begin();
        sessions.stop(&id).await?;
        watch.tell(sessions.here(), &id).await;
        show::print_if(args.json, sessions, &id).await?;
        Ok(exit::DONE)
    })
}
