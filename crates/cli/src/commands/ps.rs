//! `cofferdam ps`.

use crate::moment::{age, now_ms};
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::Result;
pub(crate) use cofferdam_session::ExecList;
use cofferdam_session::ExecReport;

/// Lists the commands of a session, those that have ended included.
///
/// Where processes of a detached command or a shell go on though it has ended, their number stands
/// beside its state. `signal` reaches them, and nothing else lists them.
///
/// Example: cofferdam ps agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct PsArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the commands.
pub(super) fn perform(args: &PsArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        let execs = session.execs().await?;
        match args.json {
            true => render::print_json(&ExecList { session: session.id().to_string(), execs })?,
            false => render::print_text(&table(&execs))?,
        }
        Ok(exit::DONE)
    })
}

/// The commands as a table.
pub(super) fn table(execs: &[ExecReport]) -> String {
    let now_ms = now_ms();
    let titles = ["ID", "STATE", "CODE", "AGE", "STDOUT", "STDERR", "COMMAND"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(execs.iter().map(|exec| row(exec, now_ms)));
    render::table(&rows)
}

fn row(exec: &ExecReport, now_ms: u64) -> Vec<String> {
    let state = match (exec.ending, exec.detached) {
        (Some(ending), _) if exec.left > 0 => {
            format!("{}, {} left", sessions::ending_name(ending), exec.left)
        }
        (Some(ending), _) => sessions::ending_name(ending),
        (None, true) => "running, detached".to_owned(),
        (None, false) => "running".to_owned(),
    };
    let code = exec.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
    [
        exec.id.clone(),
        state,
        code,
        age(exec.started_ms, now_ms),
        exec.stdout.written.to_string(),
        exec.stderr.written.to_string(),
        shortened(&exec.argv.join(" ")),
    ]
    .map(|cell| render::plain(&cell).into_owned())
    .to_vec()
}

/// The beginning of a line that would not fit.
pub(super) fn shortened(line: &str) -> String {
    const WIDEST: usize = 60;
    match line.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}
