//! Policies that change, connections that wait to be allowed, and the end of a gate.

use super::servers::{Server, Zone};
use super::{Lab, policy, rest, soon, status};
use crate::Limits;
use cofferdam_core::{ConnectionDecision, NetworkPolicy};
use std::io::Write;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn scene(ask_ms: u64, limits: Limits) -> (Lab, Server) {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"])]).await;
    let server = Server::echo("127.0.0.1", "welcome").await;
    let nothing = NetworkPolicy { ask_ms, ..policy(&[]) };
    (Lab::within(nothing, &zone, limits).await, server)
}

fn all() -> NetworkPolicy {
    policy(&["ok.test".to_owned(), "127.0.0.1".to_owned()])
}

#[tokio::test]
async fn a_policy_holds_from_the_next_connection_on() {
    let (mut lab, server) = scene(0, Limits::default()).await;
    let target = format!("ok.test:{}", server.port);
    assert_eq!(status(lab.tunnel(&target).await.1.as_bytes()), 403);
    lab.set_policy(all());
    lab.settled().await;
    let (mut open, said) = lab.tunnel(&target).await;
    assert_eq!(status(said.as_bytes()), 200);
    lab.set_policy(policy(&[]));
    lab.settled().await;
    assert_eq!(status(lab.tunnel(&target).await.1.as_bytes()), 403);
    open.write_all(b"\x01still here").await.unwrap();
    open.shutdown().await.unwrap();
    assert_eq!(rest(&mut open).await, b"welcome\x01still here", "one that is open goes on");
    let report = lab.report(|report| report.decision == ConnectionDecision::Allowed).await;
    assert_eq!(report.policy_version, 2);
}

#[tokio::test]
async fn a_connection_waits_until_it_is_allowed() {
    let (lab, server) = scene(60_000, Limits::default()).await;
    let target = format!("ok.test:{}", server.port);
    let waiting = lab.tunnel(&target);
    let mut waiting = std::pin::pin!(waiting);
    let asked = tokio::select! {
        asked = lab.report(|report| report.decision == ConnectionDecision::Asked) => asked,
        _ = &mut waiting => panic!("it did not wait"),
    };
    assert_eq!(asked.remedy, Some(format!("--egress {target}")));
    let unlike = policy(&["other.test".to_owned()]);
    let send = |policy: NetworkPolicy, version| {
        let policy = NetworkPolicy { version, ask_ms: 60_000, ..policy };
        let line = crate::order::line(&cofferdam_core::ToGate::Policy(policy)).unwrap();
        lab.control.as_ref().unwrap().write_all(&line).unwrap();
    };
    send(unlike, 2);
    send(all(), 3);
    let (mut stream, said) = waiting.await;
    assert_eq!(status(said.as_bytes()), 200);
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, b"welcome");
    let id = asked.id;
    let allowed = |report: &cofferdam_core::ConnectionReport| {
        report.id == id && report.decision == ConnectionDecision::Allowed
    };
    assert_eq!(lab.report(allowed).await.policy_version, 3);
}

#[tokio::test]
async fn a_connection_that_nobody_allows_is_denied_in_the_end() {
    let (lab, server) = scene(30, Limits::default()).await;
    let said = lab.tunnel(&format!("ok.test:{}", server.port)).await.1;
    assert_eq!(status(said.as_bytes()), 403);
    let decisions: Vec<_> = lab.reports().iter().map(|report| report.decision).collect();
    assert_eq!(decisions, [ConnectionDecision::Asked, ConnectionDecision::Denied]);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn what_is_denied_on_purpose_waits_for_nothing() {
    let (mut lab, server) = scene(0, Limits::default()).await;
    let deny = vec!["ok.test".parse().unwrap()];
    lab.set_policy(NetworkPolicy { deny, ask_ms: 3_600_000, ..all() });
    // The name that tells of the new policy would wait itself.
    let request = format!("CONNECT ok.test:{} HTTP/1.1\r\n\r\n", server.port);
    soon(async {
        loop {
            let said = lab.ask_proxy(request.as_bytes()).await;
            assert_eq!(status(&said), 403);
            if String::from_utf8_lossy(&said).contains("the rule ok.test denies") {
                return;
            }
        }
    })
    .await;
    assert!(lab.reports().iter().all(|report| report.decision == ConnectionDecision::Denied));
}

#[tokio::test]
async fn only_so_many_connections_wait() {
    let limits = Limits { waiting: 2, ..Limits::default() };
    let (lab, server) = scene(60_000, limits).await;
    let request = format!("CONNECT ok.test:{} HTTP/1.1\r\n\r\n", server.port);
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut stream = lab.to_proxy().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    soon(async {
        while lab.reports().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(
        status(&lab.ask_proxy(request.as_bytes()).await),
        403,
        "the third is denied at once"
    );
}

#[tokio::test]
async fn without_its_control_socket_a_gate_ends_and_breaks_off_what_is_open() {
    let (mut lab, server) = scene(0, Limits::default()).await;
    lab.set_policy(all());
    lab.settled().await;
    let (mut open, said) = lab.tunnel(&format!("ok.test:{}", server.port)).await;
    assert_eq!(status(said.as_bytes()), 200);
    let mut welcome = [0; 7];
    soon(open.read_exact(&mut welcome)).await.unwrap();
    lab.control = None;
    soon(&mut lab.gate).await.unwrap().unwrap();
    assert!(rest(&mut open).await.is_empty());
    assert!(TcpStream::connect(lab.proxy).await.is_err(), "nobody listens any more");
    let report = lab.reports().pop().unwrap();
    assert_eq!((report.decision, report.bytes_down), (ConnectionDecision::Allowed, 7));
}

#[tokio::test]
async fn a_line_that_cannot_be_understood_ends_a_gate_and_opens_nothing() {
    for line in [
        "nonsense\n",
        "{}\n",
        r#"{"policy":{"version":2,"allow":["*.com"],"deny":[],"host_ports":[],"ask_ms":0}}"#,
        r#"{"policy":{"version":2,"allow":["*"],"deny":[],"host_ports":[],"ask_ms":0,"x":1}}"#,
        r#"{"policy":{"version":2,"allow":["*"],"deny":[],"host_ports":[0],"ask_ms":0}}"#,
    ] {
        let (mut lab, _server) = scene(0, Limits::default()).await;
        lab.settled().await;
        let line = format!("{}\n", line.trim_end());
        lab.control.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        assert!(soon(&mut lab.gate).await.unwrap().is_err(), "{line}");
        assert!(TcpStream::connect(lab.proxy).await.is_err(), "{line}");
    }
}
