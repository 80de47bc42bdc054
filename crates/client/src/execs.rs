//! Commands of a sandbox.

use crate::answer::Failure;
use crate::{Sandbox, place};
use cofferdam_core::{
    Chunk, Error, ErrorKind, ExecStatus, Part, Receipt, Result, Seen, Signal, Standard, Terminal,
};
use cofferdam_session::objects::{ExecNews, ExecWish, SignalWish, SizeWish};
use cofferdam_session::{ExecList, ExecReport, LogPart};
use reqwest::Method;
use reqwest::header::HeaderName;
use std::time::Duration;

/// How long one question for news waits.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The most output of one answer, in bytes.
const MAX_PART_BYTES: u32 = 256 << 10;

/// The header of a question that goes on with an earlier one, and so wakes nobody.
const GOES_ON: &str = "cofferdam-goes-on";

/// Whether somebody asked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    First,
    Again,
}

impl Sandbox {
    /// Starts a command.
    ///
    /// One with an `id` runs once, however often it is asked for: where the way to a server breaks that
    /// has answered before, it is asked for again.
    pub async fn start(&self, wish: &ExecWish) -> Result<ExecReport> {
        let ask = || self.ask(Method::POST, &["execs"]).object(wish);
        match &wish.id {
            Some(_) => self.client.persist(|| ask().try_read()).await,
            None => ask().read().await,
        }
    }

    /// Its commands, those of earlier incarnations included, oldest first.
    pub async fn execs(&self) -> Result<Vec<ExecReport>> {
        let ask = || self.ask(Method::GET, &["execs"]).try_read::<ExecList>();
        Ok(self.client.persist(ask).await?.execs)
    }

    /// How a command stands.
    pub async fn exec(&self, exec: &str) -> Result<ExecReport> {
        let ask = || self.ask(Method::GET, &["execs", exec]).try_read();
        self.client.persist(ask).await
    }

    /// What a command did that has ended. What it did to files is told of one that was started for a
    /// `receipt`.
    pub async fn receipt(&self, exec: &str) -> Result<Receipt> {
        let ask = || self.ask(Method::GET, &["execs", exec, "receipt"]).try_read();
        self.client.persist(ask).await
    }

    /// Waits until there is more of a command than is known, or the time is over, and says how it stands.
    /// A sandbox that sleeps is resumed.
    pub async fn news(&self, exec: &str, seen: Seen, patience: Duration) -> Result<ExecNews> {
        self.ask_for_news(exec, seen, (patience, Asked::First)).await
    }

    /// The same for who has asked until now: a sandbox that was paused meanwhile stays so.
    pub async fn further_news(
        &self,
        exec: &str,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecNews> {
        self.ask_for_news(exec, seen, (patience, Asked::Again)).await
    }

    async fn ask_for_news(
        &self,
        exec: &str,
        seen: Seen,
        (patience, asked): (Duration, Asked),
    ) -> Result<ExecNews> {
        let patience = patience.min(MAX_WAIT);
        let ask = || {
            let ask = self.ask(Method::GET, &["execs", exec, "news"]);
            let ask = match asked {
                Asked::First => ask,
                // An earlier server knows no such header, and an unknown parameter is an error.
                Asked::Again => ask.header(HeaderName::from_static(GOES_ON), "true"),
            };
            ask.query("stdout", known(seen.stdout))
                .query("stderr", known(seen.stderr))
                .perhaps("stops", seen.stops)
                .query("end", seen.end)
                .query("timeout_ms", patience.as_millis())
                .within(patience)
                .try_read()
        };
        self.client.persist(ask).await
    }

    /// Waits until a command has ended, or `patience` is over, and says how it stands.
    pub async fn wait(&self, exec: &str, patience: Option<Duration>) -> Result<ExecStatus> {
        // Output is no news here.
        let seen = Seen { stdout: u64::MAX, stderr: u64::MAX, ..Seen::default() };
        let (mut left, mut asked) = (patience, Asked::First);
        loop {
            let this_time = left.unwrap_or(MAX_WAIT).min(MAX_WAIT);
            let status = self.ask_for_news(exec, seen, (this_time, asked)).await?.status()?;
            asked = Asked::Again;
            left = left.map(|left| left.saturating_sub(this_time));
            if status.ended.is_some() || left.is_some_and(|left| left.is_zero()) {
                return Ok(status);
            }
        }
    }

    /// A part of what a command wrote; empty where nothing is yet.
    pub async fn output(&self, exec: &str, part: Part) -> Result<Chunk> {
        let stream = match part.stream {
            Standard::Output => "stdout",
            Standard::Error => "stderr",
        };
        let ask = || {
            self.ask(Method::GET, &["execs", exec, "output"])
                .query("stream", stream)
                .query("offset", part.offset)
                .query("limit", part.len.clamp(1, MAX_PART_BYTES))
                .try_read()
        };
        let told: LogPart = self.client.persist(ask).await?;
        Ok(Chunk { offset: told.offset, bytes: place::bytes(told.text, told.base64)? })
    }

    /// Sends input to a command that reads it; with `close` it is the last.
    ///
    /// Where the way breaks while it is sent nobody knows whether the command has it: that is unavailable.
    /// It timed out where the command did not take it in time, which may be asked again.
    pub async fn input(&self, exec: &str, bytes: Vec<u8>, close: bool) -> Result<()> {
        let is_end = bytes.is_empty();
        let ask = async || {
            let ask = self.ask(Method::POST, &["execs", exec, "stdin"]).query("close", close);
            let sent = ask.body("application/octet-stream", bytes.clone()).try_done().await;
            sent.map_err(|failure| match failure {
                Failure::Way(error) if error.kind == ErrorKind::TimedOut => {
                    Failure::Way(Error { kind: ErrorKind::Unavailable, ..error })
                }
                other @ (Failure::Here(_)
                | Failure::Unheard(_)
                | Failure::Way(_)
                | Failure::Said(_)) => other,
            })
        };
        // The end may be told any number of times.
        match is_end {
            true => self.client.persist(ask).await,
            false => self.client.persist_until_taken(ask).await,
        }
    }

    /// Sends a signal to a command; if it has ended, to all that it left.
    pub async fn signal(&self, exec: &str, signal: i32) -> Result<()> {
        let wish = SignalWish { signal: Signal::numbered(signal)? };
        let ask = || self.ask(Method::POST, &["execs", exec, "signal"]).object(&wish).try_done();
        self.client.persist_until_taken(ask).await
    }

    /// Gives a command's terminal a new size.
    pub async fn resize(&self, exec: &str, size: Terminal) -> Result<()> {
        let wish = SizeWish { rows: size.rows, columns: size.columns };
        let ask = || self.ask(Method::POST, &["execs", exec, "resize"]).object(&wish).try_done();
        self.client.persist(ask).await
    }
}

/// A count as far as a parameter may hold it.
fn known(count: u64) -> u64 {
    count.min(1 << 62)
}
