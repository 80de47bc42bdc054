//! `cofferdam discard`.

use super::layer::print_changes;
use crate::meter::Meter;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::Result;
use cofferdam_session::Discarded;
use cofferdam_session::objects::DiscardedChanges;
use std::ffi::OsString;

/// Drops what a copy-on-write session changed: its workspace is as the real one again.
///
/// What runs in the session ends first, because nobody can take a layer away below those who see it; how
/// much that was is told. The session stays, with its home directory, and its next command finds a new
/// sandbox. Nothing is ended where there is nothing to drop.
///
/// Example: cofferdam discard agent-1
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DiscardArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Only these paths of the workspace and what is below them.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,

    /// Says what would be dropped, and does nothing.
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

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam discard agent-1
  cofferdam discard agent-1 src/generated --dry-run";

/// Drops the changes.
pub(super) fn perform(args: &DiscardArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        let meter = Meter::start("discard", args.json);
        let discarded = session.discard(&args.paths, args.dry_run).await?;
        drop(meter);
        if args.json {
            let session = session.id().to_string();
            render::print_json(&DiscardedChanges::new(session, args.dry_run, &discarded))?;
            return Ok(exit::DONE);
        }
        print_changes(&discarded.changes)?;
        tell(&discarded);
        Ok(exit::DONE)
    })
}

/// Says what became of the processes.
fn tell(done: &Discarded) {
    let Discarded { changes, processes_ended, commands, left } = done;
    if changes.is_empty() {
        report::note("the session changed nothing");
    }
    if *processes_ended {
        let ended = super::undo::ended(*commands, *left);
        report::note(&format!("{ended}; the next command gets a new sandbox"));
    }
}
