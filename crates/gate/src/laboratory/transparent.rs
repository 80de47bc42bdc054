//! Connections that know of no proxy.

use super::servers::{Server, Zone};
use super::{Lab, policy, rest, status};
use cofferdam_core::{ConnectionDecision, ConnectionHow};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn scene() -> (Lab, Server, Server) {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"])]).await;
    let (open, shut) = (Server::web("127.0.0.1").await, Server::web("127.0.0.2").await);
    let rules = [format!("ok.test:{}", open.port), format!("127.0.0.1:{}", open.port)];
    (Lab::new(policy(&rules), &zone).await, open, shut)
}

#[tokio::test]
async fn a_name_is_reached_by_the_address_that_stands_for_it() {
    let (lab, open, _shut) = scene().await;
    let mut stream = lab.to_name("ok.test", open.port).await;
    let request = format!("GET /a HTTP/1.1\r\nHost: ok.test:{}\r\n\r\n", open.port);
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(&mut stream).await.ends_with(b"hello"));
    let report = lab.report(|report| report.decision == ConnectionDecision::Allowed).await;
    assert_eq!(report.how, ConnectionHow::Transparent);
    assert_eq!(report.host.as_deref(), Some("ok.test"));
    assert_eq!(report.address.as_deref(), Some("127.0.0.1"));
    assert_eq!((report.port, report.bytes_down), (open.port, 43));
    assert_eq!(report.rule, Some(format!("ok.test:{}", open.port)));
}

#[tokio::test]
async fn an_address_that_was_not_asked_for_by_name_is_denied() {
    let (lab, open, shut) = scene().await;
    let targets = [
        format!("1.1.1.1:{}", open.port),
        "169.254.169.254:80".to_owned(),
        "10.0.0.1:443".to_owned(),
        format!("198.18.1.77:{}", open.port),
        format!("198.18.0.1:{}", open.port),
        format!("[fd63:6f66:6665::5]:{}", open.port),
        format!("[::ffff:10.0.0.1]:{}", open.port),
        format!("[64:ff9b::7f00:2]:{}", shut.port),
    ];
    for target in &targets {
        let mut stream = lab.to(target).await;
        let _ = stream.write_all(&[22, 3, 1, 0, 5]).await;
        assert!(rest(&mut stream).await.is_empty(), "{target}");
    }
    assert_eq!((open.connections(), shut.connections()), (0, 0));
    let reports = lab.reports();
    assert_eq!(reports.len(), targets.len());
    assert!(reports.iter().all(|report| report.decision == ConnectionDecision::Denied));
    assert_eq!(reports[0].address.as_deref(), Some("1.1.1.1"));
    assert_eq!(reports[0].remedy, Some(format!("--egress 1.1.1.1:{}", open.port)));
}

#[tokio::test]
async fn who_speaks_http_is_told_why() {
    let (lab, open, shut) = scene().await;
    let mut stream = lab.to_name("ok.test", shut.port).await;
    let request = format!("GET / HTTP/1.1\r\nHost: ok.test:{}\r\n\r\n", shut.port);
    stream.write_all(request.as_bytes()).await.unwrap();
    let said = String::from_utf8(rest(&mut stream).await).unwrap();
    assert_eq!(status(said.as_bytes()), 403);
    assert!(said.contains(&format!("allow it with: --egress ok.test:{}\n", shut.port)), "{said}");
    let mut stream = lab.to_name("ok.test", shut.port).await;
    stream.write_all(b"SSH-2.0-client\r\n").await.unwrap();
    let mut byte = [0];
    let broken_off = super::soon(stream.read(&mut byte)).await;
    assert_eq!(
        broken_off.unwrap_err().kind(),
        std::io::ErrorKind::ConnectionReset,
        "others are not"
    );
    assert_eq!((open.connections(), shut.connections()), (0, 0));
    let denied = lab.denied().await;
    assert_eq!(denied.host.as_deref(), Some("ok.test"));
    assert_eq!(denied.address, None, "what stands for a name inside is nobody's address");
}

#[tokio::test]
async fn who_was_not_led_here_is_refused() {
    let (lab, open, _shut) = scene().await;
    let mut itself = TcpStream::connect(lab.transparent).await.unwrap();
    assert!(rest(&mut itself).await.is_empty());
    let mut loopback = lab.to(&format!("127.0.0.1:{}", open.port)).await;
    assert!(rest(&mut loopback).await.is_empty(), "though the host's own is listed");
    assert_eq!(open.connections(), 0);
}

#[tokio::test]
async fn an_end_in_one_direction_leaves_the_other_open() {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"])]).await;
    let server = Server::echo("127.0.0.1", "").await;
    let lab = Lab::new(policy(&["ok.test".to_owned(), "127.0.0.1".to_owned()]), &zone).await;
    let mut stream = lab.to_name("ok.test", server.port).await;
    let sent: Vec<u8> = (0_u32..300_000).map(|number| number.to_le_bytes()[1]).collect();
    let (mut read, mut write) = stream.split();
    let send = async {
        write.write_all(b"\0").await.unwrap();
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut heard = Vec::new();
    let ((), read) = super::soon(async { tokio::join!(send, read.read_to_end(&mut heard)) }).await;
    read.unwrap();
    assert_eq!(heard.len(), sent.len() + 1);
    assert!(heard[1..] == sent);
    let report = lab.report(|report| report.decision == ConnectionDecision::Allowed).await;
    assert_eq!((report.bytes_up, report.bytes_down), (300_001, 300_001));
}

#[tokio::test]
async fn a_side_that_breaks_off_is_not_taken_for_one_that_ended() {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"])]).await;
    let outside = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = outside.local_addr().unwrap().port();
    let lab = Lab::new(policy(&["ok.test".to_owned(), "127.0.0.1".to_owned()]), &zone).await;
    let mut inside = lab.to_name("ok.test", port).await;
    let (mut server, _) = super::soon(outside.accept()).await.unwrap();
    server.write_all(b"half").await.unwrap();
    let mut half = [0; 4];
    super::soon(inside.read_exact(&mut half)).await.unwrap();
    server.set_zero_linger().unwrap();
    drop(server);
    let broken = super::soon(inside.read(&mut half)).await.unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionReset);
    let mut inside = lab.to_name("ok.test", port).await;
    let (mut server, _) = super::soon(outside.accept()).await.unwrap();
    inside.write_all(b"\0half").await.unwrap();
    let mut half = [0; 5];
    super::soon(server.read_exact(&mut half)).await.unwrap();
    inside.set_zero_linger().unwrap();
    drop(inside);
    let broken = super::soon(server.read(&mut half)).await.unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionReset);
}
