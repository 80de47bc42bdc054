//! What must not be sent, and to whom.

use crate::stage::{CANARY, HOST, Set, Stage, VALUE, text};

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
        assert_eq!(stage.alarms.lock().unwrap().len(), number + 1, "{words:?}");
    }
    assert_eq!(stage.count(), 0);
    let alarm = stage.alarms.lock().unwrap()[0].clone();
    assert_eq!((alarm.secret.unwrap().as_str(), &*alarm.host), ("U", HOST));
    // The control: this host's own goes.
    let own = format!("Authorization: Bearer {}", stage.placeholder);
    assert!(has_status(&stage.curl(&["-H", &own, &url]).await, "200"));
    assert_eq!(stage.alarms.lock().unwrap().len(), 5);
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
    assert_eq!((stage.count(), stage.alarms.lock().unwrap().len()), (0, 1));
    // The control: such a body without it arrives.
    let plain = stage.file("plain", &[b'x'; 140_000]);
    assert!(stage.curl(&["-T", &plain, &stage.url("/")]).await.status.success());
    assert_eq!(stage.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_value_is_for_its_host_alone() {
    let set = Set { grant: "T@elsewhere.example.com".to_owned(), ..Set::default() };
    let stage = Stage::set("alone", set).await;
    let own = format!("Authorization: Bearer {}", stage.placeholder);
    let said = stage.curl(&["-H", &own, &stage.url("/")]).await;
    assert!(has_status(&said, "403") && !text(&said).contains(VALUE), "{}", text(&said));
    assert_eq!((stage.count(), stage.alarms.lock().unwrap().len()), (0, 1));
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
    assert_eq!(stage.count(), 0);
    // What concerns one hop stays there, and what it names with it.
    let hop = ["-H", "Connection: x-mine", "-H", "X-Mine: 1", "-H", "Proxy-Authorization: y", &url];
    assert!(has_status(&stage.curl(&hop).await, "200"));
    for name in ["x-mine", "proxy-authorization", "connection"] {
        assert_eq!(stage.header(name), None, "{name}");
    }
}
