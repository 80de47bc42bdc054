//! Secrets that are put in, and what stands for them on its way to somebody else.

use super::servers::{Server, Tls, Zone};
use super::{Lab, answered, policy, rest, soon};
use cofferdam_core::FromGate;
use cofferdam_core::secret::{GateGrant, SecretValue, Vault};
use cofferdam_core::{ConnectionDecision, ConnectionReport, SecretAlarm};
use cofferdam_terminate::Authority;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use tokio_rustls::TlsAcceptor;

const HELD: &str = "cofferdam-placeholder-0123456789abcdef0123456789abcdef";
/// The same in base64, as it stands behind `user:`.
const ENCODED: &str = "Y29mZmVyZGFtLXBsYWNlaG9sZGVyLTAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm";
const VALUE: &str = "the/real+token";
/// Of another secret, for a host that nobody asks.
const OTHER: &str = "cofferdam-placeholder-fedcba9876543210fedcba9876543210";

struct Scene {
    lab: Lab,
    /// What the host that has the secret was asked.
    asked: Arc<Mutex<Vec<String>>>,
    host: u16,
    web: Server,
    tls: Tls,
    session: Authority,
    zone: Zone,
}

async fn scene() -> Scene {
    const NAMES: &[(&str, &[&str])] = &[
        ("api.test", &["127.0.0.1"]),
        ("ok.test", &["127.0.0.1"]),
        ("far.ok.test", &["127.0.0.1"]),
    ];
    let zone = Zone::of(NAMES).await;
    let (public, session) = (Authority::new("public").unwrap(), Authority::new("s").unwrap());
    let asked = Arc::default();
    let host = api(&public, Arc::clone(&asked)).await;
    let web = Server::web("127.0.0.1").await;
    let tls = Tls::new("127.0.0.1", &["ok.test"]).await;
    let grants = [("T@api.test", HELD), ("U@other.test", OTHER)].map(|(grant, placeholder)| {
        GateGrant { grant: grant.parse().unwrap(), placeholder: placeholder.to_owned() }
    });
    let vault = Vault {
        authority: "s".to_owned(),
        certificate: session.certificate().to_vec(),
        key: session.key(),
        values: [VALUE, "another"]
            .map(|value| SecretValue::new(value.as_bytes().to_vec()).unwrap())
            .into(),
        roots: vec![public.certificate().to_vec()],
    };
    let mut rules = vec![format!("api.test:{host}"), format!("127.0.0.1:{host}")];
    for port in [web.port, tls.port] {
        rules.extend([format!("*.ok.test:{port}"), format!("127.0.0.1:{port}")]);
    }
    let secrets = (grants.into(), in_memory(&vault));
    let lab = Lab::with_secrets(policy(&rules), &zone, secrets).await;
    Scene { lab, asked, host, web, tls, session, zone }
}

fn in_memory(vault: &Vault) -> OwnedFd {
    let file = rustix::fs::memfd_create("vault", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut file = std::fs::File::from(file);
    file.write_all(&vault.to_bytes()).unwrap();
    file.into()
}

/// The host that has the secret: says hello to each request, and remembers it. Asked for nothing it hangs up.
async fn api(public: &Authority, asked: Arc<Mutex<Vec<String>>>) -> u16 {
    let acceptor = TlsAcceptor::from(public.serve_as("api.test").unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, asked) = (acceptor.clone(), Arc::clone(&asked));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut piece = [0; 4096];
                let Ok(read @ 1..) = stream.read(&mut piece).await else { return };
                let text = String::from_utf8_lossy(&piece[..read]).into_owned();
                if text.starts_with("GET /nothing ") {
                    return;
                }
                asked.lock().unwrap().push(text);
                let answer =
                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}

impl Scene {
    /// A request to the host that has the secret, and its answer.
    async fn ask(&self, stream: TcpStream) -> String {
        let head = format!("GET / HTTP/1.1\r\nHost: api.test:{}", self.host);
        self.say(stream, &format!("{head}\r\nAuthorization: Bearer {HELD}")).await
    }

    /// A head over TLS that trusts the session's authority, and what is answered.
    async fn say(&self, stream: TcpStream, head: &str) -> String {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.session.certificate().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from("api.test").unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let mut stream = soon(connector.connect(name, stream)).await.unwrap();
        let request = format!("{head}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
        String::from_utf8(answer).unwrap()
    }

    /// The next alarm that the gate told its holder.
    async fn alarm(&self) -> SecretAlarm {
        let control = self.lab.control.as_ref().unwrap().try_clone().unwrap();
        control.set_nonblocking(true).unwrap();
        let mut control = UnixStream::from_std(control).unwrap();
        loop {
            let mut line = Vec::new();
            while line.last() != Some(&b'\n') {
                line.push(soon(control.read_u8()).await.unwrap());
            }
            match serde_json::from_slice(&line).unwrap() {
                FromGate::Alarm(alarm) => return alarm,
                FromGate::Denied(_) => {}
                said @ (FromGate::Waits(_) | FromGate::Settled(..)) => panic!("{said:?}"),
            }
        }
    }

    /// Whether it told something.
    fn is_quiet(&self) -> bool {
        let control = self.lab.control.as_ref().unwrap();
        control.set_nonblocking(true).unwrap();
        let mut byte = [0; 1];
        let flags = rustix::net::RecvFlags::PEEK;
        rustix::net::recv(control, &mut byte, flags).is_err()
    }
}

#[tokio::test]
async fn a_secret_is_put_in_through_each_way_in_and_other_tls_is_not_opened() {
    let scene = scene().await;
    let (transparent, target) =
        (scene.lab.to_name("api.test", scene.host).await, format!("api.test:{}", scene.host));
    let (tunnel, _) = scene.lab.tunnel(&target).await;
    for stream in [transparent, tunnel] {
        let answer = scene.ask(stream).await;
        assert!(answer.ends_with("hello"), "{answer}");
        let asked = scene.asked.lock().unwrap().pop().unwrap();
        assert!(asked.contains(&format!("Bearer {VALUE}\r\n")), "{asked}");
    }
    let (other, _) = scene.lab.tunnel(&format!("ok.test:{}", scene.tls.port)).await;
    assert_eq!(scene.tls.hear(other, "ok.test").await.unwrap(), "secret word", "its own");
    assert!(scene.is_quiet());
}

#[tokio::test]
async fn what_is_refused_within_tls_that_ends_here_is_a_denial() {
    let scene = scene().await;
    let target = format!("api.test:{}", scene.host);
    for (head, status, why) in [
        ("GET / HTTP/1.1\r\nHost: ok.test", "421", "the request is for ok.test"),
        ("TRACE / HTTP/1.1\r\nHost: HOST", "405", "TRACE is not passed on to HOST"),
        ("GET / HTTP/1.1\r\nHost: HOST\r\nUpgrade: x", "501", "cannot become another protocol"),
    ] {
        let (tunnel, _) = scene.lab.tunnel(&target).await;
        let answer = scene.say(tunnel, &head.replace("HOST", &target)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        let is_it = |report: &ConnectionReport| {
            let reason = report.reason.as_deref().unwrap_or_default();
            report.decision == ConnectionDecision::Denied
                && reason.contains(&why.replace("HOST", &target))
        };
        let report = scene.lab.report(is_it).await;
        assert_eq!((report.host.as_deref(), report.port), (Some("api.test"), scene.host));
    }
    assert!(scene.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_seen_within_tls_that_ends_here_is_a_denial_though_the_gate_ends_at_once() {
    let mut scene = scene().await;
    let target = format!("api.test:{}", scene.host);
    let (tunnel, _) = scene.lab.tunnel(&target).await;
    let head = format!("GET / HTTP/1.1\r\nHost: {target}\r\nX: {OTHER}");
    tokio::select! {
        answer = scene.say(tunnel, &head) => panic!("before it was told: {answer}"),
        alarm = scene.alarm() => assert_eq!(alarm.secret.as_str(), "U"),
    }
    // What the holder of a run does.
    scene.lab.control = None;
    let reason = scene.lab.denied().await.reason.unwrap();
    assert_eq!(reason, format!("secret alarm: the placeholder of secret U is not for {target}"));
    assert!(scene.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_placeholder_toward_another_host_is_told_and_goes_nowhere() {
    let port = |scene: &Scene| scene.web.port;
    let head = |rest: &str| format!("GET / HTTP/1.1\r\nHost: ok.test:PORT\r\n{rest}\r\n\r\n");
    for (request, by_name) in [
        (head(&format!("X: {HELD}")), true),
        (head(&format!("Authorization: Basic dXNl{ENCODED}")), true),
        (head(&format!("Content-Length: 54\r\n\r\n{HELD}")), true),
        (format!("GET /{HELD} HTTP/1.1\r\nHost: ok.test:PORT\r\n\r\n"), true),
        (format!("\u{1}raw {HELD}\n"), true),
        (format!("\u{1}raw {HELD}\n"), false),
    ] {
        let scene = scene().await;
        let request = request.replace("PORT", &port(&scene).to_string());
        let host = if by_name { "ok.test" } else { "127.0.0.1" };
        let (tunnel, _) = scene.lab.tunnel(&format!("{host}:{}", port(&scene))).await;
        answered(tunnel, request.as_bytes()).await;
        let alarm = scene.alarm().await;
        assert_eq!((alarm.secret.as_str(), &*alarm.host, alarm.port), ("T", host, port(&scene)));
        assert_eq!(scene.web.text(), "", "{request}");
        let report = scene.lab.denied().await;
        assert!(report.reason.unwrap().starts_with("secret alarm: the placeholder of secret T"));
    }
}

#[tokio::test]
async fn a_host_that_has_a_secret_and_does_not_answer_is_told_of_in_the_log() {
    let scene = scene().await;
    let target = format!("api.test:{}", scene.host);
    let (tunnel, _) = scene.lab.tunnel(&target).await;
    let answer = scene.say(tunnel, &format!("GET /nothing HTTP/1.1\r\nHost: {target}")).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let is_its = |report: &ConnectionReport| report.host.as_deref() == Some("api.test");
    let report = scene.lab.report(is_its).await;
    assert_eq!(report.reason.as_deref(), Some("api.test hung up before it answered"));
    assert_eq!(report.decision, ConnectionDecision::Allowed);
}

#[tokio::test]
async fn a_placeholder_in_a_name_is_told_before_anybody_is_asked_for_it() {
    let scene = scene().await;
    let target = format!("{HELD}.ok.test:{}", scene.web.port);
    let (_, said) = scene.lab.tunnel(&target).await;
    assert!(said.contains(" 403 "), "{said}");
    assert_eq!(scene.alarm().await.secret.as_str(), "T");
    assert!(!scene.zone.was_asked().concat().contains("placeholder"));
}

/// A question as it goes over the line: flags, how many there are said to be, a name, a class.
fn question((flags, count): (u8, u8), labels: &[&str], class: u8) -> Vec<u8> {
    let mut bytes = vec![0, 7, flags, 0, 0, count, 0, 0, 0, 0, 0, 0];
    for label in labels {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 1, 0, class]);
    bytes
}

/// Flags and number of a question, its name, its class, and whom it seems to be for.
type Case = ((u8, u8), &'static [&'static str], u8, &'static str);

#[tokio::test]
async fn a_placeholder_in_a_question_is_told_whatever_is_wrong_with_the_question() {
    const PLAIN: (u8, u8) = (1, 1);
    let cases: [Case; 7] = [
        (PLAIN, &["_a", "HELD", "evil", "test"], 1, "HELD.evil.test"),
        (PLAIN, &["HELD_", "evil", "test"], 1, "evil.test"),
        (PLAIN, &["_a", "UPPER", "evil", "test"], 1, "HELD.evil.test"),
        // Of another class, of another kind, of two questions that are one, and no question at all.
        (PLAIN, &["HELD", "evil", "test"], 3, "HELD.evil.test"),
        ((0x10, 1), &["HELD", "evil", "test"], 1, "HELD.evil.test"),
        ((1, 2), &["HELD", "evil", "test"], 1, "0.0.0.0"),
        ((0x80, 1), &["HELD", "evil", "test"], 1, "HELD.evil.test"),
    ];
    for (head, labels, class, seems) in cases {
        let scene = scene().await;
        let ask = async |held: &str| {
            let upper = held.to_ascii_uppercase();
            let labels: Vec<_> =
                labels.iter().map(|it| it.replace("HELD", held).replace("UPPER", &upper)).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let question = question(head, &labels, class);
            socket.send_to(&question, scene.lab.dns_udp).await.unwrap();
        };
        ask("cofferdam-placeholder-0").await;
        scene.lab.settled().await;
        let is_alarm = |report: &ConnectionReport| {
            report.reason.as_deref().unwrap_or_default().starts_with("secret alarm")
        };
        assert!(!scene.lab.reports().iter().any(is_alarm), "control: {labels:?}");
        ask(HELD).await;
        let alarm = scene.alarm().await;
        let seems = seems.replace("HELD", HELD);
        assert_eq!((alarm.secret.as_str(), &*alarm.host, alarm.port), ("T", &*seems, 53));
        scene.lab.report(is_alarm).await;
    }
}

#[tokio::test]
async fn a_placeholder_in_what_is_refused_by_the_proxy_is_told() {
    for (request, seems) in [
        (
            "POST http://ok.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX: HELD\r\n\r\n",
            "ok.test",
        ),
        ("POST http://ok.test/ HTTP/1.1\nX: HELD\n\n", "ok.test"),
        ("CONNECT HELD@ok.test:443 HTTP/1.1\r\n\r\n", "0.0.0.0"),
        ("get HELD\r\n\r\n", HELD),
        ("\x05\x01\x00\x05\x01\x00\x03\x38a@HELD\x01\x44", "0.0.0.0"),
    ] {
        let scene = scene().await;
        let request = request.replace("HELD", HELD);
        let bytes: Vec<u8> = request.chars().map(|it| u8::try_from(it).unwrap()).collect();
        scene.lab.ask_proxy(&bytes).await;
        let alarm = scene.alarm().await;
        assert_eq!((alarm.secret.as_str(), &*alarm.host), ("T", seems), "{request:?}");
    }
}

#[tokio::test]
async fn a_placeholder_that_comes_in_pieces_is_told_with_its_last() {
    let scene = scene().await;
    let (mut tunnel, _) = scene.lab.tunnel(&format!("127.0.0.1:{}", scene.web.port)).await;
    let (first, last) = HELD.split_at(30);
    tunnel.write_all(first.as_bytes()).await.unwrap();
    scene.lab.settle(&scene.web, first.len()).await;
    assert!(scene.is_quiet());
    tunnel.write_all(last.as_bytes()).await.unwrap();
    rest(&mut tunnel).await;
    assert_eq!(scene.alarm().await.secret.as_str(), "T");
    assert_eq!(scene.web.text(), first);
}

#[tokio::test]
async fn what_has_no_placeholder_passes_as_it_is() {
    let scene = scene().await;
    let target = format!("ok.test:{}", scene.web.port);
    let (tunnel, _) = scene.lab.tunnel(&target).await;
    let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\nX: cofferdam-placeholder-\r\n\r\n");
    let answer = answered(tunnel, request.as_bytes()).await;
    assert!(answer.ends_with(b"hello"));
    assert!(scene.is_quiet());
    let report = scene.lab.report(|report| report.bytes_down > 0).await;
    assert_eq!(report.decision, ConnectionDecision::Allowed);
}

impl Lab {
    /// Waits until a server was sent so many bytes.
    async fn settle(&self, server: &Server, bytes: usize) {
        soon(async {
            while server.text().len() < bytes {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}
