//! A server that is started for a test, and plain requests to it.

use crate::place::{Place, SOON, started, until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Stdio};

/// A server of a place. It ends with the value.
pub(crate) struct Served {
    child: Child,
    pub(crate) at: String,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether the body came to its end.
    pub(crate) is_whole: bool,
}

impl Answered {
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}: {text}", self.status))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The same answer, which must have this status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

impl Served {
    /// Starts a server of this place, which may give its workspace to sandboxes.
    pub(crate) fn new(place: &Place) -> Self {
        let workspace = place.workspace.to_str().unwrap();
        let words = ["serve", "--listen", "127.0.0.1:0", "--allow-workspace", workspace];
        let mut command = place.cofferdam(&words);
        let log = place.base.join("serve.log");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(&log).unwrap());
        let mut child = started(&mut command);
        let at = until(SOON, || {
            let said = fs::read_to_string(&log).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "{said}");
            let at = said.split("listening on ").nth(1)?.split_whitespace().next()?;
            at.contains(':').then(|| at.trim_start_matches("http://").to_owned())
        });
        Self { at: at.expect("the server listens"), child }
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> TcpStream {
        let at = self.at.to_socket_addrs().unwrap().next().unwrap();
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(SOON * 3)).unwrap();
        stream
    }

    /// Sends the head of a request, after which a body may follow.
    pub(crate) fn head(&self, line: &str, headers: &[(&str, &str)]) -> TcpStream {
        let mut stream = self.connect();
        let mut head = format!("{line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.at);
        for (name, value) in headers {
            head = format!("{head}{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        stream
    }

    /// Asks, with a body.
    pub(crate) fn send(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
        let length = body.len().to_string();
        let mut headers = headers.to_vec();
        if !body.is_empty() || !line.starts_with("GET") {
            headers.push(("content-length", &length));
        }
        let mut stream = self.head(line, &headers);
        // A server that has heard enough may hang up before.
        stream.write_all(body).ok();
        answer(stream)
    }

    /// Asks without a body.
    pub(crate) fn get(&self, line: &str) -> Answered {
        self.send(line, &[], b"")
    }

    /// Asks with an object.
    pub(crate) fn say(&self, line: &str, body: &Value) -> Answered {
        self.send(line, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    /// The most memory that it held so far, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads an answer to its end.
pub(crate) fn answer(stream: TcpStream) -> Answered {
    let mut stream = BufReader::new(stream);
    let (status, headers) = answered_head(&mut stream);
    let chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
    let length = headers.get("content-length").map(|value| value.parse::<usize>().unwrap());
    let (mut body, mut is_whole) = (Vec::new(), true);
    if chunked {
        is_whole = false;
        while let Some(chunk) = chunk(&mut stream) {
            is_whole = chunk.is_empty();
            if is_whole {
                break;
            }
            body.extend(chunk);
        }
    } else if status != 304 && status != 204 {
        let read = stream.read_to_end(&mut body);
        is_whole = read.is_ok() && length.is_none_or(|length| body.len() == length);
    }
    Answered { status, headers, body, is_whole }
}

/// The status and the headers of an answer.
pub(crate) fn answered_head(stream: &mut impl BufRead) -> (u16, BTreeMap<String, String>) {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {line:?}"));
    let status = status.parse().unwrap();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    (status, headers)
}

/// The next chunk of a body, which is empty at its end.
fn chunk(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let size = usize::from_str_radix(line.trim_end(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(chunk)
}

/// The lines of a stream that does not end.
pub(crate) fn event_lines(stream: TcpStream) -> impl Iterator<Item = String> {
    let mut stream = BufReader::new(stream);
    let (status, _) = answered_head(&mut stream);
    assert_eq!(status, 200);
    // Chunks may part a line.
    let mut kept = String::new();
    std::iter::from_fn(move || {
        loop {
            if let Some((line, rest)) = kept.split_once('\n') {
                let line = line.to_owned();
                kept = rest.to_owned();
                return Some(line);
            }
            kept.push_str(&String::from_utf8(chunk(&mut stream)?).unwrap());
        }
    })
}
