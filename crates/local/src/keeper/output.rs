//! Reading what a command wrote, whether its keeper is there or gone.

use super::past::Past;
use super::place::{Place, ledger_entry};
use super::spool;
use crate::state::StateDirectory;
use cofferdam_core::{Chunk, Error, ErrorKind, Part, ProcessId, Result, SandboxId};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// The most that one call of [`DurableBackend::read`](cofferdam_core::DurableBackend::read) gives.
const MAX_READ_BYTES: u32 = 1 << 20;

/// What is kept of what a command wrote.
pub(super) struct Output<'a> {
    place: Place,
    sandbox: &'a SandboxId,
    id: &'a ProcessId,
}

impl<'a> Output<'a> {
    pub(super) fn of(
        state: &StateDirectory,
        sandbox: &'a SandboxId,
        id: &'a ProcessId,
    ) -> Result<Self> {
        Ok(Self { place: Place::get(state, sandbox)?, sandbox, id })
    }

    /// A part of it. `None` where there is no file: nothing was written, or there is no such command.
    pub(super) fn read(&self, part: Part) -> Result<Option<Chunk>> {
        match self.place.spool(self.id, part.stream, OFlags::RDONLY) {
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.failed(errno)),
            Ok(file) => spool::read(
                Some(&file),
                (|| self.place.read_ledger(self.id), ledger_entry(part.stream)),
                part.offset,
                usize::try_from(part.len.min(MAX_READ_BYTES)).unwrap_or(0),
            )
            .map(Some)
            .map_err(|errno| self.failed(errno)),
        }
    }

    /// The same of a stream without a file. Reads all of the journal.
    pub(super) fn empty(&self, part: Part) -> Result<Chunk> {
        // ORDER: the command before the file, which may have come to be meanwhile.
        if !Past::read(&self.place)?.may_write(self.id, part.stream) {
            return Err(self.failed(Errno::NOENT));
        }
        if let Some(chunk) = self.read(part)? {
            return Ok(chunk);
        }
        let ledger = (|| self.place.read_ledger(self.id), ledger_entry(part.stream));
        spool::read(None, ledger, part.offset, 0).map_err(|errno| self.failed(errno))
    }

    fn failed(&self, errno: Errno) -> Error {
        let id = self.id;
        match errno {
            Errno::NOENT => Error::new(
                ErrorKind::NotFound,
                format!("command {id} has no such output in sandbox {}", self.sandbox),
            )
            .hint("List the commands with `cofferdam ps`."),
            _ => Error::new(ErrorKind::Io, format!("read what command {id} wrote"))
                .source(std::io::Error::from(errno)),
        }
    }
}
