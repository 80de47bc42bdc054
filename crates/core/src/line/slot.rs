//! The state of one channel.

use crate::Result;
use crate::line::table::broken;
use cofferdam_wire::frame::INITIAL_CREDIT_BYTES;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::Notify;

/// What the guest may send on a channel, besides `Credit` and `End`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Nothing: the host sends.
    Nothing,
    /// Bytes, as far as credit reaches.
    Data,
    /// Messages.
    Messages,
    /// Messages of a command, before them an empty `Data` frame with the master of its terminal.
    TerminalMessages,
    /// One empty `Data` frame.
    Pong,
}

/// How much a reader may take before the guest is granted more. A quarter of the window: the guest
/// never runs dry while the reader keeps up, and a grant is paid for by many frames.
const GRANT_AT_BYTES: u64 = INITIAL_CREDIT_BYTES / 4;

/// How many messages may wait on one channel. The longest honest exchange is three.
const MAX_WAITING_MESSAGES: usize = 16;

/// Small pieces are gathered into chunks of this size, so that a guest that sends single bytes does
/// not cost an allocation for each.
const CHUNK_BYTES: usize = 4096;

/// A message as it came.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) body: Vec<u8>,
    /// What came before the message.
    pub(super) descriptor: Option<OwnedFd>,
}

/// The next thing on a channel.
#[derive(Debug)]
pub(super) enum Arrived {
    Message(Message),
    /// Bytes, and how much the guest is to be granted for them now.
    Data(Vec<u8>, u64),
    End,
}

#[derive(Debug)]
pub(super) struct Slot {
    accepts: Accepts,
    descriptor: Option<OwnedFd>,
    messages: VecDeque<Message>,
    chunks: VecDeque<Vec<u8>>,
    /// How many bytes the guest may still send.
    granted: u64,
    /// How many bytes were read since the last grant.
    read: u64,
    ended: bool,
    may_send: u64,
    pub(super) arrived: Arc<Notify>,
    pub(super) credited: Arc<Notify>,
}

impl Slot {
    pub(super) fn new(accepts: Accepts) -> Self {
        Self {
            accepts,
            descriptor: None,
            messages: VecDeque::new(),
            chunks: VecDeque::new(),
            granted: INITIAL_CREDIT_BYTES,
            read: 0,
            ended: false,
            may_send: INITIAL_CREDIT_BYTES,
            arrived: Arc::default(),
            credited: Arc::default(),
        }
    }

    pub(super) fn accept(&mut self, accepts: Accepts) {
        self.accepts = accepts;
    }

    pub(super) fn wake(&self) {
        self.arrived.notify_one();
        self.credited.notify_one();
    }

    pub(super) fn put_message(&mut self, body: &[u8]) -> Result<()> {
        if !matches!(self.accepts, Accepts::Messages | Accepts::TerminalMessages) {
            return Err(broken("a message came where none may come"));
        }
        if self.ended || self.messages.len() >= MAX_WAITING_MESSAGES {
            return Err(broken("more messages came than the exchange has"));
        }
        let descriptor = self.descriptor.take();
        self.messages.push_back(Message { body: body.to_vec(), descriptor });
        self.arrived.notify_one();
        Ok(())
    }

    pub(super) fn put_data(
        &mut self,
        body: Cow<'_, [u8]>,
        descriptors: &mut VecDeque<OwnedFd>,
    ) -> Result<()> {
        match self.accepts {
            Accepts::Data => {}
            Accepts::TerminalMessages if body.is_empty() && self.descriptor.is_none() => {
                self.descriptor = descriptors.pop_front();
                return Ok(());
            }
            Accepts::Pong if body.is_empty() && !self.ended => {
                self.put_end();
                return Ok(());
            }
            Accepts::Pong | Accepts::Nothing | Accepts::Messages | Accepts::TerminalMessages => {
                return Err(broken("bytes came where none may come"));
            }
        }
        if self.ended {
            return Err(broken("bytes came after the end of their channel"));
        }
        let left = self.granted.checked_sub(body.len() as u64);
        self.granted = left.ok_or_else(|| broken("more bytes came than were granted"))?;
        if body.is_empty() {
            return Ok(());
        }
        match self.chunks.back_mut() {
            Some(last) if last.capacity() - last.len() >= body.len() => {
                last.extend_from_slice(&body);
            }
            Some(_) | None if body.len() < CHUNK_BYTES => {
                let mut chunk = Vec::with_capacity(CHUNK_BYTES);
                chunk.extend_from_slice(&body);
                self.chunks.push_back(chunk);
            }
            Some(_) | None => self.chunks.push_back(body.into_owned()),
        }
        self.arrived.notify_one();
        Ok(())
    }

    pub(super) fn put_end(&mut self) {
        self.ended = true;
        self.arrived.notify_one();
    }

    pub(super) fn put_credit(&mut self, bytes: u32) {
        self.may_send = self.may_send.saturating_add(bytes.into());
        self.credited.notify_one();
    }

    /// The next thing that came, if any.
    pub(super) fn take(&mut self) -> Option<Arrived> {
        if let Some(message) = self.messages.pop_front() {
            return Some(Arrived::Message(message));
        }
        if let Some(chunk) = self.chunks.pop_front() {
            self.read += chunk.len() as u64;
            let mut grant = 0;
            if self.read >= GRANT_AT_BYTES && !self.ended {
                grant = std::mem::take(&mut self.read);
                self.granted += grant;
            }
            return Some(Arrived::Data(chunk, grant));
        }
        self.ended.then_some(Arrived::End)
    }

    /// Leave to send up to `wanted` bytes: how many.
    pub(super) fn spend(&mut self, wanted: usize) -> usize {
        let leave = usize::try_from(self.may_send).unwrap_or(usize::MAX).min(wanted);
        self.may_send -= leave as u64;
        leave
    }
}
