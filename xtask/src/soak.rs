//! `cargo xtask soak`: kills processes of Cofferdam at random moments of random work on sessions,
//! and looks whether every promise outlived them.

mod rounds;

use rounds::{Plan, Summary};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: cargo xtask soak [--rounds N] [--seed N] [--bin PATH]

  --rounds N   how many times something is killed (default 500)
  --seed N     what chance begins with, as an earlier run printed it
  --bin PATH   the program to try instead of building one
";

struct Options {
    rounds: u64,
    seed: u64,
    program: Option<PathBuf>,
}

/// Does the rounds, and prints what came of them.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let options = match parse(words) {
        Ok(options) => options,
        Err(problem) => {
            eprint!("soak: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!("soak: {} rounds, seed {}", options.rounds, options.seed);
    match soak(&options) {
        Ok(summary) => {
            println!("soak: {summary}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("soak: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Result<Options, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut options = Options { rounds: 500, seed: u64::from(now.subsec_nanos()), program: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} is not known or needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{word} {value}: not a number"));
        match word.as_str() {
            "--rounds" => options.rounds = number()?,
            "--seed" => options.seed = number()?,
            "--bin" => options.program = Some(value.into()),
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(options)
}

fn soak(options: &Options) -> Result<Summary, String> {
    let program = match &options.program {
        Some(path) => path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?,
        None => crate::bench::build(crate::bench::COMMAND)?,
    };
    let marker = format!("cofferdam-soak-{}", std::process::id());
    let base = std::env::temp_dir().join(&marker);
    let (state, workspace) = (base.join("state"), base.join("workspace"));
    for directory in [&base, &state, &workspace] {
        private(directory)?;
    }
    let start = |words: &[&str]| command(&program, &state, &workspace, words);
    let Options { rounds, seed, .. } = *options;
    let plan =
        Plan { rounds, seed, marker: &marker, state: &state, workspace: &workspace, start: &start };
    // Where something was violated it stays, to be looked at.
    let stays = |problem| format!("{problem}\nWhat is there stays in {}.", base.display());
    let summary = rounds::run(&plan).map_err(stays)?;
    std::fs::remove_dir_all(&base).map_err(|e| format!("remove {}: {e}", base.display()))?;
    Ok(summary)
}

fn command(program: &Path, state: &Path, workspace: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COFFERDAM_") {
            command.env_remove(name);
        }
    }
    command.env("COFFERDAM_HOME", state).current_dir(workspace).args(words);
    command
}

fn private(directory: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("make {}: {e}", directory.display());
    std::fs::create_dir(directory).map_err(failed)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700)).map_err(failed)
}
