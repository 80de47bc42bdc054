//! `cofferdam shell`.

use crate::args::DetachKeys;
use clap::Args;

/// Opens a shell in a session, or goes on with the one that is open there.
///
/// The shell has a terminal of its own, which keeps running when you leave it with Ctrl-P Ctrl-Q or
/// lose your connection; the next `shell` shows the last of what was on it and goes on. A shell that
/// has ended is replaced by a new one.
///
/// Example: cofferdam shell agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ShellArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Names the shell: a session may have several. Default: main.
    ///
    /// Example: --session logs
    #[arg(long = "session", value_name = "S", default_value = "main", hide_default_value = true)]
    pub(crate) shell: String,

    /// Leaves the terminal at these keys. Default: ctrl-p,ctrl-q.
    ///
    /// Keys separated by commas: ctrl-a to ctrl-z, ctrl-], a letter, a digit; or none.
    ///
    /// Example: --detach-keys ctrl-]
    #[arg(long, value_name = "KEYS", value_parser = DetachKeys::parse)]
    pub(crate) detach_keys: Option<DetachKeys>,

    /// Prints the shell's command as one JSON object when it has ended or was left, and errors as
    /// objects.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}
