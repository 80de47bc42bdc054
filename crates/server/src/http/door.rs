//! The way of a handler to the sessions: what its caller must be allowed to do, and whose are seen.

use super::auth::Caller;
use super::error::{Answer, Problem};
use crate::{Ground, Server};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::{Session, Sessions};
use std::marker::PhantomData;

/// What somebody is allowed to do, as a type: a handler has sessions only by a [`Door`] that names it.
pub(crate) trait Deed: Send + Sync + 'static {}

/// Looks at sessions, and changes nothing.
#[derive(Debug)]
pub(crate) struct Looks;
/// Makes, changes and removes sessions.
#[derive(Debug)]
pub(crate) struct Manages;
/// Runs commands and talks to them.
#[derive(Debug)]
pub(crate) struct Runs;
/// Reads files of a session.
#[derive(Debug)]
pub(crate) struct ReadsFiles;
/// Writes files of a session.
#[derive(Debug)]
pub(crate) struct WritesFiles;

impl Deed for Looks {}
impl Deed for Manages {}
impl Deed for Runs {}
impl Deed for ReadsFiles {}
impl Deed for WritesFiles {}

/// The sessions of a caller who may do this.
#[derive(Debug)]
pub(crate) struct Door<D> {
    /// The server.
    pub(crate) server: Server,
    /// Who asks.
    pub(crate) caller: Caller,
    /// The caller's sessions: others do not exist in here.
    pub(crate) sessions: Sessions,
    deed: PhantomData<D>,
}

impl<D: Deed> Door<D> {
    /// The session of this name or id, written out in full.
    pub(crate) async fn session(&self, text: &str) -> Answer<Session> {
        let id = self.sessions.find(text).await?;
        let report = self.sessions.status(&id).await?;
        if report.id == text || report.name.as_deref() == Some(text) {
            return Ok(self.sessions.session(id));
        }
        // Nobody is at a keyboard here: a beginning is a slip, or will fit two tomorrow.
        Err(Error::new(ErrorKind::NotFound, format!("there is no session {text:?}"))
            .hint("List the sandboxes, and write the whole name or id.")
            .into())
    }

    /// What this caller's sandboxes are made from.
    pub(crate) fn ground(&self) -> &Ground {
        &self.server.0.options.ground
    }
}

impl<D: Deed> FromRequestParts<Server> for Door<D> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.unwrap_or(Caller { owner: String::new() });
        let sessions = server.0.sessions.clone();
        Ok(Self { server: server.clone(), caller, sessions, deed: PhantomData })
    }
}
