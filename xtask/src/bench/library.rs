//! The rows of the library, measured in a process of their own for each person.
//!
//! What is asked of the library stands in [`Library`] and nowhere else.

use super::Outcome;
use super::measure::{Plan, Results, Row, Value, as_f64};
use super::memory::Memory;
use super::programs::{Ground, Person};
use super::spawner::{BUFFER_BYTES, spawn, spawn_on_large_pipe};
use cofferdam::{
    Backend, LocalBackend, PipedProcess, Preparation, Process, ProcessEvent, Sandbox, Standard,
    prepared_backend,
};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The word under which this program is started as the process that uses the library.
pub(crate) const LIBRARY: &str = "bench-library";
/// The word under which it is started as the process that holds idle sandboxes.
pub(crate) const WEIGHTS: &str = "bench-weights";

/// A program that ends at once, beside a sandbox and inside one.
pub(super) const TRUE: [&str; 1] = ["/bin/true"];
/// 1 GiB, written in pieces that fill a default pipe.
const TRANSFER: [&str; 5] = ["dd", "if=/dev/zero", "bs=64k", "count=16384", "status=none"];
const TRANSFER_BYTES: u64 = 1 << 30;
/// Between a bare spawn and a command, where nothing else is measured.
pub(super) const BETWEEN: Duration = Duration::from_millis(3);
/// The size of a pipe of Cofferdam's.
const PIPE_BYTES: usize = 1 << 20;
/// How many idle sandboxes are weighed, in a full and in a quick run.
const WEIGHED: (usize, usize) = (100, 20);
/// How many sandboxes are made and ended for one rate, in a full and in a quick run.
const MADE: (usize, usize) = (1600, 64);

/// What the benchmarks ask of the library.
struct Library {
    workspace: PathBuf,
    /// Copies from a template. Everything else of a sandbox is made when it is asked for.
    cold: Arc<LocalBackend>,
    /// The same with the next one made ahead.
    ahead: Arc<LocalBackend>,
    /// Builds each sandbox from nothing.
    plain: Arc<LocalBackend>,
}

impl Library {
    /// With the current directory as the workspace.
    fn here() -> Outcome<Self> {
        let workspace = std::env::current_dir().map_err(|error| error.to_string())?;
        let home = cofferdam::state_home().map_err(|error| error.chain())?;
        let backend = |preparation| Arc::new(prepared_backend(home.clone(), preparation));
        Ok(Self {
            workspace,
            cold: backend(Preparation::Tree),
            ahead: backend(Preparation::Next),
            plain: backend(Preparation::Nothing),
        })
    }

    async fn create(&self) -> Outcome<Sandbox> {
        self.create_on(&self.cold).await
    }

    async fn create_on(&self, backend: &Arc<LocalBackend>) -> Outcome<Sandbox> {
        let builder = Sandbox::builder().workspace(&self.workspace);
        let builder = builder.backend(Arc::clone(backend) as Arc<dyn Backend>);
        builder.create().await.map_err(|error| error.chain())
    }

    async fn destroy(&self, sandbox: Sandbox) -> Outcome<()> {
        sandbox.destroy().await.map(drop).map_err(|error| error.chain())
    }

    /// Runs to the end, output collected.
    async fn exec(&self, sandbox: &Sandbox, argv: &[&str]) -> Outcome<()> {
        let output = sandbox.exec(argv.iter().copied()).await.map_err(|error| error.chain())?;
        match output.ending.exit_code() {
            0 => Ok(()),
            code => Err(format!("{argv:?} inside ended with {code}")),
        }
    }

    /// Starts with standard output on a pipe whose read end comes back.
    async fn exec_to_pipe(
        &self,
        sandbox: &Sandbox,
        argv: &[&str],
    ) -> Outcome<(File, PipedProcess)> {
        let started = sandbox.exec(argv.iter().copied()).piped().await;
        let mut process = started.map_err(|error| error.chain())?;
        let pipe = process.stdout.take().ok_or("standard output has no pipe")?;
        Ok((File::from(pipe), process))
    }

    /// Starts with standard output on the framed line.
    async fn exec_framed(&self, sandbox: &Sandbox, argv: &[&str]) -> Outcome<Process> {
        let command = sandbox.exec(argv.iter().copied());
        command.spawn().await.map_err(|error| error.chain())
    }
}

/// Measures as each person, in a process of theirs.
pub(super) fn measure(plan: &Plan, ground: &Ground, results: &mut Results) -> Outcome<()> {
    let words = [LIBRARY.to_owned(), plan.rounds.to_string(), plan.transfers.to_string()];
    as_each_person(ground, &words, results)
}

/// Weighs idle sandboxes as each person, in a process of theirs.
pub(super) fn weigh(quick: bool, ground: &Ground, results: &mut Results) -> Outcome<()> {
    let count = if quick { WEIGHED.1 } else { WEIGHED.0 };
    as_each_person(ground, &[WEIGHTS.to_owned(), count.to_string()], results)
}

/// Measures as each person, in a process of theirs that is started with these words.
pub(super) fn as_each_person(
    ground: &Ground,
    words: &[String],
    results: &mut Results,
) -> Outcome<()> {
    for person in &ground.people {
        for mut row in as_person(ground, person, words)? {
            person.who.clone_into(&mut row.who);
            results.add(row);
        }
    }
    Ok(())
}

/// What such a process in this role ends with: its rows on standard output, or why there are none.
pub(super) fn answered(role: &str, rows: Outcome<String>) -> ExitCode {
    match rows {
        Ok(rows) => {
            println!("{rows}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{role}: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Starts this program as somebody in another of its roles, and reads the rows that it answers.
fn as_person(ground: &Ground, person: &Person, words: &[String]) -> Outcome<Vec<Row>> {
    let role = words.first().map_or("nothing", String::as_str);
    let mut argv = person.become_argv.clone().unwrap_or_default();
    argv.push(ground.spawner().to_string_lossy().into_owned());
    argv.extend_from_slice(words);
    let (program, arguments) = argv.split_first().ok_or("nothing to start")?;
    let output = Command::new(program)
        .args(arguments)
        .current_dir(&person.workspace)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("start {role} as {}: {error}", person.who))?;
    if !output.status.success() {
        return Err(format!("{role} as {} ended with {}", person.who, output.status));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the answer of {role} as {}: {error}", person.who))
}

/// The other side: `bench-library ROUNDS TRANSFERS` in the workspace, answered by rows.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    answered(LIBRARY, measure_here(words))
}

fn measure_here(words: &[String]) -> Outcome<String> {
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let rounds = number(0).ok_or("the number of rounds is missing")?;
    let transfers = number(1).ok_or("the number of transfers is missing")?;
    let library = Arc::new(Library::here()?);
    let many = with_threads()?;
    // In a task, as a program with a runtime does its work: what waits on the thread that holds the
    // runtime is woken by another one. That is measured by itself.
    let measured = Arc::clone(&library);
    let measuring = many.spawn(async move {
        let library = measured;
        let mut rows = latencies(&library, rounds).await?;
        rows.extend(rates(&library, if rounds < 100 { MADE.1 } else { MADE.0 }).await?);
        rows.extend(throughputs(&library, transfers).await?);
        Outcome::Ok(rows)
    });
    let mut rows = many.block_on(measuring).map_err(|error| error.to_string())??;
    let blocking = [
        "exec-blocking",
        "a command, awaited by `block_on` of a runtime with threads",
        "exec-blocking-bare",
    ];
    rows.extend(many.block_on(in_place(&library, blocking, rounds))?);
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let single = single.map_err(|error| error.to_string())?;
    let current =
        ["exec-current", "a command, awaited on a runtime of one thread", "exec-current-bare"];
    rows.extend(single.block_on(in_place(&library, current, rounds))?);
    serde_json::to_string(&rows).map_err(|error| error.to_string())
}

/// The other side: `bench-weights COUNT` in the workspace, answered by rows.
pub(crate) fn serve_weights(words: &[String]) -> ExitCode {
    answered(WEIGHTS, weigh_here(words))
}

fn weigh_here(words: &[String]) -> Outcome<String> {
    let count = words.first().and_then(|word| word.parse::<usize>().ok());
    let count = count.ok_or("the number of sandboxes is missing")?;
    let library = Library::here()?;
    let weighing = with_threads()?.block_on(weights(&library, count))?;
    serde_json::to_string(&weighing).map_err(|error| error.to_string())
}

/// A runtime as most programs have.
pub(super) fn with_threads() -> Outcome<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().map_err(|error| error.to_string())
}

/// A command as [`latencies`] measures it, where its caller's thread waits.
async fn in_place(
    library: &Library,
    [id, what, base]: [&'static str; 3],
    rounds: usize,
) -> Outcome<Vec<Row>> {
    let live = library.create().await?;
    let mut series = Series::default();
    let warm_up = rounds / 50 + 2;
    for round in 0..rounds + warm_up {
        if round == warm_up {
            series.clear();
        }
        tokio::time::sleep(BETWEEN).await;
        series.bare(base, "posix_spawn of `/bin/true` from that thread", &TRUE)?;
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        library.exec(&live, &TRUE).await?;
        series.push(id, what, base, begin.elapsed());
    }
    library.destroy(live).await?;
    Ok(series.rows())
}

/// Create, end, and commands in a sandbox that lives, each beside its bare twin.
async fn latencies(library: &Library, rounds: usize) -> Outcome<Vec<Row>> {
    let fixed = library.workspace.join("true-static");
    let fixed = fixed.to_string_lossy().into_owned();
    let has_static = std::path::Path::new(&fixed).exists();
    let live = library.create().await?;
    let mut series = Series::default();
    let warm_up = rounds / 50 + 2;
    for round in 0..rounds + warm_up {
        if round == warm_up {
            series.clear();
        }
        // Who comes first meets what the last round left to the kernel.
        for is_inside in [round % 2 != 0, round % 2 == 0] {
            beside(library, &live, &mut series, has_static.then_some(&*fixed), is_inside).await?;
        }
        let cold = ("create", "create until ready, fresh network namespace");
        let ahead = ("create-ahead", "the same, network and process made ahead");
        let built = ("create-built", "the same, built without a template");
        let end = ("destroy", "end it until nothing is left");
        for ((id, what), (end, ends), backend) in [
            (cold, end, &library.cold),
            (ahead, ("destroy-ahead", "the same of one made ahead"), &library.ahead),
            (built, ("destroy-built", "the same of one built without a template"), &library.plain),
        ] {
            let begin = Instant::now();
            let fresh = library.create_on(backend).await?;
            series.push(id, what, "exec-bare", begin.elapsed());
            let begin = Instant::now();
            library.destroy(fresh).await?;
            series.push(end, ends, "exec-bare", begin.elapsed());
        }
    }
    library.destroy(live).await?;
    Ok(series.rows())
}

/// The commands of one round, inside or bare.
async fn beside(
    library: &Library,
    live: &Sandbox,
    series: &mut Series,
    fixed: Option<&str>,
    is_inside: bool,
) -> Outcome<()> {
    let rows = [
        (Some(TRUE[0]), "exec", "a command in a live sandbox", BARE),
        (fixed, "exec-static", "a static program in a live sandbox", BARE_STATIC),
    ];
    for (program, id, what, (base, base_what)) in rows {
        let Some(program) = program else { continue };
        if is_inside {
            let begin = Instant::now();
            library.exec(live, &[program]).await?;
            series.push(id, what, base, begin.elapsed());
        } else {
            series.bare(base, base_what, &[program])?;
        }
    }
    Ok(())
}

/// The bare twins of the commands.
const BARE: (&str, &str) = ("exec-bare", "posix_spawn of `/bin/true` from the same process");
const BARE_STATIC: (&str, &str) = ("exec-bare-static", "posix_spawn of a static program");

/// Samples by row, in the order in which rows first came.
#[derive(Default)]
pub(super) struct Series(Vec<(&'static str, &'static str, &'static str, Vec<u64>)>);

impl Series {
    pub(super) fn push(
        &mut self,
        id: &'static str,
        what: &'static str,
        base: &'static str,
        took: Duration,
    ) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match self.0.iter_mut().find(|(known, ..)| *known == id) {
            Some((.., samples)) => samples.push(ns),
            None => self.0.push((id, what, base, vec![ns])),
        }
    }

    pub(super) fn bare(
        &mut self,
        id: &'static str,
        what: &'static str,
        argv: &[&str],
    ) -> Outcome<()> {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let timing = spawn(&argv, &mut vec![0; BUFFER_BYTES])?;
        self.push(id, what, id, Duration::from_nanos(timing.ns));
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        for (.., samples) in &mut self.0 {
            samples.clear();
        }
    }

    pub(super) fn rows(self) -> Vec<Row> {
        let row = |(id, what, base, samples)| row(id, what, Some(base), Value::times(samples));
        self.0.into_iter().map(row).collect()
    }
}

pub(super) fn row(id: &str, what: &str, base: Option<&str>, value: Value) -> Row {
    let base = base.map(str::to_owned);
    Row { id: id.to_owned(), who: String::new(), what: what.to_owned(), base, value }
}

/// Sandboxes made and ended a second.
async fn rates(library: &Arc<Library>, count: usize) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (id, at_once) in [("sandboxes-1", 1), ("sandboxes-4", 4), ("sandboxes-16", 16)] {
        let each = count / at_once;
        let begin = Instant::now();
        let tasks: Vec<_> = (0..at_once)
            .map(|_| {
                let library = Arc::clone(library);
                tokio::spawn(async move {
                    for _ in 0..each {
                        let sandbox = library.create().await?;
                        library.destroy(sandbox).await?;
                    }
                    Outcome::Ok(())
                })
            })
            .collect();
        for task in tasks {
            task.await.map_err(|error| error.to_string())??;
        }
        let per_s = as_f64((each * at_once) as u64) / begin.elapsed().as_secs_f64();
        let what = format!("sandboxes made and ended, {at_once} at once");
        rows.push(row(id, &what, None, Value::Rate { per_s }));
    }
    Ok(rows)
}

/// What an idle sandbox holds.
async fn weights(library: &Library, count: usize) -> Outcome<Vec<Row>> {
    let settle = Duration::from_millis(500);
    let first = library.create().await?;
    std::thread::sleep(settle);
    let before = Memory::now()?;
    let mut idle = Vec::new();
    for _ in 0..count {
        idle.push(library.create().await?);
    }
    std::thread::sleep(settle);
    let after = Memory::now()?;
    for sandbox in idle {
        library.destroy(sandbox).await?;
    }
    library.destroy(first).await?;
    let share = |bytes: u64| bytes / count as u64;
    let kernel = share(after.kernel.saturating_sub(before.kernel));
    let gone = share(before.available.saturating_sub(after.available));
    let bytes = |bytes| Value::Bytes { bytes };
    let mut rows = Vec::new();
    // A sum without the processes would say too little, so there is none without them.
    if let (Some(after), Some(before)) = (after.processes, before.processes) {
        let user = share(after.saturating_sub(before));
        rows.push(row(
            "idle-memory",
            "an idle sandbox, user and kernel",
            None,
            bytes(user + kernel),
        ));
        rows.push(row(
            "idle-memory-user",
            "of it, share of its processes (PSS)",
            None,
            bytes(user),
        ));
    }
    rows.push(row(
        "idle-memory-kernel",
        "of it, slab, stacks and page tables",
        None,
        bytes(kernel),
    ));
    rows.push(row("idle-memory-gone", "what the machine has less available", None, bytes(gone)));
    Ok(rows)
}

/// Standard output by three ways.
async fn throughputs(library: &Library, rounds: usize) -> Outcome<Vec<Row>> {
    let live = library.create().await?;
    let (mut default, mut large, mut pipe, mut framed) = (vec![], vec![], vec![], vec![]);
    let bare: Vec<String> = TRANSFER.iter().map(|word| (*word).to_owned()).collect();
    let mut buffer = vec![0; BUFFER_BYTES];
    for _ in 0..rounds {
        default.push(spawn(&bare, &mut buffer)?.ns);
        large.push(spawn_on_large_pipe(&bare, &mut buffer, PIPE_BYTES)?.ns);
        let begin = Instant::now();
        let (mut output, mut process) = library.exec_to_pipe(&live, &TRANSFER).await?;
        let mut sum = 0;
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            sum += count as u64;
        }
        let ending = process.wait().await.map_err(|error| error.chain())?;
        whole(sum, ending.exit_code())?;
        pipe.push(nanoseconds(begin));
        let begin = Instant::now();
        let mut process = library.exec_framed(&live, &TRANSFER).await?;
        finish(&mut process).await?;
        framed.push(nanoseconds(begin));
    }
    library.destroy(live).await?;
    let value = |samples| Value::Throughput {
        mb_per_s: as_f64(TRANSFER_BYTES) / Value::times(samples).number().max(1.0),
    };
    let base = Some("stdout-default");
    Ok(vec![
        row("stdout-default", "1 GiB through a default pipe, bare", base, value(default)),
        row("stdout-large", "1 GiB through a pipe of 1 MiB, bare", base, value(large)),
        row("stdout-pipe", "1 GiB through a pipe of Cofferdam's", base, value(pipe)),
        row("stdout-framed", "1 GiB over the framed line", base, value(framed)),
    ])
}

/// Reads events to the end.
async fn finish(process: &mut Process) -> Outcome<()> {
    let mut sum = 0;
    while let Some(event) = process.events.recv().await {
        match event {
            ProcessEvent::Output { stream: Standard::Output, bytes, .. } => {
                sum += bytes.len() as u64;
            }
            ProcessEvent::Output { stream: Standard::Error, .. } => {}
            ProcessEvent::Ended { ending, .. } => return whole(sum, ending.exit_code()),
        }
    }
    Err("the sandbox went away".to_owned())
}

fn whole(sum: u64, code: i32) -> Outcome<()> {
    match (sum, code) {
        (TRANSFER_BYTES, 0) => Ok(()),
        _ => Err(format!("the transfer ended with {code} after {sum} bytes")),
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
