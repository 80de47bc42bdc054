//! What becomes of a run: its ending, its bytes, its limits, and what it leaves behind.

use crate::arm::{Arm, PYTHON};
use crate::snapshot;
use crate::world::{World, survivors};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What was found: nothing, or what is wrong.
type Found = Result<(), String>;
type Case = (&'static str, fn(&Arm, &World) -> Found);

const CASES: &[Case] = &[
    ("life.exit_codes", exit_codes),
    ("life.endings_before_the_start", endings_before_the_start),
    ("life.arguments_survive", arguments_survive),
    ("life.bytes_survive", bytes_survive),
    ("life.streams_stay_apart", streams_stay_apart),
    ("life.input_is_empty_by_default", input_is_empty_by_default),
    ("life.timeout_kills_the_tree", timeout_kills_the_tree),
    ("life.background_does_not_delay", background_does_not_delay),
    ("life.closed_streams", closed_streams),
    ("life.kill_of_the_caller", |a, w| end_the_caller(a, w, "KILL")),
    ("life.term_of_the_caller", |a, w| end_the_caller(a, w, "TERM")),
    ("life.hang_up_of_the_caller", |a, w| end_the_caller(a, w, "HUP")),
    ("life.memory_names_its_cause", memory_names_its_cause),
    ("life.fork_bomb_ends", fork_bomb_ends),
    ("life.output_is_counted", output_is_counted),
    ("life.output_ends_the_run", output_ends_the_run),
    ("life.no_litter", no_litter),
    ("life.no_litter_after_kill", no_litter_after_kill),
    ("life.two_at_once", two_at_once),
    ("life.host_changes_a_pinned_file", host_changes_a_pinned_file),
];

/// Runs all cases; fails where one finds something.
pub(crate) fn run(arm: &Arm) {
    let only = std::env::var("COFFERDAM_ESCAPE_ONLY").unwrap_or_default();
    let cases = CASES.iter().filter(|(name, _)| name.starts_with(&only));
    let mut wrong = Vec::new();
    for (number, (name, case)) in cases.enumerate() {
        let world = World::new(arm, number);
        let found = case(arm, &world).and_then(|()| {
            let left = survivors(&world.token, Duration::from_millis(60));
            if left.is_empty() { Ok(()) } else { Err(format!("{} processes are left", left.len())) }
        });
        match found {
            Ok(()) => println!("  {name:<36} held"),
            Err(why) => {
                let why: String = why.chars().take(400).collect();
                println!("  {name:<36} broken: {why}");
                wrong.push(format!("  {name}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", arm.name, wrong.join("\n"));
}

/// `cofferdam run` in the world's workspace; what follows are options and the command.
fn cofferdam(arm: &Arm, world: &World, words: &[&str]) -> Command {
    let mut command = arm.cofferdam();
    command.args(["run", "--profile", "no-network", "-w"]).arg(&world.workspace).args(words);
    command.current_dir(&world.workspace).env("HOME", world.root.join("home"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(arm: &Arm, world: &World, words: &[&str]) -> Output {
    cofferdam(arm, world, words).output().unwrap()
}

fn claim(holds: bool, otherwise: impl FnOnce() -> String) -> Found {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn code_is(arm: &Arm, world: &World, wanted: i32, words: &[&str]) -> Found {
    let output = output(arm, world, words);
    claim(output.status.code() == Some(wanted), || format!("{words:?}: {output:?}"))
}

fn exit_codes(arm: &Arm, world: &World) -> Found {
    for code in [0, 1, 42, 124, 125, 255] {
        code_is(arm, world, code, &["--", "/bin/sh", "-c", &format!("exit {code}")])?;
    }
    code_is(arm, world, 143, &["--", "/bin/sh", "-c", "kill -TERM $$"])?;
    code_is(arm, world, 137, &["--", "/bin/sh", "-c", "kill -KILL $$"])
}

fn endings_before_the_start(arm: &Arm, world: &World) -> Found {
    code_is(arm, world, 127, &["--", "no-such-program"])?;
    code_is(arm, world, 127, &["--", "/no/such/program"])?;
    code_is(arm, world, 126, &["--", "/etc/passwd"])?;
    code_is(arm, world, 125, &["--cwd", "/no/such/directory", "--", "/bin/true"])?;
    code_is(arm, world, 125, &["--no-such-option", "--", "/bin/true"])
}

fn arguments_survive(arm: &Arm, world: &World) -> Found {
    let hostile: [&[u8]; 8] =
        [b"", b"a b", b"--profile", b"$(id)`id`;|&", b"line\nbreak", b"\xff\xfe", b"'\"\\", b"-w"];
    let print =
        "import os,sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))";
    let mut command = cofferdam(arm, world, &["--", PYTHON, "-c", print]);
    let output = command.args(hostile.map(OsStr::from_bytes)).output().unwrap();
    claim(output.stdout == hostile.join(&0), || format!("{output:?}"))
}

fn bytes_survive(arm: &Arm, world: &World) -> Found {
    let bytes: Vec<u8> = (0..=255_u8).cycle().take(1 << 20).collect();
    let mut child =
        cofferdam(arm, world, &["-i", "--", "/bin/cat"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().map_err(|error| error.to_string())?;
    claim(output.stdout == bytes, || format!("{} bytes came back", output.stdout.len()))
}

fn streams_stay_apart(arm: &Arm, world: &World) -> Found {
    let output = output(arm, world, &["--", "/bin/sh", "-c", "echo out; echo err >&2"]);
    claim(output.stdout == b"out\n" && output.stderr == b"err\n", || format!("{output:?}"))
}

fn input_is_empty_by_default(arm: &Arm, world: &World) -> Found {
    let mut command = cofferdam(arm, world, &["--", "/bin/cat"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(b"not for the command\n");
    let output = ended_within(child, Duration::from_secs(10))?;
    claim(output.stdout.is_empty(), || format!("{output:?}"))
}

fn timeout_kills_the_tree(arm: &Arm, world: &World) -> Found {
    let line =
        format!("echo partial; setsid sh -c 'sleep 60; : {0}' & sleep 60; : {0}", world.token);
    let words = ["--timeout", "400ms", "--json", "--", "/bin/sh", "-c", &line];
    let begin = Instant::now();
    let output = output(arm, world, &words);
    claim(begin.elapsed() < Duration::from_secs(10), || "it took too long".to_owned())?;
    kind_is(&output, &["timed_out"])?;
    claim(output.status.code() == Some(124), || format!("{:?}", output.status))?;
    let stdout = report(&output)?["stdout"].clone();
    claim(stdout == "partial\n", || format!("the output was {stdout}"))
}

fn background_does_not_delay(arm: &Arm, world: &World) -> Found {
    let line = format!("sh -c 'sleep 60; : {}' & echo hi", world.token);
    let child = cofferdam(arm, world, &["--", "/bin/sh", "-c", &line]).spawn().unwrap();
    let output = ended_within(child, Duration::from_secs(10))?;
    claim(output.stdout == b"hi\n", || format!("{output:?}"))
}

fn closed_streams(arm: &Arm, world: &World) -> Found {
    // A descriptor that is free becomes the next one that is opened: it must not be one of ours.
    let mut words = arm.confining(&world.workspace, &[]);
    words.extend(["/bin/sh", "-c", "echo x; echo y >&2; cat; touch ran"].map(str::to_owned));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec \"$@\" <&- >&- 2>&-", "sh"]).args(words);
    command.env("COFFERDAM_HOME", arm.place.join("state"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    ended_within(child, Duration::from_secs(10))?;
    claim(world.workspace.join("ran").exists(), || "the command did not run to its end".to_owned())
}

/// Starts a command with a daemon beside it, and waits until both run.
fn start_a_tree(arm: &Arm, world: &World) -> Child {
    let line = format!("setsid sh -c 'sleep 60; : {0}' & echo ready; sleep 60; : {0}", world.token);
    let mut child = cofferdam(arm, world, &["--", "/bin/sh", "-c", &line]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    child
}

/// The program runs in the process that was spawned, because what is before it replaces itself.
fn end_the_caller(arm: &Arm, world: &World, signal: &str) -> Found {
    let mut child = start_a_tree(arm, world);
    let running = survivors(&world.token, Duration::ZERO).len();
    let id = child.id().to_string();
    Command::new("/bin/kill").args(["-s", signal, &id]).status().unwrap();
    let give_up = Instant::now() + Duration::from_secs(5);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > give_up {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(format!("it did not end by SIG{signal}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    claim(running >= 2, || format!("only {running} processes ran"))?;
    // The kernel takes the tree down by itself, which may take a moment after the parent is gone.
    let left = survivors(&world.token, Duration::from_secs(2));
    claim(left.is_empty(), || format!("{} processes are left", left.len()))
}

fn memory_names_its_cause(arm: &Arm, world: &World) -> Found {
    let words = ["--memory", "64M", "--json", "--", PYTHON, "-c", "x = b'x' * (256 << 20)"];
    let output = output(arm, world, &words);
    if is_refused(&output) {
        println!("  memory cannot be limited here: {}", String::from_utf8_lossy(&output.stdout));
        return Ok(());
    }
    kind_is(&output, &["out_of_memory"])?;
    claim(output.status.code() == Some(137), || format!("{:?}", output.status))
}

fn fork_bomb_ends(arm: &Arm, world: &World) -> Found {
    let bomb = "import os,sys\nn = 0\ntry:\n  while n < 300:\n    n += 1\n    if os.fork() == 0:\n      \
                import time; time.sleep(30)\nexcept OSError:\n  sys.exit(3)";
    let words = ["--pids", "64", "--timeout", "20s", "--json", "--", PYTHON, "-c", bomb];
    let output = output(arm, world, &words);
    if is_refused(&output) {
        println!("  processes cannot be limited here: {}", String::from_utf8_lossy(&output.stdout));
        return Ok(());
    }
    kind_is(&output, &["pids", "exited"])?;
    claim(output.status.code() == Some(3), || format!("{output:?}"))
}

fn output_is_counted(arm: &Arm, world: &World) -> Found {
    let line = "head -c 3000000 /dev/zero | tr '\\0' x";
    let words = ["--max-output", "1M", "--json", "--", "/bin/sh", "-c", line];
    let output = output(arm, world, &words);
    let report = report(&output)?;
    let kept = report["stdout"].as_str().map_or(0, str::len) as u64;
    let omitted = report["omitted"]["stdout"].as_u64().unwrap_or(0);
    claim(kept <= 1 << 20 && kept + omitted == 3_000_000, || {
        format!("{kept} kept, {omitted} omitted")
    })
}

fn output_ends_the_run(arm: &Arm, world: &World) -> Found {
    let words = ["--max-output", "1M", "--", "/bin/sh", "-c", "yes"];
    let child = cofferdam(arm, world, &words).spawn().unwrap();
    let output = ended_within(child, Duration::from_secs(20))?;
    claim(output.status.code() == Some(137), || format!("{:?}", output.status))?;
    claim(output.stdout.len() <= 2 << 20, || format!("{} bytes came", output.stdout.len()))
}

fn no_litter(arm: &Arm, world: &World) -> Found {
    let before = traces(world);
    for _ in 0..10 {
        code_is(arm, world, 0, &["--", "/bin/true"])?;
    }
    same(&before, &traces(world))
}

fn no_litter_after_kill(arm: &Arm, world: &World) -> Found {
    let before = traces(world);
    end_the_caller(arm, world, "KILL")?;
    // What the kernel does not take away, the next start does.
    code_is(arm, world, 0, &["--", "/bin/true"])?;
    same(&before, &traces(world))
}

/// What a run could leave: files in the workspace, mounts.
type Traces = (snapshot::Snapshot, String);

fn traces(world: &World) -> Traces {
    (world.workspace_now(), fs::read_to_string("/proc/self/mountinfo").unwrap())
}

fn same(before: &Traces, after: &Traces) -> Found {
    if let Some(difference) = snapshot::difference(&before.0, &after.0) {
        return Err(difference);
    }
    claim(before.1 == after.1, || "the table of mounts has changed".to_owned())
}

/// Tells inside, line by line, whether protected names can be made or changed.
const TRY_ON_DEMAND: &str = "
import os, sys
for line in sys.stdin:
    try:
        with open(line.strip(), 'a') as f:
            f.write('attacked')
        print('written', flush=True)
    except OSError as e:
        print('refused', e, flush=True)
";

/// A sandbox that tries what it is told.
struct OnDemand {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl OnDemand {
    fn start(arm: &Arm, world: &World) -> Self {
        let mut command = cofferdam(arm, world, &["-i", "--", PYTHON, "-c", TRY_ON_DEMAND]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn write_to(&mut self, name: &str) -> Result<bool, String> {
        let stdin = self.child.stdin.as_mut().ok_or("no standard input")?;
        writeln!(stdin, "{name}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(|error| error.to_string())?;
        match answer.split_whitespace().next() {
            Some("written") => Ok(true),
            Some("refused") => Ok(false),
            _ => Err(format!("{name}: no answer")),
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn two_at_once(arm: &Arm, world: &World) -> Found {
    let before = traces(world);
    let mut first = OnDemand::start(arm, world);
    let mut second = OnDemand::start(arm, world);
    claim(first.write_to("first")?, || "the workspace cannot be written".to_owned())?;
    claim(second.write_to("second")?, || "the workspace cannot be written".to_owned())?;
    first.end();
    // The placeholders of the one that ended are those of the other as well.
    for name in [".envrc", ".mcp.json", ".git/commondir", ".git/config", "cofferdam.toml"] {
        claim(!second.write_to(name)?, || format!("{name} was written after the other ended"))?;
    }
    second.end();
    for name in ["first", "second"] {
        fs::remove_file(world.workspace.join(name)).map_err(|error| error.to_string())?;
    }
    same(&before, &traces(world))
}

fn host_changes_a_pinned_file(arm: &Arm, world: &World) -> Found {
    let mut inside = OnDemand::start(arm, world);
    claim(inside.write_to("first")?, || "the workspace cannot be written".to_owned())?;
    // As `git config` does it: a new file is renamed over the name, and the mount is lost.
    let config = world.workspace.join(".git/config");
    let lock = world.workspace.join(".git/config.lock");
    fs::write(&lock, "[core]\n\tbare = false\n").unwrap();
    arm.give(&lock);
    fs::rename(&lock, &config).map_err(|error| format!("the host cannot rename: {error}"))?;
    let give_up = Instant::now() + Duration::from_secs(2);
    // The pin comes back by itself; how soon is not promised, that it does is.
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let written = inside.write_to(".git/config")?;
        if !written {
            break;
        }
        if Instant::now() > give_up {
            return Err("the file can be written after the host replaced it".to_owned());
        }
    }
    inside.end();
    Ok(())
}

fn report(output: &Output) -> Result<Value, String> {
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {output:?}"))
}

fn is_refused(output: &Output) -> bool {
    output.status.code() == Some(125) && report(output).is_ok_and(|r| r.get("error").is_some())
}

fn kind_is(output: &Output, wanted: &[&str]) -> Found {
    let report = report(output)?;
    let kind = report["ending"]["kind"].as_str().unwrap_or_default();
    claim(wanted.contains(&kind), || format!("the ending is {}", report["ending"]))
}

fn ended_within(mut child: Child, wait: Duration) -> Result<Output, String> {
    let mut pipes = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let Some(pipe) = &mut pipes.0 {
            let _ = pipe.read_to_end(&mut stdout);
        }
        if let Some(pipe) = &mut pipes.1 {
            let _ = pipe.read_to_end(&mut stderr);
        }
        (stdout, stderr)
    });
    let give_up = Instant::now() + wait;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > give_up => {
                child.kill().unwrap();
                child.wait().unwrap();
                return Err(format!("it did not end within {wait:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let (stdout, stderr) = reader.join().unwrap();
    Ok(Output { status, stdout, stderr })
}
