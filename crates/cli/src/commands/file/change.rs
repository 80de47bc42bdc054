//! What `cofferdam file` changes without bytes from outside.

use super::{AnswerOptions, Target, mode, path};
use crate::door::Session;
use crate::meter::Meter;
use crate::{render, report};
use clap::Args;
use cofferdam_core::files::{CopyTree, MAX_COPY_ENTRIES, Move};
use cofferdam_core::{Files, Result};
use cofferdam_session::objects::FileCopied;
use std::ffi::OsString;

/// Two paths.
#[derive(Debug, Args)]
pub(crate) struct FromTo {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// What there is.
    #[arg(value_name = "FROM")]
    pub(crate) from: OsString,

    /// Its new path; directories above it are made.
    #[arg(value_name = "TO")]
    pub(crate) to: OsString,

    /// Replaces what is there.
    ///
    /// Example: --replace
    #[arg(long)]
    pub(crate) replace: bool,
}

/// Makes a directory and those above it. One that is there is what was asked for.
///
/// Example: cofferdam file mkdir agent-1 build/out
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct MkdirArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Gives a file, directory or link another name. What is there is not replaced unless that is said.
///
/// Example: cofferdam file mv agent-1 draft.txt done/final.txt
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct MvArgs {
    #[command(flatten)]
    pub(crate) paths: FromTo,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Copies a regular file, whole or not at all. What is there is not replaced unless that is said.
///
/// With --recursive a directory is copied with all that is in it, whole or not at all, under a name
/// that is free: at most 200000 things. Links are copied as they are. Pipes, sockets and devices are
/// skipped, and named on standard error.
///
/// Example: cofferdam file cp agent-1 config.toml config.bak
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct CpArgs {
    #[command(flatten)]
    pub(crate) paths: FromTo,

    /// Copies a directory with all that is in it.
    ///
    /// Example: --recursive
    #[arg(short = 'r', long, conflicts_with = "replace")]
    pub(crate) recursive: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Removes a file, a link or an empty directory.
///
/// Example: cofferdam file rm agent-1 build --recursive
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Removes a directory with all that is in it. Links in it are removed and not followed.
    ///
    /// Example: --recursive
    #[arg(short = 'r', long)]
    pub(crate) recursive: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Sets the permissions of a file or a directory.
///
/// Example: cofferdam file chmod agent-1 755 run.sh
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct ChmodArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The permissions in octal, at most 777.
    #[arg(value_name = "MODE", value_parser = mode)]
    pub(crate) mode: u32,

    /// The path in the workspace.
    #[arg(value_name = "PATH")]
    pub(crate) path: OsString,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

impl FromTo {
    pub(super) fn order(&self) -> Move {
        Move { from: path(&self.from), to: path(&self.to), replace: self.replace }
    }
}

/// Copies a directory, and says what was copied.
pub(super) async fn copy_tree(args: &CpArgs, session: &Session, files: &Files) -> Result<()> {
    let (from, to) = (path(&args.paths.from), path(&args.paths.to));
    let order = CopyTree { from, to, max_entries: MAX_COPY_ENTRIES };
    let meter = Meter::start("copy", args.answer.json);
    let copied = files.copy_tree(&order).await?;
    drop(meter);
    if args.answer.json {
        return render::print_json(&FileCopied::new(session, &args.paths.to, &copied));
    }
    for skipped in &copied.skipped {
        report::note(&format!("{:?} was skipped, being a {}", skipped.path, skipped.kind.name()));
    }
    if copied.skipped_more > 0 {
        report::note(&format!("{} more were skipped", copied.skipped_more));
    }
    Ok(())
}
