//! A backend whose layers are copies of the workspace, without any isolation, and wrong in one way if
//! that is wanted. Its commands are processes of this machine.

use async_trait::async_trait;
use cofferdam_core::fake::FakeDurable;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    ApplyOrder, ApplyReport, Capabilities, Change, ChangeKind, Chunk, Conflict, Deadlines,
    DestroyReason, DiscardOrder, DurableBackend, Ending, Error, ErrorKind, ExecEnded, ExecInput,
    ExecOrder, ExecStatus, FileState, Files, Found, GuestPath, Held, JournalEntry, KeptLayer, Part,
    ProcessId, Result, SandboxId, SandboxOrder, SandboxRecord, SandboxStatus, Seen, Side, Spooled,
    Standing, UsageReport, is_within,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Commands write to the workspace itself.
    WritesThrough,
    /// Changes are told everywhere, whatever was asked for.
    ScopeIgnored,
    /// What was removed is no change.
    RemovalsForgotten,
    /// A file is read where a link leads.
    LinksFollowed,
    /// The workspace is taken for the layer.
    SidesExchanged,
    /// A dry run lands.
    DryRunLands,
    /// All lands where a part was asked for.
    PartIsAll,
    /// What somebody else wrote meanwhile is replaced.
    ConflictsLand,
    /// Git hooks land with the rest.
    HooksLand,
    /// The layer is gone with its sandbox.
    DiesWithSandbox,
    /// Changes are dropped under a living sandbox.
    DiscardsAlive,
    /// All is dropped where a part was asked for.
    DiscardsAll,
    /// A sandbox takes no layer that is there, and begins with the workspace.
    BeginsAnew,
    /// What the sandbox before had at its end comes back.
    OldComesBack,
    /// All sandboxes over one workspace have one layer.
    LayersShared,
}

impl Fault {
    pub(crate) const ALL: [Self; 15] = [
        Self::WritesThrough,
        Self::ScopeIgnored,
        Self::RemovalsForgotten,
        Self::LinksFollowed,
        Self::SidesExchanged,
        Self::DryRunLands,
        Self::PartIsAll,
        Self::ConflictsLand,
        Self::HooksLand,
        Self::DiesWithSandbox,
        Self::DiscardsAlive,
        Self::DiscardsAll,
        Self::BeginsAnew,
        Self::OldComesBack,
        Self::LayersShared,
    ];
}

/// What the sandbox has, where the layers of sessions are, and the workspace as it was.
const MINE: &str = "cow/upper";
const BASE: &str = "cow/base";
/// What the sandbox before had.
const OLD: &str = "cow/old";

/// What stands under a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
}

/// Sandboxes of the fake, with copies.
pub(crate) struct Plain {
    fake: FakeDurable,
    fault: Option<Fault>,
    /// The workspace by the folder of its layer, and that by sandbox.
    workspaces: Mutex<BTreeMap<PathBuf, PathBuf>>,
    kept: Mutex<BTreeMap<SandboxId, PathBuf>>,
    ended: Mutex<BTreeMap<ProcessId, ExecStatus>>,
}

impl Plain {
    pub(crate) fn new(fault: Option<Fault>) -> Self {
        Self {
            fake: FakeDurable::new(),
            fault,
            workspaces: Mutex::default(),
            kept: Mutex::default(),
            ended: Mutex::default(),
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The workspace, what the sandbox has, and what both were when they were last the same.
    fn trees(&self, layer: &KeptLayer) -> [PathBuf; 3] {
        let workspace = self.workspaces.lock().unwrap()[&layer.kept].clone();
        [workspace, layer.kept.join(MINE), layer.kept.join(BASE)]
    }

    /// The folder whose layer a sandbox takes, over this workspace.
    fn kept_for(&self, kept: PathBuf, workspace: PathBuf) -> PathBuf {
        let mut all = self.workspaces.lock().unwrap();
        let same = all.iter().find(|(_, of)| **of == workspace).map(|(kept, _)| kept.clone());
        all.insert(kept.clone(), workspace);
        same.filter(|_| self.has(Fault::LayersShared)).unwrap_or(kept)
    }

    fn all_changes(&self, layer: &KeptLayer, named: &[GuestPath]) -> Vec<Change> {
        let [workspace, mine, base] = self.trees(layer).map(|path| tree(&path));
        let paths: BTreeSet<&GuestPath> = mine.keys().chain(base.keys()).collect();
        let change = |path: &&GuestPath| {
            let (before, after) = (workspace.get(path), mine.get(path));
            if after == base.get(path) || after == before {
                return None;
            }
            let kind = match (before, after) {
                (_, None) if self.has(Fault::RemovalsForgotten) => return None,
                (_, None) => ChangeKind::Removed,
                (None, Some(_)) => ChangeKind::Added,
                (Some(_), Some(_)) => ChangeKind::Modified,
            };
            let is_control = is_control(path) && !named.contains(path);
            let standing = match before == base.get(path) {
                false if !self.has(Fault::ConflictsLand) => Standing::Conflict(Conflict::Changed),
                _ if is_control && !self.has(Fault::HooksLand) => Standing::Held(Held::Protected),
                _ => Standing::Lands,
            };
            Some(Change {
                path: (*path).clone(),
                kind,
                before: before.map(state),
                after: after.map(state),
                moved_from: None,
                linked_to: None,
                leads_out: false,
                set_id: false,
                version: 0,
                standing,
            })
        };
        paths.iter().filter_map(change).collect()
    }

    fn run(&self, sandbox: &SandboxRecord, order: &ExecOrder) -> Ending {
        let kept = self.kept.lock().unwrap()[&sandbox.id].clone();
        let directory = match self.has(Fault::WritesThrough) {
            true => self.workspaces.lock().unwrap()[&kept].clone(),
            false => kept.join(MINE),
        };
        let argv = &order.command.argv;
        let status = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .current_dir(directory)
            .stderr(std::process::Stdio::null())
            .status();
        Ending::Exited(status.unwrap().code().unwrap_or(255))
    }
}

fn is_control(path: &GuestPath) -> bool {
    path.as_bytes() == b".envrc" || path.as_bytes().starts_with(b".git/hooks")
}

fn tree(root: &Path) -> BTreeMap<GuestPath, Node> {
    let (mut all, mut waiting) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            let node = if found.is_dir() {
                waiting.push(path.clone());
                Node::Directory
            } else if found.is_symlink() {
                Node::Link(fs::read_link(&path).unwrap())
            } else {
                Node::File(fs::read(&path).unwrap())
            };
            let below = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
            all.insert(GuestPath::new(below).unwrap(), node);
        }
    }
    all
}

fn state(node: &Node) -> FileState {
    let (kind, size) = match node {
        Node::Directory => (EntryKind::Directory, 0),
        Node::File(content) => (EntryKind::File, content.len() as u64),
        Node::Link(target) => (EntryKind::Link, target.as_os_str().len() as u64),
    };
    FileState { kind, mode: 0o644, size, target: None }
}

/// Makes a path of a tree what it is in another one.
fn put(path: &GuestPath, from: &Path, to: &Path) {
    let node = tree(from).remove(path);
    let place = to.join(std::ffi::OsStr::from_bytes(path.as_bytes()));
    match (node, place.symlink_metadata()) {
        (Some(Node::Directory), Ok(found)) if found.is_dir() => return,
        (_, Ok(found)) if found.is_dir() => fs::remove_dir_all(&place).unwrap(),
        (_, Ok(_)) => fs::remove_file(&place).unwrap(),
        (_, Err(_)) => {}
    }
    match tree(from).remove(path) {
        Some(Node::Directory) => fs::create_dir_all(&place).unwrap(),
        Some(Node::File(content)) => fs::write(&place, content).unwrap(),
        Some(Node::Link(target)) => std::os::unix::fs::symlink(target, &place).unwrap(),
        None => {}
    }
}

fn now_ms() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    since.as_millis().try_into().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    tree(from).keys().for_each(|path| put(path, from, to));
}

#[async_trait]
impl DurableBackend for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn capabilities(&self) -> Capabilities {
        self.fake.capabilities()
    }

    async fn create(&self, id: &SandboxId, order: &SandboxOrder) -> Result<SandboxRecord> {
        let kept = order.kept.clone().unwrap();
        let workspace = order.spec.workspace.directory().unwrap().to_owned();
        fs::create_dir_all(kept.join("cow")).unwrap();
        fs::write(kept.join("cow/base.json"), "{}").unwrap();
        if self.has(Fault::BeginsAnew) {
            fs::remove_dir_all(kept.join(MINE)).ok();
        }
        if kept.join(OLD).exists() {
            fs::remove_dir_all(kept.join(MINE)).unwrap();
            fs::rename(kept.join(OLD), kept.join(MINE)).unwrap();
        }
        for name in [MINE, BASE] {
            if !kept.join(name).exists() {
                copy(&workspace, &kept.join(name));
            }
        }
        let kept = self.kept_for(kept, workspace);
        self.kept.lock().unwrap().insert(id.clone(), kept);
        self.fake.create(id, order).await
    }

    async fn status(&self, sandbox: &SandboxRecord) -> Result<SandboxStatus> {
        self.fake.status(sandbox).await
    }

    async fn pause(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.fake.pause(sandbox).await
    }

    async fn resume(&self, sandbox: &SandboxRecord) -> Result<()> {
        self.fake.resume(sandbox).await
    }

    async fn set_deadlines(&self, sandbox: &SandboxRecord, to: &Deadlines) -> Result<()> {
        self.fake.set_deadlines(sandbox, to).await
    }

    async fn destroy(&self, sandbox: &SandboxRecord, reason: DestroyReason) -> Result<()> {
        if self.has(Fault::DiesWithSandbox) {
            let kept = self.kept.lock().unwrap()[&sandbox.id].clone();
            for name in [MINE, BASE] {
                fs::remove_dir_all(kept.join(name)).unwrap();
                fs::create_dir(kept.join(name)).unwrap();
            }
        }
        if self.has(Fault::OldComesBack) {
            let kept = self.kept.lock().unwrap()[&sandbox.id].clone();
            fs::remove_dir_all(kept.join(OLD)).ok();
            copy(&kept.join(MINE), &kept.join(OLD));
        }
        self.fake.destroy(sandbox, reason).await
    }

    async fn forget(&self, id: &SandboxId) -> Result<()> {
        self.fake.forget(id).await
    }

    async fn ids(&self) -> Result<Vec<SandboxId>> {
        self.fake.ids().await
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.fake.list().await
    }

    async fn journal(&self, id: &SandboxId, after: u64) -> Result<Vec<JournalEntry>> {
        self.fake.journal(id, after).await
    }

    async fn start(&self, sandbox: &SandboxRecord, order: &ExecOrder) -> Result<ExecStatus> {
        let started_ms = now_ms();
        let ending = self.run(sandbox, order);
        let status = ExecStatus {
            id: order.command.id.clone(),
            argv: Vec::new(),
            detached: order.detached,
            terminal: false,
            stops: 0,
            started_ms,
            ended: Some(ExecEnded {
                ending,
                at_ms: now_ms(),
                usage: UsageReport::default(),
                killed_descendants: None,
                denials: Vec::new(),
            }),
            left: None,
            stdout: Spooled::default(),
            stderr: Spooled::default(),
        };
        self.ended.lock().unwrap().insert(status.id.clone(), status.clone());
        Ok(status)
    }

    async fn execs(&self, _sandbox: &SandboxRecord) -> Result<Vec<ExecStatus>> {
        Ok(self.ended.lock().unwrap().values().cloned().collect())
    }

    async fn watch(
        &self,
        _sandbox: &SandboxRecord,
        id: &ProcessId,
        _seen: Seen,
        _patience: Duration,
    ) -> Result<ExecStatus> {
        let ended = self.ended.lock().unwrap().get(id).cloned();
        ended.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no command {id}")))
    }

    async fn read(&self, sandbox: &SandboxId, id: &ProcessId, part: Part) -> Result<Chunk> {
        self.fake.read(sandbox, id, part).await
    }

    async fn input(
        &self,
        sandbox: &SandboxRecord,
        id: &ProcessId,
        input: &ExecInput,
    ) -> Result<()> {
        self.fake.input(sandbox, id, input).await
    }

    async fn files(&self, sandbox: &SandboxRecord) -> Result<Files> {
        self.fake.files(sandbox).await
    }

    async fn changes(&self, layer: &KeptLayer, scope: &[GuestPath]) -> Result<Vec<Change>> {
        let mut all = self.all_changes(layer, &[]);
        all.retain(|change| self.has(Fault::ScopeIgnored) || is_within(&change.path, scope));
        Ok(all)
    }

    async fn layer_file(
        &self,
        layer: &KeptLayer,
        side: Side,
        path: &GuestPath,
        most_bytes: u64,
    ) -> Result<Vec<u8>> {
        let [workspace, mine, _] = self.trees(layer);
        let root = match (side, self.has(Fault::SidesExchanged)) {
            (Side::Before, false) | (Side::After, true) => workspace,
            (Side::Before, true) | (Side::After, false) => mine,
        };
        if self.has(Fault::LinksFollowed) {
            let place = root.join(std::ffi::OsStr::from_bytes(path.as_bytes()));
            let read = fs::read(place);
            return read.map_err(|e| Error::new(ErrorKind::NotFound, "read").source(e));
        }
        match tree(&root).remove(path) {
            None => Err(Error::new(ErrorKind::NotFound, "it is not there")),
            Some(Node::Directory | Node::Link(_)) => Err(Error::new(ErrorKind::NotAFile, "none")),
            Some(Node::File(content)) if content.len() as u64 > most_bytes => {
                Err(Error::new(ErrorKind::TooLarge, "it is too large"))
            }
            Some(Node::File(content)) => Ok(content),
        }
    }

    async fn apply(&self, layer: &KeptLayer, order: &ApplyOrder) -> Result<ApplyReport> {
        let mut report = ApplyReport::default();
        for change in self.all_changes(layer, &order.paths) {
            match change.standing {
                _ if !self.has(Fault::PartIsAll) && !is_within(&change.path, &order.paths) => {}
                Standing::Lands => report.applied.push(change),
                Standing::Conflict(_) | Standing::Held(_) => report.kept.push(change),
            }
        }
        if !order.dry_run || self.has(Fault::DryRunLands) {
            let [workspace, mine, base] = self.trees(layer);
            for change in &report.applied {
                put(&change.path, &mine, &workspace);
                put(&change.path, &mine, &base);
            }
        }
        Ok(report)
    }

    async fn discard(&self, layer: &KeptLayer, order: &DiscardOrder) -> Result<Vec<Change>> {
        let lives = self.fake.alive().contains(&layer.sandbox);
        if lives && !self.has(Fault::DiscardsAlive) {
            return Err(Error::new(ErrorKind::Conflict, "the sandbox lives"));
        }
        let mut all = self.all_changes(layer, &[]);
        all.retain(|change| self.has(Fault::DiscardsAll) || is_within(&change.path, &order.paths));
        let [workspace, mine, base] = self.trees(layer);
        for change in &all {
            put(&change.path, &workspace, &mine);
            put(&change.path, &workspace, &base);
        }
        Ok(all)
    }
}
