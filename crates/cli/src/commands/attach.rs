//! `cofferdam attach`.

use crate::args::DetachKeys;
use clap::Args;

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
  0 the command has ended, or was left running; 1 Cofferdam could not do its part; 2 usage. `wait`
  exits with the command's own code.")]
pub(crate) struct AttachArgs {
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
