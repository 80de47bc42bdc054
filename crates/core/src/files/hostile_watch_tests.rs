//! A worker that lies about what happens.

use super::hostile_tests::{heard, message, said};
use super::{FileEvent, FileLink, FileWatch, Files, MAX_PATH_BYTES, Request, Watch};
use crate::{ErrorKind, Result};
use cofferdam_wire::files::{Answer, Failure, Greeting, MAX_MESSAGE_BYTES, Why};
use cofferdam_wire::frame::{Kind, encode};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

fn greeted() -> Vec<u8> {
    let mut bytes = Vec::new();
    message(0, &Greeting::Ready { generation: 3 }, &mut bytes);
    bytes
}

fn modified(path: impl Into<Vec<u8>>) -> FileEvent {
    FileEvent::Modified { path: path.into().into() }
}

const READY: FileEvent = FileEvent::Ready { directories: 1 };

/// A watch whose worker says this in its first request.
async fn watch(bytes: &[u8]) -> Result<FileWatch> {
    let files: Files = heard(&[greeted(), bytes.to_vec()].concat());
    files.watch(&Watch::default()).await
}

fn events(events: Vec<FileEvent>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message(1, &Answer::Events(events), &mut bytes);
    bytes
}

#[tokio::test]
async fn an_honest_watch_is_understood() {
    let mut bytes = Vec::new();
    encode(1, Kind::Data, b"", &mut bytes).unwrap();
    bytes.extend(events(vec![READY, modified("a")]));
    bytes.extend(events(Vec::new()));
    bytes.extend(events(vec![modified(vec![0xff])]));
    let failure = Failure { why: Why::Denied, detail: "\u{1b}[2Jno".to_owned(), errno: 13 };
    bytes.extend(events(vec![FileEvent::Unwatched { path: "d".into(), failure }]));
    let mut watch = watch(&bytes).await.unwrap();
    for expected in [READY, modified("a"), modified(vec![0xff])] {
        assert_eq!(watch.next().await.unwrap(), expected);
    }
    let FileEvent::Unwatched { failure, .. } = watch.next().await.unwrap() else { panic!() };
    assert_eq!(failure.detail, "[2Jno");
}

#[tokio::test]
async fn a_watch_that_breaks_a_limit_is_not_heard_any_further() {
    let mut all: Vec<Vec<u8>> = ["../x", "/etc/passwd", "a/../../x", "a\0b"]
        .map(|path| events(vec![READY, modified(path)]))
        .to_vec();
    all.push(events(vec![READY, modified("x".repeat(MAX_PATH_BYTES + 1))]));
    all.push(events(vec![modified("before"), READY]));
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for kind in [Kind::Credit, Kind::End] {
        let mut bytes = Vec::new();
        encode(1, kind, &[0; 4], &mut bytes).unwrap();
        frames.push(bytes);
    }
    let mut bytes = Vec::new();
    encode(1, Kind::Data, b"text", &mut bytes).unwrap();
    encode(1, Kind::Message, b"{}", &mut bytes).unwrap();
    frames.push(bytes);
    let mut bytes = Vec::new();
    encode(1, Kind::Message, &vec![b' '; MAX_MESSAGE_BYTES + 1], &mut bytes).unwrap();
    frames.push(bytes[..64].to_vec());
    let mut bytes = Vec::new();
    message(2, &Answer::Events(vec![READY]), &mut bytes);
    frames.push(bytes);
    let mut bytes = Vec::new();
    message(1, &Answer::Done, &mut bytes);
    frames.push(bytes);
    all.extend(frames);
    all.push(vec![0xff; 9]);
    for bytes in all {
        let error = watch(&bytes).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{error:?}");
    }
    // So it is once it stands.
    for later in [events(vec![READY]), events(vec![modified("../x")])] {
        let mut watch = watch(&[events(vec![READY]), later].concat()).await.unwrap();
        watch.next().await.unwrap();
        assert_eq!(watch.next().await.unwrap_err().kind, ErrorKind::Protocol);
    }
}

#[tokio::test]
async fn a_refused_watch_says_why_and_an_older_worker_is_not_asked() {
    let mut bytes = Vec::new();
    let failure = Failure { why: Why::TooLarge, detail: "too many".to_owned(), errno: 0 };
    message(1, &Answer::Failed(failure), &mut bytes);
    let refused = watch(&bytes).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooLarge);
    assert_eq!(refused.hint.as_deref(), Some("Watch a part of it, or fewer levels."));
    let old = said(b"").watch(&Watch::default()).await.unwrap_err();
    assert_eq!(old.kind, ErrorKind::Unsupported, "{old:?}");
    let request = Request::Watch(Watch::default());
    let call = said(b"");
    let call = call.service().call(&request, super::Body::Nothing).await.unwrap_err();
    assert_eq!(call.kind, ErrorKind::Usage, "{call:?}");
}

#[tokio::test]
async fn whoever_gives_up_waiting_loses_nothing_and_the_end_is_told() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&greeted()).unwrap();
    let link = FileLink::new(ours, None).await.unwrap();
    theirs.write_all(&events(vec![READY])).unwrap();
    let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let watch = super::watch::LinkWatch::begin(link, &Watch::default(), place).await.unwrap();
    let mut watch = FileWatch::new(Box::new(watch));
    watch.next().await.unwrap();
    let bytes = events(vec![modified("a")]);
    let (half, rest) = bytes.split_at(bytes.len() / 2);
    theirs.write_all(half).unwrap();
    let patience = Duration::from_millis(20);
    assert!(tokio::time::timeout(patience, watch.next()).await.is_err());
    theirs.write_all(rest).unwrap();
    assert_eq!(watch.next().await.unwrap(), modified("a"));
    drop(theirs);
    for _ in 0..2 {
        assert_eq!(watch.next().await.unwrap_err().kind, ErrorKind::Unavailable);
    }
}
