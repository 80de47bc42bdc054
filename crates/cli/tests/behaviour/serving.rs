//! What the server promises, shown by the real program: who sees what, and what outlives it.

use crate::place::{PYTHON, Place, SOON, ended, everyone, outcome, started, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Nobody's user, neither root's nor that of the places.
const STRANGER: u32 = 65_533;

/// A server, ended with the value.
pub(crate) struct Serving {
    child: Child,
    address: String,
}

/// An answer: its status and what came with it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

impl Serving {
    /// Starts a server on a free port and waits until it listens.
    pub(crate) fn start(place: &Place, words: &[&str]) -> Self {
        Self::start_with(place, words, &[])
    }

    /// The same with these variables in its environment.
    pub(crate) fn start_with(place: &Place, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let words = [&["serve", "--listen", "127.0.0.1:0", "--no-workspace"], words].concat();
        let mut command = place.cofferdam(&words);
        command.envs(variables.iter().copied());
        let mut child = started(command.stderr(Stdio::piped()));
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        assert!(line.contains("listening on http://"), "{line}");
        // What it says later must not stop it.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address }
    }

    /// Sends a request and leaves the connection to whoever reads it.
    pub(crate) fn send(&self, key: &str, line: &str, body: &str, more: &str) -> TcpStream {
        let (method, path) = line.split_once(' ').unwrap();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let host = if more.contains("host:") { "" } else { "host: localhost\r\n" };
        let key =
            if key.is_empty() { String::new() } else { format!("authorization: Bearer {key}\r\n") };
        let length = body.len();
        let close = if more.contains("connection:") { "" } else { "connection: close\r\n" };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{host}{key}{more}content-type: application/json\r\n\
             content-length: {length}\r\n{close}\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Asks, with a key or without one if it is empty.
    pub(crate) fn ask(&self, key: &str, line: &str, body: &str) -> Told {
        told(self.send(key, line, body, ""))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it end as an operator does.
    pub(crate) fn end(mut self, place: &Place, signal: &str) {
        let id = self.child.id().to_string();
        outcome(place.host("/bin/kill").args([signal, &id]), SOON);
        let status = until(SOON, || self.child.try_wait().unwrap()).unwrap();
        assert_eq!(status.success(), signal == "-TERM", "{status:?}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads an answer whose connection ends with it.
pub(crate) fn told(mut stream: impl Read) -> Told {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Told { status, body: body.to_owned() }
}

pub(crate) fn key(place: &Place, name: &str) -> String {
    place.says(&["key", "create", name], 0).text().trim().to_owned()
}

pub(crate) fn exec(serving: &Serving, key: &str, sandbox: &str, line: &str) -> String {
    let body = json!({ "shell": line }).to_string();
    let told = serving.ask(key, &format!("POST /v1/sandboxes/{sandbox}/execs"), &body);
    assert_eq!(told.status, 201, "{}", told.body);
    told.json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_tenant_gets_nothing_of_another() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        let (alice, bob) = (key(place, "alice"), key(place, "bob"));
        assert_eq!(serving.ask("", "GET /v1/sandboxes", "").status, 401);
        let made = serving.ask(&alice, "PUT /v1/sandboxes/hers", "{}");
        assert_eq!(made.status, 201, "{}", made.body);
        let id = made.json()["id"].as_str().unwrap().to_owned();
        let exec = exec(&serving, &alice, "hers", "echo secret; sleep 60");
        for sandbox in ["hers", &id] {
            for (line, body) in [
                (format!("GET /v1/sandboxes/{sandbox}"), ""),
                (format!("POST /v1/sandboxes/{sandbox}/pause"), ""),
                (format!("POST /v1/sandboxes/{sandbox}/stop"), ""),
                (format!("POST /v1/sandboxes/{sandbox}/execs"), r#"{"argv":["id"]}"#),
                (format!("GET /v1/sandboxes/{sandbox}/execs"), ""),
                (format!("GET /v1/sandboxes/{sandbox}/execs/{exec}"), ""),
                (format!("GET /v1/sandboxes/{sandbox}/execs/{exec}/output?stream=stdout"), ""),
                (format!("GET /v1/sandboxes/{sandbox}/execs/{exec}/stream"), ""),
                (format!("POST /v1/sandboxes/{sandbox}/execs/{exec}/signal"), r#"{"signal":9}"#),
                (format!("GET /v1/events?sandbox={sandbox}"), ""),
                (format!("DELETE /v1/sandboxes/{sandbox}"), ""),
            ] {
                let told = serving.ask(&bob, &line, body);
                assert_eq!(told.status, 404, "{line}: {}", told.body);
            }
        }
        assert_eq!(serving.ask(&bob, "GET /v1/events", "").json()["events"], json!([]));
        // The owner finds it as it was, and the command goes on.
        let own = serving.ask(&alice, &format!("GET /v1/sandboxes/{id}/execs/{exec}"), "");
        assert_eq!((own.status, &own.json()["ended_ms"]), (200, &json!(null)));
        let output = format!("GET /v1/sandboxes/hers/execs/{exec}/output?stream=stdout");
        let is_told = || {
            let part = serving.ask(&alice, &output, "").json();
            (part["text"] == "secret\n").then_some(())
        };
        until(SOON, is_told).unwrap();
        serving.end(place, "-TERM");
    });
}

#[test]
fn a_name_that_is_bent_here_is_refused() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        for more in ["host: evil.test\r\n", "host: localhost\r\norigin: http://evil.test\r\n"] {
            let told = told(serving.send("", "GET /v1/sandboxes", "", more));
            assert!([421, 403].contains(&told.status), "{more}: {told:?}");
        }
        let port = serving.address.rsplit(':').next().unwrap();
        let more = format!("host: localhost:{port}\r\n");
        assert_eq!(told(serving.send("", "GET /v1/sandboxes", "", &more)).status, 200);
    });
}

/// A client in Python: it asks for the list of sandboxes and prints the status of the answer.
const ASKS: &str = "import http.client, sys\nc = http.client.HTTPConnection(sys.argv[1])\n\
     h = {'Authorization': 'Bearer ' + sys.argv[2]} if sys.argv[2] else {}\n\
     c.request('GET', '/v1/sandboxes', headers=h)\nprint(c.getresponse().status)\n";

#[test]
fn another_user_of_the_machine_needs_a_key() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        let status = |mut who: std::process::Command, key: &str| {
            let out = who.args(["-I", "-c", ASKS, &serving.address, key]).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8(out.stdout).unwrap().trim().to_owned()
        };
        // The control: their own user does not.
        assert_eq!(status(place.host(PYTHON), ""), "200");
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let stranger = || {
            let mut command = std::process::Command::new(PYTHON);
            command.uid(STRANGER).gid(STRANGER);
            command
        };
        assert_eq!(status(stranger(), ""), "401");
        assert_eq!(status(stranger(), &key(place, "theirs")), "200");
        // From now on everybody does.
        assert_eq!(status(place.host(PYTHON), ""), "401");
    });
}

#[test]
fn an_address_that_others_reach_is_refused_without_keys() {
    everyone(|place| {
        let said = place.says(&["serve", "--listen", "0.0.0.0:0", "--no-workspace"], 1);
        assert!(said.stderr.contains("key create"), "{}", said.stderr);
    });
}

#[test]
fn who_reads_slowly_stops_nobody() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        assert_eq!(serving.ask("", "PUT /v1/sandboxes/s", "{}").status, 201);
        let loud = exec(&serving, "", "s", "yes | head -c 40000000");
        let line = format!("GET /v1/sandboxes/s/execs/{loud}/stream");
        // Nobody reads from these.
        let idle: Vec<TcpStream> = (0..20).map(|_| serving.send("", &line, "", "")).collect();
        let told = serving.ask("", &format!("GET /v1/sandboxes/s/execs/{loud}/wait"), "");
        assert_eq!(told.json()["stdout"]["written"], 40_000_000);
        let other = exec(&serving, "", "s", "echo quick");
        let quick = serving.ask("", &format!("GET /v1/sandboxes/s/execs/{other}/stream"), "");
        assert!(quick.body.contains("quick") && quick.body.contains("event: end"), "{quick:?}");
        drop(idle);
        serving.end(place, "-TERM");
    });
}

#[test]
fn what_runs_outlives_the_server_and_is_found_by_the_next() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        assert_eq!(serving.ask("", "PUT /v1/sandboxes/s", "{}").status, 201);
        let done = exec(&serving, "", "s", "echo done");
        let wait = format!("GET /v1/sandboxes/s/execs/{done}/wait");
        assert_eq!(serving.ask("", &wait, "").json()["ending"], "exited");
        let gate = "until [ -e go ]; do sleep 0.05; done; echo after";
        let running = exec(&serving, "", "s", gate);
        // Under load: commands are being started, runs begun, streams followed.
        let followed = format!("GET /v1/sandboxes/s/execs/{running}/stream");
        let streams: Vec<TcpStream> = (0..5).map(|_| serving.send("", &followed, "", "")).collect();
        let slow = json!({ "exec": { "shell": "sleep 60" } }).to_string();
        let runs: Vec<TcpStream> =
            (0..3).map(|_| serving.send("", "POST /v1/run", &slow, "")).collect();
        let starts: Vec<TcpStream> = (0..5)
            .map(|n| {
                let more = format!("idempotency-key: k{n}\r\n");
                serving.send("", "POST /v1/sandboxes/s/execs", r#"{"argv":["true"]}"#, &more)
            })
            .collect();
        serving.end(place, "-KILL");
        drop((streams, runs, starts));
        let next = Serving::start(place, &[]);
        assert_eq!(next.ask("", "GET /v1/sandboxes/s", "").json()["phase"], "running");
        assert_eq!(next.ask("", &wait, "").json()["ending"], "exited");
        // Asked again, each runs once, whether it was started before or not.
        for n in 0..5 {
            for _ in 0..2 {
                let more = format!("idempotency-key: k{n}\r\n");
                let body = r#"{"argv":["true"]}"#;
                let told = told(next.send("", "POST /v1/sandboxes/s/execs", body, &more));
                assert!([200, 201].contains(&told.status), "{told:?}");
            }
        }
        let all = next.ask("", "GET /v1/sandboxes/s/execs", "").json();
        assert_eq!(all["execs"].as_array().unwrap().len(), 7, "{all}");
        exec(&next, "", "s", "touch go");
        let rest = next.ask("", &followed, "");
        assert!(rest.body.contains("after") && rest.body.contains("event: end"), "{rest:?}");
        // The runs went with who asked for them, and left nothing.
        let left = until(SOON, || {
            place.says(&["gc"], 0);
            let listed = next.ask("", "GET /v1/sandboxes", "").json();
            (listed["sessions"].as_array().unwrap().len() == 1).then_some(())
        });
        left.unwrap();
        next.end(place, "-TERM");
    });
}

#[test]
fn a_server_that_ends_waits_for_no_command() {
    everyone(|place| {
        let allowed = place.workspace.to_str().unwrap();
        let serving = Serving::start(place, &["--allow-workspace", allowed]);
        // One whose end is to be a point of the history, with a receipt.
        let body = json!({ "workspace": allowed, "copy_on_write": true }).to_string();
        assert_eq!(serving.ask("", "PUT /v1/sandboxes/s", &body).status, 201);
        let gate = "until [ -e go ]; do sleep 0.05; done; echo after";
        let wish = json!({ "shell": gate, "receipt": true }).to_string();
        let started = serving.ask("", "POST /v1/sandboxes/s/execs", &wish);
        assert_eq!(started.status, 201, "{}", started.body);
        let running = started.json()["id"].as_str().unwrap().to_owned();
        let in_shell = json!({ "text": "sleep 60" }).to_string();
        let waiting = serving.send("", "POST /v1/sandboxes/s/shells/a/run", &in_shell, "");
        let by_tool = json!({ "sandbox": "s", "command": "sleep 60" }).to_string();
        let tool = serving.send("", "POST /v1/tools/everruns/sandbox_exec", &by_tool, "");
        let all_run = || {
            let all = serving.ask("", "GET /v1/sandboxes/s/execs", "").json();
            (all["execs"].as_array().unwrap().len() == 3).then_some(())
        };
        until(SOON, all_run).unwrap();
        serving.end(place, "-TERM");
        // Who waits for a shell is told how it stands; who waited for a tool is cut off.
        assert_eq!(told(waiting).json()["exit_code"], Value::Null);
        drop(tool);
        let next = Serving::start(place, &[]);
        exec(&next, "", "s", "touch go");
        let wait = format!("GET /v1/sandboxes/s/execs/{running}/wait");
        assert_eq!(next.ask("", &wait, "").json()["ending"], "exited");
        next.end(place, "-TERM");
    });
}

#[test]
fn a_run_ends_when_its_caller_hangs_up() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        let slow = json!({ "exec": { "shell": "sleep 60" } }).to_string();
        // On one that is to be closed anyway the server does not read on, and sees no end.
        let stream = serving.send("", "POST /v1/run", &slow, "connection: keep-alive\r\n");
        let phases = |wanted: &[&str]| {
            until(SOON, || {
                let listed = serving.ask("", "GET /v1/sandboxes", "").json();
                let sessions = listed["sessions"].as_array().unwrap();
                let phases = sessions.iter().map(|session| session["phase"].as_str().unwrap());
                phases.eq(wanted.iter().copied()).then_some(())
            })
        };
        phases(&["running"]).unwrap();
        drop(stream);
        phases(&[]).unwrap();
        let audit = || {
            let audit = serving.ask("", "GET /v1/audit", "").json();
            audit["entries"].as_array().unwrap().first().map(|entry| entry["status"].clone())
        };
        assert_eq!(until(SOON, audit).unwrap(), 0);
        serving.end(place, "-TERM");
    });
}

#[test]
fn a_socket_serves_its_owner_and_is_gone_at_the_end() {
    everyone(|place| {
        let path = place.base.join("home/c.sock");
        let listen = format!("unix:{}", path.display());
        let words = ["serve", "--listen", &listen, "--no-workspace"];
        let begin = || {
            let child =
                started(place.cofferdam(&words).stderr(Stdio::piped()).stdout(Stdio::piped()));
            let ready = || UnixStream::connect(&path).ok();
            (child, until(SOON, ready).unwrap())
        };
        // Killed, it leaves its file, which the next one replaces.
        let (mut first, _) = begin();
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(path.exists());
        let (server, mut stream) = begin();
        let found = path.metadata().unwrap();
        assert!(found.file_type().is_socket());
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        key(place, "a");
        stream
            .write_all(b"GET /v1/sandboxes HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .unwrap();
        assert_eq!(told(stream).status, 200);
        // One that is served is not taken over.
        place.says(&words, 1);
        outcome(place.host("/bin/kill").args(["-TERM", &server.id().to_string()]), SOON);
        assert!(ended(server, Duration::from_secs(30)).status.success());
        assert!(!path.exists());
    });
}

#[test]
fn a_key_is_printed_once_and_good_until_it_is_revoked() {
    everyone(|place| {
        let made =
            place.says(&["key", "create", "ci", "--scope", "look", "--rate", "50/s", "--json"], 0);
        let made = made.object();
        let secret = made["secret"].as_str().unwrap();
        let listed = place.says(&["key", "ls"], 0).text();
        assert!(listed.contains("ci") && listed.contains("50/s") && !listed.contains(secret));
        assert!(secret.starts_with(made["key"]["prefix"].as_str().unwrap()));
        place.says(&["key", "create", "ci"], 1);
        let serving = Serving::start(place, &[]);
        assert_eq!(serving.ask(secret, "GET /v1/sandboxes", "").status, 200);
        assert_eq!(serving.ask(secret, "PUT /v1/sandboxes/s", "{}").status, 403);
        place.says(&["key", "revoke", "ci"], 0);
        assert_eq!(serving.ask(secret, "GET /v1/sandboxes", "").status, 401);
        assert_eq!(serving.ask("", "GET /v1/sandboxes", "").status, 401);
        serving.end(place, "-TERM");
    });
}
