//! The rows of the server: requests a second, what they take, and who reads slowly beside them.
//!
//! The load comes from threads of one process beside the server, each with a connection of its own that
//! stays; both share the processors of the machine.

use super::Outcome;
use super::http::{Connection, Slow};
use super::library::{answered, as_each_person, row};
use super::measure::{Plan, Results, Row, Value, as_f64};
use super::programs::Ground;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

/// The word under which this program is started as the process that asks a server.
pub(crate) const SERVER: &str = "bench-server";

/// Commands of this part are rounds of the others divided by this: each starts a process.
const EXECS_SHARE: usize = 4;
/// How many connections ask at once.
const MANY: usize = 16;
/// How many follow a stream slowly.
const SLOW: usize = 200;
/// What a small file holds.
const SMALL_BYTES: usize = 4096;
/// What a command writes that is followed.
const LOUD_BYTES: usize = 8 << 20;

/// What is asked for, by the names of its rows: alone, at many connections, and beside slow readers.
struct Asked {
    deed: Deed,
    what: &'static str,
    ids: [&'static str; 3],
    rates: [&'static str; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Exec,
    Read,
    Status,
}

const ALL: [Asked; 3] = [
    Asked {
        deed: Deed::Exec,
        what: "`/bin/true` started and waited for, two requests",
        ids: ["server-exec-1", "server-exec-16", "server-exec-beside"],
        rates: ["server-exec-rate-1", "server-exec-rate-16", "server-exec-rate-beside"],
    },
    Asked {
        deed: Deed::Read,
        what: "a file of 4 KiB read",
        ids: ["server-read-1", "server-read-16", "server-read-beside"],
        rates: ["server-read-rate-1", "server-read-rate-16", "server-read-rate-beside"],
    },
    Asked {
        deed: Deed::Status,
        what: "how a sandbox stands",
        ids: ["server-status-1", "server-status-16", "server-status-beside"],
        rates: ["server-status-rate-1", "server-status-rate-16", "server-status-rate-beside"],
    },
];

/// Measures as each person, in a process of theirs.
pub(super) fn measure(plan: &Plan, ground: &Ground, results: &mut Results) -> Outcome<()> {
    let words = [SERVER.to_owned(), plan.rounds.to_string(), ground.program()];
    as_each_person(ground, &words, results)
}

/// The other side: `bench-server ROUNDS PROGRAM` in a directory of its own, answered by rows.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    answered(SERVER, measure_here(words))
}

fn measure_here(words: &[String]) -> Outcome<String> {
    let [rounds, program] = words else { return Err("two words are needed".to_owned()) };
    let rounds: usize = rounds.parse().map_err(|_| format!("{rounds} is no number"))?;
    let directory = std::env::current_dir().map_err(in_words)?;
    let server = Server::start(program, &directory.join("state-server"))?;
    let mut rows = vec![memory(&server, "server-memory", "a server that nobody asked yet")?];
    server.connect()?.ask("PUT /v1/sandboxes/bench", b"{}")?;
    let measured = all(&server, rounds, &mut rows);
    // Whatever went wrong, nothing is left.
    let removed = server.connect()?.ask("DELETE /v1/sandboxes/bench", b"");
    measured?;
    removed?;
    serde_json::to_string(&rows).map_err(in_words)
}

fn all(server: &Server, rounds: usize, rows: &mut Vec<Row>) -> Outcome<()> {
    let small = vec![b'x'; SMALL_BYTES];
    server.connect()?.ask("PUT /v1/sandboxes/bench/files?path=small", &small)?;
    for asked in &ALL {
        for (connections, at) in [(1, 0), (MANY, 1)] {
            rows.extend(load(server, asked, (connections, at), rounds)?);
        }
    }
    rows.push(memory(server, "server-memory-asked", "the same after all of these requests")?);
    let loud = format!(r#"{{"shell":"yes 0123456789abcdef | head -c {LOUD_BYTES}"}}"#);
    let exec = server.connect()?.start(loud.as_bytes())?;
    server.connect()?.ask(&format!("GET /v1/sandboxes/bench/execs/{exec}/wait"), b"")?;
    let stream = format!("GET /v1/sandboxes/bench/execs/{exec}/stream");
    rows.push(followed(server, &stream, "server-stream", "8 MiB of output followed")?);
    let slow = Slow::begin(SLOW, || server.connect(), &stream)?;
    for asked in &ALL {
        rows.extend(load(server, asked, (1, 2), rounds)?);
    }
    let what = "the same beside 200 who read slowly";
    rows.push(followed(server, &stream, "server-stream-beside", what)?);
    rows.push(memory(
        server,
        "server-memory-streams",
        "a server with 200 streams that are read slowly",
    )?);
    match slow.end() {
        SLOW => Ok(()),
        alive => Err(format!("of {SLOW} slow streams {alive} were left")),
    }
}

/// Asks so often at so many connections: what each took, and how many a second there were.
fn load(
    server: &Server,
    asked: &Asked,
    (connections, at): (usize, usize),
    rounds: usize,
) -> Outcome<[Row; 2]> {
    let share = if asked.deed == Deed::Exec { EXECS_SHARE } else { 1 };
    let each = (rounds / share / connections).max(4);
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut connection = server.connect()?;
        // What is done for the first time is not measured.
        once(&mut connection, asked.deed)?;
        open.push(connection);
    }
    let begin = Instant::now();
    let samples = std::thread::scope(|scope| {
        let asking: Vec<_> = open
            .into_iter()
            .map(|mut connection| {
                scope.spawn(move || -> Outcome<Vec<u64>> {
                    let mut samples = Vec::with_capacity(each);
                    for _ in 0..each {
                        let begin = Instant::now();
                        once(&mut connection, asked.deed)?;
                        let took = begin.elapsed().as_nanos();
                        samples.push(u64::try_from(took).unwrap_or(u64::MAX));
                    }
                    Ok(samples)
                })
            })
            .collect();
        let mut all = Vec::new();
        for thread in asking {
            all.extend(thread.join().map_err(|_| "a thread that asks panicked".to_owned())??);
        }
        Outcome::Ok(all)
    })?;
    let took = begin.elapsed().as_secs_f64();
    let per_s = as_f64(samples.len() as u64) / took.max(f64::EPSILON);
    let place = ["1 connection", "16 connections", "1 connection, beside 200 slow streams"];
    let what = format!("{}, {}", asked.what, place.get(at).copied().unwrap_or_default());
    let [alone, ..] = asked.ids;
    let name = |of: &[&'static str; 3]| of.get(at).copied().unwrap_or_default();
    let time = row(name(&asked.ids), &what, Some(alone), Value::times(samples));
    let rate = row(name(&asked.rates), &what, None, Value::Rate { per_s });
    Ok([time, rate])
}

fn once(connection: &mut Connection, deed: Deed) -> Outcome<()> {
    match deed {
        Deed::Exec => {
            let exec = connection.start(br#"{"argv":["/bin/true"]}"#)?;
            let wait = format!("GET /v1/sandboxes/bench/execs/{exec}/wait");
            let ended = connection.ask(&wait, b"")?;
            let is_done = ended.windows(11).any(|part| part == b"\"exit_code\"");
            is_done.then_some(()).ok_or("a command did not end".to_owned())
        }
        Deed::Read => {
            match connection.ask("GET /v1/sandboxes/bench/files?path=small", b"")?.len() {
                SMALL_BYTES => Ok(()),
                other => Err(format!("{other} bytes were read")),
            }
        }
        Deed::Status => connection.ask("GET /v1/sandboxes/bench", b"").map(drop),
    }
}

/// How fast a stream is told to somebody who reads as fast as he can.
fn followed(server: &Server, line: &str, id: &'static str, what: &str) -> Outcome<Row> {
    let mut connection = server.connect()?;
    let begin = Instant::now();
    // As events, which hold more than the output.
    let told = connection.ask(line, b"")?.len();
    if told < LOUD_BYTES {
        return Err(format!("{told} bytes of {LOUD_BYTES} were told"));
    }
    let mb_per_s = as_f64(LOUD_BYTES as u64) / begin.elapsed().as_secs_f64() / 1e6;
    Ok(row(id, what, Some("server-stream"), Value::Throughput { mb_per_s }))
}

fn memory(server: &Server, id: &'static str, what: &str) -> Outcome<Row> {
    // Its smaps are closed to its own user; this line is not.
    let path = format!("/proc/{}/status", server.child.id());
    let text = std::fs::read_to_string(path).map_err(in_words)?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let bytes = kib.ok_or("a server has no VmRSS")? << 10;
    Ok(row(id, &format!("{what}, resident"), None, Value::Bytes { bytes }))
}

/// A server, ended with the value.
struct Server {
    child: Child,
    at: String,
}

impl Server {
    fn start(program: &str, state: &Path) -> Outcome<Self> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state);
        made.map_err(|error| format!("make {}: {error}", state.display()))?;
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--no-config"])
            .env("COFFERDAM_HOME", state)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("start {program}: {error}"))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no standard error")?);
        let mut line = String::new();
        lines.read_line(&mut line).map_err(in_words)?;
        // What it says later must not stop it.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::stderr()));
        match line.trim().rsplit_once("http://") {
            Some((_, at)) => Ok(Self { child, at: at.to_owned() }),
            None => {
                child.kill().ok();
                child.wait().ok();
                Err(format!("the server says {line:?}"))
            }
        }
    }

    fn connect(&self) -> Outcome<Connection> {
        Connection::new(&self.at)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
