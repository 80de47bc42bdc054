//! Servers inside sandboxes, reached by way of the real server.

use crate::http_client::{Answered, Served};
use crate::http_layers::Line;
use crate::place::{PYTHON, Place, everyone};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

const S: &str = "/v1/sandboxes/s";

/// Answers every request with its own head, and speaks something else where it is asked to.
const INSIDE: &str = "
import socket, threading
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', 3100))
listener.listen(64)
def serve(stream):
    head = b''
    while b'\\r\\n\\r\\n' not in head:
        piece = stream.recv(65536)
        if not piece:
            return
        head += piece
    head, _, rest = head.partition(b'\\r\\n\\r\\n')
    if b'upgrade: shout' in head.lower():
        stream.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nconnection: upgrade\\r\\nupgrade: shout\\r\\n\\r\\n')
        while True:
            piece = rest or stream.recv(65536)
            rest = b''
            if not piece:
                return
            stream.sendall(piece.upper())
    answers = {
        b'/long': b'200 OK\\r\\nx-long: ' + b'x' * (256 << 10),
        b'/below': b'200 OK\\r\\nx-long: ' + b'x' * (200 << 10),
        b'/fields': b'200 OK' + b'\\r\\nx-one: 1' * 101,
        b'/few': b'200 OK' + b'\\r\\nx-one: 1' * 100,
        b'/unasked': b'101 Switching Protocols\\r\\nconnection: upgrade\\r\\nupgrade: shout',
    }
    answer = answers.get(head.split()[1])
    if answer:
        stream.sendall(b'HTTP/1.1 ' + answer + b'\\r\\n\\r\\n')
        return stream.close()
    if b'GET /endless ' in head:
        stream.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\nbeginning')
        while stream.recv(65536):
            pass
    stream.sendall(b'HTTP/1.1 200 OK\\r\\nx-inside: yes\\r\\ncontent-length: %d\\r\\n\\r\\n' % len(head) + head)
    stream.close()
print('ready', flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
";

fn box_with_server(place: &Place) -> Served {
    let server = Served::new(place);
    server.say("POST /v1/sandboxes", &json!({"name": "s"})).is(201);
    server
}

fn start_inside(place: &Place) {
    place.says(&["exec", "--detach", "--id", "web", "s", "--", PYTHON, "-c", INSIDE], 0);
    let line = "until grep -qi ':0C1C .* 0A ' /proc/net/tcp; do sleep 0.02; done";
    place.says(&["exec", "s", "--shell", line], 0);
}

fn open(server: &Served) -> String {
    let opened = server.say(&format!("POST {S}/ports"), &json!({"port": 3100})).is(201).object();
    assert_eq!(opened["port"], 3100);
    opened["url"].as_str().unwrap().to_owned()
}

/// The host in an address.
fn host(url: &str) -> &str {
    url.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).unwrap()
}

/// Asks for an address at the server, and gives all that is answered.
fn ask(server: &Served, host: &str, rest: &str) -> String {
    ask_for(server, host, "/a?b=c", rest)
}

fn ask_for(server: &Served, host: &str, path: &str, rest: &str) -> String {
    let mut stream = server.connect();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{rest}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_port_has_an_address_that_nobody_guesses() {
    everyone(|place| {
        let server = box_with_server(place);
        let url = open(&server);
        let host = host(&url).to_owned();
        assert!(host.ends_with(&format!(".localhost:{}", server.at.split(':').nth(1).unwrap())));
        // Nobody listens inside yet.
        let early = ask(&server, &host, "");
        assert!(early.starts_with("HTTP/1.1 502"), "{early}");
        assert!(early.contains("nobody listens on port 3100 of the sandbox"), "{early}");
        start_inside(place);
        // Pages of other origins are for the program inside to judge, as its headers are.
        let more = "origin: https://elsewhere.example\r\nx-mine: 1\r\nproxy-connection: keep-alive\r\n\
             connection: host\r\n";
        let said = ask(&server, &host, more);
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        let said = said.to_lowercase();
        for part in ["x-inside: yes", "get /a?b=c http/1.1", "x-mine: 1", &format!("host: {host}")]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("proxy-connection"), "{said}");
        // Asked for again it is the same, and others of the kind are nothing.
        let again = server.say(&format!("POST {S}/ports"), &json!({"port": 3100})).is(200);
        assert_eq!(again.object()["url"], url);
        let listed = server.get(&format!("GET {S}/ports")).is(200).object();
        assert_eq!(listed["ports"].as_array().unwrap().len(), 1);
        let other: String = host.chars().map(|c| if c == 'a' { 'b' } else { c }).rev().collect();
        let wrong = format!("{}.localhost", &"a".repeat(32));
        assert!(ask(&server, &wrong, "").starts_with("HTTP/1.1 404"));
        assert!(ask(&server, &other, "").starts_with("HTTP/1.1 421"));
        let elsewhere = host.replace("localhost", "evil.test");
        assert!(ask(&server, &elsewhere, "").starts_with("HTTP/1.1 421"));
        server.send(&format!("DELETE {S}/ports/3100"), &[], b"").is(204);
        server.send(&format!("DELETE {S}/ports/3100"), &[], b"").is(404);
        assert!(ask(&server, &host, "").starts_with("HTTP/1.1 404"));
    });
}

#[test]
fn what_is_wrong_with_the_answer_of_a_program_inside_is_told() {
    everyone(|place| {
        let server = box_with_server(place);
        start_inside(place);
        let url = open(&server);
        let head = "the head of what the program inside answers";
        for (path, status, told) in [
            ("/few", 200, ""),
            ("/fields", 502, head),
            ("/below", 200, ""),
            ("/long", 502, head),
            ("/unasked", 502, "for which nobody asked"),
        ] {
            let said = ask_for(&server, host(&url), path, "");
            let line = said.lines().next().unwrap_or_default();
            assert!(line.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {line}");
            assert!(said.contains(told), "{path}: {said}");
        }
    });
}

/// A connection to an address that speaks something else from now on.
fn shouting(server: &Served, host: &str) -> TcpStream {
    let head = "GET / HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: shout\r\n";
    let mut stream = server.connect();
    stream.write_all(format!("{head}host: {host}\r\n\r\n").as_bytes()).unwrap();
    let answer = until_ends_with(&mut stream, b"\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    stream
}

fn until_ends_with(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    while !answer.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    answer
}

fn shouts(stream: &mut TcpStream) {
    stream.write_all(b"quietly").unwrap();
    let mut back = [0; 7];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"QUIETLY");
}

/// Somebody with a key, a sandbox, and an address of the server in it.
struct Exposed {
    authorization: String,
    host: String,
}

impl Exposed {
    fn new(place: &Place, server: &Served, name: &str) -> Self {
        let key = place.says(&["key", "create", name], 0).text();
        let mut all = Self { authorization: format!("Bearer {}", key.trim()), host: String::new() };
        all.say(server, "POST /v1/sandboxes", &json!({"name": "s"})).is(201);
        let inside = json!({"argv": [PYTHON, "-c", INSIDE], "detached": true});
        all.say(server, &format!("POST {S}/execs"), &inside).is(201);
        let line = "until grep -qi ':0C1C .* 0A ' /proc/net/tcp; do sleep 0.02; done";
        let begun = all.say(server, &format!("POST {S}/execs"), &json!({"shell": line})).is(201);
        let wait = format!("GET {S}/execs/{}/wait", begun.object()["id"].as_str().unwrap());
        let ended = all.say(server, &wait, &json!({})).is(200).object();
        assert_eq!(ended["exit_code"], 0, "{ended}");
        all.open(server);
        all
    }

    fn say(&self, server: &Served, line: &str, body: &Value) -> Answered {
        let key = ("authorization", self.authorization.as_str());
        let headers = [key, ("content-type", "application/json")];
        server.send(line, &headers, body.to_string().as_bytes())
    }

    fn open(&mut self, server: &Served) {
        let opened = self.say(server, &format!("POST {S}/ports"), &json!({"port": 3100})).is(201);
        self.host = host(opened.object()["url"].as_str().unwrap()).to_owned();
    }

    /// Connections that do not end by themselves: an upgraded one, and an endless answer.
    fn standing(&self, server: &Served) -> [TcpStream; 2] {
        let mut endless = server.connect();
        let head = format!("GET /endless HTTP/1.1\r\nhost: {}\r\n\r\n", self.host);
        endless.write_all(head.as_bytes()).unwrap();
        until_ends_with(&mut endless, b"beginning");
        [shouting(server, &self.host), endless]
    }
}

#[test]
fn an_address_and_what_goes_over_it_end_with_the_key() {
    everyone(|place| {
        let server = Served::new(place);
        let mut hers = Exposed::new(place, &server, "alice");
        let his = Exposed::new(place, &server, "bob");
        let mut of_hers = hers.standing(&server);
        let mut of_his = his.standing(&server);
        shouts(&mut of_hers[0]);
        place.says(&["key", "revoke", "alice"], 0);
        assert!(ask(&server, &hers.host, "").starts_with("HTTP/1.1 404"));
        for stream in &mut of_hers {
            // To its end, or to where it is reset, and not until nobody waits any more.
            let read = stream.read_to_end(&mut Vec::new());
            let is_reset = |error: std::io::Error| error.kind() == ErrorKind::ConnectionReset;
            assert!(read.map_or_else(is_reset, |_| true));
        }
        // The control: another's go on.
        assert!(ask(&server, &his.host, "").starts_with("HTTP/1.1 200"));
        shouts(&mut of_his[0]);
        // A key of the same name has the sandbox, and an address of its own.
        let key = place.says(&["key", "create", "alice"], 0).text();
        hers.authorization = format!("Bearer {}", key.trim());
        let before = hers.host.clone();
        let listed = hers.say(&server, &format!("GET {S}/ports"), &json!({})).is(200).object();
        assert_eq!(listed["ports"], json!([]));
        hers.open(&server);
        assert_ne!(hers.host, before);
        assert!(ask(&server, &hers.host, "").starts_with("HTTP/1.1 200"));
        assert!(ask(&server, &before, "").starts_with("HTTP/1.1 404"));
    });
}

#[test]
fn what_speaks_something_else_passes_and_a_removed_sandbox_is_gone() {
    everyone(|place| {
        let server = box_with_server(place);
        start_inside(place);
        let url = open(&server);
        let host = host(&url);
        let mut stream = shouting(&server, host);
        for _ in 0..3 {
            shouts(&mut stream);
        }
        place.says(&["rm", "s"], 0);
        assert!(ask(&server, host, "").starts_with("HTTP/1.1 404"));
    });
}

#[test]
fn a_program_connects_over_a_web_socket() {
    everyone(|place| {
        let server = box_with_server(place);
        let path = format!("{S}/ports/3100/connect");
        assert_eq!(server.get(&format!("GET {path}")).status, 426);
        start_inside(place);
        let mut line = Line::open(&server, &path);
        line.send(2, b"GET /over HTTP/1.0\r\n");
        line.send(2, b"\r\n");
        line.send(2, b"");
        let mut all = Vec::new();
        loop {
            let (opcode, bytes) = line.message();
            assert_eq!(opcode, 2);
            if bytes.is_empty() {
                break;
            }
            all.extend(bytes);
        }
        let text = String::from_utf8_lossy(&all).into_owned();
        assert!(text.contains("GET /over HTTP/1.0"), "{text}");
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    everyone(|place| {
        let server = box_with_server(place);
        let ports = format!("POST {S}/ports");
        let bad: [(Value, u16); 4] = [
            (json!({"port": 0}), 400),
            (json!({"port": 70000}), 400),
            (json!({}), 400),
            (json!({"port": 1, "more": 2}), 400),
        ];
        for (wish, status) in bad {
            server.say(&ports, &wish).is(status);
        }
        server.say("POST /v1/sandboxes/nobody/ports", &json!({"port": 1})).is(404);
        for port in 1..=64 {
            server.say(&ports, &json!({"port": port})).is(201);
        }
        let full = server.say(&ports, &json!({"port": 65})).is(409);
        assert!(full.text().contains("64 ports"), "{}", full.text());
        // Addresses of a sandbox that is gone are in nobody's way.
        server.send(&format!("DELETE {S}"), &[], b"").is(204);
        server.say("PUT /v1/sandboxes/other", &json!({})).is(201);
        server.say("POST /v1/sandboxes/other/ports", &json!({"port": 65})).is(201);
    });
}
