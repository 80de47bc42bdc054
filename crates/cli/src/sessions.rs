//! The seam to sessions: what the command line asks of them, on a runtime that only their verbs
//! have.

use crate::door::{Session, Sessions};
use crate::secrets::Stored;
use crate::surroundings::Surroundings;
use cofferdam::GateProgram;
use cofferdam_core::{EndingKind, Enforced, Error, ErrorKind, ProcessId, Result};
use cofferdam_local::launch::MORE_PROCESSES;
use cofferdam_session::{SessionId, Sessions as Own};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many points are offered to who completes a line.
const COMPLETED_POINTS: usize = 100;

/// Does something with the sessions of this user, or with those behind the server that was chosen.
/// Whatever a crash left behind is repaired first.
pub(crate) fn with<T>(work: impl AsyncFnOnce(&Sessions) -> Result<T>) -> Result<T> {
    #[cfg(feature = "remote")]
    if let Some(there) = crate::door::connect()? {
        return asking(async { work(&there).await });
    }
    here(async |sessions| work(&Sessions::Here(sessions.clone())).await)
}

/// The same for what has to work on a full disk: looks at them, stops or removes something.
pub(crate) fn on_reserve<T>(work: impl AsyncFnOnce(&Sessions) -> Result<T>) -> Result<T> {
    #[cfg(feature = "remote")]
    if let Some(there) = crate::door::connect()? {
        return asking(async { work(&there).await });
    }
    here_on_reserve(async |sessions| work(&Sessions::Here(sessions.clone())).await)
}

/// Asks the server that was chosen for something that is no session.
#[cfg(all(feature = "mcp", feature = "remote"))]
pub(crate) fn there<T>(
    work: impl AsyncFnOnce(&cofferdam_client::Client) -> Result<T>,
) -> Result<T> {
    match crate::door::connect()? {
        Some(Sessions::There(there)) => asking(async { work(&there.client).await }),
        Some(Sessions::Here(_)) | None => {
            Err(Error::new(ErrorKind::Usage, "no server is named").hint("Write --server URL."))
        }
    }
}

/// Does something with the sessions of this machine. Whatever a crash left behind is repaired first.
pub(crate) fn here<T>(work: impl AsyncFnOnce(&Own) -> Result<T>) -> Result<T> {
    let state = Surroundings::of_this_process().state_directory()?;
    on_runtime(async {
        let sessions = Own::open(&state, backends(&state)).await?;
        work(&sessions).await
    })
}

/// The same for what has to work on a full disk.
pub(crate) fn here_on_reserve<T>(work: impl AsyncFnOnce(&Own) -> Result<T>) -> Result<T> {
    let state = Surroundings::of_this_process().state_directory()?;
    on_runtime(async {
        let sessions = Own::open_on_reserve(&state, backends(&state)).await?;
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
        let session = sessions.session(sessions.find(session).await?);
        Ok(session.execs().await?.into_iter().map(|exec| exec.id).collect())
    })
}

/// The snapshots of a session, by their numbers and labels. Makes and repairs nothing.
pub(crate) fn snapshot_names(session: &str) -> Result<Vec<String>> {
    as_they_are(async |sessions| {
        let all = sessions.snapshots(&sessions.find(session).await?).await?;
        Ok(all.into_iter().flat_map(|one| numbered(one.snapshot, one.label)).collect())
    })
}

/// The last points of the history of a session, by their numbers and labels. Makes and repairs nothing.
pub(crate) fn point_names(session: &str) -> Result<Vec<String>> {
    as_they_are(async |sessions| {
        let session = sessions.session(sessions.find(session).await?);
        let all = session.history(COMPLETED_POINTS).await?.points;
        Ok(all.into_iter().flat_map(|one| numbered(one.point, one.label)).collect())
    })
}

/// The names of the keys that are good. Makes and repairs nothing.
pub(crate) fn key_names() -> Result<Vec<String>> {
    as_they_are(async |sessions| {
        let good = sessions.keys().await?.into_iter().filter(|key| key.revoked_ms.is_none());
        Ok(good.map(|key| key.name).collect())
    })
}

fn numbered(number: u32, label: Option<String>) -> impl Iterator<Item = String> {
    [Some(number.to_string()), label].into_iter().flatten()
}

/// The session that a text names: its name, its id, or the beginning of one.
pub(crate) async fn find(sessions: &Sessions, text: &str) -> Result<Session> {
    Ok(sessions.session(sessions.find(text).await?))
}

/// The same where something is changed: see [`find_whole`].
pub(crate) async fn find_to_change(sessions: &Sessions, text: &str) -> Result<Session> {
    Ok(sessions.session(find_whole(sessions, text).await?))
}

/// The session that a text names where something is changed or ended: a name must be whole, for the next
/// best may be another's. An id may be cut short.
pub(crate) async fn find_whole(sessions: &Sessions, text: &str) -> Result<SessionId> {
    // Whole ones first: for them nothing is asked twice.
    match whole(sessions, text).await {
        Err(error) if error.kind == ErrorKind::NotFound => {}
        found => return found,
    }
    let id =
        sessions.find(text).await.map_err(|error| match error.kind == ErrorKind::Conflict {
            // More of a name would not do.
            true => error.hint("Name one of them whole, or write more of its id."),
            false => error,
        })?;
    if id.as_str().starts_with(text) {
        return Ok(id);
    }
    let name = sessions.status(&id).await?.name;
    // What was made over HTTP is somebody else's, and found by its name all the same.
    if name.as_deref() == Some(text) {
        return Ok(id);
    }
    let found = name.as_deref().unwrap_or(id.as_str());
    Err(Error::new(ErrorKind::NotFound, format!("there is no session {text:?}"))
        .hint(format!("Did you mean {found}? Name it whole, so that no other one is meant.")))
}

/// The session of this id or name, written out in full.
async fn whole(sessions: &Sessions, text: &str) -> Result<SessionId> {
    match sessions {
        Sessions::Here(own) => own.find_whole(text).await,
        #[cfg(feature = "remote")]
        Sessions::There(there) => SessionId::new(there.client.sandbox(text).status().await?.id),
    }
}

/// An error about a session that is not there.
#[cfg(feature = "remote")]
pub(crate) fn missing(text: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no session {text:?}"))
        .hint("List the sessions with `cofferdam ls`.")
}

/// How much of the id of a command somebody has to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Its beginning.
    Cut,
    /// All of it, unless nobody chose it: where a next best one would be a wrong answer.
    Whole,
}

/// The command of a session that a text names: its id, or the beginning of it.
pub(crate) async fn find_exec(
    session: &Session,
    text: &str,
    written: Written,
) -> Result<ProcessId> {
    let all = session.execs().await?;
    pick(all.iter().map(|exec| exec.id.as_str()).collect(), text, written)
}

/// Resumes a session that sleeps, where a command of it has not ended: whoever begins to watch it uses it.
pub(crate) async fn wake_for(session: &Session, exec: &ProcessId) -> Result<()> {
    session.wait(exec, Some(Duration::from_millis(1))).await.map(drop)
}

fn pick(ids: Vec<&str>, text: &str, written: Written) -> Result<ProcessId> {
    if ids.contains(&text) {
        return ProcessId::new(text);
    }
    let may_be_cut = |id: &str| written == Written::Cut || is_generated(id);
    let mut begun: Vec<&str> = ids
        .into_iter()
        .filter(|id| !text.is_empty() && id.starts_with(text) && may_be_cut(id))
        .collect();
    begun.dedup();
    match begun.as_slice() {
        [id] => ProcessId::new(*id),
        [] => Err(Error::new(ErrorKind::NotFound, format!("there is no command {text:?}"))
            .hint("List the commands of the session with `cofferdam ps`.")),
        several => {
            let what = format!("{text:?} begins several commands: {}", several.join(", "));
            Err(Error::new(ErrorKind::Conflict, what).hint("Write more of the id."))
        }
    }
}

/// Whether an id looks like one that nobody chose: `x` and random hexadecimal digits.
fn is_generated(id: &str) -> bool {
    let digits = id.strip_prefix('x').unwrap_or_default();
    digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Where the workspace of a session is inside.
pub(crate) async fn workspace_inside(session: &Session) -> Result<PathBuf> {
    let report = session.sessions().status(session.id()).await?;
    // Without a sandbox it is not known yet, and there is always this way to it.
    Ok(report.workspace_inside.map_or_else(|| PathBuf::from("/workspace"), PathBuf::from))
}

/// The directory that a command is to start in, if one is named: inside, from the workspace on.
pub(crate) async fn directory_inside(
    session: &Session,
    cwd: Option<&Path>,
) -> Result<Option<OsString>> {
    Ok(match cwd {
        Some(cwd) if cwd.is_absolute() => Some(cwd.into()),
        Some(cwd) => Some(workspace_inside(session).await?.join(cwd).into()),
        None => None,
    })
}

/// How far the policy holds in the sandbox that a command has started in; nowhere, where that is gone.
/// It is asked before anybody waits for the command's end: afterwards the sandbox may have ended, too.
pub(crate) async fn enforced(session: &Session, exec: &ProcessId) -> Result<Enforced> {
    let gone = || Enforced::nowhere("the sandbox is gone");
    let report = match session.sessions().status(session.id()).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(gone()),
        report => report?,
    };
    // A first sandbox has had no other one before.
    let is_its_own = report.incarnation <= 1
        || session.status(exec).await.is_ok_and(|own| own.incarnation == report.incarnation);
    Ok(report.enforced.filter(|_| is_its_own).unwrap_or_else(gone))
}

/// The stable name of an ending.
pub(crate) fn ending_name(ending: EndingKind) -> String {
    let name = serde_json::to_value(ending).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or("ended").to_owned()
}

/// Tells a command which terminal the caller has, unless somebody said it already.
pub(crate) fn add_terminal(env: &mut BTreeMap<OsString, OsString>, surroundings: &Surroundings) {
    let name = OsStr::new("TERM");
    if let Some(value) = surroundings.variables.get(name).filter(|_| !env.contains_key(name)) {
        env.insert(name.to_owned(), value.clone());
    }
}

/// The same as [`with`], on a runtime with several threads.
#[cfg(feature = "serve")]
pub(crate) fn serving<T>(work: impl AsyncFnOnce(&Own) -> Result<T>) -> Result<T> {
    let state = Surroundings::of_this_process().state_directory()?;
    /// What takes longer is finished or taken back by the next start, as after a crash.
    const SERVER_PATIENCE: Duration = Duration::from_secs(10);
    on(tokio::runtime::Builder::new_multi_thread(), SERVER_PATIENCE, async {
        let sessions = Own::open(&state, backends(&state)).await?;
        work(&sessions).await
    })
}

/// Does something with the sessions of this user as they are: makes and repairs nothing.
pub(crate) fn as_they_are<T: Default>(work: impl AsyncFnOnce(&Own) -> Result<T>) -> Result<T> {
    let state = Surroundings::of_this_process().state_directory()?;
    if !state.is_dir() {
        return Ok(T::default());
    }
    on_runtime(async {
        let sessions = Own::open_as_is(&state, backends(&state)).await?;
        work(&sessions).await
    })
}

fn backends(state: &Path) -> Vec<Arc<dyn cofferdam_core::DurableBackend>> {
    let secrets = Arc::new(Stored(state.to_owned()));
    let backend = cofferdam::kept_backend(state.to_owned()).with_secrets(secrets);
    // Where this program cannot be found, a way out is refused by whoever needs the gate.
    let backend = match GateProgram::own() {
        Ok(gate) => backend.with_gate(gate),
        Err(_) => backend,
    };
    vec![Arc::new(backend)]
}

fn on_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    on(tokio::runtime::Builder::new_current_thread(), PATIENCE, work)
}

/// Asks a server. Connections to it are kept beside the work, and nobody waits for their end.
#[cfg(feature = "remote")]
fn asking<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = started(tokio::runtime::Builder::new_current_thread())?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

fn started(mut builder: tokio::runtime::Builder) -> Result<tokio::runtime::Runtime> {
    // The runtime has threads beside for what blocks, and panics where it gets none.
    let thread = std::thread::Builder::new().spawn(|| ()).map_err(|cause| {
        let error = Error::new(ErrorKind::Unavailable, "no more threads can be made");
        error.hint(MORE_PROCESSES).source(cause)
    })?;
    // ORDER: it is gone before the next one is made, which may be the last that there can be.
    let _ = thread.join();
    let started = builder.enable_all().build();
    started.map_err(|cause| Error::new(ErrorKind::Io, "start a runtime").source(cause))
}

fn on<T>(
    builder: tokio::runtime::Builder,
    patience: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let runtime = started(builder)?;
    let done = runtime.block_on(async {
        let done = work.await;
        settle(patience).await;
        done
    });
    // What waits beside it, such as a query that nobody needs any more, holds nobody up.
    runtime.shutdown_background();
    done
}

/// How long a verb waits for what was begun beside its work.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until what was begun beside the work is done: the end of a sandbox whose run was given up.
async fn settle(patience: Duration) {
    const LOOK_AGAIN: Duration = Duration::from_millis(5);
    let tasks = tokio::runtime::Handle::current().metrics();
    let give_up = Instant::now() + patience;
    while tasks.num_alive_tasks() > 0 && Instant::now() < give_up {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_id_is_cut_short_only_where_that_does_no_harm() {
        let ids = || vec!["r10", "x0123456789abcdef0123", "build", "build-2"];
        let check = |text: &str, written, expected: Option<&str>| {
            let found = pick(ids(), text, written).ok();
            assert_eq!(found.as_ref().map(ProcessId::as_str), expected, "{text} {written:?}");
        };
        check("r1", Written::Cut, Some("r10"));
        check("r1", Written::Whole, None);
        check("r10", Written::Whole, Some("r10"));
        check("x01", Written::Whole, Some("x0123456789abcdef0123"));
        check("build", Written::Cut, Some("build"));
        check("bui", Written::Cut, None);
        check("", Written::Cut, None);
    }
}
