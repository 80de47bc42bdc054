//! Runs all attacks of an arm and prints what held.

use crate::arm::{Arm, Confinement};
use crate::attack::{self, Attack, Bare, Purpose};
use crate::snapshot;
use crate::world::{self, World};
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What an attack or a use came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Result {
    Held,
    Broken,
    Usable,
    NotUsable,
    /// It said nothing, and the host saw nothing.
    Unclear,
    Skipped,
}

struct Row {
    name: String,
    category: String,
    result: Result,
    detail: String,
}

/// The most that is told of one row.
const DETAIL_CHARS: usize = 400;

/// How long one attack may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Runs all attacks and uses; fails where one got through, or where something is not usable.
/// Unconfined it fails where an attack that should work does not.
pub(crate) fn run(arm: &Arm) {
    let attacks = attack::all();
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(attack) = attacks.get(number) else { break };
                    let row = row(arm, attack, number);
                    rows.lock().unwrap().push(row);
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap();
    print(arm, &rows);
    let wrong: Vec<String> =
        rows.iter().filter(|row| is_wrong(arm, &attacks, row)).map(describe).collect();
    assert!(wrong.is_empty(), "{}:\n{}", arm.name, wrong.join("\n"));
}

fn row(arm: &Arm, attack: &Attack, number: usize) -> Row {
    let (result, detail) = match skip(arm, attack) {
        Some(why) => (Result::Skipped, why.to_owned()),
        None => attempt(arm, attack, number),
    };
    Row { name: attack.name.clone(), category: attack.category().to_owned(), result, detail }
}

fn skip(arm: &Arm, attack: &Attack) -> Option<&'static str> {
    match (attack.purpose, arm.confinement) {
        (Purpose::Attack(Bare::Unsafe), Confinement::None) => Some("would harm the machine"),
        (Purpose::Use { .. }, Confinement::None) => Some("a use of the sandbox"),
        (Purpose::Attack(_), Confinement::Profile("full-dev")) if attack.needs_closed => {
            Some("allowed there: what comes of it is for the gate to decide")
        }
        (Purpose::Use { writes: true }, Confinement::Profile(_)) if !arm.writes() => {
            Some("the workspace is read-only")
        }
        _ => None,
    }
}

fn attempt(arm: &Arm, attack: &Attack, number: usize) -> (Result, String) {
    let mut world = World::new(arm, number);
    let stdin = world.put_stdin(arm, &attack.program);
    let before = world.workspace_now();
    let mut command = world::command(arm, &world, &attack.name, &attack.options);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let (status, output) = finish(child);
    let said = |mark: &str| output.lines().any(|line| line.starts_with(mark));
    let damage = world.damage(&output).or_else(|| {
        let must_stay = !arm.writes();
        must_stay.then(|| snapshot::difference(&before, &world.workspace_now())).flatten()
    });
    match (attack.purpose, damage) {
        (Purpose::Attack(_), Some(damage)) => (Result::Broken, damage),
        (Purpose::Attack(_), None) if said("@@done@@") => (Result::Broken, last_line(&output)),
        (Purpose::Attack(_), None) if said("@@stopped@@") || was_killed(status) => {
            (Result::Held, last_line(&output))
        }
        (Purpose::Attack(_), None) => (Result::Unclear, format!("{status:?}: {output}")),
        (Purpose::Use { .. }, None) if said("@@done@@") && succeeded(status) => {
            (Result::Usable, String::new())
        }
        (Purpose::Use { .. }, Some(damage)) => (Result::NotUsable, damage),
        (Purpose::Use { .. }, None) => (Result::NotUsable, format!("{status:?}: {output}")),
    }
}

fn succeeded(status: Option<ExitStatus>) -> bool {
    status.is_some_and(|status| status.success())
}

/// A signal that the kernel sends to who does what is not allowed, or uses too much.
fn was_killed(status: Option<ExitStatus>) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.and_then(|status| status.signal().or(status.code().map(|c| c - 128)));
    // SIGSYS, SIGSEGV, SIGKILL
    signal.is_some_and(|signal| [31, 11, 9].contains(&signal))
}

/// Reads all output and waits, killing at the deadline.
fn finish(mut child: Child) -> (Option<ExitStatus>, String) {
    let mut streams: Vec<Box<dyn Read + Send>> = Vec::new();
    streams.extend(child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    streams.extend(child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let text = std::sync::Arc::new(Mutex::new(Vec::new()));
    for mut stream in streams {
        let text = std::sync::Arc::clone(&text);
        // Not joined: unconfined, a process that was left behind holds the pipe.
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                text.lock().unwrap().extend_from_slice(&piece[..count]);
            }
            drop(text);
        });
    }
    let give_up = Instant::now() + DEADLINE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() > give_up => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    // Both readers are done when only this one holds the text; a moment is enough for what is there.
    let give_up = Instant::now() + Duration::from_millis(250);
    while std::sync::Arc::strong_count(&text) > 1 && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(1));
    }
    let bytes = text.lock().unwrap().clone();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

fn last_line(output: &str) -> String {
    let line = output.lines().rfind(|line| line.starts_with("@@")).unwrap_or_default();
    line.chars().take(160).collect()
}

fn is_wrong(arm: &Arm, attacks: &[Attack], row: &Row) -> bool {
    if arm.confinement != Confinement::None {
        return matches!(row.result, Result::Broken | Result::NotUsable | Result::Unclear);
    }
    let attack = attacks.iter().find(|attack| attack.name == row.name);
    attack.is_some_and(|attack| attack.purpose == Purpose::Attack(Bare::Works))
        && row.result != Result::Broken
}

fn describe(row: &Row) -> String {
    let detail: String = row.detail.chars().take(DETAIL_CHARS).collect();
    format!("  {:?} {}: {detail}", row.result, row.name)
}

fn print(arm: &Arm, rows: &[Row]) {
    let mut table: BTreeMap<&str, BTreeMap<Result, usize>> = BTreeMap::new();
    for row in rows {
        *table.entry(&row.category).or_default().entry(row.result).or_default() += 1;
    }
    println!("{} as user {} under {:?}", arm.name, arm.uid(), arm.confinement);
    println!("  {:<12} held broken usable not-usable unclear skipped", "");
    for (category, counts) in table {
        let count = |result| counts.get(&result).copied().unwrap_or(0);
        println!(
            "  {category:<12} {:>4} {:>6} {:>6} {:>10} {:>7} {:>7}",
            count(Result::Held),
            count(Result::Broken),
            count(Result::Usable),
            count(Result::NotUsable),
            count(Result::Unclear),
            count(Result::Skipped),
        );
    }
}
