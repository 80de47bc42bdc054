//! What a guest that was taken over may try.

use super::*;
use crate::{ErrorKind, Guest};
use cofferdam_wire::frame::{HEADER_BYTES, MAX_FRAME_BYTES};
use cofferdam_wire::message::GuestOpens;
use proptest::prelude::*;

const JUNK: &[u8] = b"{\"Started\":";

fn egress(host: &str) -> Vec<u8> {
    serde_json::to_vec(&GuestOpens::Egress { host: host.into(), port: 1 }).unwrap()
}

/// A running command's guest sends these frames; the line must close, and say the guest is at fault.
async fn check(what: &str, frames: impl FnOnce(Started) -> Vec<(u32, Kind, Vec<u8>)>) {
    let (guest, mut played) = meet_plain().await;
    let (mut process, started) = spawn(&guest, &mut played, &command("a")).await;
    for (channel, kind, body) in frames(started) {
        played.frame(channel, kind, &body).await;
    }
    assert_eq!(closed(&guest).await.kind, ErrorKind::Protocol, "{what}");
    assert!(!matches!(last(&mut process).await, Some(ProcessEvent::Ended { .. })), "{what}");
    assert_eq!(guest.spawn(&command("b")).await.unwrap_err().kind, ErrorKind::Protocol, "{what}");
    // The guest is told nothing more.
    while soon(played.next()).await.is_some() {}
}

#[tokio::test]
async fn frames_where_none_belong_close_the_line() {
    use Kind::{Credit, Data, End, Message};
    let json = |message: &FromProcess| serde_json::to_vec(message).unwrap();
    let again = json(&FromProcess::Started { pid: 3 });
    let many = vec![json(&FromProcess::Stopped { signal: 20 }); 1];
    check("data, channel 0", |_| vec![(0, Data, vec![1])]).await;
    check("message, channel 0", |_| vec![(0, Message, b"{}".to_vec())]).await;
    check("data, unknown", |_| vec![(99, Data, vec![1])]).await;
    check("end, unknown", |_| vec![(99, End, vec![])]).await;
    check("credit, unknown", |_| vec![(99, Credit, vec![1; 4])]).await;
    check("message, odd unknown", |_| vec![(99, Message, egress("a"))]).await;
    check("data opens", |_| vec![(2, Data, vec![1])]).await;
    check("junk opens", |_| vec![(2, Message, JUNK.to_vec())]).await;
    check("spawn opens", |_| vec![(2, Message, b"{\"Spawn\":{}}".to_vec())]).await;
    check("ping opens", |_| vec![(2, Message, b"\"Ping\"".to_vec())]).await;
    check("opens downward", |_| vec![(4, Message, egress("a")), (2, Message, egress("a"))]).await;
    check("long name", |_| vec![(2, Message, egress(&"a".repeat(300)))]).await;
    check("before the answer", |_| vec![(2, Message, egress("a")), (2, Data, vec![1])]).await;
    check("data, control", |s| vec![(s.control, Data, vec![1])]).await;
    check("message, stdout", |s| vec![(s.stdout, Message, b"{}".to_vec())]).await;
    check("short credit", |s| vec![(s.stdout, Credit, vec![1; 3])]).await;
    check("junk, control", |s| vec![(s.control, Message, JUNK.to_vec())]).await;
    check("started twice", |s| vec![(s.control, Message, again)]).await;
    let emptied = json(&FromProcess::Emptied);
    check("left something", |s| vec![(s.control, Message, emptied)]).await;
    check("long message", |s| vec![(s.control, Message, vec![b' '; 70_000])]).await;
    check("control ends", |s| vec![(s.control, End, vec![])]).await;
    check("after the end", |s| vec![(s.stdout, End, vec![]), (s.stdout, Data, vec![1])]).await;
    // A few are read and granted again before the reader's own queue is full.
    check("too much", |s| vec![(s.stdout, Data, vec![1; MAX_FRAME_BYTES]); 9]).await;
    check("a flood of messages", |s| {
        let one = (s.control, Message, many.first().cloned().unwrap_or_default());
        let mut flood = vec![one; 100];
        flood.push((s.control, Data, vec![1]));
        flood
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_frame_close_the_line() {
    for bytes in [&[0xff; HEADER_BYTES][..], &[0, 0, 0, 0, 1, 0, 0, 0, 9][..]] {
        let (guest, mut played) = meet_plain().await;
        played.raw(bytes).await;
        assert_eq!(closed(&guest).await.kind, ErrorKind::Protocol);
    }
}

#[tokio::test]
async fn a_greeting_that_is_none_is_refused() {
    for (channel, kind, body) in [
        (1, Kind::Message, b"{}".to_vec()),
        (0, Kind::Data, b"{}".to_vec()),
        (0, Kind::Message, b"{}".to_vec()),
        (0, Kind::Message, vec![b'['; 100_000]),
    ] {
        let (host, inside) = tokio::io::duplex(1 << 20);
        let mut played = Played::new(inside);
        played.frame(channel, kind, &body).await;
        assert_eq!(opened(host).await.err().unwrap().kind, ErrorKind::Protocol);
    }
    let (host, inside) = tokio::io::duplex(64);
    drop(inside);
    assert_eq!(opened(host).await.err().unwrap().kind, ErrorKind::SetupFailed);
}

#[tokio::test]
async fn a_guest_that_asks_for_ways_out_without_end_is_left() {
    let (guest, mut played) = meet_plain().await;
    // It never reads the answers, which fill the stream and then the queue.
    for channel in 1..10_000 {
        played.frame(channel * 2, Kind::Message, &egress("a")).await;
    }
    assert_eq!(closed(&guest).await.kind, ErrorKind::Protocol);
}

#[tokio::test]
async fn single_bytes_are_gathered() {
    let (guest, mut played) = meet_plain().await;
    let (process, started) = spawn(&guest, &mut played, &command("a")).await;
    let mut bytes = Vec::new();
    for _ in 0..50_000 {
        frame::encode(started.stdout, Kind::Data, b"x", &mut bytes).unwrap();
        frame::encode(started.stdout, Kind::Data, b"", &mut bytes).unwrap();
    }
    played.raw(&bytes).await;
    played.end(started, How::Exited(0)).await;
    assert_eq!(soon(crate::collect(process, 1 << 20)).await.unwrap().stdout.len(), 50_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_break_the_host(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (guest, mut played) = meet_plain().await;
            let (mut process, _) = spawn(&guest, &mut played, &command("a")).await;
            played.raw(&bytes).await;
            drop(played);
            last(&mut process).await;
            closed(&guest).await;
        });
    }

    #[test]
    fn no_frames_break_the_host(
        frames in proptest::collection::vec(
            (0..9_u32, 0..4_u8, proptest::collection::vec(any::<u8>(), 0..6)), 0..20)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (guest, mut played) = meet_plain().await;
            let (mut process, _) = spawn(&guest, &mut played, &command("a")).await;
            for (channel, kind, body) in frames {
                let kind = match kind {
                    0 => Kind::Message,
                    1 => Kind::Data,
                    2 => Kind::Credit,
                    _ => Kind::End,
                };
                played.frame(channel, kind, &body).await;
            }
            drop(played);
            last(&mut process).await;
            closed(&guest).await;
        });
    }
}
