//! `cofferdam fork`.

use super::show;
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::Result;

/// Makes another session whose workspace begins as that of a copy-on-write session is now.
///
/// What the session changed is copied while its processes stand still; they go on afterwards. Processes
/// and $HOME are not copied, and the lines that prepare a session run in the new one. Both see one real
/// workspace, and neither sees what the other does. Prints the id.
///
/// Example: cofferdam fork draft other-way
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ForkArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The name of the new session.
    #[arg(value_name = "NEW")]
    pub(crate) name: String,

    /// Prints the new session as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Forks the session.
pub(super) fn perform(args: &ForkArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let id = sessions.find(&args.session).await?;
        let forked = sessions.fork(&id, &args.name).await?;
        match args.json {
            true => show::print_if(true, sessions, forked.id()).await?,
            false => render::print_text(&format!("{}\n", forked.id()))?,
        }
        Ok(exit::DONE)
    })
}
