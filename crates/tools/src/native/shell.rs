//! The tools that run commands.

use super::output::Shown;
use crate::Outcome;
use crate::context::Watched;
use crate::param::{Kind, Param};
use crate::run::{self, Ends, Finished, Wanted};
use crate::scope::Missing;
use crate::text::counted;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{EndingKind, Error, ErrorKind, ExecInput, ProcessId, Result, Standard, Stdin};
use cofferdam_session::{ExecReport, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::timeout;

/// How much of both streams is shown at most, in bytes.
const SHOWN_BYTES: usize = 16 << 10;
/// The longest time that a call waits for a command: an hour.
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// The same where a call does not say.
const TIMEOUT_MS: u64 = 120_000;

pub(super) const COMMAND: Param = Param::required(
    "command",
    Kind::Word,
    "A line for sh. It starts anew each time: a directory or variable that it sets is gone at its end.",
);
pub(super) const CWD: Param = Param::optional(
    "cwd",
    Kind::Word,
    "Where it starts, relative to the workspace. The workspace itself where it is left out.",
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecArguments {
    command: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    stdin: Option<String>,
    timeout_ms: u64,
}

/// What came of a command.
#[derive(Serialize, JsonSchema)]
struct HasRun {
    /// Its id, by which `shell_poll` has all that it wrote.
    exec: String,
    /// How it ended.
    ending: EndingKind,
    /// The exit code that stands for its ending.
    exit_code: i32,
    /// Why it never ran; absent where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Whether it exited with 0.
    success: bool,
    /// How long it ran, in milliseconds.
    duration_ms: u64,
    /// What it wrote to standard output.
    stdout: Shown,
    /// What it wrote to standard error.
    stderr: Shown,
    /// What its ending means, where that is not the command's own word, and what to do.
    hint: Option<String>,
}

pub(super) const EXEC: Row = Row {
    name: "shell_exec",
    title: "Run a command",
    about: "Runs a shell command in the sandbox and waits for its end. Answers with its exit code and \
            the beginning and end of its output; what is between is counted, and shell_poll has it. A \
            command that fails is an answer, not an error. Processes that it leaves end with it; use \
            shell_start for what is to go on.",
    params: &[
        COMMAND,
        CWD,
        Param::optional("stdin", Kind::Text, "What it reads. Nothing where it is left out."),
        Param::whole(
            "timeout_ms",
            (1, MAX_TIMEOUT_MS),
            TIMEOUT_MS,
            "It is killed after so many milliseconds; what it wrote until then is answered.",
        ),
    ],
    output: output_of::<HasRun>,
    conduct: Conduct::Of(Hints::RUNS),
};

pub(super) async fn exec(call: Call<'_>) -> Result<Outcome> {
    let ExecArguments { command, cwd, stdin, timeout_ms } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let mut wanted = Wanted::line(&command, timeout_ms);
    wanted.cwd = cwd.as_deref();
    wanted.input = stdin.as_deref().map(str::as_bytes);
    let finished = run::run(&session, wanted, call.context).await?;
    let most = SHOWN_BYTES as u64;
    let stdout = finished.ends(Standard::Output, most).await?;
    let stderr = finished.ends(Standard::Error, most).await?;
    Ok(Outcome::fitting(SHOWN_BYTES, |budget| told(&finished, (&stdout, &stderr), budget)))
}

fn told(finished: &Finished, (stdout, stderr): (&Ends, &Ends), budget: usize) -> Outcome {
    // What one stream does not need the other may have.
    let of = |ends: &Ends| usize::try_from(ends.written).unwrap_or(usize::MAX);
    let for_stderr = of(stderr).min((budget / 2).max(budget.saturating_sub(of(stdout))));
    let (stdout, stderr) =
        (Shown::new(stdout, budget - for_stderr), Shown::new(stderr, for_stderr));
    let run = HasRun {
        exec: finished.id().to_string(),
        ending: finished.ending,
        exit_code: finished.exit_code,
        detail: finished.not_started.clone(),
        success: finished.ending == EndingKind::Exited && finished.exit_code == 0,
        duration_ms: finished.duration_ms,
        stdout,
        stderr,
        hint: finished.hint(),
    };
    Outcome::done(run.text(), json!(run))
}

impl HasRun {
    fn text(&self) -> String {
        let mut text = format!("exit code {}", self.exit_code);
        if let Some(hint) = &self.hint {
            write!(text, " ({hint})").ok();
        }
        if self.stdout.text.is_empty() && self.stderr.text.is_empty() {
            text.push_str("\n(no output)");
        }
        for (name, shown) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if shown.text.is_empty() {
                continue;
            }
            write!(text, "\n--- {name}\n{}", shown.text.trim_end_matches('\n')).ok();
            if let Some(offset) = shown.next_offset {
                let more = format!(
                    "\n[{} of {} bytes of {name} left out; to read them: shell_poll with exec \
                     {:?}, stream {name:?}, offset {offset}]",
                    shown.omitted_bytes, shown.bytes, self.exec
                );
                text.push_str(&more);
            }
            if shown.dropped_bytes > 0 {
                let dropped = shown.dropped_bytes;
                write!(text, "\n[bytes 0 to {dropped} of {name} were dropped for want of room]")
                    .ok();
            }
        }
        text
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    command: String,
    #[serde(default)]
    cwd: Option<String>,
    takes_input: bool,
    keep_awake: bool,
}

/// A command that goes on.
#[derive(Serialize, JsonSchema)]
struct HasStarted {
    /// Its id, for `shell_poll`, `shell_write` and `shell_kill`.
    exec: String,
    /// Whether it runs; one that could not be started does not.
    running: bool,
    /// Why it never ran; absent where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

pub(super) const START: Row = Row {
    name: "shell_start",
    title: "Start a command in the background",
    about: "Starts a shell command that goes on when the call has returned: a server, a watcher, a long \
            build, something that asks for input. Read it with shell_poll.",
    params: &[
        COMMAND,
        CWD,
        Param::flag("takes_input", false, "Whether shell_write may write to it."),
        Param::flag(
            "keep_awake",
            false,
            "Whether it counts as use of the sandbox, which is otherwise paused with it when idle.",
        ),
    ],
    output: output_of::<HasStarted>,
    conduct: Conduct::Of(Hints::RUNS),
};

pub(super) async fn start(call: Call<'_>) -> Result<Outcome> {
    let StartArguments { command, cwd, takes_input, keep_awake } = call.arguments()?;
    run::refuse_nul("the command", &command)?;
    run::refuse_nul("the working directory", cwd.as_deref().unwrap_or_default())?;
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let mut order = Session::order(["/bin/sh", "-c", &command])?;
    order.command.cwd = run::directory(&session, cwd.as_deref()).await?.map(Into::into);
    order.detached = true;
    order.keep_awake = keep_awake;
    if takes_input {
        order.command.stdin = Stdin::Piped;
    }
    let status = session.start(&order).await?;
    let detail = status.ended.as_ref().and_then(|ended| run::not_started(&ended.ending));
    let (exec, running) = (status.id.to_string(), status.ended.is_none());
    let text = match &detail {
        Some(why) => format!("{exec:?} could not be started: {why}"),
        None => format!("started as {exec:?}; read it with shell_poll"),
    };
    let started = HasStarted { exec, running, detail };
    Ok(Outcome::done(text, json!(started)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    exec: String,
    text: String,
    close: bool,
}

/// How long a command may read nothing of what it is given.
const READS_WITHIN: Duration = Duration::from_secs(5);
/// How much it is given at once: a pipe takes so much whole or not at all, so it is known what was taken.
const PIECE_BYTES: usize = 4096;

/// What was written to a command.
#[derive(Serialize, JsonSchema)]
struct HasWritten {
    /// The command.
    exec: String,
    /// How many bytes it took.
    bytes_written: u64,
    /// Whether its input has ended.
    closed: bool,
}

const ID: Param = Param::required("exec", Kind::Word, "The id of the command.");

pub(super) const WRITE: Row = Row {
    name: "shell_write",
    title: "Write to a command",
    about: "Writes to the standard input of a command that shell_start has started with takes_input. One that \
            reads nothing for five seconds is an error, which says how much it took.",
    params: &[
        ID,
        Param::required("text", Kind::Text, "What it is to read; nothing is added, no line end."),
        Param::flag("close", false, "Whether its input ends behind that."),
    ],
    output: output_of::<HasWritten>,
    conduct: Conduct::Of(Hints::RUNS),
};

pub(super) async fn write(call: Call<'_>) -> Result<Outcome> {
    let WriteArguments { exec, text, close } = call.arguments()?;
    let session = call.sandboxes.there(call.name()).await?;
    let (id, _) = known(&session, &exec).await?;
    let bytes_written = text.len() as u64;
    give(&session, &id, text.as_bytes(), call.context).await?;
    if close {
        session.input(&id, &ExecInput::Close).await?;
    }
    let end = if close { ", and its input has ended" } else { "" };
    let bytes = counted(bytes_written, "byte", "bytes");
    let said = format!("{bytes} written to {exec:?}{end}");
    Ok(Outcome::done(said, json!(HasWritten { exec, bytes_written, closed: close })))
}

/// Gives a command all of this, as far as it reads and the call is not given up.
async fn give(session: &Session, id: &ProcessId, text: &[u8], context: &Watched) -> Result<()> {
    let mut taken = 0;
    for piece in text.chunks(PIECE_BYTES) {
        let input = ExecInput::Bytes(piece.to_vec());
        let given = tokio::select! {
            given = timeout(READS_WITHIN, session.input(id, &input)) => given,
            () = context.canceled() => return Err(not_taken(id, (taken, text.len()), ErrorKind::Canceled)),
        };
        match given {
            Ok(Ok(())) => taken += piece.len(),
            Ok(Err(error)) if taken == 0 => return Err(error),
            Ok(Err(error)) => {
                return Err(not_taken(id, (taken, text.len()), error.kind).source(error));
            }
            Err(_) => return Err(not_taken(id, (taken, text.len()), ErrorKind::TimedOut)),
        }
    }
    Ok(())
}

fn not_taken(id: &ProcessId, (taken, all): (usize, usize), kind: ErrorKind) -> Error {
    let took = format!("it took {taken} of {all} bytes");
    let what = if kind == ErrorKind::TimedOut {
        format!("command {id} does not read: {took}")
    } else if kind == ErrorKind::Canceled {
        format!("the write to command {id} was given up: {took}")
    } else {
        format!("write to command {id}: {took}")
    };
    Error::new(kind, what)
        .hint("Write the rest when shell_poll shows that it reads, or end it with shell_kill.")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KillArguments {
    exec: String,
    signal: String,
}

/// What became of a command.
#[derive(Serialize, JsonSchema)]
struct HasKilled {
    /// The command.
    exec: String,
    /// The signal that was sent.
    signal: String,
    /// Whether it runs on.
    running: bool,
    /// How it ended: `canceled` by KILL, unless it had ended before; null while it runs.
    ending: Option<EndingKind>,
    /// The exit code that stands for its ending; null while it runs.
    exit_code: Option<i32>,
}

/// How long a command that got a signal is waited for.
const DIES_WITHIN: Duration = Duration::from_secs(2);
/// The signals by their names.
const SIGNALS: [(&str, i32); 6] =
    [("KILL", 9), ("TERM", 15), ("INT", 2), ("HUP", 1), ("USR1", 10), ("USR2", 12)];

pub(super) const KILL: Row = Row {
    name: "shell_kill",
    title: "End a command",
    about: "Sends a signal to a command and what it started. KILL ends all of it; after another one it \
            may go on.",
    params: &[
        ID,
        Param::word(
            "signal",
            Kind::Choice(&["KILL", "TERM", "INT", "HUP", "USR1", "USR2"]),
            "KILL",
            "Which signal.",
        ),
    ],
    output: output_of::<HasKilled>,
    conduct: Conduct::Of(Hints::REMOVES),
};

pub(super) async fn kill(call: Call<'_>) -> Result<Outcome> {
    let KillArguments { exec, signal } = call.arguments()?;
    let session = call.sandboxes.there(call.name()).await?;
    let (id, _) = known(&session, &exec).await?;
    let number = SIGNALS.iter().find(|(name, _)| *name == signal).map_or(9, |(_, number)| *number);
    let input = if number == 9 { ExecInput::Kill } else { ExecInput::Signal(number) };
    match session.input(&id, &input).await {
        // One that has ended is as dead as was wanted.
        Err(error) if error.kind == ErrorKind::Conflict => {}
        other => other?,
    }
    let status = session.wait(&id, Some(DIES_WITHIN)).await?;
    let ended = status.ended.map(|ended| (ended.ending.kind(), ended.ending.exit_code()));
    let (ending, exit_code) = ended.unzip();
    let text = match ended {
        Some((EndingKind::Canceled, code)) => {
            format!("{exec:?} was killed; {code} stands for that as its exit code")
        }
        Some((_, code)) => format!("{exec:?} has ended, exit code {code}"),
        None => format!("{exec:?} got {signal} and runs on"),
    };
    let killed = HasKilled { exec, signal, running: ended.is_none(), ending, exit_code };
    Ok(Outcome::done(text, json!(killed)))
}

/// A command that there is, by its id.
pub(super) async fn known(session: &Session, exec: &str) -> Result<(ProcessId, ExecReport)> {
    let all = session.execs().await?;
    let running = all.iter().rev().filter(|known| known.ending.is_none());
    let running: Vec<&str> = running.map(|known| known.id.as_str()).collect();
    let hint = match running.len() {
        0 => "No command runs; start one with shell_start.".to_owned(),
        count => {
            let few = running.get(..count.min(8)).unwrap_or_default();
            format!("{count} run: {}.", few.join(", "))
        }
    };
    let Some(found) = all.into_iter().rfind(|known| known.id == exec) else {
        let shown: String = exec.chars().take(64).collect();
        let what = format!("there is no command {shown:?}");
        return Err(Error::new(ErrorKind::NotFound, what).hint(hint));
    };
    Ok((ProcessId::new(exec)?, found))
}
