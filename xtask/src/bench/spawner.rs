//! A small process that spawns programs and times them, one for each user that is measured.
//!
//! The timing is done there, so that neither the size of the benchmark nor the change of user is in
//! any number.

use super::Outcome;
use super::programs::{Ground, Person};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Instant;

/// One program to spawn.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) argv: Vec<String>,
    pub(super) directory: String,
    /// How often in all, and by how many threads.
    pub(super) count: usize,
    pub(super) at_once: usize,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Timing {
    /// From before the spawn until the output ended and the process was waited for; of the whole
    /// order, where it counts more than one.
    pub(super) ns: u64,
    /// How much it wrote.
    pub(super) bytes: u64,
    /// Its exit code; -1 where a signal ended it.
    pub(super) code: i32,
}

/// The host side of the small process.
pub(super) struct Spawner {
    pub(super) who: &'static str,
    pub(super) workspace: String,
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Spawner {
    /// Starts one as this person.
    pub(super) fn start(person: &Person, ground: &Ground) -> Outcome<Self> {
        let program = ground.spawner();
        let mut command = match &person.become_argv {
            Some(argv) => {
                let (first, rest) = argv.split_first().ok_or("no program changes the user")?;
                let mut command = Command::new(first);
                command.args(rest).arg(&program);
                command
            }
            None => Command::new(&program),
        };
        let mut child = command
            .arg(super::super::SPAWNER)
            .current_dir(&person.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("start a spawner as {}: {error}", person.who))?;
        let orders = child.stdin.take().ok_or("the spawner has no input")?;
        let answers = child.stdout.take().ok_or("the spawner has no output")?;
        let workspace = person.workspace.to_string_lossy().into_owned();
        let answers = BufReader::new(answers);
        Ok(Self { who: person.who, workspace, child, orders, answers })
    }

    /// Spawns, waits, and checks that it succeeded.
    pub(super) fn time(&mut self, argv: &[String]) -> Outcome<Timing> {
        self.time_many(argv, 1, 1)
    }

    /// The same for many spawns of which this many run at a time.
    pub(super) fn time_many(
        &mut self,
        argv: &[String],
        count: usize,
        at_once: usize,
    ) -> Outcome<Timing> {
        let directory = self.workspace.clone();
        let order = Order { argv: argv.to_vec(), directory, count, at_once };
        let mut line = serde_json::to_string(&order).map_err(|error| error.to_string())?;
        line.push('\n');
        let broken = |error: std::io::Error| format!("the spawner as {}: {error}", self.who);
        self.orders.write_all(line.as_bytes()).map_err(broken)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(broken)?;
        let timing: Result<Timing, String> = serde_json::from_str(&answer)
            .map_err(|error| format!("the spawner as {}: {error}: {answer:?}", self.who))?;
        let timing = timing.map_err(|error| format!("{argv:?} as {}: {error}", self.who))?;
        if timing.code == 0 {
            Ok(timing)
        } else {
            Err(format!("{argv:?} as {} ended with {}", self.who, timing.code))
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // Killing what has ended already fails, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other side: reads orders from standard input until it ends.
pub(crate) fn serve() -> ExitCode {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let timing = serde_json::from_str::<Order>(&line)
            .map_err(|error| error.to_string())
            .and_then(|order| carry_out(&order, &mut buffer));
        let Ok(mut answer) = serde_json::to_string(&timing) else { break };
        answer.push('\n');
        if output.write_all(answer.as_bytes()).and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// How much is read at a time: what a default pipe holds.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

fn carry_out(order: &Order, buffer: &mut [u8]) -> Outcome<Timing> {
    std::env::set_current_dir(&order.directory)
        .map_err(|error| format!("enter {}: {error}", order.directory))?;
    if order.at_once <= 1 && order.count <= 1 {
        return spawn(&order.argv, buffer);
    }
    let each = order.count / order.at_once.max(1);
    let begin = Instant::now();
    let worst = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..order.at_once)
            .map(|_| {
                scope.spawn(|| {
                    let mut buffer = vec![0; BUFFER_BYTES];
                    let timings = (0..each).map(|_| spawn(&order.argv, &mut buffer));
                    timings.map(|timing| timing.map(|timing| timing.code)).max()
                })
            })
            .collect();
        let codes = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
        codes.max().unwrap_or_else(|| Err("nothing was spawned".to_owned()))
    });
    Ok(Timing { ns: nanoseconds(begin), bytes: 0, code: worst? })
}

/// Without a user, a hook or a directory the standard library spawns by `posix_spawn`.
pub(super) fn spawn(argv: &[String], buffer: &mut [u8]) -> Outcome<Timing> {
    spawn_on(argv, buffer, |_| Ok(()))
}

/// The same with a pipe of this size.
pub(super) fn spawn_on_large_pipe(
    argv: &[String],
    buffer: &mut [u8],
    bytes: usize,
) -> Outcome<Timing> {
    spawn_on(argv, buffer, |output| {
        let sized = rustix::pipe::fcntl_setpipe_size(output, bytes);
        sized.map(drop).map_err(|errno| format!("a pipe of {bytes} bytes: {errno}"))
    })
}

fn spawn_on(
    argv: &[String],
    buffer: &mut [u8],
    prepare: impl FnOnce(&std::process::ChildStdout) -> Outcome<()>,
) -> Outcome<Timing> {
    let (program, arguments) = argv.split_first().ok_or("nothing to spawn")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut bytes = 0;
    if let Some(mut output) = child.stdout.take() {
        prepare(&output)?;
        loop {
            match output.read(buffer) {
                Ok(0) => break,
                Ok(count) => bytes += count as u64,
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok(Timing { ns: nanoseconds(begin), bytes, code: status.code().unwrap_or(-1) })
}

pub(super) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
