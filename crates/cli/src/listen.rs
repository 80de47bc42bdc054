//! Signals that come to this program.

use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_local::is_ignored;
pub(crate) use cofferdam_local::oneshot::ENDING;
use cofferdam_local::oneshot::PASSED_ON;
use std::task::Poll;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a signal waits for the command that it is for to be started.
const STARTED_SOON: Duration = Duration::from_secs(2);

/// Some signals, which do nothing else from now on.
#[derive(Debug)]
pub(crate) struct Listening {
    heard: Vec<(i32, Signal)>,
    /// Came before somebody could do what it asks for.
    early: Option<i32>,
}

impl Listening {
    /// Listens to these, but for what whoever started this program had it ignore: `nohup` is there to outlive
    /// a terminal.
    pub(crate) fn to(numbers: &[i32]) -> Result<Self> {
        let heard = numbers.iter().filter(|number| !is_ignored(**number));
        let heard = heard.map(|number| Ok((*number, one(SignalKind::from_raw(*number))?)));
        Ok(Self { heard: heard.collect::<Result<_>>()?, early: None })
    }

    /// Listens to what is passed on to a command: to be called before that is started, since what comes while it
    /// starts is for it, too.
    pub(crate) fn for_a_command() -> Result<Self> {
        Self::to(&PASSED_ON)
    }

    /// Ends where the caller cannot wait any longer for its command to be started: a signal came, and another one
    /// after it, or the command was not there soon.
    pub(crate) async fn impatience(&mut self) {
        self.early = Some(self.next().await);
        let _ = tokio::time::timeout(STARTED_SOON, self.coming()).await;
    }

    /// The number of the one that comes next.
    pub(crate) async fn next(&mut self) -> i32 {
        match self.early.take() {
            Some(number) => number,
            None => self.coming().await,
        }
    }

    async fn coming(&mut self) -> i32 {
        std::future::poll_fn(|context| {
            for (number, signal) in &mut self.heard {
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
