//! `cargo xtask bench`: every row in one run, interleaved, beside a bare spawn of the same program.

mod files;
mod gate;
mod gate_visit;
mod http;
mod library;
mod machine;
mod measure;
mod memory;
mod programs;
mod project;
mod report;
mod rows;
mod server;
mod sessions;
mod spawner;
mod targets;
mod trees;

use measure::{Plan, Results};
use programs::Ground;
use spawner::Spawner;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

pub(crate) use files::{FILES, serve as serve_files};
pub(crate) use gate::{GATE, serve as serve_gate};
pub(crate) use gate_visit::{VISIT, visit};
pub(crate) use library::{LIBRARY, WEIGHTS, serve as serve_library, serve_weights};
pub(crate) use server::{SERVER, serve as serve_server};
pub(crate) use sessions::{SESSIONS, serve as serve_sessions};
pub(crate) use spawner::serve;
pub(crate) use trees::{TREES, serve as serve_trees};

/// What goes wrong while measuring, in words.
type Outcome<T> = Result<T, String>;

/// How it was called.
#[derive(Debug)]
struct Options {
    json: bool,
    quick: bool,
    /// Put the tables into BENCHMARKS.md.
    write: bool,
    /// Fail when a target is missed.
    check: bool,
    /// One part of the whole.
    only: Option<String>,
    /// The program to measure; built in release where none is named.
    program: Option<PathBuf>,
    /// The ordinary user, where root calls.
    user: String,
}

const USAGE: &str = "usage: cargo xtask bench [--json] [--quick] [--write] [--check] [--only PART]
       [--bin PATH] [--user NAME]

  --json       print one object instead of tables
  --quick      few rounds: shows that it runs, proves nothing
  --write      put the tables into BENCHMARKS.md
  --check      exit 1 when a target is missed
  --only PART  measure this alone: runs, builds, library, files, trees, server,
               gate, sessions or sessions-many
  --bin PATH   measure this program instead of building one
  --user NAME  the ordinary user to measure as, where root calls (default cofferdam-tester)
";

/// The parts that can be measured alone.
const PARTS: [&str; 9] =
    ["runs", "builds", "library", "files", "trees", "server", "gate", SESSIONS_PART, MANY_PART];
const SESSIONS_PART: &str = "sessions";
const MANY_PART: &str = "sessions-many";

/// The program that everybody uses.
pub(crate) const COMMAND: &str = "cofferdam";

/// What cargo tells its children of libraries. The loader looks there for every library of every program
/// that is measured, bare ones too, which nobody's programs pay otherwise.
const OF_CARGO: &str = "LD_LIBRARY_PATH";

/// Goes on as a process that is to be measured, unless this is one: built in release, since half of the rows
/// are what the library takes within it, and told nothing by cargo.
fn go_on_in_release(words: &[String]) -> Outcome<()> {
    use std::os::unix::process::CommandExt;
    let own = match cfg!(debug_assertions) {
        true => build("cofferdam-xtask")?,
        false if std::env::var_os(OF_CARGO).is_none() => return Ok(()),
        false => std::env::current_exe().map_err(|error| format!("find this program: {error}"))?,
    };
    let error = Command::new(&own).arg("bench").args(words).env_remove(OF_CARGO).exec();
    Err(format!("go on as {}: {error}", own.display()))
}

/// Measures, and prints what came of it.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let options = match parse(words) {
        Ok(options) => options,
        Err(problem) => {
            eprint!("bench: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match go_on_in_release(words).and_then(|()| measure_all(&options)) {
        Ok(missed) if missed && options.check => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Outcome<Options> {
    let mut options = Options {
        json: false,
        quick: false,
        write: false,
        check: false,
        only: None,
        program: None,
        user: "cofferdam-tester".to_owned(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--json" => options.json = true,
            "--quick" => options.quick = true,
            "--write" => options.write = true,
            "--check" => options.check = true,
            "--only" => options.only = Some(value()?),
            "--bin" => options.program = Some(value()?.into()),
            "--user" => options.user = value()?,
            other => return Err(format!("{other} is not known")),
        }
    }
    match &options.only {
        Some(part) if !PARTS.contains(&part.as_str()) => Err(format!("{part} is no part")),
        Some(_) if options.write => Err("the page has all parts: leave --only out".to_owned()),
        Some(_) | None => Ok(options),
    }
}

/// Whether a target was missed.
fn measure_all(options: &Options) -> Outcome<bool> {
    let program = match &options.program {
        Some(path) => path.clone(),
        None => build(COMMAND)?,
    };
    let ground = Ground::new(&program, &options.user)?;
    let machine = machine::facts(&ground);
    let mut notes = ground.notes.clone();
    notes.extend(machine::quiet());
    let mut spawners = Vec::new();
    for who in &ground.people {
        spawners.push(Spawner::start(who, &ground)?);
    }
    let plan = if options.quick { Plan::quick() } else { Plan::full() };
    let mut results = Results::default();
    let wants = |part| options.only.as_deref().is_none_or(|only| only == part);
    let mut failures = Vec::new();
    // What fails leaves the rows that were measured, and the run fails in the end. Memory comes first: what
    // thousands of sandboxes leave half empty in the kernel is no idle one's. Trees come last: whoever makes
    // files after the removal of large ones passes over the inodes that were freed.
    if wants("library") {
        failures.extend(library::weigh(options.quick, &ground, &mut results).err());
    }
    if wants(MANY_PART) {
        failures.extend(sessions::measure(MANY_PART, &plan, &ground, &mut results).err());
    }
    if wants("runs") {
        failures.extend(rows::measure(&plan, &ground, &mut spawners, &mut results).err());
        failures.extend(rows::measure_rates(&plan, &ground, &mut spawners, &mut results).err());
    }
    if wants("builds") {
        let built = project::measure(&plan, &ground, &mut spawners, &mut results, &mut notes);
        failures.extend(built.err());
    }
    if wants("library") {
        failures.extend(library::measure(&plan, &ground, &mut results).err());
    }
    if wants("files") {
        failures.extend(files::measure(&plan, &ground, &mut results).err());
    }
    if wants(SESSIONS_PART) {
        failures.extend(sessions::measure(SESSIONS_PART, &plan, &ground, &mut results).err());
    }
    if wants("server") {
        failures.extend(server::measure(&plan, &ground, &mut results).err());
    }
    if wants("gate") {
        failures.extend(gate::measure(&plan, &ground, &mut results, &mut notes).err());
    }
    if wants("trees") {
        failures.extend(trees::measure(&plan, options.quick, &ground, &mut results).err());
    }
    if let (Some(bytes), None) = (programs::guest_bytes(), &options.only) {
        results.add_bytes(targets::GUEST_SIZE, "the guest program on disk", bytes);
    }
    notes.extend(results.noise());
    notes.extend(failures.iter().map(|failure| format!("**Failed:** {failure}")));
    let report = report::Report::new(machine, notes, results, options.quick);
    tell(options, &report)?;
    match failures.into_iter().next() {
        Some(failure) => Err(failure),
        None => Ok(report.missed()),
    }
}

fn tell(options: &Options, report: &report::Report) -> Outcome<()> {
    if options.json {
        println!("{}", report.json()?);
    } else {
        print!("{}", report.markdown());
    }
    if options.write { report.write() } else { Ok(()) }
}

/// Builds in release what is measured, and answers where this program of it is. Always both packages at once:
/// what they share would be built anew for the one after the other.
pub(crate) fn build(program: &str) -> Outcome<PathBuf> {
    let root = crate::tidy::root();
    let packages = ["--package", "cofferdam-cli", "--package", "cofferdam-xtask"];
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked"])
        .args(packages)
        .current_dir(&root)
        .status()
        .map_err(|error| format!("start cargo: {error}"))?;
    if !status.success() {
        return Err("what is to be measured does not build".to_owned());
    }
    Ok(programs::target_directory().join("release").join(program))
}
