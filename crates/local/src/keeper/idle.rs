//! Connections to keepers that nobody uses now: a connection anew costs both sides more than a question.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::net::UnixStream;
use tokio::runtime::{Handle, Id};

/// How many connections one backend holds that nobody uses. Those that were used longest ago go first.
pub(super) const MAX_IDLE: usize = 64;

/// Whom a connection leads to, and who may use it.
#[derive(Debug, PartialEq, Eq)]
struct Whose {
    /// The external id of the sandbox: a later one of the same id is kept by another keeper.
    sandbox: String,
    /// The runtime that the connection lives in.
    runtime: Id,
}

/// The connections that nobody uses now.
#[derive(Debug, Default)]
pub(super) struct Idle(Mutex<VecDeque<(Whose, UnixStream)>>);

impl Idle {
    /// A connection to the keeper of this sandbox that was still there a moment ago.
    pub(super) fn take(&self, sandbox: &str) -> Option<UnixStream> {
        let whose =
            Whose { sandbox: sandbox.to_owned(), runtime: Handle::try_current().ok()?.id() };
        loop {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let place = all.iter().rposition(|(known, _)| *known == whose)?;
            let (_, socket) = all.remove(place)?;
            drop(all);
            if is_quiet(&socket) {
                return Some(socket);
            }
        }
    }

    /// Keeps a connection whose last question was answered.
    pub(super) fn put(&self, sandbox: &str, socket: UnixStream) {
        let Ok(runtime) = Handle::try_current().map(|runtime| runtime.id()) else { return };
        let whose = Whose { sandbox: sandbox.to_owned(), runtime };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back((whose, socket));
        if all.len() > MAX_IDLE {
            all.pop_front();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Whether the other side is there and says nothing, as it does between questions.
fn is_quiet(socket: &UnixStream) -> bool {
    let mut byte = [0];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(socket, &mut byte, flags), Err(Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_connection_is_used_again_where_it_leads_to_the_same_and_is_alive() {
        let (idle, first) = (Idle::default(), runtime());
        let (ours, theirs) = first.block_on(async { UnixStream::pair().unwrap() });
        first.block_on(async {
            idle.put("a", ours);
            assert!(idle.take("b").is_none());
        });
        // Another runtime cannot wait for it.
        let second = runtime();
        assert!(second.block_on(async { idle.take("a") }).is_none());
        first.block_on(async {
            let ours = idle.take("a").unwrap();
            assert!(idle.take("a").is_none());
            idle.put("a", ours);
            drop(theirs);
            assert!(idle.take("a").is_none());
            assert_eq!(idle.len(), 0);
        });
    }

    #[test]
    fn one_that_spoke_unasked_is_not_used_again() {
        runtime().block_on(async {
            let idle = Idle::default();
            let (ours, theirs) = UnixStream::pair().unwrap();
            theirs.writable().await.unwrap();
            theirs.try_write(b"?").unwrap();
            idle.put("a", ours);
            assert!(idle.take("a").is_none());
        });
    }

    #[test]
    fn only_so_many_are_held() {
        runtime().block_on(async {
            let idle = Idle::default();
            let mut others = Vec::new();
            for number in 0..=MAX_IDLE {
                let (ours, theirs) = UnixStream::pair().unwrap();
                idle.put(&number.to_string(), ours);
                others.push(theirs);
            }
            assert_eq!(idle.len(), MAX_IDLE);
            assert!(idle.take("0").is_none());
            assert!(idle.take("1").is_some());
        });
    }
}
