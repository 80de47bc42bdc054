//! What a client says to a keeper, and what it hears: frames over the keeper's socket.
//!
//! A connection carries one request at a time: a message, and after one of [`Request::Bytes`] these as they
//! are. Both sides are of one program, so a version of their own is all the agreement they need; a keeper of
//! another version than its client says so.

use crate::backend::receive;
use crate::handing::handed;
use cofferdam_core::{
    Deadlines, DestroyReason, ErrorBody, ErrorReport, ExecOrder, ExecStatus, NetworkPolicy,
    Permission, ProcessId, SandboxMetrics, Standard, Stdin, Terminal, Verdict,
};
use cofferdam_wire::ByteString;
use cofferdam_wire::frame::{self, Decoder, Kind};
use cofferdam_wire::message::{Handed, MAX_HANDED};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::{Deserialize, Serialize};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::time::Duration;

/// The version of these messages.
pub(super) const VERSION: u32 = 7;

/// The longest that an answer to a start waits for the command's end.
pub(super) const MAX_START_PATIENCE: Duration = Duration::from_secs(1);

/// How much is read from a client at a time.
const PIECE_BYTES: usize = 16 * 1024;
/// How many such pieces are taken from one client before others are heard.
const MOST_PIECES: usize = 8;

/// A request, and which sandbox it is meant for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) version: u32,
    /// The external id of the record: a later sandbox of the same id is another one.
    pub(super) of: String,
    pub(super) request: Request,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    Status,
    Pause,
    Hold,
    Resume,
    /// The same by somebody who asked for it by name: after an alarm, too.
    ResumeOnPurpose,
    SetDeadlines(Deadlines),
    Destroy(DestroyReason),
    Start(Box<Start>),
    Execs {
        since_ms: u64,
    },
    Watch {
        id: ProcessId,
        stdout: u64,
        stderr: u64,
        #[serde(default)]
        stops: Option<u32>,
        #[serde(default)]
        end: bool,
        patience_ms: u64,
    },
    /// Input of a command, which comes in a frame of its own.
    Bytes {
        id: ProcessId,
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    Close {
        id: ProcessId,
    },
    Signal {
        id: ProcessId,
        signal: i32,
    },
    Resize {
        id: ProcessId,
        size: Terminal,
    },
    /// Lets go of a stream of a command, which nobody reads.
    Unread {
        id: ProcessId,
        stream: Standard,
    },
    Kill {
        id: ProcessId,
    },
    /// A connection to a file worker, which comes with `Done`. It counts as use of the sandbox until
    /// the client hangs up.
    Files,
    /// The same, and it stays over a pause.
    WatchFiles,
    /// A connection to a port inside, which comes with `Done` and stays over a pause. It counts as use
    /// of the sandbox until the client hangs up.
    Port {
        port: u16,
    },
    /// Ends all processes of the sandbox, which is held, for another layer to come. Whoever asked says
    /// [`Request::RenewLayer`] next, on the same connection; where it hangs up the sandbox ends.
    ClearForLayer,
    /// Mounts the layer that is there now in the place of the one that was.
    RenewLayer,
    /// What may be reached.
    Network,
    SetNetwork(NetworkPolicy),
    /// What its processes, which are held, have mapped together with others.
    Mapped,
    /// What it uses.
    Metrics,
    /// What waits to be allowed.
    Permissions,
    AnswerPermission {
        number: u64,
        verdict: Verdict,
    },
}

/// An [`ExecOrder`] as data.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) id: ProcessId,
    pub(super) argv: Vec<ByteString>,
    pub(super) cwd: Option<ByteString>,
    pub(super) env: Vec<(ByteString, ByteString)>,
    pub(super) reads: bool,
    pub(super) terminal: Option<Terminal>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) detached: bool,
    pub(super) keep_awake: bool,
    pub(super) spool_bytes: u64,
    pub(super) max_output_bytes: Option<u64>,
    /// How long its end is waited for with the answer; 0 for who wants to hear that it runs.
    #[serde(default)]
    pub(super) patience_ms: u64,
    /// Secrets, whose values come as descriptors with the request, in this order.
    pub(super) handed: Vec<Handed>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Done,
    Status {
        paused: bool,
    },
    /// One command. The list of them is many of these, then `Done`.
    Exec(Box<ExecStatus>),
    /// `None` where there is no way out.
    Network(Option<NetworkPolicy>),
    Metrics(SandboxMetrics),
    /// `None` where it is not known.
    Mapped(Option<Vec<ByteString>>),
    Permissions(Vec<Permission>),
    Failed(ErrorBody),
}

impl Asked {
    /// What comes after the message.
    fn bytes(&mut self) -> Option<&mut Vec<u8>> {
        let Request::Bytes { bytes, .. } = &mut self.request else { return None };
        Some(bytes)
    }
}

impl Start {
    pub(super) fn of(order: &ExecOrder) -> Self {
        let command = &order.command;
        Self {
            id: command.id.clone(),
            argv: command.argv.iter().map(|word| word.as_os_str().into()).collect(),
            cwd: command.cwd.as_deref().map(Into::into),
            env: command
                .env
                .iter()
                .map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into()))
                .collect(),
            reads: command.stdin == Stdin::Piped,
            terminal: command.terminal,
            timeout_ms: command
                .timeout
                .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            detached: order.detached,
            keep_awake: order.keep_awake,
            spool_bytes: order.spool_bytes,
            max_output_bytes: order.max_output_bytes,
            patience_ms: 0,
            handed: handed(&command.secrets),
        }
    }
}

impl Start {
    /// Whether nobody asks for anything of it before its end, or before so long.
    pub(super) fn patience(&self) -> Option<Duration> {
        let told_at_the_end = self.patience_ms > 0
            && !self.detached
            && self.terminal.is_none()
            && self.max_output_bytes.is_none();
        told_at_the_end.then(|| Duration::from_millis(self.patience_ms).min(MAX_START_PATIENCE))
    }
}

impl From<cofferdam_core::Error> for Reply {
    fn from(error: cofferdam_core::Error) -> Self {
        Self::Failed(ErrorReport::from(&error).error)
    }
}

/// The keeper's side of one connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) socket: OwnedFd,
    decoder: Decoder,
    /// A request whose bytes have not come yet.
    begun: Option<Asked>,
    /// Descriptors that came and were not taken yet.
    came: Vec<OwnedFd>,
    out: Vec<u8>,
    sent: usize,
}

/// The connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HungUp;

impl Wire {
    pub(super) fn new(socket: OwnedFd) -> Self {
        let (decoder, begun) = (Decoder::default(), None);
        Self { socket, decoder, begun, came: Vec::new(), out: Vec::new(), sent: 0 }
    }

    /// Takes what has come.
    pub(super) fn fill(&mut self) -> Result<(), HungUp> {
        let mut piece = [0; PIECE_BYTES];
        for _ in 0..MOST_PIECES {
            match receive(&self.socket, &mut piece, &mut self.came) {
                Ok(0) => return Err(HungUp),
                // No request has so many, and one request comes at a time.
                Ok(_) if self.came.len() > MAX_HANDED => return Err(HungUp),
                Ok(count) => {
                    self.decoder.push(piece.get(..count).unwrap_or_default());
                    if count < PIECE_BYTES {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(_) => return Err(HungUp),
            }
        }
        Ok(())
    }

    /// The descriptors that came with the request.
    pub(super) fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.came)
    }

    /// The next whole request.
    pub(super) fn next(&mut self) -> Result<Option<Asked>, HungUp> {
        while let Some((header, body)) = self.decoder.next_frame().map_err(|_| HungUp)? {
            let mut asked = match (header.kind, self.begun.take()) {
                (Kind::Message, None) => {
                    serde_json::from_slice::<Asked>(body).map_err(|_| HungUp)?
                }
                (Kind::Data, Some(mut asked)) => {
                    asked.bytes().ok_or(HungUp)?.extend_from_slice(body);
                    return Ok(Some(asked));
                }
                _ => return Err(HungUp),
            };
            // Who speaks otherwise than we do is told so, whatever they send after it.
            if asked.version != VERSION || asked.bytes().is_none() {
                return Ok(Some(asked));
            }
            self.begun = Some(asked);
        }
        Ok(None)
    }

    /// Sends a reply as far as the client takes it now.
    pub(super) fn reply(&mut self, reply: &Reply) -> Result<(), HungUp> {
        encode(reply, &mut self.out).ok_or(HungUp)?;
        self.flush()
    }

    /// Sends a reply with a descriptor. A client that has one reply at a time has room for it.
    pub(super) fn hand_over(&mut self, reply: &Reply, descriptor: &OwnedFd) -> Result<(), HungUp> {
        let mut bytes = Vec::new();
        encode(reply, &mut bytes).filter(|()| !self.is_behind()).ok_or(HungUp)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let pieces = [IoSlice::new(&bytes)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::sendmsg(&self.socket, &pieces, &mut ancillary, flags) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) | Err(_) => Err(HungUp),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), HungUp> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(HungUp),
            }
        }
        (self.out, self.sent) = (Vec::new(), 0);
        Ok(())
    }

    /// Whether a reply waits for the client to read.
    pub(super) fn is_behind(&self) -> bool {
        self.sent < self.out.len()
    }
}

/// Adds a request, with what comes after it. `None` where it is too long.
pub(super) fn encode_asked(asked: &Asked, out: &mut Vec<u8>) -> Option<()> {
    encode(asked, out)?;
    let Request::Bytes { bytes, .. } = &asked.request else { return Some(()) };
    frame::encode(0, Kind::Data, bytes, out).ok()
}

/// Adds a message as a frame. `None` where it is too long for one.
pub(super) fn encode<M: Serialize>(message: &M, out: &mut Vec<u8>) -> Option<()> {
    let body = serde_json::to_vec(message).ok()?;
    frame::encode(0, Kind::Message, &body, out).ok()
}

/// A command of one word, as somebody orders it who wants nothing else.
#[cfg(test)]
pub(super) fn order_of(id: &str, word: &str) -> Start {
    Start::of(&ExecOrder {
        command: cofferdam_core::Command::new(ProcessId::new(id).unwrap(), [word]),
        detached: false,
        keep_awake: false,
        spool_bytes: 0,
        max_output_bytes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn asked(version: u32, bytes: &[u8]) -> Asked {
        let id = ProcessId::new("c").unwrap();
        Asked { version, of: "x".into(), request: Request::Bytes { id, bytes: bytes.to_vec() } }
    }

    /// What a keeper hears of these bytes.
    fn heard(sent: &[u8]) -> (Wire, OwnedFd) {
        let flags = SocketFlags::NONBLOCK;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        assert_eq!(rustix::io::write(&pair.0, sent).unwrap(), sent.len());
        (Wire::new(pair.1), pair.0)
    }

    #[test]
    fn input_comes_as_it_is_after_its_message() {
        let input: Vec<u8> = (0..=255).cycle().take(64 << 10).collect();
        let mut sent = Vec::new();
        encode_asked(&asked(VERSION, &input), &mut sent).unwrap();
        assert!(sent.len() < input.len() + 200, "{}", sent.len());
        let (first, rest) = sent.split_at(sent.len() - 1);
        let (mut wire, client) = heard(first);
        wire.fill().unwrap();
        assert!(wire.next().unwrap().is_none(), "not whole");
        rustix::io::write(&client, rest).unwrap();
        wire.fill().unwrap();
        let Some(Asked { request: Request::Bytes { bytes, .. }, .. }) = wire.next().unwrap() else {
            panic!("another request");
        };
        assert!(bytes == input && wire.next().unwrap().is_none());
    }

    #[test]
    fn a_client_that_says_much_at_once_does_not_keep_others_from_being_heard() {
        let most = MOST_PIECES * PIECE_BYTES;
        let (mut wire, client) = heard(&vec![0; most / 2]);
        assert_eq!(rustix::io::write(&client, &vec![0; most / 2 + 1]).unwrap(), most / 2 + 1);
        wire.fill().unwrap();
        let left = rustix::io::ioctl_fionread(&wire.socket).unwrap();
        assert_eq!(left, 1, "of {} bytes", most + 1);
        wire.fill().unwrap();
        assert_eq!(rustix::io::ioctl_fionread(&wire.socket).unwrap(), 0);
    }

    #[test]
    fn a_client_of_another_version_is_heard_at_once() {
        let mut sent = Vec::new();
        encode(&asked(VERSION - 1, b""), &mut sent).unwrap();
        let (mut wire, _client) = heard(&sent);
        wire.fill().unwrap();
        assert_eq!(wire.next().unwrap().unwrap().version, VERSION - 1);
    }

    #[test]
    fn bytes_that_nobody_announced_end_a_connection() {
        let status = Asked { request: Request::Status, ..asked(VERSION, b"") };
        let mut message = Vec::new();
        encode(&status, &mut message).unwrap();
        let mut begun = Vec::new();
        encode(&asked(VERSION, b""), &mut begun).unwrap();
        let mut data = Vec::new();
        frame::encode(0, Kind::Data, b"x", &mut data).unwrap();
        for sent in
            [data.clone(), [begun.clone(), message].concat(), [begun.clone(), begun].concat()]
        {
            let (mut wire, _client) = heard(&sent);
            wire.fill().unwrap();
            assert_eq!(wire.next().map(drop), Err(HungUp));
        }
    }
}
