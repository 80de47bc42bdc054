//! The seam to sessions: what the command line asks of them, on a runtime that only their verbs
//! have.

use crate::surroundings::Surroundings;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{Session, Sessions};
use std::path::Path;
use std::sync::Arc;

/// Does something with the sessions of this user. Whatever a crash left behind is repaired first.
pub(crate) fn with<T>(work: impl AsyncFnOnce(&Sessions) -> Result<T>) -> Result<T> {
    let state = Surroundings::of_this_process()?.state_directory()?;
    on_runtime(async {
        let sessions = Sessions::open(&state, backends(&state)).await?;
        work(&sessions).await
    })
}

/// The names of sessions, and the ids of those without a name. Makes and repairs nothing.
pub(crate) fn names() -> Result<Vec<String>> {
    as_they_are(async |sessions| {
        let all = sessions.list(&Default::default()).await?;
        Ok(all.into_iter().map(|session| session.name.unwrap_or(session.id)).collect())
    })
}

/// The ids of the commands of a session. Makes and repairs nothing.
pub(crate) fn exec_names(session: &str) -> Result<Vec<String>> {
    as_they_are(async |sessions| {
        let session = find(sessions, session).await?;
        Ok(session.execs().await?.into_iter().map(|exec| exec.id).collect())
    })
}

/// The session that a text names: its name, its id, or the beginning of one.
pub(crate) async fn find(sessions: &Sessions, text: &str) -> Result<Session> {
    Ok(sessions.session(sessions.find(text).await?))
}

/// Does something with the sessions of this user as they are: makes and repairs nothing.
pub(crate) fn as_they_are<T: Default>(work: impl AsyncFnOnce(&Sessions) -> Result<T>) -> Result<T> {
    let state = Surroundings::of_this_process()?.state_directory()?;
    if !state.is_dir() {
        return Ok(T::default());
    }
    on_runtime(async {
        let sessions = Sessions::open_as_is(&state, backends(&state)).await?;
        work(&sessions).await
    })
}

fn backends(state: &Path) -> Vec<Arc<dyn cofferdam_core::DurableBackend>> {
    vec![Arc::new(cofferdam::kept_backend(state.to_owned()))]
}

fn on_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Error::new(ErrorKind::Io, "start a runtime").source(cause))?;
    let done = runtime.block_on(work);
    // What waits beside it, such as a query that nobody needs any more, holds nobody up.
    runtime.shutdown_background();
    done
}
