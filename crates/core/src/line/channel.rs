//! A line and its channels, as the host uses them.

use crate::line::carrier::{Carrier, Descriptors};
use crate::line::reader::{FrameReader, deliver_all};
use crate::line::slot::{Accepts, Arrived};
use crate::line::table::{Shared, broken, parse};
use crate::line::writer::{Frame, outlet};
use crate::{EgressGate, Error, ErrorKind, Result};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::{Greeting, Hello};
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// One stream of bytes with many channels on it.
///
/// It stays open as long as a clone of it lives; what was sent before the last one is dropped still
/// goes out. Must be used on the runtime that it was opened on.
#[derive(Debug, Clone)]
pub struct Line {
    held: Arc<Held>,
}

struct Held {
    shared: Arc<Shared>,
    descriptors: Option<Arc<dyn Descriptors>>,
    reader: AbortHandle,
    writer: AbortHandle,
    runtime: Handle,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The writer ends by itself when it has written what it holds.
        self.reader.abort();
        let reason = Error::new(ErrorKind::Canceled, "the line to the sandbox was let go");
        self.shared.table().close(&reason);
    }
}

/// The next thing that came on a channel.
#[derive(Debug)]
pub enum Received {
    /// A message, not yet understood, and the descriptor that came before it.
    Message(Vec<u8>, Option<OwnedFd>),
    /// Bytes.
    Data(Vec<u8>),
    /// Nothing follows.
    End,
}

impl Line {
    /// Reads the guest's greeting and opens the line. Requests for the way out are put to `gate`.
    ///
    /// A guest that could not be set up gives [`ErrorKind::SetupFailed`]. There is no time limit: a
    /// caller who cannot wait gives the call up.
    pub async fn open(carrier: Carrier, gate: Arc<dyn EgressGate>) -> Result<(Self, Hello)> {
        let Carrier { incoming, outgoing, descriptors } = carrier;
        let mut reader = FrameReader::new(incoming);
        let hello = greeting(&mut reader).await?;
        let (outlet, writer) = outlet(outgoing);
        let shared = Arc::new(Shared::new(outlet));
        let writer = tokio::spawn(writer.write_all()).abort_handle();
        let reading = Arc::clone(&shared);
        let writing = writer.clone();
        let reader = tokio::spawn(async move {
            let error = deliver_all(reader, Arc::clone(&reading), gate).await;
            reading.table().close(&error);
            // A guest that is gone, or lies, gets nothing more.
            writing.abort();
        });
        let (reader, runtime) = (reader.abort_handle(), Handle::current());
        let held = Held { shared, descriptors, reader, writer, runtime };
        Ok((Self { held: Arc::new(held) }, hello))
    }

    /// Opens a channel. Nothing is sent yet.
    pub fn open_channel(&self, accepts: Accepts) -> Result<Channel> {
        let id = self.held.shared.table().open(accepts)?;
        Ok(Channel { id, shared: Arc::clone(&self.held.shared) })
    }

    /// What is done with descriptors, where the line carries them.
    pub fn descriptors(&self) -> Option<&Arc<dyn Descriptors>> {
        self.held.descriptors.as_ref()
    }

    /// Fails with the reason once the line is closed.
    pub fn still_open(&self) -> Result<()> {
        self.held.shared.table().still_open()
    }

    /// The runtime that it was opened on.
    pub(super) fn runtime(&self) -> &Handle {
        &self.held.runtime
    }

    /// Closes the line because of what the guest said.
    pub(super) fn close(&self, error: &Error) {
        self.held.shared.table().close(error);
        self.held.reader.abort();
        self.held.writer.abort();
    }
}

async fn greeting(reader: &mut FrameReader) -> Result<Hello> {
    let Some((header, body, _)) = reader.next().await? else {
        return Err(Error::new(ErrorKind::SetupFailed, "the sandbox ended before it said a word"));
    };
    if header.channel != 0 || header.kind != Kind::Message {
        return Err(broken("the guest's first frame is not a greeting"));
    }
    match parse(&body)? {
        Greeting::Hello(hello) if hello.generation == 0 => {
            Err(broken("the guest speaks generation 0, which never was"))
        }
        Greeting::Hello(hello) => Ok(hello),
        Greeting::SetupFailed(failure) => Err(Error::new(
            ErrorKind::SetupFailed,
            format!("the sandbox could not be set up: {}: {}", failure.step, failure.call),
        )
        .source(std::io::Error::from_raw_os_error(failure.errno))),
    }
}

/// One conversation on a line. Dropping it forgets the channel and sends nothing.
#[derive(Debug)]
pub struct Channel {
    id: u32,
    shared: Arc<Shared>,
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.shared.table().retire(self.id);
    }
}

/// The most bytes in one frame of ours: large enough to be cheap, small enough that a message never
/// waits long behind it.
const PIECE_BYTES: usize = 128 << 10;

impl Channel {
    /// Takes over a channel that is in the table already.
    pub(super) fn adopt(id: u32, shared: Arc<Shared>) -> Self {
        Self { id, shared }
    }

    /// Its number on the line.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Sends a message, with descriptors where the line carries them.
    pub async fn send_message<T: Serialize>(
        &self,
        message: &T,
        descriptors: Vec<OwnedFd>,
    ) -> Result<()> {
        let body = serde_json::to_vec(message).map_err(|error| {
            Error::new(ErrorKind::Usage, "the request cannot be written as JSON").source(error)
        })?;
        self.send(Frame::new(self.id, Kind::Message, body)?.with(descriptors)).await
    }

    /// Sends all these bytes, and waits for credit as often as needed.
    pub async fn send_data(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let sent = self.send_some(bytes).await?;
            bytes = bytes.get(sent..).unwrap_or_default();
        }
        Ok(())
    }

    /// Sends as many of these bytes as credit allows, at least one, and says how many. Nothing was
    /// sent by a call that is given up.
    pub(super) async fn send_some(&self, bytes: &[u8]) -> Result<usize> {
        loop {
            let outgoing = self.shared.table().outgoing()?;
            // ORDER: the place in the queue before the credit, so that from then on nothing waits.
            let Some(place) = outgoing.reserve().await else { return Err(self.gone()) };
            let credited = {
                let mut table = self.shared.table();
                table.still_open()?;
                let slot = table.slot(self.id).ok_or_else(|| broken("the channel is closed"))?;
                let leave = slot.spend(bytes.len().min(PIECE_BYTES));
                if let Some(piece) = bytes.get(..leave).filter(|piece| !piece.is_empty()) {
                    place.send(Frame::new(self.id, Kind::Data, piece.to_vec())?);
                    return Ok(leave);
                }
                Arc::clone(&slot.credited)
            };
            drop(place);
            credited.notified().await;
        }
    }

    /// Says that no more bytes follow.
    pub async fn send_end(&self) -> Result<()> {
        self.send(Frame::new(self.id, Kind::End, Vec::new())?).await
    }

    /// The next thing that came. Bytes that were taken count as read, and are granted again.
    ///
    /// What came before the line closed is still given out; after that it fails with the reason.
    pub async fn receive(&self) -> Result<Received> {
        let (arrived, grant) = loop {
            let notify = {
                let mut table = self.shared.table();
                let closed = table.still_open();
                let slot = table.slot(self.id).ok_or_else(|| broken("the channel is closed"))?;
                match slot.take() {
                    Some(Arrived::Message(message)) => {
                        break (Received::Message(message.body, message.descriptor), 0);
                    }
                    Some(Arrived::Data(bytes, grant)) => break (Received::Data(bytes), grant),
                    Some(Arrived::End) => break (Received::End, 0),
                    None => closed?,
                }
                Arc::clone(&slot.arrived)
            };
            notify.notified().await;
        };
        if let Some(grant) = u32::try_from(grant).ok().filter(|grant| *grant > 0) {
            let credit = Frame::new(self.id, Kind::Credit, grant.to_le_bytes().to_vec())?;
            // A line that closed meanwhile needs no credit, and its last bytes are still good.
            self.send(credit).await.ok();
        }
        Ok(arrived)
    }

    async fn send(&self, frame: Frame) -> Result<()> {
        let outgoing = self.shared.table().outgoing()?;
        let Some(place) = outgoing.reserve().await else { return Err(self.gone()) };
        place.send(frame);
        Ok(())
    }

    fn gone(&self) -> Error {
        let broke = || Error::new(ErrorKind::Unavailable, "the line to the sandbox broke");
        self.shared.table().still_open().err().unwrap_or_else(broke)
    }
}
