//! Which carries were begun and are not known to have ended.
//!
//! A carry keeps what it replaces in the workspace until it is done. Where its worker is killed, that stays there
//! until somebody puts it right. So its name is noted in the state directory before it begins, where no command
//! can make one of its own, and whoever deals with the sandbox next asks a worker for these names and no others.
//!
//! ORDER: a note is locked by whoever carries, so one that nobody holds was left.

use crate::SessionId;
use crate::places::{Places, make_private};
use cofferdam_core::files::{Answer, Body, Carry, CarryEnd, FileService, Request, is_carry_name};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;

/// How often a worker is asked that is not gone yet, and how long between.
const ASKED: usize = 20;
const BETWEEN: Duration = Duration::from_millis(50);
/// How often a note is made anew that somebody takes for one that was left.
const TRIES: usize = 3;

/// Which notes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that nobody holds.
    Abandoned,
    /// Those of callers that live, too, because their sandbox is about to end.
    Every,
}

/// A carry that is noted. The note stays until it is told that the carry has ended.
#[derive(Debug)]
pub(crate) struct Begun {
    path: PathBuf,
    file: OwnedFd,
}

impl Begun {
    /// Nothing of it is left in the workspace.
    pub(crate) fn ended(self) {
        // What stays is asked for once more, and nothing is found.
        std::fs::remove_file(&self.path).ok();
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // A child that another thread is just starting holds a copy of the descriptor.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Notes a carry that is about to begin.
pub(crate) fn begin(places: &Places, id: &SessionId, name: &str) -> Result<Begun> {
    let directory = directory(places, id);
    make_private(&places.carries())?;
    make_private(&directory)?;
    let path = directory.join(name);
    let failed = |e: Errno| {
        Error::new(ErrorKind::Io, format!("note in {} what begins", directory.display()))
            .hint("Make room and give yourself the right to write there, or set COFFERDAM_HOME.")
            .source(std::io::Error::from(e))
    };
    for _ in 0..TRIES {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = open(&path, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        // Until it is locked, somebody may take it for one that was left, and remove it.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            && fstat(&file).map_err(failed)?.st_nlink > 0
        {
            return Ok(Begun { path, file });
        }
    }
    Err(failed(Errno::AGAIN))
}

/// Whether there is something to put right.
pub(crate) fn any(places: &Places, id: &SessionId, which: Which) -> bool {
    names(&directory(places, id)).iter().any(|name| hold(places, id, name, which).is_some())
}

/// Has a worker put right what is noted, as far as that goes. What cannot be put right now stays noted.
pub(crate) async fn put_right(
    places: &Places,
    id: &SessionId,
    service: &dyn FileService,
    which: Which,
) {
    for name in names(&directory(places, id)) {
        let Some(begun) = hold(places, id, &name, which) else { continue };
        if recover(service, &name).await {
            begun.ended();
        }
    }
}

/// Asks until it is known what has become of a carry. Says whether nothing of it is left.
pub(crate) async fn recover(service: &dyn FileService, name: &str) -> bool {
    let request = Request::Recover(Carry { name: name.to_owned() });
    for _ in 0..ASKED {
        match service.call(&request, Body::Nothing).await.map(|reply| reply.answer) {
            Ok(Answer::Recovered(CarryEnd::Busy)) => sleep(BETWEEN).await,
            Ok(Answer::Recovered(CarryEnd::Undone | CarryEnd::Done | CarryEnd::NoTrace)) => {
                return true;
            }
            Ok(_) | Err(_) => return false,
        }
    }
    false
}

/// Removes the notes of a session that is removed.
pub(crate) fn forget(places: &Places, session: &str) -> Result<()> {
    let directory = places.carries().join(session);
    match std::fs::remove_dir_all(&directory) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            let what = format!("remove {}", directory.display());
            Err(Error::new(ErrorKind::Io, what).source(e))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn directory(places: &Places, id: &SessionId) -> PathBuf {
    places.carries().join(id.as_str())
}

fn names(directory: &Path) -> Vec<String> {
    // A session that never carried anything has none.
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_carry_name(name)).collect()
}

/// Opens a note that is there. `None` where another one holds it who is to be left alone.
fn hold(places: &Places, id: &SessionId, name: &str, which: Which) -> Option<Begun> {
    let path = directory(places, id).join(name);
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = open(&path, flags, Mode::empty()).ok()?;
    let is_ours = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    (is_ours || which == Which::Every).then_some(Begun { path, file })
}
