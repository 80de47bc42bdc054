//! A connection to the bus of this user's session.

use super::message::{Call, Came, FIXED_HEAD_BYTES, Writer, call, read, whole_length};
use std::io::{self, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How long the way in may take, and the first answer.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);
/// How long any other answer may take: a service may have to be started for it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How many messages for nobody are read before an answer.
const MOST_OTHERS: usize = 256;
/// The longest line of the greeting.
const MAX_LINE_BYTES: usize = 256;

/// An open connection.
#[derive(Debug)]
pub(super) struct Bus {
    stream: UnixStream,
    serial: u32,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// It was refused, with this name.
    Refused(String),
    /// The connection is of no use any more.
    Broken(io::Error),
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// The types of a body, and the body.
pub(super) type Answer = (String, Zeroizing<Vec<u8>>);

impl Bus {
    /// Goes to the first of these addresses, as in `DBUS_SESSION_BUS_ADDRESS`, that is a socket of this
    /// user's.
    pub(super) fn connect(addresses: &str) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::Unsupported, "the bus has no unix socket");
        for address in addresses.split(';') {
            match socket(address).map(|socket| UnixStream::connect_addr(&socket?)) {
                None => {}
                Some(Ok(stream)) => return Self::greet(stream),
                Some(Err(error)) => last = error,
            }
        }
        Err(last)
    }

    fn greet(stream: UnixStream) -> io::Result<Self> {
        let own = rustix::process::geteuid();
        let theirs = rustix::net::sockopt::socket_peercred(&stream)?.uid;
        if theirs != own {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "the bus is another user's"));
        }
        let mut bus = Self { stream, serial: 0 };
        let until = Instant::now() + ARRIVES_WITHIN;
        let digits = cofferdam_core::hexadecimal(own.as_raw().to_string());
        bus.write(format!("\0AUTH EXTERNAL {digits}\r\n").as_bytes(), until)?;
        if !bus.line(until)?.starts_with(b"OK ") {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "the bus lets nobody in"));
        }
        bus.write(b"BEGIN\r\n", until)?;
        let hello = Call {
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            signature: "",
        };
        match bus.call_within(&hello, Writer::new(), ARRIVES_WITHIN) {
            Ok(_) => Ok(bus),
            Err(Unanswered::Broken(error)) => Err(error),
            Err(Unanswered::Refused(name)) => Err(io::Error::other(name)),
        }
    }

    /// Calls, and waits for the answer.
    pub(super) fn call(&mut self, what: &Call<'_>, body: Writer) -> Result<Answer, Unanswered> {
        self.call_within(what, body, ANSWERS_WITHIN)
    }

    fn call_within(
        &mut self,
        what: &Call<'_>,
        body: Writer,
        within: Duration,
    ) -> Result<Answer, Unanswered> {
        let until = Instant::now() + within;
        self.serial = self.serial.wrapping_add(1);
        self.write(&call(what, self.serial, body), until)?;
        for _ in 0..MOST_OTHERS {
            match read(&self.message(until)?).ok_or_else(malformed)? {
                Came::Answer { to, signature, body } if to == self.serial => {
                    return Ok((signature, body));
                }
                Came::Refusal { to, name } if to == self.serial => {
                    return Err(Unanswered::Refused(name));
                }
                Came::Answer { .. } | Came::Refusal { .. } | Came::Other => {}
            }
        }
        Err(malformed().into())
    }

    /// One whole message.
    fn message(&mut self, until: Instant) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut head = [0; FIXED_HEAD_BYTES];
        self.fill(&mut head, until)?;
        let whole = whole_length(&head).ok_or_else(malformed)?;
        let mut message = Zeroizing::new(vec![0; whole]);
        let (begin, rest) = message.split_at_mut(FIXED_HEAD_BYTES);
        begin.copy_from_slice(&head);
        self.fill(rest, until)?;
        Ok(message)
    }

    /// One line of the greeting, byte by byte: what is behind it is not its own.
    fn line(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.fill(&mut byte, until)?;
            line.extend_from_slice(&byte);
            if line.len() > MAX_LINE_BYTES {
                return Err(malformed());
            }
        }
        Ok(line)
    }

    fn fill(&mut self, mut rest: &mut [u8], until: Instant) -> io::Result<()> {
        while !rest.is_empty() {
            self.stream.set_read_timeout(Some(left(until)?))?;
            match self.stream.read(rest) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(late()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], until: Instant) -> io::Result<()> {
        self.stream.set_write_timeout(Some(left(until)?))?;
        let written = self.stream.write_all(bytes);
        written.map_err(|error| match error.kind() == ErrorKind::WouldBlock {
            true => late(),
            false => error,
        })
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the bus did not answer in time")
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the bus said what is no message")
}

/// The socket that an address such as `unix:path=/run/user/1000/bus,guid=…` names; none where it is of
/// another kind.
fn socket(address: &str) -> Option<io::Result<SocketAddr>> {
    let options = address.strip_prefix("unix:")?;
    options.split(',').filter_map(|option| option.split_once('=')).find_map(|(key, value)| {
        let bytes = unescaped(value)?;
        match key {
            "path" => {
                use std::os::unix::ffi::OsStringExt;
                Some(SocketAddr::from_pathname(std::ffi::OsString::from_vec(bytes)))
            }
            "abstract" => Some(SocketAddr::from_abstract_name(bytes)),
            _ => None,
        }
    })
}

/// A value of an address: bytes other than plain ones stand there as `%` and two digits.
fn unescaped(value: &str) -> Option<Vec<u8>> {
    let mut pieces = value.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_of_an_address_is_found() {
        let path = |address: &str| socket(address).unwrap().unwrap().as_pathname().map(Into::into);
        let expected: std::path::PathBuf = "/run/user/1000/bus".into();
        assert_eq!(path("unix:path=/run/user/1000/bus"), Some(expected.clone()));
        assert_eq!(path("unix:guid=12,path=/run/user/%31000/bus"), Some(expected));
        let name = socket("unix:abstract=/tmp/dbus-1,guid=2").unwrap().unwrap();
        assert_eq!(name.as_abstract_name(), Some(&b"/tmp/dbus-1"[..]));
        for none in ["tcp:host=localhost,port=1", "", "unix:path=%zz", "unix:guid=1"] {
            assert!(socket(none).is_none(), "{none}");
        }
    }

    #[test]
    fn nobody_there_is_an_error() {
        assert!(Bus::connect("unix:path=/nonexistent/bus").is_err());
        assert!(Bus::connect("").is_err());
    }
}
