//! `cofferdam diff`.

use super::layer::{ChangeList, LayerChange, row, scope};
use crate::spool::Spool;
use crate::surroundings::Surroundings;
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::Result;
use cofferdam_session::diff::{FileDiff, quoted};
use std::ffi::OsString;
use std::io::IsTerminal;

/// Prints what a copy-on-write session changed, as a unified diff.
///
/// The diff is what `git apply` takes, in the workspace. What git cannot say stands in lines that
/// begin with #: contents that are binary or larger than 8M, with their sizes, directories by
/// themselves, permissions other than that of execution. The session stands still while it is
/// looked at. Times and owners are no changes.
///
/// Example: cofferdam diff agent-1 --stat
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Only these paths of the workspace and what is below them.
    #[arg(value_name = "PATH")]
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
  cofferdam diff agent-1 | git apply --check";

/// Prints the changes.
pub(super) fn perform(args: &DiffArgs) -> Result<u8> {
    let state = Surroundings::of_this_process()?.state_directory()?;
    sessions::with(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        let scope = scope(&session, &args.paths).await?;
        if args.name_only {
            for change in session.changes(&scope).await? {
                render::print_text(&format!("{}\n", quoted(change.path.as_bytes())))?;
            }
            return Ok(exit::DONE);
        }
        if args.json || args.stat {
            let mut found = Vec::new();
            let mut rows = Vec::new();
            let each = |diff: FileDiff| {
                match args.json {
                    true => found.push(LayerChange::counted(&diff)),
                    false => rows.push(stat(&diff)),
                }
                Ok(())
            };
            session.diff(&scope, each).await?;
            match args.json {
                true => {
                    let session = session.id().to_string();
                    render::print_json(&ChangeList { session, changes: found })?;
                }
                false => render::print_lines_if_any(&render::table(&rows))?,
            }
            return Ok(exit::DONE);
        }
        let for_people = std::io::stdout().is_terminal();
        let mut spool = Spool::new(&state)?;
        let each = |diff: FileDiff| match for_people {
            true => spool.add(render::visible(&diff.text()).as_bytes()),
            false => spool.add(&diff.text()),
        };
        session.diff(&scope, each).await?;
        spool.print()?;
        Ok(exit::DONE)
    })
}

fn stat(diff: &FileDiff) -> Vec<String> {
    let mut row = row(&diff.change);
    let counts = match diff.counts() {
        Some((added, removed)) => format!("+{added} -{removed}"),
        None => diff.remarks().first().cloned().unwrap_or_default(),
    };
    row.insert(1, counts);
    row
}
