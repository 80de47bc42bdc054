//! Many callers of one sandbox, which takes only so many connections.

use super::hostile_tests::message;
use super::link::MAX_WATCHES;
use super::{FileDoor, FileLink, Files, LinkedFiles, MAX_CONNECTIONS, Watch};
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use cofferdam_wire::files::{Answer, FILES_GENERATION, Failure, FileEvent, Greeting, Request, Why};
use cofferdam_wire::frame::{HEADER_BYTES, Header};
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A sandbox that refuses as a real one does.
#[derive(Default)]
struct Narrow {
    open: Arc<AtomicUsize>,
}

#[async_trait]
impl FileDoor for Narrow {
    async fn connect(&self) -> Result<FileLink> {
        let (ours, theirs) = Socket::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let open = Arc::clone(&self.open);
        let is_room = open.fetch_add(1, Ordering::SeqCst) < MAX_CONNECTIONS;
        let theirs = UnixStream::from_std(theirs).unwrap();
        tokio::spawn(async move {
            serve(theirs, is_room).await;
            // A worker that is gone is counted until somebody looks.
            tokio::time::sleep(Duration::from_millis(2)).await;
            open.fetch_sub(1, Ordering::SeqCst);
        });
        FileLink::new(ours, None).await
    }
}

async fn serve(mut stream: UnixStream, is_room: bool) {
    let mut out = Vec::new();
    let detail = "16 connections to its files are open".to_owned();
    let greeting = match is_room {
        true => Greeting::Ready { generation: FILES_GENERATION },
        false => Greeting::Refused(Failure { why: Why::Exhausted, detail, errno: 0 }),
    };
    message(0, &greeting, &mut out);
    stream.write_all(&out).await.unwrap();
    let mut head = [0; HEADER_BYTES];
    while is_room && stream.read_exact(&mut head).await.is_ok() {
        let header = Header::decode(head).unwrap();
        let mut body = vec![0; header.len];
        stream.read_exact(&mut body).await.unwrap();
        let request: Request = serde_json::from_slice(&body).unwrap();
        let answer = match matches!(request, Request::Watch(_)) {
            true => Answer::Events(vec![FileEvent::Ready { directories: 1 }]),
            false => Answer::Made { created: true },
        };
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut out = Vec::new();
        message(header.channel, &answer, &mut out);
        stream.write_all(&out).await.unwrap();
    }
}

/// That many calls at once, all of which are served.
async fn crowd(files: &Files, count: usize) {
    let calls = (0..count).map(|number| {
        let files = files.clone();
        tokio::spawn(async move { files.make_directory(format!("d{number}")).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn however_many_call_at_once_each_has_its_turn() {
    let files = Files::new(Arc::new(LinkedFiles::new(Narrow::default())));
    for _ in 0..3 {
        crowd(&files, 100).await;
    }
}

#[tokio::test]
async fn watches_leave_room_for_those_who_call() {
    let files = Files::new(Arc::new(LinkedFiles::new(Narrow::default())));
    let mut standing = Vec::new();
    for _ in 0..MAX_WATCHES {
        standing.push(files.watch(&Watch::default()).await.unwrap());
    }
    let refused: Result<_, Error> = files.watch(&Watch::default()).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Unavailable);
    crowd(&files, 100).await;
    // The place of one that ends is another's.
    standing.pop();
    standing.push(files.watch(&Watch::default()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn connections_that_others_hold_are_not_waited_for_for_ever() {
    let full = Narrow { open: Arc::new(AtomicUsize::new(MAX_CONNECTIONS)) };
    let files = Files::new(Arc::new(LinkedFiles::new(full)));
    assert_eq!(files.make_directory("a").await.unwrap_err().kind, ErrorKind::Unavailable);
}
