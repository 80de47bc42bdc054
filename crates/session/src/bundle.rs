//! What a failed run leaves for later study.

use crate::places::make_private;
use crate::store::blocking;
use crate::{ExecReport, SessionId, Sessions, now_ms};
use cofferdam_core::{DestroyReason, Error, ErrorKind, Part, ProcessId, Result, Standard};
use serde_json::json;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of the end of each stream goes into a bundle, in bytes.
const TAIL_BYTES: u32 = 1 << 20;
/// How many commands go into a bundle; the latest.
const MAX_COMMANDS: usize = 64;

/// Writes `run.json`, `execs.json`, `events.json` and the end of each command's output, and says
/// where. Values of variables are in none but what commands themselves wrote.
pub(crate) async fn write(
    sessions: &Sessions,
    id: &SessionId,
    (reason, why): (DestroyReason, &str),
) -> Result<PathBuf> {
    let directory = sessions.0.places.bundles().join(id.as_str());
    let session = sessions.session(id.clone());
    let execs = session.execs().await?;
    let events = sessions.events(Some(id), 0).await?;
    let report = sessions.status(id).await?;
    let run = json!({
        "format": 1, "reason": reason, "failure": why, "session": report, "at_ms": now_ms(),
    });
    let mut files = vec![
        ("run.json".to_owned(), pretty(&run)?),
        ("execs.json".to_owned(), pretty(&execs)?),
        ("events.json".to_owned(), pretty(&events)?),
    ];
    for exec in execs.iter().rev().take(MAX_COMMANDS) {
        files.extend(output(&session, exec).await?);
    }
    blocking(move || {
        make_private(&directory)?;
        for (name, content) in files {
            put(&directory.join(name), &content)?;
        }
        Ok(directory)
    })
    .await
}

/// The end of both streams of a command.
async fn output(session: &crate::Session, exec: &ExecReport) -> Result<Vec<(String, Vec<u8>)>> {
    let id = ProcessId::new(exec.id.clone())?;
    let mut files = Vec::new();
    for (stream, name, written) in [
        (Standard::Output, "stdout", exec.stdout.written),
        (Standard::Error, "stderr", exec.stderr.written),
    ] {
        let offset = written.saturating_sub(TAIL_BYTES.into());
        let part = Part { stream, offset, len: TAIL_BYTES };
        // What cannot be read any more is missing, and the rest is worth having.
        if let Ok(chunk) = session.read(&id, part).await
            && !chunk.bytes.is_empty()
        {
            files.push((format!("{id}.{name}"), chunk.bytes));
        }
    }
    Ok(files)
}

fn pretty<T: serde::Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value)
        .map_err(|e| Error::new(ErrorKind::Io, "write a report as JSON").source(e))
}

fn put(path: &Path, content: &[u8]) -> Result<()> {
    let file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(content))
        .map_err(|e| Error::new(ErrorKind::Io, format!("write {}", path.display())).source(e))
}
