//! `cofferdam file read-many`.

use super::{AnswerOptions, OBJECT_BYTES, path};
use crate::door::Session;
use crate::{exit, render, report};
use clap::Args;
use cofferdam_core::files::{ReadMany, WholeFile};
use cofferdam_core::{Files, Result};
use cofferdam_session::objects::{FileContent, FileContents, OneContent};
use std::ffi::{OsStr, OsString};

/// Prints several files, each below a line with its name.
///
/// Of small files as many as fit come in one round trip. A file that cannot be read is told on standard
/// error, or in its place with --json, and stops no other.
///
/// Example: cofferdam file read-many agent-1 Cargo.toml src/main.rs
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ReadManyArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The files, at most 1000.
    #[arg(value_name = "PATH", required = true, num_args = 1..=1000)]
    pub(crate) paths: Vec<OsString>,

    /// Leaves out a file of more bytes. Default: 1 MiB; all together are at most 16 MiB.
    ///
    /// Example: --max-bytes 4096
    #[arg(long, value_name = "N", default_value_t = 1 << 20, hide_default_value = true)]
    pub(crate) max_bytes: u64,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

const EXIT_CODES: &str = "\
Exit code:
  0 all were read; 1 one at least was not; 2 usage";

/// Prints what could be read. Whether that was all is the exit code.
pub(super) async fn perform(args: &ReadManyArgs, session: &Session, files: &Files) -> Result<u8> {
    let order = ReadMany {
        paths: args.paths.iter().map(path).collect(),
        max_bytes: args.max_bytes,
        total_bytes: OBJECT_BYTES,
    };
    let all = files.read_many(&order).await?;
    let is_whole = all.iter().all(Result::is_ok);
    if args.answer.json {
        let each = args.paths.iter().zip(all).map(|(path, one)| object(session, path, one));
        let session = session.id().to_string();
        render::print_json(&FileContents { session, files: each.collect() })?;
    } else {
        for (path, one) in args.paths.iter().zip(all) {
            print(path, one)?;
        }
    }
    Ok(if is_whole { exit::DONE } else { exit::FAILED })
}

fn object(session: &Session, path: &OsStr, one: Result<WholeFile>) -> OneContent {
    match one {
        Ok(WholeFile { read, bytes }) => {
            OneContent::read(path, FileContent::new(session, path, 0, &read, bytes))
        }
        Err(error) => OneContent::failed(path, &error),
    }
}

fn print(path: &OsStr, one: Result<WholeFile>) -> Result<()> {
    match one {
        Ok(content) => {
            let name = path.to_string_lossy();
            render::print_text(&format!("==> {} <==\n", render::plain(&name)))?;
            render::print_bytes(&content.bytes)?;
            if content.bytes.last().is_some_and(|last| *last != b'\n') {
                render::print_text("\n")?;
            }
            Ok(())
        }
        Err(error) => {
            report::note(&error.chain());
            Ok(())
        }
    }
}
