//! Which sandbox a call is about.

use crate::param::{Kind, Param};
use cofferdam_core::{ByteString, Error, ErrorKind, Result, to_its_end};
use cofferdam_session::{
    Ensured, EnsuredHow, Session, SessionId, SessionOrder, SessionReport, Sessions,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::Mutex;

/// How many names are remembered.
const MAX_KNOWN: usize = 256;
/// What a person changes in a sandbox that is there.
const RULES: [&str; 4] = ["egress", "deny", "host_ports", "ask"];

/// Which sandbox a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The one of this toolbox, made at first use, unless a call names another.
    Implicit,
    /// The one that every call names.
    Named,
}

/// What a call does where there is no sandbox yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It makes one.
    Make,
    /// The toolbox's own is made; one that is named has to be there.
    MakeOwn,
}

/// The sandboxes of a toolbox.
pub(crate) struct Sandboxes {
    pub(crate) sessions: Sessions,
    pub(crate) scope: Scope,
    order: SessionOrder,
    // A sandbox that is named may have one of these as its workspace, too.
    directories: Vec<String>,
    // Held while it is made, also for a call that was dropped, so that calls at the same time make one.
    own: Arc<Mutex<Option<SessionId>>>,
    // A name stays with its session as long as that is there, so it is looked up once.
    known: std::sync::Mutex<BTreeMap<String, SessionId>>,
}

impl Scope {
    /// The parameter that names a sandbox in Cofferdam's own pack.
    pub(crate) fn parameter(self) -> Param {
        match self {
            Self::Implicit => Param::optional(
                "sandbox",
                Kind::Word,
                "Another sandbox than your own, by its whole name or id. Leave it out.",
            ),
            Self::Named => {
                Param::required("sandbox", Kind::Word, "The sandbox, by its whole name or id.")
            }
        }
    }
}

impl Sandboxes {
    pub(crate) fn new(sessions: Sessions, scope: Scope, order: SessionOrder) -> Self {
        let (own, known) = (Arc::default(), Default::default());
        Self { sessions, scope, order, directories: Vec::new(), own, known }
    }

    pub(crate) fn over(self, directories: &[PathBuf]) -> Self {
        let shown = |path: &PathBuf| ByteString::from(path.as_os_str()).to_string();
        Self { directories: directories.iter().map(shown).collect(), ..self }
    }

    /// What sandboxes that are made here may do.
    pub(crate) fn order(&self) -> &SessionOrder {
        &self.order
    }

    /// The sandbox of a call if there is one. Makes and wakes nothing.
    pub(crate) async fn existing(&self, name: Option<&str>) -> Result<Option<Session>> {
        match name {
            Some(name) => self.named(name).await,
            None => {
                self.refuse_no_name()?;
                let own = self.own.lock().await.clone();
                match (own, &self.order.name) {
                    (Some(id), _) => self.still_there(id).await,
                    // One that stays is there from an earlier connection.
                    (None, Some(name)) => self.named(name).await,
                    (None, None) => Ok(None),
                }
            }
        }
    }

    /// The same, and an error where there is none.
    pub(crate) async fn there(&self, name: Option<&str>) -> Result<Session> {
        self.existing(name).await?.ok_or_else(|| match name {
            Some(name) => missing(name),
            None => Error::new(ErrorKind::NotFound, "there is no sandbox yet")
                .hint("Run a command or write a file first; that makes one."),
        })
    }

    /// The sandbox of a call, for one that needs it. It may sleep: whatever is done to it wakes it.
    pub(crate) async fn needed(&self, name: Option<&str>, missing_is: Missing) -> Result<Session> {
        let Some(name) = name else { return Ok(self.own().await?.session) };
        match (self.named(name).await?, missing_is) {
            (Some(session), _) => Ok(session),
            (None, Missing::Make) => Ok(self.ensure(Some(name)).await?.session),
            (None, Missing::MakeOwn) => Err(missing(name)),
        }
    }

    /// The sandbox of this name, or the own one: running, made if it has to be.
    pub(crate) async fn ensure(&self, name: Option<&str>) -> Result<Ensured> {
        let there = match name {
            Some(name) => match self.named(name).await? {
                Some(session) => Ensured { session, how: EnsuredHow::Running },
                None => return self.made(name).await,
            },
            None => self.own().await?,
        };
        if there.how == EnsuredHow::Created { Ok(there) } else { self.wake(there.session).await }
    }

    /// A sandbox of a name that is free. One that is taken meanwhile is taken by a call like this one, or
    /// by somebody whose it stays.
    async fn made(&self, name: &str) -> Result<Ensured> {
        // It is there for whoever names it next, too, and goes with nobody's process.
        let mut order = self.order.clone();
        order.owned = false;
        let (sessions, order) = (self.sessions.clone(), order.named(name));
        let making = async move { sessions.create(&order).await };
        let conflict = match whoever_waits(making).await {
            Ok(session) => return Ok(Ensured { session, how: EnsuredHow::Created }),
            Err(error) if error.kind == ErrorKind::Conflict => error,
            Err(error) => return Err(error),
        };
        match self.named(name).await? {
            Some(session) => self.wake(session).await,
            None => Err(conflict),
        }
    }

    /// The own sandbox, made if it has to be; one that is there may sleep.
    async fn own(&self) -> Result<Ensured> {
        self.refuse_no_name()?;
        let mut own = Arc::clone(&self.own).lock_owned().await;
        if let Some(id) = own.clone()
            && let Some(session) = self.still_there(id).await?
        {
            return Ok(Ensured { session, how: EnsuredHow::Running });
        }
        let (sessions, order) = (self.sessions.clone(), self.order.clone());
        // ORDER: noted before whoever comes next may look, or what a dropped call made would be nobody's.
        whoever_waits(async move {
            let ensured = match &order.name {
                Some(_) => sessions.ensure(&order).await?,
                None => {
                    // One that cannot be prepared is of no use to anybody, and each call would leave another.
                    let session = sessions.create_whole(&order).await?;
                    Ensured { session, how: EnsuredHow::Created }
                }
            };
            *own = Some(ensured.session.id().clone());
            Ok(ensured)
        })
        .await
    }

    fn refuse_no_name(&self) -> Result<()> {
        match self.scope {
            Scope::Implicit => Ok(()),
            Scope::Named => {
                Err(Error::new(ErrorKind::Usage, "missing required parameter \"sandbox\"")
                    .hint("Name the sandbox in every call."))
            }
        }
    }

    async fn wake(&self, session: Session) -> Result<Ensured> {
        let before = self.sessions.status(session.id()).await?;
        self.sessions.wake(session.id()).await?;
        let after = self.sessions.status(session.id()).await?;
        let how = if after.incarnation != before.incarnation {
            EnsuredHow::Recovered
        } else if before.phase == after.phase {
            EnsuredHow::Running
        } else {
            EnsuredHow::Resumed
        };
        Ok(Ensured { session, how })
    }

    /// A session by its whole name or id. A model that misspells a name must not get the next best
    /// one, so a beginning is none. One without the labels of the order is nobody's here, and neither is
    /// one that ends with the process of somebody else.
    async fn named(&self, name: &str) -> Result<Option<Session>> {
        let known = self.known().get(name).cloned();
        if let Some(id) = known
            && let Some(session) = self.still_there(id).await?
        {
            return Ok(Some(session));
        }
        let id = match self.sessions.find(name).await {
            Ok(id) => id,
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let report = self.sessions.status(&id).await?;
        let is_whole = id.as_str() == name || report.name.as_deref() == Some(name);
        let is_ours = self.order.labels.iter().all(|(k, v)| report.labels.get(k) == Some(v));
        if !is_whole || !is_ours || self.is_anothers(&id).await? {
            return Ok(None);
        }
        self.refuse_other_policy(name, (&id, &report)).await?;
        remember(&mut self.known(), name, &id);
        Ok(Some(self.sessions.session(id)))
    }

    /// The sandboxes that a call may name, the oldest first.
    pub(crate) async fn nameable(&self) -> Result<Vec<SessionReport>> {
        let mut nameable = Vec::new();
        for report in self.sessions.list(&self.order.labels).await? {
            let id = SessionId::new(report.id.as_str())?;
            match self.is_nameable(&id, &report).await {
                Ok(true) => nameable.push(report),
                // It is gone since it was listed.
                Err(error) if error.kind == ErrorKind::NotFound => {}
                is_not => drop(is_not?),
            }
        }
        Ok(nameable)
    }

    async fn is_nameable(&self, id: &SessionId, report: &SessionReport) -> Result<bool> {
        Ok(!self.is_anothers(id).await? && self.differences(id, report).await?.is_empty())
    }

    /// Whether it ends with a process, and is not the own one.
    async fn is_anothers(&self, id: &SessionId) -> Result<bool> {
        let is_of_a_process = self.sessions.ends_with_process(id).await?;
        Ok(is_of_a_process && self.own.lock().await.as_ref() != Some(id))
    }

    /// A model that was given one policy must not get another by a name.
    async fn refuse_other_policy(
        &self,
        name: &str,
        (id, report): (&SessionId, &SessionReport),
    ) -> Result<()> {
        let other = self.differences(id, report).await?;
        if other.is_empty() {
            return Ok(());
        }
        let what = format!("sandbox {name:?} is another kind than yours in {}", other.join(", "));
        Err(Error::new(ErrorKind::Denied, what).hint("Use another name."))
    }

    /// In what it is another kind than what is made here.
    async fn differences(&self, id: &SessionId, report: &SessionReport) -> Result<Vec<String>> {
        // What a key has was made through its server, within what that allows: nobody else makes any for it.
        if self.scope == Scope::Named && !report.owner.is_empty() {
            return Ok(Vec::new());
        }
        let mut other = self.sessions.differences(id, &self.order).await?;
        if self.scope == Scope::Named && !other.is_empty() {
            let is_given =
                report.workspace.as_ref().is_some_and(|at| self.directories.contains(at));
            // Of one that was made here somebody has allowed a host, or closed one.
            let is_answered = report.labels == self.order.labels
                && self.sessions.session(id.clone()).has_set_rules().await?;
            other.retain(|field| match field.as_str() {
                "workspace" | "copy_on_write" => !is_given,
                field => !(is_answered && RULES.contains(&field)),
            });
        }
        Ok(other)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, SessionId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look into the book alone: the sandbox is not asked.
    async fn still_there(&self, id: SessionId) -> Result<Option<Session>> {
        match self.sessions.find(id.as_str()).await {
            Ok(found) => Ok((found == id).then(|| self.sessions.session(id))),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the own sandbox, if it was made and is nobody else's; one that is being made is waited for. Says
    /// whether it did.
    pub(crate) async fn close(&self) -> Result<bool> {
        let mut own = self.own.lock().await;
        let Some(id) = own.clone().filter(|_| self.order.name.is_none()) else { return Ok(false) };
        let removed = self.sessions.delete(&id).await?;
        *own = None;
        Ok(removed)
    }
}

/// Makes a sandbox to the end, whoever waits for it: to drop a call gives up its answer alone.
async fn whoever_waits<T: Send + 'static>(
    making: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let broke_off =
        |cause| Error::new(ErrorKind::Io, "the making of a sandbox broke off").source(cause);
    to_its_end(making).await.map_err(broke_off)?
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no sandbox {name:?}"))
        .hint("Make it with sandbox_ensure, or use another name.")
}

/// Remembers whom a name means. Where there are too many names all are looked up anew.
fn remember(known: &mut BTreeMap<String, SessionId>, name: &str, id: &SessionId) {
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(name.to_owned(), id.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_names_are_remembered() {
        let id = SessionId::new("0123456789abcdef0123").unwrap();
        let mut known = BTreeMap::new();
        for number in 0..MAX_KNOWN {
            remember(&mut known, &number.to_string(), &id);
        }
        assert_eq!(known.len(), MAX_KNOWN);
        remember(&mut known, "one more", &id);
        assert_eq!(known.keys().collect::<Vec<_>>(), ["one more"]);
    }
}
