//! A command whose events are wanted together, seen through by its caller's own task.

use crate::line::channel::{Channel, Line, Received};
use crate::line::process::{
    Asked, Registered, end_event, from_process, not_started_event, nothing_stays, tell,
};
use crate::line::table::broken;
use crate::{Collector, Error, ErrorKind, LimitWatch, Output, ProcessEvent, Result, Standard};
use cofferdam_wire::message::{FromProcess, ToProcess};
use std::sync::{Arc, Mutex, PoisonError};

/// A command that was asked for. Dropped before its end, it is killed and seen through by a task.
pub(super) struct Whole {
    inner: Option<Inner>,
}

struct Inner {
    line: Line,
    watch: Arc<dyn LimitWatch>,
    asked: Asked,
    _registered: Registered,
}

impl Whole {
    pub(super) fn new(
        line: Line,
        watch: Arc<dyn LimitWatch>,
        registered: Registered,
        asked: Asked,
    ) -> Self {
        Self { inner: Some(Inner { line, watch, asked, _registered: registered }) }
    }

    /// Waits for its end, and keeps the first bytes of each stream.
    pub(super) async fn see_through(mut self, kept: usize) -> Result<Output> {
        let gone = || Error::new(ErrorKind::Unavailable, "the command was given up");
        let output = self.inner.as_ref().ok_or_else(gone)?.see_through(kept).await;
        self.inner = None;
        output
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        let runtime = inner.line.runtime().clone();
        runtime.spawn(async move {
            tell(&inner.asked.channels.control, ToProcess::Kill).await;
            // Nobody is there to tell. Until its end its channels must be there.
            inner.see_through(0).await.ok();
        });
    }
}

impl Inner {
    async fn see_through(&self, kept: usize) -> Result<Output> {
        let collector = Mutex::new(Collector::new(kept));
        let channels = &self.asked.channels;
        let gathered = async {
            tokio::join!(
                gather(channels.stdout.as_ref(), Standard::Output, &collector),
                gather(channels.stderr.as_ref(), Standard::Error, &collector)
            );
        };
        let last = self.last_event(gathered).await;
        let mut collector = collector.into_inner().unwrap_or_else(PoisonError::into_inner);
        match last? {
            Some(last) => collector.push(last).ok_or_else(|| broken("an ending was none")),
            None => Err(collector.lost().into()),
        }
    }

    /// The ending, after all output. `None` where the line ended before it.
    async fn last_event(&self, gathered: impl Future<Output = ()>) -> Result<Option<ProcessEvent>> {
        let mut gathered = std::pin::pin!(gathered);
        let mut is_gathered = false;
        let message = {
            let mut last = std::pin::pin!(self.last_message());
            loop {
                tokio::select! {
                    message = &mut last => break message,
                    () = &mut gathered, if !is_gathered => is_gathered = true,
                }
            }
        };
        let message = match message {
            Ok(message) => message,
            Err(error) if error.kind == ErrorKind::Protocol => {
                self.line.close(&error);
                return Err(error);
            }
            Err(_) => {
                // What came before the line ended is told.
                if !is_gathered {
                    gathered.await;
                }
                return Ok(None);
            }
        };
        match message {
            FromProcess::NotStarted(reason) => Ok(Some(not_started_event(reason))),
            FromProcess::Ended(ended) => {
                if !is_gathered {
                    gathered.await;
                }
                Ok(Some(end_event(&ended, self.asked.before, self.watch.as_ref())))
            }
            FromProcess::Started { .. } | FromProcess::Stopped { .. } | FromProcess::Emptied => {
                Ok(None)
            }
        }
    }

    async fn last_message(&self) -> Result<FromProcess> {
        let mut has_started = false;
        loop {
            let (message, _) = from_process(&self.asked.channels.control).await?;
            match message {
                FromProcess::Started { .. } if has_started => {
                    return Err(broken("a command started twice"));
                }
                FromProcess::Started { .. } => has_started = true,
                FromProcess::Stopped { .. } => {}
                FromProcess::Emptied => return Err(nothing_stays()),
                FromProcess::NotStarted(_) | FromProcess::Ended(_) => return Ok(message),
            }
        }
    }
}

async fn gather(channel: Option<&Channel>, stream: Standard, collector: &Mutex<Collector>) {
    let Some(channel) = channel else { return };
    let mut offset = 0;
    while let Ok(Received::Data(bytes)) = channel.receive().await {
        let len = bytes.len() as u64;
        let event = ProcessEvent::Output { stream, offset, bytes };
        collector.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        offset += len;
    }
}
