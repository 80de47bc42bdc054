//! Somebody who goes to a server and back, straight or through a proxy: outside of a sandbox, or in one.

use super::Outcome;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The word under which this program is started as such a visitor.
pub(crate) const VISIT: &str = "bench-gate-visit";

/// What is asked for: little, and 1 GiB.
pub(super) const SMALL: &str = "/small";
pub(super) const LARGE: &str = "/large";
pub(super) const LARGE_BYTES: u64 = 1 << 30;

/// How many ask at once, where requests are counted by the second.
pub(super) const AT_ONCE: usize = 16;

/// Visits that are not measured: the first starts a gate.
const WARM_UP: usize = 5;
/// How long a proxy may take until it listens.
const BEGINNING: Duration = Duration::from_secs(10);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How much is read at once.
const PIECE_BYTES: usize = 256 << 10;

/// What a visitor found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Visits {
    /// How long the large answer took, in nanoseconds.
    pub(super) large_ns: u64,
    /// How long it took from nothing to the first byte of a small answer, each time.
    pub(super) first_ns: Vec<u64>,
    /// How many small answers came in a second.
    pub(super) per_s: f64,
}

/// How the server is reached.
struct Way {
    host: String,
    at: SocketAddr,
    /// What is said to a proxy beforehand.
    greeting: Option<String>,
}

/// `bench-gate-visit HOST:PORT none|env|PROXY ROUNDS`, answered by what was found.
pub(crate) fn visit(words: &[String]) -> ExitCode {
    let rows = measure(words).and_then(|found| serde_json::to_string(&found).map_err(in_words));
    super::library::answered(VISIT, rows)
}

fn measure(words: &[String]) -> Outcome<Visits> {
    let [host, proxy, rounds] = words else { return Err("three words are needed".to_owned()) };
    let rounds: usize = rounds.parse().map_err(|_| format!("{rounds} is no number"))?;
    let way = Way::new(host, proxy)?;
    way.awaited()?;
    for _ in 0..WARM_UP {
        way.small()?;
    }
    let mut found = Visits::default();
    for _ in 0..rounds {
        found.first_ns.push(way.small()?);
    }
    found.large_ns = way.large()?;
    found.per_s = way.rate(rounds.max(AT_ONCE))?;
    Ok(found)
}

impl Way {
    fn new(host: &str, proxy: &str) -> Outcome<Self> {
        let (at, greeting) = match proxy {
            "none" => (host.to_owned(), None),
            "env" => {
                let named = std::env::var("HTTP_PROXY").map_err(in_words)?;
                let named = named.trim_start_matches("http://").trim_end_matches('/');
                let (who, at) = named.rsplit_once('@').unwrap_or(("", named));
                let who = STANDARD.encode(decoded(who));
                let more = format!("Proxy-Authorization: Basic {who}\r\n");
                (at.to_owned(), Some(connect(host, &more)))
            }
            proxy => (proxy.to_owned(), Some(connect(host, ""))),
        };
        let mut all = at.to_socket_addrs().map_err(|error| format!("find {at}: {error}"))?;
        // Whoever listens does so on IPv4.
        let at = all.find(SocketAddr::is_ipv4).ok_or(format!("{at} has no address"))?;
        Ok(Self { host: host.to_owned(), at, greeting })
    }

    /// Waits until somebody listens: another sandbox starts commands before its proxy is there.
    fn awaited(&self) -> Outcome<()> {
        let until = Instant::now() + BEGINNING;
        loop {
            match TcpStream::connect(self.at) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(in_words(error)),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Connects and asks; returns when the first bytes of the answer are there, with how much of its body is not.
    ///
    /// Nobody waits for the end of a connection: a proxy may keep one that is done.
    fn ask(&self, path: &str, piece: &mut [u8]) -> Outcome<(TcpStream, u64)> {
        let mut stream = TcpStream::connect(self.at).map_err(in_words)?;
        stream.set_nodelay(true).map_err(in_words)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(in_words)?;
        if let Some(greeting) = &self.greeting {
            stream.write_all(greeting.as_bytes()).map_err(in_words)?;
            answered(&mut stream)?;
        }
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        stream.write_all(request.as_bytes()).map_err(in_words)?;
        let read = stream.read(piece).map_err(in_words)?;
        let said = piece.get(..read).unwrap_or_default();
        let missing = missing(said)
            .ok_or_else(|| format!("{path} is answered {:?}", String::from_utf8_lossy(said)))?;
        Ok((stream, missing))
    }

    /// How long it took to the first byte. The rest is read before the end.
    fn small(&self) -> Outcome<u64> {
        let mut piece = [0; 4096];
        let begin = Instant::now();
        let (mut stream, missing) = self.ask(SMALL, &mut piece)?;
        let took = nanoseconds(begin);
        read_out(&mut stream, &mut piece, missing)?;
        Ok(took)
    }

    fn large(&self) -> Outcome<u64> {
        let mut piece = vec![0; PIECE_BYTES];
        let begin = Instant::now();
        let (mut stream, missing) = self.ask(LARGE, &mut piece)?;
        read_out(&mut stream, &mut piece, missing)?;
        Ok(nanoseconds(begin))
    }

    fn rate(&self, rounds: usize) -> Outcome<f64> {
        let each = rounds.div_ceil(AT_ONCE);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let ask = || (0..each).try_for_each(|_| self.small().map(drop));
            let asking: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().try_for_each(|thread| {
                thread.join().map_err(|_| "somebody who asks panicked".to_owned())?
            })
        })?;
        let sum = super::measure::as_f64((each * AT_ONCE) as u64);
        Ok(sum / begin.elapsed().as_secs_f64().max(f64::EPSILON))
    }
}

fn connect(host: &str, more: &str) -> String {
    format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n")
}

/// Reads the answer of a proxy to its end, which nothing follows yet.
fn answered(stream: &mut TcpStream) -> Outcome<()> {
    let mut said = Vec::new();
    let mut piece = [0; 1024];
    while !said.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece).map_err(in_words)? {
            0 => break,
            read => said.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
    match said.starts_with(b"HTTP/1.1 200") {
        true => Ok(()),
        false => Err(format!("a proxy says {:?}", String::from_utf8_lossy(&said))),
    }
}

/// How much of a body is not there yet, by the head that is: `None` if it is no head of a success.
fn missing(said: &[u8]) -> Option<u64> {
    let end = said.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(said.get(..end)?).ok()?;
    let length = head.strip_prefix("HTTP/1.1 200")?.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
    })?;
    length.checked_sub((said.len() - end) as u64)
}

/// Reads the rest of a body.
fn read_out(stream: &mut TcpStream, piece: &mut [u8], mut missing: u64) -> Outcome<()> {
    while missing > 0 {
        match stream.read(piece).map_err(in_words)? as u64 {
            0 => return Err(format!("the answer ends {missing} bytes too early")),
            read => missing = missing.saturating_sub(read),
        }
    }
    Ok(())
}

/// What stands in an address with percent signs.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_of_a_body_is_told_by_its_head() {
        let said = |head: &str, body: &str| missing(format!("{head}\r\n\r\n{body}").as_bytes());
        assert_eq!(said("HTTP/1.1 200 OK\r\ncontent-Length: 5", "ab"), Some(3));
        assert_eq!(said("HTTP/1.1 200 OK\r\nContent-Length: 5", "abcdef"), None);
        assert_eq!(said("HTTP/1.1 200 OK", "ab"), None);
        assert_eq!(said("HTTP/1.1 502 No\r\nContent-Length: 5", ""), None);
    }

    #[test]
    fn percent_signs_are_read() {
        assert_eq!(decoded("a%3Db%"), b"a=b%");
        assert_eq!(decoded("%41%zz"), b"A%zz");
    }
}
