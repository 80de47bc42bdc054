//! Several files, read by one request.

use crate::{Sandbox, place};
use cofferdam_core::files::{Failure, HasRead, OneRead, ReadMany, Why};
use cofferdam_core::{Error, ErrorBody, ErrorKind, ErrorReport, Result};
use cofferdam_session::objects::{FileContent, FileContents, OneContent};
use std::ffi::OsString;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Reads several files, whose bytes go to a sink one behind the other.
pub(crate) async fn read(
    sandbox: &Sandbox,
    order: &ReadMany,
    sink: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<Vec<OneRead>> {
    let paths: Vec<OsString> = order.paths.iter().map(|path| path.as_os_str().to_owned()).collect();
    let FileContents { files, .. } = sandbox.read_many(&paths, Some(order.max_bytes)).await?;
    let mut room = order.total_bytes;
    let mut all = Vec::with_capacity(files.len());
    for (one, path) in files.into_iter().zip(&order.paths) {
        all.push(match one {
            OneContent { content: Some(content), .. } if content.bytes > room => {
                too_large(content.bytes)
            }
            OneContent { content: Some(content), .. } => {
                room -= content.bytes;
                let (read, bytes) = has_read(content)?;
                let unwritten = |cause| Error::new(ErrorKind::Io, "write what came").source(cause);
                sink.write_all(&bytes).await.map_err(unwritten)?;
                OneRead::Read(read)
            }
            OneContent { error: Some(error), .. } => failed(error, &format!("read {path:?}: ")),
            OneContent { .. } => failed(ErrorReport::from(&missing()).error, ""),
        });
    }
    Ok(all)
}

fn missing() -> Error {
    Error::new(ErrorKind::Protocol, "the answer lacks a file")
}

fn has_read(content: FileContent) -> Result<(HasRead, Vec<u8>)> {
    let mode = u32::from_str_radix(&content.mode, 8);
    let bytes = place::bytes(content.text, content.base64)?;
    let read = HasRead {
        size: content.size,
        bytes: bytes.len() as u64,
        sha256: content.sha256,
        mode: mode.map_err(|_| crate::layers::lacking("permissions"))?,
        modified_ms: content.modified_ms,
    };
    Ok((read, bytes))
}

fn too_large(bytes: u64) -> OneRead {
    let detail = format!("it has {bytes} bytes, which do not fit with those before it");
    OneRead::Failed { failure: Failure { why: Why::TooLarge, detail, errno: 0 }, bytes: 0 }
}

fn failed(error: ErrorBody, lead: &str) -> OneRead {
    let known = ErrorKind::ALL.into_iter().find(|kind| kind.name() == error.kind);
    let why = match known {
        Some(ErrorKind::Usage) => Why::BadRequest,
        Some(ErrorKind::PathEscape) => Why::Escape,
        Some(ErrorKind::NotFound) => Why::NotFound,
        Some(ErrorKind::NotAFile) => Why::WrongType,
        Some(ErrorKind::TooLarge) => Why::TooLarge,
        Some(ErrorKind::Conflict) => Why::Changed,
        Some(ErrorKind::Denied) => Why::Denied,
        Some(ErrorKind::Unavailable) => Why::Exhausted,
        Some(
            ErrorKind::Config
            | ErrorKind::Unsupported
            | ErrorKind::Unenforceable
            | ErrorKind::SetupFailed
            | ErrorKind::TimedOut
            | ErrorKind::Canceled
            | ErrorKind::Protocol
            | ErrorKind::Io,
        )
        | None => Why::Io,
    };
    // What was to be done is said again by whoever asked.
    let detail = error.message.strip_prefix(lead).unwrap_or(&error.message).to_owned();
    OneRead::Failed { failure: Failure { why, detail, errno: 0 }, bytes: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_one_file_is_the_same_here() {
        let body = |kind: &str| ErrorBody {
            kind: kind.to_owned(),
            message: "read \"a\": gone".to_owned(),
            hint: None,
        };
        let OneRead::Failed { failure, bytes: 0 } = failed(body("not_found"), "read \"a\": ")
        else {
            panic!("it was read");
        };
        assert_eq!((failure.why, failure.detail.as_str()), (Why::NotFound, "gone"));
    }
}
