//! What verbs ask of sessions, wherever those are: of this machine, or behind a server.
//!
//! [`Sessions`] and [`Session`] have what verbs need, by the names that `cofferdam_session` gives it, and
//! both ways answer with the same objects: so a verb is written once and prints the same.

/// The same call, wherever the sessions are.
macro_rules! wherever {
    ($this:expr, $one:ident => $call:expr) => {
        match $this {
            Self::Here($one) => $call,
            #[cfg(feature = "remote")]
            Self::There($one) => $call,
        }
    };
}

mod chosen;
#[cfg(feature = "remote")]
mod remote;
mod session;
#[cfg(feature = "remote")]
mod wish;

pub(crate) use chosen::{choose, is_chosen, refuse, split};
#[cfg(feature = "remote")]
pub(crate) use remote::{Session as There, connect};
pub(crate) use session::{Before, Beside, Chosen, Counted, Session};
#[cfg(feature = "remote")]
pub(crate) use wish::{StartOf, spec};
#[cfg(all(feature = "mcp", feature = "remote"))]
pub(crate) use {chosen::words, remote::refuse_if, wish::sandbox};

use crate::args::SessionOptions;
use crate::commands::create;
use cofferdam_core::secret::{SecretName, SecretValue};
use cofferdam_core::{Error, ErrorKind, Result, Workspace};
use cofferdam_session::{
    EventReport, PermissionId, SecretReport, SessionId, SessionOrder, SessionReport,
    SnapshotExport, SnapshotExported, SnapshotImported, SnapshotReport, UndoReport,
};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// All sessions there are for this caller.
pub(crate) enum Sessions {
    /// Those of this machine.
    Here(cofferdam_session::Sessions),
    /// Those behind a server.
    #[cfg(feature = "remote")]
    There(remote::Sessions),
}

/// A session as somebody wants it.
pub(crate) enum Order {
    /// On this machine.
    Here(Box<SessionOrder>),
    /// At a server, which decides what is not said.
    #[cfg(feature = "remote")]
    There(Box<cofferdam_session::objects::SandboxWish>),
}

impl Order {
    /// What these options ask for.
    pub(crate) fn new(
        name: Option<String>,
        options: &SessionOptions,
        manifest: Option<&Path>,
    ) -> Result<Self> {
        #[cfg(feature = "remote")]
        if chosen::chosen().is_some() {
            let wish = wish::sandbox(name, options, manifest)?;
            return Ok(Self::There(Box::new(wish)));
        }
        let mut order = create::order(name, options)?;
        let workspace = order.spec.workspace.directory();
        order.manifest = crate::commands::provisions(manifest, workspace)?;
        Ok(Self::Here(Box::new(order)))
    }

    /// Whether there is something to bring, to copy or to run before it is there.
    pub(crate) fn takes_long(&self) -> bool {
        match self {
            Self::Here(order) => {
                let is_copied = matches!(order.spec.workspace, Workspace::CopyOnWrite(_));
                order.manifest.is_some() || !order.init.is_empty() || is_copied
            }
            #[cfg(feature = "remote")]
            Self::There(wish) => {
                wish.init.is_some() || wish.manifest.is_some() || wish.copy_on_write
            }
        }
    }
}

impl Sessions {
    /// The session that a text names: its id, its name, or the beginning of one of them.
    pub(crate) async fn find(&self, text: &str) -> Result<SessionId> {
        wherever!(self, all => all.find(text).await)
    }

    /// The session that the id of something that waits names, and what it is there.
    pub(crate) async fn permission(&self, text: &str) -> Result<(Session, PermissionId)> {
        let (session, target) = PermissionId::split(text)?;
        let id = self.find(session).await?;
        Ok((self.session(id.clone()), PermissionId::new(id, target)))
    }

    /// The door to a session. Whether it is there is seen at first use.
    pub(crate) fn session(&self, id: SessionId) -> Session {
        match self {
            Self::Here(all) => Session::Here(all.session(id)),
            #[cfg(feature = "remote")]
            Self::There(all) => Session::There(all.session(id)),
        }
    }

    /// Makes a session and prepares it. A name that is taken is a conflict.
    pub(crate) async fn create(&self, order: &Order) -> Result<SessionReport> {
        match (self, order) {
            (Self::Here(all), Order::Here(order)) => {
                let session = all.create(order).await?;
                all.status(session.id()).await
            }
            #[cfg(feature = "remote")]
            (Self::There(all), Order::There(wish)) => all.client.create(wish).await,
            #[cfg(feature = "remote")]
            (Self::Here(_), Order::There(_)) | (Self::There(_), Order::Here(_)) => Err(elsewhere()),
        }
    }

    /// Makes sure that a session of this name is there and takes commands.
    pub(crate) async fn ensure(&self, name: &str, order: &Order) -> Result<SessionReport> {
        match (self, order) {
            (Self::Here(all), Order::Here(order)) => {
                let ensured = all.ensure(order).await?;
                all.status(ensured.session.id()).await
            }
            #[cfg(feature = "remote")]
            (Self::There(all), Order::There(wish)) => all.client.ensure(name, wish).await,
            #[cfg(feature = "remote")]
            (Self::Here(_), Order::There(_)) | (Self::There(_), Order::Here(_)) => {
                let _ = name;
                Err(elsewhere())
            }
        }
    }

    /// The secrets of whoever asks, by name.
    pub(crate) async fn secrets(&self) -> Result<Vec<SecretReport>> {
        wherever!(self, all => all.secrets().await)
    }

    /// Adds a secret, or gives one that is there another value.
    pub(crate) async fn put_secret(
        &self,
        name: &SecretName,
        value: SecretValue,
    ) -> Result<SecretReport> {
        wherever!(self, all => all.put_secret(name.clone(), value).await)
    }

    /// Removes a secret.
    pub(crate) async fn remove_secret(&self, name: &SecretName) -> Result<()> {
        wherever!(self, all => all.remove_secret(name.clone()).await)
    }

    /// The sessions that have all these labels, oldest first.
    pub(crate) async fn list(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<SessionReport>> {
        wherever!(self, all => all.list(labels).await)
    }

    /// How a session stands now.
    pub(crate) async fn status(&self, id: &SessionId) -> Result<SessionReport> {
        wherever!(self, all => all.status(id).await)
    }

    /// Stops everything in a session where it stands.
    pub(crate) async fn pause(&self, id: &SessionId) -> Result<()> {
        wherever!(self, all => all.pause(id).await)
    }

    /// Ends all processes of a session, and keeps what it has.
    pub(crate) async fn stop(&self, id: &SessionId) -> Result<()> {
        wherever!(self, all => all.stop(id).await)
    }

    /// Lets everything go on.
    pub(crate) async fn resume(&self, id: &SessionId) -> Result<()> {
        wherever!(self, all => all.resume(id).await)
    }

    /// Removes a session with all that it has. Says whether there was one.
    pub(crate) async fn delete(&self, id: &SessionId) -> Result<bool> {
        wherever!(self, all => all.delete(id).await)
    }

    /// Gives a session a longer lease.
    pub(crate) async fn extend(&self, id: &SessionId, by: Duration) -> Result<u64> {
        wherever!(self, all => all.extend(id, by).await)
    }

    /// Those of this machine, if they are.
    pub(crate) fn here(&self) -> Option<&cofferdam_session::Sessions> {
        match self {
            Self::Here(all) => Some(all),
            #[cfg(feature = "remote")]
            Self::There(_) => None,
        }
    }

    /// What happened after the event of this number, of one session or all.
    pub(crate) async fn events(
        &self,
        session: Option<&SessionId>,
        after: u64,
    ) -> Result<Vec<EventReport>> {
        wherever!(self, all => all.events(session, after).await)
    }

    /// Makes another session whose workspace begins as that of this one is, or was at a point.
    pub(crate) async fn fork(
        &self,
        id: &SessionId,
        point: Option<&str>,
        name: &str,
    ) -> Result<Session> {
        match self {
            Self::Here(all) => all.fork(id, point, name).await.map(Session::Here),
            #[cfg(feature = "remote")]
            Self::There(all) => all.fork(id, point, name).await.map(Session::There),
        }
    }

    /// Keeps what a session changed as it is now.
    pub(crate) async fn snapshot(
        &self,
        id: &SessionId,
        label: Option<String>,
    ) -> Result<SnapshotReport> {
        wherever!(self, all => all.snapshot(id, label).await)
    }

    /// The snapshots of a session, oldest first.
    pub(crate) async fn snapshots(&self, id: &SessionId) -> Result<Vec<SnapshotReport>> {
        wherever!(self, all => all.snapshots(id).await)
    }

    /// Puts the workspace of a session back to a snapshot.
    pub(crate) async fn restore(&self, id: &SessionId, name: &str) -> Result<UndoReport> {
        wherever!(self, all => all.restore(id, name).await)
    }

    /// Removes a snapshot.
    pub(crate) async fn remove_snapshot(
        &self,
        id: &SessionId,
        name: &str,
    ) -> Result<SnapshotReport> {
        wherever!(self, all => all.remove_snapshot(id, name).await)
    }

    /// Prepares a snapshot to be written as one file.
    pub(crate) async fn export_snapshot(&self, id: &SessionId, name: &str) -> Result<Export> {
        match self {
            Self::Here(all) => Ok(Export::Here(Box::new(all.export_snapshot(id, name).await?))),
            #[cfg(feature = "remote")]
            Self::There(all) => all.export_snapshot(id, name).map(Export::There),
        }
    }

    /// Makes a snapshot of an exported one.
    pub(crate) async fn import_snapshot(
        &self,
        id: &SessionId,
        input: Box<dyn Read + Send>,
        label: Option<String>,
    ) -> Result<SnapshotImported> {
        wherever!(self, all => all.import_snapshot(id, input, label).await)
    }
}

/// A snapshot that is about to be written as one file.
pub(crate) enum Export {
    /// Of this machine.
    Here(Box<SnapshotExport>),
    /// Of a server.
    #[cfg(feature = "remote")]
    There(remote::Export),
}

impl Export {
    /// Writes all of it, and gives back what it was written to, and what went out.
    pub(crate) async fn write<W: Write + Send + Unpin + 'static>(
        self,
        out: W,
    ) -> Result<(W, SnapshotExported)> {
        match self {
            Self::Here(export) => {
                let exported = export.report();
                Ok((export.write(out).await?, exported))
            }
            #[cfg(feature = "remote")]
            Self::There(export) => export.write(out).await,
        }
    }
}

#[cfg(feature = "remote")]
fn elsewhere() -> Error {
    Error::new(ErrorKind::Usage, "a session of one place is asked for at another")
}
