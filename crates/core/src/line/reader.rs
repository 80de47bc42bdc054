//! Reads frames from the guest.

use crate::line::carrier::Incoming;
use crate::line::egress;
use crate::line::table::{Shared, Wanted, broken};
use crate::{EgressGate, Error, ErrorKind, Result};
use cofferdam_wire::frame::{HEADER_BYTES, Header};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How much is read at once. More than a socket hands over in one call by default.
const BUFFER_BYTES: usize = 256 << 10;

/// A body of more than this is read into its own place instead of through the buffer.
const DIRECT_BYTES: usize = 128 << 10;

/// How many descriptors may wait for their message. An honest guest never has two under way.
const MAX_WAITING_DESCRIPTORS: usize = 16;

/// Reads frames one by one.
pub(super) struct FrameReader {
    incoming: Box<dyn Incoming>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    descriptors: VecDeque<OwnedFd>,
}

impl FrameReader {
    pub(super) fn new(incoming: Box<dyn Incoming>) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { incoming, buffer, start: 0, end: 0, descriptors: VecDeque::new() }
    }

    /// The next frame, or `None` at the end of the stream. It may end amid a frame: a sandbox that is
    /// ended while it writes breaks no rule.
    pub(super) async fn next(
        &mut self,
    ) -> Result<Option<(Header, Cow<'_, [u8]>, &mut VecDeque<OwnedFd>)>> {
        if !self.fill(HEADER_BYTES).await? {
            return Ok(None);
        }
        let waiting = self.buffer.get(self.start..self.end).unwrap_or_default();
        let Some((head, _)) = waiting.split_first_chunk() else { return Ok(None) };
        let header = Header::decode(*head)
            .map_err(|error| broken("a frame could not be understood").source(error))?;
        self.start += HEADER_BYTES;
        if header.len > DIRECT_BYTES && self.end - self.start < header.len {
            let Some(body) = self.read_direct(header.len).await? else { return Ok(None) };
            return Ok(Some((header, Cow::Owned(body), &mut self.descriptors)));
        }
        if !self.fill(header.len).await? {
            return Ok(None);
        }
        let from = self.start;
        self.start += header.len;
        let body = self.buffer.get(from..self.start).unwrap_or_default();
        Ok(Some((header, Cow::Borrowed(body), &mut self.descriptors)))
    }

    /// Reads until `len` bytes are in the buffer. `false` at the end of the stream.
    async fn fill(&mut self, len: usize) -> Result<bool> {
        while self.end - self.start < len {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.buffer.len() - self.start < len.max(BUFFER_BYTES / 2) {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            let read = read(self.incoming.as_mut(), room, &mut self.descriptors).await?;
            if read == 0 {
                return Ok(false);
            }
            self.end += read;
        }
        Ok(true)
    }

    /// Reads a long body past the buffer. `None` at the end of the stream.
    async fn read_direct(&mut self, len: usize) -> Result<Option<Vec<u8>>> {
        let here = self.buffer.get(self.start..self.end).unwrap_or_default();
        let mut done = here.len();
        let mut body = vec![0; len];
        if let Some(place) = body.get_mut(..done) {
            place.copy_from_slice(here);
        }
        (self.start, self.end) = (0, 0);
        while done < len {
            let room = body.get_mut(done..).unwrap_or_default();
            match read(self.incoming.as_mut(), room, &mut self.descriptors).await? {
                0 => return Ok(None),
                read => done += read,
            }
        }
        Ok(Some(body))
    }
}

async fn read(
    incoming: &mut dyn Incoming,
    room: &mut [u8],
    descriptors: &mut VecDeque<OwnedFd>,
) -> Result<usize> {
    let mut came = Vec::new();
    let read = poll_fn(|cx| incoming.poll_read(cx, room, &mut came)).await.map_err(|error| {
        Error::new(ErrorKind::Unavailable, "the line to the sandbox broke").source(error)
    })?;
    descriptors.extend(came);
    if descriptors.len() > MAX_WAITING_DESCRIPTORS {
        return Err(broken("descriptors came without their messages"));
    }
    Ok(read)
}

/// Reads and delivers until the stream ends or the guest breaks the protocol, and says which.
///
/// INVARIANT: nothing here waits for a consumer or for the guest to read, so a full channel never
/// stops the others.
pub(super) async fn deliver_all(
    mut reader: FrameReader,
    shared: Arc<Shared>,
    gate: Arc<dyn EgressGate>,
) -> Error {
    loop {
        let (header, body, descriptors) = match reader.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return Error::new(ErrorKind::Unavailable, "the sandbox is gone"),
            Err(error) => return error,
        };
        let wanted = shared.table().deliver(header, body, descriptors);
        match wanted {
            Ok(Wanted::Nothing) => {}
            Ok(Wanted::Dial { channel, host, port }) => {
                let (shared, gate) = (Arc::clone(&shared), Arc::clone(&gate));
                tokio::spawn(egress::serve(shared, channel, gate, host, port));
            }
            Ok(Wanted::TooMany { channel }) => {
                tokio::spawn(egress::refuse(Arc::clone(&shared), channel));
            }
            Err(error) => return error,
        }
    }
}
