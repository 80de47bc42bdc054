//! Writes frames to the guest: at once where nobody waits, many in one call where somebody does.

use crate::line::carrier::Outgoing;
use crate::{Error, ErrorKind, Result};
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::sync::mpsc;

/// How many frames wait for the guest before senders have to wait.
const WAITING_FRAMES: usize = 64;

/// How many frames go into one call. Twice that many slices stay far below the kernel's 1024.
const BATCH_FRAMES: usize = 32;

/// A frame on its way out.
#[derive(Debug)]
pub(super) struct Frame {
    header: [u8; HEADER_BYTES],
    body: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    /// How much of it went.
    written: usize,
}

impl Frame {
    pub(super) fn new(channel: u32, kind: Kind, body: Vec<u8>) -> Result<Self> {
        let header = Header { len: body.len(), channel, kind }.encode().map_err(|error| {
            Error::new(ErrorKind::Usage, "the request does not fit into a frame")
                .source(error)
                .hint("Shorten the arguments or the environment to below 1 MiB in all.")
        })?;
        Ok(Self { header, body, descriptors: Vec::new(), written: 0 })
    }

    pub(super) fn with(mut self, descriptors: Vec<OwnedFd>) -> Self {
        self.descriptors = descriptors;
        self
    }

    /// What has not gone yet.
    fn rest(&self) -> [&[u8]; 2] {
        let head = self.header.get(self.written..).unwrap_or_default();
        let skip = self.written.saturating_sub(HEADER_BYTES);
        [head, self.body.get(skip..).unwrap_or_default()]
    }

    fn is_written(&self) -> bool {
        self.written >= HEADER_BYTES + self.body.len()
    }
}

/// The way to the guest, for all who send.
///
/// Who finds nobody before it writes at once, on its own thread: it would cost a short command as
/// much as its start to have another one do it. All others wait for the task of [`Writer::write_all`].
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    queue: mpsc::Sender<Frame>,
    stream: Arc<Mutex<Stream>>,
}

/// The task's side of an [`Outlet`].
pub(super) struct Writer {
    queue: mpsc::Receiver<Frame>,
    stream: Arc<Mutex<Stream>>,
}

struct Stream {
    outgoing: Box<dyn Outgoing>,
    /// How many frames are in the queue, or in the task's hands.
    waiting: usize,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

/// Leave to send one frame without waiting.
#[derive(Debug)]
pub(super) struct Place<'a> {
    place: mpsc::Permit<'a, Frame>,
    stream: &'a Mutex<Stream>,
}

pub(super) fn outlet(outgoing: Box<dyn Outgoing>) -> (Outlet, Writer) {
    let (send, receive) = mpsc::channel(WAITING_FRAMES);
    let stream = Arc::new(Mutex::new(Stream { outgoing, waiting: 0 }));
    (Outlet { queue: send, stream: Arc::clone(&stream) }, Writer { queue: receive, stream })
}

fn lock(stream: &Mutex<Stream>) -> MutexGuard<'_, Stream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outlet {
    /// Waits for a place. `None` when nothing is sent any more.
    pub(super) async fn reserve(&self) -> Option<Place<'_>> {
        let place = self.queue.reserve().await.ok()?;
        Some(Place { place, stream: &self.stream })
    }
}

impl Place<'_> {
    pub(super) fn send(self, mut frame: Frame) {
        let mut stream = lock(self.stream);
        // ORDER: looked at and counted under one lock, so that frames go in the order of the calls.
        if stream.waiting == 0 {
            // The task, which nobody wakes by this, is woken by the queue where it is needed.
            let mut nobody = Context::from_waker(Waker::noop());
            while !frame.is_written() {
                match poll_write(std::slice::from_mut(&mut frame), &mut nobody, &mut stream) {
                    Poll::Ready(Ok(())) => {}
                    // The task meets the same error, and ends by it.
                    Poll::Ready(Err(_)) | Poll::Pending => break,
                }
            }
            if frame.is_written() && stream.outgoing.poll_flush(&mut nobody).is_ready() {
                return;
            }
        }
        stream.waiting += 1;
        self.place.send(frame);
    }
}

impl Writer {
    /// Writes what waits until no sender is left, or the stream fails.
    pub(super) async fn write_all(mut self) -> io::Result<()> {
        let mut batch = Vec::with_capacity(BATCH_FRAMES);
        loop {
            let count = self.queue.recv_many(&mut batch, BATCH_FRAMES).await;
            if count == 0 {
                return Ok(());
            }
            let mut frames: VecDeque<Frame> = batch.drain(..).collect();
            poll_fn(|cx| write(&mut frames, cx, &mut lock(&self.stream))).await?;
            lock(&self.stream).waiting -= count;
        }
    }
}

fn write(
    frames: &mut VecDeque<Frame>,
    cx: &mut Context<'_>,
    stream: &mut Stream,
) -> Poll<io::Result<()>> {
    while !frames.is_empty() {
        ready!(poll_write(frames.make_contiguous(), cx, stream))?;
        while frames.pop_front_if(|frame| frame.is_written()).is_some() {}
    }
    stream.outgoing.poll_flush(cx)
}

/// Writes once, and notes in the frames how much went. The first one is not written to its end.
fn poll_write(
    frames: &mut [Frame],
    cx: &mut Context<'_>,
    stream: &mut Stream,
) -> Poll<io::Result<()>> {
    let Some((first, others)) = frames.split_first_mut() else { return Poll::Ready(Ok(())) };
    let mut descriptors = std::mem::take(&mut first.descriptors);
    // ORDER: descriptors go with the first byte of a call, so their frame begins one.
    let together = others.iter().take_while(|frame| frame.descriptors.is_empty());
    let rests = std::iter::once(&*first).chain(together).flat_map(Frame::rest);
    let slices: Vec<IoSlice<'_>> =
        rests.filter(|rest| !rest.is_empty()).map(IoSlice::new).collect();
    let polled = stream.outgoing.poll_write(cx, &slices, &mut descriptors);
    first.descriptors = descriptors;
    let mut written = ready!(polled)?;
    if written == 0 {
        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
    }
    for frame in frames {
        let left = frame.rest().iter().map(|rest| rest.len()).sum::<usize>();
        let gone = left.min(written);
        frame.written += gone;
        written -= gone;
    }
    Poll::Ready(Ok(()))
}
