//! `cofferdam ensure`.

use super::create;
use crate::args::SessionOptions;
use crate::door::Order;
use crate::sessions;
use clap::Args;
use cofferdam_core::Result;
use std::path::PathBuf;

/// Makes sure that a session of this name is there and takes commands.
///
/// Makes it where there is none, resumes it where it is paused, makes its sandbox anew where that was
/// lost, and runs what is left of its --init lines. Prints its id. However often and from however
/// many places it is called, there is one session. Other options than it was made with are an error
/// that names them, but for --init, --idle-pause, --ttl, --no-checkpoints and --label, which may
/// change, and stay as they are where they are not given.
///
/// Example: cofferdam ensure agent-1 --init 'npm ci'
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam ensure NAME [OPTIONS]")]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct EnsureArgs {
    /// The name of the session.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) session: SessionOptions,

    /// Brings what a manifest in TOML or JSON wants to the workspace, before the --init lines and once:
    /// files, directories, links, copies of directories, git repositories, and what archives hold. All of
    /// it or nothing: where something else is there already, no session is made. Directories of the host
    /// that it mounts are shown read-only in the workspace for as long as the session is there.
    ///
    /// Example: --manifest workspace.toml
    #[arg(long, value_name = "FILE", help_heading = "Session")]
    pub(crate) manifest: Option<PathBuf>,

    /// Prints the session as one JSON object; errors are objects too.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Ensures the session and prints its id.
pub(super) fn perform(args: &EnsureArgs) -> Result<u8> {
    let name = Some(args.name.clone());
    let order = Order::new(name, &args.session, args.manifest.as_deref())?;
    sessions::with(async |sessions| {
        let meter = create::meter(&order, args.json);
        let ensured = sessions.ensure(&args.name, &order).await?;
        drop(meter);
        create::print(args.json, &ensured)
    })
}
