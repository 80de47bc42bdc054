//! `cofferdam file`.

mod change;
mod export;
mod glob;
mod grep;
mod import;
mod list;
mod read;
mod read_many;
mod report;
mod search_report;
mod transfer;
mod watch;
mod watch_report;
mod write;

use super::{file_edit, file_patch, file_window};
use crate::door::Session;
use crate::{exit, render, sessions};
use change::{ChmodArgs, CpArgs, MkdirArgs, MvArgs, RmArgs};
use clap::{Args, Subcommand};
use cofferdam_core::files::Remove;
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_session::objects::FileDone;
use export::ExportArgs;
use glob::GlobArgs;
use grep::GrepArgs;
use import::ImportArgs;
use list::{ListArgs, StatArgs};
use read_many::ReadManyArgs;
use std::ffi::OsString;
use transfer::{DownloadArgs, UploadArgs};
use watch::WatchArgs;
use write::{AppendArgs, WriteArgs};

pub(crate) use read::ReadArgs;

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
    ReadMany(ReadManyArgs),
    Glob(GlobArgs),
    Grep(GrepArgs),
    Watch(WatchArgs),
    Upload(UploadArgs),
    Download(DownloadArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Patch(file_patch::PatchArgs),
    Edit(file_edit::EditArgs),
}

/// The session and a path in it.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The session: its name or id, or the beginning of one. To change something, a name is given whole.
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

/// The most that is printed as one JSON object.
const OBJECT_BYTES: u64 = 16 << 20;

/// Does what the verb says.
pub(super) fn perform(args: &FileArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let named = args.verb.session();
        let session = match args.verb.changes() {
            true => sessions::find_to_change(sessions, named).await?,
            false => sessions::find(sessions, named).await?,
        };
        let files = session.files();
        match &args.verb {
            FileVerb::Patch(args) => return file_patch::perform(args, &session).await,
            FileVerb::Edit(args) => return file_edit::perform(args, &session).await,
            FileVerb::Read(args) if let Some(order) = args.window.order() => {
                file_window::perform(args, order, &session).await
            }
            FileVerb::Read(args) => read::perform(args, &session, &files).await,
            FileVerb::Stat(args) => list::stat(args, &files).await,
            FileVerb::List(args) => list::list(args, &session, &files).await,
            FileVerb::ReadMany(args) => return read_many::perform(args, &session, &files).await,
            FileVerb::Glob(args) => glob::perform(args, &session, files).await,
            FileVerb::Grep(args) => grep::perform(args, &session, files).await,
            FileVerb::Watch(args) => watch::perform(args, &session, &files).await,
            FileVerb::Upload(args) => transfer::upload(args, &session, &files).await,
            FileVerb::Download(args) => transfer::download(args, &session, &files).await,
            FileVerb::Export(args) => export::perform(args, &files).await,
            FileVerb::Import(args) => import::perform(args, &session, &files).await,
            FileVerb::Write(_)
            | FileVerb::Append(_)
            | FileVerb::Mkdir(_)
            | FileVerb::Mv(_)
            | FileVerb::Cp(_)
            | FileVerb::Rm(_)
            | FileVerb::Chmod(_) => change(&args.verb, &session, &files).await,
        }?;
        Ok(exit::DONE)
    })
}

/// Does what changes something, and says that it is done.
async fn change(verb: &FileVerb, session: &Session, files: &Files) -> Result<()> {
    match verb {
        FileVerb::Write(args) => {
            let written = write::write(args, files).await?;
            done(&args.answer, FileDone::written(session, &args.target.path, &written))
        }
        FileVerb::Append(args) => {
            let written = write::append(args, files).await?;
            done(&args.answer, FileDone::written(session, &args.target.path, &written))
        }
        FileVerb::Mkdir(args) => {
            let created = files.make_directory(&args.target.path).await?;
            done(&args.answer, FileDone::made(session, &args.target.path, created))
        }
        FileVerb::Mv(args) => {
            files.rename(&args.paths.order()).await?;
            done(&args.answer, FileDone::of(session, &args.paths.to))
        }
        FileVerb::Cp(args) if args.recursive => change::copy_tree(args, session, files).await,
        FileVerb::Cp(args) => {
            let written = files.copy(&args.paths.order()).await?;
            done(&args.answer, FileDone::written(session, &args.paths.to, &written))
        }
        FileVerb::Rm(args) => {
            let path = path(&args.target.path);
            files.remove(&Remove { path, recursive: args.recursive }).await?;
            done(&args.answer, FileDone::of(session, &args.target.path))
        }
        FileVerb::Chmod(args) => {
            files.set_mode(&args.path, args.mode).await?;
            done(&args.answer, FileDone::of(session, &args.path))
        }
        // They are done above.
        FileVerb::Read(_)
        | FileVerb::Stat(_)
        | FileVerb::List(_)
        | FileVerb::ReadMany(_)
        | FileVerb::Glob(_)
        | FileVerb::Grep(_)
        | FileVerb::Watch(_)
        | FileVerb::Upload(_)
        | FileVerb::Download(_)
        | FileVerb::Export(_)
        | FileVerb::Import(_)
        | FileVerb::Patch(_)
        | FileVerb::Edit(_) => Ok(()),
    }
}

impl FileVerb {
    /// Whether it changes something in the session.
    fn changes(&self) -> bool {
        match self {
            Self::Write(_)
            | Self::Append(_)
            | Self::Mkdir(_)
            | Self::Mv(_)
            | Self::Cp(_)
            | Self::Rm(_)
            | Self::Chmod(_)
            | Self::Upload(_)
            | Self::Import(_)
            | Self::Patch(_)
            | Self::Edit(_) => true,
            Self::Read(_)
            | Self::Stat(_)
            | Self::List(_)
            | Self::ReadMany(_)
            | Self::Glob(_)
            | Self::Grep(_)
            | Self::Watch(_)
            | Self::Download(_)
            | Self::Export(_) => false,
        }
    }

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
            Self::ReadMany(args) => &args.session,
            Self::Glob(args) => &args.session,
            Self::Grep(args) => &args.session,
            Self::Watch(args) => &args.session,
            Self::Upload(args) => &args.session,
            Self::Download(args) => &args.target.session,
            Self::Export(args) => &args.session,
            Self::Import(args) => &args.session,
            Self::Patch(args) => &args.session,
            Self::Edit(args) => &args.target.session,
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
