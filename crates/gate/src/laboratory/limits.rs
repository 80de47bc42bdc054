//! Each limit of a gate, reached on purpose.

use super::servers::{Server, Zone};
use super::{Lab, policy, rest, soon, status};
use crate::Limits;
use cofferdam_core::{ConnectionDecision, NetworkPolicy};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(50);

async fn scene(limits: Limits) -> (Lab, Server) {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"]), ("many.test", &["127.0.0.3", "127.0.0.1"])]);
    let server = Server::web("127.0.0.1").await;
    let rules = ["ok.test", "many.test", "127.0.0.0/8"].map(str::to_owned);
    (Lab::within(policy(&rules), &zone.await, limits).await, server)
}

fn get(host: &str, port: u16, more: &str) -> Vec<u8> {
    format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").into_bytes()
}

#[tokio::test]
async fn a_head_is_so_long_and_has_so_many_headers() {
    let limits = Limits { head_bytes: 300, headers: 4, ..Limits::default() };
    let (lab, server) = scene(limits).await;
    let ask = |more: String| {
        let (lab, request) = (&lab, get("ok.test", server.port, &more));
        async move { status(&lab.ask_proxy(&request).await) }
    };
    let long = |bytes| format!("A: {}\r\n", "a".repeat(bytes));
    assert_eq!(ask(long(200)).await, 200, "control");
    assert_eq!(ask(long(300)).await, 431);
    assert_eq!(ask("A: a\r\n".repeat(3)).await, 200, "control");
    assert_eq!(ask("A: a\r\n".repeat(4)).await, 400);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_head_that_never_ends_is_answered_before_it_does() {
    let limits = Limits { head_time: SHORT, farewell_time: SHORT, ..Limits::default() };
    let (lab, server) = scene(limits).await;
    let mut slow = lab.to_proxy().await;
    slow.write_all(b"GET http://ok.test/ HTTP/1.1\r\n").await.unwrap();
    assert_eq!(status(&rest(&mut slow).await), 408);
    let mut silent = lab.to_proxy().await;
    assert!(rest(&mut silent).await.is_empty());
    let mut socks = lab.to_proxy().await;
    socks.write_all(&[5]).await.unwrap();
    assert!(rest(&mut socks).await.is_empty());
    let mut hello = lab.to_name("ok.test", server.port).await;
    hello.write_all(&[22, 3, 1]).await.unwrap();
    assert!(rest(&mut hello).await.is_empty());
    let denied = lab.report(|report| report.host.is_some()).await;
    assert_eq!(denied.reason.as_deref(), Some("its first message took too long"));
    assert_eq!(server.text(), "");
}

#[tokio::test]
async fn a_first_message_is_so_long_and_comes_in_so_many_pieces() {
    let limits = Limits { first_bytes: 100, pieces: 8, ..Limits::default() };
    let (lab, server) = scene(limits).await;
    let mut long = lab.to_name("ok.test", server.port).await;
    long.write_all(format!("GET /{} HTTP/1.1\r\n", "a".repeat(200)).as_bytes()).await.unwrap();
    assert_eq!(status(&rest(&mut long).await), 400);
    let mut pieces = lab.to_name("ok.test", server.port).await;
    for byte in b"GET / HTTP/1.1\r\n" {
        if pieces.write_all(&[*byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    assert!(!rest(&mut pieces).await.starts_with(b"HTTP/1.1 200"));
    assert_eq!(server.text(), "");
}

#[tokio::test]
async fn more_connections_than_there_may_be_wait_for_those_before() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let (lab, server) = scene(limits).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(lab.tunnel(&format!("ok.test:{}", server.port)).await);
    }
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut stream = lab.to_proxy().await;
        stream.write_all(&get("ok.test", server.port, "")).await.unwrap();
        waiting.push(stream);
    }
    lab.settled().await;
    assert_eq!(server.connections(), 2, "the others wait");
    drop(held);
    for mut stream in waiting {
        assert_eq!(status(&rest(&mut stream).await), 200);
    }
}

#[tokio::test]
async fn a_connection_is_silent_and_open_only_so_long() {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"])]).await;
    let server = Server::echo("127.0.0.1", "welcome").await;
    let rules = ["ok.test".to_owned(), "127.0.0.1".to_owned()];
    for (limits, reason) in [
        (Limits { idle_time: SHORT, ..Limits::default() }, "nothing moved for too long"),
        (Limits { total_time: SHORT, ..Limits::default() }, "it lasted too long"),
    ] {
        let lab = Lab::within(policy(&rules), &zone, limits).await;
        let mut stream = lab.to_name("ok.test", server.port).await;
        assert_eq!(rest(&mut stream).await, b"welcome");
        let report = lab.report(|report| report.host.is_some()).await;
        assert_eq!(report.decision, ConnectionDecision::Allowed);
        assert_eq!(report.reason.as_deref(), Some(reason));
    }
}

#[tokio::test]
async fn a_name_is_resolved_and_an_address_dialed_only_so_long() {
    let zone = Zone::new(|_, _| super::servers::Told::Nothing).await;
    let limits = Limits { resolve_time: SHORT, ..Limits::default() };
    let lab = Lab::within(policy(&["*".to_owned()]), &zone, limits).await;
    assert_eq!(status(&lab.ask_proxy(&get("ok.test", 80, "")).await), 504);
    let report = lab.report(|report| report.decision == ConnectionDecision::Failed).await;
    assert_eq!(report.reason.as_deref(), Some("no resolver said in time where ok.test is"));
    let (lab, _server) = scene(Limits { dial_time: SHORT, ..Limits::default() }).await;
    let full = tokio::net::TcpSocket::new_v4().unwrap();
    full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = full.listen(0).unwrap();
    let address = full.local_addr().unwrap();
    // Nobody accepts: at some point the kernel answers no further one.
    let mut held = Vec::new();
    while let Ok(stream) = tokio::time::timeout(SHORT, TcpStream::connect(address)).await {
        held.push(stream.unwrap());
    }
    assert_eq!(status(&lab.ask_proxy(&get("ok.test", address.port(), "")).await), 504);
}

#[tokio::test]
async fn only_so_many_addresses_and_aliases_of_a_name_are_looked_at() {
    let (lab, server) = scene(Limits { addresses: 1, ..Limits::default() }).await;
    assert_eq!(status(&lab.ask_proxy(&get("many.test", server.port, "")).await), 502);
    let (lab, server) = scene(Limits::default()).await;
    assert_eq!(status(&lab.ask_proxy(&get("many.test", server.port, "")).await), 200, "control");
    let zone = Zone::new(|name, _| match name {
        "ok.test" => super::servers::Told::Chain(vec!["b.test"], vec![]),
        _ => super::servers::at(&["127.0.0.1"]),
    })
    .await;
    let rules = ["ok.test".to_owned(), "127.0.0.1".to_owned()];
    for (aliases, wanted) in [(0, 502), (1, 200)] {
        let limits = Limits { aliases, ..Limits::default() };
        let lab = Lab::within(policy(&rules), &zone, limits).await;
        assert_eq!(status(&lab.ask_proxy(&get("ok.test", server.port, "")).await), wanted);
    }
}

#[tokio::test]
async fn only_so_many_names_have_an_address() {
    let zone = Zone::of(&[]).await;
    let limits = Limits { names: 2, ..Limits::default() };
    let lab = Lab::within(policy(&["*".to_owned()]), &zone, limits).await;
    let first = lab.lookup("a.test").await;
    assert_ne!(lab.lookup("b.test").await, first);
    assert_eq!(lab.lookup("c.test").await, first, "the oldest loses its own");
    assert_ne!(lab.lookup("a.test").await, first);
}

#[tokio::test]
async fn a_log_keeps_the_newer_half_and_whole_lines() {
    let zone = Zone::of(&[]).await;
    let lab = Lab::logging(policy(&[]), &zone, Limits::default(), 4000).await;
    for number in 0..60 {
        let said = lab.tunnel(&format!("a{number}.test:443")).await.1;
        assert_eq!(status(said.as_bytes()), 403);
        let bytes = |one| serde_json::to_vec(one).unwrap().len() + 1;
        let kept: usize = lab.reports().iter().map(bytes).sum();
        assert!(kept <= 4000, "{kept}");
    }
    let all: Vec<u64> = lab.reports().iter().map(|report| report.id).collect();
    // The gate's own line says that some are gone.
    let ids: Vec<u64> = all.iter().copied().filter(|id| *id != 0).collect();
    assert!(ids.len() < all.len());
    assert_eq!(ids.last(), Some(&60));
    assert!(ids.len() > 3 && ids.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ids:?}");
}

#[tokio::test]
async fn a_refused_connection_is_not_held_open_by_who_does_not_read() {
    let limits = Limits { farewell_time: SHORT, connections: 1, ..Limits::default() };
    let (lab, server) = scene(limits).await;
    let mut deaf = lab.to_proxy().await;
    deaf.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let answer = soon(lab.ask_proxy(&get("ok.test", server.port, ""))).await;
    assert_eq!(status(&answer), 200, "the next one is served");
    drop(deaf);
}

#[tokio::test]
async fn an_order_beyond_a_limit_starts_no_gate() {
    let zone = Zone::of(&[]).await;
    let policy = NetworkPolicy { host_ports: vec![0], ..policy(&[]) };
    let mut lab = Lab::new(policy, &zone).await;
    assert!(soon(&mut lab.gate).await.unwrap().is_err());
    assert!(TcpStream::connect(lab.proxy).await.is_err());
}
