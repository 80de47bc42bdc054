//! `cofferdam gc`.

use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::Result;
use cofferdam_session::{GcKind, GcReport};

/// Compares what is there with what is on record, and removes what belongs to nothing.
///
/// Every command of sessions repairs what it meets; this one looks at everything: sandboxes without a
/// session, sessions without a sandbox, ends that are owed, directories that nobody uses, what runs
/// that were killed left on the machine.
///
/// Example: cofferdam gc --dry-run
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit code:
  0 nothing is left that belongs to nothing; 1 something could not be removed, or Cofferdam could not
  look; 2 usage")]
pub(crate) struct GcArgs {
    /// Says what would be removed, and removes nothing.
    ///
    /// Example: --dry-run
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Looks at everything and repairs it.
pub(super) fn perform(args: &GcArgs) -> Result<u8> {
    // Opening repairs what it meets, which a dry run must not, and of which nobody would be told.
    let report = sessions::as_they_are(async |sessions| sessions.gc(args.dry_run).await)?;
    match args.json {
        true => render::print_json(&report)?,
        false => tell(&report)?,
    }
    Ok(if report.failed.is_empty() { exit::DONE } else { exit::FAILED })
}

fn tell(report: &GcReport) -> Result<()> {
    let rows: Vec<Vec<String>> = report
        .done
        .iter()
        .map(|done| vec![render::plain(&done.subject).into_owned(), said(done.action).to_owned()])
        .collect();
    render::print_text(&render::table(&rows))?;
    for failure in &report.failed {
        report::note(&format!("{}: {}", failure.subject, failure.error));
    }
    Ok(())
}

fn said(action: GcKind) -> &'static str {
    match action {
        GcKind::Expired => "its lease is over: removed",
        GcKind::Abandoned => "its run has no owner: removed",
        GcKind::Removed => "its removal was begun: finished",
        GcKind::Settled => "a change was begun, or its sandbox is gone: settled",
        GcKind::Cleaned => "could not be removed before: removed",
        GcKind::Told => "new deadlines: told",
        GcKind::OrphanEnded => "a sandbox without a session: ended",
        GcKind::StaleEnded => "a sandbox of before: ended",
        GcKind::Swept => "left by what is not there any more: removed",
    }
}
