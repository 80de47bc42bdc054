//! Requests over one connection that stays, as plain as can be: what asks must cost little.

use super::Outcome;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long an answer may be waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much a slow reader takes at once, and how long it rests.
const SIP_BYTES: usize = 4096;
const REST: Duration = Duration::from_millis(100);

/// A connection.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    at: String,
}

impl Connection {
    pub(super) fn new(at: &str) -> Outcome<Self> {
        let stream = TcpStream::connect(at).map_err(|error| format!("connect: {error}"))?;
        stream.set_nodelay(true).map_err(in_words)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(in_words)?;
        Ok(Self { stream: BufReader::new(stream), at: at.to_owned() })
    }

    /// Asks, and reads what a good answer holds.
    pub(super) fn ask(&mut self, line: &str, body: &[u8]) -> Outcome<Vec<u8>> {
        self.send(line, body)?;
        let (status, length) = self.head()?;
        let body = match length {
            Some(length) => {
                let mut body = vec![0; length];
                self.stream.read_exact(&mut body).map_err(in_words)?;
                body
            }
            None => self.chunks()?,
        };
        match status {
            200..300 => Ok(body),
            other => Err(format!("{line} is answered {other}: {}", String::from_utf8_lossy(&body))),
        }
    }

    /// Starts a command in the sandbox and gives its id.
    pub(super) fn start(&mut self, order: &[u8]) -> Outcome<String> {
        let told = self.ask("POST /v1/sandboxes/bench/execs", order)?;
        let told: serde_json::Value = serde_json::from_slice(&told).map_err(in_words)?;
        let id = told.get("id").and_then(serde_json::Value::as_str);
        id.map(str::to_owned).ok_or("a command has no id".to_owned())
    }

    fn send(&mut self, line: &str, body: &[u8]) -> Outcome<()> {
        let (at, length) = (&self.at, body.len());
        let mut request = format!(
            "{line} HTTP/1.1\r\nhost: {at}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request).map_err(in_words)
    }

    /// The status of an answer, and how long it is where it says so.
    fn head(&mut self) -> Outcome<(u16, Option<usize>)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or(format!("{first:?} is no answer"))?;
        let mut length = if status == 204 { Some(0) } else { None };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok((status, length)) };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok();
            }
        }
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(in_words)?;
        Ok(line.trim_end().to_owned())
    }

    fn chunks(&mut self) -> Outcome<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size =
                usize::from_str_radix(&line, 16).map_err(|_| format!("{line:?}: no chunk"))?;
            let before = body.len();
            body.resize(before + size, 0);
            let room = body.get_mut(before..).unwrap_or_default();
            self.stream.read_exact(room).map_err(in_words)?;
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
}

/// Connections that follow a stream and take little of it.
pub(super) struct Slow {
    is_over: Arc<AtomicBool>,
    sipping: JoinHandle<usize>,
}

impl Slow {
    /// Lets so many follow what the line asks for.
    pub(super) fn begin(
        many: usize,
        connect: impl Fn() -> Outcome<Connection>,
        line: &str,
    ) -> Outcome<Self> {
        let mut streams = Vec::new();
        for _ in 0..many {
            let mut connection = connect()?;
            connection.send(line, b"")?;
            let (status, _) = connection.head()?;
            if status != 200 {
                return Err(format!("{line} is answered {status}"));
            }
            let stream = connection.stream.into_inner();
            stream.set_nonblocking(true).map_err(in_words)?;
            streams.push(stream);
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let sipping = std::thread::spawn(move || {
            let mut sip = [0; SIP_BYTES];
            while !ends.load(Ordering::Relaxed) {
                streams.retain_mut(|stream| match stream.read(&mut sip) {
                    Ok(count) => count > 0,
                    Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
                });
                std::thread::sleep(REST);
            }
            streams.len()
        });
        Ok(Self { is_over, sipping })
    }

    /// Ends them, and says how many were there still.
    pub(super) fn end(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.sipping.join().unwrap_or(0)
    }
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
