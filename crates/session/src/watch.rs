//! A watch of a session's files, and why it ended.

use crate::session::Session;
use crate::{Phase, SessionId};
use async_trait::async_trait;
use cofferdam_core::files::{EventSource, FileEvent, FileWatch};
use cofferdam_core::{Error, ErrorKind, Result};

/// The watch of one sandbox of a session.
pub(crate) struct SessionWatch {
    pub(crate) session: Session,
    pub(crate) incarnation: u32,
    pub(crate) watch: FileWatch,
}

#[async_trait]
impl EventSource for SessionWatch {
    async fn next(&mut self) -> Result<Vec<FileEvent>> {
        match self.watch.next().await {
            Ok(event) => Ok(vec![event]),
            Err(error) if error.kind == ErrorKind::Unavailable => {
                Err(why(&self.session, self.incarnation, error).await)
            }
            Err(error) => Err(error),
        }
    }
}

/// What became of a sandbox whose worker is not heard any more.
async fn why(session: &Session, incarnation: u32, error: Error) -> Error {
    let id = session.id();
    match session.settle().await {
        Err(settled) if settled.kind == ErrorKind::NotFound => return removed(id),
        // The first error says more than one that only looking met.
        Ok(()) | Err(_) => {}
    }
    let row = match session.sessions.0.row(id).await {
        Ok(row) => row,
        Err(gone) if gone.kind == ErrorKind::NotFound => return removed(id),
        Err(_) => return error,
    };
    match row.phase {
        Phase::Deleting => removed(id),
        Phase::Stopping | Phase::Stopped => {
            let what = format!("session {id} was stopped while it was watched");
            Error::new(ErrorKind::Conflict, what).hint("Watch again, which starts it anew.")
        }
        Phase::Lost | Phase::Failed => lost(id),
        Phase::Creating | Phase::Running | Phase::Pausing | Phase::Paused | Phase::Resuming
            if row.incarnation != incarnation =>
        {
            lost(id)
        }
        Phase::Creating | Phase::Running | Phase::Pausing | Phase::Paused | Phase::Resuming => {
            let what = format!("the watch of session {id} was killed inside its sandbox");
            Error::new(ErrorKind::Unavailable, what)
                .hint("Watch again, then look at everything again.")
        }
    }
}

fn removed(id: &SessionId) -> Error {
    Error::new(ErrorKind::NotFound, format!("session {id} was removed while it was watched"))
        .hint("List the sessions to see which there are.")
}

fn lost(id: &SessionId) -> Error {
    let what = format!("the sandbox of session {id} was lost while it was watched");
    Error::new(ErrorKind::Unavailable, what)
        .hint("Watch again, which recovers the session, then look at everything again.")
}
