//! What happens to names, told while it happens.

use super::failure::{printable, refusal};
use super::link::{FileLink, SILENT_FOR, broken};
use super::{Files, Request};
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use cofferdam_wire::files::{Answer, FileEvent, MAX_MESSAGE_BYTES, Part, Watch, parts};
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use std::collections::VecDeque;
use tokio::io::AsyncBufReadExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// Where a watch hears what happens.
#[async_trait]
pub trait EventSource: Send {
    /// What happened since the last answer, which is something. A call that is given up loses nothing.
    ///
    /// There is no end but an error.
    async fn next(&mut self) -> Result<Vec<FileEvent>>;
}

/// A watch that stands. It ends when it is dropped.
///
/// Nothing is kept here for a reader who is slow: what does not fit in the bounded room inside is
/// lost, and an [`FileEvent::Overflow`] says so.
pub struct FileWatch {
    source: Box<dyn EventSource>,
    heard: VecDeque<FileEvent>,
}

impl std::fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWatch").field("heard", &self.heard).finish_non_exhaustive()
    }
}

impl FileWatch {
    /// A watch that hears this.
    pub fn new(source: Box<dyn EventSource>) -> Self {
        Self { source, heard: VecDeque::new() }
    }

    /// What happens next; first of all [`FileEvent::Ready`]. A call that is given up loses nothing.
    ///
    /// Fails when the sandbox is gone, or the worker inside was killed. While the sandbox is paused
    /// nothing happens.
    pub async fn next(&mut self) -> Result<FileEvent> {
        loop {
            if let Some(event) = self.heard.pop_front() {
                return Ok(event);
            }
            self.heard.extend(self.source.next().await?);
        }
    }
}

impl Files {
    /// Watches places of the workspace, and stands when this returns: whatever happens from then on is
    /// told.
    ///
    /// What is told comes from inside: the names are bounded and lie in the workspace, and nothing more
    /// is promised of them. Changes that the host makes below a copy-on-write workspace are not told.
    ///
    /// So many stand at a time, of one sandbox and by one [`Files`] and its copies; a further one is
    /// unavailable.
    pub async fn watch(&self, order: &Watch) -> Result<FileWatch> {
        self.0.watch(order).await
    }
}

/// A connection that is a watch from now on.
pub(super) struct LinkWatch {
    /// Among the watches that may stand.
    _place: OwnedSemaphorePermit,
    link: FileLink,
    request: Request,
    /// The beginning of a frame.
    came: Vec<u8>,
    /// What came with the word that the watch stands.
    first: Vec<FileEvent>,
}

impl LinkWatch {
    /// Begins a watch and waits until it stands.
    pub(super) async fn begin(
        mut link: FileLink,
        order: &Watch,
        place: OwnedSemaphorePermit,
    ) -> Result<Self> {
        let request = Request::Watch(order.clone());
        link.ask(&request).await?;
        let mut watch = Self { _place: place, link, request, came: Vec::new(), first: Vec::new() };
        while watch.first.is_empty() {
            let heard = timeout(SILENT_FOR, watch.hear()).await.map_err(|_| {
                Error::new(ErrorKind::TimedOut, "the file worker does not answer")
                    .hint("Look whether the sandbox is paused or out of memory.")
            })?;
            watch.first = heard?;
        }
        match watch.first.first() {
            Some(FileEvent::Ready { .. }) => Ok(watch),
            Some(_) | None => Err(broken("it told something before the watch stood")),
        }
    }

    /// The events of one frame; none where it is a sign of life.
    async fn hear(&mut self) -> Result<Vec<FileEvent>> {
        let (header, body) = self.frame().await?;
        match header.kind {
            Kind::Data if header.len == 0 => Ok(Vec::new()),
            Kind::Message => match serde_json::from_slice(&body) {
                Ok(Answer::Events(events)) => events.into_iter().map(checked).collect(),
                Ok(Answer::Failed(failure)) => Err(refusal(&self.request, &failure)),
                Ok(_) => Err(broken("it answered what was not asked")),
                Err(error) => Err(broken("a message is wrong").source(error)),
            },
            Kind::Data | Kind::Credit | Kind::End => Err(broken("it sent what no watch sends")),
        }
    }

    /// The next frame. What came of it is kept where this is given up.
    async fn frame(&mut self) -> Result<(Header, Vec<u8>)> {
        loop {
            if let Some(frame) = self.whole()? {
                return Ok(frame);
            }
            let more = self.link.stream.fill_buf().await.map_err(|e| gone().source(e))?;
            if more.is_empty() {
                return Err(gone());
            }
            let count = more.len();
            self.came.extend_from_slice(more);
            self.link.stream.consume(count);
        }
    }

    /// A frame that has come whole.
    fn whole(&mut self) -> Result<Option<(Header, Vec<u8>)>> {
        let Some(head) = self.came.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let header = Header::decode(*head).map_err(|e| broken("a frame is wrong").source(e))?;
        // HOSTILE: refuse before anything is kept that never ends.
        if header.len > MAX_MESSAGE_BYTES || header.channel != self.link.number {
            return Err(broken("a frame is too long, or of another request"));
        }
        let end = HEADER_BYTES + header.len;
        let Some(body) = self.came.get(HEADER_BYTES..end).map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        self.came.drain(..end);
        Ok(Some((header, body)))
    }
}

#[async_trait]
impl EventSource for LinkWatch {
    async fn next(&mut self) -> Result<Vec<FileEvent>> {
        if !self.first.is_empty() {
            return Ok(std::mem::take(&mut self.first));
        }
        loop {
            let events = self.hear().await?;
            if events.iter().any(|event| matches!(event, FileEvent::Ready { .. })) {
                return Err(broken("it said twice that the watch stands"));
            }
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Unavailable, "the file worker of the watch is gone")
        .hint("Look whether the sandbox still runs, then watch again.")
}

/// HOSTILE: what is told lies in the workspace, at least by its words, and cannot steer a terminal.
fn checked(event: FileEvent) -> Result<FileEvent> {
    for path in event.paths() {
        let is_inside = !path.as_bytes().starts_with(b"/")
            && parts(path.as_bytes(), &[]).is_ok_and(|parts| !parts.contains(&Part::Up));
        if !is_inside {
            return Err(broken("it told of a path that no workspace has"));
        }
    }
    match event {
        FileEvent::Unwatched { path, mut failure } => {
            failure.detail = printable(&failure.detail);
            Ok(FileEvent::Unwatched { path, failure })
        }
        FileEvent::Ready { .. }
        | FileEvent::Created { .. }
        | FileEvent::Modified { .. }
        | FileEvent::Attributes { .. }
        | FileEvent::Removed { .. }
        | FileEvent::Renamed { .. }
        | FileEvent::Overflow => Ok(event),
    }
}
