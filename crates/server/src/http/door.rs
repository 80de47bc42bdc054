//! The way of a handler to the sessions: what its caller must be allowed to do, and whose are seen.

use super::auth::Caller;
use super::conditions;
use super::error::{Answer, Problem};
use super::guard::{Minutes, Number};
use crate::traces::{Fact, Span};
use crate::{Ground, Server};
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use cofferdam_core::{Error, ErrorKind, Result as Outcome};
use cofferdam_session::{KeyScope, Session, Sessions};
use std::marker::PhantomData;

/// What somebody is allowed to do, as a type: a handler has sessions only by a [`Door`] that names it.
pub(crate) trait Deed: Send + Sync + 'static {
    /// The scope that it takes.
    const SCOPE: KeyScope;
}

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
/// Adds, changes and removes secrets.
#[derive(Debug)]
pub(crate) struct SetsSecrets;

/// Lets sandboxes reach more.
#[derive(Debug)]
pub(crate) struct Approves;

/// What each of them takes, as the document tells it.
pub(super) const SCOPES: [KeyScope; 7] = [
    Looks::SCOPE,
    Manages::SCOPE,
    Runs::SCOPE,
    ReadsFiles::SCOPE,
    WritesFiles::SCOPE,
    Approves::SCOPE,
    SetsSecrets::SCOPE,
];

impl Deed for Looks {
    const SCOPE: KeyScope = KeyScope::Look;
}
impl Deed for Manages {
    const SCOPE: KeyScope = KeyScope::Manage;
}
impl Deed for Runs {
    const SCOPE: KeyScope = KeyScope::Run;
}
impl Deed for Approves {
    const SCOPE: KeyScope = KeyScope::Approve;
}
impl Deed for ReadsFiles {
    const SCOPE: KeyScope = KeyScope::FilesRead;
}
impl Deed for WritesFiles {
    const SCOPE: KeyScope = KeyScope::FilesWrite;
}
impl Deed for SetsSecrets {
    const SCOPE: KeyScope = KeyScope::Secrets;
}

/// The sessions of a caller who may do this.
#[derive(Debug)]
pub(crate) struct Door<D> {
    /// The server.
    pub(crate) server: Server,
    /// Who asks.
    pub(crate) caller: Caller,
    /// The caller's sessions: others do not exist in here.
    pub(crate) sessions: Sessions,
    /// The number of the request.
    number: Number,
    /// The request, for those who are told of it.
    pub(crate) span: Span,
    deed: PhantomData<D>,
}

impl<D: Deed> Door<D> {
    /// The session of this name or id, written out in full.
    pub(crate) async fn session(&self, text: &str) -> Answer<Session> {
        // Nobody is at a keyboard here: a beginning is a slip, or will fit two tomorrow.
        let found = self.sessions.find_whole(text).await;
        let named = |error: Error| {
            if error.kind == ErrorKind::NotFound { missing(text) } else { error }
        };
        let id = found.map_err(named)?;
        self.span.tell(Fact::Sandbox(&id));
        Ok(self.sessions.session(id))
    }

    /// Whoever writes down what is done at a place beside the request itself.
    pub(crate) fn minutes(&self, place: String) -> Minutes {
        let (server, caller) = (self.server.clone(), self.caller.clone());
        Minutes { server, caller, number: self.number.clone(), place }
    }

    /// What this caller's sandboxes are made from.
    pub(crate) fn ground(&self) -> Outcome<Ground> {
        let ground = &self.server.0.options.ground;
        match &self.caller.key {
            None => Ok(ground.clone()),
            Some(key) => ground.with_workspaces(key.rights.workspaces.clone()),
        }
    }
}

fn missing(text: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no sandbox {text:?}"))
        .hint("List the sandboxes, and write the whole name or id.")
}

impl<D: Deed> FromRequestParts<Server> for Door<D> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
            // A route that nobody guards is a fault of this program: it opens nothing.
            let error = Error::new(ErrorKind::Denied, "nobody asked who you are");
            return Err(Problem::with_status(StatusCode::UNAUTHORIZED, error));
        };
        caller.may(D::SCOPE)?;
        conditions::refuse(parts)?;
        let sessions = server.0.sessions.for_owner(caller.owner(), caller.quota());
        let span = parts.extensions.get().cloned().unwrap_or_default();
        let number = parts.extensions.get().cloned().unwrap_or_default();
        Ok(Self { server: server.clone(), caller, sessions, number, span, deed: PhantomData })
    }
}
