//! What the host sends into a sandbox that it cloned before it knew all of it: first the plan, then
//! what the plan waits for.

use super::{CallFailed, During, Mounts};
use cofferdam_wire::plan::{Access, Step};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
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
    /// Where it comes from.
    pub(crate) heard: Heard,
    /// The steps that wait first: they pin names, and what comes stands for all of them.
    pub(crate) pins: Range<usize>,
}

/// The plan, from where its beginning ends.
#[derive(Debug, Default)]
pub struct Told {
    /// The further steps.
    pub steps: Vec<Step>,
    /// The steps that pin names, counted from the plan's first. They and the later ones wait for
    /// [`Names`], and the step that joins groups for [`Joined`].
    pub pins: Range<usize>,
    /// As in [`super::Handover::mounts`].
    pub mounts: Mounts,
}

/// The names that its steps wait for.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Names to pin, parents first.
    pub pins: Vec<(String, Access)>,
    /// What is covered after that.
    pub covers: Vec<String>,
}

/// The groups that it is to join, which it waits for last. As in [`super::Handover::cgroups`].
#[derive(Debug, Default)]
pub struct Joined(pub Vec<OwnedFd>);

/// What is said of the plan. The descriptors of the mounts come in this order; a position stands as
/// often as its step has mounts.
#[derive(Debug, Serialize, Deserialize)]
struct ToldList {
    steps: Vec<Step>,
    pins: Range<usize>,
    mounts: Vec<usize>,
}

impl Told {
    /// Sends it. Waits for the sandbox where it is more than the socket holds.
    pub fn send(self, socket: impl AsFd) -> rustix::io::Result<()> {
        let Self { steps, pins, mounts } = self;
        let list = ToldList { steps, pins, mounts: positions(&mounts) };
        send(socket.as_fd(), &list, mounts.values().flatten())
    }
}

impl Names {
    /// Sends them. Waits for the sandbox where they are more than the socket holds.
    pub fn send(&self, socket: impl AsFd) -> rustix::io::Result<()> {
        send(socket.as_fd(), self, std::iter::empty())
    }
}

impl Joined {
    /// Sends them.
    pub fn send(&self, socket: impl AsFd) -> rustix::io::Result<()> {
        send(socket.as_fd(), &self.0.len(), self.0.iter())
    }
}

/// The position of each mount.
pub(crate) fn positions(mounts: &Mounts) -> Vec<usize> {
    mounts.iter().flat_map(|(position, mounts)| mounts.iter().map(move |_| *position)).collect()
}

/// The mounts again, from their positions and themselves.
pub(crate) fn by_position(
    positions: Vec<usize>,
    came: impl IntoIterator<Item = OwnedFd>,
) -> Mounts {
    let mut mounts = Mounts::new();
    for (position, mount) in positions.into_iter().zip(came) {
        mounts.entry(position).or_default().push(mount);
    }
    mounts
}

fn send<'a>(
    socket: BorrowedFd<'_>,
    list: &impl Serialize,
    descriptors: impl Iterator<Item = &'a OwnedFd>,
) -> rustix::io::Result<()> {
    let mut bytes = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut bytes, list).map_err(|_| Errno::INVAL)?;
    let length = u32::try_from(bytes.len() - LENGTH_BYTES).map_err(|_| Errno::MSGSIZE)?;
    for (place, byte) in bytes.iter_mut().zip(length.to_le_bytes()) {
        *place = byte;
    }
    let descriptors: Vec<BorrowedFd<'_>> = descriptors.map(AsFd::as_fd).collect();
    let mut pieces = descriptors.chunks(DESCRIPTORS);
    push(socket, &bytes, pieces.next().unwrap_or_default())?;
    // A descriptor travels beside at least one byte.
    pieces.try_for_each(|piece| push(socket, b"+", piece))
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

/// What comes from the host, as far as it has come.
#[derive(Debug)]
pub(crate) struct Heard {
    socket: OwnedFd,
    bytes: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Heard {
    /// Listens on a connected stream socket.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, bytes: Vec::new(), descriptors: VecDeque::new() }
    }

    /// Takes the plan, which is the first that comes. Fails where the host is gone.
    pub(crate) fn told(&mut self) -> Result<Told, CallFailed> {
        let ToldList { steps, pins, mounts } = self.list()?;
        let descriptors = self.descriptors(mounts.len())?;
        Ok(Told { steps, pins, mounts: by_position(mounts, descriptors) })
    }

    /// Takes the names that the plan waits for, which come next. Fails where the host is gone.
    pub(crate) fn names(&mut self) -> Result<Names, CallFailed> {
        self.list()
    }

    /// Takes the groups, which come last. Fails where the host is gone.
    pub(crate) fn joined(&mut self) -> Result<Vec<OwnedFd>, CallFailed> {
        let count = self.list()?;
        self.descriptors(count)
    }

    /// The next list, once it is whole.
    fn list<T: DeserializeOwned>(&mut self) -> Result<T, CallFailed> {
        loop {
            if let Some((length, bytes)) = self.bytes.split_first_chunk::<LENGTH_BYTES>()
                && let Ok(length) = usize::try_from(u32::from_le_bytes(*length))
                && let Some(list) = bytes.get(..length)
            {
                let list = serde_json::from_slice(list)
                    .map_err(|_| CallFailed::new("understand what the host sent", Errno::INVAL))?;
                self.bytes.drain(..LENGTH_BYTES + length);
                return Ok(list);
            }
            self.more()?;
        }
    }

    /// The next descriptors, with the bytes that travelled beside them.
    fn descriptors(&mut self, count: usize) -> Result<Vec<OwnedFd>, CallFailed> {
        while self.descriptors.len() < count {
            self.more()?;
        }
        // Each piece after the first brought a byte that means nothing.
        let bytes = count.saturating_sub(1) / DESCRIPTORS;
        while self.bytes.len() < bytes {
            self.more()?;
        }
        self.bytes.drain(..bytes);
        Ok(self.descriptors.drain(..count).collect())
    }

    fn more(&mut self) -> Result<(), CallFailed> {
        let mut piece = [0; 16 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut piece)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = match rustix::net::recvmsg(&self.socket, &mut into, &mut ancillary, flags) {
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
        let covers = vec!["/w/socket".to_owned()];
        let names = Names { pins, covers };
        let joined = Joined(vec![open("/dev/null")]);
        let told = Told {
            steps: Vec::new(),
            pins: 8..9,
            mounts: (0..150).map(|n| (n * 2, vec![open("/dev/zero")])).collect(),
        };
        let sender = std::thread::spawn(move || {
            told.send(&ours)?;
            names.send(&ours)?;
            joined.send(&ours).map(|()| names)
        });
        let mut heard = Heard::new(theirs);
        let told = heard.told().unwrap();
        let (names, joined) = (heard.names().unwrap(), heard.joined().unwrap());
        assert_eq!(sender.join().unwrap().unwrap(), names);
        assert_eq!((told.pins, told.mounts.len()), (8..9, 150));
        let number = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_rdev;
        let zero = number(&open("/dev/zero"));
        assert!(told.mounts.values().flatten().all(|mount| number(mount) == zero));
        assert!(told.mounts.keys().all(|position| position % 2 == 0));
        let groups: Vec<u64> = joined.iter().map(number).collect();
        assert_eq!(groups, [number(&open("/dev/null"))]);
    }

    #[test]
    fn a_host_that_is_gone_is_an_error() {
        let (ours, theirs) = pair();
        drop(ours);
        assert_eq!(Heard::new(theirs).names().unwrap_err().errno, Errno::PIPE);
    }
}
