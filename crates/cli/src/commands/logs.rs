//! `cofferdam logs`.

use crate::args::choice;
use clap::Args;
use cofferdam_core::Standard;

/// Prints what a command of a session wrote.
///
/// Standard output goes to standard output and standard error to standard error. Works while the
/// command runs, after it ended, and after its sandbox was lost. What was dropped for want of room is
/// said on standard error.
///
/// Example: cofferdam logs agent-1 server -f
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct LogsArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The command's id, or the beginning of it.
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,

    /// Begins at this byte of each stream. Default: 0.
    ///
    /// Example: --offset 4096
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) offset: u64,

    /// Goes on until the command has ended.
    ///
    /// Example: -f
    #[arg(short = 'f', long)]
    pub(crate) follow: bool,

    /// Prints one stream alone: stdout or stderr.
    ///
    /// Example: --stream stderr
    #[arg(long, value_name = "STREAM", value_parser = choice::<Standard>())]
    pub(crate) stream: Option<Standard>,

    /// Prints one JSON object on standard output; with -f one object a line, as output comes.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}
