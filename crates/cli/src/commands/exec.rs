//! `cofferdam exec`.

use crate::args::{CommandOptions, parse_exec_id};
use clap::Args;
use cofferdam_core::ProcessId;

/// Runs a command in a session.
///
/// Streams its output and exits with its code, as `run` does; a paused session goes on first. The
/// session's keeper holds the command and its output: when this program is killed the command goes
/// on, and `attach`, `logs` and `wait` find it.
///
/// Example: cofferdam exec agent-1 -- npm test
#[derive(Debug, Default, Args)]
#[command(override_usage = "cofferdam exec SESSION [OPTIONS] -- ARGV…\n       \
    cofferdam exec SESSION [OPTIONS] --shell LINE")]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExecArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) command: CommandOptions,

    /// Starts the command and leaves it; prints its id.
    ///
    /// It is frozen while the session is paused, and does not keep the session from being paused.
    ///
    /// Example: cofferdam exec agent-1 -d -- npm run dev
    #[arg(short = 'd', long)]
    pub(crate) detach: bool,

    /// Names this run. The same id again runs nothing, and shows the same run from its beginning.
    ///
    /// 1 to 64 letters, digits, '-', '_' or '.'. With another command it is an error.
    ///
    /// Example: --id build-17
    #[arg(long, value_name = "KEY", value_parser = parse_exec_id)]
    pub(crate) id: Option<ProcessId>,

    /// Keeps the session from being paused while a detached command runs.
    ///
    /// Example: cofferdam exec agent-1 -d --keep-awake -- make world
    #[arg(long, requires = "detach")]
    pub(crate) keep_awake: bool,

    /// Captures instead of streaming, and prints one JSON object on standard output.
    ///
    /// The object is that of `run --json`, with the ids of session and run; with -d it is that of
    /// `ps`. Errors are objects too.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output", conflicts_with = "terminal")]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Exit code:
  the command's own; 124 out of time; 125 Cofferdam could not do its part; 126 not executable; 127
  not found; 128+n killed by signal n. With -d: 0 started, 125 not started.

Examples:
  cofferdam exec agent-1 -- cargo build
  cofferdam exec agent-1 --id tests-1 --timeout 5m -- npm test
  cofferdam exec agent-1 -d --keep-awake -- python3 -m http.server
  echo 1 + 1 | cofferdam exec agent-1 -i -- bc";
