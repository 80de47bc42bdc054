//! Runs each try in a child of its own and writes down what came of it.

use super::attack::{Act, Arm, Row, Scene};
use super::outcome::{Layer, Outcome, USABILITY};
use super::{
    environment, files, kernel, limits, namespaces, network, processes, protected, surface, sys,
    terminal, usability,
};
use cofferdam_wire::message::{Attempt, Check, Proof, Prove};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// What is said of a try that gave none.
const LATE: &str = "no answer in time";
/// A busy machine keeps a try waiting, too: it gets another chance, with so many times the patience.
const MORE_PATIENCE: u32 = 10;
/// How many get one. What hangs hangs again, and whoever asked waits for all of them.
const SECOND_CHANCES: u32 = 8;

/// Attacks the sandbox that the calling process is in, and returns what each attack met.
///
/// The caller must be single-threaded, must have a command's privileges and must not be process 1
/// itself, because attacks leave children behind that it waits for. It takes less than two seconds
/// unless attacks hang. Repeating it is harmless.
pub fn run(request: &Prove) -> Proof {
    fight(&Scene { request, init: 1 }, Arm::ConfinedOnly)
}

/// Runs the same attacks where nothing confines them, to show that they can succeed.
///
/// Attacks that would harm the machine are not tried. The target's own host process stands for
/// process 1.
pub fn run_unconfined(request: &Prove) -> Proof {
    fight(&Scene { request, init: request.targets.host_pid }, Arm::Anywhere)
}

/// The names of the checks that [`run`] makes for this request, in order.
///
/// A proof in which one of them is missing is incomplete.
pub fn expected(request: &Prove) -> Vec<&'static str> {
    let scene = Scene { request, init: 1 };
    rows().filter(|row| (row.applies)(&scene)).map(|row| row.name).collect()
}

fn fight(scene: &Scene<'_>, arm: Arm) -> Proof {
    let mut chances = SECOND_CHANCES;
    let rows = rows().filter(|row| (row.applies)(scene));
    Proof { checks: rows.map(|row| check(row, scene, arm, &mut chances)).collect() }
}

/// All checks. ORDER: those that use much come last, so that they disturb no other.
fn rows() -> impl Iterator<Item = &'static Row> {
    [
        files::ROWS,
        protected::ROWS,
        network::ROWS,
        namespaces::ROWS,
        processes::ROWS,
        kernel::ROWS,
        surface::ROWS,
        terminal::ROWS,
        environment::ROWS,
        usability::ROWS,
        limits::ROWS,
    ]
    .into_iter()
    .flatten()
}

fn check(row: &Row, scene: &Scene<'_>, arm: Arm, chances: &mut u32) -> Check {
    let deadline = Duration::from_millis(row.deadline_ms);
    let mut make = |act| patiently(act, scene, deadline, chances);
    let attack = match (row.attack, row.arm, arm) {
        (None, _, _) => Outcome::untried(USABILITY),
        (Some(_), Arm::ConfinedOnly, Arm::Anywhere) => {
            Outcome::untried("it would harm the machine unconfined")
        }
        (Some(act), _, _) => make(act),
    };
    let layer = match &attack.attempt {
        Attempt::Failed { errno, .. } => {
            attack.layer.unwrap_or_else(|| Layer::infer(row.door, *errno)).name()
        }
        Attempt::Succeeded(_) | Attempt::NotTried(_) => "",
    };
    Check {
        name: row.name.to_owned(),
        promise: row.promise.to_owned(),
        axis: row.axis.to_owned(),
        layer: layer.to_owned(),
        attack: attack.attempt,
        control: make(row.control).attempt,
    }
}

/// Makes one try, and another one where it gave no answer in time and there is a chance left.
fn patiently(act: Act, scene: &Scene<'_>, deadline: Duration, chances: &mut u32) -> Outcome {
    let outcome = in_child(act, scene, deadline);
    let is_late = matches!(&outcome.attempt, Attempt::NotTried(why) if why == LATE);
    match is_late.then(|| chances.checked_sub(1)).flatten() {
        Some(left) => {
            *chances = left;
            in_child(act, scene, deadline * MORE_PATIENCE)
        }
        None => outcome,
    }
}

/// Makes one try in a child that leads a process group of its own, and kills what it leaves.
fn in_child(act: Act, scene: &Scene<'_>, deadline: Duration) -> Outcome {
    let Ok((reader, writer)) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC) else {
        return Outcome::untried("no pipe for the answer");
    };
    match fork_patiently() {
        Ok(sys::Forked::Child) => {
            drop(reader);
            become_like_a_command();
            answer(File::from(writer), &act(scene));
            sys::exit(0)
        }
        Ok(sys::Forked::Parent(child)) => {
            drop(writer);
            let outcome = await_answer(File::from(reader), child, deadline);
            // A child in the middle of its own fork may have missed the first signal.
            let _ = rustix::process::kill_process_group(child, Signal::KILL);
            outcome
        }
        Err(errno) => Outcome::untried(format!("no child could be made: error {errno}")),
    }
}

/// After an attack on the limit of processes the kernel may need a moment until a fork succeeds.
fn fork_patiently() -> Result<sys::Forked, i32> {
    let give_up = Instant::now() + Duration::from_millis(200);
    loop {
        match sys::fork() {
            Err(libc::EAGAIN) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
}

/// A command was executed, which made it dumpable; a child of process 1 is not, and so could not
/// read its own `/proc/self`.
fn become_like_a_command() {
    let _ = rustix::process::setpgid(None, None);
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable);
}

fn answer(mut writer: File, outcome: &Outcome) {
    let layer = outcome.layer.map(Layer::name);
    if let Ok(text) = serde_json::to_vec(&(&outcome.attempt, layer)) {
        let _ = writer.write_all(&text);
    }
}

fn await_answer(mut reader: File, child: Pid, deadline: Duration) -> Outcome {
    let give_up = Instant::now() + deadline;
    let mut text = Vec::new();
    let mut ended = None;
    loop {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let _ = rustix::process::kill_process_group(child, Signal::KILL);
            let _ = rustix::process::kill_process(child, Signal::KILL);
            let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
            return parse(&text).unwrap_or_else(|| Outcome::untried(LATE));
        }
        // What the child forked may hold the pipe open, so its end is watched for as well.
        if ended.is_none() {
            ended = reap(child);
        }
        match readable(&reader, left.min(Duration::from_millis(5))) {
            true => {
                let mut piece = [0; 4096];
                match reader.read(&mut piece) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
                }
            }
            false if ended.is_some() => break,
            false => {}
        }
    }
    let status = ended.or_else(|| await_end(child, give_up));
    parse(&text).unwrap_or_else(|| without_answer(status))
}

/// Waits for a child that has closed its pipe, and kills it at the deadline.
fn await_end(child: Pid, give_up: Instant) -> Option<WaitStatus> {
    while Instant::now() < give_up {
        match reap(child) {
            Some(status) => return Some(status),
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
    let _ = rustix::process::kill_process(child, Signal::KILL);
    rustix::process::waitpid(Some(child), WaitOptions::empty()).ok().flatten().map(|(_, s)| s)
}

fn reap(child: Pid) -> Option<WaitStatus> {
    let found = rustix::process::waitpid(Some(child), WaitOptions::NOHANG);
    found.ok().flatten().map(|(_, status)| status)
}

fn readable(reader: &File, wait: Duration) -> bool {
    let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
    let mut places = [PollFd::new(reader, PollFlags::IN)];
    match rustix::event::poll(&mut places, Some(&wait)) {
        Ok(count) => count > 0,
        Err(Errno::INTR) => false,
        Err(_) => true,
    }
}

fn parse(text: &[u8]) -> Option<Outcome> {
    let (attempt, layer): (Attempt, Option<String>) = serde_json::from_slice(text).ok()?;
    Some(Outcome { attempt, layer: layer.and_then(|name| Layer::named(&name)) })
}

/// A child that ended without an answer was killed by what it met.
fn without_answer(status: Option<WaitStatus>) -> Outcome {
    match status.and_then(WaitStatus::terminating_signal) {
        Some(libc::SIGSYS) => Outcome::met_at(Layer::Seccomp, 0, "killed by SIGSYS"),
        Some(libc::SIGSEGV) => Outcome::met(0, "killed by SIGSEGV"),
        Some(libc::SIGKILL) => Outcome::met_at(Layer::Limit, 0, "killed by SIGKILL"),
        Some(signal) => Outcome::untried(format!("the child was killed by signal {signal}")),
        None => Outcome::untried("the child ended without an answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn try_it(act: Act) -> Attempt {
        let request = Prove::default();
        let scene = Scene { request: &request, init: 1 };
        in_child(act, &scene, Duration::from_millis(150)).attempt
    }

    #[test]
    fn a_try_that_hangs_is_one_row() {
        let hang: Act = |_| loop {
            std::thread::sleep(Duration::from_secs(1));
        };
        assert_eq!(try_it(hang), Attempt::NotTried(LATE.to_owned()));
    }

    #[test]
    fn a_try_that_is_late_gets_another_chance_while_there_are_some() {
        let request = Prove::default();
        let scene = Scene { request: &request, init: 1 };
        let slow: Act = |_| {
            std::thread::sleep(Duration::from_millis(500));
            Outcome::did("took its time")
        };
        let try_it = |chances: &mut u32| {
            patiently(slow, &scene, Duration::from_millis(200), chances).attempt
        };
        let mut chances = 1;
        let seen = [try_it(&mut chances), try_it(&mut chances)];
        let did = Attempt::Succeeded("took its time".to_owned());
        assert_eq!(seen, [did, Attempt::NotTried(LATE.to_owned())]);
        assert_eq!(chances, 0);
    }

    #[test]
    fn a_try_that_is_killed_by_the_filter_counts_as_stopped() {
        let die: Act = |_| {
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::SYS);
            Outcome::did("lived on")
        };
        assert_eq!(try_it(die), Attempt::Failed { errno: 0, call: "killed by SIGSYS".to_owned() });
    }

    #[test]
    fn an_answer_comes_back_though_a_grandchild_holds_the_pipe() {
        let leave_one: Act = |_| {
            if let Ok(sys::Forked::Child) = sys::fork() {
                std::thread::sleep(Duration::from_secs(5));
                sys::exit(0);
            }
            Outcome::did("left one behind")
        };
        assert_eq!(try_it(leave_one), Attempt::Succeeded("left one behind".to_owned()));
    }

    #[test]
    fn names_are_unique_and_axes_are_known() {
        let mut names = BTreeSet::new();
        for row in rows() {
            assert!(names.insert(row.name), "{} is there twice", row.name);
            let known = ["files", "network", "processes", "limits", "environment"];
            assert!(known.contains(&row.axis), "{}", row.name);
            let area = row.name.split('.').next().unwrap();
            assert!(area == row.axis || area == "use", "{}", row.name);
        }
        assert!(names.len() >= 120, "only {} checks", names.len());
    }
}
