//! What only looks is asked again when the server is back.

use crate::Client;
use crate::answer::Failure;
use cofferdam_core::Result;
use reqwest::StatusCode;
use std::time::{Duration, Instant};

/// How long a server that has answered before may be away.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The first wait before it is asked again, and the longest.
const WAITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

impl Client {
    /// Asks until there is an answer, where the way to a server breaks that has answered before, or where
    /// it says that it was asked too often. For what may be asked any number of times.
    pub(crate) async fn persist<T, F>(&self, ask: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        self.persist_while(ask, |failure| self.may_pass(failure)).await
    }

    /// The same for what may be asked once: it is asked again only where the server has not taken it.
    pub(crate) async fn persist_until_taken<T, F>(&self, ask: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let was_not_taken =
            |failure: &Failure| !matches!(failure, Failure::Way(_)) && self.may_pass(failure);
        self.persist_while(ask, was_not_taken).await
    }

    async fn persist_while<T, F>(
        &self,
        ask: impl Fn() -> F,
        may_pass: impl Fn(&Failure) -> bool,
    ) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let give_up = Instant::now() + PATIENCE;
        let [mut wait, longest] = WAITS;
        loop {
            let failure = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if !may_pass(&failure) || Instant::now() + wait > give_up {
                return Err(failure.into());
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(longest);
        }
    }

    /// Whether the same question may be answered in a moment.
    pub(crate) fn may_pass(&self, failure: &Failure) -> bool {
        match failure {
            Failure::Here(_) => false,
            Failure::Unheard(_) | Failure::Way(_) => self.has_answered(),
            Failure::Said(said) => said.status == StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;
    use crate::answer::Said;
    use cofferdam_core::{Error, ErrorKind};
    use std::cell::Cell;
    use std::future::ready;
    use std::sync::atomic::Ordering;

    fn client() -> Client {
        Client::new(Address::parse("http://127.0.0.1:1").unwrap(), None).unwrap()
    }

    fn broken() -> Failure {
        Failure::Way(Error::new(ErrorKind::Unavailable, "reach it"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answered_is_given_up_at_once() {
        let (client, asked) = (client(), Cell::new(0));
        let answer = client.persist(|| {
            asked.set(asked.get() + 1);
            ready(Err::<(), _>(broken()))
        });
        assert_eq!(answer.await.unwrap_err().kind, ErrorKind::Unavailable);
        assert_eq!(asked.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_was_there_is_waited_for() {
        let client = client();
        client.0.has_answered.store(true, Ordering::Relaxed);
        let asked = Cell::new(0);
        let answer = client.persist(|| {
            asked.set(asked.get() + 1);
            ready(if asked.get() < 4 { Err(broken()) } else { Ok(asked.get()) })
        });
        assert_eq!(answer.await.unwrap(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_be_done_once_is_asked_again_only_where_it_was_not_taken() {
        let client = client();
        client.0.has_answered.store(true, Ordering::Relaxed);
        let error = || Error::new(ErrorKind::Unavailable, "reach it");
        let asked_after = async |first: fn(Error) -> Failure| {
            let asked = Cell::new(0);
            let answer = client.persist_until_taken(|| {
                asked.set(asked.get() + 1);
                ready(if asked.get() == 1 { Err(first(error())) } else { Ok(()) })
            });
            (answer.await.is_ok(), asked.get())
        };
        let busy = |error| {
            Failure::Said(Said { status: StatusCode::TOO_MANY_REQUESTS, error, body: Vec::new() })
        };
        assert_eq!(asked_after(Failure::Unheard).await, (true, 2));
        assert_eq!(asked_after(busy).await, (true, 2));
        assert_eq!(asked_after(Failure::Way).await, (false, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_no_sandbox_can_have_is_not_asked_for_again() {
        let client = client();
        client.0.has_answered.store(true, Ordering::Relaxed);
        for name in ["", ".", ".."] {
            let sandbox = client.sandbox(name);
            let answer = tokio::time::timeout(Duration::from_millis(1), sandbox.status()).await;
            assert_eq!(answer.unwrap().unwrap_err().kind, ErrorKind::NotFound, "{name:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_says_is_believed() {
        let client = client();
        client.0.has_answered.store(true, Ordering::Relaxed);
        let asked = Cell::new(0);
        let answer = client.persist(|| {
            asked.set(asked.get() + 1);
            let error = Error::new(ErrorKind::NotFound, "it");
            let said = Said { status: StatusCode::NOT_FOUND, error, body: Vec::new() };
            ready(Err::<(), _>(Failure::Said(said)))
        });
        assert_eq!(answer.await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(asked.get(), 1);
    }
}
