//! `cofferdam undo`.

use crate::meter::Meter;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{
    PointDeed, PointEffects, PointPath, SnapshotReport, Target, UndoOrder, UndoReport,
    text_or_quoted,
};

/// How many paths are named one by one; `--json` has more.
const NAMED_PATHS: usize = 20;

/// Takes back what the last commands of a copy-on-write session did to its workspace.
///
/// The workspace of the session becomes what it was before its last command, or change between
/// commands, or before the last COUNT of them; with --to, what it was at a point that `history` lists,
/// an undone one too, so that an undo can be undone. What is in no point yet becomes one first. All
/// processes of the session are ended, which no undo brings back; where nothing has to be changed they
/// go on. The sandbox lives on where its layer can be exchanged under it; otherwise the next command gets
/// a new one, without what was in /tmp. $HOME and what was written to an image stay as they are, and so
/// does the real workspace, as ever. Prints what changed.
///
/// Example: cofferdam undo draft
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct UndoArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// How many commands and changes between commands are taken back. Default: 1.
    #[arg(value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,

    /// Goes to the state of this point instead, earlier or later: its number, or the label of a snapshot.
    ///
    /// Example: --to 4
    #[arg(long, value_name = "POINT", conflicts_with = "count")]
    pub(crate) to: Option<String>,

    /// Says what would change, and changes nothing in the workspace.
    ///
    /// Example: --dry-run
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Goes although what the session has now cannot be kept as a point, and is lost.
    ///
    /// Example: --force
    #[arg(long)]
    pub(crate) force: bool,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam undo draft
  cofferdam undo draft 3 --dry-run
  cofferdam undo draft --to 7
  cofferdam undo draft --to 'tests pass'";

/// Undoes.
pub(super) fn perform(args: &UndoArgs) -> Result<u8> {
    let done = sessions::with(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        let target = match &args.to {
            Some(text) => match text.parse() {
                Ok(number) => Target::Point(number),
                Err(_) => Target::Point(labelled(&sessions.snapshots(session.id()).await?, text)?),
            },
            None => Target::Back(args.count.unwrap_or(1)),
        };
        let order = UndoOrder { target, dry_run: args.dry_run, may_lose: args.force };
        let _meter = Meter::start("undo", args.json);
        session.undo(&order).await
    })?;
    match args.json {
        true => render::print_json(&done)?,
        false => render::print_lines_if_any(&lines(&done.effects))?,
    }
    tell(&done);
    Ok(exit::DONE)
}

/// The number of the one snapshot that is called so; no label is a number.
fn labelled(snapshots: &[SnapshotReport], label: &str) -> Result<u32> {
    let called = snapshots.iter().filter(|one| one.label.as_deref() == Some(label));
    let found: Vec<u32> = called.map(|one| one.snapshot).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Error::new(ErrorKind::NotFound, format!("there is no point {label:?}"))
            .hint("Name a number of `cofferdam history`, or a label of `cofferdam snapshot ls`.")),
        several => {
            let numbers: Vec<String> = several.iter().map(u32::to_string).collect();
            let what = format!("snapshots {} are all called {label:?}", numbers.join(" and "));
            Err(Error::new(ErrorKind::Conflict, what).hint("Name one by its number."))
        }
    }
}

/// Says where the session stands, and what became of its processes.
pub(super) fn tell(done: &UndoReport) {
    if let Some(why) = &done.lost {
        report::note(&format!("what the session had could not be kept: {why}"));
    }
    if done.landed > 0 {
        let seen = match done.in_copy {
            false => "where the session sees it",
            true => {
                "and the session, which works in a copy, sees what its point has of it: its next `apply` would take the \
                 rest back"
            }
        };
        report::note(&format!(
            "what was applied since point {} stays in the workspace, {seen} (changes: {})",
            done.to, done.landed
        ));
    }
    if done.dry_run {
        report::note(&format!("nothing was done; this leads to point {}", done.to));
        return;
    }
    let to = done.to;
    if !done.processes_ended {
        report::note(&format!("at point {to}: nothing had to be changed, and what runs goes on"));
        return;
    }
    let UndoReport { commands, left, .. } = done;
    report::note(&format!("at point {to}: {}", ended(*commands, *left)));
}

/// What became of the processes of a session for something.
pub(super) fn ended(commands: u64, left: u64) -> String {
    format!(
        "all processes of the session were ended (commands that ran: {commands}, processes that others \
         had left: {left})"
    )
}

fn lines(effects: &PointEffects) -> String {
    let PointEffects { added, changed, removed, more, paths } = effects;
    let line = |path: &PointPath| {
        let sign = match path.what {
            PointDeed::Added => '+',
            PointDeed::Changed => '~',
            PointDeed::Removed => '-',
        };
        let named = text_or_quoted(path.path.as_deref(), path.path_base64.as_deref());
        format!("{sign} {}\n", render::plain(&named))
    };
    let named: Vec<String> = paths.iter().take(NAMED_PATHS).map(line).collect();
    let unnamed = (added + changed + removed).saturating_sub(named.len() as u64);
    let rest = match (unnamed, more) {
        (0, false) => String::new(),
        (_, false) => format!("and {unnamed} more\n"),
        (_, true) => format!("and at least {unnamed} more\n"),
    };
    named.concat() + &rest
}
