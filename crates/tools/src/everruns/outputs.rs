//! What commands wrote, as files: `/outputs/ID.stdout` and `/outputs/ID.stderr`, which
//! `sandbox_read_file` reads. They are the log of a command, made plain, and lie nowhere inside.

use super::Plain;
use crate::run;
use cofferdam_core::{Error, ErrorKind, ProcessId, Result, Standard};
use cofferdam_session::Session;

/// Where they seem to be.
pub(super) const DIRECTORY: &str = "/outputs/";
/// The most that is taken of each end of a stream, to be made plain and cut: of both a mebibyte.
pub(super) const END_BYTES: u64 = 512 << 10;

/// The file of a stream of a command.
pub(super) fn path(id: &ProcessId, stream: Standard) -> String {
    let end = match stream {
        Standard::Output => "stdout",
        Standard::Error => "stderr",
    };
    format!("{DIRECTORY}{id}.{end}")
}

/// The command and stream of such a file.
fn named(path: &str) -> Option<(&str, Standard)> {
    let name = path.strip_prefix(DIRECTORY)?;
    let (id, end) = name.rsplit_once('.')?;
    match end {
        "stdout" => Some((id, Standard::Output)),
        "stderr" => Some((id, Standard::Error)),
        _ => None,
    }
}

/// What is in such a file; nothing where the path is none of theirs.
pub(super) async fn read(session: &Session, path: &str) -> Result<Option<String>> {
    if !path.starts_with(DIRECTORY) {
        return Ok(None);
    }
    let missing = || {
        Error::new(ErrorKind::NotFound, format!("there is no output {path:?}"))
            .hint("Use a path from output_files of sandbox_exec, in the sandbox that ran it.")
    };
    let (id, stream) = named(path).ok_or_else(missing)?;
    let id = ProcessId::new(id).map_err(|_| missing())?;
    let status = match session.status(&id).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Err(missing()),
        other => other?,
    };
    let written = match stream {
        Standard::Output => status.stdout.written,
        Standard::Error => status.stderr.written,
    };
    let ends = run::ends(session, &id, (stream, written), END_BYTES).await?;
    Ok(Some(Plain::new(&ends).holed.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_stream_of_a_command() {
        let id = Session::order(["true"]).unwrap().command.id;
        for stream in [Standard::Output, Standard::Error] {
            assert_eq!(named(&path(&id, stream)), Some((id.as_str(), stream)));
        }
        for other in ["/outputs/x.txt", "/outputs/x", "outputs/x.stdout", "/workspace/x.stdout"] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
