//! What the host sends into a sandbox that it cloned before it knew all of it.

use super::{CallFailed, During};
use cofferdam_wire::plan::Access;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The most descriptors beside one piece. The kernel takes 253.
const DESCRIPTORS: usize = 64;
/// How many bytes lead the list and say how long it is.
const LENGTH_BYTES: usize = 4;

/// The steps that wait, and where what they wait for comes from.
#[derive(Debug)]
pub struct Awaited {
    /// A connected stream socket.
    pub socket: OwnedFd,
    /// The first step that waits.
    pub from: usize,
    /// The steps that pin names. What comes stands for all of them.
    pub pins: Range<usize>,
}

/// What comes.
#[derive(Debug, Default)]
pub struct Rest {
    /// As in [`super::Handover::mounts`].
    pub mounts: BTreeMap<usize, OwnedFd>,
    /// As in [`super::Handover::cgroups`].
    pub cgroups: Vec<OwnedFd>,
    /// Names to pin, parents first.
    pub pins: Vec<(String, Access)>,
}

/// What is said of it. The descriptors of the mounts come first.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    mounts: Vec<usize>,
    cgroups: usize,
    pins: Vec<(String, Access)>,
}

impl Rest {
    /// Sends it. Waits for the sandbox where it is more than the socket holds.
    pub fn send(self, socket: impl AsFd) -> rustix::io::Result<()> {
        let listed = Listed {
            mounts: self.mounts.keys().copied().collect(),
            cgroups: self.cgroups.len(),
            pins: self.pins,
        };
        let list = serde_json::to_vec(&listed).map_err(|_| Errno::INVAL)?;
        let length = u32::try_from(list.len()).map_err(|_| Errno::MSGSIZE)?;
        let mut bytes = Vec::from(length.to_le_bytes());
        bytes.extend_from_slice(&list);
        let descriptors = self.mounts.values().chain(&self.cgroups).map(AsFd::as_fd);
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.collect();
        let mut pieces = descriptors.chunks(DESCRIPTORS);
        push(socket.as_fd(), &bytes, pieces.next().unwrap_or_default())?;
        // A descriptor travels beside at least one byte.
        pieces.try_for_each(|piece| push(socket.as_fd(), b"+", piece))
    }

    /// Takes it. Fails where the host is gone.
    pub(super) fn receive(socket: impl AsFd) -> Result<Self, CallFailed> {
        let mut came = Came::default();
        let listed: Listed = loop {
            came.more(socket.as_fd())?;
            if let Some(list) = came.list() {
                break serde_json::from_slice(list)
                    .map_err(|_| CallFailed::new("understand what the host sent", Errno::INVAL))?;
            }
        };
        let count = listed.mounts.len() + listed.cgroups;
        while came.descriptors.len() < count {
            came.more(socket.as_fd())?;
        }
        let mut descriptors = came.descriptors.into_iter();
        let mounts = listed.mounts.into_iter().zip(descriptors.by_ref()).collect();
        Ok(Self { mounts, cgroups: descriptors.collect(), pins: listed.pins })
    }
}

fn push(
    socket: BorrowedFd<'_>,
    mut bytes: &[u8],
    mut descriptors: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let piece = [IoSlice::new(bytes)];
        match rustix::net::sendmsg(socket, &piece, &mut ancillary, SendFlags::NOSIGNAL) {
            Ok(count) => {
                bytes = bytes.get(count..).unwrap_or_default();
                descriptors = &[];
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// What has come so far.
#[derive(Debug, Default)]
struct Came {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Came {
    fn more(&mut self, socket: BorrowedFd<'_>) -> Result<(), CallFailed> {
        let mut piece = [0; 16 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut piece)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = match rustix::net::recvmsg(socket, &mut into, &mut ancillary, flags) {
            Err(Errno::INTR) => return Ok(()),
            other => other.during(|| "recvmsg(what the host prepared)".to_owned())?,
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(came) = message {
                self.descriptors.extend(came);
            }
        }
        if received.bytes == 0 {
            return Err(CallFailed::new("recvmsg(what the host prepared)", Errno::PIPE));
        }
        self.bytes.extend_from_slice(piece.get(..received.bytes).unwrap_or_default());
        Ok(())
    }

    /// The list, once it is whole.
    fn list(&self) -> Option<&[u8]> {
        let (length, list) = self.bytes.split_first_chunk::<LENGTH_BYTES>()?;
        list.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    }

    fn open(path: &str) -> OwnedFd {
        std::fs::File::open(path).unwrap().into()
    }

    #[test]
    fn more_than_one_piece_arrives_whole_and_in_order() {
        let (ours, theirs) = pair();
        let pins: Vec<_> =
            (0..20_000).map(|n| (format!("/w/some/name-{n}"), Access::ReadOnly)).collect();
        let rest = Rest {
            mounts: (0..150).map(|n| (n * 2, open("/dev/zero"))).collect(),
            cgroups: vec![open("/dev/null")],
            pins: pins.clone(),
        };
        let sender = std::thread::spawn(move || rest.send(&ours));
        let came = Rest::receive(&theirs).unwrap();
        sender.join().unwrap().unwrap();
        assert_eq!(came.pins, pins);
        assert_eq!(came.mounts.len(), 150);
        let number = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_rdev;
        let zero = number(&open("/dev/zero"));
        assert!(came.mounts.values().all(|mount| number(mount) == zero));
        assert!(came.mounts.keys().all(|position| position % 2 == 0));
        let groups: Vec<u64> = came.cgroups.iter().map(number).collect();
        assert_eq!(groups, [number(&open("/dev/null"))]);
    }

    #[test]
    fn a_host_that_is_gone_is_an_error() {
        let (ours, theirs) = pair();
        drop(ours);
        assert_eq!(Rest::receive(&theirs).unwrap_err().errno, Errno::PIPE);
    }
}
