//! `cofferdam file upload` and `cofferdam file download`.

use super::report::FileDone;
use super::{AnswerOptions, Target, done, path};
use crate::blocking::Blocking;
use crate::meter::Meter;
use clap::Args;
use cofferdam_core::files::{Read, Write, Written};
use cofferdam_core::{Error, ErrorKind, Files, Result, hexadecimal};
use cofferdam_session::Session;
use rustix::fs::{CWD, OFlags, RenameFlags};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
    /// The session: its name or id, or the beginning of one.
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
        return Err(Error::new(ErrorKind::NotAFile, what));
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
    let beside = Beside::new(&args.local)?;
    let unwritten = |cause| local("write", &args.local, cause);
    let file = beside.file.try_clone().map_err(unwritten)?;
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

fn local(verb: &str, path: &Path, cause: io::Error) -> Error {
    let is = |kind| cause.kind() == kind;
    let kind = if is(io::ErrorKind::NotFound) {
        ErrorKind::NotFound
    } else if is(io::ErrorKind::PermissionDenied) {
        ErrorKind::Denied
    } else {
        ErrorKind::Io
    };
    Error::new(kind, format!("{verb} {path:?}")).source(cause)
}

fn there_already(path: &Path) -> Error {
    Error::new(ErrorKind::Conflict, format!("{path:?} is there already"))
        .hint("Choose another name, or say --replace.")
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

/// A file beside the one that is to be, removed unless it took its place.
struct Beside {
    path: Option<PathBuf>,
    file: File,
}

impl Beside {
    fn new(to: &Path) -> Result<Self> {
        let name = to.file_name().ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("{to:?} names no file"))
                .hint("Write the name that the file is to have.")
        })?;
        let mut own = OsString::from(".");
        own.push(name);
        own.push(format!(".cofferdam-{}", std::process::id()));
        let path = to.with_file_name(own);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path);
        let file = file.map_err(|cause| local("make", &path, cause))?;
        Ok(Self { path: Some(path), file })
    }

    fn take_place(mut self, to: &Path, replace: bool) -> Result<()> {
        self.file.sync_all().map_err(|cause| local("write", to, cause))?;
        let Some(path) = &self.path else { return Ok(()) };
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(CWD, path, CWD, to, flags) {
            Ok(()) => self.path = None,
            Err(rustix::io::Errno::EXIST) => return Err(there_already(to)),
            Err(errno) => return Err(local("write", to, errno.into())),
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What is gone already is gone.
            let _ = fs::remove_file(path);
        }
    }
}
