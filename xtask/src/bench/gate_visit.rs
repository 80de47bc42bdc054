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

    /// Connects and asks; returns when the first byte of the answer is there, with it and more.
    fn ask(&self, path: &str, piece: &mut [u8]) -> Outcome<(TcpStream, usize)> {
        let mut stream = TcpStream::connect(self.at).map_err(in_words)?;
        stream.set_nodelay(true).map_err(in_words)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(in_words)?;
        if let Some(greeting) = &self.greeting {
            stream.write_all(greeting.as_bytes()).map_err(in_words)?;
            answered(&mut stream)?;
        }
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host);
        stream.write_all(request.as_bytes()).map_err(in_words)?;
        match stream.read(piece).map_err(in_words)? {
            read if piece.get(..read).is_some_and(|said| said.starts_with(b"HTTP/1.1 200")) => {
                Ok((stream, read))
            }
            read => {
                let said = String::from_utf8_lossy(piece.get(..read).unwrap_or_default());
                Err(format!("{path} is answered {said:?}"))
            }
        }
    }

    /// How long it took to the first byte. The rest is read before the end.
    fn small(&self) -> Outcome<u64> {
        let mut piece = [0; 4096];
        let begin = Instant::now();
        let (mut stream, _) = self.ask(SMALL, &mut piece)?;
        let took = nanoseconds(begin);
        while stream.read(&mut piece).map_err(in_words)? > 0 {}
        Ok(took)
    }

    fn large(&self) -> Outcome<u64> {
        let mut piece = vec![0; PIECE_BYTES];
        let begin = Instant::now();
        let (mut stream, first) = self.ask(LARGE, &mut piece)?;
        let mut sum = first as u64;
        while let count @ 1.. = stream.read(&mut piece).map_err(in_words)? {
            sum += count as u64;
        }
        match sum {
            // With its head.
            LARGE_BYTES.. => Ok(nanoseconds(begin)),
            other => Err(format!("{other} bytes came of {LARGE_BYTES}")),
        }
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
    fn percent_signs_are_read() {
        assert_eq!(decoded("a%3Db%"), b"a=b%");
        assert_eq!(decoded("%41%zz"), b"A%zz");
    }
}
