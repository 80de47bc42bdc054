//! `cofferdam file stat` and `cofferdam file list`.

use super::report::table;
use super::{AnswerOptions, Target, path};
use crate::door::Session;
use crate::render;
use clap::Args;
use cofferdam_core::files::{List, MAX_DEPTH, MAX_ENTRIES};
use cofferdam_core::{Files, Result};
use cofferdam_session::objects::{FileEntry, FileList};
use std::ffi::OsString;

/// Says what is there: type, size, time, permissions and where a link leads.
///
/// Example: cofferdam file stat agent-1 Cargo.toml
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Lists a directory, in the order of names.
///
/// Example: cofferdam file list agent-1 src --depth 3
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct ListArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The directory. Default: the workspace.
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub(crate) path: OsString,

    /// Lists so many levels, at most 128. Links are not followed. Default: 1.
    ///
    /// Example: --depth 3
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=MAX_DEPTH as i64))]
    pub(crate) depth: u32,

    /// Prints at most so many entries, at most 1000. Default: all; with --json 1000.
    ///
    /// Example: --limit 100
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ENTRIES)))]
    pub(crate) limit: Option<u32>,

    /// Begins behind this entry, as `next` of the last page names it.
    ///
    /// Example: --after src/main.rs
    #[arg(long, value_name = "PATH")]
    pub(crate) after: Option<OsString>,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Prints what is there.
pub(super) async fn stat(args: &StatArgs, files: &Files) -> Result<()> {
    let entry = files.stat(&args.target.path).await?;
    let entry = FileEntry::of_path(&args.target.path, &entry);
    match args.answer.json {
        true => render::print_json(&entry),
        false => render::print_text(&table(&[entry])),
    }
}

/// Prints a directory.
pub(super) async fn list(args: &ListArgs, session: &Session, files: &Files) -> Result<()> {
    let mut order = List {
        path: path(&args.path),
        depth: args.depth,
        after: args.after.as_deref().map(Into::into),
        limit: args.limit.unwrap_or(MAX_ENTRIES),
    };
    loop {
        let page = files.list(&order).await?;
        if args.answer.json {
            return render::print_json(&FileList::new(session, &args.path, &page));
        }
        let entries: Vec<FileEntry> = page.entries.iter().map(FileEntry::of_entry).collect();
        render::print_text(&table(&entries))?;
        order.after = page.next.filter(|_| args.limit.is_none());
        if order.after.is_none() {
            return Ok(());
        }
    }
}
