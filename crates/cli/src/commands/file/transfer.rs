//! `cofferdam file upload` and `cofferdam file download`.

use super::{AnswerOptions, Target, done, path};
use crate::beside::{Beside, local, there_already};
use crate::blocking::{Blocking, Outgoing};
use crate::door::Session;
use crate::meter::Meter;
use clap::Args;
use cofferdam_core::files::{Read, Write, Written};
use cofferdam_core::{Error, ErrorKind, Files, Result, hexadecimal};
use cofferdam_session::objects::FileDone;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// Copies a file of this machine into the workspace, whole or not at all, of any size.
///
/// What the sandbox wrote is compared by its SHA-256 with what was read here, which is printed. The
/// file gets the permissions that it has here. Progress is shown on a terminal, and
/// told by events on standard error with --json.
///
/// Example: cofferdam file upload agent-1 ~/data.tar data/data.tar
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct UploadArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The file here.
    #[arg(value_name = "LOCAL")]
    pub(crate) local: PathBuf,

    /// The path in the workspace.
    #[arg(value_name = "PATH")]
    pub(crate) path: OsString,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Copies a file of the workspace to this machine, whole or not at all, of any size.
///
/// What came is compared by its SHA-256 with what the sandbox read before, which is printed: a file that
/// changes meanwhile is refused. It belongs to you, and is never executable. Progress is shown on a
/// terminal, and told by events on standard error with --json.
///
/// Example: cofferdam file download agent-1 out/report.pdf report.pdf
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct DownloadArgs {
    #[command(flatten)]
    pub(crate) target: Target,

    /// The file here.
    #[arg(value_name = "LOCAL")]
    pub(crate) local: PathBuf,

    /// Replaces what is there.
    ///
    /// Example: --replace
    #[arg(long)]
    pub(crate) replace: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Writes a file of this machine in the workspace.
pub(super) async fn upload(args: &UploadArgs, session: &Session, files: &Files) -> Result<()> {
    let unreadable = |cause| local("read", &args.local, cause);
    // A pipe would keep us waiting, and has no size.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&args.local);
    let file = file.map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if !about.is_file() {
        let what = format!("{:?} is no regular file", args.local);
        return Err(Error::new(ErrorKind::NotAFile, what).hint(
            "Name a file; a directory comes as a tar archive, with `cofferdam file import`.",
        ));
    }
    let mode = Some(about.permissions().mode() & 0o777);
    let order = Write { path: path(&args.path), mode, ..Write::default() };
    let meter = Meter::start("upload", args.answer.json);
    let mut source = Blocking(Passing::new(meter.counting(file, Some(about.len()))));
    let written = files.write_from(&order, &mut source).await?;
    drop(meter);
    if source.0.finish() != written.sha256 {
        let what = "the sandbox wrote other bytes than it was sent";
        return Err(Error::new(ErrorKind::Protocol, what).hint("Remove the file, then try again."));
    }
    say(session, &args.path, &args.answer, &written)
}

/// Writes a file of the workspace on this machine.
pub(super) async fn download(args: &DownloadArgs, session: &Session, files: &Files) -> Result<()> {
    if !args.replace && args.local.symlink_metadata().is_ok() {
        return Err(there_already(&args.local));
    }
    let size = files.stat(&args.target.path).await?.size;
    let order = Read { path: path(&args.target.path), hash: true, ..Read::default() };
    let beside = Beside::new(&args.local, 0o644)?;
    let unwritten = |cause| local("write", &args.local, cause);
    let file = Outgoing::to_file(beside.file.try_clone().map_err(unwritten)?, &args.local);
    let meter = Meter::start("download", args.answer.json);
    let mut sink = Blocking(Passing::new(meter.counting(file, Some(size))));
    let read = files.read_to(&order, &mut sink).await?;
    drop(meter);
    let sha256 = sink.0.finish();
    if read.sha256.as_ref() != Some(&sha256) {
        let what = format!("{:?} changed while it was read", args.target.path);
        return Err(Error::new(ErrorKind::Conflict, what).hint("Try again when nobody writes it."));
    }
    beside.take_place(&args.local, args.replace)?;
    let written = Written { bytes: read.bytes, sha256, created: true };
    say(session, &args.target.path, &args.answer, &written)
}

fn say(session: &Session, path: &OsStr, answer: &AnswerOptions, written: &Written) -> Result<()> {
    if answer.json {
        return done(answer, FileDone::written(session, path, written));
    }
    crate::render::print_text(&format!("{}  {}\n", written.sha256, written.bytes))
}

/// Bytes that pass, and their hash.
struct Passing<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Passing<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    /// The hash of all, in hexadecimal.
    fn finish(&mut self) -> String {
        hexadecimal(std::mem::take(&mut self.hash).finalize())
    }
}

impl<T: io::Read> io::Read for Passing<T> {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(place)?;
        self.hash.update(place.get(..count).unwrap_or_default());
        Ok(count)
    }
}

impl<T: io::Write> io::Write for Passing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
