//! Sockets: where a server listens, what it takes in, and how it ends.

use crate::stage::{Stage, request};
use axum::body::Body;
use cofferdam_core::ErrorKind;
use cofferdam_server::{Bound, HEAD_TIME, Listen, MAX_HEAD_BYTES, MAX_SOCKET_PATH_BYTES};
use cofferdam_session::InitState;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tower::ServiceExt;

async fn bind(text: &str) -> cofferdam_core::Result<Bound> {
    text.parse::<Listen>().unwrap().bind().await
}

/// A server that serves until the sender is dropped.
async fn serving(
    stage: &Stage,
    bound: Bound,
) -> (oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let (end, ends) = oneshot::channel::<()>();
    let server = stage.server.clone();
    let task = tokio::spawn(async move {
        server.serve(bound, async { drop(ends.await) }).await.unwrap();
    });
    (end, task)
}

async fn talk(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    String::from_utf8_lossy(&answer).into_owned()
}

const ASK: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

fn address(bound: &Bound) -> String {
    bound.at().to_string().trim_start_matches("http://").to_owned()
}

#[tokio::test]
async fn an_address_that_others_reach_needs_keys() {
    let stage = Stage::new().await;
    stage.key("a").await;
    let bound = bind("0.0.0.0:0").await.unwrap();
    let refused = stage.server.serve(bound, std::future::ready(())).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Denied);
    let strict = Stage::with(|options| options.keys_only = true).await;
    let bound = bind("0.0.0.0:0").await.unwrap();
    strict.server.serve(bound, std::future::ready(())).await.unwrap();
    assert_eq!(strict.ask("", "GET /v1/sandboxes", "").await.status, 401);
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused_and_a_good_one_is_not() {
    let stage = Stage::new().await;
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    let padded = |bytes: usize| {
        let pad = "x".repeat(bytes);
        format!(
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-pad: {pad}\r\nconnection: close\r\n\r\n"
        )
    };
    let answer =
        talk(TcpStream::connect(&address).await.unwrap(), &padded(4 * MAX_HEAD_BYTES)).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    // To the byte, whatever comes of it at once.
    let most = MAX_HEAD_BYTES - padded(0).len();
    for (bytes, status) in [(most / 2, 200), (most, 200), (most + 1, 431), (2 * most, 431)] {
        let answer = talk(TcpStream::connect(&address).await.unwrap(), &padded(bytes)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes}: {answer}");
    }
    drop(end);
    task.await.unwrap();
    assert!(TcpStream::connect(&address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_comes_is_given_up() {
    let stage = Stage::new().await;
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    // Without a limit this would wait for ever.
    let answer = talk(TcpStream::connect(&address).await.unwrap(), "GET /healthz HT").await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(end);
    task.await.unwrap();
}

/// A connection with a request of which the answer has begun.
async fn asked(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn connections_beyond_the_most_wait_for_room() {
    let stage = Stage::with(|options| options.max_connections = 2).await;
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    let mut held = vec![asked(&address, "/v1/events/stream").await];
    // Another one has a request whose body does not come.
    let mut other = TcpStream::connect(&address).await.unwrap();
    let head = "POST /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 2\r\nexpect: 100-continue\r\n\r\n";
    other.write_all(head.as_bytes()).await.unwrap();
    let mut goes_on = [0; 12];
    other.read_exact(&mut goes_on).await.unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100");
    held.push(other);
    let mut third = TcpStream::connect(&address).await.unwrap();
    third.write_all(ASK.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    let early = tokio::time::timeout(Duration::from_millis(200), third.read_exact(&mut first));
    assert!(early.await.is_err(), "{first:?}");
    held.pop();
    let mut rest = String::new();
    third.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("200 OK"), "{rest}");
    drop((held, end));
    task.await.unwrap();
}

#[tokio::test]
async fn connections_that_ask_for_nothing_shut_nobody_out() {
    let stage = Stage::with(|options| options.max_connections = 4).await;
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    let mut stream = asked(&address, "/v1/events/stream").await;
    let mut answered = asked(&address, "/healthz").await;
    // Some never say anything, and some never enough.
    let mut silent = Vec::new();
    for n in 0..12 {
        let mut one = TcpStream::connect(&address).await.unwrap();
        let said = if n % 2 == 0 { "" } else { "GET /healthz HT" };
        one.write_all(said.as_bytes()).await.unwrap();
        silent.push(one);
    }
    for _ in 0..3 {
        // Before those that say nothing are given up by themselves.
        let answer = talk(TcpStream::connect(&address).await.unwrap(), ASK);
        let answer = tokio::time::timeout(HEAD_TIME / 2, answer).await.unwrap();
        assert!(answer.contains("200 OK"), "{answer}");
    }
    // Who was answered and then waited longest made room, after the whole answer.
    let mut rest = String::new();
    answered.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with(r#"{"status":"ok"}"#), "{rest}");
    // Whoever has a request goes on.
    stage.sandbox("", "a").await;
    let mut told = String::new();
    while !told.contains("provisioned") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "it was broken off: {told}");
        told.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    drop((stream, silent, end));
    task.await.unwrap();
}

#[tokio::test]
async fn strangers_who_read_nothing_shut_nobody_out() {
    let stage = Stage::with(|options| options.max_connections = 4).await;
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    let mut stream = asked(&address, "/v1/events/stream").await;
    let mut strangers = Vec::new();
    // More answers than there is room for on the way, of which nobody takes one.
    let asks = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(64);
    for _ in 0..8 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        let mut one = socket.connect(address.parse().unwrap()).await.unwrap();
        one.write_all(asks.as_bytes()).await.unwrap();
        strangers.push(one);
    }
    for _ in 0..2 {
        let answer = talk(TcpStream::connect(&address).await.unwrap(), ASK);
        let answer = tokio::time::timeout(HEAD_TIME, answer).await.unwrap();
        assert!(answer.contains("200 OK"), "{answer}");
    }
    stage.sandbox("", "a").await;
    let mut told = String::new();
    while !told.contains("provisioned") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "who is known was broken off: {told}");
        told.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    drop((stream, strangers, end));
    task.await.unwrap();
}

#[tokio::test]
async fn what_counts_for_nobody_holds_no_places_though_who_asks_is_known() {
    let stage = Stage::with(|options| options.max_connections = 4).await;
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    // Who asked is known, and then asks for what anybody is told, and takes none of it.
    let known = "GET /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let open = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(64);
    let mut unread = Vec::new();
    for _ in 0..8 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2048).unwrap();
        let mut one = socket.connect(address.parse().unwrap()).await.unwrap();
        one.write_all(format!("{known}{open}").as_bytes()).await.unwrap();
        unread.push(one);
    }
    for _ in 0..2 {
        let answer = talk(TcpStream::connect(&address).await.unwrap(), ASK);
        let answer = tokio::time::timeout(HEAD_TIME, answer).await.unwrap();
        assert!(answer.contains("200 OK"), "{answer}");
    }
    drop((unread, end));
    task.await.unwrap();
}

#[tokio::test]
async fn a_socket_is_private_and_goes_with_its_server() {
    let stage = Stage::new().await;
    let path = stage.state.join("c.sock");
    let place = format!("unix:{}", path.display());
    let bound = bind(&place).await.unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let taken = bind(&place).await.unwrap_err();
    assert_eq!(taken.kind, ErrorKind::Conflict);
    stage.key("a").await;
    let (end, task) = serving(&stage, bound).await;
    // Whoever may use the file is the user whose server it is, whatever keys there are.
    let ask = "GET /v1/sandboxes HTTP/1.1\r\nhost: anything\r\nconnection: close\r\n\r\n";
    let answer = talk(UnixStream::connect(&path).await.unwrap(), ask).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(end);
    task.await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn the_path_of_a_socket_may_be_as_long_as_the_kernel_takes() {
    let stage = Stage::new().await;
    let padded = |bytes: usize| {
        let begun = stage.state.join("s").display().to_string();
        format!("{begun}{}", "s".repeat(bytes - begun.len()))
    };
    for bytes in [100, 101, MAX_SOCKET_PATH_BYTES] {
        let path = padded(bytes);
        let bound = bind(&format!("unix:{path}")).await.unwrap();
        let (end, task) = serving(&stage, bound).await;
        let answer = talk(UnixStream::connect(&path).await.unwrap(), ASK).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{bytes}: {answer}");
        drop(end);
        task.await.unwrap();
        assert!(!Path::new(&path).exists(), "{bytes}");
    }
    let long = format!("unix:{}", padded(MAX_SOCKET_PATH_BYTES + 1));
    let refused = long.parse::<Listen>().unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Usage);
    assert!(refused.message.contains("more than 107 bytes"), "{refused}");
}

#[tokio::test]
async fn only_a_socket_that_nobody_listens_on_is_replaced() {
    let stage = Stage::new().await;
    let path = stage.state.join("c.sock");
    let place = format!("unix:{}", path.display());
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a stale one");
    let bound = bind(&place).await.unwrap();
    // One that somebody else put there meanwhile is left.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "mine").unwrap();
    drop(bound);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(bind(&place).await.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    assert_left(&stage.state);
}

fn assert_left(state: &Path) {
    let names = std::fs::read_dir(state).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("c.sock.")), "{names:?}");
}

#[tokio::test]
async fn a_stream_is_cut_when_the_server_ends() {
    let stage = Stage::new().await;
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(b"GET /v1/events/stream HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    drop(end);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_init_that_the_end_of_a_server_cut_off_is_finished_by_the_next_one() {
    let stage = Stage::new().await;
    let wish = r#"{"init":["tick=began sleep=300000","tick=then"]}"#;
    let asked = request("", "PUT /v1/sandboxes/a").body(Body::from(wish)).unwrap();
    let answer = tokio::spawn(stage.router.clone().oneshot(asked));
    while stage.backend.ticks("began") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (end, task) = serving(&stage, bind("127.0.0.1:0").await.unwrap()).await;
    drop(end);
    task.await.unwrap();
    assert_eq!(answer.await.unwrap().unwrap().status(), 503);
    let id = stage.sessions.find("a").await.unwrap();
    let init = async || stage.sessions.status(&id).await.unwrap().init;
    assert_eq!(init().await, InitState::Pending, "it is cut off");
    let next = stage.next_server();
    let bound = bind("127.0.0.1:0").await.unwrap();
    let done = async {
        while init().await != InitState::Done {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let finished = tokio::time::timeout(Duration::from_secs(900), done);
    next.serve(bound, async { finished.await.unwrap() }).await.unwrap();
    assert_eq!((stage.backend.ticks("began"), stage.backend.ticks("then")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_one_owner_that_nobody_reads_have_a_limit_in_bytes() {
    let stage = Stage::with(|options| options.max_connections = 64).await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = address(&bound);
    let (end, task) = serving(&stage, bound).await;
    let body = r#"{"exec":{"argv":["bytes=16777216"]},"capture_bytes":16777216}"#;
    let run = format!(
        "POST /v1/run HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {alice}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let look = |key: &str| {
        format!(
            "GET /v1/sandboxes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
             connection: close\r\n\r\n"
        )
    };
    let looks =
        async |key: &str| talk(TcpStream::connect(&address).await.unwrap(), &look(key)).await;
    let mut unread = Vec::new();
    // Each is a little longer than its output, and the largest is none of those that count.
    for n in 0..5 {
        let allowed = looks(&alice).await;
        assert!(allowed.starts_with("HTTP/1.1 200"), "{n}: {allowed}");
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(run.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200", "{n}");
        unread.push(stream);
    }
    let refused = looks(&alice).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("retry-after: 1") && refused.contains("nobody has read"), "{refused}");
    assert!(looks(&bob).await.starts_with("HTTP/1.1 200"), "of others nothing waits");
    // Who reads one of them may ask again.
    let mut bytes = vec![0; 16 << 20];
    unread[0].read_exact(&mut bytes).await.unwrap();
    drop(unread.pop());
    let again = async {
        while !looks(&alice).await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), again).await.unwrap();
    drop((unread, end));
    task.await.unwrap();
}
