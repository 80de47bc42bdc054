//! The worker's end of its connection.

use cofferdam_wire::files::{Answer, Greeting, MAX_MESSAGE_BYTES, MAX_PIECE_BYTES, Request};
use cofferdam_wire::frame::{self, HEADER_BYTES, Header, Kind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use serde::Serialize;

/// Nobody asks any more, or what comes breaks the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// A connection. Waits for the host as long as that takes.
pub(super) struct Talk {
    socket: OwnedFd,
    /// What came, of which the part from `start` to `end` was not taken yet.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Frames that go out together: bytes of a file, a message.
    output: Vec<u8>,
    /// How much of it is made.
    made: usize,
    /// The request that is being served.
    channel: u32,
    upload: Upload,
}

/// Whether bytes belong to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upload {
    None,
    Comes,
}

impl Talk {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            // Fresh pages of the system, which cost nothing until something lies in them.
            input: vec![0; HEADER_BYTES + MAX_PIECE_BYTES],
            start: 0,
            end: 0,
            output: vec![0; 2 * HEADER_BYTES + MAX_PIECE_BYTES + MAX_MESSAGE_BYTES],
            made: 0,
            channel: 0,
            upload: Upload::None,
        }
    }

    pub(super) fn greet(&mut self, greeting: &Greeting) -> Result<(), Gone> {
        self.say(greeting)
    }

    /// The next request, whatever its channel.
    pub(super) fn next_request(&mut self) -> Result<Request, Gone> {
        let (header, body) = self.next_frame()?;
        if header.kind != Kind::Message || header.len > MAX_MESSAGE_BYTES {
            return Err(Gone);
        }
        let request = serde_json::from_slice(body).map_err(|_| Gone)?;
        self.channel = header.channel;
        self.upload = match request {
            Request::Write(_) | Request::Append(_) | Request::Carry(_) => Upload::Comes,
            Request::Read(_)
            | Request::Stat { .. }
            | Request::List(_)
            | Request::MakeDirectory { .. }
            | Request::Move(_)
            | Request::Copy(_)
            | Request::Remove(_)
            | Request::SetMode { .. }
            | Request::Recover(_)
            | Request::ReadMany(_)
            | Request::CopyTree(_)
            | Request::Watch(_) => Upload::None,
        };
        Ok(request)
    }

    /// The next bytes that belong to the request; `None` where they end.
    pub(super) fn next_piece(&mut self) -> Result<Option<&[u8]>, Gone> {
        if self.upload == Upload::None {
            return Ok(None);
        }
        let channel = self.channel;
        let (header, range) = self.next_range()?;
        match header.kind {
            Kind::Data if header.channel == channel => Ok(self.input.get(range)),
            Kind::End if header.channel == channel => {
                self.upload = Upload::None;
                Ok(None)
            }
            Kind::Data | Kind::End | Kind::Message | Kind::Credit => Err(Gone),
        }
    }

    /// Takes all bytes that still belong to the request.
    pub(super) fn pass_over_upload(&mut self) -> Result<(), Gone> {
        while self.next_piece()?.is_some() {}
        Ok(())
    }

    /// Sends bytes of a file that `fill` puts into the place that it gets. Answers what `fill`
    /// answers: how many there are. They go with what is sent next: a short file and its answer, or
    /// several short files, in one breath.
    pub(super) fn piece<E: From<Gone>>(
        &mut self,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let most = most.min(MAX_PIECE_BYTES);
        // There is always room for a message behind it.
        if self.made + 2 * HEADER_BYTES + most + MAX_MESSAGE_BYTES > self.output.len() {
            self.flush()?;
        }
        let (at, begin) = (self.made, self.made + HEADER_BYTES);
        let count = fill(self.output.get_mut(begin..begin + most).unwrap_or_default())?;
        self.put_header(at, count, Kind::Data)?;
        self.made = begin + count;
        Ok(count)
    }

    /// Tells the host that a long work goes on, and finds out whether the host still waits.
    pub(super) fn still_at_it(&mut self) -> Result<(), Gone> {
        self.flush()?;
        self.put_header(0, 0, Kind::Data)?;
        self.made = HEADER_BYTES;
        self.flush()
    }

    /// The connection, to wait for room in it or for the host to hang up.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn answer(&mut self, answer: &Answer) -> Result<(), Gone> {
        self.say(answer)
    }

    fn say<M: Serialize>(&mut self, message: &M) -> Result<(), Gone> {
        let at = self.made;
        let body = serde_json::to_vec(message).map_err(|_| Gone)?;
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(Gone);
        }
        self.put_header(at, body.len(), Kind::Message)?;
        let (begin, end) = (at + HEADER_BYTES, at + HEADER_BYTES + body.len());
        self.output.get_mut(begin..end).ok_or(Gone)?.copy_from_slice(&body);
        self.made = end;
        self.flush()
    }

    fn put_header(&mut self, at: usize, len: usize, kind: Kind) -> Result<(), Gone> {
        let header = Header { len, channel: self.channel, kind }.encode().map_err(|_| Gone)?;
        let place = self.output.get_mut(at..at + HEADER_BYTES).ok_or(Gone)?;
        place.copy_from_slice(&header);
        Ok(())
    }

    /// Sends what is made, however long the host takes.
    fn flush(&mut self) -> Result<(), Gone> {
        let len = std::mem::take(&mut self.made);
        let mut rest = self.output.get(..len).ok_or(Gone)?;
        while !rest.is_empty() {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }

    fn next_frame(&mut self) -> Result<(Header, &[u8]), Gone> {
        let (header, range) = self.next_range()?;
        Ok((header, self.input.get(range).ok_or(Gone)?))
    }

    /// The next frame, with the place of its body in the input.
    fn next_range(&mut self) -> Result<(Header, std::ops::Range<usize>), Gone> {
        self.fill(HEADER_BYTES)?;
        let head = self.input.get(self.start..self.end).and_then(<[u8]>::first_chunk);
        let header = Header::decode(*head.ok_or(Gone)?).map_err(|_| Gone)?;
        if header.len > MAX_PIECE_BYTES {
            return Err(Gone);
        }
        self.fill(HEADER_BYTES + header.len)?;
        let begin = self.start + HEADER_BYTES;
        self.start = begin + header.len;
        Ok((header, begin..self.start))
    }

    /// Waits until so many bytes are there.
    fn fill(&mut self, len: usize) -> Result<(), Gone> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.input.len() - self.start < len {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        while self.end - self.start < len {
            let room = self.input.get_mut(self.end..).unwrap_or_default();
            match rustix::net::recv(&self.socket, room, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Gone),
                Ok((count, _)) => self.end += count,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }
}

/// Says something short on a connection, and does not wait for room.
pub(super) fn say_at_once(socket: &OwnedFd, greeting: &Greeting) {
    let mut bytes = Vec::new();
    let body = serde_json::to_vec(greeting).unwrap_or_default();
    if frame::encode(0, Kind::Message, &body, &mut bytes).is_ok() {
        let _ = rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}
