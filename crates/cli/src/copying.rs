//! Shows on a terminal how far the copy of a workspace has come.

use crate::render;
use cofferdam_core::{Step, Unit};
use cofferdam_local::layers::{self, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A copy that is done sooner shows nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// The copy of now: since when, and its line once it is shown.
static COPY: Mutex<Option<(Instant, Option<ProgressBar>)>> = Mutex::new(None);

/// Who is told instead, where one meter tells of all that is done.
static METER: Mutex<Option<cofferdam_core::Progress>> = Mutex::new(None);

/// Has this meter tell of copies from now on.
pub(crate) fn tell_meter(progress: cofferdam_core::Progress) {
    *METER.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
}

/// Has copies of workspaces shown from now on.
pub(crate) fn show() {
    layers::watch(tell);
}

fn tell(progress: Progress) {
    if let Some(meter) = &*METER.lock().unwrap_or_else(PoisonError::into_inner) {
        meter.tell(Step { done: progress.bytes, total: None, unit: Unit::Bytes });
        return;
    }
    let mut copy = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    if progress.is_over {
        if let Some((_, Some(bar))) = copy.take() {
            bar.finish_and_clear();
        }
        return;
    }
    let (since, bar) = copy.get_or_insert_with(|| (Instant::now(), None));
    if since.elapsed() < SHOWN_AFTER {
        return;
    }
    // Without a terminal it draws nothing.
    let target = ProgressDrawTarget::stderr;
    let bar = bar.get_or_insert_with(|| ProgressBar::with_draw_target(None, target()));
    let (entries, bytes) = (progress.entries, render::bytes(progress.bytes));
    bar.set_message(format!("copying the workspace: {entries} entries, {bytes}"));
}
