//! `sandbox_exec`: a piece of code in one of six languages.

use super::plain;
use crate::Outcome;
use crate::param::{Kind, Param};
use crate::run::{self, Finished, Wanted};
use crate::scope::Missing;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{EndingKind, Error, ErrorKind, Result, Standard};
use cofferdam_session::Session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The shortest and the longest time that code may take.
const TIMEOUT_SECS: (u64, u64) = (1, 300);
/// The same where nobody said.
const PRESET_SECS: u64 = 30;
/// What writing the code down and removing it may take.
const STAGE_MS: u64 = 30_000;
/// The most bytes of each stream.
const SHOWN_BYTES: usize = 24 << 10;
/// Runs TypeScript by what there is. Of Node it takes one that leaves types out, which is asked first: an older
/// one ends with 9 for an option that it does not know, and that says nothing to a model.
const TYPESCRIPT: &str = "\
if command -v tsx >/dev/null; then exec tsx \"$0/main.ts\"; fi
if command -v deno >/dev/null; then exec deno run \"$0/main.ts\"; fi
if ! command -v node >/dev/null; then
  echo 'TypeScript cannot be run here: there is neither tsx, nor deno, nor node.' >&2
  exit 127
fi
if ! node --experimental-strip-types -e '' </dev/null >/dev/null 2>&1; then
  echo \"TypeScript cannot be run here: there is neither tsx nor deno, and node\" \\
    \"$(node --version </dev/null) does not run it (22.6 is the first that does).\" \\
    \"Install one of them, or send JavaScript.\" >&2
  exit 127
fi
exec node --experimental-strip-types \"$0/main.ts\"";
/// Writes its input to a file of this name in a directory of its own, and says which.
const STAGE: &str =
    "umask 077 && d=$(mktemp -d /tmp/code.XXXXXX) && cat >\"$d/$0\" && printf %s \"$d\"";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    language: String,
    code: String,
    #[serde(default)]
    stdin: Option<String>,
    #[serde(default)]
    timeout_secs: Value,
}

/// What came of the code.
#[derive(Serialize, JsonSchema)]
struct HasRun {
    /// `success`, whatever its exit code; `timeout`, `memory_exceeded`, or `error` where it did not end by
    /// itself.
    status: &'static str,
    /// What it wrote to standard output. A mark with a number stands for what is left out.
    stdout: String,
    /// The same of standard error.
    stderr: String,
    /// Its exit code.
    exit_code: i32,
    /// How long it ran, in milliseconds.
    duration_ms: u64,
}

pub(super) const ROW: Row = Row {
    name: "sandbox_exec",
    title: "Run code",
    about: "Runs a piece of code in the sandbox, in the workspace: a shell command, or a program in a \
            language whose tools are there.",
    params: &[
        Param::required(
            "language",
            Kind::Choice(&["rust", "python", "javascript", "typescript", "wasm", "command"]),
            "What the code is written in.",
        ),
        Param::required("code", Kind::Text, "The code. Of wasm, its text format."),
        Param::optional("stdin", Kind::Text, "What it reads."),
        Param::optional(
            "timeout_secs",
            Kind::Lenient(TIMEOUT_SECS.0, TIMEOUT_SECS.1),
            "It is killed after so many seconds; 30 where it is left out. Less than 1 is 1, and more than 300 \
             is 300.",
        ),
    ],
    output: output_of::<HasRun>,
    conduct: Conduct::Of(Hints::RUNS),
};

/// How code of a language is run: the name of its file, and a script that gets its directory.
fn recipe(language: &str) -> Option<(&'static str, &'static str)> {
    match language {
        "rust" => Some((
            "main.rs",
            "rustc --edition 2021 -o \"$0/main\" \"$0/main.rs\" </dev/null && exec \"$0/main\"",
        )),
        "python" => Some(("main.py", "exec python3 \"$0/main.py\"")),
        "javascript" => Some(("main.js", "exec node \"$0/main.js\"")),
        "typescript" => Some(("main.ts", TYPESCRIPT)),
        "wasm" => Some(("main.wat", "exec wasmtime \"$0/main.wat\"")),
        _ => None,
    }
}

pub(super) async fn run(call: Call<'_>) -> Result<Outcome> {
    let Arguments { language, code, stdin, timeout_secs } = call.arguments()?;
    // Out of bounds is brought within, and what is no number is as if it were left out.
    let secs = timeout_secs.as_f64().map_or(PRESET_SECS, |secs| {
        let bound = |secs: u64| secs.clamp(TIMEOUT_SECS.0, TIMEOUT_SECS.1);
        if secs < 0.0 {
            TIMEOUT_SECS.0
        } else {
            bound(timeout_secs.as_u64().unwrap_or(whole(secs)))
        }
    });
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let input = stdin.as_deref().unwrap_or_default().as_bytes();
    let Some((name, script)) = recipe(&language) else {
        let mut wanted = Wanted::line(&code, secs * 1000);
        wanted.input = Some(input);
        let finished = run::run(&session, wanted, call.context).await?;
        return told(&finished).await;
    };
    let directory = stage(&session, name, &code, &call).await?;
    let argv = vec!["/bin/sh", "-c", script, &directory];
    let wanted = Wanted { argv, cwd: None, input: Some(input), timeout_ms: secs * 1000 };
    let finished = run::run(&session, wanted, call.context).await;
    let argv = vec!["rm", "-rf", &directory];
    let removal = Wanted { argv, cwd: None, input: None, timeout_ms: STAGE_MS };
    let removed = run::run(&session, removal, call.context).await;
    let finished = finished?;
    // What was run is told even where its file could not be removed: it is gone with the sandbox.
    drop(removed);
    told(&finished).await
}

/// The seconds of a fraction, as far as they count here.
fn whole(secs: f64) -> u64 {
    (1..=TIMEOUT_SECS.1).rev().find(|whole| *whole as f64 <= secs).unwrap_or(TIMEOUT_SECS.0)
}

/// Writes the code to a directory outside the workspace, which nobody else has to see.
async fn stage(session: &Session, name: &str, code: &str, call: &Call<'_>) -> Result<String> {
    let argv = vec!["/bin/sh", "-c", STAGE, name];
    let input = Some(code.as_bytes());
    let wanted = Wanted { argv, cwd: None, input, timeout_ms: STAGE_MS };
    let finished = run::run(session, wanted, call.context).await?;
    let said = finished.ends(Standard::Output, 4096).await?;
    match (finished.exit_code, String::from_utf8(said.head)) {
        (0, Ok(directory)) if directory.starts_with("/tmp/code.") => Ok(directory),
        _ => {
            let error = finished.ends(Standard::Error, 4096).await?;
            let why = String::from_utf8_lossy(&error.head).trim().to_owned();
            Err(Error::new(ErrorKind::Unavailable, format!("write the code down: {why}")))
        }
    }
}

async fn told(finished: &Finished) -> Result<Outcome> {
    let stdout = finished.ends(Standard::Output, SHOWN_BYTES as u64).await?;
    let stderr = finished.ends(Standard::Error, SHOWN_BYTES as u64).await?;
    let (status, note) = match finished.ending {
        EndingKind::TimedOut => ("timeout", finished.hint()),
        EndingKind::OutOfMemory => ("memory_exceeded", finished.hint()),
        EndingKind::Exited | EndingKind::Signaled => ("success", None),
        EndingKind::Pids
        | EndingKind::Output
        | EndingKind::NotStarted
        | EndingKind::SetupFailed
        | EndingKind::Canceled
        | EndingKind::Disk
        | EndingKind::Lease
        | EndingKind::SecretAlarm
        | EndingKind::Lost => ("error", finished.hint()),
    };
    Ok(Outcome::fitting(SHOWN_BYTES, |budget| {
        let mut stderr = plain(&stderr, budget);
        if let Some(note) = &note {
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(note);
        }
        let ran = HasRun {
            status,
            stdout: plain(&stdout, budget),
            stderr,
            exit_code: finished.exit_code,
            duration_ms: finished.duration_ms,
        };
        let is_error = status != "success";
        Outcome { is_error, ..Outcome::json(json!(ran)) }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Command, Output};

    /// Runs TypeScript where there is nothing but these programs.
    fn run(place: &Path, programs: &[(&str, &str)]) -> Output {
        std::fs::create_dir_all(place).unwrap();
        for (name, script) in programs {
            let file = place.join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        }
        let (_, script) = recipe("typescript").unwrap();
        let mut command = Command::new("/bin/sh");
        let command = command.args(["-c", script, "/code"]).env("PATH", place);
        let output = command.output().unwrap();
        std::fs::remove_dir_all(place).unwrap();
        output
    }

    #[test]
    fn typescript_that_nothing_runs_is_told_as_that() {
        let place = std::env::temp_dir().join(format!("cofferdam-code-{}", std::process::id()));
        let check = |programs: &[(&str, &str)], code: i32, told: &str| {
            let output = run(&place, programs);
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            assert_eq!((output.status.code(), said.contains(told)), (Some(code), true), "{said}");
        };
        let old = "case $1 in --version) echo v20.19.0;; *) exit 9;; esac";
        let new = "echo \"node $*\"";
        check(&[], 127, "neither tsx, nor deno, nor node");
        check(&[("node", old)], 127, "node v20.19.0 does not run it");
        check(&[("node", new)], 0, "node --experimental-strip-types /code/main.ts\n");
        check(&[("node", old), ("deno", "echo \"deno $*\"")], 0, "deno run /code/main.ts");
        check(&[("node", old), ("tsx", "echo \"tsx $*\"")], 0, "tsx /code/main.ts");
    }
}
