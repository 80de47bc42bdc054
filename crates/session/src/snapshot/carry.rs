//! Snapshots that go out as one file, and come in as one.

use super::{SnapshotReport, check_label, check_room};
use crate::desk::Desk;
use crate::history::exported::{ExportManifest, ExportedWorkspace, Imported, Outgoing};
use crate::history::{History, layered, to_its_end};
use crate::store::{NewEvent, blocking};
use crate::{SessionId, Sessions};
use cofferdam_core::{Error, Result, hexadecimal};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A snapshot that is to go out.
#[derive(Debug)]
pub struct SnapshotExport {
    outgoing: Outgoing,
    session: String,
    snapshot: u32,
}

/// What went out. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotExported {
    /// The id of the session.
    pub session: String,
    /// The number of the snapshot, or of another point of its history.
    pub snapshot: u32,
    /// What the file says of it.
    pub manifest: ExportManifest,
    /// How many files and directories lost their set-id bits.
    pub set_id_left_out: u64,
    /// How many attributes were left out: lists of access rights, and notes of the kernel.
    pub attributes_left_out: u64,
}

/// What came in. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotImported {
    /// The id of the session.
    pub session: String,
    /// The snapshot that it is now.
    pub snapshot: SnapshotReport,
    /// What the file said of it.
    pub manifest: ExportManifest,
    /// Whether it lay on a workspace of the same path.
    pub same_path: bool,
    /// Whether it lay on the very directory that is the workspace of this session. What a snapshot does
    /// not hold is as the workspace has it.
    pub same_directory: bool,
}

impl SnapshotExport {
    /// What is to be written, and what is left out.
    pub fn report(&self) -> SnapshotExported {
        SnapshotExported {
            session: self.session.clone(),
            snapshot: self.snapshot,
            manifest: self.outgoing.manifest.clone(),
            set_id_left_out: self.outgoing.set_id,
            attributes_left_out: self.outgoing.attributes,
        }
    }

    /// Writes all of it, and gives back what it was written to. A snapshot that is removed meanwhile is
    /// an error; what was written until then is no exported snapshot, because its end is missing.
    pub async fn write<W: Write + Send + 'static>(self, mut out: W) -> Result<W> {
        blocking(move || self.outgoing.write(&mut out).map(|()| out)).await
    }
}

impl Sessions {
    /// Prepares a snapshot, named by its number or what it is called, or another point by its number, to
    /// be written as one file. It holds what the session changed in its workspace until then: nothing of
    /// its spec, environment or home, and no owners.
    pub async fn export_snapshot(&self, id: &SessionId, name: &str) -> Result<SnapshotExport> {
        let row = self.0.row(id).await?;
        layered(&row)?;
        let workspace = row.spec.workspace().map(PathBuf::from);
        let (history, name) = (self.history(id), name.to_owned());
        let (snapshot, outgoing) = blocking(move || {
            let number = history.named(&name)?;
            Ok((number, history.outgoing(number, lies_on(workspace))?))
        })
        .await?;
        let said = NewEvent::now("snapshot_exported", json!({ "snapshot": snapshot }));
        self.0.desk(id).await?.amend(Some(said)).await?;
        Ok(SnapshotExport { outgoing, session: id.to_string(), snapshot })
    }

    /// Makes a snapshot of a session of an exported one, all of it or, with an error, nothing. It stays
    /// where it is until somebody goes there.
    ///
    /// What is in it belongs to the owner of the workspace, whoever made it, and is meant for a workspace
    /// of the same contents: the report says whether it is the same one. A label that another snapshot of
    /// the session has, said here or in the file, is a conflict. The session waits for what is
    /// read, so that nothing should be given that is slow to come.
    pub async fn import_snapshot<R: Read + Send + 'static>(
        &self,
        id: &SessionId,
        input: R,
        label: Option<String>,
    ) -> Result<SnapshotImported> {
        check_label(label.as_deref())?;
        let (sessions, id) = (self.clone(), id.clone());
        to_its_end(async move { sessions.import_here(&id, input, label).await }).await
    }

    async fn import_here<R: Read + Send + 'static>(
        &self,
        id: &SessionId,
        input: R,
        label: Option<String>,
    ) -> Result<SnapshotImported> {
        let mut desk: Desk = self.layered(id).await?;
        let history = self.history(id);
        check_room(&history).await?;
        let workspace = desk.row.spec.workspace().map(PathBuf::from);
        let here = workspace.clone();
        let imported = blocking(move || import(&history, input, label, here.as_deref()));
        let Imported { point, manifest } = imported.await?;
        let own = blocking(move || Ok(lies_on(workspace))).await?;
        let snapshot = SnapshotReport::of(point);
        let SnapshotReport { snapshot: number, label, files, bytes, .. } = &snapshot;
        let data = json!({ "snapshot": number, "label": label, "files": files, "bytes": bytes });
        let done = format!("it came in as snapshot {number}");
        desk.tell(NewEvent::now("snapshot_imported", data), &done).await?;
        Ok(SnapshotImported {
            session: id.to_string(),
            same_path: manifest.workspace.path == own.path,
            same_directory: own.identity.is_some() && manifest.workspace.identity == own.identity,
            snapshot,
            manifest,
        })
    }
}

/// Makes a snapshot of what is read, of this label or the one that is in it.
fn import(
    history: &History,
    input: impl Read,
    label: Option<String>,
    workspace: Option<&Path>,
) -> Result<Imported> {
    if let Some(label) = &label {
        // ORDER: nothing is read for a label that is taken.
        history.refuse_taken(label)?;
    }
    let chosen = |brought: Option<&str>| {
        // One that nobody could name it by is dropped, and so is one of a hostile file.
        let brought = brought.filter(|brought| check_label(Some(brought)).is_ok());
        match (label, brought) {
            (Some(label), _) => Ok(Some(label)),
            (None, Some(brought)) => {
                let hint = |error: Error| error.hint("Import it with another --label.");
                history.refuse_taken(brought).map_err(hint)?;
                Ok(Some(brought.to_owned()))
            }
            (None, None) => Ok(None),
        }
    };
    history.import(input, chosen, workspace)
}

/// What an export says of a workspace.
fn lies_on(workspace: Option<PathBuf>) -> ExportedWorkspace {
    let path = workspace.unwrap_or_default();
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(CWD, &path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok();
    // The numbers of a host's disks are nobody else's business; that they are the same is.
    let identity = found.map(|found| {
        let born = (found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
        let device = (found.stx_dev_major, found.stx_dev_minor);
        let text = format!("cofferdam-workspace {device:?} {} {born:?}", found.stx_ino);
        hexadecimal(Sha256::digest(text))
    });
    ExportedWorkspace { path: path.to_string_lossy().into_owned(), identity }
}
