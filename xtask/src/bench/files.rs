//! The rows of files: reads and lists through a worker, beside the same without one.
//!
//! Writes have no row: a journal that is synced by two processes in turn makes each wait for the other.

use super::Outcome;
use super::library::{Series, answered, as_each_person};
use super::measure::{Plan, Results};
use super::programs::Ground;
use cofferdam::files::{List, Read, Write};
use cofferdam::{Error, Files, Sandbox, prepared_backend};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// The word under which this program is started as the process that uses files.
pub(crate) const FILES: &str = "bench-files";

pub(super) const READ: &str = "file-read";
pub(super) const READ_BARE: &str = "file-read-bare";
const CAT: &str = "file-cat";
const COPY: &str = "file-copy";
pub(super) const CROSSING: &str = "file-crossing";

const SMALL_BYTES: usize = 4 << 10;
const LARGE_BYTES: usize = 10 << 20;
const ENTRIES: u32 = 1000;
/// What a request for a small file takes on the socket, more or less.
const REQUEST_BYTES: usize = 128;
/// The dear rows are measured once in so many rounds, and the dearest in so many.
const EVERY: usize = 10;
const EVERY_HUGE: usize = 200;
/// What goes in and out at once to see how fast the line is.
const HUGE_BYTES: usize = 256 << 20;

/// Measures as each person, in a process of theirs.
pub(super) fn measure(plan: &Plan, ground: &Ground, results: &mut Results) -> Outcome<()> {
    as_each_person(ground, &[FILES.to_owned(), plan.rounds.to_string()], results)
}

/// The other side: `bench-files ROUNDS` in the workspace, answered by rows.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    answered(FILES, measure_here(words))
}

fn measure_here(words: &[String]) -> Outcome<String> {
    let rounds = words.first().and_then(|word| word.parse::<usize>().ok());
    let rounds = rounds.ok_or("the number of rounds is missing")?;
    let workspace = std::env::current_dir().map_err(in_words)?;
    let place = workspace.join("bench-files");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = prepare(&place)
        .and_then(|()| runtime.map_err(in_words)?.block_on(beside(&workspace, &place, rounds)));
    let _ = std::fs::remove_dir_all(&place);
    serde_json::to_string(&measured?.rows()).map_err(in_words)
}

fn prepare(place: &Path) -> Outcome<()> {
    std::fs::create_dir_all(place.join("list")).map_err(in_words)?;
    std::fs::write(place.join("small"), vec![7; SMALL_BYTES]).map_err(in_words)?;
    std::fs::write(place.join("large"), vec![7; LARGE_BYTES]).map_err(in_words)?;
    for number in 0..ENTRIES {
        std::fs::write(place.join(format!("list/file-{number:04}")), b"").map_err(in_words)?;
    }
    Ok(())
}

/// Each round does every row, with and without a worker.
async fn beside(workspace: &Path, place: &Path, rounds: usize) -> Outcome<Series> {
    let home = cofferdam::state_home().map_err(|error| error.chain())?;
    let backend = Arc::new(prepared_backend(home, cofferdam::Preparation::Tree));
    let builder = Sandbox::builder().workspace(workspace).backend(backend);
    let sandbox = builder.create().await.map_err(ours)?;
    let files = sandbox.files().await.map_err(ours)?;
    let mut crossing = Crossing::new()?;
    let mut series = Series::default();
    let warm_up = rounds / 50 + 2;
    for round in 0..rounds + warm_up {
        if round == warm_up {
            series.clear();
        }
        small(&mut series, place, &files, &mut crossing).await?;
        if round % EVERY == 0 {
            large(&mut series, place, &files).await?;
        }
        if round % EVERY_HUGE == 0 {
            huge(&mut series, place, &files).await?;
        }
    }
    sandbox.destroy().await.map_err(ours)?;
    Ok(series)
}

async fn small(
    series: &mut Series,
    place: &Path,
    files: &Files,
    crossing: &mut Crossing,
) -> Outcome<()> {
    let mut buffer = vec![0; SMALL_BYTES];
    let begin = Instant::now();
    let mut file = File::open(place.join("small")).map_err(in_words)?;
    file.read_exact(&mut buffer).map_err(in_words)?;
    drop(file);
    series.push(READ_BARE, "open, read 4 KiB, close", READ_BARE, begin.elapsed());
    let begin = Instant::now();
    let read = files.read("bench-files/small", SMALL_BYTES as u64).await.map_err(ours)?;
    series.push(READ, "4 KiB through a worker", READ_BARE, begin.elapsed());
    if read.len() != SMALL_BYTES {
        return Err(format!("{} of {SMALL_BYTES} bytes were read", read.len()));
    }
    let begin = Instant::now();
    crossing.cross()?;
    let what = "that many bytes over a bare socket to another thread and back";
    series.push(CROSSING, what, READ_BARE, begin.elapsed());
    Ok(())
}

async fn large(series: &mut Series, place: &Path, files: &Files) -> Outcome<()> {
    let begin = Instant::now();
    let bytes = std::fs::read(place.join("large")).map_err(in_words)?;
    series.push("file-read-large-bare", "read 10 MiB", "file-read-large-bare", begin.elapsed());
    let begin = Instant::now();
    let read = files.read("bench-files/large", LARGE_BYTES as u64).await.map_err(ours)?;
    series.push(
        "file-read-large",
        "10 MiB through a worker",
        "file-read-large-bare",
        begin.elapsed(),
    );
    if read != bytes {
        return Err("other bytes were read".to_owned());
    }
    let begin = Instant::now();
    let mut count = 0;
    for entry in std::fs::read_dir(place.join("list")).map_err(in_words)? {
        count += u32::from(entry.map_err(in_words)?.metadata().is_ok());
    }
    series.push("file-list-bare", "list and stat 1,000 files", "file-list-bare", begin.elapsed());
    let path = "bench-files/list".into();
    let order = List { path, depth: 1, after: None, limit: ENTRIES };
    let begin = Instant::now();
    let page = files.list(&order).await.map_err(ours)?;
    series.push("file-list", "1,000 files through a worker", "file-list-bare", begin.elapsed());
    if page.entries.len() != count as usize {
        return Err(format!("{} of {count} entries were listed", page.entries.len()));
    }
    Ok(())
}

/// Whole files out and in, with their hash, beside `cat` and `cp` of the same. What is copied is read
/// from the page cache; what is written is synced by the file service, and by `cp` with `sync` after it.
async fn huge(series: &mut Series, place: &Path, files: &Files) -> Outcome<()> {
    let (from, to) = (place.join("huge"), place.join("huge-copy"));
    if !from.exists() {
        std::fs::write(&from, vec![7; HUGE_BYTES]).map_err(in_words)?;
    }
    let shell = |line: &str| {
        let mut command = std::process::Command::new("/bin/sh");
        let status = command.args(["-c", line]).current_dir(place).status().map_err(in_words)?;
        status.success().then_some(()).ok_or(format!("{line:?} ended with {status}"))
    };
    let begin = Instant::now();
    shell("cat huge | cat >/dev/null")?;
    series.push(CAT, "256 MiB by `cat | cat`", CAT, begin.elapsed());
    let begin = Instant::now();
    let order = Read { path: "bench-files/huge".into(), hash: true, ..Read::default() };
    let read = files.read_to(&order, &mut tokio::io::sink()).await.map_err(ours)?;
    series.push("file-download", "256 MiB out, with their hash", CAT, begin.elapsed());
    if read.bytes != HUGE_BYTES as u64 {
        return Err(format!("{} of {HUGE_BYTES} bytes came out", read.bytes));
    }
    let begin = Instant::now();
    shell("cp huge huge-copy && sync huge-copy")?;
    series.push(COPY, "256 MiB by `cp`, synced", COPY, begin.elapsed());
    std::fs::remove_file(&to).map_err(in_words)?;
    let mut source = tokio::fs::File::open(&from).await.map_err(in_words)?;
    let order = Write { path: "bench-files/huge-copy".into(), ..Write::default() };
    let begin = Instant::now();
    files.write_from(&order, &mut source).await.map_err(ours)?;
    series.push("file-upload", "256 MiB in, with their hash, synced", COPY, begin.elapsed());
    std::fs::remove_file(&to).map_err(in_words)
}

/// A thread that answers a request by 4 KiB, as soon as it comes.
struct Crossing(UnixStream);

impl Crossing {
    fn new() -> Outcome<Self> {
        let (ours, mut theirs) = UnixStream::pair().map_err(in_words)?;
        std::thread::spawn(move || {
            let (mut request, answer) = ([0; REQUEST_BYTES], [7; SMALL_BYTES]);
            while theirs.read_exact(&mut request).is_ok() && theirs.write_all(&answer).is_ok() {}
        });
        Ok(Self(ours))
    }

    fn cross(&mut self) -> Outcome<()> {
        self.0.write_all(&[1; REQUEST_BYTES]).map_err(in_words)?;
        self.0.read_exact(&mut [0; SMALL_BYTES]).map_err(in_words)
    }
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn ours(error: Error) -> String {
    error.chain()
}
