//! `cofferdam file import`.

use super::export::tell;
use super::{AnswerOptions, path};
use crate::door::Session;
use crate::meter::Meter;
use crate::render;
use clap::Args;
use cofferdam_archive::{Checked, Import, Over, Packing};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_session::objects::FileImported;
use flate2::read::MultiGzDecoder;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Chain, Cursor, IsTerminal, Read};
use std::os::unix::fs::OpenOptionsExt;

/// How many bytes tell that gzip compressed what follows.
const GZIP_HEAD_BYTES: u64 = 2;

/// Unpacks a tar archive from standard input in the workspace, whole or not at all.
///
/// What gzip, xz or Zstandard packed is unpacked, which its first bytes tell.
///
/// All of it is read and looked at first, in a temporary file (TMPDIR) that has no name: at most 50000
/// things with 2 GiB of files. Refused, by their names: absolute paths and those with "..", what is there
/// twice, what lies below a link or a file, devices and pipes, sparse files, and further names of anything
/// that is no file before it in the archive; of a file before it they become copies. Set-id and sticky
/// bits are left out, and named on standard error. Nothing is reached through links; directories that
/// are there stay as they are. Owners, times and extended attributes are not taken over.
///
/// Example: cofferdam file import agent-1 vendor < vendor.tar
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The directory in the workspace, which is made where it is missing. Default: the workspace.
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    pub(crate) path: OsString,

    /// Replaces files and links that are there. A directory never is.
    ///
    /// Example: --replace
    #[arg(long)]
    pub(crate) replace: bool,

    /// Refuses an archive that gzip did not compress.
    ///
    /// Without it the first bytes tell how an archive is packed: by gzip, xz, Zstandard, or not at all.
    ///
    /// Example: --gzip
    #[arg(short = 'z', long)]
    pub(crate) gzip: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Reads the archive, puts it in the workspace, and says what it was.
pub(super) async fn perform(args: &ImportArgs, session: &Session, files: &Files) -> Result<()> {
    if io::stdin().is_terminal() {
        let what = "standard input is a terminal, from which no archive comes";
        return Err(Error::new(ErrorKind::Usage, what).hint("Write < and the name of a file."));
    }
    #[cfg(feature = "remote")]
    if let Session::There(there) = session {
        return unpack_there(args, there).await;
    }
    let spool = spool().map_err(|cause| {
        Error::new(ErrorKind::Io, "make a temporary file for the archive")
            .hint("Set TMPDIR to a directory that can be written.")
            .source(cause)
    })?;
    let meter = Meter::start("import", args.answer.json);
    let stdin = begun(args, meter.counting(io::stdin().lock(), None))?;
    let mut source: Box<dyn Read> = match args.gzip {
        true => Box::new(MultiGzDecoder::new(stdin)),
        false => Box::new(cofferdam_archive::unpacked(stdin).map_err(unread)?),
    };
    let archive = Checked::read(&mut *source, spool).map_err(of_the_archive)?;
    let over = if args.replace { Over::Replace } else { Over::Refuse };
    let order = Import { path: path(&args.path), over };
    let imported = cofferdam_archive::import(files, &order, archive).await?;
    drop(meter);
    if args.answer.json {
        return render::print_json(&FileImported::new(session, &args.path, &imported));
    }
    tell(&imported.notes);
    Ok(())
}

/// The archive from its beginning, which is gzip's if that was asked for.
fn begun<R: Read>(args: &ImportArgs, mut stdin: R) -> Result<Chain<Cursor<Vec<u8>>, R>> {
    let mut head = Vec::new();
    if args.gzip {
        stdin.by_ref().take(GZIP_HEAD_BYTES).read_to_end(&mut head).map_err(unread)?;
        if Packing::of(&head) != Packing::Gzip {
            let what = "gzip did not compress the archive, as --gzip says";
            return Err(Error::new(ErrorKind::NotAFile, what)
                .hint("Leave --gzip (-z) out: the first bytes tell how an archive is packed."));
        }
    }
    Ok(Cursor::new(head).chain(stdin))
}

fn unread(cause: io::Error) -> Error {
    Error::new(ErrorKind::Io, "read the archive")
        .hint("Look what standard input is: it takes an archive from a file or a pipe.")
        .source(cause)
}

/// What is wrong with what was sent is wrong with no word of the command line.
fn of_the_archive(error: Error) -> Error {
    match error.kind == ErrorKind::Usage {
        true => Error { kind: ErrorKind::NotAFile, ..error },
        false => error,
    }
}

/// A file without a name, which is gone with its descriptor.
fn spool() -> io::Result<File> {
    let name = format!(".cofferdam-import-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Has the server unpack it: it is told what is refused before anything is written.
#[cfg(feature = "remote")]
async fn unpack_there(args: &ImportArgs, there: &crate::door::There) -> Result<()> {
    let meter = Meter::start("import", args.answer.json);
    // What is compressed is sent as it is.
    let stdin = begun(args, meter.counting(io::stdin(), None))?;
    let mut source = crate::blocking::Blocking(stdin);
    let imported = there.sandbox().unpack(&args.path, args.replace, &mut source).await;
    let imported = imported.map_err(of_the_archive)?;
    drop(meter);
    if args.answer.json {
        return render::print_json(&imported);
    }
    for note in &imported.notes {
        crate::report::note(note);
    }
    if imported.notes_more > 0 {
        crate::report::note(&format!("and {} more", imported.notes_more));
    }
    Ok(())
}
