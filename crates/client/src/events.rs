//! What happened, and what callers did.

use crate::answer::Failure;
use crate::sse::{Event, Events};
use crate::{Client, PATIENCE};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::AuditList;
use cofferdam_session::{AuditReport, EventList, EventReport};
use reqwest::Method;
use std::time::{Duration, Instant};

/// The wait before a stream is taken up again.
const WAIT: Duration = Duration::from_millis(100);

/// What happens, as it happens, across the end of a server.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    sandbox: Option<String>,
    after: u64,
    events: Option<Events>,
    away_since: Option<Instant>,
}

impl Client {
    /// What happened after the event of a number, at most 1000, of one sandbox or all.
    pub async fn events(&self, sandbox: Option<&str>, after: u64) -> Result<Vec<EventReport>> {
        let ask = || {
            self.ask(Method::GET, &["v1", "events"])
                .query("after", after)
                .perhaps("sandbox", sandbox)
                .try_read::<EventList>()
        };
        Ok(self.persist(ask).await?.events)
    }

    /// What happens, from after the event of a number on.
    pub fn follow_events(&self, sandbox: Option<&str>, after: u64) -> EventStream {
        let (client, sandbox) = (self.clone(), sandbox.map(str::to_owned));
        EventStream { client, sandbox, after, events: None, away_since: None }
    }

    /// What callers changed, after the entry of a number.
    pub async fn audit(&self, after: u64) -> Result<Vec<AuditReport>> {
        let ask = || {
            self.ask(Method::GET, &["v1", "audit"]).query("after", after).try_read::<AuditList>()
        };
        Ok(self.persist(ask).await?.entries)
    }
}

impl EventStream {
    /// What happens next. A call that is given up loses nothing.
    pub async fn next(&mut self) -> Result<EventReport> {
        loop {
            let event = match self.event().await {
                Ok(Some(event)) => event,
                Ok(None) => {
                    self.events = None;
                    self.pause().await?;
                    continue;
                }
                Err(failure) if self.client.may_pass(&failure) => {
                    self.events = None;
                    if self.pause().await.is_err() {
                        return Err(failure.into());
                    }
                    continue;
                }
                Err(failure) => return Err(failure.into()),
            };
            self.away_since = None;
            event.problem()?;
            let report: EventReport = event.object()?;
            self.after = report.seq;
            return Ok(report);
        }
    }

    async fn event(&mut self) -> Result<Option<Event>, Failure> {
        if self.events.is_none() {
            let ask = self
                .client
                .ask(Method::GET, &["v1", "events", "stream"])
                .query("after", self.after)
                .perhaps("sandbox", self.sandbox.as_deref());
            let response = ask.send().await?;
            self.events = Some(Events::new(self.client.clone(), response));
        }
        match &mut self.events {
            Some(events) => events.next().await,
            None => Ok(None),
        }
    }

    async fn pause(&mut self) -> Result<()> {
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            let what = format!("the server at {} is gone", self.client.address());
            return Err(Error::new(ErrorKind::Unavailable, what));
        }
        tokio::time::sleep(WAIT).await;
        Ok(())
    }
}
