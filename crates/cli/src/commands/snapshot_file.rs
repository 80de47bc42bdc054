//! `cofferdam snapshot export` and `cofferdam snapshot import`.

use crate::beside::{Beside, local, there_already};
use crate::blocking::Outgoing;
use crate::door::Export;
use crate::meter::{Counting, Meter};
use crate::surroundings::Surroundings;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{
    MAX_EXPORTED_BYTES, MAX_EXPORTED_LIST_BYTES, SnapshotExported, SnapshotImported, unnamed_file,
};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// What stands for standard output and standard input.
const STREAM: &str = "-";
/// The most bytes of a file that is read, compressed or not: all contents and the list, and what tells
/// one piece from another.
const MAX_FILE_BYTES: u64 = MAX_EXPORTED_BYTES + MAX_EXPORTED_LIST_BYTES + (1 << 30);
/// What a file begins with that gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Writes a snapshot as one file, for another session, user or machine.
///
/// It holds what the session changed in its workspace until then, with a manifest, permissions, times
/// and a SHA-256 of everything. It holds nothing of the session's home, environment and settings, and
/// no owners; set-id bits, lists of access rights and notes of the kernel are left out, and counted on
/// standard error. What the session did not change is not in it: it is meant for a workspace of the
/// same contents. The file is there whole or not at all, readable by you alone; what was written to
/// standard output before an error is no snapshot, and import refuses it.
///
/// Example: cofferdam snapshot export draft 3 draft.snapshot
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ExportArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The number of the snapshot, or of any point, or the label of a snapshot.
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: String,

    /// The file here; - is standard output. Default: -.
    #[arg(value_name = "FILE", default_value = STREAM, hide_default_value = true)]
    pub(crate) file: OsString,

    /// Compresses it as gzip does.
    ///
    /// Example: --gzip
    #[arg(short = 'z', long)]
    pub(crate) gzip: bool,

    /// Replaces what is there.
    ///
    /// Example: --replace
    #[arg(long)]
    pub(crate) replace: bool,

    /// Prints what was written as one JSON object on standard output. Needs a FILE.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Makes a snapshot of an exported one, and prints its number.
///
/// All of the file is read and every SHA-256 compared before there is a snapshot; where anything is
/// wrong, and where something would come that no export writes, nothing is left. The session goes on
/// where it is until somebody restores the snapshot or forks from it. All of it belongs to the owner of
/// the workspace. What it does not hold is as this workspace has it, so that it is meant for one of the
/// same contents: standard error says where it lay on another one. The sums tell damage, and not who
/// made the file. gzip is undone without being asked.
///
/// Example: cofferdam snapshot import other draft.snapshot
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// The session, copy-on-write: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The file here; - is standard input. Default: -.
    #[arg(value_name = "FILE", default_value = STREAM, hide_default_value = true)]
    pub(crate) file: OsString,

    /// Names it, in place of the label that it had.
    ///
    /// Example: --label 'from the other machine'
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Prints what came as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes the file.
pub(super) fn export(args: &ExportArgs) -> Result<u8> {
    let to_stream = args.file == OsStr::new(STREAM);
    if to_stream && (args.json || args.replace) {
        let what = "standard output is where the snapshot goes";
        return Err(Error::new(ErrorKind::Usage, what).hint("Name a file."));
    }
    if to_stream && io::stdout().is_terminal() {
        let what = "standard output is a terminal, which is no place for a snapshot";
        return Err(Error::new(ErrorKind::Usage, what).hint("Name a file."));
    }
    let path = Path::new(&args.file);
    if !to_stream && !args.replace && path.symlink_metadata().is_ok() {
        return Err(there_already(path));
    }
    let exported = sessions::with(async |sessions| {
        let id = sessions.find(&args.session).await?;
        let export = sessions.export_snapshot(&id, &args.snapshot).await?;
        let meter = Meter::start("export", args.json);
        let exported = if to_stream {
            // Of our own, so that nobody else holds what is not written yet.
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            let stdout = File::from(stdout.map_err(|cause| local("write", path, cause))?);
            let stdout = Outgoing::to_stdout(stdout);
            write(export, meter.counting(stdout, None), args.gzip).await?
        } else {
            let beside = Beside::new(path, 0o600)?;
            let file = beside.file.try_clone().map_err(|cause| local("write", path, cause))?;
            let file = Outgoing::to_file(file, path);
            let exported = write(export, meter.counting(file, None), args.gzip).await?;
            beside.take_place(path, args.replace)?;
            exported
        };
        Ok(exported)
    })?;
    tell_export(&exported);
    if args.json {
        render::print_json(&exported)?;
    }
    Ok(exit::DONE)
}

async fn write(
    export: Export,
    file: Counting<Outgoing<File>>,
    gzip: bool,
) -> Result<SnapshotExported> {
    let unwritten = |cause| Error::new(ErrorKind::Io, "write the exported snapshot").source(cause);
    if gzip {
        let encoder = GzEncoder::new(BufWriter::new(file), Compression::default());
        let (encoder, exported) = export.write(encoder).await?;
        encoder.finish().and_then(|mut file| file.flush()).map_err(unwritten)?;
        Ok(exported)
    } else {
        let (mut file, exported) = export.write(BufWriter::new(file)).await?;
        file.flush().map_err(unwritten)?;
        Ok(exported)
    }
}

fn tell_export(exported: &SnapshotExported) {
    let SnapshotExported { set_id_left_out, attributes_left_out, .. } = exported;
    if *set_id_left_out > 0 {
        report::note(&format!("{set_id_left_out} files or directories lost their set-id bits"));
    }
    if *attributes_left_out > 0 {
        let what = "notes of the kernel and lists of access rights that were left out";
        report::note(&format!("{what}: {attributes_left_out}"));
    }
}

/// Reads the file.
pub(super) fn import(args: &ImportArgs) -> Result<u8> {
    let input = input(&args.file)?;
    let imported = sessions::with(async |sessions| {
        let id = sessions::find_whole(sessions, &args.session).await?;
        let meter = Meter::start("import", args.json);
        let input = Box::new(meter.counting(input, None));
        sessions.import_snapshot(&id, input, args.label.clone()).await
    })?;
    tell_import(&imported);
    match args.json {
        true => render::print_json(&imported)?,
        false => render::print_text(&format!("{}\n", imported.snapshot.snapshot))?,
    }
    Ok(exit::DONE)
}

fn tell_import(imported: &SnapshotImported) {
    report::note(
        "what changed in the workspace since the snapshot was begun is not known here: after it is restored, \
         look at `diff` before `apply`, which lands just that",
    );
    if imported.same_directory {
        return;
    }
    let path = render::plain(&imported.manifest.workspace.path).into_owned();
    let which = match imported.same_path {
        true => format!("another directory at {path}"),
        false => format!("another workspace, {path}"),
    };
    report::note(&format!("the snapshot lay on {which}: what it does not hold is as it is here"));
}

/// What is read, uncompressed, from a file that does not keep anybody waiting.
fn input(path: &OsStr) -> Result<Box<dyn Read + Send>> {
    let unread = |cause| local("read", Path::new(path), cause);
    let is_stream = path == OsStr::new(STREAM);
    if is_stream && io::stdin().is_terminal() {
        let what = "standard input is a terminal, from which no snapshot comes";
        return Err(Error::new(ErrorKind::Usage, what).hint("Name a file."));
    }
    let file = match is_stream {
        true => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(unread)?),
        false => File::open(path).map_err(unread)?,
    };
    let kind = file.metadata().map_err(unread)?.file_type();
    if kind.is_dir() {
        return Err(Error::new(ErrorKind::NotAFile, format!("{path:?} is a directory")));
    }
    // What comes slowly is kept first: the session waits for nobody.
    let mut file = if kind.is_file() { file } else { kept(file)? };
    let begin = file.stream_position().map_err(unread)?;
    let mut first = Vec::new();
    Read::by_ref(&mut file).take(GZIP.len() as u64).read_to_end(&mut first).map_err(unread)?;
    file.seek(io::SeekFrom::Start(begin)).map_err(unread)?;
    let file = BufReader::new(file);
    Ok(match first == GZIP {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    })
}

/// All that comes from a pipe, in a file without a name.
fn kept(pipe: File) -> Result<File> {
    let mut file = unnamed_file(&Surroundings::of_this_process().state_directory()?)?;
    let failed = |cause| {
        Error::new(ErrorKind::Io, "keep what comes of the snapshot")
            .hint("Make room on the disk of the state directory.")
            .source(cause)
    };
    let bytes = io::copy(&mut pipe.take(MAX_FILE_BYTES + 1), &mut file).map_err(failed)?;
    if bytes > MAX_FILE_BYTES {
        let what = format!("the file has more than {MAX_FILE_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, what));
    }
    file.rewind().map_err(failed)?;
    Ok(file)
}
