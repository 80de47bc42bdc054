//! All channels of a line, and what every frame means for them. Does no I/O.

use crate::line::slot::{Accepts, Slot};
use crate::line::writer::Outlet;
use crate::{Error, ErrorKind, Result};
use cofferdam_wire::frame::{Header, Kind, MAX_CHANNELS};
use cofferdam_wire::message::GuestOpens;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The longest message that is taken on a channel of a command or of the way out. A proof may fill a
/// frame.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// How many connections of a guest are open at a time; further ones are refused.
pub(super) const MAX_EGRESS: usize = 256;

/// How many refused connections may wait for their answer before the line is closed. A guest that
/// asks on without reading the answers gains nothing by it.
const MAX_EGRESS_REFUSED: usize = 256;

/// What everything around one line shares.
#[derive(Debug)]
pub(super) struct Shared {
    table: Mutex<Table>,
}

#[derive(Debug)]
pub(super) struct Table {
    slots: HashMap<u32, Slot>,
    next_odd: u32,
    last_even: u32,
    /// Channels that the guest opened and that are still open.
    egress: usize,
    outgoing: Option<Outlet>,
    closed: Option<(ErrorKind, String)>,
}

/// What the reader has to do about a frame, beside having put it where it belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    /// Ask the gate, and answer on this channel.
    Dial {
        channel: u32,
        host: String,
        port: u16,
    },
    /// Answer on this channel that there are too many.
    TooMany {
        channel: u32,
    },
}

/// The guest broke the protocol.
pub(super) fn broken(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Protocol, what)
}

impl Shared {
    pub(super) fn new(outgoing: Outlet) -> Self {
        let table = Table {
            slots: HashMap::new(),
            next_odd: 1,
            last_even: 0,
            egress: 0,
            outgoing: Some(outgoing),
            closed: None,
        };
        Self { table: Mutex::new(table) }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is complete before anything can panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Opens a channel from the host's side.
    pub(super) fn open(&mut self, accepts: Accepts) -> Result<u32> {
        self.still_open()?;
        if self.slots.len() >= MAX_CHANNELS {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("all {MAX_CHANNELS} channels of the sandbox are in use"),
            )
            .hint("Wait for a command to end."));
        }
        let id = self.next_odd;
        self.next_odd = id.checked_add(2).ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "the sandbox has used up its channel numbers")
        })?;
        self.slots.insert(id, Slot::new(accepts));
        Ok(id)
    }

    /// Forgets a channel.
    pub(super) fn retire(&mut self, id: u32) {
        if self.slots.remove(&id).is_some() && id.is_multiple_of(2) {
            self.egress -= 1;
        }
    }

    pub(super) fn slot(&mut self, id: u32) -> Option<&mut Slot> {
        self.slots.get_mut(&id)
    }

    /// Why the line is closed, if it is.
    pub(super) fn still_open(&self) -> Result<()> {
        match &self.closed {
            None => Ok(()),
            Some((kind, message)) => Err(Error::new(*kind, message.clone())),
        }
    }

    /// Where frames to the guest are put.
    pub(super) fn outgoing(&self) -> Result<Outlet> {
        self.still_open()?;
        let gone = || Error::new(ErrorKind::Unavailable, "the line to the sandbox is closed");
        self.outgoing.clone().ok_or_else(gone)
    }

    /// Closes the line for a reason. The first reason stays.
    pub(super) fn close(&mut self, error: &Error) {
        if self.closed.is_none() {
            self.closed = Some((error.kind, error.chain()));
        }
        self.outgoing = None;
        self.slots.values().for_each(Slot::wake);
    }

    /// Puts a frame from the guest where it belongs. An error closes the line.
    pub(super) fn deliver(
        &mut self,
        header: Header,
        body: Cow<'_, [u8]>,
        descriptors: &mut VecDeque<OwnedFd>,
    ) -> Result<Wanted> {
        let Some(slot) = self.slots.get_mut(&header.channel) else {
            return self.deliver_unknown(header, &body);
        };
        match header.kind {
            Kind::Message => slot.put_message(&body)?,
            Kind::Data => slot.put_data(body, descriptors)?,
            Kind::End => slot.put_end(),
            Kind::Credit => slot.put_credit(credit(&body)?),
        }
        Ok(Wanted::Nothing)
    }

    fn deliver_unknown(&mut self, header: Header, body: &[u8]) -> Result<Wanted> {
        let id = header.channel;
        let was_open =
            if id.is_multiple_of(2) { id <= self.last_even && id > 0 } else { id < self.next_odd };
        match header.kind {
            Kind::Credit | Kind::End if was_open => Ok(Wanted::Nothing),
            Kind::Message if id.is_multiple_of(2) && !was_open && id > 0 => {
                self.guest_opens(id, body)
            }
            Kind::Message | Kind::Data | Kind::Credit | Kind::End => {
                Err(broken(format!("a frame came for channel {id}, which is not open")))
            }
        }
    }

    fn guest_opens(&mut self, channel: u32, body: &[u8]) -> Result<Wanted> {
        // HOSTILE: the one request that a guest has. All else closes the line.
        let GuestOpens::Egress { host, port } = parse(body)?;
        if self.egress >= MAX_EGRESS + MAX_EGRESS_REFUSED || self.slots.len() >= MAX_CHANNELS {
            return Err(broken("the guest opened more channels than it may"));
        }
        if host.len() > MAX_HOST_BYTES {
            return Err(broken("the guest asked for a host name that is too long"));
        }
        self.last_even = channel;
        self.egress += 1;
        self.slots.insert(channel, Slot::new(Accepts::Nothing));
        if self.egress > MAX_EGRESS {
            return Ok(Wanted::TooMany { channel });
        }
        Ok(Wanted::Dial { channel, host, port })
    }
}

/// The longest host name, with room for a trailing dot and brackets.
const MAX_HOST_BYTES: usize = 256;

/// Understands a short message.
pub(super) fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T> {
    if body.len() > MAX_MESSAGE_BYTES {
        return Err(broken(format!("a message of {} bytes is too long", body.len())));
    }
    parse_long(body)
}

/// Understands a message of any length that a frame can have.
pub(super) fn parse_long<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| broken("a message could not be understood").source(error))
}

fn credit(body: &[u8]) -> Result<u32> {
    let bytes = body.try_into().map_err(|_| broken("a credit is not four bytes long"))?;
    Ok(u32::from_le_bytes(bytes))
}
