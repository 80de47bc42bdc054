//! The tools about what a copy-on-write sandbox changed.

use crate::Outcome;
use crate::param::{Kind, Param};
use crate::plain::mark;
use crate::text::counted;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{
    ApplyOrder, ApplyReport, Change, ControlFiles, GuestPath, Held, Result, Standing,
    is_at_or_below, made_visible,
};
use cofferdam_session::diff::FileDiff;
use cofferdam_session::{PointRange, Target, UndoOrder, UndoReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;

/// The most bytes of a diff that are shown.
const SHOWN_BYTES: usize = 20 << 10;
/// How many changes are listed at most.
const SHOWN_CHANGES: usize = 400;
/// The most paths that one call names.
const MAX_PATHS: usize = 100;

const PATHS: Param = Param::optional(
    "paths",
    Kind::Words(MAX_PATHS),
    "Only these paths of the workspace and what is below them. Left out: all.",
);

/// A path as a call may name it.
fn scope(paths: &[String]) -> Result<Vec<GuestPath>> {
    let plain = |path: &String| GuestPath::new(path.strip_prefix("/workspace/").unwrap_or(path));
    paths.iter().map(plain).collect()
}

/// How many of the paths that no change is at are told, and how many characters of each.
const TOLD_PATHS: (usize, usize) = (8, 200);

/// The paths that a call names, each with whether there is a change at it.
struct Named(Vec<(GuestPath, bool)>);

impl Named {
    fn new(scope: &[GuestPath]) -> Self {
        Self(scope.iter().map(|path| (path.clone(), false)).collect())
    }

    fn meet(&mut self, change: &Change) {
        for (path, is_met) in &mut self.0 {
            // A directory that went stands for what was in it.
            *is_met |= is_at_or_below(&change.path, path) || is_at_or_below(path, &change.path);
        }
    }

    /// A line that names those that no change is at; nothing where there is none.
    fn told(&self) -> String {
        let (most, chars) = TOLD_PATHS;
        let unmet =
            || self.0.iter().filter(|(_, is_met)| !is_met).map(|(path, _)| path.to_string());
        let told: Vec<String> =
            unmet().take(most).map(|path| path.chars().take(chars).collect()).collect();
        let told: Vec<_> = told.iter().map(|path| made_visible(path)).collect();
        let more = match unmet().count().saturating_sub(most) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        match told.as_slice() {
            [] => String::new(),
            told => format!("\n[no change at {}{more}]", told.join(", ")),
        }
    }
}

/// One change.
#[derive(Serialize, JsonSchema)]
struct Changed {
    /// The path in the workspace; bytes that are no UTF-8 are replaced.
    path: String,
    /// `added`, `modified` or `removed`.
    kind: &'static str,
    /// `lands`, or why it would not: a conflict or something that is held back.
    standing: &'static str,
    /// How many lines come, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_added: Option<usize>,
    /// How many lines go, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_removed: Option<usize>,
}

impl Changed {
    fn new(change: &Change) -> Self {
        Self {
            path: change.path.to_string(),
            kind: change.kind.name(),
            standing: change.standing.name(),
            lines_added: None,
            lines_removed: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffArguments {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
    skip: usize,
}

/// What a sandbox changed.
#[derive(Serialize, JsonSchema)]
struct Diffed {
    /// How many paths changed.
    total: usize,
    /// How many of them were skipped before the first that is shown.
    skipped: usize,
    /// The `skip` to go on with; null where none is left.
    next_skip: Option<usize>,
    /// The changes that are shown, in the order of paths.
    changes: Vec<Changed>,
    /// They line by line, as a diff that git understands.
    diff: String,
    /// How many bytes of the last one are left out, which alone is too long.
    omitted_bytes: u64,
}

/// A change and its text, as far as it may be shown.
struct Seen {
    change: Changed,
    text: String,
    bytes: usize,
}

pub(super) const DIFF: Row = Row {
    name: "sandbox_diff",
    title: "See what changed",
    about: "Shows what a copy-on-write sandbox changed in its workspace, or what differs between two points \
            of its history, as a diff. The sandbox stands still meanwhile.",
    params: &[
        PATHS,
        Param::optional("from", Kind::Word, "A point of the history, or the label of a snapshot."),
        Param::optional("to", Kind::Word, "The same; now, where only from is given."),
        Param::whole("skip", (0, u64::MAX), 0, "How many changes to pass over, to go on."),
    ],
    output: output_of::<Diffed>,
    conduct: Conduct::Of(Hints::LOOKS),
};

pub(super) async fn diff(call: Call<'_>) -> Result<Outcome> {
    let asked: DiffArguments = call.arguments()?;
    let session = call.sandboxes.there(call.name()).await?;
    let scope = scope(&asked.paths)?;
    let (mut total, mut seen, mut room) = (0, Vec::new(), SHOWN_BYTES);
    let mut named = Named::new(&scope);
    let each = |diff: FileDiff| {
        named.meet(&diff.change);
        if total >= asked.skip && seen.len() < SHOWN_CHANGES && (room > 0 || seen.is_empty()) {
            let one = Seen::new(&diff);
            room = room.saturating_sub(one.bytes);
            seen.push(one);
        }
        total += 1;
        Ok(())
    };
    if asked.from.is_some() || asked.to.is_some() {
        let range = PointRange { from: asked.from.clone(), to: asked.to.clone() };
        session.diff_between(&range, &scope, each).await.map(drop)?;
    } else {
        session.diff(&scope, each).await?;
    }
    Ok(Outcome::fitting(SHOWN_BYTES, |budget| {
        let mut outcome = diffed(&seen, (total, asked.skip), budget);
        outcome.text.push_str(&named.told());
        outcome
    }))
}

impl Seen {
    fn new(diff: &FileDiff) -> Self {
        let text = String::from_utf8_lossy(&diff.text()).into_owned();
        let bytes = text.len();
        let end = text.floor_char_boundary(SHOWN_BYTES);
        let counts = diff.counts();
        let mut change = Changed::new(&diff.change);
        change.lines_added = counts.map(|(added, _)| added);
        change.lines_removed = counts.map(|(_, removed)| removed);
        Self { change, text: text.get(..end).unwrap_or_default().to_owned(), bytes }
    }
}

fn diffed(seen: &[Seen], (total, skip): (usize, usize), budget: usize) -> Outcome {
    let (mut diff, mut changes, mut omitted_bytes) = (String::new(), Vec::new(), 0);
    for one in seen {
        let room = budget.saturating_sub(diff.len());
        let fits = one.bytes <= room && one.text.len() == one.bytes;
        if !fits && !changes.is_empty() {
            break;
        }
        changes.push(Changed { path: one.change.path.clone(), ..one.change });
        let end = one.text.floor_char_boundary(room);
        diff.push_str(one.text.get(..end).unwrap_or_default());
        if !fits {
            omitted_bytes = (one.bytes - end) as u64;
            break;
        }
    }
    let skipped = skip.min(total);
    let next = skipped + changes.len();
    let next_skip = (next < total).then_some(next);
    let mut text = format!("{} changed", counted(total, "path", "paths"));
    if !changes.is_empty() && (skipped > 0 || next_skip.is_some()) {
        write!(text, "; these are {} to {next}", skipped + 1).ok();
    }
    text.push('\n');
    text.push_str(&diff);
    if omitted_bytes > 0 {
        write!(text, "\n{} Read the file itself for the rest.", mark(omitted_bytes)).ok();
    }
    if let Some(next) = next_skip {
        write!(text, "\n[{} more; go on with skip {next}]", total - next).ok();
    }
    let diffed = Diffed { total, skipped, next_skip, changes, diff, omitted_bytes };
    Outcome::done(text, json!(diffed))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyArguments {
    #[serde(default)]
    paths: Vec<String>,
    dry_run: bool,
}

/// What landed in the workspace.
#[derive(Serialize, JsonSchema)]
struct Applied {
    /// Whether nothing was done.
    dry_run: bool,
    /// How many changes landed, or would.
    applied_total: usize,
    /// The first of them.
    applied: Vec<Changed>,
    /// How many did not.
    kept_total: usize,
    /// The first of these, each with its `standing`.
    kept: Vec<Changed>,
}

pub(super) const APPLY: Row = Row {
    name: "sandbox_apply",
    title: "Apply changes to the workspace",
    about: "Puts what a copy-on-write sandbox changed into the real workspace: all that can land, or nothing. \
            Conflicts are kept back. So are control files such as git hooks and editor settings, even where \
            they are named: only a person applies these.",
    params: &[PATHS, Param::flag("dry_run", false, "Whether it is only said what would be done.")],
    output: output_of::<Applied>,
    conduct: Conduct::Of(Hints {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: true,
    }),
};

pub(super) async fn apply(call: Call<'_>) -> Result<Outcome> {
    let ApplyArguments { paths, dry_run } = call.arguments()?;
    let session = call.sandboxes.there(call.name()).await?;
    let paths = scope(&paths)?;
    let order = ApplyOrder {
        paths: paths.clone(),
        // HOSTILE: a control file runs code outside. A model that read something may name one.
        control_files: ControlFiles::Never,
        dry_run,
        ..ApplyOrder::default()
    };
    let report = session.apply(&order).await?;
    let mut named = Named::new(&paths);
    report.applied.iter().chain(&report.kept).for_each(|change| named.meet(change));
    Ok(Outcome::fitting(SHOWN_CHANGES, |budget| {
        let mut outcome = applied(&report, dry_run, budget);
        outcome.text.push_str(&named.told());
        outcome
    }))
}

fn applied(report: &ApplyReport, dry_run: bool, budget: usize) -> Outcome {
    let some = |changes: &[Change], most: usize| -> Vec<Changed> {
        changes.iter().take(most).map(Changed::new).collect()
    };
    let (landed, kept) = (report.applied.len(), report.kept.len());
    let word = if dry_run { "would land" } else { "landed" };
    let changes = counted(landed, "change", "changes");
    let back = counted(kept, "was kept back", "were kept back");
    let mut text = format!("{changes} {word}, {back}.");
    for change in report.kept.iter().take(budget / 2) {
        write!(
            text,
            "\nkept: {} ({})",
            made_visible(&change.path.to_string()),
            reason(change.standing)
        )
        .ok();
    }
    if kept > budget / 2 {
        let more = counted(kept - budget / 2, "more is", "more are");
        write!(text, "\n[{more} kept; name paths to see the others]").ok();
    }
    let is_control = |change: &Change| matches!(change.standing, Standing::Held(Held::Protected));
    if report.kept.iter().any(is_control) {
        text.push_str(
            "\nNo tool applies control files. The user can: `cofferdam apply` with their paths.",
        );
    }
    let applied = Applied {
        dry_run,
        applied_total: landed,
        applied: some(&report.applied, budget / 2),
        kept_total: kept,
        kept: some(&report.kept, budget / 2),
    };
    Outcome::done(text, json!(applied))
}

/// Why a change does not land by a tool: to name a control file is of no use there.
fn reason(standing: Standing) -> &'static str {
    match standing {
        Standing::Held(Held::Protected) => {
            "it is a control file, or cannot be told from one, which the user alone applies"
        }
        Standing::Held(_) | Standing::Conflict(_) | Standing::Lands => standing.reason(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UndoArguments {
    #[serde(default)]
    steps: Option<u32>,
    #[serde(default)]
    point: Option<u32>,
    dry_run: bool,
}

/// What was undone.
#[derive(Serialize, JsonSchema)]
struct Undone {
    /// What was done, or would be.
    report: UndoReport,
    /// How many paths the report leaves out, for there are too many.
    paths_left_out: usize,
}

pub(super) const UNDO: Row = Row {
    name: "sandbox_undo",
    title: "Undo commands",
    about: "Makes the workspace of a copy-on-write sandbox what it was before the last commands, or at a \
            point of its history; forward, too. All processes of the sandbox end where something changes. \
            What is there now becomes a point first, so an undo can be undone.",
    params: &[
        Param::optional(
            "steps",
            Kind::Whole(1, 1_000_000),
            "How many of the last commands and changes are undone. One, where point is left out too.",
        ),
        Param::optional(
            "point",
            Kind::Whole(0, u32::MAX as u64),
            "The point to go to, by its number.",
        ),
        Param::flag("dry_run", false, "Whether it is only said what would be done."),
    ],
    output: output_of::<Undone>,
    conduct: Conduct::Of(Hints::CHANGES),
};

pub(super) async fn undo(call: Call<'_>) -> Result<Outcome> {
    let UndoArguments { steps, point, dry_run } = call.arguments()?;
    let target = match (steps, point) {
        (Some(_), Some(_)) => {
            let what = "steps and point say two different things";
            return Err(cofferdam_core::Error::new(cofferdam_core::ErrorKind::Usage, what)
                .hint("Leave one of them out."));
        }
        (_, Some(point)) => Target::Point(point),
        (steps, None) => Target::Back(steps.unwrap_or(1)),
    };
    let session = call.sandboxes.there(call.name()).await?;
    let report = session.undo(&UndoOrder { target, dry_run, may_lose: false }).await?;
    Ok(Outcome::fitting(SHOWN_CHANGES, |budget| undone(&report, budget)))
}

fn undone(report: &UndoReport, budget: usize) -> Outcome {
    let mut report = report.clone();
    let paths_left_out = report.effects.paths.len().saturating_sub(budget);
    report.effects.paths.truncate(budget);
    let effects = &report.effects;
    let word = if report.dry_run { "would go" } else { "went" };
    let mut text = format!(
        "The workspace {word} to point {}: {} paths came, {} changed, {} are gone.",
        report.to, effects.added, effects.changed, effects.removed
    );
    if report.processes_ended {
        text.push_str(" All processes were ended.");
    }
    if report.landed > 0 {
        let landed = report.landed;
        write!(
            text,
            " What was applied since that point stays in the workspace (changes: {landed})."
        )
        .ok();
        if report.in_copy {
            text.push_str(
                " The sandbox works in a copy, and its next sandbox_apply would take back what the point has not of it.",
            );
        }
    }
    if let Some(from) = report.from {
        write!(text, " To go back: sandbox_undo with point {from}.").ok();
    }
    Outcome::done(text, json!(Undone { report, paths_left_out }))
}
