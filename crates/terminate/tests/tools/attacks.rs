//! What must not be sent, and to whom.

use crate::stage::{CANARY, HOST, Set, Stage, VALUE, text};
use base64::Engine;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longer than anything takes that is not meant to be waited for.
const PATIENCE: Duration = Duration::from_secs(20);

fn has_status(said: &std::process::Output, status: &str) -> bool {
    text(said).starts_with(&format!("HTTP/1.1 {status}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_for_another_host_is_told_and_not_sent() {
    let stage = Stage::new("other").await;
    let url = stage.url("/");
    let in_header = format!("X-Any: {}", stage.other);
    let in_path = stage.url(&format!("/{}", stage.other));
    let in_query = stage.url(&format!("/?q={}", stage.other));
    let as_user = format!("{}:x", stage.other);
    let attacks: [&[&str]; 5] = [
        &["-H", &in_header, &url],
        &[&in_path],
        &[&in_query],
        &["-u", &as_user, &url],
        &["-H", &format!("X: {CANARY}"), &url],
    ];
    for (number, words) in attacks.into_iter().enumerate() {
        let said = stage.curl(words).await;
        assert!(has_status(&said, "403"), "{words:?}: {}", text(&said));
        assert_eq!(stage.heard.alarms().len(), number + 1, "{words:?}");
    }
    assert_eq!(stage.count(), 0);
    let alarm = stage.heard.alarms()[0].clone();
    assert_eq!((alarm.secret.unwrap().as_str(), &*alarm.host), ("U", HOST));
    // The control: this host's own goes.
    let own = format!("Authorization: Bearer {}", stage.placeholder);
    assert!(has_status(&stage.curl(&["-H", &own, &url]).await, "200"));
    assert_eq!(stage.heard.alarms().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_in_a_body_breaks_the_request_off() {
    let stage = Stage::new("body").await;
    let mut body = vec![b'x'; 70_000];
    body.extend_from_slice(stage.other.as_bytes());
    body.extend_from_slice(&[b'y'; 70_000]);
    let file = stage.file("body", &body);
    let said = stage.curl(&["-T", &file, &stage.url("/")]).await;
    assert!(has_status(&said, "403") || has_status(&said, "100"), "{}", text(&said));
    assert_eq!((stage.count(), stage.heard.alarms().len()), (0, 1));
    // The control: such a body without it arrives.
    let plain = stage.file("plain", &[b'x'; 140_000]);
    assert!(stage.curl(&["-T", &plain, &stage.url("/")]).await.status.success());
    assert_eq!(stage.count(), 1);
}

/// Writes the head and the first half of a body, reads the answer that comes before the second, writes that,
/// and returns when the connection has ended.
async fn say_early(stage: &Stage, head: &str, halves: [&[u8]; 2]) {
    let mut client = stage.connect().await;
    let port = stage.front.port();
    let head = format!("POST /early HTTP/1.1\r\nHost: {HOST}:{port}\r\n{head}\r\n\r\n");
    client.write_all(&[head.as_bytes(), halves[0]].concat()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"early") {
        // An answer comes before the body is whole.
        let read = tokio::time::timeout(PATIENCE, client.read_buf(&mut answer)).await;
        assert_ne!(read.unwrap().unwrap(), 0);
    }
    client.write_all(halves[1]).await.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, client.read_to_end(&mut rest)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_in_a_body_that_was_answered_early_is_told_and_ends_the_connection() {
    let stage = Stage::new("early").await;
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let other = stage.other.clone();
    let long = format!("Content-Length: {}", 5 + other.len());
    let encoded = base64::engine::general_purpose::STANDARD.encode(&other);
    let encoded_long = format!("Content-Length: {}", 5 + encoded.len());
    let chunked = "Transfer-Encoding: chunked";
    let attacks: [(&str, &str, &str); 4] = [
        (&long, "begin", &other),
        (&encoded_long, "begin", &encoded),
        (chunked, &chunk("begin"), &chunk(&other)),
        (chunked, &chunk("begin"), &format!("{}0\r\n\r\n", chunk(&encoded))),
    ];
    for (number, (head, first, second)) in attacks.into_iter().enumerate() {
        say_early(&stage, head, [first.as_bytes(), second.as_bytes()]).await;
        assert_eq!(stage.heard.alarms().len(), number + 1, "{head} {second:?}");
        assert_eq!(stage.heard.ended(), number + 1, "{head} {second:?}");
    }
    let came = String::from_utf8(stage.early.lock().unwrap().clone()).unwrap();
    assert_eq!((came, stage.heard.refusals().len()), ("begin".repeat(4), 0));
    // The control: such a body without it arrives, and its connection is kept.
    let plain = tokio::time::timeout(
        PATIENCE / 4,
        say_early(&stage, "Content-Length: 10", [b"begin", b"plain"]),
    );
    assert!(plain.await.is_err(), "the connection is kept");
    let came = String::from_utf8(stage.early.lock().unwrap().clone()).unwrap();
    assert!(came.ends_with("beginplain") && stage.heard.alarms().len() == 4, "{came}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_in_a_trailer_is_told() {
    let stage = Stage::new("trailer").await;
    let (port, other) = (stage.front.port(), &stage.other);
    for (number, trailer) in [format!("X-Any: {other}"), format!("{other}: x")].iter().enumerate() {
        let mut client = stage.connect().await;
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {HOST}:{port}\r\nTrailer: x-any\r\n\
             Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n{trailer}\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, client.read_to_end(&mut said)).await.unwrap();
        assert!(said.starts_with(b"HTTP/1.1 403"), "{}", String::from_utf8_lossy(&said));
        assert_eq!((stage.heard.alarms().len(), stage.count()), (number + 1, 0), "{trailer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_with_an_alarm_ends_at_once() {
    let stage = Stage::new("ends").await;
    let mut client = stage.connect().await;
    let (port, other) = (stage.front.port(), &stage.other);
    let head = format!("GET / HTTP/1.1\r\nHost: {HOST}:{port}\r\nX-Any: {other}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    // Its client neither reads nor hangs up, as one that is frozen.
    tokio::time::timeout(PATIENCE, async {
        while stage.heard.ended() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("it ends by itself");
    assert_eq!(stage.heard.alarms().len(), 1);
    let mut said = Vec::new();
    let _ = client.read_to_end(&mut said).await;
    assert!(said.starts_with(b"HTTP/1.1 403"), "{}", String::from_utf8_lossy(&said));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_value_is_for_its_host_alone() {
    let set = Set { grant: "T@elsewhere.example.com".to_owned(), ..Set::default() };
    let stage = Stage::set("alone", set).await;
    let own = format!("Authorization: Bearer {}", stage.placeholder);
    let said = stage.curl(&["-H", &own, &stage.url("/")]).await;
    assert!(has_status(&said, "403") && !text(&said).contains(VALUE), "{}", text(&said));
    assert_eq!((stage.count(), stage.heard.alarms().len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_another_host_is_refused() {
    let stage = Stage::new("fronting").await;
    let own = format!("Authorization: Bearer {}", stage.placeholder);
    for host in
        ["Host: evil.example", "Host: api.example.com.evil.example", "Host: api.example.com:1"]
    {
        let said = stage.curl(&["-H", host, "-H", &own, &stage.url("/")]).await;
        assert!(has_status(&said, "421"), "{host}: {}", text(&said));
    }
    // Another name in TLS is none of ours at all.
    let port = stage.front.port();
    let resolve = format!("evil.example:{port}:127.0.0.1");
    let url = format!("https://evil.example:{port}/");
    let said = stage.curl(&["-k", "--resolve", &resolve, &url]).await;
    assert!(!said.status.success(), "{}", text(&said));
    assert_eq!(stage.count(), 0);
    let refusals = stage.heard.refusals();
    assert_eq!((refusals.len(), stage.heard.alarms().len()), (3, 0), "{refusals:?}");
    let told = format!("{HOST}:{port} was asked for, and the request is for evil.example:");
    assert!(refusals[0].starts_with(&told), "{refusals:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_told_and_costs_its_connection() {
    let stage = Stage::new("refused").await;
    let mut client = stage.connect().await;
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".repeat(9).as_slice())
        .await
        .unwrap();
    let mut said = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, client.read_to_end(&mut said)).await.unwrap();
    let said = String::from_utf8(said).unwrap();
    assert_eq!(said.matches("HTTP/1.1 421").count(), 1, "{said}");
    assert_eq!((stage.heard.refusals().len(), stage.count()), (1, 0));
    // What is no fault of the request's is no refusal.
    assert!(has_status(&stage.curl(&[&stage.url("/")]).await, "200"));
    assert_eq!(stage.heard.refusals().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_in_a_request_that_is_refused_is_told() {
    let stage = Stage::new("refused-alarm").await;
    let host = format!("{HOST}:{}", stage.front.port());
    let attacks = [
        "GET / HTTP/1.1\r\nHost: HOST\r\nUpgrade: x\r\nX: HELD",
        "TRACE / HTTP/1.1\r\nHost: HOST\r\nX: HELD",
        "GET / HTTP/1.1\r\nHost: evil.example\r\nX: HELD",
        "GET / HTTP/1.1\r\nHost: HELD",
        "GET https://x:HELD@HOST/ HTTP/1.1\r\nHost: HOST",
        "CONNECT HELD:443 HTTP/1.1\r\nHost: HOST",
    ];
    let say = async |request: &str, held: &str| {
        let request = request.replace("HOST", &host).replace("HELD", held);
        let mut client = stage.connect().await;
        client.write_all(format!("{request}\r\n\r\n").as_bytes()).await.unwrap();
        let mut said = [0; 12];
        let read = client.read_exact(&mut said);
        tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
        String::from_utf8_lossy(&said).into_owned()
    };
    for (number, attack) in attacks.into_iter().enumerate() {
        // The control: without it, the request is refused for what it is.
        assert_ne!(say(attack, "nothing").await, "HTTP/1.1 403", "{attack}");
        assert_eq!(say(attack, &stage.other).await, "HTTP/1.1 403", "{attack}");
        let (alarms, refusals) = (stage.heard.alarms().len(), stage.heard.refusals().len());
        assert_eq!((alarms, refusals), (number + 1, number + 1), "{attack}");
    }
    assert_eq!(stage.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_cannot_be_verified_gets_nothing() {
    let untrusted = Set { is_trusted: false, ..Set::default() };
    let misnamed = Set { named: "api.example.org", ..Set::default() };
    for (name, set) in [("untrusted", untrusted), ("misnamed", misnamed)] {
        let stage = Stage::set(name, set).await;
        let own = format!("Authorization: Bearer {}", stage.placeholder);
        let said = stage.curl(&["-H", &own, &stage.url("/")]).await;
        assert!(
            has_status(&said, "502") && text(&said).contains("agree on TLS"),
            "{}",
            text(&said)
        );
        assert!(!text(&said).contains(VALUE));
        assert_eq!(stage.count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_answer_with_the_value_or_become_something_else_is_refused() {
    let stage = Stage::new("methods").await;
    let url = stage.url("/");
    assert!(has_status(&stage.curl(&["-X", "TRACE", &url]).await, "405"));
    let upgrade = ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket", &url];
    assert!(has_status(&stage.curl(&upgrade).await, "501"));
    for (number, coding) in ["gzip, chunked", "chunked, chunked"].into_iter().enumerate() {
        let header = format!("Transfer-Encoding: {coding}");
        assert!(
            has_status(&stage.curl(&["-H", &header, "-d", "x", &url]).await, "501"),
            "{coding}"
        );
        assert_eq!((stage.count(), stage.heard.refusals().len()), (0, 3 + number), "{coding}");
    }
    let chunked = ["-H", "Transfer-Encoding: Chunked", "-d", "x", &url];
    assert!(has_status(&stage.curl(&chunked).await, "200"), "control");
    // What concerns one hop stays there, and what it names with it.
    let hop =
        ["-H", "Connection: x-mine, Host", "-H", "X-Mine: 1", "-H", "Proxy-Authorization: y", &url];
    assert!(has_status(&stage.curl(&hop).await, "200"));
    for name in ["x-mine", "proxy-authorization", "connection"] {
        assert_eq!(stage.header(name), None, "{name}");
    }
    assert!(stage.header("host").is_some(), "whom it is for is no matter of a hop");
}
