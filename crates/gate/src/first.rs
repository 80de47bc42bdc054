//! The first bytes from inside: whether they carry a name, and whether it is the one that was asked for.

use crate::hello::{self, Hello};
use crate::limits::Limits;
use crate::request::{self, Bad, Request, To, Wanted};
use cofferdam_core::policy::{Asked, Host};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What the first bytes are, once they have been found to name nobody else.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// They are passed on as they are.
    Pass,
    /// One request of HTTP, and how many bytes its head has.
    Request(Request, usize),
    /// Nothing came.
    Nothing,
}

/// How much is read at once.
const PIECE_BYTES: usize = 4096;

/// Reads first bytes into `read` until it is known what they are. The first may take as long as they
/// want: a server may speak first. Then the rest has to come in time.
pub(crate) async fn look(
    from: &mut (impl AsyncRead + Unpin),
    read: &mut Vec<u8>,
    asked: &Asked,
    limits: &Limits,
) -> Result<First, Bad> {
    if read.is_empty() && more(from, read).await? == 0 {
        return Ok(First::Nothing);
    }
    let rest = async {
        // Each piece is a look at all of them.
        for _ in 0..limits.pieces {
            if let Some(first) = known(read, asked, limits)? {
                return Ok(first);
            }
            if read.len() >= limits.first_bytes {
                return Err("its first message is too long to be looked at".into());
            }
            if more(from, read).await? == 0 {
                // There are servers that answer a line without an end.
                let ended = [read, b"\n".as_slice()].concat();
                return match hello::read(read) == Hello::None && is_http(&ended) != Some(true) {
                    true => Ok(First::Pass),
                    false => Err("its first message is cut off".into()),
                };
            }
        }
        Err("its first message came in too many pieces".into())
    };
    match tokio::time::timeout(limits.head_time, rest).await {
        Ok(first) => first,
        Err(_) => Err("its first message took too long".into()),
    }
}

async fn more(from: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> Result<usize, Bad> {
    let mut piece = [0; PIECE_BYTES];
    let length = from.read(&mut piece).await.map_err(|_| Bad::from("it was given up"))?;
    read.extend_from_slice(piece.get(..length).unwrap_or_default());
    Ok(length)
}

/// What bytes are, or `None` where more are needed to tell.
fn known(bytes: &[u8], asked: &Asked, limits: &Limits) -> Result<Option<First>, Bad> {
    match hello::read(bytes) {
        Hello::Partial => Ok(None),
        Hello::Malformed(why) => Err(why.into()),
        Hello::Whole(Some(name)) if asked.host != Host::Name(name.clone()) => Err(Bad {
            reason: format!("the name in TLS is {name}, not {}", asked.host),
            is_elsewhere: true,
        }),
        Hello::Whole(_) => Ok(Some(First::Pass)),
        Hello::None => match is_http(bytes) {
            None => Ok(None),
            Some(false) => Ok(Some(First::Pass)),
            Some(true) => known_request(bytes, asked, limits),
        },
    }
}

fn known_request(bytes: &[u8], asked: &Asked, limits: &Limits) -> Result<Option<First>, Bad> {
    let Some(end) = head_end(bytes)? else { return Ok(None) };
    let head = bytes.get(..end).unwrap_or_default();
    match request::read(head, To::Server(asked), limits)? {
        Wanted::Answer(request) => Ok(Some(First::Request(request, end))),
        Wanted::Tunnel(_) => Err("a server is no proxy".into()),
    }
}

/// Where the head of a request ends, if it has come so far. A line that ends otherwise than with CR and
/// LF is known to be malformed before the end.
pub(crate) fn head_end(bytes: &[u8]) -> Result<Option<usize>, Bad> {
    let mut before = 0;
    for (place, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' && before != b'\r' {
            return Err("a line does not end with CR and LF".into());
        }
        let end = place.saturating_add(1);
        if bytes.get(..end).is_some_and(|head| head.ends_with(b"\r\n\r\n")) {
            return Ok(Some(end));
        }
        before = *byte;
    }
    Ok(None)
}

/// Whether some server takes this byte for space, in whatever encoding it reads.
pub(crate) fn is_space(byte: &u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | 0x85 | 0xa0)
}

/// What stands between such bytes.
pub(crate) fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_space(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_space(last)
    {
        text = rest;
    }
    text
}

/// Whether bytes are a request of HTTP, as the most lenient of servers would see it; `None` while that
/// cannot be told. What is none is watched until its server has answered: see `unread`.
pub(crate) fn is_http(bytes: &[u8]) -> Option<bool> {
    let begin = bytes.iter().position(|byte| !is_space(byte))?;
    let text = bytes.get(begin..).unwrap_or_default();
    let line_end = text.iter().position(|byte| *byte == b'\n');
    let line = text.get(..line_end.unwrap_or(text.len())).unwrap_or_default();
    if !line.first().is_some_and(u8::is_ascii_graphic) {
        return Some(false);
    }
    // Few servers take these in a method.
    let is_binary = |byte: &u8| matches!(byte, 0..=0x08 | 0x0e..=0x1b | 0x7f);
    let method = line.iter().position(is_space).unwrap_or(line.len());
    let (method, rest) = line.split_at(method);
    if method.iter().any(is_binary) || is_git(method, rest) {
        return Some(false);
    }
    // A long method is one, and some servers take anything at all in what is asked for.
    line_end
        .map(|_| line.to_ascii_uppercase().windows(5).any(|part| part == b"HTTP/") || is_old(rest))
}

/// Whether this follows a method in a request without a version, as of the first HTTP: there are
/// servers that read on, and find a name.
fn is_old(rest: &[u8]) -> bool {
    let target = trimmed(rest);
    let begins =
        |with: &[u8]| target.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    target.starts_with(b"/") || begins(b"http://") || begins(b"https://")
}

/// Whether this is how git begins to speak to a server of its own: the length of the line in four
/// digits, and after the path a byte that no server of HTTP takes which knows such a method.
fn is_git(method: &[u8], rest: &[u8]) -> bool {
    let Some((length, service)) = method.split_at_checked(4) else { return false };
    let services: [&[u8]; 3] = [b"git-upload-pack", b"git-receive-pack", b"git-upload-archive"];
    length.iter().all(u8::is_ascii_hexdigit) && services.contains(&service) && rest.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_server_may_answer_is_a_request() {
        let long = format!("{} / HTTP/1.1\r\n", "A".repeat(40));
        for line in [
            b"GET / HTTP/1.1\r\n".as_slice(),
            long.as_bytes(),
            b"GET /echo\x01 HTTP/1.1\r\n",
            b"GET /echo\x7f http/1.1\n",
            b"GET /\0 HTTP/1.1\r\n",
            b"0032git-upload-pack / HTTP/1.1\r\n",
            b"GET /a\r\n",
            b"get http://b.test\n",
            b"\r\n\r\nGET / HTTP/1.0\r\n",
            b"\x1cGET /p HTTP/1.1\r\n",
            b"\xa0GET\x1d/p\x85HTTP/1.1\r\n",
            b"GET\x1f/p\r\n",
        ] {
            assert_eq!(is_http(line), Some(true), "{}", String::from_utf8_lossy(line));
            let begun = line.split_last().unwrap().1;
            assert_eq!(is_http(begun), None, "{}", String::from_utf8_lossy(line));
        }
        for line in [
            b"SSH-2.0-OpenSSH_9.2\r\n".as_slice(),
            b"EHLO a.test\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"\0\0\0\x08\x04\xd2\x16\x2f",
            b"AMQP\0\0\x09\x01",
            b"0032git-upload-pack /project\0host=a.test\0",
        ] {
            assert_eq!(is_http(line), Some(false), "{}", String::from_utf8_lossy(line));
        }
    }
}
