//! Writes frames to the guest, many in one call.

use crate::line::carrier::Outgoing;
use crate::{Error, ErrorKind, Result};
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// How many frames wait for the guest before senders have to wait.
pub(super) const WAITING_FRAMES: usize = 64;

/// How many frames go into one call. Twice that many slices stay far below the kernel's 1024.
const BATCH_FRAMES: usize = 32;

/// A frame on its way out.
#[derive(Debug)]
pub(super) struct Frame {
    header: [u8; HEADER_BYTES],
    body: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Frame {
    pub(super) fn new(channel: u32, kind: Kind, body: Vec<u8>) -> Result<Self> {
        let header = Header { len: body.len(), channel, kind }.encode().map_err(|error| {
            Error::new(ErrorKind::Usage, "the request does not fit into a frame")
                .source(error)
                .hint("Shorten the arguments or the environment to below 1 MiB in all.")
        })?;
        Ok(Self { header, body, descriptors: Vec::new() })
    }

    pub(super) fn with(mut self, descriptors: Vec<OwnedFd>) -> Self {
        self.descriptors = descriptors;
        self
    }

    fn len(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }
}

/// Writes until no sender is left, or the stream fails.
pub(super) async fn write_all(
    mut outgoing: Box<dyn Outgoing>,
    mut frames: mpsc::Receiver<Frame>,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_FRAMES);
    while frames.recv_many(&mut batch, BATCH_FRAMES).await > 0 {
        let mut pending = Pending { frames: batch.drain(..).collect(), written: 0 };
        poll_fn(|cx| pending.poll(cx, outgoing.as_mut())).await?;
    }
    Ok(())
}

struct Pending {
    frames: VecDeque<Frame>,
    /// How much of the first frame went.
    written: usize,
}

impl Pending {
    fn poll(&mut self, cx: &mut Context<'_>, outgoing: &mut dyn Outgoing) -> Poll<io::Result<()>> {
        loop {
            let Some(first) = self.frames.front_mut() else { return outgoing.poll_flush(cx) };
            let mut descriptors = std::mem::take(&mut first.descriptors);
            let mut slices = Vec::with_capacity(2 * self.frames.len());
            for (index, frame) in self.frames.iter().enumerate() {
                // ORDER: descriptors go with the first byte of a call, so their frame begins one.
                if index > 0 && !frame.descriptors.is_empty() {
                    break;
                }
                let skip = if index == 0 { self.written } else { 0 };
                let head = frame.header.get(skip..).unwrap_or_default();
                let body = frame.body.get(skip.saturating_sub(HEADER_BYTES)..).unwrap_or_default();
                slices.extend([head, body].into_iter().filter(|s| !s.is_empty()).map(IoSlice::new));
            }
            let written = outgoing.poll_write(cx, &slices, &mut descriptors);
            if let Some(first) = self.frames.front_mut() {
                first.descriptors = descriptors;
            }
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.advance(written),
            }
        }
    }

    fn advance(&mut self, written: usize) {
        self.written += written;
        while let Some(first) = self.frames.front() {
            if self.written < first.len() {
                return;
            }
            self.written -= first.len();
            self.frames.pop_front();
        }
    }
}
