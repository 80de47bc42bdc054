//! The limits of a WebSocket, over a pipe in memory.

use super::socket::{Asked, Hand, Heard, MAX_MESSAGE_BYTES, MAX_UNREAD, Out, Tape, Told, talk};
use crate::http::Counts;
use crate::http::guard::{Minutes, Number};
use crate::http::socket_stage::{PIPE_BYTES, shaken};
use crate::{Ground, Options, Server};
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::get;
use cofferdam_core::fake::FakeDurable;
use cofferdam_core::{Caller, Result, Spec, Workspace};
use cofferdam_session::Sessions;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Tells bytes without an end, or nothing at all, and says when it is dropped.
struct Endless {
    is_loud: bool,
    dropped: Option<oneshot::Sender<()>>,
}

impl Tape for Endless {
    async fn next(&mut self) -> Result<Option<Out>> {
        if !self.is_loud {
            std::future::pending::<()>().await;
        }
        Ok(Some(Out::Bytes(1, 0, vec![b'x'; PIPE_BYTES])))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.dropped.take().map(|dropped| dropped.send(()));
    }
}

/// Says how much came.
struct Counting;

impl Hand for Counting {
    async fn take(&self, heard: Heard) -> Result<Option<Told>> {
        match heard {
            Heard::Input(bytes) => Ok(Some(Told::Taken { bytes: bytes.len() })),
            Heard::Asked(Asked::Close {}) => Ok(None),
            Heard::Asked(_) => Ok(Some(Told::Taken { bytes: 0 })),
        }
    }
}

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A state directory that goes with the value.
struct State(PathBuf);

impl Drop for State {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The caller's end of a WebSocket that stands, and what hears of the end of its tape.
async fn socket(is_loud: bool) -> (State, DuplexStream, oneshot::Receiver<()>) {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("cofferdam-socket-test-{}-{count}", std::process::id());
    let state = State(std::env::temp_dir().join(name));
    let sessions = Sessions::open(&state.0, vec![Arc::new(FakeDurable::new())]).await.unwrap();
    let template = Spec::new(Workspace::Private, Caller::default());
    let options = Options {
        port_domain: None,
        ground: Ground::new(template, Vec::new()).unwrap(),
        keys_only: false,
        hosts: Vec::new(),
        origins: Vec::new(),
        max_connections: 1,
        log: |_| {},
    };
    let server = Server::new(sessions, options);
    let (tells, hears) = oneshot::channel();
    let tape = Arc::new(Mutex::new(Some(Endless { is_loud, dropped: Some(tells) })));
    let answer = move |upgrade: WebSocketUpgrade| async move {
        let counted = Counts::default().take("", 1).unwrap();
        let tape = tape.lock().unwrap().take().unwrap();
        let (caller, number) = (crate::http::auth::Caller { key: None }, Number::default());
        let minutes = Minutes { server, caller, number, place: String::new() };
        talk(upgrade, (counted, minutes), (Told::Taken { bytes: 0 }, tape, Counting))
    };
    let routes: Router = Router::new().route("/", get(answer));
    (state, shaken(routes).await, hears)
}

/// A message of a caller in one frame, masked with nothing.
fn frame(text: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81, 0xff];
    frame.extend_from_slice(&(text.len() as u64).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text);
    frame
}

/// A message that is not answered.
const SIGN: &[u8] = br#"{"type":"close"}"#;

/// Input in a message of so many bytes.
fn input(bytes: usize) -> (usize, Vec<u8>) {
    let (before, after) = (r#"{"type":"input","text":""#, r#""}"#);
    let filled = bytes - before.len() - after.len();
    (filled, format!("{before}{}{after}", "x".repeat(filled)).into_bytes())
}

#[tokio::test]
async fn a_message_over_a_web_socket_has_a_limit() {
    for (bytes, is_taken) in [(MAX_MESSAGE_BYTES, true), (MAX_MESSAGE_BYTES + 1, false)] {
        let (_state, near, _hears) = socket(false).await;
        let (filled, message) = input(bytes);
        let (mut reads, mut writes) = tokio::io::split(near);
        // One that is refused is not read to its end.
        let writing = tokio::spawn(async move {
            writes.write_all(&frame(&message)).await.ok();
            writes
        });
        let taken = format!(r#"{{"type":"taken","bytes":{filled}}}"#);
        let mut told = Vec::new();
        let mut is_told = false;
        while !is_told && reads.read_buf(&mut told).await.is_ok_and(|count| count > 0) {
            is_told = told.windows(taken.len()).any(|part| part == taken.as_bytes());
        }
        assert_eq!(is_told, is_taken, "{bytes}");
        // 1009, as the last of it.
        let says_why = told.windows(4).any(|part| part[0] == 0x88 && part[2..] == [0x03, 0xf1]);
        assert_eq!(says_why, !is_taken, "{bytes}");
        writing.abort();
    }
}

/// One short frame, masked with nothing.
fn short(first: u8, text: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(text);
    frame
}

#[tokio::test(start_paused = true)]
async fn a_web_socket_ends_with_a_close_on_both_sides() {
    let check = async |is_loud: bool, said: Vec<u8>, code: u16| {
        let (_state, mut near, _hears) = socket(is_loud).await;
        near.write_all(&said).await.unwrap();
        let mut told = Vec::new();
        near.read_to_end(&mut told).await.unwrap();
        // The last frame, which is short.
        let last = told.iter().rposition(|byte| *byte == 0x88).map(|at| &told[at..]);
        let last = last.unwrap_or_else(|| panic!("{said:?}: no Close"));
        assert_eq!(last.len(), 2 + usize::from(last[1]), "{said:?}: {last:?}");
        assert_eq!(u16::from_be_bytes([last[2], last[3]]), code, "{said:?}");
    };
    for is_loud in [false, true] {
        check(is_loud, short(0x88, &1000_u16.to_be_bytes()), 1000).await;
        check(is_loud, short(0x88, &4000_u16.to_be_bytes()), 4000).await;
        // Bits and kinds that are kept for later, and a text that is none.
        check(is_loud, short(0xc1, b"x"), 1002).await;
        check(is_loud, short(0x83, b"x"), 1002).await;
        check(is_loud, short(0x81, b"\xff"), 1007).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_web_socket_that_nobody_reads_ends() {
    let begun = Instant::now();
    let (_state, mut near, mut hears) = socket(true).await;
    // Nothing of it is read, but there are signs of life.
    while hears.try_recv().is_err() {
        assert!(begun.elapsed() < 3 * MAX_UNREAD, "it goes on");
        near.write_all(&frame(SIGN)).await.ok();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let took = begun.elapsed();
    assert!(took >= MAX_UNREAD && took < MAX_UNREAD + Duration::from_secs(5), "{took:?}");
    drop(near);
    // The control: one that is read goes on.
    let (_state, mut near, mut hears) = socket(true).await;
    let begun = Instant::now();
    let mut room = vec![0; PIPE_BYTES];
    while begun.elapsed() < 2 * MAX_UNREAD {
        near.read_exact(&mut room).await.unwrap();
        near.write_all(&frame(SIGN)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(hears.try_recv().is_err());
}
