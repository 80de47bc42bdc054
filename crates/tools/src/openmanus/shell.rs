//! `sandbox_shell`: sessions of a shell that keep their directory and variables.

use super::needed;
use crate::Outcome;
use crate::param::{Kind, Param};
use crate::plain::{clean, middle_cut};
use crate::scope::Missing;
use crate::text::quoted;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{EndingKind, Error, ErrorKind, Result};
use cofferdam_session::{Session, Shell, ShellOutput, ShellTicket};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The most bytes of output that are shown.
const SHOWN_BYTES: usize = 48 << 10;
/// How much of a shell's output is looked at from its end.
const TAIL_BYTES: u64 = 256 << 10;
/// The longest time that a blocking command is waited for.
const MAX_TIMEOUT_SECS: u64 = 3600;
/// How long a shell may take to go to a folder.
const ENTERED_WITHIN: Duration = Duration::from_secs(10);
/// How long a command that was interrupted may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How often it is interrupted until then.
const INTERRUPTED_EVERY: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: String,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    folder: Option<String>,
    #[serde(default)]
    session_name: Option<String>,
    blocking: bool,
    timeout: u64,
    kill_session: bool,
}

/// How a command of a session stands; of `list_commands`, which sessions there are.
#[derive(Default, Serialize, JsonSchema)]
struct Answer {
    /// What it wrote so far. A mark with a number stands for what is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    /// Where the command was run; only of `execute_command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// Whether the command has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<bool>,
    /// Its exit code, if it has; that of the session where it ended with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The sessions that are alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<Vec<String>>,
    /// How many these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

pub(super) const ROW: Row = Row {
    name: "sandbox_shell",
    title: "Use a shell",
    about: "Runs commands in sessions of a shell, which keep their directory and variables from command to \
            command. A command that is not blocking returns at once: read it with check_command_output. \
            A session runs one command at a time.",
    params: &[
        Param::required(
            "action",
            Kind::Choice(&[
                "execute_command",
                "check_command_output",
                "terminate_command",
                "list_commands",
            ]),
            "What to do.",
        ),
        Param::optional("command", Kind::Word, "The command, for execute_command."),
        Param::optional("folder", Kind::Word, "Where to run it, relative to /workspace."),
        Param::optional(
            "session_name",
            Kind::Word,
            "The session. execute_command makes it where it is not there, and a new one without a name.",
        ),
        Param::flag("blocking", false, "Whether the end of the command is waited for."),
        Param::whole(
            "timeout",
            (1, MAX_TIMEOUT_SECS),
            60,
            "For how many seconds, if it is blocking. The command goes on behind that.",
        ),
        Param::flag("kill_session", false, "Whether check_command_output ends the session too."),
    ],
    output: output_of::<Answer>,
    conduct: Conduct::Of(Hints::RUNS),
};

/// How a session stands in which nothing was run.
const NOTHING: ShellOutput = ShellOutput {
    exit_code: Some(0),
    died: None,
    died_code: None,
    output: Vec::new(),
    is_cut: false,
};

/// The parameters of an action.
fn takes(action: &str) -> &'static [&'static str] {
    match action {
        "execute_command" => &["command", "folder", "session_name", "blocking", "timeout"],
        "check_command_output" => &["session_name", "kill_session"],
        "terminate_command" => &["session_name"],
        _ => &[],
    }
}

pub(super) async fn call(call: Call<'_>) -> Result<Outcome> {
    let asked: Arguments = call.arguments()?;
    call.refuse_others(ROW.params, &asked.action, takes(&asked.action))?;
    if asked.action == "list_commands" {
        return list(&call).await;
    }
    if asked.action == "execute_command" {
        return execute(asked, &call).await;
    }
    let name = needed(asked.session_name, "session_name", &asked.action)?;
    let shell = call.sandboxes.there(call.name()).await?.find_shell(&name).await?;
    if asked.action == "terminate_command" {
        shell.terminate().await?;
        let output = Some(format!("session {name} is ended"));
        let session_name = Some(name);
        let answer = Answer { output, session_name, completed: Some(true), ..Answer::default() };
        return Ok(Outcome::json(json!(answer)));
    }
    let output = match shell.latest(TAIL_BYTES).await? {
        Some(ticket) => shell.check(ticket, Duration::ZERO, room()).await?,
        None => NOTHING,
    };
    if asked.kill_session {
        shell.terminate().await?;
    }
    Ok(told(&name, None, &output))
}

async fn execute(asked: Arguments, call: &Call<'_>) -> Result<Outcome> {
    let command = needed(asked.command, "command", &asked.action)?;
    crate::run::refuse_nul("the command", &command)?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let name = match asked.session_name {
        Some(name) => name,
        None => fresh_name()?,
    };
    let folder = match &asked.folder {
        Some(folder) => Some(place(&session, folder).await?),
        None => None,
    };
    let shell = session.shell(&name).await?;
    if let Some(folder) = &folder {
        enter(&shell, folder).await?;
    }
    let ticket = shell.send(command.as_bytes(), false).await?;
    let cwd = shell.directory(ticket).await?;
    if !asked.blocking {
        let answer = Answer {
            output: Some(String::new()),
            session_name: Some(name),
            cwd,
            completed: Some(false),
            ..Answer::default()
        };
        return Ok(Outcome::json(json!(answer)));
    }
    let output = waited(&shell, ticket, Duration::from_secs(asked.timeout), call).await?;
    Ok(told(&name, cwd, &output))
}

/// Takes a shell into a folder, as a command of its own: where it cannot go there, nothing runs.
async fn enter(shell: &Shell, folder: &str) -> Result<()> {
    let ticket = shell.send(format!("cd -- {}", quoted(folder)).as_bytes(), false).await?;
    let output = shell.check(ticket, ENTERED_WITHIN, room()).await?;
    if output.exit_code == Some(0) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.output);
    let what = format!("the folder {folder:?} cannot be entered: {}", said.trim());
    Err(Error::new(ErrorKind::NotFound, what).hint(
        "Make it with mkdir by execute_command and without folder first, or name another one.",
    ))
}

/// Waits for the end of a command, which is interrupted when the call is given up.
async fn waited(
    shell: &Shell,
    ticket: ShellTicket,
    patience: Duration,
    call: &Call<'_>,
) -> Result<ShellOutput> {
    tokio::select! {
        output = shell.check(ticket, patience, room()) => output,
        () = call.context.canceled() => {
            let deadline = Instant::now() + ENDS_WITHIN;
            loop {
                // More than once: a shell that has not come to the command yet takes it for its own.
                shell.interrupt().await?;
                let output = shell.check(ticket, INTERRUPTED_EVERY, room()).await?;
                let is_over = output.exit_code.is_some() || output.died.is_some();
                if is_over || Instant::now() >= deadline {
                    return Ok(output);
                }
            }
        }
    }
}

fn room() -> usize {
    usize::try_from(TAIL_BYTES).unwrap_or(usize::MAX)
}

/// A name that nobody has.
fn fresh_name() -> Result<String> {
    let id = Session::order(["true"])?.command.id;
    Ok(format!("session_{}", id.as_str().get(1..13).unwrap_or_default()))
}

/// A folder as it is named inside.
async fn place(session: &Session, folder: &str) -> Result<String> {
    let below = folder.strip_prefix("/workspace").unwrap_or(folder).trim_matches('/');
    if below.split('/').any(|name| name == "..") || below.contains('\0') {
        let what = format!("the folder {folder:?} leads out of the workspace");
        return Err(Error::new(ErrorKind::PathEscape, what).hint("Name one below /workspace."));
    }
    let below = if below.is_empty() { "." } else { below };
    Ok(crate::run::directory(session, Some(below)).await?.unwrap_or_default())
}

async fn list(call: &Call<'_>) -> Result<Outcome> {
    let shells = match call.sandboxes.existing(call.name()).await? {
        Some(session) => session.shells().await?,
        None => Vec::new(),
    };
    let alive = shells.into_iter().filter(|shell| shell.exec.ending.is_none());
    let sessions: Vec<String> = alive.map(|shell| shell.name).collect();
    let count = sessions.len();
    Ok(Outcome::fitting(count, |budget| {
        let sessions = sessions.iter().take(budget).cloned().collect();
        let answer = Answer { sessions: Some(sessions), count: Some(count), ..Answer::default() };
        Outcome::json(json!(answer))
    }))
}

fn told(name: &str, cwd: Option<String>, output: &ShellOutput) -> Outcome {
    let mut text = clean(&String::from_utf8_lossy(&output.output));
    if output.is_cut {
        text.push_str("\n[more was written; write it to a file and read that]");
    }
    let exit_code = output.exit_code.or(output.died_code);
    if let Some(died) = output.died.filter(|_| output.exit_code.is_none()) {
        let how = if died == EndingKind::Exited {
            " with this command".to_owned()
        } else {
            format!(" ({})", json!(died).as_str().unwrap_or("ended"))
        };
        write!(text, "\n[the session is over{how}; the next command of this name begins another]")
            .ok();
    }
    Outcome::fitting(SHOWN_BYTES, |budget| {
        let answer = Answer {
            output: Some(middle_cut(&text, budget)),
            session_name: Some(name.to_owned()),
            cwd: cwd.clone(),
            completed: Some(output.exit_code.is_some() || output.died.is_some()),
            exit_code,
            ..Answer::default()
        };
        Outcome::json(json!(answer))
    })
}
