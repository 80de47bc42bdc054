//! A command of the program that does something to a session and may be killed while it does.

use super::chance::Chance;
use super::{NAMES, Outcome, Plan};
use std::collections::BTreeSet;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What exit codes of commands begin with, so that none is one of the program's own.
const FIRST_CODE: u64 = 20;
const CODES: u64 = 80;
/// What the program exits with where it or the command could not go on; what was killed is lost.
const OWN_CODES: [i32; 3] = [1, 125, 137];
/// What it exits with where its command was canceled, which only a removal of its session does.
const CANCELED: i32 = 130;
/// How long a command works at most.
const WORK_MS: u64 = 40;
/// After how long a session is resumed whose command has not ended. Another client may have paused it, and who
/// waits for a command wakes nothing.
const RESUMED_AFTER: Duration = Duration::from_secs(5);

/// One that was started.
pub(super) struct Client {
    child: Child,
    name: &'static str,
    words: Vec<String>,
    killed: bool,
    pub(super) exec: Option<Exec>,
}

/// A command in a session.
#[derive(Debug, Clone)]
pub(super) struct Exec {
    pub(super) id: String,
    /// The code it exits with.
    pub(super) code: i32,
    detached: bool,
}

/// A client was told how its command ended.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) name: &'static str,
    pub(super) exec: Exec,
}

impl Client {
    /// Starts one of a random kind.
    pub(super) fn start(plan: &Plan<'_>, chance: &mut Chance, number: u64) -> Outcome<Self> {
        let name = chance.pick(&NAMES).copied().unwrap_or("x");
        let mut exec = None;
        let words: Vec<String> = match chance.below(14) {
            0..=2 => vec!["ensure".into(), name.into()],
            3 => vec!["pause".into(), name.into()],
            4 => vec!["resume".into(), name.into()],
            5 => vec!["rm".into(), name.into()],
            kind => {
                let code = FIRST_CODE + chance.below(CODES);
                let code = i32::try_from(code).unwrap_or(1);
                let detached = kind >= 12;
                let made = exec.insert(Exec { id: format!("e{number}"), code, detached });
                let work = if detached && chance.below(4) == 0 {
                    "1000".to_owned()
                } else {
                    format!("{:.3}", chance.pause(WORK_MS).as_secs_f64())
                };
                let id = made.id.clone();
                let script = format!(
                    ": {}; echo {id} >> runs || exit 9; sleep {work}; exit {code}",
                    plan.marker
                );
                let mut words: Vec<String> =
                    ["exec", name, "--id", &id].map(str::to_owned).to_vec();
                words.extend(detached.then(|| "-d".to_owned()));
                words.extend(["--shell".to_owned(), script]);
                words
            }
        };
        let borrowed: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = (plan.start)(&borrowed);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("start {words:?}: {error}"))?;
        Ok(Self { child, name, words, killed: false, exec })
    }

    /// Kills it, and says whether it was there.
    pub(super) fn kill(&mut self) -> bool {
        let was_there = matches!(self.child.try_wait(), Ok(None));
        self.killed = was_there && self.child.kill().is_ok();
        self.killed
    }

    /// The session that it was to remove.
    pub(super) fn removes(&self) -> Option<&'static str> {
        self.words.first().is_some_and(|word| word == "rm").then_some(self.name)
    }

    /// Waits for its end, and says what it was told of its command. `removed` are the sessions that
    /// somebody may have removed meanwhile.
    pub(super) fn end(
        self,
        plan: &Plan<'_>,
        removed: &BTreeSet<&str>,
        patience: Duration,
    ) -> Outcome<Option<Told>> {
        let Self { child, name, words, killed, exec } = self;
        let ending = Ending::of(child);
        let ended = ending.within(RESUMED_AFTER).or_else(|_| {
            // Where that is not what it waits for, it is told.
            let _ = (plan.start)(&["resume", name]).stdin(Stdio::null()).output();
            ending.within(patience)
        });
        let output = ended.map_err(|problem| format!("{words:?}: {problem}"))?;
        let Some(exec) = exec.filter(|exec| !exec.detached) else { return Ok(None) };
        match output.status.code() {
            Some(code) if code == exec.code => Ok(Some(Told { name, exec })),
            Some(code) if OWN_CODES.contains(&code) => Ok(None),
            Some(CANCELED) if removed.contains(name) => Ok(None),
            None if killed => Ok(None),
            _ => {
                let error = String::from_utf8_lossy(&output.stderr);
                Err(format!("{words:?} ended with {}: {error}", output.status))
            }
        }
    }
}

/// Everything a child writes, and its end, within this time.
pub(super) fn output(child: Child, patience: Duration) -> Outcome<Output> {
    Ending::of(child).within(patience)
}

/// A child that is waited for.
struct Ending {
    id: u32,
    begun: Instant,
    ended: Receiver<std::io::Result<Output>>,
}

impl Ending {
    fn of(child: Child) -> Self {
        let (id, (sender, ended)) = (child.id(), channel());
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        Self { id, begun: Instant::now(), ended }
    }

    fn within(&self, patience: Duration) -> Outcome<Output> {
        match self.ended.recv_timeout(patience) {
            Ok(output) => output.map_err(|error| error.to_string()),
            Err(_) => {
                Err(format!("process {} has not ended after {:?}", self.id, self.begun.elapsed()))
            }
        }
    }
}
