//! Sandboxes: made, found, ended.

use crate::Client;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::SessionReport;
use cofferdam_session::objects::{ExtendWish, SandboxPage, SandboxWish};
use reqwest::Method;
use std::collections::BTreeMap;
use std::time::Duration;

/// How many sandboxes come in one answer.
const PAGE: u32 = 200;
/// How many are listed at most.
const MOST_LISTED: usize = 100_000;

/// One sandbox, by its name or id. Whether it is there is seen at first use.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) client: Client,
    pub(crate) name: String,
}

impl Client {
    /// The sandbox of this name or id.
    pub fn sandbox(&self, name: impl Into<String>) -> Sandbox {
        Sandbox { client: self.clone(), name: name.into() }
    }

    /// Makes a sandbox. A name that is taken is a conflict.
    pub async fn create(&self, wish: &SandboxWish) -> Result<SessionReport> {
        self.ask(Method::POST, &["v1", "sandboxes"]).object(wish).read().await
    }

    /// The sandbox of this name, running and prepared: made, resumed or recovered if it has to be.
    pub async fn ensure(&self, name: &str, wish: &SandboxWish) -> Result<SessionReport> {
        self.ask(Method::PUT, &["v1", "sandboxes", name]).object(wish).read().await
    }

    /// A page of the sandboxes that have all these labels, oldest first, from a cursor on.
    pub async fn page(
        &self,
        labels: &BTreeMap<String, String>,
        cursor: Option<&str>,
    ) -> Result<SandboxPage> {
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{}={}", as_asked(key), as_asked(value)))
            .collect();
        let labels = (!labels.is_empty()).then(|| labels.join(","));
        self.persist(|| {
            self.ask(Method::GET, &["v1", "sandboxes"])
                .query("limit", PAGE)
                .perhaps("label", labels.as_deref())
                .perhaps("cursor", cursor)
                .try_read()
        })
        .await
    }

    /// All sandboxes that have these labels, oldest first.
    pub async fn list(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SessionReport>> {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.page(labels, cursor.as_deref()).await?;
            all.extend(page.sessions);
            cursor = next(cursor, page.next_cursor, all.len())?;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }
}

/// A part of a label as it stands in a question, where a comma and other signs mean something.
fn as_asked(part: &str) -> String {
    part.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

/// Where a list goes on of which so many are there.
///
/// HOSTILE: a server may be anybody, and its list without an end.
fn next(at: Option<String>, next: Option<String>, count: usize) -> Result<Option<String>> {
    if next.is_some() && next == at {
        let what = "the server's list of sandboxes goes on where it was";
        return Err(Error::new(ErrorKind::Protocol, what).hint("Tell who runs the server."));
    }
    if next.is_some() && count >= MOST_LISTED {
        let what = format!("the server has more than {MOST_LISTED} sandboxes of yours");
        return Err(Error::new(ErrorKind::TooLarge, what)
            .hint("Ask for those of a label with --label, or for a whole name or id."));
    }
    Ok(next)
}

impl Sandbox {
    /// What it is called here.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The one who asks for it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A request for what is below it.
    pub(crate) fn ask(&self, method: Method, names: &[&str]) -> crate::ask::Ask {
        let mut all = vec!["v1", "sandboxes", self.name.as_str()];
        all.extend(names);
        self.client.ask(method, &all)
    }

    /// How it stands now.
    pub async fn status(&self) -> Result<SessionReport> {
        self.client.persist(|| self.ask(Method::GET, &[]).try_read()).await
    }

    /// Removes it with all that it has.
    pub async fn delete(&self) -> Result<()> {
        self.ask(Method::DELETE, &[]).done().await
    }

    /// Stops everything in it where it stands. Pausing what is paused succeeds.
    pub async fn pause(&self) -> Result<SessionReport> {
        self.ask(Method::POST, &["pause"]).read().await
    }

    /// Lets everything go on. One that was lost or stopped is recovered.
    pub async fn resume(&self) -> Result<SessionReport> {
        self.ask(Method::POST, &["resume"]).read().await
    }

    /// Ends all its processes, and keeps its home directory, its output and its events.
    pub async fn stop(&self) -> Result<SessionReport> {
        self.ask(Method::POST, &["stop"]).read().await
    }

    /// Gives it a longer lease. One without a lease is a conflict.
    pub async fn extend(&self, by: Duration) -> Result<SessionReport> {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.ask(Method::POST, &["extend"]).object(&ExtendWish { by_ms }).read().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_an_end_ends() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(next(None, None, 3).unwrap(), None);
        assert_eq!(next(None, text("a"), 200).unwrap(), text("a"));
        assert_eq!(next(text("a"), text("b"), 400).unwrap(), text("b"));
        assert_eq!(next(text("b"), text("b"), 600).unwrap_err().kind, ErrorKind::Protocol);
        let many = next(text("a"), text("b"), MOST_LISTED).unwrap_err();
        assert_eq!(many.kind, ErrorKind::TooLarge);
        assert_eq!(next(text("a"), None, MOST_LISTED + 1).unwrap(), None);
    }
}
