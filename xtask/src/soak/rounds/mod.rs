//! Rounds in which clients, keepers and sandboxes are killed, and what must hold after each.
//!
//! After a round the next start repairs, nothing is there that nobody owns, and no exit status that
//! a client or a journal was told has changed. What is done is chance with a seed; when the kernel
//! does it is not, so a seed repeats the work and not the moment.

mod chance;
mod client;
mod traces;
mod truth;

use chance::Chance;
use client::Client;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use traces::{Process, Traces};
use truth::Truth;

/// What is violated, in words.
pub(crate) type Outcome<T> = Result<T, String>;

/// What is done, and where.
pub(crate) struct Plan<'a> {
    pub(crate) rounds: u64,
    pub(crate) seed: u64,
    /// A word that no other process on the machine has in its command line.
    pub(crate) marker: &'a str,
    /// The state directory, of its own.
    pub(crate) state: &'a Path,
    pub(crate) workspace: &'a Path,
    /// The program with these words.
    pub(crate) start: &'a dyn Fn(&[&str]) -> Command,
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    rounds: u64,
    killed: BTreeMap<&'static str, u64>,
    statuses: usize,
    repairs: BTreeMap<String, u64>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rounds held; killed:", self.rounds)?;
        for (what, count) in &self.killed {
            write!(f, " {count} {what}")?;
        }
        write!(f, "; {} exit statuses kept; repairs:", self.statuses)?;
        for (what, count) in &self.repairs {
            write!(f, " {count} {what}")?;
        }
        Ok(())
    }
}

/// Whom a round kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Client,
    Keeper,
    First,
    All,
}

const VICTIMS: [Victim; 4] = [Victim::Client, Victim::Keeper, Victim::First, Victim::All];
/// The names that all work is about: few, so that clients meet. None begins an id, which would mean
/// its session where no name does.
const NAMES: [&str; 3] = ["x", "y", "z"];
/// The most clients of one round.
const CLIENTS: u64 = 4;
/// The longest pause between two clients, and before the kill.
const BETWEEN_MS: u64 = 8;
const BEFORE_MS: u64 = 60;
/// How long a client may take, and what is killed may need until it is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does all rounds; the first violation ends them and names its round and the seed.
pub(crate) fn run(plan: &Plan<'_>) -> Outcome<Summary> {
    let mut soak = Soak {
        plan,
        chance: Chance::new(plan.seed),
        traces: Traces::new(plan),
        truth: Truth::default(),
        summary: Summary::default(),
        commands: 0,
    };
    // What the first use makes once is there before anything is counted.
    soak.says(&["ensure", "x"])?;
    soak.clear()?;
    let before = soak.traces.counts()?;
    for round in 1..=plan.rounds {
        let named = |problem| format!("round {round} of seed {}: {problem}", plan.seed);
        soak.round().map_err(named)?;
        soak.summary.rounds = round;
    }
    let at_the_end = |problem| format!("after the last round of seed {}: {problem}", plan.seed);
    soak.clear().map_err(at_the_end)?;
    let after = soak.traces.counts()?;
    if before != after {
        return Err(at_the_end(format!("before {before:?}, after {after:?}")));
    }
    soak.summary.statuses = soak.truth.kept();
    Ok(soak.summary)
}

struct Soak<'a> {
    plan: &'a Plan<'a>,
    chance: Chance,
    traces: Traces<'a>,
    truth: Truth,
    summary: Summary,
    /// How many commands were started; their ids.
    commands: u64,
}

impl Soak<'_> {
    fn round(&mut self) -> Outcome<()> {
        let before = self.sessions()?;
        let mut clients = Vec::new();
        for _ in 0..=self.chance.below(CLIENTS) {
            self.commands += 1;
            let client = Client::start(self.plan, &mut self.chance, self.commands)?;
            self.truth.order(&client);
            clients.push(client);
            std::thread::sleep(self.chance.pause(BETWEEN_MS));
        }
        std::thread::sleep(self.chance.pause(BEFORE_MS));
        self.traces.note()?;
        let killed = self.kill(&mut clients)?;
        let removed: BTreeSet<&str> = clients.iter().filter_map(Client::removes).collect();
        let mut told = Vec::new();
        for client in clients {
            told.extend(client.end(self.plan, &removed, PATIENCE)?);
        }
        // ORDER: before the repair. What still ends is nobody's debt yet, so a start passes it by.
        self.traces.await_ends(&killed, PATIENCE)?;
        self.traces.note()?;
        self.truth.hear_journals(self.plan)?;
        self.repair()?;
        let after = self.sessions()?;
        self.truth.hear_clients(told, &before, &after);
        let ids: Vec<&String> = after.values().collect();
        self.truth.forget_others(&ids);
        for id in &ids {
            let listed = self.object(&["ps", id, "--json"])?;
            self.truth.compare(id, &listed)?;
            let shown = self.object(&["show", id, "--json"])?;
            if matches!(at(&shown, "/phase").as_str(), Some("lost" | "stopped" | "failed")) {
                Truth::all_ended(id, &listed)?;
            }
        }
        self.truth.compare_runs(self.plan)?;
        self.traces.nothing_is_left(&ids, PATIENCE)?;
        let open = self.object(&["gc", "--dry-run", "--json"])?;
        if ["/done", "/failed"].iter().any(|part| *at(&open, part) != Value::Array(vec![])) {
            return Err(format!("something is left to repair: {open}"));
        }
        let name = self.chance.pick(&NAMES).copied().unwrap_or("x");
        self.says(&["ensure", name])?;
        self.says(&["exec", name, "--", "true"]).map(drop)
    }

    /// Kills whom chance picks, and says which keepers and first processes these were.
    fn kill(&mut self, clients: &mut [Client]) -> Outcome<Vec<Process>> {
        let mut killed = Vec::new();
        let victim = self.chance.pick(&VICTIMS).copied().unwrap_or(Victim::All);
        let is_all = victim == Victim::All;
        if is_all {
            for client in clients.iter_mut() {
                self.count("clients", client.kill());
            }
        } else if victim == Victim::Client {
            let count = clients.len() as u64;
            let at = usize::try_from(self.chance.below(count)).unwrap_or(0);
            let killed = clients.get_mut(at).is_some_and(Client::kill);
            self.count("clients", killed);
        }
        for (kind, kills, mut found) in [
            ("keepers", Victim::Keeper, self.traces.keepers()?),
            ("first processes", Victim::First, self.traces.firsts()),
        ] {
            if !is_all && victim != kills {
                continue;
            }
            if !is_all && !found.is_empty() {
                let at = usize::try_from(self.chance.below(found.len() as u64)).unwrap_or(0);
                found = vec![found.swap_remove(at)];
            }
            for process in found {
                self.count(kind, process.kill());
                killed.push(process);
            }
        }
        Ok(killed)
    }

    fn count(&mut self, what: &'static str, was_killed: bool) {
        *self.summary.killed.entry(what).or_default() += u64::from(was_killed);
    }

    /// The next start of a program repairs everything.
    fn repair(&mut self) -> Outcome<()> {
        let repaired = self.object(&["gc", "--json"])?;
        if *at(&repaired, "/failed") != Value::Array(vec![]) {
            return Err(format!("something is not repaired: {repaired}"));
        }
        for done in at(&repaired, "/done").as_array().into_iter().flatten() {
            let action = at(done, "/action").as_str().unwrap_or("unnamed").to_owned();
            *self.summary.repairs.entry(action).or_default() += 1;
        }
        Ok(())
    }

    /// The ids of all sessions, by name.
    fn sessions(&self) -> Outcome<BTreeMap<String, String>> {
        let listed = self.object(&["ls", "--json"])?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = at(&listed, "/sessions").as_array().into_iter().flatten();
        Ok(all.map(|session| (text(at(session, "/name")), text(at(session, "/id")))).collect())
    }

    /// Removes every session, and everything must be gone.
    fn clear(&mut self) -> Outcome<()> {
        for id in self.sessions()?.values() {
            self.says(&["rm", id])?;
        }
        self.repair()?;
        self.traces.nothing_is_left(&[], PATIENCE)
    }

    fn object(&self, words: &[&str]) -> Outcome<Value> {
        let text = self.says(words)?;
        serde_json::from_str(&text).map_err(|error| format!("{words:?} said {text:?}: {error}"))
    }

    /// What the program prints, which must succeed.
    fn says(&self, words: &[&str]) -> Outcome<String> {
        let mut command = (self.plan.start)(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("start {words:?}: {error}"))?;
        let output = client::output(child, PATIENCE).map_err(|e| format!("{words:?}: {e}"))?;
        let error = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{words:?} ended with {}: {error}", output.status))
    }
}

/// Looks again and again until nothing is wrong, or the time is over.
fn until(patience: Duration, mut look: impl FnMut() -> Outcome<()>) -> Outcome<()> {
    let give_up = Instant::now() + patience;
    loop {
        match look() {
            Err(problem) if Instant::now() > give_up => return Err(problem),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
            Ok(()) => return Ok(()),
        }
    }
}

/// A part of an object; null where it is not there.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    object.pointer(path).unwrap_or(&NULL)
}
