//! What one command did: what the host saw, apart from what was said inside.

use crate::answer::{CALL_LIMIT, within};
use crate::report::{ExecReport, text_or_base64};
use crate::session::Session;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    ChangeKind, DurableBackend, Effect, EndingKind, Error, ErrorKind, ExecStatus, FileSeen,
    FilesSeen, Former, KeptLayer, LayerLook, ProcessId, Receipt, Result, SaidByGuest, SeenByHost,
    Side, hexadecimal,
};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// The most paths that a receipt names.
pub const MAX_RECEIPT_PATHS: usize = 1000;
/// The largest file of which a receipt tells the hash, in bytes.
pub const MAX_HASHED_FILE_BYTES: u64 = 16 << 20;
/// How many bytes are hashed for one receipt.
pub const MAX_HASHED_BYTES: u64 = 256 << 20;
/// Why nobody looks at the files of most sessions.
const NO_LAYER: &str = "the session is not copy-on-write";
/// How long a layer may be looked at.
const LOOK_LIMIT: Duration = Duration::from_secs(600);

/// How a session stood before a command, for the command's receipt.
#[derive(Debug, Clone)]
pub struct BeforeCommand {
    /// How its layer stood, or why nobody looked.
    layer: std::result::Result<LayerLook, String>,
    /// How much others had noted that they changed it.
    outside: u64,
}

impl BeforeCommand {
    /// Nobody looked, for this reason: the receipt says it in place of the files.
    pub fn not_seen(why: impl Into<String>) -> Self {
        Self { layer: Err(why.into()), outside: 0 }
    }

    /// How many paths it holds until the receipt is made.
    pub fn paths(&self) -> usize {
        self.layer.as_ref().map_or(0, |look| look.entries.len())
    }
}

impl Session {
    /// How it stands now, for the receipt of a command that is started next.
    ///
    /// What a command does to files is seen by what it leaves in the layer of a copy-on-write session;
    /// in others nobody looks, and the receipt says so, as it does where that cannot be read, or where the host changed
    /// the layer while the command ran.
    pub async fn before_command(&self) -> Result<BeforeCommand> {
        let ready = self.ready().await?;
        // ORDER: before the look, or what others do during it would be the command's.
        let outside = self.noted_outside();
        let layer = match self.receipt_layer().await? {
            Some((_, layer)) => {
                let look = ready.backend.look_at_layer(&layer);
                within(LOOK_LIMIT, "look at a layer", look).await.map_err(|error| error.chain())
            }
            None => Err(NO_LAYER.to_owned()),
        };
        Ok(BeforeCommand { layer, outside })
    }

    /// The receipt of a command that has ended.
    pub async fn receipt(&self, before: &BeforeCommand, exec: &ProcessId) -> Result<Receipt> {
        let execs = self.execs().await?;
        let own = execs.iter().rfind(|known| known.id == exec.as_str());
        let (Some(own), Some(ended_ms)) = (own, own.and_then(|own| own.ended_ms)) else {
            let what = format!("command {exec} has not ended, or is not known");
            return Err(Error::new(ErrorKind::Conflict, what)
                .hint("Wait for it first, as `cofferdam wait` does."));
        };
        // The command has run: what cannot be told of its files is no reason to keep the rest back.
        let seen = self.files_seen(before).await;
        // ORDER: after all was looked at.
        let others = before.layer.as_ref().ok().and_then(|_| self.changed_outside(before.outside));
        let mut files = match (others, seen) {
            (Some(why), _) => nobody(&why),
            (None, Ok(files)) => files,
            (None, Err(error)) => nobody(&error.chain()),
        };
        files.beside = beside(own, ended_ms, &execs);
        Ok(told(own, ended_ms, files))
    }

    async fn files_seen(&self, before: &BeforeCommand) -> Result<FilesSeen> {
        let earlier = match &before.layer {
            Ok(earlier) => earlier,
            Err(why) => return Ok(nobody(why)),
        };
        let Some((backend, layer)) = self.receipt_layer().await? else {
            return Ok(nobody(NO_LAYER));
        };
        let look = within(LOOK_LIMIT, "look at a layer", backend.look_at_layer(&layer)).await?;
        let effects = look.effects_since(earlier);
        let mut files = FilesSeen {
            omitted: effects.len().saturating_sub(MAX_RECEIPT_PATHS) as u64,
            ..FilesSeen::default()
        };
        let mut left = MAX_HASHED_BYTES;
        for effect in effects.into_iter().take(MAX_RECEIPT_PATHS) {
            let sha256 = hash(&backend, &layer, &effect, &mut left).await?;
            match effect.kind {
                ChangeKind::Added => files.added.push(seen(&effect, sha256)),
                ChangeKind::Modified => files.changed.push(seen(&effect, sha256)),
                ChangeKind::Removed => files.removed.push(seen(&effect, sha256)),
            }
        }
        Ok(files)
    }

    /// Its layer, and who keeps that; nothing where it has none.
    async fn receipt_layer(&self) -> Result<Option<(Arc<dyn DurableBackend>, KeptLayer)>> {
        let inner = &self.sessions.0;
        let row = inner.row(&self.id).await?;
        let Some(layer) = self.layer_of(&row)? else { return Ok(None) };
        Ok(Some((inner.backend(&row.backend)?, layer)))
    }
}

/// The receipt of a command that has ended and whose session was removed: with it went what tells of files.
/// Nothing where it has not ended.
pub fn receipt_of_gone(status: &ExecStatus) -> Option<Receipt> {
    let own = ExecReport::new(1, status);
    Some(told(&own, own.ended_ms?, nobody("the session was removed")))
}

fn told(own: &ExecReport, ended_ms: u64, files: FilesSeen) -> Receipt {
    let ending = own.ending.unwrap_or(EndingKind::Lost);
    Receipt {
        seen_by_host: SeenByHost {
            started_ms: own.started_ms,
            ended_ms,
            cause: is_by_host(ending).then_some(ending),
            stdout: own.stdout,
            stderr: own.stderr,
            omitted: None,
            processes_left: own.left,
            denials: own.denials.clone(),
            files,
        },
        said_by_guest: SaidByGuest {
            ending,
            exit_code: own.exit_code.unwrap_or_default(),
            signal: own.signal,
            usage: own.usage,
            killed_descendants: own.killed_descendants,
        },
    }
}

fn nobody(why: &str) -> FilesSeen {
    FilesSeen { not_seen: Some(why.to_owned()), ..FilesSeen::default() }
}

/// How much one file may have where so much is left of what is read for one receipt.
fn most_of_one(left: u64) -> u64 {
    MAX_HASHED_FILE_BYTES.min(left)
}

/// The SHA-256 of what a file holds now, if that can be told.
async fn hash(
    backend: &Arc<dyn DurableBackend>,
    layer: &KeptLayer,
    effect: &Effect,
    left: &mut u64,
) -> Result<Option<String>> {
    let most = most_of_one(*left);
    let (side, kind, size) = match (&effect.now, effect.former) {
        (Some(now), _) => (Side::After, now.kind, now.size),
        (None, Some(Former { kind, size, in_workspace: true, .. })) => (Side::Before, kind, size),
        (None, _) => return Ok(None),
    };
    if kind != EntryKind::File || size > most {
        return Ok(None);
    }
    let read = backend.layer_file(layer, side, &effect.path, most);
    match within(CALL_LIMIT, "read a file", read).await {
        // What the workspace got in its place meanwhile is not what was removed.
        Ok(bytes) if side == Side::Before && bytes.len() as u64 != size => Ok(None),
        Ok(bytes) => {
            *left = left.saturating_sub(bytes.len() as u64);
            Ok(Some(hexadecimal(Sha256::digest(&bytes))))
        }
        // Something goes on and changes it.
        Err(error)
            if matches!(
                error.kind,
                ErrorKind::NotFound | ErrorKind::NotAFile | ErrorKind::TooLarge
            ) =>
        {
            Ok(None)
        }
        // What is closed to whoever asks could be removed all the same.
        Err(error) if side == Side::Before && error.kind == ErrorKind::Denied => Ok(None),
        Err(error) => Err(error),
    }
}

/// Commands that ran while this one did.
fn beside(own: &ExecReport, ended_ms: u64, all: &[ExecReport]) -> Vec<String> {
    let ran = |other: &&ExecReport| {
        other.id != own.id
            && other.incarnation == own.incarnation
            && other.started_ms <= ended_ms
            && (other.left > 0 || other.ended_ms.is_none_or(|ended| ended >= own.started_ms))
    };
    all.iter().filter(ran).map(|other| other.id.clone()).collect()
}

/// Whether an ending is the host's own work and not only told from inside.
fn is_by_host(ending: EndingKind) -> bool {
    match ending {
        EndingKind::TimedOut
        | EndingKind::OutOfMemory
        | EndingKind::Pids
        | EndingKind::Output
        | EndingKind::Disk
        | EndingKind::Lease
        | EndingKind::SecretAlarm
        | EndingKind::SetupFailed
        | EndingKind::Canceled
        | EndingKind::Lost => true,
        EndingKind::Exited | EndingKind::Signaled | EndingKind::NotStarted => false,
    }
}

fn seen(effect: &Effect, sha256: Option<String>) -> FileSeen {
    let told = effect.now.as_ref().map(|now| (now.kind, now.mode, now.size));
    let told = told.or(effect.former.map(|former| (former.kind, former.mode, former.size)));
    let (path, path_base64) = text_or_base64(effect.path.as_bytes().to_vec());
    FileSeen {
        path,
        path_base64,
        kind: told.map(|(kind, _, _)| kind.name().to_owned()),
        mode: told.map(|(_, mode, _)| format!("{mode:o}")),
        size: told.map(|(_, _, size)| size),
        sha256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_for_a_receipt_is_bounded_as_a_whole() {
        let (mut left, mut read) = (MAX_HASHED_BYTES, 0);
        while most_of_one(left) > 0 {
            let one = most_of_one(left);
            assert!(one <= MAX_HASHED_FILE_BYTES);
            left -= one;
            read += one;
        }
        assert_eq!(read, MAX_HASHED_BYTES);
    }
}
