//! What passes as no request of HTTP, until its server has answered: there are servers that take almost
//! anything for one, and would find a name in it.

use crate::first::{is_space, trimmed};
use crate::request::{self, Bad};
use cofferdam_core::policy::Asked;

/// What a server of HTTP answers begins with.
const ANSWER: &[u8] = b"HTTP/";

/// How much of a line is kept that does not end. Its last words are in it.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// One connection.
pub(crate) struct Unread {
    asked: Asked,
    stage: Stage,
    /// What came of the present line.
    line: Vec<u8>,
    /// Whether words stand apart in it.
    has_words: bool,
    /// How much of the beginning of an answer has come.
    answered: usize,
}

/// How far it has come, if it is a request after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first line, which may hold anything but its end: CR and LF.
    First,
    /// Its headers.
    Headers,
    /// It is none, or has been read whole.
    Over,
}

impl Unread {
    pub(crate) fn of(asked: &Asked) -> Self {
        let (line, stage) = (Vec::new(), Stage::First);
        Self { asked: asked.clone(), stage, line, has_words: false, answered: 0 }
    }

    /// Looks at bytes from inside, before they go on.
    pub(crate) fn up(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        for byte in bytes {
            if self.stage == Stage::Over {
                return Ok(());
            }
            self.line.push(*byte);
            if *byte == b'\n' {
                self.line_ended()?;
            } else if self.line.len() > MAX_LINE_BYTES {
                self.has_words |= has_words(&self.line);
                self.line.drain(..MAX_LINE_BYTES / 2);
            }
        }
        Ok(())
    }

    /// Looks at bytes from outside, before they go on. Whoever answers otherwise than HTTP speaks another
    /// protocol, and is left alone from then on.
    pub(crate) fn down(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        for byte in bytes {
            if ANSWER.get(self.answered) != Some(byte) {
                self.stage = Stage::Over;
                // Nothing is looked for any more.
                self.answered = ANSWER.len();
                return Ok(());
            }
            self.answered += 1;
            if self.answered == ANSWER.len() {
                return Err("the server took for a request what is none that is passed on".into());
            }
        }
        Ok(())
    }

    fn line_ended(&mut self) -> Result<(), Bad> {
        // Some servers read on: to them, a line feed alone is a letter of the method. ORDER: before anything looks
        // through what may be long, once for each of them.
        if self.stage == Stage::First && !self.line.ends_with(b"\r\n") {
            return Ok(());
        }
        let text = trimmed(&self.line);
        let is_blank = text.is_empty();
        match self.stage {
            // Before a request, blank lines are none.
            Stage::First if is_blank => {}
            Stage::First => {
                let last = text.rsplit(is_space).next().unwrap_or_default();
                let has_words = self.has_words || last.len() < text.len();
                if has_words && last.to_ascii_uppercase().starts_with(ANSWER) {
                    return Err("a request of HTTP has bytes before it or in its method".into());
                }
                self.stage = if has_words { Stage::Headers } else { Stage::Over };
            }
            Stage::Headers if is_blank => self.stage = Stage::Over,
            Stage::Headers => self.header(text)?,
            Stage::Over => {}
        }
        self.line.clear();
        Ok(())
    }

    fn header(&self, text: &[u8]) -> Result<(), Bad> {
        let mut parts = text.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else { return Ok(()) };
        if !trimmed(name).eq_ignore_ascii_case(b"host") {
            return Ok(());
        }
        let value = String::from_utf8_lossy(trimmed(value));
        request::check_named("Host header", &value, &self.asked)
    }
}

fn has_words(line: &[u8]) -> bool {
    trimmed(line).iter().any(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread() -> Unread {
        Unread::of(&"ok.test:80".parse().unwrap())
    }

    /// What became of these bytes, in pieces of every length.
    fn up(bytes: &[u8]) -> bool {
        let passes = |length: usize| {
            let mut unread = unread();
            bytes.chunks(length).all(|piece| unread.up(piece).is_ok())
        };
        let whole = passes(bytes.len());
        assert!((1..8).all(|length| passes(length) == whole), "{bytes:?}");
        whole
    }

    #[test]
    fn a_request_behind_or_around_other_bytes_is_seen() {
        for bad in [
            b"\0GET /p HTTP/1.1\r\n".as_slice(),
            b"\x01\nGET /p HTTP/1.1\r\n",
            b"A\n\n /p HTTP/1.1\r\n",
            b"\r\n\0GET http://evil.test/ http/1.0 \r\n",
            b"\0GET /p x\r\nA: b\r\nHost: evil.test\r\n",
            b"\0GET /p x\r\nhOST : ok.test:81\n",
            b"GET foo:/p x\r\nHost:evil.test\r\n",
        ] {
            assert!(!up(bad), "{}", String::from_utf8_lossy(bad));
        }
        let long =
            [b"\0A ".as_slice(), &vec![b'a'; 3 * MAX_LINE_BYTES], b"\r\nHost: evil.test\r\n"];
        assert!(unread().up(&long.concat()).is_err());
    }

    #[test]
    fn other_protocols_pass() {
        for good in [
            b"EHLO a.test\r\nMAIL FROM:<a@a.test>\r\n".as_slice(),
            b"*2\r\n$3\r\nGET\r\n$20\r\nHost: evil.test HTTP/1.1\r\n",
            b"CONNECT\naccept-version:1.2\nhost:queue\n\n\0",
            b"<13> \"GET / HTTP/1.1\" 200\nHost: evil.test\n",
            b"USER a b\r\nHost: ok.test\r\n",
            b"USER a b\r\n\r\nHost: evil.test\r\n",
            b"\x0f\x08SERVER_PROTOCOLHTTP/1.1\r\n",
        ] {
            assert!(up(good), "{}", String::from_utf8_lossy(good));
        }
    }

    #[test]
    fn whoever_answers_is_known_by_it() {
        let mut http = unread();
        http.down(b"HT").unwrap();
        assert!(http.down(b"TP/1.1 200 OK\r\n").is_err());
        let mut other = unread();
        other.down(b"HTTQ").unwrap();
        other.down(b"HTTP/1.1").unwrap();
        other.up(b"\0GET /p HTTP/1.1\r\nHost: evil.test\r\n").unwrap();
    }
}
