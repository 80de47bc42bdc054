//! `cofferdam diff`.

use super::layer::row;
use crate::door::{Counted, Session};
use crate::spool::Spool;
use crate::surroundings::Surroundings;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::Result;
use cofferdam_session::PointRange;
use cofferdam_session::diff::quoted;
use cofferdam_session::objects::ChangeList;
use std::ffi::OsString;
use std::io::IsTerminal;

/// Prints what a copy-on-write session changed, as a unified diff.
///
/// The diff is what `git apply` takes, in the workspace. What git cannot say stands in lines that
/// begin with #: contents that are binary or larger than 8M, with their sizes, directories by
/// themselves, permissions other than that of execution. The session stands still while it is
/// looked at. Times and owners are no changes.
///
/// With two points of the history, as in 3..7, it prints what commands 4 to 7 changed. What no point
/// holds is shown as the workspace has it now. These changes are of the past: none of them can land.
///
/// Example: cofferdam diff agent-1 --stat
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Points to compare, as in 3..7, and paths of the workspace to look at alone.
    ///
    /// The first word is a range where it has ".." within it or at one end: from one point of the history, a
    /// number or the label of a snapshot, to another one, which may be the earlier. Without the first
    /// it begins at point 0, without the second it ends at how the session is now, which becomes a
    /// point. A file of such a name is named as ./3..7, or behind --.
    #[arg(value_name = "RANGE|PATH")]
    pub(crate) words: Vec<OsString>,

    /// Only these paths of the workspace and what is below them.
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,

    /// Prints a line for each change, with how many lines come and go.
    ///
    /// Example: --stat
    #[arg(long, conflicts_with_all = ["name_only", "json"])]
    pub(crate) stat: bool,

    /// Prints the paths alone.
    ///
    /// Example: --name-only
    #[arg(long, conflicts_with = "json")]
    pub(crate) name_only: bool,

    /// Prints one JSON object on standard output: the changes, without their lines.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Exit code:
  0 done, whatever changed; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam diff agent-1
  cofferdam diff agent-1 --stat src
  cofferdam diff agent-1 3..7
  cofferdam diff agent-1 'tests pass'.. --name-only
  cofferdam diff agent-1 | git apply --check";

/// Prints the changes.
pub(super) fn perform(args: &DiffArgs) -> Result<u8> {
    let state = Surroundings::of_this_process().state_directory()?;
    let (range, paths) = asked(args);
    sessions::with(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        let range = range.as_ref();
        let mut is_empty = true;
        if args.name_only {
            for change in session.changes(range, &paths).await? {
                is_empty = false;
                render::print_text(&format!("{}\n", quoted(change.path.as_bytes())))?;
            }
        } else if args.json {
            print_json(&session, range, &paths).await?;
            is_empty = false;
        } else if args.stat {
            let (_, all) = session.counted(range, &paths).await?;
            is_empty = all.is_empty();
            let rows: Vec<Vec<String>> = all.iter().map(stat).collect();
            render::print_lines_if_any(&render::table(&rows))?;
        } else {
            let for_people = std::io::stdout().is_terminal();
            let mut spool = Spool::new(&state)?;
            let each = |text: &[u8]| {
                is_empty = false;
                match for_people {
                    true => spool.add(render::visible(text).as_bytes()),
                    false => spool.add(text),
                }
            };
            session.diff_text(range, &paths, each).await?;
            spool.print()?;
        }
        if is_empty && !paths.is_empty() {
            report::note("nothing changed at these paths; points are written as in 3..7");
        }
        Ok(exit::DONE)
    })
}

/// The points and the paths that somebody named.
fn asked(args: &DiffArgs) -> (Option<PointRange>, Vec<OsString>) {
    let mut paths = args.words.as_slice();
    let mut range = None;
    if let Some((first, rest)) = paths.split_first()
        && let Some(found) = first.to_str().and_then(PointRange::parse)
    {
        (range, paths) = (Some(found), rest);
    }
    (range, [paths, args.paths.as_slice()].concat())
}

async fn print_json(
    session: &Session,
    range: Option<&PointRange>,
    paths: &[OsString],
) -> Result<()> {
    let (span, all) = session.counted(range, paths).await?;
    let changes = all.into_iter().map(|counted| counted.told).collect();
    let (from, to) = (span.map(|span| span.from), span.map(|span| span.to));
    render::print_json(&ChangeList { session: session.id().to_string(), from, to, changes })
}

fn stat(counted: &Counted) -> Vec<String> {
    let mut row = row(&counted.change);
    let told = &counted.told;
    let counts = match told.lines_added.zip(told.lines_removed) {
        Some((added, removed)) => format!("+{added} -{removed}"),
        None => told.remarks.first().cloned().unwrap_or_default(),
    };
    row.insert(1, counts);
    row
}
