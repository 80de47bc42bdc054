//! Changes that land in the workspace: all of them, or none.
//!
//! What comes is made ready in a directory, the stage, under numbers. It lies where no sandbox sees it; in
//! the workspace only where nothing else can be renamed to it. Then every step is one rename between the
//! stage and its place: what was there goes to the stage in the same moment, so that a reader sees the old
//! file or the new one. A control file that is staged in the workspace has no name there, and where it
//! replaces another one nothing stands for a moment. Where a step cannot be done, those before it are
//! done backward. All steps are written down before the first, and that they were done before anything
//! is thrown away; so whoever comes after a crash undoes them, or throws away.

mod journal;
mod place;
mod plan;
#[cfg(test)]
pub(super) mod seam;
mod share;
mod stage;
mod steps;
mod times;

use super::changes::{Item, changes, parent};
use super::clear;
use super::control::Known;
use super::landed::Landed;
use super::layer::{Layer, workspace};
use super::look::{Kind, Seen, look};
use super::repositories::Looking;
use super::walk::walk;
use super::{content, moves, renamed};
use crate::state::{Record, StateDirectory, io};
use cofferdam_core::{
    ApplyOrder, ApplyReport, ByteString, Change, Conflict, ControlFiles, Error, ErrorKind,
    GuestPath, Held, Result, Side, Standing, is_within,
};
use journal::{Head, Journal, Op};
use place::Stage;
use plan::{Landing, settle};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use stage::{Ready, Staging};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use steps::{Ground, Hitch};

/// How far apart the times of change of two directories can be between which something was moved.
const TICK_NS: u64 = 4_000_000;

pub(super) use place::Place;

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
        let found = match side {
            Side::Before => self.below(&self.workspace, path.as_bytes(), path),
            Side::After => look(&self.upper, path.as_bytes()),
        };
        let found = found.map_err(|errno| content::failed("look at", path, errno))?;
        let Some((seen, file)) = found else {
            return Err(Error::new(ErrorKind::NotFound, format!("{path:?} is not there"))
                .hint("See what changed with `cofferdam diff SESSION --stat`."));
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
        let mut landing = self.wanted(order)?;
        let mut not_cleared = None;
        if let Some(record) = record {
            let mut places = [Place::Records, Place::Workspace].into_iter();
            while !landing.items.is_empty() {
                let too_far = || io("land in", self.workspace(), Errno::XDEV);
                let place = places.next().ok_or_else(too_far)?;
                match self.land(place, &landing.items, order, &record)? {
                    Done::Landed { cleared } => {
                        not_cleared = cleared.err().map(|error| error.chain());
                        break;
                    }
                    Done::Nothing => {}
                    // What was put back has other times of change now.
                    Done::Undone => landing = self.wanted(order)?,
                }
            }
            // One that is not settled is met again by whoever comes next.
            if not_cleared.is_none() {
                record.settle()?;
            }
        }
        let Landing { items, kept } = landing;
        let applied = items.into_iter().map(|item| item.change).collect();
        Ok(ApplyReport { applied, kept, not_cleared })
    }

    /// What lands of an order, as both sides are now.
    fn wanted(&self, order: &ApplyOrder) -> Result<Landing> {
        let named = match order.control_files {
            ControlFiles::IfNamed => order.paths.as_slice(),
            ControlFiles::Never => &[],
        };
        let mut items = self.items(&order.paths, named, Looking::Whole)?;
        for item in &mut items {
            // Only what is named: nobody knows of all else what would be lost.
            if order.overwrite && !order.paths.is_empty() {
                item.change.standing = item.overwriting();
            }
            let change = &mut item.change;
            let is_another =
                order.versions.get(&change.path).is_some_and(|seen| *seen != change.version);
            if is_another || !self.has_sum(&change.path, order)? {
                change.standing = Standing::Held(Held::Another);
            }
            // Whose sandbox holds the name keeps it until that ends.
            if change.standing == Standing::Lands && self.is_held(&change.path) {
                change.standing = Standing::Conflict(Conflict::Changed);
            }
        }
        Ok(settle(items, order))
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

    /// Lands from one place, if that can be done.
    fn land(
        &mut self,
        place: Place,
        items: &[Item],
        order: &ApplyOrder,
        record: &Record,
    ) -> Result<Done> {
        match self.made_ready(place, items, order, record)? {
            Some(staged) => self.land_from(staged, items, record),
            None => Ok(Done::Nothing),
        }
    }

    /// Makes a stage in a place and all ready in it; `None` where it cannot lie there.
    fn made_ready(
        &self,
        place: Place,
        items: &[Item],
        order: &ApplyOrder,
        record: &Record,
    ) -> Result<Option<Staged>> {
        #[cfg(test)]
        if !seam::is_allowed(place) {
            return Ok(None);
        }
        let name = place::name();
        self.head(&name, place).note(record)?;
        let untouched = self.untouched(items);
        let Some(stage) = self.stage(place, record, &name)? else { return Ok(None) };
        let ready = Staging::new(self, &stage, order, items).all();
        let noted = ready.and_then(|ready| {
            journal::note_ops(record, &ready.ops, &untouched)?;
            Ok(ready)
        });
        match noted {
            Ok(ready) => Ok(Some(Staged { name, stage, ready, untouched })),
            Err(error) => {
                // The error that made this necessary is the one to tell.
                let _ = self.clear(place, record, &name);
                Err(error)
            }
        }
    }

    fn land_from(&mut self, staged: Staged, items: &[Item], record: &Record) -> Result<Done> {
        let Staged { name, stage, ready, untouched } = staged;
        #[cfg(test)]
        seam::meanwhile(&name);
        let ground = Ground { workspace: &self.workspace, stage: &stage, made: &ready.made };
        let mut outcome = land_all(&ground, &ready.ops, items, record);
        if let Outcome::InPart(error) = outcome {
            return Err(error);
        }
        // ORDER: what is thrown away is not needed any more by one who comes after a crash.
        if let Outcome::Undone(why) = &mut outcome
            && let Err(error) = journal::note_undone(record)
        {
            // With the stage as it is, whoever comes next finds nothing to undo and clears it.
            return Err(match std::mem::replace(why, Undone::TooFar) {
                Undone::Failed(first) => first,
                Undone::TooFar => error,
            });
        }
        let finished = self.note((&ready.ops, u64::MAX), &untouched);
        let finished = finished.and_then(|()| self.clear(stage.place, record, &name));
        let finished = finished.and_then(|()| self.note((&[], 0), &untouched));
        match outcome {
            Outcome::Undone(Undone::Failed(error)) | Outcome::InPart(error) => Err(error),
            Outcome::Undone(Undone::TooFar) => finished.map(|()| Done::Undone),
            Outcome::Landed => Ok(Done::Landed { cleared: finished }),
        }
    }

    fn head(&self, stage: &str, place: Place) -> Head {
        let folder = ByteString::from(self.path.as_os_str());
        let base = &self.base;
        let workspace = (base.workspace.clone(), base.device, base.inode);
        Head::new(folder, workspace, (stage.to_owned(), place))
    }

    /// Notes the times of what these steps put there or put back, and of directories that nobody else
    /// touched, so that only what changes later is news.
    fn note(&mut self, (ops, until_ns): (&[Op], u64), untouched: &[Vec<u8>]) -> Result<()> {
        let left = times::left(&self.workspace, (ops, until_ns), |path| self.since_ns(path));
        let times = times::times(&self.workspace, untouched).into_iter();
        let times: Landed = times.chain(left).collect();
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
                (Op::Put { new, .. } | Op::Name { new, .. }, Some(seen)) => seen.id == *new,
                (Op::Mode { of, to, .. }, Some(seen)) => seen.id == *of && seen.mode == *to,
                (Op::Put { .. } | Op::Name { .. } | Op::Mode { .. }, None) => false,
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
    pub(super) fn land_in_part(
        &self,
        (place, steps): (Place, usize),
        order: &ApplyOrder,
        state: &StateDirectory,
    ) -> bool {
        let record = state.record_landing(&self.identity().unwrap()).unwrap();
        let items = self.items(&order.paths, &order.paths, Looking::Whole).unwrap();
        let Landing { items, .. } = settle(items, order);
        let staged = self.made_ready(place, &items, order, &record).unwrap().unwrap();
        let Ready { ops, made } = &staged.ready;
        let ground = Ground { workspace: &self.workspace, stage: &staged.stage, made };
        for (at, op) in ops.iter().enumerate().take(steps) {
            let item = items.iter().find(|item| item.change.path.as_bytes() == op.path());
            ground.step(at, op, item.and_then(|item| item.lower.as_ref())).unwrap();
        }
        steps < ops.len()
    }

    fn stage(&self, place: Place, record: &Record, name: &str) -> Result<Option<Stage>> {
        let (workspace, records) = (&self.workspace, record.folder());
        match place {
            Place::Workspace => {
                let what = "make a directory for what lands in";
                let made = Stage::in_workspace(workspace, name);
                made.map(Some).map_err(|errno| io(what, self.workspace(), errno))
            }
            Place::Records => Stage::beside_records(records, name, workspace).map_err(|errno| {
                let what = "make a directory for what lands beside the records, for";
                io(what, self.workspace(), errno)
            }),
        }
    }

    fn clear(&self, place: Place, record: &Record, name: &str) -> Result<()> {
        clear_stage(holder(place, record, &self.workspace), name, self.workspace())
    }

    fn workspace(&self) -> &Path {
        Path::new(&self.base.workspace)
    }
}

/// What is made ready to land.
struct Staged {
    name: String,
    stage: Stage,
    ready: Ready,
    untouched: Vec<Vec<u8>>,
}

/// How a landing from one place went that did not fail.
enum Done {
    Landed {
        /// Whether that was noted and what it took is cleared away.
        cleared: Result<()>,
    },
    /// No stage can lie there.
    Nothing,
    /// Something cannot be renamed from there to where it lands, and what was done before is undone.
    Undone,
}

/// How the steps went.
enum Outcome {
    Landed,
    /// Everything is as it was.
    Undone(Undone),
    /// Somebody else is in the way of that.
    InPart(Error),
}

/// Why everything is as it was.
enum Undone {
    TooFar,
    Failed(Error),
}

/// In what the stages of a place lie.
fn holder<'h>(place: Place, record: &'h Record, workspace: &'h OwnedFd) -> &'h OwnedFd {
    match place {
        Place::Workspace => workspace,
        Place::Records => record.folder(),
    }
}

/// Does the steps, or none of them.
fn land_all(ground: &Ground<'_>, ops: &[Op], items: &[Item], record: &Record) -> Outcome {
    let seen: BTreeMap<&[u8], Option<&Seen>> =
        items.iter().map(|item| (item.change.path.as_bytes(), item.lower.as_ref())).collect();
    let hitch = ops.iter().enumerate().find_map(|(at, op)| {
        let seen = seen.get(op.path()).copied().flatten();
        ground.step(at, op, seen).err().map(|hitch| (at, op, hitch))
    });
    let (done, mut stuck, why) = match hitch {
        Some((at, _, Hitch::Failed(Errno::XDEV))) if ground.stage.place == Place::Records => {
            (at, Vec::new(), Undone::TooFar)
        }
        Some((at, op, hitch)) => {
            let is_stuck = matches!(hitch, Hitch::Stuck(_));
            let stuck = is_stuck.then(|| Left::of(op, hitch));
            (at, stuck.into_iter().collect(), Undone::Failed(told(hitch, op.path())))
        }
        None => match journal::note_landed(record) {
            Ok(()) => return Outcome::Landed,
            Err(error) => (ops.len(), Vec::new(), Undone::Failed(error)),
        },
    };
    stuck.extend(undo_all(ground, ops.get(..done).unwrap_or_default()));
    match (stuck.is_empty(), why) {
        (true, why) => Outcome::Undone(why),
        (false, Undone::TooFar) => Outcome::InPart(half_undone(&stuck, ground.stage.place)),
        (false, Undone::Failed(error)) => {
            Outcome::InPart(half_undone(&stuck, ground.stage.place).source(error))
        }
    }
}

/// Finishes or undoes what one left half done who died.
pub(crate) fn pay(content: &[u8], record: &Record) -> Result<()> {
    let Some(Journal { head, ops, mut untouched, landed, undone }) = journal::read(content)? else {
        return Ok(());
    };
    let path = Path::new(&head.workspace);
    let workspace = workspace(&head.workspace, head.device, head.inode)?;
    let holder = holder(head.place, record, &workspace);
    let stage = Stage::open(head.place, holder, &head.stage);
    let stage = stage.map_err(|errno| io("open what half landed in", path, errno))?;
    // Nothing came out of one that was never made, and nothing is owed of one that was thrown away.
    let Some(stage) = stage else { return Ok(()) };
    // Every step changed the stage, so what is of later was somebody else.
    let last = Seen::of(&stage.directory);
    let last = last.map_err(|errno| io("look at what half landed in", path, errno))?;
    let until_ns = last.modified_ns.saturating_add(TICK_NS);
    let times = times::times(&workspace, &untouched);
    // One that is not there was taken, and comes back.
    untouched.retain(|path| times.get(path).is_none_or(|changed_ns| *changed_ns <= until_ns));
    if !landed && !undone {
        let ground = Ground { workspace: &workspace, stage: &stage, made: &BTreeMap::new() };
        let stuck = undo_all(&ground, &ops);
        if !stuck.is_empty() {
            return Err(half_undone(&stuck, head.place));
        }
        // ORDER: as above.
        journal::note_undone(record)?;
    }
    let folder = Path::new(std::ffi::OsStr::from_bytes(head.folder.as_bytes()));
    // The session may be gone by now, and nobody needs to remember.
    let mut layer = Layer::open(folder).ok().flatten();
    if let Some(layer) = &mut layer {
        layer.note((&ops, until_ns), &untouched)?;
    }
    clear_stage(holder, &head.stage, path)?;
    match &mut layer {
        Some(layer) => layer.note((&[], 0), &untouched),
        None => Ok(()),
    }
}

/// A path that could not be put back.
struct Left {
    path: String,
    /// What the file system said, where nobody else was in the way.
    refused: Option<Errno>,
}

impl Left {
    fn of(op: &Op, hitch: Hitch) -> Self {
        let path = String::from_utf8_lossy(op.path()).into_owned();
        Self { path, refused: hitch.refused() }
    }
}

/// Undoes what was done of these steps, and says at which paths it could not.
fn undo_all(ground: &Ground<'_>, ops: &[Op]) -> Vec<Left> {
    let undone = |(at, op)| ground.undo(at, op).err().map(|hitch| Left::of(op, hitch));
    ops.iter().enumerate().rev().filter_map(undone).collect()
}

fn clear_stage(holder: &OwnedFd, name: &str, path: &Path) -> Result<()> {
    #[cfg(test)]
    if seam::is_cut_off() {
        let stage = format!("{}/{name}", crate::kernel_path::through(holder));
        let first =
            std::fs::read_dir(&stage).unwrap().flatten().find(|entry| entry.path().is_file());
        std::fs::remove_file(first.unwrap().path()).unwrap();
        return Err(io("remove", path, Errno::IO));
    }
    match clear::remove(holder, name.as_bytes()) {
        // What stands there is not ours.
        Ok(()) | Err(Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(errno) => Err(io(&format!("remove {name}, in which changes landed in"), path, errno)),
    }
}

fn told(hitch: Hitch, path: &[u8]) -> Error {
    let path = String::from_utf8_lossy(path);
    match hitch {
        Hitch::Changed | Hitch::Stuck(None) => {
            let what = format!("{path:?} changed in the workspace while changes landed");
            Error::new(ErrorKind::Conflict, what).hint("Nothing was applied. Try again.")
        }
        Hitch::Failed(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            let what = format!("the file system of {path:?} cannot exchange two files");
            Error::new(ErrorKind::Unsupported, what).hint(
                "Nothing was applied. Print the changes with `cofferdam diff` and apply that.",
            )
        }
        Hitch::Failed(errno) | Hitch::Stuck(Some(errno)) => {
            Error::new(ErrorKind::Io, format!("apply {path:?}"))
                .hint("Nothing was applied.")
                .source(std::io::Error::from(errno))
        }
    }
}

fn half_undone(stuck: &[Left], place: Place) -> Error {
    // What the file system refuses explains more than what somebody changed.
    let first = stuck.iter().find(|left| left.refused.is_some()).or(stuck.first());
    let path = first.map(|left| left.path.as_str()).unwrap_or_default();
    let (kind, why) = match first.and_then(|left| left.refused) {
        Some(errno) => (ErrorKind::Io, format!("the file system refuses that ({errno})")),
        None => (ErrorKind::Conflict, "somebody changed them meanwhile".to_owned()),
    };
    let what = format!(
        "changes landed in part, and {path:?} cannot be put back, nor {} other paths, because {why}",
        stuck.len().saturating_sub(1)
    );
    let place = match place {
        Place::Workspace => "of the workspace",
        Place::Records => "in the folder `owed` of the state directory",
    };
    let stage = place::STAGE;
    Error::new(kind, what).hint(format!(
        "What was there is in the directory {stage}… {place}; put it back, or remove that."
    ))
}
