//! The rows of sessions: one that is used, and one beside many that idle.

use super::library::{BETWEEN, Series, TRUE, answered, as_each_person, row, with_threads};
use super::measure::{Plan, Results, Row, Value};
use super::memory::{Memory, Weight, below};
use super::programs::Ground;
use super::spawner::nanoseconds;
use super::{MANY_PART, Outcome};
use cofferdam::{Caller, Spec, Workspace};
use cofferdam_session::{Session, SessionId, SessionOrder, Sessions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The word under which this program is started as the process that uses sessions.
pub(crate) const SESSIONS: &str = "bench-sessions";

pub(super) const MANY_CREATE: &str = "many-create";
pub(super) const MANY_CREATE_EMPTY: &str = "many-create-empty";
pub(super) const MANY_EXEC: &str = "many-exec";
pub(super) const MANY_EXEC_EMPTY: &str = "many-exec-empty";
pub(super) const MANY_MEMORY: &str = "many-memory";
pub(super) const MANY_KEEPER: &str = "many-keeper";
pub(super) const NEW_EXEC_RUN: &str = "session-new-exec-run";
pub(super) const USED_EXEC_RUN: &str = "session-used-exec-run";
const MANY_KEEPER_KERNEL: &str = "many-keeper-kernel";

/// How many commands a session has had that was used for long.
const USED: usize = 2000;
/// How many sessions idle.
const MANY: usize = 500;
/// Rounds of this part are rounds of the others divided by this: each makes a session.
const ROUNDS_SHARE: usize = 4;
/// How long memory is left to come to rest.
const SETTLE: Duration = Duration::from_millis(500);
/// How much of a command's output is collected.
const OUTPUT_BYTES: usize = 1 << 16;
/// The bare twin of this part's rows.
const BARE: (&str, &str) = ("session-bare", "posix_spawn of `/bin/true` from the same process");

/// Measures a part as each person, in a process of theirs.
pub(super) fn measure(
    part: &str,
    plan: &Plan,
    ground: &Ground,
    results: &mut Results,
) -> Outcome<()> {
    let rounds = (plan.rounds / ROUNDS_SHARE).to_string();
    let words = [SESSIONS.to_owned(), part.to_owned(), rounds, ground.program()];
    as_each_person(ground, &words, results)
}

/// The other side: `bench-sessions PART ROUNDS PROGRAM` in a directory of its own, answered by rows.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    answered(SESSIONS, measure_here(words))
}

fn measure_here(words: &[String]) -> Outcome<String> {
    let [part, rounds, program] = words else { return Err("three words are needed".to_owned()) };
    let rounds: usize = rounds.parse().map_err(|_| format!("{rounds} is no number"))?;
    let directory = std::env::current_dir().map_err(|error| error.to_string())?;
    let desk = Desk {
        state: directory.join(format!("state-{part}")),
        workspace: directory.join("sessions"),
        program: program.clone(),
    };
    for place in [&desk.state, &desk.workspace] {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(place);
        made.map_err(|error| format!("make {}: {error}", place.display()))?;
    }
    let runtime = with_threads()?;
    let is_many = part == MANY_PART;
    let measuring = runtime.spawn(async move {
        let sessions = desk.open().await?;
        let measured = match is_many {
            true => many(&desk, &sessions, rounds).await,
            false => one(&desk, &sessions, rounds).await,
        };
        // Whatever went wrong, nothing is left.
        let removed = remove_all(&sessions).await;
        let rows = measured?;
        removed.map(|()| rows)
    });
    let rows = runtime.block_on(measuring).map_err(|error| error.to_string())??;
    serde_json::to_string(&rows).map_err(|error| error.to_string())
}

/// What the benchmarks ask of sessions.
struct Desk {
    state: PathBuf,
    workspace: PathBuf,
    program: String,
}

impl Desk {
    async fn open(&self) -> Outcome<Sessions> {
        let backend = Arc::new(cofferdam::kept_backend(self.state.clone()));
        Sessions::open(&self.state, vec![backend]).await.map_err(|error| error.chain())
    }

    /// One that nobody pauses.
    fn order(&self) -> SessionOrder {
        let workspace = Workspace::Directory(self.workspace.clone());
        let mut order = SessionOrder::new(Spec::new(workspace, Caller::default()));
        order.idle_pause = None;
        order
    }

    async fn create(&self, sessions: &Sessions) -> Outcome<Session> {
        sessions.create(&self.order()).await.map_err(|error| error.chain())
    }

    async fn exec(&self, session: &Session) -> Outcome<()> {
        let order = Session::order(TRUE).map_err(|error| error.chain())?;
        let output = session.exec(&order, OUTPUT_BYTES).await.map_err(|error| error.chain())?;
        match output.status.ended.map(|ended| ended.ending.exit_code()) {
            Some(0) => Ok(()),
            code => Err(format!("{TRUE:?} in a session ended with {code:?}")),
        }
    }

    /// The same by the command line.
    fn exec_by_program(&self, session: &Session) -> Outcome<()> {
        let mut words = vec!["exec", session.id().as_str(), "--"];
        words.extend(TRUE);
        self.by_program(&words)
    }

    fn by_program(&self, words: &[&str]) -> Outcome<()> {
        let mut command = Command::new(&self.program);
        command.args(words).env("COFFERDAM_HOME", &self.state);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.status().map_err(|error| error.to_string())?;
        status.success().then_some(()).ok_or(format!("{words:?} ended with {status}"))
    }
}

/// Removes a session until nothing is left.
async fn remove(sessions: &Sessions, session: &Session) -> Outcome<()> {
    sessions.delete(session.id()).await.map(drop).map_err(|error| error.chain())
}

async fn remove_all(sessions: &Sessions) -> Outcome<()> {
    let all = sessions.list(&Default::default()).await.map_err(|error| error.chain())?;
    for report in all {
        let id = SessionId::new(report.id).map_err(|error| error.chain())?;
        remove(sessions, &sessions.session(id)).await?;
    }
    Ok(())
}

/// A session and all that is done to it, beside a bare spawn.
async fn one(desk: &Desk, sessions: &Sessions, rounds: usize) -> Outcome<Vec<Row>> {
    let failed = |error: cofferdam::Error| error.chain();
    let mut series = Series::default();
    let base = BARE.0;
    let named = desk.order().named("bench");
    let live = sessions.ensure(&named).await.map_err(failed)?.session;
    let warm_up = rounds / 50 + 2;
    for round in 0..rounds + warm_up {
        if round == warm_up {
            series.clear();
        }
        tokio::time::sleep(BETWEEN).await;
        series.bare(BARE.0, BARE.1, &TRUE)?;
        let begin = Instant::now();
        sessions.ensure(&named).await.map_err(failed)?;
        series.push("session-ensure", "ensure a session that runs", base, begin.elapsed());
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        desk.exec(&live).await?;
        series.push("session-exec", "a command in a session", base, begin.elapsed());
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        desk.exec_by_program(&live)?;
        series.push("session-exec-run", "the same by `cofferdam exec`", base, begin.elapsed());
        let begin = Instant::now();
        sessions.pause(live.id()).await.map_err(failed)?;
        series.push("session-pause", "pause a session", base, begin.elapsed());
        let begin = Instant::now();
        sessions.resume(live.id()).await.map_err(failed)?;
        series.push("session-resume", "resume it", base, begin.elapsed());
        let begin = Instant::now();
        let fresh = desk.create(sessions).await?;
        series.push("session-create", "create a session until ready", base, begin.elapsed());
        let begin = Instant::now();
        remove(sessions, &fresh).await?;
        let what = "remove it until nothing is left";
        series.push("session-remove", what, base, begin.elapsed());
    }
    remove(sessions, &live).await?;
    let mut rows = series.rows();
    rows.extend(used(desk, sessions, rounds).await?);
    Ok(rows)
}

/// A session that was used for long, beside a new one.
async fn used(desk: &Desk, sessions: &Sessions, rounds: usize) -> Outcome<Vec<Row>> {
    let mut series = Series::default();
    let (new, used) = (desk.create(sessions).await?, desk.create(sessions).await?);
    for _ in 0..USED {
        desk.exec(&used).await?;
    }
    desk.exec_by_program(&new)?;
    for _ in 0..rounds {
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        desk.exec_by_program(&new)?;
        let what = "by `cofferdam exec` in a new session";
        series.push(NEW_EXEC_RUN, what, NEW_EXEC_RUN, begin.elapsed());
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        desk.exec_by_program(&used)?;
        let what = "the same in one of 2000 commands";
        series.push(USED_EXEC_RUN, what, NEW_EXEC_RUN, begin.elapsed());
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        desk.by_program(&["ls"])?;
        series.push("session-ls", "`cofferdam ls` of the two", NEW_EXEC_RUN, begin.elapsed());
    }
    Ok(series.rows())
}

/// The rows of one state: their names, and what they are beside.
struct Beside {
    create: (&'static str, &'static str),
    exec: (&'static str, &'static str),
    by_program: (&'static str, &'static str),
}

const EMPTY: Beside = Beside {
    create: (MANY_CREATE_EMPTY, "create a session beside no other"),
    exec: (MANY_EXEC_EMPTY, "a command in the only session"),
    by_program: ("many-exec-run-empty", "the same by `cofferdam exec`"),
};
const FULL: Beside = Beside {
    create: (MANY_CREATE, "create a session beside 500 idle ones"),
    exec: (MANY_EXEC, "a command in a session beside 500 idle ones"),
    by_program: ("many-exec-run", "the same by `cofferdam exec`"),
};

/// Sessions that idle, and what they cost others: without them, with them, and without them again.
async fn many(desk: &Desk, sessions: &Sessions, rounds: usize) -> Outcome<Vec<Row>> {
    let mut series = Series::default();
    desk.exec(&desk.create(sessions).await?).await?;
    remove_all(sessions).await?;
    beside(desk, sessions, &EMPTY, &mut series, rounds / 2).await?;
    tokio::time::sleep(SETTLE).await;
    let keeper = bare_keeper(&desk.state).await?;
    tokio::time::sleep(SETTLE).await;
    let before = Memory::now()?;
    let mut idle = Vec::new();
    let mut starts = Vec::new();
    for _ in 0..MANY {
        let begin = Instant::now();
        idle.push(desk.create(sessions).await?);
        starts.push(nanoseconds(begin));
    }
    tokio::time::sleep(SETTLE).await;
    let both = Memory::now()?.kernel.saturating_sub(before.kernel) / MANY as u64;
    let mut rows = weights(&desk.state, Kernel { both, keeper });
    beside(desk, sessions, &FULL, &mut series, rounds).await?;
    let mut ends = Vec::new();
    for session in idle {
        let begin = Instant::now();
        remove(sessions, &session).await?;
        ends.push(nanoseconds(begin));
    }
    beside(desk, sessions, &EMPTY, &mut series, rounds / 2).await?;
    let what = "each of 500 sessions, made one after another";
    rows.push(row("many-start", what, Some(MANY_CREATE_EMPTY), Value::times(starts)));
    rows.push(row("many-remove", "each of them, removed", None, Value::times(ends)));
    rows.extend(series.rows());
    Ok(rows)
}

/// A new session and its commands, whatever else there is.
async fn beside(
    desk: &Desk,
    sessions: &Sessions,
    ids: &Beside,
    series: &mut Series,
    rounds: usize,
) -> Outcome<()> {
    for _ in 0..rounds.max(1) {
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        let fresh = desk.create(sessions).await?;
        series.push(ids.create.0, ids.create.1, EMPTY.create.0, begin.elapsed());
        // The first one in a sandbox meets cold pages.
        desk.exec(&fresh).await?;
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        desk.exec(&fresh).await?;
        series.push(ids.exec.0, ids.exec.1, EMPTY.exec.0, begin.elapsed());
        tokio::time::sleep(BETWEEN).await;
        let begin = Instant::now();
        desk.exec_by_program(&fresh)?;
        let (id, what) = ids.by_program;
        series.push(id, what, EMPTY.by_program.0, begin.elapsed());
        remove(sessions, &fresh).await?;
    }
    Ok(())
}

/// What the kernel holds for each sandbox and its keeper.
struct Kernel {
    both: u64,
    /// For a process of the keeper's program that keeps nothing. A keeper has some descriptors more,
    /// which are counted as the sandbox's.
    keeper: u64,
}

/// What the kernel holds for a process of the keeper's program that waits and does nothing.
async fn bare_keeper(state: &Path) -> Outcome<u64> {
    let entries = std::fs::read_dir(state).map_err(|error| error.to_string())?;
    let names = entries.flatten().map(|entry| entry.path());
    let program = names.into_iter().find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("program-"))
    });
    let program = program.ok_or("the keepers' program is not in the state directory")?;
    let failed = |error: std::io::Error| format!("start {}: {error}", program.display());
    let before = Memory::now()?.kernel;
    // They wait for a request on one socket, and end with it.
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
    let mut all = Vec::new();
    for _ in 0..MANY {
        let mut command = Command::new(&program);
        command.env_clear().current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        let socket = theirs.try_clone().map_err(failed)?;
        all.push(command.stdin(Stdio::from(OwnedFd::from(socket))).spawn().map_err(failed)?);
    }
    tokio::time::sleep(SETTLE).await;
    let after = Memory::now()?.kernel;
    drop((ours, theirs));
    for mut process in all {
        process.wait().map_err(failed)?;
    }
    Ok(after.saturating_sub(before) / MANY as u64)
}

/// What each sandbox and each keeper holds; user memory is missing where it cannot be read.
fn weights(state: &Path, Kernel { both, keeper }: Kernel) -> Vec<Row> {
    let bytes = |id, what, bytes| row(id, what, None, Value::Bytes { bytes });
    let kernel = both.saturating_sub(keeper);
    let mut rows = vec![
        bytes("many-memory-kernel", "of it, slab, stacks and page tables", kernel),
        bytes(
            MANY_KEEPER_KERNEL,
            "kernel memory of the keeper's program that keeps nothing",
            keeper,
        ),
    ];
    let firsts = firsts(state);
    let share = |bytes: u64| bytes / (firsts.len() as u64).max(1);
    let mut inside: Vec<String> = firsts.iter().map(u32::to_string).collect();
    inside.extend(firsts.iter().flat_map(|first| below(*first)));
    let keepers: Vec<String> = firsts.iter().filter_map(|first| parent(*first)).collect();
    let (Some(inside), Some(keepers), true) =
        (Weight::of(&inside), Weight::of(&keepers), keepers.len() == MANY)
    else {
        eprintln!("{} sandboxes and their keepers cannot be weighed by this user", firsts.len());
        return rows;
    };
    let user = share(inside.share);
    let all = share(inside.share + keepers.share) + both;
    rows.push(bytes(MANY_MEMORY, "an idle session's sandbox, user and kernel", user + kernel));
    rows.push(bytes("many-memory-user", "of it, share of its processes (PSS)", user));
    let what = "an idle session's keeper, private memory";
    rows.push(bytes(MANY_KEEPER, what, share(keepers.private)));
    rows.push(bytes("many-memory-all", "sandbox and keeper together, user and kernel", all));
    rows
}

/// The first processes of all sandboxes, which stand in their directories.
fn firsts(state: &Path) -> Vec<u32> {
    let places = std::fs::read_dir(state.join("sessions")).into_iter().flatten().flatten();
    let text = |path: PathBuf| std::fs::read_to_string(path.join("first")).ok();
    let all = places.filter_map(|place| text(place.path()));
    all.filter_map(|text| text.split(' ').next()?.parse().ok()).collect()
}

fn parent(process: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Some(line.trim().to_owned())
}
