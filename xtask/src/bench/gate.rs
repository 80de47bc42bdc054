//! The rows of the way out: a server on the host's loopback, reached by a bare process, from a sandbox
//! through its gate, and from a sandbox of another maker through its proxy.

use super::Outcome;
use super::gate_visit::{AT_ONCE, LARGE, LARGE_BYTES, VISIT, Visits};
use super::library::{answered, as_each_person, row};
use super::measure::{Plan, Results, Row, Value, as_f64};
use super::programs::Ground;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The word under which this program is started as the server and who counts.
pub(crate) const GATE: &str = "bench-gate";

/// Another sandbox whose way out is a proxy, in the edition that was measured last.
const SRT: &str = "@anthropic-ai/sandbox-runtime@0.0.78";
/// What it needs beside itself.
const SRT_NEEDS: [&str; 4] = ["npm", "bwrap", "socat", "rg"];
/// Where a sandbox finds its own proxy.
const PROXY: &str = "127.0.0.1:61002";
/// How long a server waits for the other side.
const PATIENCE: Duration = Duration::from_secs(30);
/// A piece of the large answer.
const PIECE_BYTES: usize = 256 << 10;

/// Measures as each person, in a process of theirs.
pub(super) fn measure(
    plan: &Plan,
    ground: &Ground,
    results: &mut Results,
    notes: &mut Vec<String>,
) -> Outcome<()> {
    let srt = match fetched(&ground.place("srt")) {
        Ok(program) => program.to_string_lossy().into_owned(),
        Err(why) => {
            notes.push(format!("The rows of srt's proxy are missing: {why}."));
            String::new()
        }
    };
    let numbers = [plan.rounds.to_string(), plan.transfers.to_string()];
    let [rounds, transfers] = numbers;
    let words = [GATE.to_owned(), rounds, transfers, ground.program(), srt];
    as_each_person(ground, &words, results)
}

/// Fetches the other sandbox into this directory, and says where its program is.
fn fetched(directory: &Path) -> Outcome<PathBuf> {
    let has = |program: &&&str| {
        Command::new(program).arg("--version").output().is_ok_and(|said| said.status.success())
    };
    // Its version is told by another option.
    let missing = SRT_NEEDS.iter().find(|program| **program != "socat" && !has(program));
    if let Some(program) = missing {
        return Err(format!("there is no {program}, which it needs"));
    }
    if !Command::new("socat").arg("-V").output().is_ok_and(|said| said.status.success()) {
        return Err("there is no socat, which it needs".to_owned());
    }
    let said = Command::new("npm")
        .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
        .arg(directory)
        .arg(SRT)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("start npm: {error}"))?;
    let program = directory.join("node_modules/.bin/srt");
    match said.status.success() && program.exists() {
        true => Ok(program),
        false => Err(format!("npm does not get {SRT}")),
    }
}

/// The other side: `bench-gate ROUNDS TRANSFERS PROGRAM SRT` in a directory of its own, answered by rows.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    answered(GATE, measure_here(words))
}

fn measure_here(words: &[String]) -> Outcome<String> {
    let [rounds, transfers, program, srt] = words else {
        return Err("four words are needed".to_owned());
    };
    let number = |word: &String| word.parse().map_err(|_| format!("{word} is no number"));
    let (rounds, transfers): (usize, usize) = (number(rounds)?, number(transfers)?);
    let stand = Stand::new(program, srt)?;
    let mut ways: Vec<(&Way, Vec<Visits>)> = WAYS.iter().map(|way| (way, Vec::new())).collect();
    ways.retain(|(way, _)| way.tool != Tool::Srt || !srt.is_empty());
    let share = (rounds / transfers.max(1)).max(AT_ONCE);
    for round in 0..transfers {
        // Each round begins with another.
        let many = ways.len();
        for step in 0..many {
            let Some((way, found)) = ways.get_mut((round + step) % many) else { continue };
            found.push(stand.visit(way, share)?);
        }
    }
    let rows: Vec<Row> = ways.into_iter().flat_map(|(way, found)| way.rows(&found)).collect();
    serde_json::to_string(&rows).map_err(in_words)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Bare,
    Cofferdam,
    Srt,
}

/// A way to the server, by the names of its rows.
struct Way {
    tool: Tool,
    host: &'static str,
    proxy: &'static str,
    what: &'static str,
    large: &'static str,
    first: &'static str,
    rate: &'static str,
}

const WAYS: [Way; 4] = [
    Way {
        tool: Tool::Bare,
        host: "127.0.0.1",
        proxy: "none",
        what: "bare",
        large: "gate-large-direct",
        first: "gate-first-direct",
        rate: "gate-rate-direct",
    },
    Way {
        tool: Tool::Cofferdam,
        host: "host.cofferdam.internal",
        proxy: "none",
        what: "from inside, through the gate",
        large: "gate-large",
        first: "gate-first",
        rate: "gate-rate",
    },
    Way {
        tool: Tool::Cofferdam,
        host: "host.cofferdam.internal",
        proxy: PROXY,
        what: "from inside, through the gate's proxy by CONNECT",
        large: "gate-large-connect",
        first: "gate-first-connect",
        rate: "gate-rate-connect",
    },
    Way {
        tool: Tool::Srt,
        host: "localhost",
        proxy: "env",
        what: "from inside srt, through its proxy by CONNECT",
        large: "gate-large-srt",
        first: "gate-first-srt",
        rate: "gate-rate-srt",
    },
];

impl Way {
    fn rows(&self, found: &[Visits]) -> [Row; 3] {
        let times = |samples: Vec<u64>| Value::times(samples);
        let large = times(found.iter().map(|visits| visits.large_ns).collect()).number();
        let first = times(found.iter().flat_map(|visits| visits.first_ns.clone()).collect());
        let mut rates: Vec<f64> = found.iter().map(|visits| visits.per_s).collect();
        rates.sort_by(f64::total_cmp);
        let per_s = rates.get(rates.len() / 2).copied().unwrap_or_default();
        let mb_per_s = as_f64(LARGE_BYTES) / large.max(1.0);
        let name = |what: &str| format!("{what}, {}", self.what);
        [
            row(
                self.large,
                &name("1 GiB over one connection"),
                Some("gate-large-direct"),
                Value::Throughput { mb_per_s },
            ),
            row(
                self.first,
                &name("a connection until the first byte of a small answer"),
                Some("gate-first-direct"),
                first,
            ),
            row(
                self.rate,
                &name("small requests a second, each a connection, 16 at once"),
                Some("gate-rate-direct"),
                Value::Rate { per_s },
            ),
        ]
    }
}

/// The server, and what a visitor is started with.
struct Stand {
    port: u16,
    program: String,
    srt: String,
    directory: PathBuf,
}

impl Stand {
    fn new(program: &str, srt: &str) -> Outcome<Self> {
        let directory = std::env::current_dir().map_err(in_words)?.join("gate");
        std::fs::create_dir(&directory).map_err(in_words)?;
        // Inside it is seen in the workspace alone.
        let own = std::env::current_exe().map_err(in_words)?;
        std::fs::copy(own, directory.join("visitor")).map_err(in_words)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(in_words)?;
        let port = listener.local_addr().map_err(in_words)?.port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(stream));
            }
        });
        let stand = Self { port, program: program.to_owned(), srt: srt.to_owned(), directory };
        let settings = r#"{"network":{"allowedDomains":["localhost"],"deniedDomains":[]},
            "filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]}}"#;
        std::fs::write(stand.directory.join("srt.json"), settings).map_err(in_words)?;
        Ok(stand)
    }

    fn visit(&self, way: &Way, rounds: usize) -> Outcome<Visits> {
        let port = self.port.to_string();
        let visitor = self.directory.join("visitor").to_string_lossy().into_owned();
        let host = format!("{}:{port}", way.host);
        let rounds = rounds.to_string();
        let words = [&visitor, VISIT, &host, way.proxy, &rounds].map(str::to_owned);
        let mut command = match way.tool {
            Tool::Bare => Command::new(&visitor),
            Tool::Cofferdam => {
                let mut command = Command::new(&self.program);
                command.args(["run", "--no-config", "--profile", "repo-write"]);
                command.args(["--allow-host-port", &port, "--", &visitor]);
                command.env("COFFERDAM_HOME", self.directory.with_file_name("state-gate"));
                command
            }
            Tool::Srt => {
                let mut command = Command::new(&self.srt);
                command.args(["-s", "srt.json", &visitor]);
                command
            }
        };
        command.args(words.get(1..).unwrap_or_default());
        let said = command
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("start {command:?}: {error}"))?;
        match said.status.success() {
            true => serde_json::from_slice(&said.stdout).map_err(in_words),
            false => Err(format!(
                "{}: {}{}",
                way.what,
                String::from_utf8_lossy(&said.stdout),
                String::from_utf8_lossy(&said.stderr)
            )),
        }
    }
}

/// Answers one request: with little, or with 1 GiB. Who goes away before the end is left.
///
/// The other side closes: there are proxies that lose the end of an answer whose sender closes behind it.
fn answer(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut stream = BufReader::new(stream);
    let mut is_large = false;
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
        is_large |= line.starts_with(&format!("GET {LARGE} "));
        line.clear();
    }
    let length = if is_large { LARGE_BYTES } else { 64 };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let mut said = head.into_bytes();
    if !is_large {
        said.resize(said.len() + 64, b'x');
    }
    let mut written = stream.get_mut().write_all(&said);
    if is_large {
        let piece = vec![b'x'; PIECE_BYTES];
        for _ in 0..LARGE_BYTES / PIECE_BYTES as u64 {
            written = written.and_then(|()| stream.get_mut().write_all(&piece));
        }
    }
    if written.is_ok() {
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
