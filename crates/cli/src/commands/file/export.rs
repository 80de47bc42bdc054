//! `cofferdam file export`.

use super::path;
use crate::blocking::{Blocking, Outgoing};
use crate::meter::Meter;
use crate::report;
use clap::Args;
use cofferdam_archive::{Export, Notes};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Stdout, Write};

/// How many bytes of files an archive has at most, unless that is said.
const MAX_BYTES: u64 = 64 << 30;

/// Writes a tar archive of a directory of the workspace on standard output.
///
/// Files, directories and links come with their permissions and times; links as links. The directory
/// itself has no name in it, a single file has its own. Pipes, sockets and devices are left out, as are
/// set-id and sticky bits, and named on standard error. A file that changes meanwhile is cut or filled up
/// with zeros to the size that it had; one that cannot be read is left out: both are named, and the exit
/// code is 1.
///
/// Example: cofferdam file export agent-1 src > src.tar
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct ExportArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The directory or file in the workspace. Default: the workspace.
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub(crate) path: OsString,

    /// Compresses the archive as gzip does.
    ///
    /// Example: --gzip
    #[arg(short = 'z', long)]
    pub(crate) gzip: bool,

    /// Refuses more bytes of files. Default: 64 GiB.
    ///
    /// Example: --max-bytes 1000000
    #[arg(long, value_name = "N", default_value_t = MAX_BYTES, hide_default_value = true)]
    pub(crate) max_bytes: u64,
}

/// Writes the archive, and names what is not in it as it was.
pub(super) async fn perform(args: &ExportArgs, files: &Files) -> Result<()> {
    if io::stdout().is_terminal() {
        let what = "standard output is a terminal, which is no place for an archive";
        return Err(Error::new(ErrorKind::Usage, what).hint("Write > and the name of a file."));
    }
    let order = Export { path: path(&args.path), max_bytes: args.max_bytes };
    let meter = Meter::start("export", false);
    let stdout = Outgoing::to_stdout(io::stdout());
    let mut sink = Blocking(meter.counting(
        match args.gzip {
            true => Sink::Gzip(GzEncoder::new(stdout, Compression::default())),
            false => Sink::Plain(stdout),
        },
        None,
    ));
    let exported = cofferdam_archive::export(files, &order, &mut sink).await?;
    drop(meter);
    let ended = sink.0.inner().end();
    ended.map_err(|cause| Error::new(ErrorKind::Io, "write the archive").source(cause))?;
    tell(&exported.notes);
    match exported.notes.losses {
        0 => Ok(()),
        losses => {
            let what =
                format!("{losses} files or directories changed meanwhile or were unreadable");
            Err(Error::new(ErrorKind::Conflict, what)
                .hint("The archive is whole but for what was named."))
        }
    }
}

/// Where the archive goes.
enum Sink {
    Plain(Outgoing<Stdout>),
    Gzip(GzEncoder<Outgoing<Stdout>>),
}

impl Sink {
    fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stdout) => stdout.flush(),
            Self::Gzip(encoder) => {
                encoder.try_finish()?;
                encoder.get_mut().flush()
            }
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stdout) => stdout.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stdout) => stdout.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}

/// Names on standard error what is not as it was.
pub(super) fn tell(notes: &Notes) {
    for note in &notes.first {
        report::note(&note.to_string());
    }
    if notes.more > 0 {
        report::note(&format!("and {} more", notes.more));
    }
}
