//! What a sandbox changed: shown, landed, dropped, gone back over.

use crate::answer::Failure;
use crate::upload::save;
use crate::{Sandbox, place};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::{
    AppliedChanges, ApplyWish, ChangeList, ChosenWish, DiscardWish, DiscardedChanges, ForkWish,
    HunkList, ProblemWith, UndoWish,
};
use cofferdam_session::{HistoryReport, SessionReport, UndoReport};
use reqwest::{Method, StatusCode, header};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use tokio::io::AsyncWrite;

/// What is told of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The changes, with how many lines come and go.
    Stat,
    /// The changes, without looking into files.
    Names,
}

/// What came of landing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What landed, and what did not.
    pub changes: AppliedChanges,
    /// Whether all of it landed, or nothing was to be done.
    pub is_all: bool,
}

impl Sandbox {
    /// What it changed, or what changed between two points of its history, at a path or everywhere.
    pub async fn changes(
        &self,
        range: Option<&str>,
        path: Option<&OsStr>,
        view: View,
    ) -> Result<ChangeList> {
        let view = match view {
            View::Stat => "stat",
            View::Names => "names",
        };
        self.diff(range, path).query("view", view).read().await
    }

    /// The same as a unified diff that `git apply` takes.
    pub async fn diff_text(
        &self,
        range: Option<&str>,
        path: Option<&OsStr>,
        sink: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<()> {
        let ask = self.diff(range, path).header(header::ACCEPT, "text/x-diff");
        let response = ask.send().await?;
        save(&self.client, response, sink).await.map(drop)
    }

    fn diff(&self, range: Option<&str>, path: Option<&OsStr>) -> crate::ask::Ask {
        let ask = self.ask(Method::GET, &["diff"]).perhaps("range", range);
        match path {
            Some(path) => ask.path(path.as_bytes()),
            None => ask,
        }
    }

    /// What it changed, part by part: [`apply`](Self::apply) lands those that are chosen.
    pub async fn hunks(&self, path: Option<&OsStr>) -> Result<HunkList> {
        let ask = self.ask(Method::GET, &["diff", "hunks"]);
        match path {
            Some(path) => ask.path(path.as_bytes()).read().await,
            None => ask.read().await,
        }
    }

    /// The same, with the text of what has no parts and lands as a whole: what somebody is asked about.
    pub async fn hunks_with_texts(&self, path: Option<&OsStr>) -> Result<HunkList> {
        let ask = self.ask(Method::GET, &["diff", "hunks"]).query("texts", true);
        match path {
            Some(path) => ask.path(path.as_bytes()).read().await,
            None => ask.read().await,
        }
    }

    /// Lands what it changed in the real workspace, as far as it can.
    pub async fn apply(&self, wish: &ApplyWish) -> Result<Applied> {
        let asked = self.ask(Method::POST, &["apply"]).object(wish).try_read().await;
        match asked {
            Ok(changes) => Ok(Applied { changes, is_all: true }),
            Err(Failure::Said(said)) if said.status == StatusCode::CONFLICT => {
                // Any other conflict has no such result.
                let problem = serde_json::from_slice::<ProblemWith<AppliedChanges>>(&said.body);
                let found = problem.ok().and_then(|problem| problem.result);
                found.map(|changes| Applied { changes, is_all: false }).ok_or(said.error)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Drops what it changed.
    pub async fn discard(&self, wish: &DiscardWish) -> Result<DiscardedChanges> {
        self.ask(Method::POST, &["discard"]).object(wish).read().await
    }

    /// What its commands did, as points: the last so many.
    pub async fn history(&self, most: usize) -> Result<HistoryReport> {
        self.ask(Method::GET, &["history"]).query("limit", most).read().await
    }

    /// Takes back what its last commands did to its workspace.
    pub async fn undo(&self, wish: &UndoWish) -> Result<UndoReport> {
        self.ask(Method::POST, &["undo"]).object(wish).read().await
    }

    /// Makes another sandbox whose workspace begins as that of this one is now, or was at a point.
    pub async fn fork(&self, wish: &ForkWish) -> Result<SessionReport> {
        self.ask(Method::POST, &["fork"]).object(wish).read().await
    }
}

/// Paths of a request, those that are text apart from the others.
pub(crate) fn paths<'a>(all: impl Iterator<Item = &'a OsStr>) -> (Vec<String>, Vec<String>) {
    place::several(all.map(OsStr::as_bytes))
}

impl Sandbox {
    /// Changes to land at these paths.
    pub fn apply_wish(paths: &[std::ffi::OsString], dry_run: bool) -> ApplyWish {
        let (texts, base64) = self::paths(paths.iter().map(std::ffi::OsString::as_os_str));
        ApplyWish { paths: texts, paths_base64: base64, dry_run, ..ApplyWish::default() }
    }

    /// Changes to land that were looked at part by part.
    pub fn apply_chosen_wish(hunks: Vec<ChosenWish>, dry_run: bool) -> ApplyWish {
        ApplyWish { hunks, dry_run, ..ApplyWish::default() }
    }

    /// Parts of a change to land, or all of it where none are named.
    pub fn chosen_wish(path: &OsStr, sha256: &str, parts: Option<Vec<usize>>) -> ChosenWish {
        let place::Named { text, base64 } = place::named(path.as_bytes());
        ChosenWish {
            path: text,
            path_base64: base64,
            sha256: sha256.to_owned(),
            whole: parts.is_none(),
            hunks: parts.unwrap_or_default(),
        }
    }

    /// Changes to drop at these paths.
    pub fn discard_wish(paths: &[std::ffi::OsString], dry_run: bool) -> DiscardWish {
        let (texts, base64) = self::paths(paths.iter().map(std::ffi::OsString::as_os_str));
        DiscardWish { paths: texts, paths_base64: base64, dry_run }
    }
}

/// An answer that does not hold what it has to.
pub(crate) fn lacking(what: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("the answer lacks {what}"))
}
