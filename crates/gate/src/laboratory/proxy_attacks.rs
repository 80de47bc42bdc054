//! Attacks on the proxy of HTTP, as a table: each is refused, and no server sees a byte of it.

use super::servers::{Server, Zone};
use super::{Lab, policy, status};

/// What is written for the ports of the server that may be reached, and of the one that may not.
fn filled(template: &str, open: u16, shut: u16) -> Vec<u8> {
    let text = template.replace("OPEN", &open.to_string()).replace("SHUT", &shut.to_string());
    text.replace("65536+P", &(65536 + u32::from(open)).to_string()).into_bytes()
}

const GET: &str = "GET http://ok.test:OPEN/ HTTP/1.1\r\nHost: ok.test:OPEN\r\n";

/// Malformed, or meant to be read differently by two readers: 400, or nothing at all.
const MALFORMED: [(&str, &str); 62] = [
    ("connect with a body", "CONNECT ok.test:OPEN HTTP/1.1\r\nContent-Length: 4\r\n\r\nGET "),
    ("connect with a length", "CONNECT ok.test:OPEN HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
    ("connect with chunks", "CONNECT ok.test:OPEN HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("connect and more", "CONNECT ok.test:OPEN HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("connect without a port", "CONNECT ok.test HTTP/1.1\r\n\r\n"),
    ("connect with no port", "CONNECT ok.test: HTTP/1.1\r\n\r\n"),
    ("port 0", "CONNECT ok.test:0 HTTP/1.1\r\n\r\n"),
    ("port beyond", "CONNECT ok.test:65536 HTTP/1.1\r\n\r\n"),
    ("port that overflows", "CONNECT ok.test:65536+P HTTP/1.1\r\n\r\n"),
    ("port with a sign", "CONNECT ok.test:+OPEN HTTP/1.1\r\n\r\n"),
    ("port with a zero", "CONNECT ok.test:0OPEN HTTP/1.1\r\n\r\n"),
    ("two ports", "CONNECT ok.test:OPEN:SHUT HTTP/1.1\r\n\r\n"),
    ("a user", "CONNECT user@ok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("a host as a user", "CONNECT ok.test:OPEN@evil.test:SHUT HTTP/1.1\r\n\r\n"),
    ("percent", "CONNECT ok%2etest:OPEN HTTP/1.1\r\n\r\n"),
    ("percent zero", "CONNECT evil.test%00.ok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("NUL", "CONNECT evil.test\0.ok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("a zone", "CONNECT [fe80::1%lo]:OPEN HTTP/1.1\r\n\r\n"),
    ("decimal", "CONNECT 2130706434:SHUT HTTP/1.1\r\n\r\n"),
    ("octal", "CONNECT 0177.0.0.2:SHUT HTTP/1.1\r\n\r\n"),
    ("hexadecimal", "CONNECT 0x7f.0.0.2:SHUT HTTP/1.1\r\n\r\n"),
    ("hexadecimal whole", "CONNECT 0x7f000002:SHUT HTTP/1.1\r\n\r\n"),
    ("short address", "CONNECT 127.2:SHUT HTTP/1.1\r\n\r\n"),
    ("address with a dot", "CONNECT 127.0.0.2.:SHUT HTTP/1.1\r\n\r\n"),
    ("IPv6 without brackets", "CONNECT ::1:SHUT HTTP/1.1\r\n\r\n"),
    ("two dots at the end", "CONNECT ok.test..:OPEN HTTP/1.1\r\n\r\n"),
    ("an empty label", "CONNECT ok..test:OPEN HTTP/1.1\r\n\r\n"),
    ("a wildcard", "CONNECT *.test:OPEN HTTP/1.1\r\n\r\n"),
    ("an underscore", "CONNECT ok_.test:OPEN HTTP/1.1\r\n\r\n"),
    ("letters beyond ASCII", "CONNECT \u{f6}k.test:OPEN HTTP/1.1\r\n\r\n"),
    ("letters that look alike", "CONNECT \u{43e}k.test:OPEN HTTP/1.1\r\n\r\n"),
    ("two spaces", "CONNECT  ok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("a tab", "CONNECT\tok.test:OPEN\tHTTP/1.1\r\n\r\n"),
    ("no version", "CONNECT ok.test:OPEN\r\n\r\n"),
    ("another version", "CONNECT ok.test:OPEN HTTP/2.0\r\n\r\n"),
    ("small letters", "connect ok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("a path to connect to", "CONNECT /ok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("bare LF", "CONNECT ok.test:OPEN HTTP/1.1\n\n"),
    ("bare LF in a header", "{GET}A: b\nHost: evil.test\r\n\r\n"),
    ("bare CR in a header", "{GET}A: b\rHost: evil.test\r\n\r\n"),
    ("NUL in a header", "{GET}A: b\0\r\n\r\n"),
    ("folding", "{GET}A: b\r\n c\r\n\r\n"),
    ("folding at once", "GET http://ok.test:OPEN/ HTTP/1.1\r\n Host: ok.test:OPEN\r\n\r\n"),
    ("a space before the colon", "{GET}Content-Length : 3\r\n\r\nabc"),
    ("no colon", "{GET}A\r\n\r\n"),
    ("no name", "{GET}: a\r\n\r\n"),
    ("two hosts", "{GET}Host: evil.test\r\n\r\n"),
    ("twice the same host", "{GET}Host: ok.test:OPEN\r\n\r\n"),
    ("no host", "GET http://ok.test:OPEN/ HTTP/1.1\r\n\r\n"),
    ("an empty host", "GET http://ok.test:OPEN/ HTTP/1.1\r\nHost:\r\n\r\n"),
    ("two lengths", "{GET}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    ("two lengths in one", "{GET}Content-Length: 3, 3\r\n\r\nabc"),
    ("length with a sign", "{GET}Content-Length: +3\r\n\r\nabc"),
    ("length below zero", "{GET}Content-Length: -1\r\n\r\n"),
    ("length and chunks", "{GET}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunks", "{GET}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunks hidden", "{GET}Transfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n"),
    ("another protocol", "{GET}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ("no target", "GET / HTTP/1.1\r\nHost: ok.test:OPEN\r\n\r\n"),
    ("https in the clear", "GET https://ok.test:OPEN/ HTTP/1.1\r\nHost: ok.test:OPEN\r\n\r\n"),
    (
        "a user in a target",
        "GET http://ok.test:OPEN@evil.test:SHUT/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    ),
    ("a fragment", "GET http://ok.test:OPEN/#@evil.test HTTP/1.1\r\nHost: ok.test:OPEN\r\n\r\n"),
];

/// Well-formed, and not allowed: 403.
const DENIED: [(&str, &str); 14] = [
    ("another name", "CONNECT evil.test:SHUT HTTP/1.1\r\n\r\n"),
    ("another port", "CONNECT ok.test:SHUT HTTP/1.1\r\n\r\n"),
    ("a name that ends alike", "CONNECT notok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("a name that begins alike", "CONNECT ok.test.evil.test:OPEN HTTP/1.1\r\n\r\n"),
    ("a name below", "CONNECT a.ok.test:OPEN HTTP/1.1\r\n\r\n"),
    ("a name in code", "CONNECT xn--k-fka.test:OPEN HTTP/1.1\r\n\r\n"),
    ("an address", "CONNECT 127.0.0.2:SHUT HTTP/1.1\r\n\r\n"),
    ("an address as IPv6", "CONNECT [::ffff:127.0.0.2]:SHUT HTTP/1.1\r\n\r\n"),
    ("the host's loopback", "CONNECT localhost:SHUT HTTP/1.1\r\n\r\n"),
    ("the host by its name", "CONNECT host.cofferdam.internal:SHUT HTTP/1.1\r\n\r\n"),
    (
        "a plain request elsewhere",
        "GET http://evil.test:SHUT/ HTTP/1.1\r\nHost: evil.test:SHUT\r\n\r\n",
    ),
    (
        "a host that is not the target",
        "GET http://ok.test:OPEN/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    (
        "a host that is not the tunnel",
        "CONNECT ok.test:OPEN HTTP/1.1\r\nHost: evil.test:OPEN\r\n\r\n",
    ),
    ("a host with another port", "GET http://ok.test:OPEN/ HTTP/1.1\r\nHost: ok.test:SHUT\r\n\r\n"),
];

struct Scene {
    lab: Lab,
    open: Server,
    shut: Server,
}

async fn scene() -> Scene {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"]), ("evil.test", &["127.0.0.2"])]).await;
    let (open, shut) = (Server::web("127.0.0.1").await, Server::web("127.0.0.2").await);
    let rules = [format!("ok.test:{}", open.port), format!("127.0.0.1:{}", open.port)];
    Scene { lab: Lab::new(policy(&rules), &zone).await, open, shut }
}

impl Scene {
    async fn ask(&self, template: &str) -> Vec<u8> {
        let request = filled(&template.replace("{GET}", GET), self.open.port, self.shut.port);
        self.lab.ask_proxy(&request).await
    }
}

#[tokio::test]
async fn malformed_requests_are_refused_before_anything_is_dialed() {
    let scene = scene().await;
    for (name, request) in MALFORMED {
        let answer = scene.ask(request).await;
        assert_eq!(status(&answer), 400, "{name}: {}", String::from_utf8_lossy(&answer));
        assert_eq!(scene.open.connections(), 0, "{name}");
        assert_eq!(scene.shut.connections(), 0, "{name}");
    }
    assert_eq!(scene.lab.reports().len(), MALFORMED.len());
}

#[tokio::test]
async fn what_is_not_allowed_is_denied_with_the_line_that_would_allow_it() {
    let scene = scene().await;
    for (name, request) in DENIED {
        let answer = scene.ask(request).await;
        assert_eq!(status(&answer), 403, "{name}: {}", String::from_utf8_lossy(&answer));
        assert_eq!(scene.open.connections(), 0, "{name}");
        assert_eq!(scene.shut.connections(), 0, "{name}");
    }
    let answer = scene.ask("CONNECT Evil.test:SHUT HTTP/1.1\r\n\r\n").await;
    let text = String::from_utf8(answer).unwrap();
    let port = scene.shut.port;
    assert!(text.contains(&format!("no rule allows evil.test:{port}")), "{text}");
    assert!(text.contains(&format!("allow it with: --egress evil.test:{port}\n")), "{text}");
    let reports = scene.lab.reports();
    let last = reports.last().unwrap();
    assert_eq!(last.host.as_deref(), Some("evil.test"));
    assert_eq!(last.remedy, Some(format!("--egress evil.test:{port}")));
}

#[tokio::test]
async fn what_is_allowed_arrives_by_each_form() {
    let scene = scene().await;
    let answer = scene.ask("{GET}\r\n").await;
    assert_eq!(status(&answer), 200);
    assert!(answer.ends_with(b"hello"));
    let port = scene.open.port;
    let (mut stream, said) = scene.lab.tunnel(&format!("OK.test.:{port}")).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let request = format!("GET / HTTP/1.1\r\nHost: ok.test:{port}\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    assert_eq!(status(&super::rest(&mut stream).await), 200);
    let (_, said) = scene.lab.tunnel(&format!("127.0.0.1:{port}")).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let opened: Vec<String> =
        [format!("ok.test:{port}"), format!("evil.test:{}", scene.shut.port), "127.0.0.2".into()]
            .into();
    let mut scene = scene;
    scene.lab.set_policy(policy(&opened));
    scene.lab.settled().await;
    let answer =
        scene.ask("GET http://evil.test:SHUT/ HTTP/1.1\r\nHost: evil.test:SHUT\r\n\r\n").await;
    assert_eq!(status(&answer), 200, "control: the other server can be reached");
}

#[tokio::test]
async fn a_request_is_written_anew_and_nothing_follows_it() {
    let scene = scene().await;
    let answer = scene
        .ask(
            "POST http://OK.test:OPEN?a=b HTTP/1.1\r\nhOST: ok.test.:OPEN\r\nX-Kept: 1\r\n\
            Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
            Keep-Alive: 5\r\nConnection: X-Dropped, keep-alive\r\nX-Dropped: 2\r\n\
            Content-Length: 4\r\n\r\nbodyGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        )
        .await;
    assert_eq!(status(&answer), 200);
    let port = scene.open.port;
    assert_eq!(
        scene.open.text(),
        format!(
            "POST /?a=b HTTP/1.1\r\nHost: ok.test:{port}\r\nX-Kept: 1\r\nContent-Length: 4\r\n\
            Connection: close\r\n\r\nbody"
        )
    );
}

#[tokio::test]
async fn a_redirect_is_passed_on_and_not_followed() {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"]), ("evil.test", &["127.0.0.2"])]).await;
    let shut = Server::web("127.0.0.2").await;
    let redirect =
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n";
    let open = Server::echo("127.0.0.1", redirect).await;
    let rules = [format!("ok.test:{}", open.port), format!("127.0.0.1:{}", open.port)];
    let lab = Lab::new(policy(&rules), &zone).await;
    let request = filled(&format!("{GET}\r\n"), open.port, shut.port);
    let mut stream = lab.to_proxy().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request).await.unwrap();
    let mut heard = vec![0; redirect.len()];
    super::soon(tokio::io::AsyncReadExt::read_exact(&mut stream, &mut heard)).await.unwrap();
    assert_eq!(heard, redirect.as_bytes());
    drop(stream);
    assert!(!zone.was_asked().iter().any(|asked| asked.contains("169.254")));
    let answer =
        lab.ask_proxy(b"GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n");
    assert_eq!(status(&answer.await), 403);
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_not_taken_for_a_whole_one() {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"])]).await;
    let outside = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = outside.local_addr().unwrap().port();
    let lab = Lab::new(policy(&["ok.test".to_owned(), "127.0.0.1".to_owned()]), &zone).await;
    let mut inside = lab.to_proxy().await;
    let request =
        filled("{GET}Content-Length: 9\r\n\r\nhalf".replace("{GET}", GET).as_str(), port, 0);
    tokio::io::AsyncWriteExt::write_all(&mut inside, &request).await.unwrap();
    tokio::io::AsyncWriteExt::shutdown(&mut inside).await.unwrap();
    let (mut server, _) = super::soon(outside.accept()).await.unwrap();
    let mut seen = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut server, &mut seen);
    let broken = super::soon(read).await.unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionReset);
}
