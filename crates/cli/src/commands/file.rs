//! `cofferdam file`.

mod report;

use super::{file_edit, file_patch, file_window};
use crate::blocking::Blocking;
use crate::{exit, render, sessions};
use clap::{Args, Subcommand};
use cofferdam_core::files::{
    Append, List, MAX_DEPTH, MAX_ENTRIES, Move, Only, Read, Remove, Write, Written,
};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_session::Session;
use std::ffi::OsString;
use std::io;

pub(crate) use report::{FileContent, FileDone, FileEntry, FileList};

/// Reads and changes files of a session's workspace, from inside its sandbox.
///
/// A path is relative to the workspace, or begins with /workspace. It is opened by the sandbox's own
/// user and under its rules, so nothing outside is reached, whatever links and renames are made
/// meanwhile. Links are followed as long as they stay inside. A session that sleeps is resumed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FileArgs {
    #[command(subcommand)]
    pub(crate) verb: FileVerb,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam file read agent-1 src/main.rs
  cofferdam file write agent-1 notes.txt <notes.txt
  cofferdam file list agent-1 src --depth 3";

/// What is done with a file.
#[derive(Debug, Subcommand)]
pub(crate) enum FileVerb {
    Read(ReadArgs),
    Write(WriteArgs),
    Append(AppendArgs),
    Stat(StatArgs),
    List(ListArgs),
    Mkdir(MkdirArgs),
    Mv(MvArgs),
    Cp(CpArgs),
    Rm(RmArgs),
    Chmod(ChmodArgs),
    Patch(file_patch::PatchArgs),
    Edit(file_edit::EditArgs),
}

/// The session and a path in it.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The path in the workspace.
    #[arg(value_name = "PATH")]
    pub(crate) path: OsString,
}

/// How the answer is printed.
#[derive(Debug, Args)]
pub(crate) struct AnswerOptions {
    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Two paths.
#[derive(Debug, Args)]
pub(crate) struct FromTo {
    /// The session: its name or id, or the beginning of one.
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

/// Prints a file or a part of it on standard output, byte for byte.
///
/// Example: cofferdam file read agent-1 target/report.txt
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Begins at this byte. Default: 0.
    ///
    /// Example: --offset 4096
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) offset: u64,

    /// Prints at most so many bytes. Default: all; with --json at most 16 MiB.
    ///
    /// Example: --length 1000
    #[arg(long, value_name = "N")]
    pub(crate) length: Option<u64>,

    #[command(flatten)]
    pub(crate) window: file_window::WindowOptions,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Writes standard input to a file, whole or not at all.
///
/// The bytes go to a file beside it, which takes its place when all have come: a reader sees the old
/// file or the new one. Directories above it are made. What is no regular file is not replaced, and
/// another name of the same file keeps the old bytes.
///
/// Example: cofferdam file write agent-1 notes.txt <notes.txt
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
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
    #[arg(long, value_name = "HASH")]
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
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
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

/// Says what is there: type, size, time, permissions and where a link leads.
///
/// Example: cofferdam file stat agent-1 Cargo.toml
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
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
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
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

/// Makes a directory and those above it. One that is there is what was asked for.
///
/// Example: cofferdam file mkdir agent-1 build/out
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
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
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct MvArgs {
    #[command(flatten)]
    pub(crate) paths: FromTo,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Copies a regular file, whole or not at all. What is there is not replaced unless that is said.
///
/// Example: cofferdam file cp agent-1 config.toml config.bak
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct CpArgs {
    #[command(flatten)]
    pub(crate) paths: FromTo,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Removes a file, a link or an empty directory.
///
/// Example: cofferdam file rm agent-1 build --recursive
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
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
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ChmodArgs {
    /// The session: its name or id, or the beginning of one.
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

/// The most that is printed as one JSON object.
const OBJECT_BYTES: u64 = 16 << 20;

/// Does what the verb says.
pub(super) fn perform(args: &FileArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = sessions::find(sessions, args.verb.session()).await?;
        let files = session.files();
        match &args.verb {
            FileVerb::Patch(args) => return file_patch::perform(args, &session).await,
            FileVerb::Edit(args) => return file_edit::perform(args, &session).await,
            FileVerb::Read(args) if let Some(order) = args.window.order() => {
                file_window::perform(args, order, &session).await
            }
            FileVerb::Read(args) if args.answer.json => read_object(args, &session, &files).await,
            FileVerb::Read(args) => read(args, &files).await,
            FileVerb::Write(args) => {
                let written = write(args, &files).await?;
                done(&args.answer, FileDone::written(&session, &args.target.path, &written))
            }
            FileVerb::Append(args) => {
                let order = Append { path: path(&args.target.path), mode: args.mode };
                let written = files.append_from(&order, &mut Blocking(io::stdin())).await?;
                done(&args.answer, FileDone::written(&session, &args.target.path, &written))
            }
            FileVerb::Stat(args) => {
                let entry = files.stat(&args.target.path).await?;
                let entry = FileEntry::of_path(&args.target.path, &entry);
                match args.answer.json {
                    true => render::print_json(&entry)?,
                    false => render::print_text(&report::table(&[entry]))?,
                }
                Ok(())
            }
            FileVerb::List(args) => list(args, &session, &files).await,
            FileVerb::Mkdir(args) => {
                let created = files.make_directory(&args.target.path).await?;
                done(&args.answer, FileDone::made(&session, &args.target.path, created))
            }
            FileVerb::Mv(args) => {
                files.rename(&args.paths.order()).await?;
                done(&args.answer, FileDone::of(&session, &args.paths.to))
            }
            FileVerb::Cp(args) => {
                let written = files.copy(&args.paths.order()).await?;
                done(&args.answer, FileDone::written(&session, &args.paths.to, &written))
            }
            FileVerb::Rm(args) => {
                let path = path(&args.target.path);
                files.remove(&Remove { path, recursive: args.recursive }).await?;
                done(&args.answer, FileDone::of(&session, &args.target.path))
            }
            FileVerb::Chmod(args) => {
                files.set_mode(&args.path, args.mode).await?;
                done(&args.answer, FileDone::of(&session, &args.path))
            }
        }?;
        Ok(exit::DONE)
    })
}

impl FileVerb {
    fn session(&self) -> &str {
        match self {
            Self::Read(args) => &args.target.session,
            Self::Write(args) => &args.target.session,
            Self::Append(args) => &args.target.session,
            Self::Stat(args) => &args.target.session,
            Self::List(args) => &args.session,
            Self::Mkdir(args) => &args.target.session,
            Self::Mv(args) => &args.paths.session,
            Self::Cp(args) => &args.paths.session,
            Self::Rm(args) => &args.target.session,
            Self::Chmod(args) => &args.session,
            Self::Patch(args) => &args.session,
            Self::Edit(args) => &args.target.session,
        }
    }
}

impl FromTo {
    fn order(&self) -> Move {
        Move { from: path(&self.from), to: path(&self.to), replace: self.replace }
    }
}

impl ReadArgs {
    fn order(&self) -> Read {
        Read {
            path: path(&self.target.path),
            offset: self.offset,
            length: self.length,
            ..Read::default()
        }
    }
}

async fn read(args: &ReadArgs, files: &Files) -> Result<()> {
    let mut sink = Blocking(io::stdout());
    match files.read_to(&args.order(), &mut sink).await {
        Ok(_) => sink.finish(),
        // Who reads us wanted no more.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    let cause = error.source.as_ref().and_then(|cause| cause.downcast_ref::<io::Error>());
    error.kind == ErrorKind::Io && cause.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

async fn read_object(args: &ReadArgs, session: &Session, files: &Files) -> Result<()> {
    let order = Read { hash: true, max_bytes: Some(OBJECT_BYTES), ..args.order() };
    let mut bytes = Vec::new();
    let read = files.read_to(&order, &mut bytes).await?;
    render::print_json(&FileContent::new(session, &args.target.path, args.offset, &read, bytes))
}

async fn write(args: &WriteArgs, files: &Files) -> Result<Written> {
    let only = match (args.if_missing, args.if_exists, &args.if_match) {
        (true, _, _) => Only::IfMissing,
        (_, true, _) => Only::IfExists,
        (_, _, Some(hash)) => Only::IfMatch(hash.clone()),
        (false, false, None) => Only::Always,
    };
    let order = Write { path: path(&args.target.path), only, mode: args.mode };
    files.write_from(&order, &mut Blocking(io::stdin())).await
}

async fn list(args: &ListArgs, session: &Session, files: &Files) -> Result<()> {
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
        render::print_text(&report::table(&entries))?;
        order.after = page.next.filter(|_| args.limit.is_none());
        if order.after.is_none() {
            return Ok(());
        }
    }
}

fn done(answer: &AnswerOptions, report: FileDone) -> Result<()> {
    if answer.json { render::print_json(&report) } else { Ok(()) }
}

fn path(path: &OsString) -> cofferdam_core::ByteString {
    path.as_os_str().into()
}

fn mode(text: &str) -> Result<u32> {
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("{text:?} are no permissions"))
            .hint("Write up to three octal digits, as in 644 or 755.")
    };
    let mode = u32::from_str_radix(text, 8).map_err(|_| wrong())?;
    if mode <= 0o777 { Ok(mode) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal_and_grant_no_other_identity() {
        assert_eq!(mode("644").unwrap(), 0o644);
        assert_eq!(mode("0755").unwrap(), 0o755);
        for bad in ["", "8", "4755", "rwx", "-1", "1777"] {
            assert!(mode(bad).is_err(), "{bad:?}");
        }
    }
}
