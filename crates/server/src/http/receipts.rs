//! Receipts of commands: what the host saw of each, and what it did to files where somebody asked beforehand.
//!
//! The server looks before such a command and again as soon as it has ended, and keeps the receipt in memory
//! until newer ones take its room. One that is not kept any more tells all but files.

use super::door::{Deed, Door, ReadsFiles};
use super::error::Answer;
use super::execs::command;
use super::extract::Path;
use super::objects;
use crate::Server;
use axum::Json;
use cofferdam_core::{Error, ErrorKind, ExecOrder, ProcessId, Receipt, Result};
use cofferdam_session::{BeforeCommand, Session, SessionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many receipts are kept of the commands of one caller, those that are still to be made among them.
const MAX_KEPT: usize = 64;
/// How many paths are kept in mind for the receipts of one caller that are still to be made.
const MAX_PATHS: usize = 200_000;
/// What a receipt says of files where nothing is kept.
const NOT_KEPT: &str =
    "the server that runs now did not look before the command, or keeps it no more";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(receipt))
}

/// What a command did that has ended: what the host saw, apart from what was said inside. What it did to files
/// is in it where it was started with `receipt`, as long as this server lives and for the last 64 of a caller;
/// else `files.not_seen` says why not.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs/{exec}/receipt", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id.")), responses(
    (status = 200, description = "What it did.", body = objects::Receipt),
    (status = 409, description = "It has not ended.", content_type = "application/problem+json", body = objects::ProblemDocument),
))]
async fn receipt(
    door: Door<ReadsFiles>,
    Path((sandbox, exec)): Path<(String, String)>,
) -> Answer<Json<Receipt>> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    let has_ended = session.status(&id).await?.ended_ms.is_some();
    let kept = door.server.0.receipts.find(session.id(), &id);
    if let Some(mut told) = kept.filter(|_| has_ended) {
        let told =
            async { told.wait_for(Option::is_some).await.ok().and_then(|told| told.clone()) };
        let told = tokio::select! {
            told = told => told,
            () = door.server.is_to_end() => None,
        };
        if let Some(receipt) = told {
            return Ok(Json(Receipt::clone(&receipt)));
        }
    }
    Ok(Json(session.receipt(&BeforeCommand::not_seen(NOT_KEPT), &id).await?))
}

/// Fails unless the caller may be told what this command does to files.
pub(super) fn may_watch<D>(door: &Door<D>, order: &ExecOrder) -> Result<()> {
    door.caller.may(ReadsFiles::SCOPE)?;
    if order.detached {
        let what = "a receipt is for a command in the foreground, and this one is detached";
        return Err(Error::new(ErrorKind::Usage, what).hint("Leave out receipt or detached."));
    }
    Ok(())
}

/// Looks at a sandbox before a command, for its receipt; `None` where somebody did for the same command.
pub(super) async fn watch<D>(
    door: &Door<D>,
    session: &Session,
    order: &ExecOrder,
) -> Result<Option<Watching>> {
    let before = session.before_command().await?;
    let which = Which { session: session.id().clone(), exec: order.command.id.clone() };
    Ok(door.server.0.receipts.keep(door.caller.owner(), which, before))
}

/// Receipts that are kept.
#[derive(Debug, Default)]
pub(crate) struct Receipts(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    all: HashMap<Which, One>,
    /// How many there ever were.
    count: u64,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Which {
    session: SessionId,
    exec: ProcessId,
}

/// A receipt, or nothing while it is still to be made.
type Told = Option<Arc<Receipt>>;

#[derive(Debug)]
struct One {
    owner: String,
    /// The later, the greater.
    at: u64,
    paths: usize,
    told: watch::Receiver<Told>,
}

impl One {
    /// Whether it is there.
    fn is_made(&self) -> bool {
        self.told.borrow().is_some()
    }

    /// Whether nobody makes it: it is there, or its command never began or is gone.
    fn is_over(&self) -> bool {
        self.is_made() || self.told.has_changed().is_err()
    }
}

impl Receipts {
    /// Makes room for a receipt; `None` where there is one of this command, or no room.
    fn keep(&self, owner: &str, which: Which, before: BeforeCommand) -> Option<Watching> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.all.get(&which).is_some_and(|one| one.is_made() || !one.is_over()) {
            return None;
        }
        kept.all.remove(&which);
        if !kept.make_room(owner) {
            return None;
        }
        let before = match kept.paths(owner).saturating_add(before.paths()) > MAX_PATHS {
            true => BeforeCommand::not_seen(format!("more than {MAX_PATHS} paths are looked at")),
            false => before,
        };
        kept.count += 1;
        let (tell, told) = watch::channel(None);
        let (at, paths) = (kept.count, before.paths());
        kept.all.insert(which.clone(), One { owner: owner.to_owned(), at, paths, told });
        Some(Watching { exec: which.exec, before, tell })
    }

    /// What is kept of a command.
    fn find(&self, session: &SessionId, exec: &ProcessId) -> Option<watch::Receiver<Told>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let which = Which { session: session.clone(), exec: exec.clone() };
        kept.all.get(&which).map(|one| one.told.clone())
    }
}

impl Kept {
    /// Sees that there is room for one more of a caller, if need be in place of the oldest that is over.
    fn make_room(&mut self, owner: &str) -> bool {
        let own = || self.all.iter().filter(|(_, one)| one.owner == owner);
        if own().count() < MAX_KEPT {
            return true;
        }
        let oldest = own().filter(|(_, one)| one.is_over()).min_by_key(|(_, one)| one.at);
        let Some(which) = oldest.map(|(which, _)| which.clone()) else { return false };
        self.all.remove(&which).is_some()
    }

    /// How many paths are kept in mind for what is still to be made of a caller's.
    fn paths(&self, owner: &str) -> usize {
        let is_to_come = |one: &&One| one.owner == owner && !one.is_over();
        self.all.values().filter(is_to_come).map(|one| one.paths).sum()
    }
}

/// What is needed for a receipt that is still to be made.
#[derive(Debug)]
pub(super) struct Watching {
    exec: ProcessId,
    before: BeforeCommand,
    tell: watch::Sender<Told>,
}

impl Watching {
    /// Waits for the end of the command, and makes the receipt.
    pub(super) async fn until_its_end(self, session: Session) {
        // What goes wrong is told by whoever asks for the receipt.
        if session.wait(&self.exec, None).await.is_ok()
            && let Ok(receipt) = session.receipt(&self.before, &self.exec).await
        {
            self.tell.send_replace(Some(Arc::new(receipt)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn which(number: usize) -> Which {
        let exec = ProcessId::new(format!("c{number}")).unwrap();
        Which { session: SessionId::new("0123456789abcdef0123").unwrap(), exec }
    }

    fn before() -> BeforeCommand {
        BeforeCommand::not_seen("no layer")
    }

    #[test]
    fn so_many_receipts_of_one_caller_are_kept_and_the_oldest_goes_first() {
        let receipts = Receipts::default();
        let mut running = Vec::new();
        for number in 0..MAX_KEPT {
            running.push(receipts.keep("a", which(number), before()).unwrap());
        }
        assert!(receipts.keep("a", which(0), before()).is_none(), "it is watched already");
        assert!(receipts.keep("a", which(MAX_KEPT), before()).is_none(), "all of them run");
        assert!(receipts.keep("b", which(MAX_KEPT), before()).is_some(), "another has room");
        // Two never began: the older one makes room.
        drop(running.drain(3..5));
        assert!(receipts.keep("a", which(1000), before()).is_some());
        let session = which(0).session;
        let is_kept = |number: usize| receipts.find(&session, &which(number).exec).is_some();
        assert_eq!([2, 3, 4, 1000].map(is_kept), [true, false, true, true]);
    }
}
