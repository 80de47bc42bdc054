//! What is collected before it is printed, on disk: whoever reads what is printed may take his time,
//! and what it was made of does not wait for him.

use crate::render;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::unnamed_file;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

/// How much is printed at once.
const PIECE_BYTES: usize = 64 << 10;

/// A file without a name, gone with the process.
pub(crate) struct Spool(File);

impl Spool {
    /// Makes one in a directory of this user.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        unnamed_file(directory).map(Self)
    }

    /// Adds to it.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|error| failed("keep the output", error))
    }

    /// Prints all of it on standard output.
    pub(crate) fn print(mut self) -> Result<()> {
        self.0.rewind().map_err(|error| failed("read the output again", error))?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = self.0.read(&mut piece);
            match read.map_err(|error| failed("read the output again", error))? {
                0 => return Ok(()),
                len => render::print_bytes(piece.get(..len).unwrap_or_default())?,
            }
        }
    }
}

fn failed(what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, what)
        .hint("Make room on the disk of the state directory.")
        .source(error)
}
