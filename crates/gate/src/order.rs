//! The control socket: one line of JSON each, the first with descriptors beside it.

use cofferdam_core::network::{GateOrder, MAX_CONTROL_LINE_BYTES, ToGate};
use cofferdam_core::{Error, ErrorKind, GateSocket, Result};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// How many descriptors come with an order at most: one of each [`GateSocket`].
const MAX_DESCRIPTORS: usize = 7;

/// How much is read at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Sends a gate its order and, beside it, the descriptors that `order.descriptors` names, in that
/// order. Blocks while the gate does not read.
pub fn send_order(
    control: BorrowedFd<'_>,
    order: &GateOrder,
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    if descriptors.len() != order.descriptors.len() || descriptors.len() > MAX_DESCRIPTORS {
        return Err(Error::new(ErrorKind::Usage, "not one descriptor for each that is named"));
    }
    let line = line(&ToGate::Order(order.clone()))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Error::new(ErrorKind::Usage, "too many descriptors"));
    }
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        match sendmsg(control, &[IoSlice::new(rest)], &mut beside, SendFlags::NOSIGNAL) {
            Ok(sent) => {
                rest = rest.get(sent..).unwrap_or_default();
                beside.clear();
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                return Err(Error::new(ErrorKind::Io, "send the order to the gate").source(error));
            }
        }
    }
    Ok(())
}

/// A message as its line.
pub(crate) fn line(message: &ToGate) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)
        .map_err(|error| Error::new(ErrorKind::Io, "write a message to a gate").source(error))?;
    line.push(b'\n');
    Ok(line)
}

/// The end of a control socket that a gate reads.
pub(crate) struct Control {
    stream: Arc<UnixStream>,
    read: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Control {
    pub(crate) fn new(stream: std::os::unix::net::UnixStream) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, "read the control socket").source(error)
        };
        stream.set_nonblocking(true).map_err(failed)?;
        let stream = UnixStream::from_std(stream).map_err(failed)?;
        Ok(Self { stream: Arc::new(stream), read: Vec::new(), descriptors: Vec::new() })
    }

    /// The same socket, to say something to the other side.
    pub(crate) fn other_side(&self) -> Arc<UnixStream> {
        self.stream.clone()
    }

    /// The order, and what came with it. `None` where the other side went away before.
    pub(crate) async fn order(&mut self) -> Result<Option<(GateOrder, Handed)>> {
        match self.next(true).await? {
            None => Ok(None),
            Some(ToGate::Policy(_) | ToGate::Approve { .. } | ToGate::Deny { .. }) => {
                Err(broken("something came before the order"))
            }
            Some(ToGate::Order(order)) => {
                order.policy.check()?;
                let handed =
                    Handed::new(&order.descriptors, std::mem::take(&mut self.descriptors))?;
                Ok(Some((order, handed)))
            }
        }
    }

    /// The next message, `None` at the end. What is malformed is an error: nothing is guessed.
    pub(crate) async fn next(&mut self, is_first: bool) -> Result<Option<ToGate>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end.saturating_add(1));
                let line = std::mem::replace(&mut self.read, rest);
                return serde_json::from_slice(&line)
                    .map(Some)
                    .map_err(|error| broken("a line is no message").source(error));
            }
            if self.read.len() >= MAX_CONTROL_LINE_BYTES {
                return Err(broken("a line is too long"));
            }
            if self.read_more(is_first).await? == 0 {
                return match self.read.is_empty() {
                    true => Ok(None),
                    false => Err(broken("it ended within a line")),
                };
            }
        }
    }

    async fn read_more(&mut self, with_descriptors: bool) -> Result<usize> {
        let (stream, descriptors) = (&*self.stream, &mut self.descriptors);
        let mut piece = vec![0; PIECE_BYTES];
        let read = stream
            .async_io(Interest::READABLE, || {
                receive(stream.as_fd(), &mut piece, with_descriptors, descriptors)
                    .map_err(std::io::Error::from)
            })
            .await;
        let read = match read {
            // A holder that went away without hearing all that it was told: an end as any other.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            other => other.map_err(|error| {
                Error::new(ErrorKind::Io, "read the control socket").source(error)
            })?,
        };
        self.read.extend_from_slice(piece.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// Receives bytes, and descriptors where they are wanted: the kernel closes others.
fn receive(
    stream: BorrowedFd<'_>,
    piece: &mut [u8],
    with_descriptors: bool,
    descriptors: &mut Vec<OwnedFd>,
) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut beside = match with_descriptors {
        true => RecvAncillaryBuffer::new(&mut space),
        false => RecvAncillaryBuffer::default(),
    };
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream, &mut [IoSliceMut::new(piece)], &mut beside, flags)?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok(received.bytes)
}

/// What came with an order.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    pub(crate) transparent_v4: Option<OwnedFd>,
    pub(crate) transparent_v6: Option<OwnedFd>,
    pub(crate) proxy: Option<OwnedFd>,
    pub(crate) dns_udp: Option<OwnedFd>,
    pub(crate) dns_tcp: Option<OwnedFd>,
    pub(crate) log: Option<OwnedFd>,
    pub(crate) vault: Option<OwnedFd>,
}

impl Handed {
    fn new(named: &[GateSocket], descriptors: Vec<OwnedFd>) -> Result<Self> {
        if named.len() != descriptors.len() {
            let what = format!("{} descriptors came for {}", descriptors.len(), named.len());
            return Err(broken(&what));
        }
        if !named.is_sorted_by(|one, next| one < next) {
            return Err(broken("the descriptors are not in their order"));
        }
        let mut handed = Self::default();
        for (name, descriptor) in named.iter().zip(descriptors) {
            let place = match name {
                GateSocket::TransparentV4 => &mut handed.transparent_v4,
                GateSocket::TransparentV6 => &mut handed.transparent_v6,
                GateSocket::Proxy => &mut handed.proxy,
                GateSocket::DnsUdp => &mut handed.dns_udp,
                GateSocket::DnsTcp => &mut handed.dns_tcp,
                GateSocket::Log => &mut handed.log,
                GateSocket::Vault => &mut handed.vault,
            };
            *place = Some(descriptor);
        }
        Ok(handed)
    }
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("read the control socket of the gate: {what}"))
}
