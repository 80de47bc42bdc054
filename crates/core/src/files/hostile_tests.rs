//! A worker that lies, and what its caller hears.

use super::{Body, FileDoor, FileLink, LinkedFiles, List, Read, ReadMany, Request};
use crate::{Error, ErrorKind, Files, Result};
use async_trait::async_trait;
use cofferdam_wire::files::{
    Answer, Entry, EntryKind, Failure, Greeting, HasRead, MAX_MESSAGE_BYTES, MAX_PIECE_BYTES,
    OneRead, Why, Written,
};
use cofferdam_wire::frame::{Kind, encode};
use serde::Serialize;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

/// Has said all that it will ever say before anybody asks.
struct Liar(Mutex<Option<UnixStream>>);

#[async_trait]
impl FileDoor for Liar {
    async fn connect(&self) -> Result<FileLink> {
        let socket = self.0.lock().unwrap().take();
        FileLink::new(socket.ok_or_else(|| Error::new(ErrorKind::Io, "asked again"))?, None).await
    }
}

pub(super) fn message<M: Serialize>(channel: u32, message: &M, out: &mut Vec<u8>) {
    encode(channel, Kind::Message, &serde_json::to_vec(message).unwrap(), out).unwrap();
}

/// Files behind a worker that greets and then says this.
pub(super) fn said(bytes: &[u8]) -> Files {
    let mut greeted = Vec::new();
    message(0, &Greeting::Ready { generation: 1 }, &mut greeted);
    greeted.extend_from_slice(bytes);
    heard(&greeted)
}

pub(super) fn heard(bytes: &[u8]) -> Files {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(bytes).unwrap();
    // It takes all that it is told, and never hangs up first.
    std::thread::spawn(move || std::io::copy(&mut theirs, &mut std::io::sink()));
    Files::new(Arc::new(LinkedFiles::new(Liar(Mutex::new(Some(ours))))))
}

async fn read(files: &Files) -> Result<Vec<u8>> {
    files.read("a", 10).await
}

fn has_read() -> Answer {
    Answer::Read(HasRead::default())
}

#[tokio::test]
async fn an_honest_worker_is_understood() {
    let mut bytes = Vec::new();
    encode(1, Kind::Data, b"", &mut bytes).unwrap();
    encode(1, Kind::Data, b"text", &mut bytes).unwrap();
    message(1, &has_read(), &mut bytes);
    assert_eq!(read(&said(&bytes)).await.unwrap(), b"text");
}

#[tokio::test]
async fn a_worker_that_breaks_a_limit_is_not_heard_any_further() {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut add = |make: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        make(&mut bytes);
        frames.push(bytes);
    };
    // More bytes than were asked for, a frame of another request, and kinds that no worker sends.
    add(&|out| encode(1, Kind::Data, b"eleven here", out).unwrap());
    add(&|out| encode(2, Kind::Data, b"text", out).unwrap());
    add(&|out| encode(1, Kind::Credit, &[0; 4], out).unwrap());
    add(&|out| encode(1, Kind::End, b"", out).unwrap());
    // Too long, which is refused by the header alone.
    add(&|out| encode(1, Kind::Data, &vec![0; MAX_PIECE_BYTES + 1], out).unwrap());
    add(&|out| encode(1, Kind::Message, &vec![b' '; MAX_MESSAGE_BYTES + 1], out).unwrap());
    add(&|out| out.extend([0xff; 9]));
    // What cannot be understood, or answers nothing that was asked.
    add(&|out| encode(1, Kind::Message, b"{}", out).unwrap());
    add(&|out| message(1, &Answer::Done, out));
    add(&|out| message(1, &Answer::Entries(vec![entry("a")]), out));
    let hash = HasRead { sha256: Some("\u{1b}[2J".to_owned()), ..HasRead::default() };
    add(&|out| message(1, &Answer::Read(hash.clone()), out));
    for bytes in frames {
        let first: Vec<u8> = bytes.iter().copied().take(60).collect();
        // Of a long frame the header is enough.
        let enough = if bytes.len() > MAX_MESSAGE_BYTES { 64 } else { bytes.len() };
        let error = read(&said(&bytes[..enough])).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{error:?}: {first:?}");
    }
}

fn entry(path: &str) -> Entry {
    Entry {
        path: path.into(),
        kind: EntryKind::File,
        size: 0,
        mode: 0,
        modified_ms: 0,
        links: 1,
        target: None,
    }
}

#[tokio::test]
async fn a_list_has_no_more_entries_than_were_asked_for() {
    let order = List { path: "".into(), depth: 1, after: None, limit: 2 };
    for (count, fits) in [(2, true), (3, false)] {
        let mut bytes = Vec::new();
        for _ in 0..count {
            message(1, &Answer::Entries(vec![entry("a")]), &mut bytes);
        }
        message(1, &Answer::Listed { next: None }, &mut bytes);
        let listed = said(&bytes).list(&order).await;
        assert_eq!(listed.is_ok(), fits, "{listed:?}");
    }
}

#[tokio::test]
async fn a_worker_that_is_refused_or_gone_is_told_apart_from_one_that_lies() {
    let why = Failure { why: Why::Exhausted, detail: "too many open files".to_owned(), errno: 24 };
    let mut bytes = Vec::new();
    message(0, &Greeting::Refused(why), &mut bytes);
    assert_eq!(read(&heard(&bytes)).await.unwrap_err().kind, ErrorKind::Unavailable);
    let mut bytes = Vec::new();
    message(0, &Greeting::Ready { generation: 0 }, &mut bytes);
    assert_eq!(read(&heard(&bytes)).await.unwrap_err().kind, ErrorKind::Protocol);
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    let gone = Files::new(Arc::new(LinkedFiles::new(Liar(Mutex::new(Some(ours))))));
    assert_eq!(read(&gone).await.unwrap_err().kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_worker_of_an_older_generation_is_not_asked_what_it_cannot_do() {
    let order = ReadMany { paths: vec!["a".into()], max_bytes: 9, total_bytes: 9 };
    let old = said(b"").read_many(&order).await.unwrap_err();
    assert_eq!(old.kind, ErrorKind::Unsupported, "{old:?}");
    // The control: one that can answers.
    let mut bytes = Vec::new();
    message(0, &Greeting::Ready { generation: 2 }, &mut bytes);
    encode(1, Kind::Data, b"text", &mut bytes).unwrap();
    let read = HasRead { bytes: 4, ..HasRead::default() };
    message(1, &Answer::ReadMany(vec![OneRead::Read(read)]), &mut bytes);
    let all = heard(&bytes).read_many(&order).await.unwrap();
    assert_eq!(all[0].as_ref().unwrap().bytes, b"text");
}

#[tokio::test]
async fn an_answer_that_comes_before_the_end_of_an_upload_ends_it() {
    let mut bytes = Vec::new();
    let refused = Failure { why: Why::Denied, detail: "no".to_owned(), errno: 0 };
    message(1, &Answer::Failed(refused), &mut bytes);
    let files = said(&bytes);
    // A source without an end: only the early answer can end this.
    let mut source = tokio::io::repeat(7);
    let request = Request::Write(super::Write { path: "a".into(), ..super::Write::default() });
    let error = files.service().call(&request, Body::Source(&mut source)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
}

#[tokio::test]
async fn an_unasked_body_and_a_false_hash_are_refused() {
    let mut bytes = Vec::new();
    encode(1, Kind::Data, b"text", &mut bytes).unwrap();
    let stat = said(&bytes).stat("a").await.unwrap_err();
    assert_eq!(stat.kind, ErrorKind::Protocol);
    let mut bytes = Vec::new();
    message(1, &Answer::Written(Written::default()), &mut bytes);
    let error = said(&bytes).write("a", b"x").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol);
    let order = Read { path: "x".repeat(MAX_MESSAGE_BYTES).as_str().into(), ..Read::default() };
    let long = said(b"").read_to(&order, &mut Vec::new()).await.unwrap_err();
    assert_eq!(long.kind, ErrorKind::Usage);
}
