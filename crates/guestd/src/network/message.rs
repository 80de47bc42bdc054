//! Messages of netlink, byte by byte, and whether the kernel took them.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send,
    socket_with,
};

// Of linux/netlink.h.
const HEADER_BYTES: usize = 16;
const NLMSG_ERROR: u16 = 2;
pub(super) const NLM_F_REQUEST: u16 = 0x1;
pub(super) const NLM_F_ACK: u16 = 0x4;
pub(super) const NLM_F_EXCL: u16 = 0x200;
pub(super) const NLM_F_CREATE: u16 = 0x400;
pub(super) const NLM_F_APPEND: u16 = 0x800;
const NLA_F_NESTED: u16 = 0x8000;

/// How much of the kernel's answers is read at a time. Each is a few dozen bytes.
const ANSWER_BYTES: usize = 16 * 1024;

/// Messages that are sent together.
#[derive(Debug, Default)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    /// How many of them are answered.
    answers: usize,
}

impl Messages {
    /// Adds a message. `body` writes what follows its header: a fixed part, then attributes.
    pub(super) fn add(&mut self, kind: u16, flags: u16, body: impl FnOnce(&mut Body<'_>)) {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | NLM_F_REQUEST).to_ne_bytes());
        // The number of the message, and of who sends: neither is looked at.
        self.bytes.extend([0; 8]);
        body(&mut Body(&mut self.bytes));
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        put(&mut self.bytes, start, &length.to_ne_bytes());
        self.answers += usize::from(flags & NLM_F_ACK != 0);
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sends all of them in one piece, and fails with the first error that the kernel answers.
    pub(super) fn send(&self, protocol: Option<Protocol>) -> Result<(), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        let sent = send(&socket, &self.bytes, SendFlags::empty())?;
        if sent != self.bytes.len() {
            return Err(Errno::MSGSIZE);
        }
        self.answered(&socket)
    }

    /// The kernel has answered when the call to send returns.
    fn answered(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let mut buffer = vec![0; ANSWER_BYTES];
        let mut taken = 0;
        while taken < self.answers {
            let (count, _) = recv(socket, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = buffer.get(..count).unwrap_or_default();
            while let Some((error, after)) = next_answer(rest) {
                match error {
                    Some(0) => taken += 1,
                    Some(error) => return Err(Errno::from_raw_os_error(-error)),
                    None => {}
                }
                rest = after;
            }
        }
        Ok(())
    }
}

/// The first answer of some: its error, 0 for none, and what follows. Anything else has no error.
fn next_answer(bytes: &[u8]) -> Option<(Option<i32>, &[u8])> {
    let (head, body) = bytes.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_ne_bytes(*head.first_chunk()?);
    let kind = u16::from_ne_bytes(*head.get(4..)?.first_chunk()?);
    let error = i32::from_ne_bytes(*body.first_chunk()?);
    let length = usize::try_from(length).ok()?.max(HEADER_BYTES).next_multiple_of(4);
    let after = bytes.get(length..).unwrap_or_default();
    Some(((kind == NLMSG_ERROR).then_some(error), after))
}

/// Where the parts of a message are written.
pub(super) struct Body<'a>(&'a mut Vec<u8>);

impl Body<'_> {
    /// The fixed part, a multiple of four bytes.
    pub(super) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// An attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.framed(kind, |body| body.0.extend(value));
    }

    /// An attribute that is a number as networks write it.
    pub(super) fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_be_bytes());
    }

    /// An attribute that is a text.
    pub(super) fn text(&mut self, kind: u16, value: &str) {
        self.framed(kind, |body| {
            body.0.extend(value.as_bytes());
            body.0.push(0);
        });
    }

    /// An attribute that has attributes.
    pub(super) fn nested(&mut self, kind: u16, inner: impl FnOnce(&mut Body<'_>)) {
        self.framed(kind | NLA_F_NESTED, inner);
    }

    /// Its length does not count what fills it up to a multiple of four.
    fn framed(&mut self, kind: u16, inner: impl FnOnce(&mut Body<'_>)) {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        inner(&mut Body(self.0));
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        put(self.0, start, &length.to_ne_bytes());
        let filled = self.0.len().next_multiple_of(4);
        self.0.resize(filled, 0);
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    for (place, byte) in bytes.iter_mut().skip(at).zip(value) {
        *place = *byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_laid_out_as_the_kernel_reads_it() {
        let mut messages = Messages::default();
        messages.add(0x0a03, NLM_F_ACK, |body| {
            body.fixed(&[1, 0, 0, 0]);
            body.text(1, "ab");
            body.nested(4, |body| body.number(2, 0x0102_0304));
        });
        #[rustfmt::skip]
        let expected = [
            40_u8, 0, 0, 0, 0x03, 0x0a, 0x05, 0x00, 0, 0, 0, 0, 0, 0, 0, 0,
            1, 0, 0, 0,
            7, 0, 1, 0, b'a', b'b', 0, 0,
            12, 0, 4, 0x80, 8, 0, 2, 0, 1, 2, 3, 4,
        ];
        if cfg!(target_endian = "little") {
            assert_eq!(messages.bytes(), expected);
        }
        assert_eq!(messages.answers, 1);
    }

    #[test]
    fn an_answer_is_an_error_or_none() {
        let mut bytes = vec![36, 0, 0, 0, 2, 0];
        bytes.resize(16, 0);
        bytes.extend((-1_i32).to_ne_bytes());
        bytes.resize(36, 0);
        let whole = next_answer(&bytes).unwrap();
        assert_eq!(whole, (Some(-1), &[][..]));
        assert!(next_answer(&bytes[..10]).is_none(), "a piece is none");
    }
}
