//! Files of a sandbox, beside those that [`Files`] do.

use crate::answer::Failure;
use crate::service::SandboxFiles;
use crate::upload::{self, Upload, save};
use crate::{Sandbox, place};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_session::objects::{
    EditWish, EditsWish, FileContents, FileEdit, FileImported, FileMatches, FileNames, FilePatch,
    FileWindow, GlobWish, GrepWish, ProblemWith, ReadManyWish,
};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

impl Sandbox {
    /// The files of its workspace, as those of any sandbox: read and written in pieces, compared by their
    /// SHA-256 on the way. Many that are written at once are for [`unpack`](Self::unpack) and
    /// [`patch`](Self::patch).
    pub fn files(&self) -> Files {
        Files::new(Arc::new(SandboxFiles(self.clone())))
    }

    /// Reads lines of a text: at most 50 KiB.
    pub async fn window(&self, path: &OsStr, offset: usize, limit: usize) -> Result<FileWindow> {
        let ask = self.ask(Method::GET, &["files", "window"]).path(path.as_bytes());
        ask.query("offset", offset).query("limit", limit).read().await
    }

    /// Reads several files at once: each comes with its content or an error.
    pub async fn read_many(
        &self,
        paths: &[OsString],
        max_bytes: Option<u64>,
    ) -> Result<FileContents> {
        let (paths, paths_base64) = place::several(paths.iter().map(|path| path.as_bytes()));
        let wish = ReadManyWish { paths, paths_base64, max_bytes };
        self.ask(Method::POST, &["files", "read-many"]).object(&wish).read().await
    }

    /// Finds names by patterns.
    pub async fn glob(&self, wish: &GlobWish) -> Result<FileNames> {
        self.ask(Method::POST, &["files", "glob"]).object(wish).read().await
    }

    /// Finds lines by regular expressions.
    pub async fn grep(&self, wish: &GrepWish) -> Result<FileMatches> {
        self.ask(Method::POST, &["files", "grep"]).object(wish).read().await
    }

    /// Replaces text in a file: all edits, or none. Whether they apply is in the report.
    pub async fn edit(
        &self,
        path: &OsStr,
        edits: Vec<EditWish>,
        dry_run: bool,
    ) -> Result<FileEdit> {
        let place::Named { text, base64 } = place::named(path.as_bytes());
        let wish = EditsWish { path: text, path_base64: base64, edits, dry_run };
        let asked = self.ask(Method::POST, &["files", "edit"]).object(&wish);
        refused_or(asked.try_read().await)
    }

    /// Applies a patch, whole or not at all. Whether it fits is in the report.
    pub async fn patch(&self, text: &[u8], dry_run: bool, reverse: bool) -> Result<FilePatch> {
        let asked = self
            .ask(Method::POST, &["files", "patch"])
            .query("dry_run", dry_run)
            .query("reverse", reverse)
            .body("text/x-diff", text.to_vec());
        refused_or(asked.try_read().await)
    }

    /// Writes a tar archive of a directory or a file. One that breaks off is not as the workspace was.
    pub async fn archive(
        &self,
        path: &OsStr,
        max_bytes: Option<u64>,
        sink: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<()> {
        let ask = self.ask(Method::GET, &["files", "archive"]).path(path.as_bytes());
        let response = ask.perhaps("max_bytes", max_bytes).send().await?;
        save(&self.client, response, sink).await.map(drop)
    }

    /// Unpacks a tar archive, whole or not at all.
    pub async fn unpack(
        &self,
        path: &OsStr,
        replace: bool,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<FileImported> {
        let ask = self.ask(Method::PUT, &["files", "archive"]).path(path.as_bytes());
        let sent = upload::send(ask.query("replace", replace), "application/x-tar", source).await?;
        let Upload { answer, .. } = sent;
        upload::object(&self.client, answer).await
    }
}

/// What was found out, where the server refuses for that.
fn refused_or<T: DeserializeOwned>(asked: Result<T, Failure>) -> Result<T> {
    match asked {
        Ok(done) => Ok(done),
        Err(Failure::Said(said)) if said.status == StatusCode::CONFLICT => {
            // Any other conflict has no such result.
            let problem = serde_json::from_slice::<ProblemWith<T>>(&said.body);
            problem.ok().and_then(|problem| problem.result).ok_or(said.error)
        }
        Err(failure) => Err(failure.into()),
    }
}

/// What a server does at once, and nobody asks piece by piece.
pub(crate) fn at_once(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} over HTTP in this way"))
        .hint("Use what the client has for it.")
}
