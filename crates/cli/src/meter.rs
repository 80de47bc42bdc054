//! How far something is: a bar on a terminal, or events, from the first second on.

use cofferdam_core::{Progress, Step, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{IsTerminal, Read, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is done sooner is not told of.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a bar is drawn anew, and how often an event is written.
const BAR_EVERY: Duration = Duration::from_millis(100);
const EVENT_EVERY: Duration = Duration::from_millis(500);

/// How far something is, as a line on standard error tells it with `--json`. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProgressEvent {
    /// Always `progress`.
    pub(crate) event: String,
    /// What is being done, as one word.
    pub(crate) doing: String,
    /// How much of it is done; nothing where that cannot be told.
    pub(crate) done: Option<u64>,
    /// How much there is in all, where that is known.
    pub(crate) total: Option<u64>,
    /// What is counted: `bytes`, `entries` or `repositories`.
    pub(crate) unit: Option<String>,
    /// For how long, in milliseconds.
    pub(crate) elapsed_ms: u64,
}

/// How it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Bar,
    Events,
}

/// Tells how far something is, until it is dropped. Nothing is told where nobody looks: without
/// `--json` and without a terminal.
pub(crate) struct Meter {
    shared: Arc<Shared>,
    teller: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    now: Mutex<Now>,
    ended: Condvar,
}

#[derive(Default)]
struct Now {
    step: Option<Step>,
    is_over: bool,
}

impl Meter {
    /// Begins. `doing` is one word.
    pub(crate) fn start(doing: &'static str, json: bool) -> Self {
        let way = match json {
            true => Some(Way::Events),
            false => std::io::stderr().is_terminal().then_some(Way::Bar),
        };
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let teller = way.and_then(|way| {
            let name = std::thread::Builder::new().name("progress".to_owned());
            // Where no thread can be had, the work is done without telling of it.
            name.spawn(move || seen.tell(doing, way)).ok()
        });
        Self { shared, teller }
    }

    /// What is told to it.
    pub(crate) fn progress(&self) -> Progress {
        if self.teller.is_none() {
            return Progress::default();
        }
        let shared = Arc::clone(&self.shared);
        Progress::new(move |step| shared.lock().step = Some(step))
    }

    /// A stream of which every byte is told of.
    pub(crate) fn counting<T>(&self, inner: T, total: Option<u64>) -> Counting<T> {
        Counting { inner, progress: self.progress(), done: 0, total }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.ended.notify_all();
        if let Some(teller) = self.teller.take() {
            // What it could not tell is no reason to fail.
            let _ = teller.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; what is over is not told of.
    fn after(&self, pause: Duration) -> Option<Option<Step>> {
        let waited = self.ended.wait_timeout_while(self.lock(), pause, |now| !now.is_over);
        let (now, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!now.is_over).then_some(now.step)
    }

    fn tell(&self, doing: &'static str, way: Way) {
        let begin = Instant::now();
        let Some(mut step) = self.after(PATIENCE) else { return };
        let bar = (way == Way::Bar).then(|| bar(doing));
        loop {
            match &bar {
                Some(bar) => draw(bar, step),
                None => write(doing, step, begin.elapsed()),
            }
            let pause = if bar.is_some() { BAR_EVERY } else { EVENT_EVERY };
            match self.after(pause) {
                Some(next) => step = next,
                None => break,
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(doing: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_message(doing);
    bar
}

fn draw(bar: &ProgressBar, step: Option<Step>) {
    let template = match step {
        None => "{spinner} {msg} {elapsed}",
        Some(Step { total: None, unit: Unit::Bytes, .. }) => "{spinner} {msg} {bytes} {elapsed}",
        Some(Step { total: None, .. }) => "{spinner} {msg} {pos} {elapsed}",
        Some(Step { unit: Unit::Bytes, .. }) => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
        Some(_) => "{msg} {wide_bar} {pos}/{len}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    if let Some(step) = step {
        if let Some(total) = step.total {
            bar.set_length(total);
        }
        bar.set_position(step.done);
    }
    bar.tick();
}

fn write(doing: &str, step: Option<Step>, elapsed: Duration) {
    let event = ProgressEvent {
        event: "progress".to_owned(),
        doing: doing.to_owned(),
        done: step.map(|step| step.done),
        total: step.and_then(|step| step.total),
        unit: step.map(|step| step.unit.name().to_owned()),
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    };
    if let Ok(line) = serde_json::to_string(&event) {
        // Where standard error is gone there is nobody left to tell.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}

/// A stream that tells how many bytes passed.
pub(crate) struct Counting<T> {
    inner: T,
    progress: Progress,
    done: u64,
    total: Option<u64>,
}

impl<T> Counting<T> {
    /// The stream itself.
    pub(crate) fn inner(&mut self) -> &mut T {
        &mut self.inner
    }

    fn pass(&mut self, count: usize) {
        self.done += count as u64;
        self.progress.tell(Step { done: self.done, total: self.total, unit: Unit::Bytes });
    }
}

impl<T: Read> Read for Counting<T> {
    fn read(&mut self, place: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(place)?;
        self.pass(count);
        Ok(count)
    }
}

impl<T: Write> Write for Counting<T> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.pass(count);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
