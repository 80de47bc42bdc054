//! Changes that land in the workspace: all of them, or none.
//!
//! What comes is made ready in a directory of the workspace, the stage, under numbers. Then every step
//! is one rename between the stage and its place: what was there goes to the stage in the same moment,
//! so that a reader sees the old file or the new one. Where a step cannot be done, those before it are
//! done backward. All steps are written down before the first, and that they were done before anything
//! is thrown away; so whoever comes after a crash undoes them, or throws away.

mod journal;
mod plan;
mod stage;
mod steps;

use super::changes::{Item, changes, parent};
use super::clear;
use super::control::Known;
use super::landed::Landed;
use super::layer::{Layer, workspace};
use super::look::{Kind, Seen, look};
use super::repositories::Looking;
use super::walk::walk;
use super::{content, moves, renamed};
use crate::oneshot::unique;
use crate::state::{Record, StateDirectory, io};
use cofferdam_core::{
    ApplyOrder, ApplyReport, ByteString, Change, ControlFiles, Error, ErrorKind, GuestPath, Held,
    Result, Side, Standing, is_within,
};
use journal::{Head, Journal, Op};
use plan::{Landing, settle};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use stage::Staging;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use steps::{Ground, Hitch};

/// How far apart the times of change of two directories can be between which something was moved.
const TICK_NS: u64 = 4_000_000;
/// Leads the name of a stage.
const STAGE: &str = ".cofferdam-landing-";

impl Layer {
    /// What the sandbox changed at these paths and below them, or everywhere, in the order of paths.
    pub fn changes(&self, scope: &[GuestPath]) -> Result<Vec<Change>> {
        let mut items = self.items(scope, &[], Looking::Remembered)?;
        items.retain(|item| is_within(&item.change.path, scope));
        moves::note(self, &mut items);
        Ok(items.into_iter().map(|item| item.change).collect())
    }

    /// The content of a regular file on one side.
    pub fn file(&self, side: Side, path: &GuestPath, most_bytes: u64) -> Result<Vec<u8>> {
        let root = match side {
            Side::Before => &self.workspace,
            Side::After => &self.upper,
        };
        let found =
            look(root, path.as_bytes()).map_err(|errno| content::failed("look at", path, errno))?;
        let Some((seen, file)) = found else {
            return Err(Error::new(ErrorKind::NotFound, format!("{path:?} is not there")));
        };
        content::read(path, &file, &seen, most_bytes)
    }

    /// Makes the workspace what the layer is, as far as the order goes and nothing is in the way. What
    /// lands is recorded in `state`.
    pub fn apply(&mut self, order: &ApplyOrder, state: &StateDirectory) -> Result<ApplyReport> {
        // ORDER: before both sides are looked at, so that nobody else's landing is half done.
        let record = match order.dry_run {
            true => None,
            false => Some(state.record_landing(&self.identity()?)?),
        };
        self.landed = Landed::read(&self.folder)?;
        let named = match order.control_files {
            ControlFiles::IfNamed => order.paths.as_slice(),
            ControlFiles::Never => &[],
        };
        let mut items = self.items(&order.paths, named, Looking::Whole)?;
        for item in &mut items {
            let change = &mut item.change;
            let is_another =
                order.versions.get(&change.path).is_some_and(|seen| *seen != change.version);
            if is_another || !self.has_sum(&change.path, order)? {
                change.standing = Standing::Held(Held::Another);
            }
        }
        let Landing { items, kept } = settle(items, &order.paths);
        if let (Some(record), false) = (&record, items.is_empty()) {
            self.land(&items, order, record)?;
        }
        if let Some(record) = record {
            record.settle()?;
        }
        let applied = items.into_iter().map(|item| item.change).collect();
        Ok(ApplyReport { applied, kept })
    }

    /// Whether the layer has the content that is wanted at a path. What lands is asked again.
    fn has_sum(&self, path: &GuestPath, order: &ApplyOrder) -> Result<bool> {
        let Some(sum) = order.sums.get(path) else { return Ok(true) };
        let failed = |errno| content::failed("read", path, errno);
        let Some((seen, file)) = look(&self.upper, path.as_bytes()).map_err(failed)? else {
            return Ok(false);
        };
        Ok(seen.kind == Kind::File && content::hash(&file).map_err(failed)? == *sum)
    }

    /// Finishes or undoes what one left half done who died while changes landed. While somebody is at
    /// work it is a conflict.
    pub fn recover(&mut self, state: &StateDirectory) -> Result<()> {
        state.settle_landing(&self.identity()?)?;
        self.landed = Landed::read(&self.folder)?;
        Ok(())
    }

    fn items(
        &self,
        scope: &[GuestPath],
        named: &[GuestPath],
        looking: Looking,
    ) -> Result<Vec<Item>> {
        let mut pairs = walk(self, scope)?;
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        renamed::note(self, &mut pairs, scope)?;
        let known = Known::new(self, &pairs, named, looking)?;
        Ok(changes(&pairs, &known))
    }

    fn land(&mut self, items: &[Item], order: &ApplyOrder, record: &Record) -> Result<()> {
        let name = format!("{STAGE}{}", unique());
        self.head(&name).note(record)?;
        let untouched = self.untouched(items);
        let stage = self.stage(&name)?;
        let ops = Staging::new(self, &stage, order).all(items);
        let ops = ops.and_then(|ops| journal::note_ops(record, &ops, &untouched).map(|()| ops));
        let ops = match ops {
            Ok(ops) => ops,
            Err(error) => {
                // The error that made this necessary is the one to tell.
                let _ = self.clear(&name);
                return Err(error);
            }
        };
        let ground = Ground { workspace: &self.workspace, stage: &stage };
        let done = land_all(&ground, &ops, items, record);
        if let Done::InPart(error) = done {
            return Err(error);
        }
        // ORDER: what is thrown away is not needed any more by one who comes after a crash.
        let finished = self.note(&stage, (&ops, u64::MAX), &untouched);
        let finished = finished.and_then(|()| self.clear(&name));
        let finished = finished.and_then(|()| self.note(&stage, (&[], 0), &untouched));
        match done {
            Done::Undone(error) | Done::InPart(error) => Err(error),
            Done::Landed => finished,
        }
    }

    fn head(&self, stage: &str) -> Head {
        let folder = ByteString::from(self.path.as_os_str());
        let base = &self.base;
        Head::new(folder, (base.workspace.clone(), base.device, base.inode), stage.to_owned())
    }

    /// Notes the times of what these steps put there or put back, and of directories that nobody else
    /// touched, so that only what changes later is news.
    fn note(
        &mut self,
        stage: &OwnedFd,
        (ops, until_ns): (&[Op], u64),
        untouched: &[Vec<u8>],
    ) -> Result<()> {
        let ground = Ground { workspace: &self.workspace, stage };
        let left = ground.left(ops, until_ns, |path| self.since_ns(path));
        let times: Landed = ground.times(untouched).into_iter().chain(left).collect();
        let taken = ops.iter().filter(|op| matches!(op, Op::Take { .. })).map(Op::path);
        self.landed.add(&self.folder, taken, times)?;
        self.forget_landed(ops)
    }

    /// What these steps left, brought or changed in the workspace is not what a copy was made of any
    /// more: the copy may become again what it was, and that is a change then.
    fn forget_landed(&mut self, ops: &[Op]) -> Result<()> {
        let Some(listing) = &mut self.listing else { return Ok(()) };
        let mut has_changed = false;
        for op in ops {
            let Ok(found) = look(&self.workspace, op.path()) else { continue };
            let found = found.map(|(seen, _)| seen);
            let is_done = match (op, &found) {
                (Op::Take { .. }, found) => found.is_none(),
                (Op::Put { new, .. }, Some(seen)) => seen.id == *new,
                (Op::Mode { of, to, .. }, Some(seen)) => seen.id == *of && seen.mode == *to,
                (Op::Put { .. } | Op::Mode { .. }, None) => false,
            };
            if !is_done || listing.get(op.path()).is_none() {
                continue;
            }
            match found.filter(|seen| seen.kind == Kind::Directory) {
                // What is in it may be as it was copied.
                Some(seen) => listing.set_directory(op.path(), seen.mode),
                None => listing.forget(op.path()),
            }
            has_changed = true;
        }
        if has_changed { listing.write(&self.folder) } else { Ok(()) }
    }

    /// The directories in which something is to land and nobody else changed anything.
    fn untouched(&self, items: &[Item]) -> Vec<Vec<u8>> {
        let above = |item: &Item| parent(item.change.path.as_bytes()).unwrap_or_default().to_vec();
        let mut all: Vec<Vec<u8>> = items.iter().map(above).chain([Vec::new()]).collect();
        all.sort();
        all.dedup();
        all.retain(|path| {
            let path_or_top = if path.is_empty() { b"." } else { path.as_slice() };
            let since_ns = self.since_ns(path);
            look(&self.workspace, path_or_top).is_ok_and(|found| {
                found.is_some_and(|(seen, _)| {
                    seen.changed_ns <= since_ns && seen.modified_ns <= since_ns
                })
            })
        });
        all
    }

    /// Does so many steps of a landing and lets go of everything, as one does who is killed. Says
    /// whether there were more.
    #[cfg(test)]
    pub(super) fn land_in_part(&self, steps: usize, state: &StateDirectory) -> bool {
        let record = state.record_landing(&self.identity().unwrap()).unwrap();
        let Landing { items, .. } = settle(self.items(&[], &[], Looking::Whole).unwrap(), &[]);
        let name = format!("{STAGE}{}", unique());
        self.head(&name).note(&record).unwrap();
        let untouched = self.untouched(&items);
        let stage = self.stage(&name).unwrap();
        let order = ApplyOrder::default();
        let ops = Staging::new(self, &stage, &order).all(&items).unwrap();
        journal::note_ops(&record, &ops, &untouched).unwrap();
        let ground = Ground { workspace: &self.workspace, stage: &stage };
        for (at, op) in ops.iter().enumerate().take(steps) {
            let item = items.iter().find(|item| item.change.path.as_bytes() == op.path());
            ground.step(at, op, item.and_then(|item| item.lower.as_ref())).unwrap();
        }
        steps < ops.len()
    }

    fn stage(&self, name: &str) -> Result<OwnedFd> {
        let at = |errno: Errno| io("make a directory for what lands in", self.workspace(), errno);
        rustix::fs::mkdirat(&self.workspace, name, Mode::RWXU).map_err(at)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        super::look::open(self.workspace.as_fd(), name.as_bytes(), flags).map_err(at)
    }

    fn clear(&self, name: &str) -> Result<()> {
        clear_stage(&self.workspace, name, self.workspace())
    }

    fn workspace(&self) -> &Path {
        Path::new(&self.base.workspace)
    }
}

/// How a landing went.
enum Done {
    Landed,
    /// Everything is as it was.
    Undone(Error),
    /// Somebody else is in the way of that.
    InPart(Error),
}

/// Does the steps, or none of them.
fn land_all(ground: &Ground<'_>, ops: &[Op], items: &[Item], record: &Record) -> Done {
    let seen: BTreeMap<&[u8], Option<&Seen>> =
        items.iter().map(|item| (item.change.path.as_bytes(), item.lower.as_ref())).collect();
    let failed = ops.iter().enumerate().find_map(|(at, op)| {
        let seen = seen.get(op.path()).copied().flatten();
        let hitch = ground.step(at, op, seen).err()?;
        Some((at + 1, told(hitch, op.path())))
    });
    let failed = failed.or_else(|| {
        let error = journal::note_landed(record).err()?;
        Some((ops.len(), error))
    });
    let Some((done, error)) = failed else { return Done::Landed };
    let stuck = undo_all(ground, ops.get(..done).unwrap_or_default());
    match stuck.is_empty() {
        true => Done::Undone(error),
        false => Done::InPart(half_undone(&stuck).source(error)),
    }
}

/// Finishes or undoes what one left half done who died.
pub(crate) fn pay(content: &[u8]) -> Result<()> {
    let Some(Journal { head, ops, mut untouched, landed }) = journal::read(content)? else {
        return Ok(());
    };
    let path = Path::new(&head.workspace);
    let workspace = workspace(&head.workspace, head.device, head.inode)?;
    let stage = super::look::directory(&workspace, head.stage.as_bytes());
    let stage = stage.map_err(|errno| io("open what half landed in", path, errno))?;
    // Nothing came out of one that was never made, and nothing is owed of one that was thrown away.
    let Some(stage) = stage else { return Ok(()) };
    let ground = Ground { workspace: &workspace, stage: &stage };
    // Every step changed the stage, so what is of later was somebody else.
    let last = Seen::of(&stage).map_err(|errno| io("look at what half landed in", path, errno))?;
    let until_ns = last.modified_ns.saturating_add(TICK_NS);
    let times = ground.times(&untouched);
    // One that is not there was taken, and comes back.
    untouched.retain(|path| times.get(path).is_none_or(|changed_ns| *changed_ns <= until_ns));
    if !landed {
        let stuck = undo_all(&ground, &ops);
        if !stuck.is_empty() {
            return Err(half_undone(&stuck));
        }
    }
    let folder = Path::new(std::ffi::OsStr::from_bytes(head.folder.as_bytes()));
    // The session may be gone by now, and nobody needs to remember.
    let mut layer = Layer::open(folder).ok().flatten();
    if let Some(layer) = &mut layer {
        layer.note(&stage, (&ops, until_ns), &untouched)?;
    }
    clear_stage(&workspace, &head.stage, path)?;
    match &mut layer {
        Some(layer) => layer.note(&stage, (&[], 0), &untouched),
        None => Ok(()),
    }
}

/// Undoes what was done of these steps, and says at which paths it could not.
fn undo_all(ground: &Ground<'_>, ops: &[Op]) -> Vec<String> {
    let mut stuck = Vec::new();
    for (at, op) in ops.iter().enumerate().rev() {
        if ground.undo(at, op).is_err() {
            stuck.push(String::from_utf8_lossy(op.path()).into_owned());
        }
    }
    stuck
}

fn clear_stage(workspace: &OwnedFd, name: &str, path: &Path) -> Result<()> {
    match clear::remove(workspace, name.as_bytes()) {
        // What stands there is not ours.
        Ok(()) | Err(Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(errno) => Err(io(&format!("remove {name} from"), path, errno)),
    }
}

fn told(hitch: Hitch, path: &[u8]) -> Error {
    let path = String::from_utf8_lossy(path);
    match hitch {
        Hitch::Changed => {
            let what = format!("{path:?} changed in the workspace while changes landed");
            Error::new(ErrorKind::Conflict, what).hint("Nothing was applied. Try again.")
        }
        Hitch::Failed(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            let what = format!("the file system of {path:?} cannot exchange two files");
            Error::new(ErrorKind::Unsupported, what).hint(
                "Nothing was applied. Print the changes with `cofferdam diff` and apply that.",
            )
        }
        Hitch::Failed(errno) => Error::new(ErrorKind::Io, format!("apply {path:?}"))
            .hint("Nothing was applied.")
            .source(std::io::Error::from(errno)),
    }
}

fn half_undone(stuck: &[String]) -> Error {
    let first = stuck.first().map(String::as_str).unwrap_or_default();
    let what = format!(
        "changes landed in part, and {first:?} cannot be put back, nor {} other paths, because \
         somebody changed them meanwhile",
        stuck.len() - 1
    );
    Error::new(ErrorKind::Conflict, what).hint(format!(
        "What was there is in the directory {STAGE}… of the workspace; put it back, or remove that."
    ))
}
