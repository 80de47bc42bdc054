//! Where one check of layers is played, and what is cleared away after it.

use crate::check::{Stop, Verdict, same};
use cofferdam_core::{
    ApplyOrder, ApplyReport, Change, Command, Deadlines, DestroyReason, DiscardOrder,
    DurableBackend, Ending, ErrorKind, ExecOrder, GuestPath, KeptLayer, ProcessId, SandboxId,
    SandboxOrder, SandboxRecord, Seen, Side, Spec,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::timeout;

static NEXT: AtomicU64 = AtomicU64::new(1);
/// How much later than what was there before a layer begins, so that times tell the two apart.
const APART: Duration = Duration::from_millis(20);

/// A backend that keeps layers, and what the suite must know of it.
#[derive(Clone)]
pub struct LayerSubject {
    /// Its name, with what makes it special, as in `local-as-root-copy`.
    pub name: String,
    /// The backend.
    pub backend: Arc<dyn DurableBackend>,
    /// Where its workspaces are.
    pub ground: Arc<dyn LayerGround>,
    /// A check that takes longer has failed.
    pub patience: Duration,
    /// The directory with the list of skips, if it is compared.
    pub skips: Option<PathBuf>,
}

/// Says where the suite's workspaces are. The sandboxes have `/bin/sh` and the usual small programs.
pub trait LayerGround: Send + Sync {
    /// Fresh directories, or why there are none.
    fn place(&self) -> Result<LayerPlace, String>;

    /// The directory of sessions over the backend, the same for all checks: whoever keeps sessions ends
    /// what the backend has and they do not know.
    fn sessions(&self) -> Result<PathBuf, String>;

    /// A sandbox whose workspace is copy-on-write over this directory.
    fn spec(&self, workspace: &Path) -> Spec;

    /// Brings an exported snapshot to another session, as it is.
    fn carry(&self, exported: Vec<u8>) -> Vec<u8> {
        exported
    }

    /// Brings it there with one bit of it turned.
    fn damage(&self, mut exported: Vec<u8>, at: usize) -> Vec<u8> {
        if let Some(byte) = exported.get_mut(at) {
            *byte ^= 1;
        }
        exported
    }
}

/// Directories of the host for one check, removed by whoever made them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPlace {
    /// What the workspace lies on.
    pub workspace: PathBuf,
    /// Where the layer stays.
    pub kept: PathBuf,
}

impl LayerSubject {
    /// A subject whose checks may take a minute each, and whose skips are not compared.
    pub fn new(
        name: impl Into<String>,
        backend: Arc<dyn DurableBackend>,
        ground: Arc<dyn LayerGround>,
    ) -> Self {
        let patience = Duration::from_secs(60);
        Self { name: name.into(), backend, ground, patience, skips: None }
    }

    /// Compares the list of skips with the file of its name in this directory.
    #[must_use]
    pub fn skips_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.skips = Some(directory.into());
        self
    }
}

/// The workspace of one check, and its sandboxes.
pub struct LayerStage {
    subject: LayerSubject,
    place: LayerPlace,
    records: Vec<SandboxRecord>,
}

impl LayerStage {
    /// A workspace with nothing in it.
    pub(crate) fn new(subject: LayerSubject) -> Result<Self, Stop> {
        let place = subject.ground.place().map_err(Stop::Skipped)?;
        Ok(Self { subject, place, records: Vec::new() })
    }

    pub(crate) fn backend(&self) -> &dyn DurableBackend {
        self.subject.backend.as_ref()
    }

    /// Somebody on the host writes a file in the real workspace.
    pub(crate) fn write(&self, path: &str, text: &str) -> Verdict {
        let path = self.place.workspace.join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text))
            .map_err(|cause| Stop::Failed(format!("{} cannot be written: {cause}", path.display())))
    }

    /// What the real workspace has; `None` where nothing is.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.place.workspace.join(path)).ok()
    }

    pub(crate) fn is_there(&self, path: &str) -> bool {
        self.place.workspace.join(path).symlink_metadata().is_ok()
    }

    /// A sandbox over the workspace and the layer that there is.
    pub(crate) async fn sandbox(&mut self) -> Result<SandboxRecord, Stop> {
        tokio::time::sleep(APART).await;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = SandboxId::new(format!("layers-{}-{number}", std::process::id()))?;
        let order = SandboxOrder {
            spec: self.subject.ground.spec(&self.place.workspace),
            owner: String::new(),
            deadlines: Deadlines::default(),
            home: None,
            kept: Some(self.place.kept.clone()),
        };
        let record = self.subject.backend.create(&id, &order).await?;
        self.records.push(record.clone());
        Ok(record)
    }

    /// Runs lines of shell in the workspace, and says how they ended.
    pub(crate) async fn ending(&self, of: &SandboxRecord, script: &str) -> Result<Ending, Stop> {
        let id = ProcessId::new(format!("p{}", NEXT.fetch_add(1, Ordering::Relaxed)))?;
        let order = ExecOrder {
            command: Command::new(id.clone(), ["/bin/sh", "-ec", script]),
            detached: false,
            keep_awake: false,
            spool_bytes: 1 << 16,
            max_output_bytes: None,
        };
        self.backend().start(of, &order).await?;
        let end = Instant::now() + self.subject.patience;
        let mut seen = Seen::default();
        while Instant::now() < end {
            let status = self.backend().watch(of, &id, seen, Duration::from_secs(5)).await?;
            if let Some(ended) = status.ended {
                return Ok(ended.ending);
            }
            let (stdout, stderr) = (status.stdout.written, status.stderr.written);
            seen = Seen { stdout, stderr, ..Seen::default() };
        }
        Err(Stop::Failed(format!("{script:?} did not end")))
    }

    /// Runs lines of shell that succeed.
    pub(crate) async fn run(&self, of: &SandboxRecord, script: &str) -> Verdict {
        same(script, &self.ending(of, script).await?, &Ending::Exited(0))
    }

    pub(crate) fn layer(&self, of: &SandboxRecord) -> KeptLayer {
        KeptLayer { sandbox: of.id.clone(), kept: self.place.kept.clone() }
    }

    /// The changes at these paths, each as a letter, its path, and why it does not land.
    pub(crate) async fn changes(
        &self,
        of: &SandboxRecord,
        scope: &[&str],
    ) -> Result<Vec<String>, Stop> {
        let changes = self.backend().changes(&self.layer(of), &paths(scope)?).await?;
        Ok(changes.iter().map(shown).collect())
    }

    /// The content of a file on one side.
    pub(crate) async fn content(
        &self,
        of: &SandboxRecord,
        (side, path): (Side, &str),
        most_bytes: u64,
    ) -> Result<Vec<u8>, ErrorKind> {
        let path = GuestPath::new(path).map_err(|error| error.kind)?;
        let read = self.backend().layer_file(&self.layer(of), side, &path, most_bytes).await;
        read.map_err(|error| error.kind)
    }

    /// Lands these paths, or all, while the sandbox stands still.
    pub(crate) async fn apply(
        &self,
        of: &SandboxRecord,
        only: &[&str],
        dry_run: bool,
    ) -> Result<ApplyReport, Stop> {
        let order = ApplyOrder { paths: paths(only)?, dry_run, ..ApplyOrder::default() };
        self.backend().pause(of).await?;
        let report = self.backend().apply(&self.layer(of), &order).await;
        self.backend().resume(of).await?;
        Ok(report?)
    }

    /// Drops these paths, or all.
    pub(crate) async fn discard(
        &self,
        of: &SandboxRecord,
        only: &[&str],
    ) -> Result<Vec<String>, cofferdam_core::Error> {
        let only = only.iter().map(GuestPath::new).collect::<Result<_, _>>()?;
        let order = DiscardOrder { paths: only, dry_run: false };
        let dropped = self.backend().discard(&self.layer(of), &order).await?;
        Ok(dropped.iter().map(shown).collect())
    }

    pub(crate) async fn destroy(&self, of: &SandboxRecord) -> Verdict {
        Ok(self.backend().destroy(of, DestroyReason::Success).await?)
    }

    /// Ends what the check made.
    pub(crate) async fn clear(self) -> Verdict {
        let clearing = async {
            for record in &self.records {
                self.destroy(record).await?;
                self.backend().forget(&record.id).await?;
            }
            Ok(())
        };
        let late = || Err(Stop::Failed("the sandboxes could not be ended in time".to_owned()));
        timeout(self.subject.patience, clearing).await.unwrap_or_else(|_| late())
    }
}

fn paths(texts: &[&str]) -> Result<Vec<GuestPath>, Stop> {
    Ok(texts.iter().map(GuestPath::new).collect::<Result<_, _>>()?)
}

/// A change as a letter, its path, and why it does not land.
pub(crate) fn shown(change: &Change) -> String {
    let letter = change.kind.name().get(..1).unwrap_or_default();
    match change.standing.name() {
        "lands" => format!("{letter} {}", change.path),
        why => format!("{letter} {} ({why})", change.path),
    }
}
