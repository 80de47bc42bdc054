//! Lines of a stream.

use crate::MAX_MESSAGE_BYTES;
use cofferdam_core::{Error, ErrorKind, Result};
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Lines of a stream, none of them too long.
pub(crate) struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { stream: BufReader::new(read), line: Vec::new(), is_too_long: false }
    }

    /// The next line that is not empty; `None` at the end. A call that is given up loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            let read = self.stream.fill_buf().await.map_err(unread)?;
            if read.is_empty() {
                let line = std::mem::take(&mut self.line);
                let is_one = !self.is_too_long && !line.trim_ascii().is_empty();
                return Ok(is_one.then_some(line));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(read.len(), |end| end + 1);
            let piece = read.get(..end.unwrap_or(taken)).unwrap_or_default();
            if self.line.len() + piece.len() >= MAX_MESSAGE_BYTES {
                self.is_too_long = true;
            }
            if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
            self.stream.consume(taken);
            if end.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let is_too_long = std::mem::take(&mut self.is_too_long);
            if !is_too_long && !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }
}

fn unread(cause: io::Error) -> Error {
    Error::new(ErrorKind::Io, "read a message").source(cause)
}
