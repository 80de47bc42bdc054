//! `cofferdam file read`.

use super::{AnswerOptions, OBJECT_BYTES, Target, path};
use crate::blocking::{Blocking, Outgoing};
use crate::commands::file_window;
use crate::door::Session;
use crate::render;
use clap::Args;
use cofferdam_core::files::Read;
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_session::objects::FileContent;
use std::io;

/// Prints a file or a part of it on standard output, byte for byte.
///
/// Example: cofferdam file read agent-1 target/report.txt
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
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

/// Prints what was asked for.
pub(super) async fn perform(args: &ReadArgs, session: &Session, files: &Files) -> Result<()> {
    match args.answer.json {
        true => read_object(args, session, files).await,
        false => read(args, files).await,
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
    let mut sink = Blocking(Outgoing::to_stdout(io::stdout()));
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
    let read = files.read_to(&order, &mut bytes).await;
    let read = read.map_err(|error| match error.kind == ErrorKind::TooLarge {
        true => error.hint("Print a part with --offset and --length, or all of it without --json."),
        false => error,
    })?;
    render::print_json(&FileContent::new(session, &args.target.path, args.offset, &read, bytes))
}
