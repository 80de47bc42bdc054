//! `cofferdam ps`.

use crate::moment::{age, now_ms};
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::Result;
pub(crate) use cofferdam_session::ExecList;
use cofferdam_session::ExecReport;

/// How many commands that have ended are listed unless somebody asks for others.
const LISTED: usize = 50;

/// Lists the commands of a session, those that have ended included.
///
/// All that run are listed, and the last 50 that have ended; with --json all of both.
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

    /// Lists the last so many that have ended. Default: 50; all with --json.
    ///
    /// Example: -n 5
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) count: Option<u32>,

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
        let mut execs = session.execs().await?;
        let most = args.count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        if args.json {
            keep_last(&mut execs, most.unwrap_or(usize::MAX), is_over);
            render::print_json(&ExecList { session: session.id().to_string(), execs })?;
            return Ok(exit::DONE);
        }
        print_last(execs, most.unwrap_or(LISTED), "-n")?;
        Ok(exit::DONE)
    })
}

/// Prints the last commands as a table, for a verb that lists no more.
pub(super) fn print_some(execs: Vec<ExecReport>) -> Result<()> {
    print_last(execs, LISTED, "`cofferdam ps -n`")
}

fn print_last(mut execs: Vec<ExecReport>, most: usize, others: &str) -> Result<()> {
    let left_out = keep_last(&mut execs, most, is_over);
    render::print_text(&table(&execs))?;
    if left_out > 0 {
        report::note(&format!(
            "{left_out} commands that ended earlier are not listed; see {others}"
        ));
    }
    Ok(())
}

/// Whether nothing of it runs any more.
fn is_over(exec: &ExecReport) -> bool {
    exec.ending.is_some() && exec.left == 0
}

/// Keeps what is not over, and the last so many others. Answers how many went.
fn keep_last<T>(all: &mut Vec<T>, most: usize, is_over: impl Fn(&T) -> bool) -> usize {
    let left_out = all.iter().filter(|one| is_over(one)).count().saturating_sub(most);
    let mut to_go = left_out;
    all.retain(|one| {
        let goes = to_go > 0 && is_over(one);
        to_go -= usize::from(goes);
        !goes
    });
    left_out
}

/// The commands as a table.
fn table(execs: &[ExecReport]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_listed_however_long_ago_it_was_started() {
        let all = ["runs", "a", "b", "runs", "c"];
        let check = |most: usize, kept: &[&str], left_out: usize| {
            let mut some = all.to_vec();
            assert_eq!(keep_last(&mut some, most, |one| *one != "runs"), left_out);
            assert_eq!(some, kept);
        };
        check(0, &["runs", "runs"], 3);
        check(1, &["runs", "runs", "c"], 2);
        check(3, &all, 0);
        check(usize::MAX, &all, 0);
    }
}
