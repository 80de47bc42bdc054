//! `cofferdam history`.

use crate::moment::{age, now_ms};
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::Result;
use cofferdam_session::{HistoryReport, PointKind, PointReport};

/// How many points are listed unless somebody asks for others.
const LISTED: u32 = 50;

/// Lists what the commands of a copy-on-write session did, as points that `undo` goes to.
///
/// A point is the state of the workspace after a command that was waited for, or of what changed
/// between such commands: by `file`, by detached commands. Beside it stand how the command ended and
/// how many paths it added, changed and removed. Where others ran meanwhile the point says with whom it
/// is shared; where it could not be kept it says why. The last 256 points are kept, and snapshots until
/// they are removed. $HOME, processes and what was written to an image are in none.
///
/// Example: cofferdam history draft
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct HistoryArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Lists the last so many points. Default: 50.
    ///
    /// Example: -n 5
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = LISTED, hide_default_value = true)]
    pub(crate) count: u32,

    /// Prints one JSON object on standard output, which names the first paths of each point.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the points.
pub(super) fn perform(args: &HistoryArgs) -> Result<u8> {
    let most = usize::try_from(args.count).unwrap_or(usize::MAX);
    let history = sessions::with(async |sessions| {
        sessions::find(sessions, &args.session).await?.history(most).await
    })?;
    if args.json {
        render::print_json(&history)?;
        return Ok(exit::DONE);
    }
    render::print_text(&table(&history))?;
    if history.omitted > 0 {
        report::note(&format!("{} older points are not listed; see -n", history.omitted));
    }
    if !history.checkpoints {
        report::note("commands of this session are no points: checkpoints are off");
    }
    Ok(exit::DONE)
}

fn table(history: &HistoryReport) -> String {
    let now_ms = now_ms();
    let titles = ["POINT", "STATE", "AGE", "ENDED", "ADDED", "CHANGED", "REMOVED", "WHAT"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(history.points.iter().map(|point| row(point, history.at, now_ms)));
    render::table(&rows)
}

fn row(point: &PointReport, at: Option<u32>, now_ms: u64) -> Vec<String> {
    let state = if at == Some(point.point) {
        "here"
    } else if point.undone {
        "undone"
    } else {
        "-"
    };
    let ended = point.command.as_ref().map_or_else(
        || "-".to_owned(),
        |command| format!("{} {}", sessions::ending_name(command.ending), command.exit_code),
    );
    let effects = &point.effects;
    let more = if effects.more { "+" } else { "" };
    let count = |count: u64| format!("{count}{more}");
    [
        point.point.to_string(),
        state.to_owned(),
        age(point.made_ms, now_ms),
        ended,
        count(effects.added),
        count(effects.changed),
        count(effects.removed),
        what(point),
    ]
    .map(|cell| render::plain(&cell).into_owned())
    .to_vec()
}

/// What a point is of, for people.
fn what(point: &PointReport) -> String {
    let what = match (point.kind, &point.command) {
        (PointKind::Start, _) => match &point.from {
            Some(from) => format!("start, at point {} of {}", from.point, from.session),
            None => "start".to_owned(),
        },
        (PointKind::Command, Some(command)) => super::ps::shortened(&command.argv.join(" ")),
        (PointKind::Command, None) => "a command".to_owned(),
        (PointKind::Between, _) => "changes between commands".to_owned(),
        (PointKind::Snapshot, _) => {
            let label = point.label.as_ref().map(|label| format!(" {label:?}"));
            let imported = point.imported.as_ref().map_or("", |_| ", imported");
            format!("snapshot{}{imported}", label.unwrap_or_default())
        }
    };
    let named = |what: &str, all: &[String]| {
        (!all.is_empty()).then(|| format!("{what} {}", all.join(", ")))
    };
    let not_kept = point.not_kept.as_ref().map(|why| format!("not kept: {why}"));
    // Where others ran it is told which.
    let is_mixed = point.kind == PointKind::Command
        && !point.looked_before
        && point.ended.is_empty()
        && point.shared_with.is_empty();
    let mixed = is_mixed.then(|| "with changes from outside of it".to_owned());
    let (of, shared) = (named("of", &point.ended), named("shared with", &point.shared_with));
    let more = [of, shared, mixed, not_kept];
    std::iter::once(what).chain(more.into_iter().flatten()).collect::<Vec<_>>().join("; ")
}
