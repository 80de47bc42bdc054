//! `cofferdam snapshot`.

use super::snapshot_file::{self, ExportArgs, ImportArgs};
use crate::meter::Meter;
use crate::moment::timestamp;
use crate::{exit, render, sessions};
use clap::{Args, Subcommand};
use cofferdam_core::Result;
use cofferdam_session::SnapshotReport;
use cofferdam_session::objects::SnapshotList;

/// Keeps and brings back what a copy-on-write session changed.
///
/// A snapshot is a point of the session's history that stays until it is removed: exactly what the
/// session changed in its workspace, taken while its processes stand still. $HOME, processes and memory
/// are not part of it. Snapshots go with their session, unless they are exported.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    pub(crate) verb: SnapshotVerb,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam snapshot create draft --label 'tests pass'
  cofferdam snapshot ls draft
  cofferdam snapshot restore draft 'tests pass'
  cofferdam snapshot export draft 'tests pass' draft.snapshot
  cofferdam snapshot import other draft.snapshot";

/// What is done with snapshots.
#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotVerb {
    Create(CreateArgs),
    Ls(LsArgs),
    Restore(RestoreArgs),
    Rm(RmArgs),
    Export(ExportArgs),
    Import(ImportArgs),
}

/// Takes a snapshot of a session, and prints its number.
///
/// Example: cofferdam snapshot create draft --label 'tests pass'
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct CreateArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Names it, in place of its number alone.
    ///
    /// Example: --label 'tests pass'
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Prints the snapshot as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the snapshots of a session, oldest first.
///
/// Example: cofferdam snapshot ls draft
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct LsArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Puts the workspace of a session back to a snapshot.
///
/// What it changed since becomes a point of its history first. All processes of the session are ended,
/// which nothing brings back; its sandbox lives on where it would after `cofferdam undo`. The snapshot
/// stays, and so does the real workspace, as ever. `cofferdam undo` goes to points that are no snapshots.
///
/// Example: cofferdam snapshot restore draft 3
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct RestoreArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The number of the snapshot, or its label.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: String,

    /// Prints what was done as one JSON object on standard output, as `undo` does.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Removes a snapshot.
///
/// Example: cofferdam snapshot rm draft 3
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct RmArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The number of the snapshot, or its label.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: String,

    /// Prints the snapshot that is gone as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Does what the verb says.
pub(super) fn perform(args: &SnapshotArgs) -> Result<u8> {
    match &args.verb {
        SnapshotVerb::Create(args) => create(args),
        SnapshotVerb::Ls(args) => list(args),
        SnapshotVerb::Restore(args) => restore(args),
        SnapshotVerb::Rm(args) => remove(args),
        SnapshotVerb::Export(args) => snapshot_file::export(args),
        SnapshotVerb::Import(args) => snapshot_file::import(args),
    }
}

fn create(args: &CreateArgs) -> Result<u8> {
    let taken = sessions::with(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        let _meter = Meter::start("snapshot", args.json);
        sessions.snapshot(&id, args.label.clone()).await
    })?;
    match args.json {
        true => render::print_json(&taken)?,
        false => render::print_text(&format!("{}\n", taken.snapshot))?,
    }
    Ok(exit::DONE)
}

fn list(args: &LsArgs) -> Result<u8> {
    let snapshots = sessions::on_reserve(async |sessions| {
        let id = sessions.find(&args.session).await?;
        sessions.snapshots(&id).await
    })?;
    match args.json {
        true => render::print_json(&SnapshotList { snapshots })?,
        false => render::print_text(&table(&snapshots))?,
    }
    Ok(exit::DONE)
}

fn restore(args: &RestoreArgs) -> Result<u8> {
    let restored = sessions::with(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        let _meter = Meter::start("restore", args.json);
        sessions.restore(&id, &args.snapshot).await
    })?;
    if args.json {
        render::print_json(&restored)?;
    }
    super::undo::tell(&restored);
    Ok(exit::DONE)
}

fn remove(args: &RmArgs) -> Result<u8> {
    let removed = sessions::on_reserve(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        sessions.remove_snapshot(&id, &args.snapshot).await
    })?;
    if args.json {
        render::print_json(&removed)?;
    }
    Ok(exit::DONE)
}

fn table(snapshots: &[SnapshotReport]) -> String {
    let titles = ["SNAPSHOT", "MADE", "FILES", "BYTES", "LABEL"].map(str::to_owned);
    let mut rows = vec![titles.to_vec()];
    rows.extend(snapshots.iter().map(|snapshot| {
        let label = snapshot.label.as_deref().unwrap_or("-");
        vec![
            snapshot.snapshot.to_string(),
            timestamp(snapshot.made_ms),
            snapshot.files.to_string(),
            snapshot.bytes.to_string(),
            render::plain(label).into_owned(),
        ]
    }));
    render::table(&rows)
}
