//! `cofferdam file edit`.

use super::file::{AnswerOptions, Target};
use super::file_input::{named, read_input};
use super::file_patch::EXIT_CODES;
use crate::door::Session;
use crate::{exit, render, report};
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::Doing;
use cofferdam_session::edit::{Edit, EditOutcome, EditReport, EditedText, Places};
use cofferdam_session::objects::FileEdit;
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The most bytes of a file of edits.
const MAX_EDITS_BYTES: usize = 16 << 20;

/// Replaces text in a file, whole or not at all.
///
/// The old text has to stand in exactly one place, unless --all is given. What is not found, or found
/// in several places, is told with its lines, and nothing is changed.
///
/// Example: cofferdam file edit agent-1 src/main.rs --old 'let x = 1;' --new 'let x = 2;'
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// The text that stands there.
    ///
    /// Example: --old 'let x = 1;'
    #[arg(
        long,
        value_name = "TEXT",
        requires = "new",
        required_unless_present = "edits",
        allow_hyphen_values = true
    )]
    pub(crate) old: Option<String>,

    /// The text that is to stand there; an empty one removes the old.
    ///
    /// Example: --new 'let x = 2;'
    #[arg(long, value_name = "TEXT", requires = "old", allow_hyphen_values = true)]
    pub(crate) new: Option<String>,

    /// Replaces every place.
    ///
    /// Example: --all
    #[arg(long, requires = "old")]
    pub(crate) all: bool,

    /// Reads several edits, one applied after the other: a JSON list of objects with `old`, `new` and,
    /// if every place is meant, `"all": true`. `-` is standard input.
    ///
    /// Example: --edits edits.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["old", "new", "all"])]
    pub(crate) edits: Option<PathBuf>,

    /// Says what would be done, and changes nothing.
    ///
    /// Example: --dry-run
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// One edit of a file of edits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidEdit {
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

pub(super) async fn perform(args: &EditArgs, session: &Session) -> Result<u8> {
    let edits = edits(args)?;
    let doing = if args.dry_run { Doing::DryRun } else { Doing::Real };
    let edited = session.edit_file(&args.target.path, &edits, doing).await?;
    let applies = edited.report.applies;
    match args.answer.json {
        true => render::print_json(&FileEdit {
            session: session.id().to_string(),
            path: args.target.path.to_string_lossy().into_owned(),
            changed: edited.changed,
            sha256: edited.sha256,
            report: edited.report,
        })?,
        false => render::print_lines(&told(&edited.report, doing))?,
    }
    Ok(if applies { exit::DONE } else { exit::FAILED })
}

fn edits(args: &EditArgs) -> Result<Vec<Edit>> {
    let edit = |old: &str, new: &str, all: bool| Edit {
        old: old.as_bytes().to_vec(),
        new: new.as_bytes().to_vec(),
        places: if all { Places::All } else { Places::Only },
    };
    let Some(file) = &args.edits else {
        let (old, new) = (args.old.as_deref(), args.new.as_deref());
        return Ok(vec![edit(old.unwrap_or_default(), new.unwrap_or_default(), args.all)]);
    };
    let text = read_input(file, MAX_EDITS_BYTES)?;
    let said: Vec<SaidEdit> = serde_json::from_slice(&text).map_err(|e| {
        let what = Error::new(ErrorKind::Usage, "it holds no edits").source(e);
        let what = what.hint("Write a JSON list of objects with old and new.");
        report::of_file(&named(file, "the list of edits"), what)
    })?;
    Ok(said.iter().map(|said| edit(&said.old, &said.new, said.all)).collect())
}

fn told(report: &EditReport, doing: Doing) -> String {
    let mut text = String::new();
    for (at, edit) in report.edits.iter().enumerate() {
        let _ = writeln!(text, "edit {}: {}", at + 1, told_edit(edit));
    }
    text.push_str(match (report.applies, doing) {
        (true, Doing::Real) => "applied",
        (true, Doing::DryRun) => "would be applied; nothing was changed",
        (false, _) => "refused; nothing was changed",
    });
    text
}

fn told_edit(edit: &EditedText) -> String {
    let lines = |lines: &[usize]| {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        lines.join(", ")
    };
    match edit.outcome {
        EditOutcome::Applies if edit.places == 1 => format!("at line {}", lines(&edit.lines)),
        EditOutcome::Applies => format!("{} places, at lines {}", edit.places, lines(&edit.lines)),
        EditOutcome::Ambiguous => format!(
            "the old text stands in {} places, at lines {}; write more of it, or mean all",
            edit.places,
            lines(&edit.lines)
        ),
        EditOutcome::NotFound if !edit.already.is_empty() => {
            format!("not found; the new text stands at line {}", lines(&edit.already))
        }
        EditOutcome::NotFound if !edit.similar.is_empty() => {
            format!("not found; but for white space, it begins at line {}", lines(&edit.similar))
        }
        EditOutcome::NotFound => "not found".to_owned(),
    }
}
