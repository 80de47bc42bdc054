//! What a command writes, as it comes, across the end of a server.

use crate::answer::Failure;
use crate::sse::{Event, Events};
use crate::{PATIENCE, Sandbox, place};
use cofferdam_core::{Chunk, Error, ErrorKind, Result, Standard};
use cofferdam_session::{ExecReport, LogPart};
use reqwest::{Method, header};
use std::time::{Duration, Instant};

/// The wait before a stream is taken up again.
const WAIT: Duration = Duration::from_millis(100);

/// What is told of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// A part of a stream. One that begins later than the last one ended follows what was dropped.
    Output(Standard, Chunk),
    /// The command has ended, and all is told.
    Ended(Box<ExecReport>),
}

/// The output of a command, from where somebody is to its end.
///
/// Where the stream breaks off it is taken up again where it was: nothing is missed, and nothing told
/// twice.
#[derive(Debug)]
pub struct Follow {
    sandbox: Sandbox,
    exec: String,
    from: [u64; 2],
    last: Option<String>,
    events: Option<Events>,
    is_over: bool,
    away_since: Option<Instant>,
}

impl Sandbox {
    /// Follows the output of a command, from these bytes of standard output and standard error on.
    pub fn follow(&self, exec: &str, from: [u64; 2]) -> Follow {
        Follow {
            sandbox: self.clone(),
            exec: exec.to_owned(),
            from,
            last: None,
            events: None,
            is_over: false,
            away_since: None,
        }
    }
}

impl Follow {
    /// What comes next; `None` after the end. A call that is given up loses nothing.
    pub async fn next(&mut self) -> Result<Option<Followed>> {
        while !self.is_over {
            let event = match self.event().await {
                Ok(Some(event)) => event,
                // A server that ends ends its streams.
                Ok(None) => {
                    self.events = None;
                    self.pause().await?;
                    continue;
                }
                Err(failure) if self.sandbox.client.may_pass(&failure) => {
                    self.events = None;
                    if self.pause().await.is_err() {
                        return Err(failure.into());
                    }
                    continue;
                }
                Err(failure) => return Err(failure.into()),
            };
            self.away_since = None;
            if let Some(followed) = self.followed(&event)? {
                return Ok(Some(followed));
            }
        }
        Ok(None)
    }

    async fn event(&mut self) -> Result<Option<Event>, Failure> {
        if self.events.is_none() {
            let [stdout, stderr] = self.from;
            let mut ask = self
                .sandbox
                .ask(Method::GET, &["execs", &self.exec, "stream"])
                .query("stdout", stdout)
                .query("stderr", stderr);
            if let Some(last) = &self.last {
                ask = ask.header(header::HeaderName::from_static("last-event-id"), last);
            }
            let response = ask.send().await?;
            self.events = Some(Events::new(self.sandbox.client.clone(), response));
        }
        match &mut self.events {
            Some(events) => events.next().await,
            None => Ok(None),
        }
    }

    async fn pause(&mut self) -> Result<()> {
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            let what = format!("the server at {} is gone", self.sandbox.client.address());
            return Err(Error::new(ErrorKind::Unavailable, what)
                .hint("The command may go on; follow it again when the server is back."));
        }
        tokio::time::sleep(WAIT).await;
        Ok(())
    }

    fn followed(&mut self, event: &Event) -> Result<Option<Followed>> {
        event.problem()?;
        if !event.id.is_empty() {
            self.last = Some(event.id.clone());
        }
        match event.name.as_str() {
            "output" => {
                let part: LogPart = event.object()?;
                let stream = match part.stream.as_str() {
                    "stderr" => Standard::Error,
                    _ => Standard::Output,
                };
                let bytes = place::bytes(part.text, part.base64)?;
                Ok(Some(Followed::Output(stream, Chunk { offset: part.offset, bytes })))
            }
            "end" => {
                self.is_over = true;
                Ok(Some(Followed::Ended(Box::new(event.object()?))))
            }
            _ => Ok(None),
        }
    }
}
