//! Who looks for what happens, once for all streams that tell the same.

use cofferdam_core::Result;
use cofferdam_session::{EventReport, SessionId, Sessions};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long it takes until sandboxes are asked again, which are kept by processes that tell nobody.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How long what this process writes is gathered before it is looked at, so that much of it costs no more than so many
/// looks.
const GATHERED: Duration = Duration::from_millis(10);

/// What is looked for: the owner whose sandboxes they are, and the one of them if it is only one.
type Wanted = (String, Option<SessionId>);

/// All who look: one for each owner, and one for each sandbox of which alone somebody wants to know. No two of them wait
/// for each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lookout(Arc<Mutex<HashMap<Wanted, Weak<Looker>>>>);

/// One who looks, until the last stream that it looks for is dropped.
#[derive(Debug)]
struct Looker {
    news: watch::Receiver<News>,
    task: JoinHandle<()>,
}

/// What a looker knows.
#[derive(Debug, Clone, Copy)]
struct News {
    /// The number of the last event that there is, as far as it is one of those that are looked for.
    last: u64,
    /// Whether the last look failed.
    failed: bool,
}

/// What a stream is told by.
#[derive(Debug)]
pub(super) struct Told {
    news: watch::Receiver<News>,
    _looker: Arc<Looker>,
}

/// Whether something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Yes,
    No,
    /// The last look failed.
    Perhaps,
}

impl Lookout {
    /// What tells of everything that happens from now on, to sandboxes of this owner or to one of them.
    pub(super) async fn tells(
        &self,
        owner: &str,
        sessions: &Sessions,
        session: Option<&SessionId>,
    ) -> Result<Told> {
        // ORDER: before a looker begins, which tells what comes after it; what was before finds whoever asks later.
        let begun = sessions.newest_event().await?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = (owner.to_owned(), session.cloned());
        let looker = all.get(&wanted).and_then(Weak::upgrade).unwrap_or_else(|| {
            let (tell, news) = watch::channel(News { last: begun, failed: false });
            let (sessions, session) = (sessions.clone(), session.cloned());
            let looking = Looking { sessions, session, tell, asked: None };
            Arc::new(Looker { news, task: tokio::spawn(looking.go_on()) })
        });
        all.retain(|_, looker| looker.strong_count() > 0);
        all.insert(wanted, Arc::downgrade(&looker));
        Ok(Told { news: looker.news.clone(), _looker: looker })
    }
}

impl Told {
    /// Whether something happened after the event of this number. What comes later is told by [`Told::changed`].
    pub(super) fn news(&mut self, after: u64) -> More {
        let News { last, failed } = *self.news.borrow_and_update();
        match (failed, last > after) {
            (true, _) => More::Perhaps,
            (false, true) => More::Yes,
            (false, false) => More::No,
        }
    }

    /// Waits until there may be more.
    pub(super) async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            // A looker ends after its streams alone, or with the program.
            std::future::pending().await
        }
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a looker does.
struct Looking {
    sessions: Sessions,
    session: Option<SessionId>,
    tell: watch::Sender<News>,
    /// When sandboxes were asked last.
    asked: Option<Instant>,
}

impl Looking {
    async fn go_on(mut self) {
        let mut written = self.sessions.written();
        loop {
            // ORDER: before the look, so that what is written meanwhile leads to another one.
            written.mark_unchanged();
            let found = self.look().await;
            if self.told(found) {
                continue;
            }
            let again = self.asked.unwrap_or_else(Instant::now) + LOOK_AGAIN;
            tokio::select! {
                () = tokio::time::sleep_until(again) => self.asked = None,
                _ = written.changed() => tokio::time::sleep(GATHERED).await,
            }
        }
    }

    /// What happened since, by all accounts now and then, and else by what is written down.
    async fn look(&mut self) -> Result<Vec<EventReport>> {
        let (session, last) = (self.session.as_ref(), self.tell.borrow().last);
        if self.asked.is_some_and(|asked| asked.elapsed() < LOOK_AGAIN) {
            return self.sessions.written_events(session, last).await;
        }
        let found = self.sessions.events(session, last).await;
        self.asked = Some(Instant::now());
        found
    }

    /// Tells those who wait what was found, and says whether there may be more. Where nothing happened nobody is woken.
    fn told(&self, found: Result<Vec<EventReport>>) -> bool {
        let failed = found.is_err();
        let last = found.ok().and_then(|found| found.last().map(|event| event.seq));
        self.tell.send_if_modified(|news| {
            let before = (news.last, news.failed);
            (news.last, news.failed) = (last.unwrap_or(news.last), failed);
            // Each failure is told: whoever waits asks for itself then, and says what is wrong.
            failed || (news.last, news.failed) != before
        });
        last.is_some()
    }
}
