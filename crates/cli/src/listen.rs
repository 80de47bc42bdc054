//! Signals that come to this program.

use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_local::is_ignored;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals by which somebody wants this program to end.
pub(crate) const ENDING: [SignalKind; 4] =
    [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];

/// Some signals, which do nothing else from now on.
#[derive(Debug)]
pub(crate) struct Listening(Vec<(i32, Signal)>);

impl Listening {
    /// Listens to these, but for what whoever started this program had it ignore: `nohup` is there to outlive
    /// a terminal.
    pub(crate) fn to(kinds: &[SignalKind]) -> Result<Self> {
        let heard = kinds.iter().filter(|kind| !is_ignored(kind.as_raw_value()));
        let heard = heard.map(|kind| Ok((kind.as_raw_value(), one(*kind)?)));
        heard.collect::<Result<_>>().map(Self)
    }

    /// The number of the one that comes next.
    pub(crate) async fn next(&mut self) -> i32 {
        std::future::poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Listens to one signal.
pub(crate) fn one(kind: SignalKind) -> Result<Signal> {
    signal(kind).map_err(|cause| Error::new(ErrorKind::Io, "listen to signals").source(cause))
}
