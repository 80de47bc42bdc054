//! `cofferdam file write` and `cofferdam file append`.

use super::{AnswerOptions, Target, mode, path};
use crate::blocking::Blocking;
use clap::Args;
use cofferdam_core::files::{Append, Only, Write, Written};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use std::io;

/// How long a SHA-256 is in hexadecimal.
const HASH_DIGITS: usize = 64;

/// Writes standard input to a file, whole or not at all.
///
/// The bytes go to a file beside it, which takes its place when all have come: a reader sees the old
/// file or the new one. Directories above it are made. What is no regular file is not replaced, and
/// another name of the same file keeps the old bytes.
///
/// Example: cofferdam file write agent-1 notes.txt <notes.txt
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Writes only where nothing is yet.
    ///
    /// Example: --if-missing
    #[arg(long, conflicts_with_all = ["if_exists", "if_match"])]
    pub(crate) if_missing: bool,

    /// Writes only where the file is there.
    ///
    /// Example: --if-exists
    #[arg(long, conflicts_with = "if_match")]
    pub(crate) if_exists: bool,

    /// Writes only where the file has this SHA-256, as `file read --json` tells it.
    ///
    /// Example: --if-match ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub(crate) if_match: Option<String>,

    /// Sets the permissions, in octal. Default: those that it had, or 644.
    ///
    /// Example: --mode 755
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<u32>,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Adds standard input at the end of a file, which is made where it is missing.
///
/// Example: echo done | cofferdam file append agent-1 log.txt
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct AppendArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Sets the permissions of a file that is made, in octal. Default: 644.
    ///
    /// Example: --mode 600
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<u32>,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Writes what comes on standard input.
pub(super) async fn write(args: &WriteArgs, files: &Files) -> Result<Written> {
    let only = match (args.if_missing, args.if_exists, &args.if_match) {
        (true, _, _) => Only::IfMissing,
        (_, true, _) => Only::IfExists,
        (_, _, Some(hash)) => Only::IfMatch(hash.clone()),
        (false, false, None) => Only::Always,
    };
    let order = Write { path: path(&args.target.path), only, mode: args.mode };
    files.write_from(&order, &mut Blocking(io::stdin())).await
}

/// Adds what comes on standard input.
pub(super) async fn append(args: &AppendArgs, files: &Files) -> Result<Written> {
    let order = Append { path: path(&args.target.path), mode: args.mode };
    files.append_from(&order, &mut Blocking(io::stdin())).await
}

/// A SHA-256 in hexadecimal, in small letters.
fn hash(text: &str) -> Result<String> {
    if text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Error::new(ErrorKind::Usage, format!("{text:?} is no SHA-256"))
        .hint("Write its 64 digits, as `file read --json` tells them."))
}
