//! `cofferdam file patch`.

use super::file::AnswerOptions;
use super::file_input::{named, read_input};
use crate::door::Session;
use crate::{exit, render, report};
use clap::Args;
use cofferdam_core::Result;
use cofferdam_session::objects::FilePatch;
use cofferdam_session::patch::{
    Difference, HunkOutcome, PatchAction, PatchNote, PatchOutcome, PatchReport, PatchedFile,
    PatchedHunk,
};
use cofferdam_session::{Doing, MAX_PATCH_TEXT, PatchOptions, Way};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Applies a patch to the workspace, whole or not at all.
///
/// A unified diff, as of `git diff`, `git format-patch` and `diff -u`, or an envelope that begins with
/// `*** Begin Patch`. Everything is checked before the first file is changed, and if anything fails on
/// the way, all files are as they were. Nothing is reached through links. Directories on the way are
/// made; those that are emptied stay. A patch that was applied before changes nothing.
///
/// A hunk whose lines stand somewhere else than it says goes there, and the offset is told. If they stand in
/// several such places the patch is refused, and the places are told: correct its line number, or give it more
/// context.
///
/// Example: git diff | cofferdam file patch agent-1
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PatchArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The patch, on the host. Default: standard input.
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) patch: PathBuf,

    /// Says what would be done, and changes nothing.
    ///
    /// Example: --dry-run
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Takes back what the patch does.
    ///
    /// Example: --reverse
    #[arg(short = 'R', long)]
    pub(crate) reverse: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

pub(super) const EXIT_CODES: &str = "\
Exit code:
  0 done, or done before; 1 it does not fit, or Cofferdam could not do it; 2 usage";

pub(super) async fn perform(args: &PatchArgs, session: &Session) -> Result<u8> {
    let text = read_input(&args.patch, MAX_PATCH_TEXT)?;
    let options = PatchOptions {
        doing: if args.dry_run { Doing::DryRun } else { Doing::Real },
        way: if args.reverse { Way::Reverse } else { Way::Forward },
    };
    let patched = session.apply_patch(&text, options).await;
    let patched = patched.map_err(|e| report::of_file(&named(&args.patch, "the patch"), e))?;
    let refused = patched.report.outcome == PatchOutcome::Refused;
    match args.answer.json {
        true => render::print_json(&FilePatch {
            session: session.id().to_string(),
            changed: patched.changed,
            report: patched.report,
        })?,
        false => render::print_lines(&told(&patched.report, options.doing))?,
    }
    Ok(if refused { exit::FAILED } else { exit::DONE })
}

/// A report for people: a line a file, and below it what is to be known of its hunks.
fn told(report: &PatchReport, doing: Doing) -> String {
    let mut text = String::new();
    let before = if report.reversed { "taken back before" } else { "applied before" };
    for file in &report.files {
        told_file(file, before, &mut text);
    }
    text.push_str(match (report.outcome, doing) {
        (PatchOutcome::Fits, Doing::Real) => "applied",
        (PatchOutcome::Fits, Doing::DryRun) => "would be applied; nothing was changed",
        (PatchOutcome::AlreadyApplied, _) => before,
        (PatchOutcome::Refused, _) => "refused",
    });
    if report.outcome != PatchOutcome::Fits {
        text.push_str("; nothing was changed");
    }
    text
}

fn told_file(file: &PatchedFile, before: &str, text: &mut String) {
    let action = match file.action {
        PatchAction::Modify => "change",
        PatchAction::Create => "create",
        PatchAction::Delete => "delete",
        PatchAction::Rename => "rename",
        PatchAction::Copy => "copy",
    };
    let mut words = format!("{:<8}  {action} {}", outcome(file.outcome), render::plain(&file.path));
    if let Some(from) = &file.from {
        let _ = write!(words, " from {}", render::plain(from));
    }
    let _ = writeln!(text, "{words}  +{} -{}", file.added, file.removed);
    if let Some(refusal) = &file.refusal {
        let _ = writeln!(text, "          {}", render::plain(&refusal.message));
    }
    for note in &file.notes {
        let _ = writeln!(text, "          {}", noted(*note));
    }
    for (at, hunk) in file.hunks.iter().enumerate() {
        if let Some(words) = told_hunk(hunk, before) {
            let line = hunk.patch_line;
            let _ = writeln!(text, "          hunk {} (line {line} of the patch) {words}", at + 1);
        }
    }
}

fn outcome(outcome: PatchOutcome) -> &'static str {
    match outcome {
        PatchOutcome::Fits => "fits",
        PatchOutcome::AlreadyApplied => "already",
        PatchOutcome::Refused => "refused",
    }
}

fn noted(note: PatchNote) -> &'static str {
    match note {
        PatchNote::KeptCrlf => "keeps its line ends of carriage return and line feed",
        PatchNote::KeptLf => "keeps its line ends of line feeds",
        PatchNote::KeptMissingFinalNewline => "keeps its last line without a line feed",
        PatchNote::Made => "was not there, and is made",
        PatchNote::HadMode => "had its new mode already",
    }
}

fn listed(lines: &[usize]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What is to be known of a hunk; nothing of one that stands where it says. `before` is what was done to one of
/// which nothing is left to do.
fn told_hunk(hunk: &PatchedHunk, before: &str) -> Option<String> {
    let mut words = match hunk.outcome {
        HunkOutcome::Fits => match (hunk.line, hunk.offset) {
            (Some(line), Some(offset)) if offset != 0 => {
                format!("fits at line {line}, {offset:+} from where it says")
            }
            (_, _) if hunk.recounted => "fits; its lines were counted anew".to_owned(),
            (_, _) => return None,
        },
        HunkOutcome::AlreadyApplied => format!("was {before}"),
        HunkOutcome::NotFound => "fits nowhere".to_owned(),
        HunkOutcome::AnchorNotFound => "names a line that is nowhere".to_owned(),
        HunkOutcome::Ambiguous => {
            format!("fits in several places: lines {}", listed(&hunk.candidates))
        }
        HunkOutcome::OutOfOrder => "fits only before the hunk that it follows".to_owned(),
        HunkOutcome::NoContext => "has no lines around it to go by".to_owned(),
        HunkOutcome::TooLarge => "takes too long to place".to_owned(),
    };
    if let Some(near) = &hunk.nearest {
        let differs = match near.differs_in {
            Difference::Text => "text",
            Difference::WhiteSpace => "white space",
            Difference::LineEnding => "line end",
            Difference::FinalNewline => "last line end",
            Difference::EndOfFile => "end of file",
        };
        let _ = write!(
            words,
            "; near line {}, line {} has another {differs}",
            near.line, near.differs_at
        );
        let shown = |text: &Option<String>| format!("{:?}", text.as_deref().unwrap_or_default());
        let _ = write!(words, ": {} and not {}", shown(&near.found), shown(&near.expected));
    }
    Some(words)
}
