//! What must hold for any bytes that come to a gate. Shared by the tests and the fuzz targets; no part of
//! the program.

use crate::denied::Denied;
use crate::dns::Dns;
use crate::first::{head_end, is_http};
use crate::gate::{Gate, Parts};
use crate::hello::{self, Hello};
use crate::limits::Limits;
use crate::log::Log;
use crate::request::{self, To, Wanted};
use crate::resolve::Resolve;
use crate::teller::Teller;
use crate::unread::Unread;
use crate::waiting::Waiting;
use crate::{resolver, socks};
use cofferdam_core::policy::{Asked, HostName};
use cofferdam_core::{GateOrder, NetworkPolicy};
use simple_dns::{Packet, RCODE};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

/// Bytes as the head of a request to a proxy: refused, or passed on as something that reads as the same
/// to every reader, and that says no more than was said.
pub fn head(bytes: &[u8]) {
    let limits = Limits::default();
    let read = request::read(bytes, To::Proxy, &limits);
    let Ok(wanted) = read else { return };
    assert_eq!(head_end(bytes), Ok(Some(bytes.len())), "a head ends where it ends");
    assert_eq!(is_http(bytes), Some(true), "what is read as a request looks like one");
    let Wanted::Answer(request) = wanted else { return };
    let text = String::from_utf8(request.head.clone()).unwrap_or_default();
    assert_eq!(count(&text, "host:"), 1, "{text:?}");
    assert!(count(&text, "content-length:") <= 1, "{text:?}");
    for left_out in ["proxy-authorization:", "transfer-encoding:", "upgrade:", "te:"] {
        assert_eq!(count(&text, left_out), 0, "{text:?}");
    }
    let again = request::read(&request.head, To::Server(&request.asked), &limits);
    assert_eq!(again, Ok(Wanted::Answer(request)), "{text:?}");
}

/// How many lines begin so.
fn count(text: &str, name: &str) -> usize {
    text.split("\r\n").filter(|line| line.to_ascii_lowercase().starts_with(name)).count()
}

/// Bytes as the first of a connection: what was once said of them is said however much comes behind,
/// and however little has come is never taken for a whole.
pub fn first(bytes: &[u8]) {
    let (mut said, mut request) = (None, None);
    for end in 0..=bytes.len() {
        let part = bytes.get(..end).unwrap_or_default();
        let now = hello::read(part);
        if let Hello::Whole(Some(name)) = &now {
            assert!(is_plain(name), "{name}");
        }
        match said {
            None if now == Hello::Partial => {}
            None => said = Some(now),
            Some(ref before) => assert_eq!(&now, before, "after {end} bytes"),
        }
        let now = is_http(part);
        match request {
            None => request = now,
            Some(_) => assert_eq!(now, request, "after {end} bytes"),
        }
    }
    unread(bytes);
}

/// Bytes that passed as no request: judged alike however they are cut into pieces.
fn unread(bytes: &[u8]) {
    let Ok(asked) = "ok.test:80".parse() else { return };
    let mut one = Unread::of(&asked);
    let by_byte = bytes.chunks(1).try_for_each(|byte| one.up(byte));
    assert_eq!(Unread::of(&asked).up(bytes), by_byte);
}

fn is_plain(name: &HostName) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !name.as_str().is_empty() && name.as_str().chars().all(good)
}

/// Bytes as what somebody says to a proxy of SOCKS, behind the first of them: refused, or a host by the
/// one grammar, however they are cut into pieces.
pub fn socks(bytes: &[u8], piece: usize) {
    let whole = socks_asked(bytes, bytes.len().max(1));
    assert_eq!(socks_asked(bytes, piece.max(1)), whole);
    let Some(asked) = whole else { return };
    assert!(asked.port > 0);
    assert_eq!(asked.to_string().parse::<Asked>().ok(), Some(asked));
}

fn socks_asked(bytes: &[u8], piece: usize) -> Option<Asked> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    runtime.block_on(async {
        let (ours, mut theirs) = tokio::io::duplex(piece);
        let (mut from, mut to) = tokio::io::split(ours);
        let say = async {
            let _ = to.write_all(bytes).await;
            let _ = to.shutdown().await;
        };
        // What is answered is taken, so that nobody waits.
        let mut ignored = tokio::io::sink();
        let hear = tokio::io::copy(&mut from, &mut ignored);
        tokio::select! {
            asked = socks::greeted(&mut theirs) => asked.ok(),
            _ = async { tokio::join!(say, hear) } => None,
        }
    })
}

/// Bytes as a question for a name to a gate that allows one name: answered as what it is, with at most one
/// record, and for no other name.
pub fn question(bytes: &[u8]) {
    let (Ok(allowed), Ok(log)) = ("allowed.test:443".parse(), Log::new(None, 0)) else { return };
    let limits = Limits::default();
    let policy = NetworkPolicy { version: 1, allow: vec![allowed], ..NetworkPolicy::default() };
    let order = GateOrder {
        sandbox: "s.1".to_owned(),
        policy,
        resolvers: Vec::new(),
        log_bytes: 0,
        secrets: Vec::new(),
        last_waiting: 0,
        descriptors: Vec::new(),
    };
    let teller = Teller::new().0;
    let gate = Gate::new(Parts {
        waiting: Waiting::new(&order, &limits, teller.clone()),
        denied: Denied::new(teller),
        secrets: None,
        limits,
        log,
        resolve: Resolve::new(Vec::new()),
        original: Arc::new(|_| Err(std::io::ErrorKind::Unsupported.into())),
        has_v6: true,
        policy: order.policy,
    });
    let Some(answer) = Dns::new(Arc::new(gate)).answer(bytes) else { return };
    let read = Packet::parse(&answer);
    assert!(read.is_ok(), "{answer:02x?}");
    let Ok(packet) = read else { return };
    assert_eq!(answer.get(..2), bytes.get(..2), "it is an answer to this question");
    assert!(packet.answers.len() <= 1 && packet.additional_records.is_empty());
    if let Some(record) = packet.answers.first() {
        assert_eq!(packet.rcode(), RCODE::NoError);
        let name = record.name.to_string();
        assert!(name.trim_end_matches('.').eq_ignore_ascii_case("allowed.test"), "{name}");
    }
}

/// Bytes as what a resolver answers to the question for this name, which is a hostile server's: refused,
/// or addresses.
pub fn answer(bytes: &[u8]) {
    let Ok(name) = "name.test".parse::<HostName>() else { return };
    resolver::any_answer(&name, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_request_that_is_read_alike_by_all_or_none(
            bytes in any::<Vec<u8>>(),
            near in "(GET|POST|CONNECT) (http://)?[a-z.:0-9@/]{1,20} HTTP/1\\.[01]\r\n(Host|TE|content-length|Connection|X): [ -~]{0,20}\r\n([A-Za-z-]{1,12}:[ -~]{0,9}\r\n){0,3}\r\n",
        ) {
            head(&bytes);
            head(near.as_bytes());
        }

        #[test]
        fn any_first_bytes_mean_one_thing(bytes in any::<Vec<u8>>(), near in "[A-Z]{1,6} [ -~\r\n]{0,40}") {
            first(&bytes);
            first(near.as_bytes());
        }

        #[test]
        fn a_hello_with_any_byte_changed_means_one_thing(place in any::<usize>(), byte in any::<u8>()) {
            let mut hello = hello::tests::hello(&hello::tests::name_extension(b"a.example.com"), 64);
            first(&hello);
            let place = place % hello.len();
            hello[place] = byte;
            first(&hello);
        }

        #[test]
        fn any_words_to_a_proxy_of_socks_are_a_host_or_refused(
            bytes in any::<Vec<u8>>(), kind in any::<u8>(), rest in any::<Vec<u8>>(), piece in 1_usize..40,
        ) {
            socks(&bytes, piece);
            socks(&[&[1, 0, 5, 1, 0, kind % 5][..], &rest].concat(), piece);
        }

        #[test]
        fn any_question_is_answered_for_itself_alone(
            bytes in any::<Vec<u8>>(), id in any::<[u8; 2]>(), rest in any::<Vec<u8>>(),
        ) {
            question(&bytes);
            let head = [id[0], id[1], 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            let name = b"\x07allowed\x04test\0\0\x01\0\x01";
            question(&[&head[..], &rest].concat());
            question(&[&head[..], name, &rest].concat());
        }

        #[test]
        fn any_answer_is_addresses_or_refused(rest in any::<Vec<u8>>(), counts in any::<[u8; 2]>()) {
            let head = [0, 0, 0x81, 0x80, 0, 1, 0, counts[0], 0, 0, 0, counts[1]];
            let name = b"\x04name\x04test\0\0\x01\0\x01";
            answer(&rest);
            answer(&[&head[..], name, &rest].concat());
        }
    }

    #[test]
    fn the_control_is_answered() {
        let question_for = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x07allowed\x04test\0\0\x01\0\x01";
        question(question_for);
        let asked = socks_asked(b"\x01\0\x05\x01\0\x03\x06a.test\x01\xbb", 3).unwrap();
        assert_eq!(asked.to_string(), "a.test:443");
    }
}
