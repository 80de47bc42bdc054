//! The rows of copy-on-write sessions: what it costs to look at changes, to keep and to fork them, over
//! trees of several sizes. What is changed is the same little each time.

use super::Outcome;
use super::library::{answered, as_each_person, row, with_threads};
use super::measure::{Plan, Results, Row, Value};
use super::programs::Ground;
use cofferdam::{Caller, Spec, Workspace};
use cofferdam_session::{Session, SessionId, SessionOrder, Sessions, Target, UndoOrder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The word under which this program is started as the process that uses such sessions.
pub(crate) const TREES: &str = "bench-trees";

/// Rows of a command with its checkpoint, and of one without, over the trees that have a target.
pub(super) const CHECKPOINT: [(&str, &str); 3] = [
    ("tree-checkpoint-1000", "tree-plain-1000"),
    ("tree-checkpoint-10000", "tree-plain-10000"),
    ("tree-checkpoint-50000", "tree-plain-50000"),
];
/// Rows of an undo over the same trees.
pub(super) const UNDO: [&str; 3] = ["tree-undo-1000", "tree-undo-10000", "tree-undo-50000"];
/// Rows of a fork, and of a session that is made of nothing.
pub(super) const FORK: [(&str, &str); 3] = [
    ("tree-fork-1000", "tree-create-1000"),
    ("tree-fork-10000", "tree-create-10000"),
    ("tree-fork-50000", "tree-create-50000"),
];
/// How many files the trees have, in a full and in a quick run.
const SIZES: [usize; 4] = [1000, 10_000, 50_000, 200_000];
const QUICK_SIZES: [usize; 2] = [1000, 10_000];
/// How many of them are in one directory, and what each holds.
const PER_DIRECTORY: usize = 100;
const CONTENT: &[u8] = b"Some sixty bytes of text, as much as a small file has, or so.\n";
/// Rounds of this part are rounds of the others divided by this: each makes a session.
const ROUNDS_SHARE: usize = 40;
/// Writes three files: one over another of the tree, two that are new.
const CHANGE: &str = "date +%N >d0/f0; date +%N >new-1; date +%N >d0/new-2";
const OUTPUT_BYTES: usize = 1 << 12;

/// Measures as each person, in a process of theirs for each size: nobody's small trees come after
/// another one's large ones.
pub(super) fn measure(
    plan: &Plan,
    quick: bool,
    ground: &Ground,
    results: &mut Results,
) -> Outcome<()> {
    let rounds = (plan.rounds / ROUNDS_SHARE).max(2).to_string();
    let sizes = if quick { &QUICK_SIZES[..] } else { &SIZES[..] };
    let mut failure = None;
    for files in sizes {
        let words = [TREES.to_owned(), rounds.clone(), files.to_string()];
        failure = failure.or(as_each_person(ground, &words, results).err());
    }
    failure.map_or(Ok(()), Err)
}

/// The other side: `bench-trees ROUNDS FILES` in a directory of its own, answered by rows.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    answered(TREES, measure_here(words))
}

fn measure_here(words: &[String]) -> Outcome<String> {
    let [rounds, files] = words else { return Err("two words are needed".to_owned()) };
    let [rounds, files] = [rounds, files].map(|word| word.parse::<usize>().map_err(in_words));
    let (rounds, files) = (rounds?, files?);
    let place = std::env::current_dir().map_err(in_words)?.join("trees");
    let runtime = with_threads()?;
    let to_measure = place.clone();
    // In a task, as a program with a runtime does its work.
    let measuring = runtime.spawn(async move { all(&to_measure, files, rounds).await });
    let measured = runtime.block_on(measuring).map_err(in_words)?;
    let removed = std::fs::remove_dir_all(&place).map_err(in_words);
    let rows = measured?;
    removed?;
    serde_json::to_string(&rows).map_err(in_words)
}

async fn all(place: &Path, files: usize, rounds: usize) -> Outcome<Vec<Row>> {
    let state = place.join("state");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&state);
    made.map_err(in_words)?;
    let backend = Arc::new(cofferdam::kept_backend(state.clone()));
    let sessions = Sessions::open(&state, vec![backend]).await.map_err(ours)?;
    let rows = one(&sessions, &place.join("tree"), files, rounds).await;
    // Whatever went wrong, nothing is left.
    let removed = remove_all(&sessions).await;
    let rows = rows?;
    removed.map(|()| rows)
}

/// One tree: a session that is used, beside one without checkpoints.
async fn one(sessions: &Sessions, tree: &Path, files: usize, rounds: usize) -> Outcome<Vec<Row>> {
    make_tree(tree, files)?;
    let kept = sessions.create(&order(tree, true)).await.map_err(ours)?;
    let plain = sessions.create(&order(tree, false)).await.map_err(ours)?;
    let mut times = Times { files, rows: Vec::new() };
    for round in 0..=rounds {
        // The first one meets a tree that nobody has read.
        if round == 1 {
            times.rows.clear();
        }
        let begin = Instant::now();
        change(&plain).await?;
        times.push("plain", "a command that writes three files, no checkpoint", begin.elapsed());
        measure_round(sessions, &kept, &mut times).await?;
        let begin = Instant::now();
        let fresh = sessions.create(&order(tree, true)).await.map_err(ours)?;
        times.push("create", "make a session over it, until ready", begin.elapsed());
        sessions.delete(fresh.id()).await.map_err(ours)?;
    }
    std::fs::remove_dir_all(tree).map_err(in_words)?;
    Ok(times.rows())
}

async fn measure_round(sessions: &Sessions, session: &Session, times: &mut Times) -> Outcome<()> {
    let id = session.id();
    let begin = Instant::now();
    change(session).await?;
    times.push("checkpoint", "the same with its checkpoint", begin.elapsed());
    let begin = Instant::now();
    let changes = session.changes(&[]).await.map_err(ours)?;
    times.push("diff", "look at what changed", begin.elapsed());
    if changes.len() != 3 {
        return Err(format!("{} changes instead of 3", changes.len()));
    }
    let begin = Instant::now();
    let snapshot = sessions.snapshot(id, None).await.map_err(ours)?;
    times.push("snapshot", "a snapshot", begin.elapsed());
    change(session).await?;
    let begin = Instant::now();
    let order = UndoOrder { target: Target::Back(1), dry_run: false, may_lose: false };
    session.undo(&order).await.map_err(ours)?;
    times.push("undo", "undo a command, all processes ended", begin.elapsed());
    let begin = Instant::now();
    change(session).await?;
    times.push("after", "the next command", begin.elapsed());
    let begin = Instant::now();
    let fork = sessions.fork(id, None, "fork").await.map_err(ours)?;
    times.push("fork", "fork it, until ready", begin.elapsed());
    sessions.delete(fork.id()).await.map_err(ours)?;
    let snapshot = snapshot.snapshot.to_string();
    sessions.remove_snapshot(id, &snapshot).await.map_err(ours)?;
    Ok(())
}

async fn change(session: &Session) -> Outcome<()> {
    let order = Session::order(["/bin/sh", "-c", CHANGE]).map_err(ours)?;
    let output = session.exec(&order, OUTPUT_BYTES).await.map_err(ours)?;
    match output.status.ended.map(|ended| ended.ending.exit_code()) {
        Some(0) => Ok(()),
        code => Err(format!("a change ended with {code:?}")),
    }
}

fn order(tree: &Path, checkpoints: bool) -> SessionOrder {
    let workspace = Workspace::CopyOnWrite(PathBuf::from(tree));
    let mut order = SessionOrder::new(Spec::new(workspace, Caller::default()));
    order.idle_pause = None;
    order.checkpoints = checkpoints;
    order
}

fn make_tree(tree: &Path, files: usize) -> Outcome<()> {
    for directory in 0..files.div_ceil(PER_DIRECTORY) {
        let directory = tree.join(format!("d{directory}"));
        std::fs::create_dir_all(&directory).map_err(in_words)?;
        for file in 0..PER_DIRECTORY {
            std::fs::write(directory.join(format!("f{file}")), CONTENT).map_err(in_words)?;
        }
    }
    Ok(())
}

async fn remove_all(sessions: &Sessions) -> Outcome<()> {
    for report in sessions.list(&Default::default()).await.map_err(ours)? {
        let id = SessionId::new(report.id).map_err(ours)?;
        sessions.delete(&id).await.map_err(ours)?;
    }
    Ok(())
}

/// The rows of one tree.
struct Times {
    files: usize,
    rows: Vec<(&'static str, &'static str, Vec<u64>)>,
}

impl Times {
    fn push(&mut self, id: &'static str, what: &'static str, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match self.rows.iter_mut().find(|(known, ..)| *known == id) {
            Some((.., samples)) => samples.push(ns),
            None => self.rows.push((id, what, vec![ns])),
        }
    }

    /// Each beside the same over the smallest tree: what does not depend on the size is 1.
    fn rows(self) -> Vec<Row> {
        let files = self.files;
        let named = |(id, what, samples)| {
            let base = format!("tree-{id}-{}", SIZES.first().unwrap_or(&files));
            let what = format!("{what}, {files} files");
            row(&format!("tree-{id}-{files}"), &what, Some(&base), Value::times(samples))
        };
        self.rows.into_iter().map(named).collect()
    }
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn ours(error: cofferdam::Error) -> String {
    error.chain()
}
