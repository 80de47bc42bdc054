//! Who asks for one name and then speaks to another: in TLS and in HTTP, through each way in.

use super::servers::{Server, Tls, Zone};
use super::{Lab, policy, rest, status};
use crate::hello::tests::{hello, name_extension};
use cofferdam_core::ConnectionDecision;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

const NAMES: &[(&str, &[&str])] = &[("ok.test", &["127.0.0.1"]), ("also.test", &["127.0.0.1"])];

async fn lab(ports: &[u16]) -> Lab {
    let zone = Zone::of(NAMES).await;
    let rules = ports.iter().flat_map(|port| {
        [format!("ok.test:{port}"), format!("also.test:{port}"), format!("127.0.0.1:{port}")]
    });
    Lab::new(policy(&rules.collect::<Vec<_>>()), &zone).await
}

#[tokio::test]
async fn tls_reaches_the_server_unopened_where_its_name_is_the_one_that_was_asked_for() {
    let server = Tls::new("127.0.0.1", &["ok.test", "also.test"]).await;
    let lab = lab(&[server.port]).await;
    let transparent = lab.to_name("ok.test", server.port).await;
    assert_eq!(server.hear(transparent, "ok.test").await.unwrap(), "secret word");
    let (tunnel, _) = lab.tunnel(&format!("ok.test:{}", server.port)).await;
    assert_eq!(server.hear(tunnel, "ok.test").await.unwrap(), "secret word");
    let (address, _) = lab.tunnel(&format!("127.0.0.1:{}", server.port)).await;
    assert_eq!(server.hear(address, "also.test").await.unwrap(), "secret word", "any name");
    assert_eq!(server.names.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn another_name_in_tls_is_refused_though_both_may_be_reached() {
    let server = Tls::new("127.0.0.1", &["ok.test", "also.test"]).await;
    let lab = lab(&[server.port]).await;
    let transparent = lab.to_name("ok.test", server.port).await;
    assert!(server.hear(transparent, "also.test").await.is_err());
    let (tunnel, said) = lab.tunnel(&format!("ok.test:{}", server.port)).await;
    assert!(said.contains(" 200 "));
    assert!(server.hear(tunnel, "also.test").await.is_err());
    assert!(server.names.lock().unwrap().is_empty(), "the server heard nothing");
    let denied = lab.denied().await;
    assert_eq!(denied.host.as_deref(), Some("ok.test"));
    assert_eq!(denied.reason.as_deref(), Some("the name in TLS is also.test, not ok.test"));
    assert_eq!(denied.bytes_up, 0);
}

#[tokio::test]
async fn a_first_message_of_tls_that_is_malformed_is_refused_however_it_comes() {
    let server = Server::echo("127.0.0.1", "").await;
    let lab = lab(&[server.port]).await;
    let twice = [name_extension(b"ok.test"), name_extension(b"evil.test")].concat();
    let attacks = [
        hello(&twice, 4096),
        hello(&name_extension(b"evil.test\0.ok.test"), 4096),
        hello(&name_extension(b"evil.test"), 1),
        hello(&name_extension(b"evil.test"), 7),
        vec![22, 3, 1, 0, 0, 1],
        // What some servers skip, and a version that some do not look at.
        [&[21, 3, 1, 0, 2, 1, 90], &*hello(&name_extension(b"evil.test"), 4096)].concat(),
        [&[22, 2], &hello(&name_extension(b"evil.test"), 4096)[2..]].concat(),
        [hello(&name_extension(b"ok.test"), 9)[..20].to_vec(), vec![23; 40]].concat(),
    ];
    for attack in attacks {
        let mut stream = lab.to_name("ok.test", server.port).await;
        stream.write_all(&attack).await.unwrap();
        assert!(rest(&mut stream).await.is_empty(), "{attack:?}");
    }
    assert_eq!(server.text(), "", "not a byte");
    let good = hello(&name_extension(b"OK.test"), 5);
    let mut stream = lab.to_name("ok.test", server.port).await;
    for piece in good.chunks(60) {
        stream.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, good, "control");
}

/// Requests that name another server, or that a lenient server would read so.
const ELSEWHERE: [(&str, u16); 21] = [
    ("GET / HTTP/1.1\r\nHost: also.test:PORT\r\n\r\n", 403),
    ("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 403),
    ("GET / HTTP/1.1\r\nHost: ok.test:1\r\n\r\n", 403),
    ("GET http://evil.test:PORT/ HTTP/1.1\r\nHost: ok.test:PORT\r\n\r\n", 403),
    ("GET / HTTP/1.1\r\nHost: ok.test:PORT\r\nHost: evil.test\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: ok.test:PORT\r\n Host: evil.test\r\n\r\n", 400),
    ("GET / HTTP/1.1\nHost: evil.test\n\n", 400),
    ("\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
    (" GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
    ("get / http/1.1\r\nHost: evil.test\r\n\r\n", 400),
    ("GET\t/\tHTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
    ("GET\x0b/\x0bHTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
    ("GET / HTTP/1.1 \r\nHost: evil.test\r\n\r\n", 400),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("CONNECT evil.test:443 HTTP/1.1\r\nHost: ok.test:PORT\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: ok.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("\x1cGET\x1d/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
    ("\0GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
    ("A\n / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
    ("\0GET a:/ x\r\nHost: evil.test\r\n\r\n", 403),
];

#[tokio::test]
async fn a_request_that_names_another_server_is_refused_though_both_may_be_reached() {
    let server = Server::web("127.0.0.1").await;
    let lab = lab(&[server.port]).await;
    for (request, wanted) in ELSEWHERE {
        let request = request.replace("PORT", &server.port.to_string());
        let mut direct = lab.to_name("ok.test", server.port).await;
        direct.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(status(&rest(&mut direct).await), wanted, "{request:?}");
        let (mut tunnel, _) = lab.tunnel(&format!("ok.test:{}", server.port)).await;
        tunnel.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(status(&rest(&mut tunnel).await), wanted, "{request:?}");
    }
    assert_eq!(server.text(), "", "not a byte");
    let mut direct = lab.to_name("ok.test", server.port).await;
    let good = format!("GET /a HTTP/1.1\r\nHost: Ok.test:{}\r\n\r\n", server.port);
    direct.write_all(good.as_bytes()).await.unwrap();
    assert_eq!(status(&rest(&mut direct).await), 200, "control");
}

#[tokio::test]
async fn a_request_in_what_passed_as_none_goes_no_further() {
    let server = Server::web("127.0.0.1").await;
    let lab = lab(&[server.port]).await;
    let mut slow = lab.to_name("ok.test", server.port).await;
    slow.write_all(b"\0GET / HT").await.unwrap();
    let passed = async {
        while server.text() != "\0GET / HT" {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    super::soon(passed).await;
    slow.write_all(b"TP/1.1\r\nHost: evil.test\r\n\r\n").await.unwrap();
    assert_eq!(status(&rest(&mut slow).await), 400);
    let mut without_end = lab.to_name("ok.test", server.port).await;
    without_end.write_all(b"GET http://evil.test/ HTTP/1.1").await.unwrap();
    without_end.shutdown().await.unwrap();
    assert_eq!(status(&rest(&mut without_end).await), 400);
    assert_eq!(server.text(), "\0GET / HT", "not a byte more");
    // This server takes anything for a request, and is known by its answer.
    let mut lenient = lab.to_name("ok.test", server.port).await;
    lenient.write_all(b"\x01\x02\r\n\r\n").await.unwrap();
    let heard = rest(&mut lenient).await;
    assert_eq!(status(&heard), 400);
    assert!(!String::from_utf8_lossy(&heard).contains("hello"));
}

#[tokio::test]
async fn who_says_nothing_hears_what_a_server_says_to_that() {
    let server = Server::patient("127.0.0.1").await;
    let lab = lab(&[server.port]).await;
    for (said, wanted) in [(&b""[..], 408), (b"\x01\x02", 400)] {
        let mut stream = lab.to_name("ok.test", server.port).await;
        stream.write_all(said).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(status(&rest(&mut stream).await), wanted, "{said:?}");
    }
}

#[tokio::test]
async fn a_second_request_on_one_connection_reaches_nobody() {
    let server = Server::web("127.0.0.1").await;
    let lab = lab(&[server.port]).await;
    let mut direct = lab.to_name("ok.test", server.port).await;
    let two = format!(
        "POST /a HTTP/1.1\r\nHost: ok.test:{}\r\nContent-Length: 2\r\n\r\nhi\
        GET /b HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        server.port
    );
    direct.write_all(two.as_bytes()).await.unwrap();
    assert_eq!(status(&rest(&mut direct).await), 200);
    assert!(server.text().ends_with("Connection: close\r\n\r\nhi"), "{}", server.text());
}

#[tokio::test]
async fn protocols_that_carry_no_name_pass_whoever_speaks_first() {
    let server = Server::echo("127.0.0.1", "220 welcome\r\n").await;
    let lab = lab(&[server.port]).await;
    for said in [&b"SSH-2.0-client\r\n"[..], b"\0\0\0\x08\x04\xd2\x16\x2f", b"EHLO a b c\r\n", b"x"]
    {
        let mut stream = lab.to_name("ok.test", server.port).await;
        let mut heard = [0; 13];
        let read = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut heard);
        super::soon(read).await.unwrap();
        assert_eq!(&heard, b"220 welcome\r\n", "the server speaks first");
        stream.write_all(said).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(rest(&mut stream).await, said);
    }
}

#[tokio::test]
async fn who_waits_for_the_server_to_speak_first_is_checked_all_the_same() {
    let server = Server::echo("127.0.0.1", "220 welcome\r\n").await;
    let lab = lab(&[server.port]).await;
    let mut stream = lab.to_name("ok.test", server.port).await;
    let mut heard = [0; 13];
    super::soon(tokio::io::AsyncReadExt::read_exact(&mut stream, &mut heard)).await.unwrap();
    stream.write_all(&hello(&name_extension(b"evil.test"), 4096)).await.unwrap();
    assert!(rest(&mut stream).await.is_empty());
    assert_eq!(server.text(), "");
    let denied = lab.report(|report| report.decision == ConnectionDecision::Denied).await;
    assert_eq!(denied.bytes_down, 13);
}
