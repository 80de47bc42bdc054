//! Looks at a layer, and what comes of them.

use super::compare::{Lower, compare};
use super::gather::{Gather, Known, UPPER};
use super::linked::Present;
use super::live::Live;
use super::mapped::Mapped;
use super::point::{PointEffects, PointReport};
use super::restore;
use super::state::Going;
use super::store::{History, NewTree, Work, io};
use super::tree::Tree;
use super::walk::{Bounds, Found, Stillness, moved, walk};
use super::widened::{Widened, is_widened, put_back};
use crate::home;
use cofferdam_core::{Error, ErrorKind, Result, tells_of_stores};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, chmodat, fstat, openat, renameat_with};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most bytes that are read for the point after a command.
pub const MAX_POINT_BYTES: u64 = 2 << 30;
/// The most bytes that are read where somebody asks for it: for snapshots, forks and before an undo.
pub(super) const MAX_ASKED_BYTES: u64 = 16 << 30;
/// The folder of the layer, and what is in it. The backend made it so.
const LAYER: &str = "cow";
const WORK: &str = "work";
const BASE: &str = "base.json";
/// What a layer that is a copy of the workspace needs besides.
const OF_COPIES: [&str; 2] = ["listing", LANDED];
/// What has landed of the layer, where anything has.
const LANDED: &str = "landed.json";
/// The most files and bytes that are read again after they were made, rather than waited for.
const MOST_READ_AGAIN: (u64, u64) = (1000, 4 << 20);
/// The most files and bytes that are made anew rather than taken over from the layer that is there, whose end
/// would have to be waited for.
const MOST_MADE_ANEW: (u64, u64) = (32, 1 << 18);
/// Where something is made until it is whole.
const FRESH: &str = ".fresh";

/// What a look found.
pub(super) enum Look {
    /// The layer is what the last point has. Where much of it was touched all the same, what was seen
    /// now.
    Same(Option<Live>),
    /// It is something else.
    Other(Box<Tree>, Live, PointEffects),
}

/// How a layer is looked at.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) stillness: Stillness,
    pub(super) bounds: Bounds,
    /// Where the workspace is that the layer lies on.
    pub(super) workspace: Option<PathBuf>,
    /// What processes have mapped meanwhile.
    pub(super) mapped: Mapped,
}

impl History {
    pub(super) fn layer(&self) -> PathBuf {
        self.kept().join(LAYER)
    }

    /// Whether anything of the layer has ever landed in the workspace.
    pub(super) fn has_landed(&self) -> bool {
        self.layer().join(LANDED).exists()
    }

    /// Whether the layer is a copy of the workspace, which is listed beside it.
    pub(super) fn is_copy(&self) -> bool {
        OF_COPIES.first().is_some_and(|listing| self.layer().join(listing).is_file())
    }

    pub(super) fn has_layer(&self) -> Result<()> {
        match self.layer().join("upper").is_dir() && self.layer().join(BASE).is_file() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::NotFound, "the session has no layer yet")
                .hint("Run a command in it first.")),
        }
    }

    /// Removes what was being made when somebody died. Says whether there was something. To be called
    /// while nobody else is at work on the session.
    pub(crate) fn tidy_all(&self) -> Result<bool> {
        let was_widened = put_back(&self.layer())?;
        let was_at_work = self.tidy()?;
        Ok(self.remove_other()? || was_widened || was_at_work)
    }

    /// Whether [`History::tidy_all`] would find something. Changes nothing.
    pub(crate) fn is_untidy(&self) -> Result<bool> {
        let layer = self.layer();
        let is_unfinished = self.written_state()?.is_some_and(|state| self.is_unfinished(&state));
        Ok(is_unfinished || is_widened(&layer) || layer.join(FRESH).is_dir())
    }

    /// Removes a layer that somebody was making, or that was there before. Says whether there was one.
    pub(super) fn remove_other(&self) -> Result<bool> {
        let has_other = self.layer().join(FRESH).is_dir();
        if has_other {
            home::remove(&self.layer(), FRESH)?;
        }
        Ok(has_other)
    }
}

impl Work {
    /// Looks at the layer.
    pub(super) fn look(&mut self, order: &Order) -> Result<Look> {
        self.history.has_layer()?;
        let layer = self.history.layer();
        let mut widened = Widened::new(&layer)?;
        let looked = self.look_widened(order, &mut widened);
        // ORDER: also where it failed, before anybody hears of that.
        put_back(&layer)?;
        match looked {
            // What vanished while it was looked at is told only where nothing can vanish.
            Err(error) if order.stillness == Stillness::Perhaps && error.kind == ErrorKind::Io => {
                Err(moved())
            }
            looked => looked,
        }
    }

    fn look_widened(&mut self, order: &Order, widened: &mut Widened) -> Result<Look> {
        let layer = self.history.layer();
        let how = (order.bounds, order.stillness);
        let began = SystemTime::now();
        let found = walk(&layer, UPPER, how, widened)?;
        // Where no time tells of stores through mappings, everything is compared.
        let tells = tells_of_stores_in(&layer);
        let known = self.state.tree.as_ref().filter(|_| tells);
        let live = known.and_then(|file| self.history.live(file));
        if live.as_ref().is_some_and(|live| live.is(&found)) {
            return Ok(Look::Same(None));
        }
        // What is damaged is no help, and no hindrance.
        let tree = self.state.tree.as_ref().and_then(|file| self.history.read_tree(file).ok());
        let known = tree.map_or_else(Known::default, |tree| Known::new(tree, live.as_ref()));
        let gather = Gather::new(&layer, how, &known, &mut self.blobs, widened)?;
        let tree = gather.tree(&found)?;
        if order.stillness == Stillness::Perhaps {
            is_still(&found, &walk(&layer, UPPER, how, widened)?)?;
        }
        let live = |number| Live::new(number, &found, self.history.grain(began), &order.mapped);
        match (known.tree(), &self.state.tree) {
            (Some(old), Some(file)) if old.is_as(&tree) => {
                let is_much = known.is_much(&found);
                Ok(Look::Same(is_much.then(|| live(file.number))))
            }
            (old, _) => {
                let is_copy = self.history.is_copy();
                let lower = Lower { workspace: order.workspace.as_deref(), is_copy };
                let effects = match old {
                    Some(old) => compare((old, &tree), &self.blobs, lower)?,
                    None => compare((&tree, &tree), &self.blobs, Lower::default())?,
                };
                let live = live(self.state.next_point);
                Ok(Look::Other(Box::new(tree), live, effects.told()))
            }
        }
    }

    /// Adds a point of what a look found.
    pub(super) fn add_look(&mut self, mut said: PointReport, look: Look) -> Result<PointReport> {
        match look {
            Look::Same(live) => {
                if let Some(live) = live {
                    self.write_live(&live)?;
                }
                if let Some(at) = self.state.at.and_then(|at| self.history.header(at).ok()) {
                    (said.files, said.bytes) = (at.said.files, at.said.bytes);
                }
                self.add(said, NewTree::Same)
            }
            Look::Other(tree, live, effects) => {
                (said.files, said.bytes) = tree.size();
                said.effects = effects;
                self.add(said, NewTree::Fresh(*tree, Some(live)))
            }
        }
    }

    /// Makes what the layer was at a point, beside the layer. Nothing of the layer changes meanwhile but how
    /// many names its files have, and with that their times of change.
    pub(super) fn make_ready(&mut self, number: u32) -> Result<Ready> {
        self.begin()?;
        self.history.has_layer()?;
        let header = self.history.header(number)?;
        let Some(tree) = header.tree else {
            return Err(super::store::not_kept(number, header.said.not_kept.as_deref()));
        };
        let layer = self.history.layer();
        let made = fresh_below(&layer).and_then(|fresh| {
            let made = self.history.read_tree(&tree)?;
            let known = self.known_present(&made, &layer);
            let present = known.as_ref().map(|(tree, live)| Present::new(&layer, tree, live));
            let has_taken = restore::make(&made, &self.blobs, &fresh, present.transpose()?)?;
            let seen = || self.seen(&made, tree.number, &fresh);
            let live = (!has_taken).then(seen).transpose()?;
            let new = fresh.join("upper");
            let inode = std::fs::metadata(&new).map_err(|e| io("look at", &new, e))?.ino();
            Ok((live, made, Going { at: number, tree, inode }))
        });
        let (live, made, going) = or_nothing(made, &layer)?;
        Ok(Ready { layer, live, made, going })
    }

    /// What is known of the present layer, where that tells for certain which of its files are as they were,
    /// and the one that is to be made has much.
    fn known_present(&self, made: &Tree, layer: &Path) -> Option<(Tree, Live)> {
        let (files, bytes) = made.size();
        if files <= MOST_MADE_ANEW.0 && bytes <= MOST_MADE_ANEW.1 {
            return None;
        }
        // As for a look.
        let file = self.state.tree.as_ref().filter(|_| tells_of_stores_in(layer))?;
        let live = self.history.live(file)?;
        Some((self.history.read_tree(file).ok()?, live))
    }

    /// Puts what was made in the place of the layer, which nobody may use meanwhile. After a crash it is
    /// either, and the session is known to stand where it is. What was there goes with `ready`, or before.
    pub(super) fn go(&mut self, ready: &Ready) -> Result<()> {
        let Going { inode, .. } = ready.going;
        self.state.going = Some(ready.going.clone());
        self.commit()?;
        let (new, place) = (ready.layer.join(FRESH).join("upper"), ready.layer.join("upper"));
        exchange(&new, &place).map_err(|e| io("exchange", &place, e.into()))?;
        self.state.arrive(inode);
        if let Some(live) = &ready.live {
            // It has arrived all the same. Of what is not noted the next look compares everything.
            let _ = self.write_live(live);
        }
        self.commit()?;
        // What the kernel noted for the layer that was there. It is made anew.
        home::remove(&ready.layer, WORK)?;
        if ready.live.is_none() {
            // As above.
            let _ = self.note_arrived(ready);
        }
        Ok(())
    }

    /// Removes the layer that was there, and notes what is seen of the one that is there now. To be called
    /// before anything can run in that.
    fn note_arrived(&self, ready: &Ready) -> Result<()> {
        // ORDER: first. A file that both have loses a name, which is a change of it by its time.
        home::remove(&ready.layer, FRESH)?;
        self.write_live(&self.seen(&ready.made, ready.going.tree.number, &ready.layer)?)
    }

    /// What the kernel says of a tree that was just made, in which nobody can change anything yet.
    ///
    /// What was made is known for certain where times of change are fine, and otherwise once the clock of files
    /// went on. Where there is little in it, the next look reads it again, which is done sooner.
    fn seen(&self, tree: &Tree, number: u32, folder: &Path) -> Result<Live> {
        let (files, bytes) = tree.size();
        let mut grain = self.history.grain(SystemTime::now());
        let is_little = files <= MOST_READ_AGAIN.0 && bytes <= MOST_READ_AGAIN.1;
        if !is_little && grain.fine.is_none() {
            grain = grain.waited();
        }
        Ok(Live::new(number, &all(folder)?, grain, &Mapped::none()))
    }

    /// Begins the history of a session that has no layer yet with a point of another one.
    pub(super) fn fork(&mut self, from: &History, tree: &Tree, said: PointReport) -> Result<()> {
        let kept = self.history.kept().to_owned();
        let blobs = from.blobs()?;
        let tree = tree.with_blobs(|content| self.blobs.share(&blobs, content))?;
        home::make(&kept, LAYER)?;
        let layer = self.history.layer();
        // ORDER: first, because a layer without it would be taken for one over the tree of now.
        copy_file(&from.layer(), &layer, BASE)?;
        // What was copied once, and what landed, is so for all points.
        for name in OF_COPIES.iter().filter(|name| from.layer().join(name).is_file()) {
            copy_file(&from.layer(), &layer, name)?;
        }
        // Nothing is taken over: both sessions go on.
        restore::make(&tree, &self.blobs, &layer, None)?;
        let live = self.seen(&tree, self.state.next_point, &layer)?;
        let mut said = said;
        (said.files, said.bytes) = tree.size();
        self.add(said, NewTree::Fresh(tree, Some(live)))?;
        Ok(())
    }
}

/// A layer that was made beside the present one, and then the one that it took the place of. When this is
/// dropped that is removed.
pub(super) struct Ready {
    layer: PathBuf,
    /// What is seen of it; nothing where it has files of the present one, whose times of change do not last.
    live: Option<Live>,
    made: Tree,
    going: Going,
}

impl Drop for Ready {
    fn drop(&mut self) {
        // What stays is removed by the next one at work here.
        let _ = home::remove(&self.layer, FRESH);
    }
}

/// Exchanges two directories that lie in different ones.
///
/// A directory that changes its parent is written itself, and whoever is inside may have taken that right
/// from everybody. It has the permissions again that it had when this returns.
fn exchange(new: &Path, place: &Path) -> rustix::io::Result<()> {
    let _writable = [Writable::new(new)?, Writable::new(place)?];
    renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE)
}

/// A directory that its owner may write as long as this is there.
struct Writable {
    directory: OwnedFd,
    /// What permissions it had, where they were others.
    had: Option<Mode>,
}

impl Writable {
    fn new(path: &Path) -> rustix::io::Result<Self> {
        // Nobody may have the right to read it either.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        let mode = Mode::from_raw_mode(fstat(&directory)?.st_mode & 0o7777);
        let mut writable = Self { directory, had: None };
        // Where that is not allowed, what needs it fails and says so.
        if !mode.contains(Mode::WUSR) && writable.set(mode | Mode::WUSR).is_ok() {
            writable.had = Some(mode);
        }
        Ok(writable)
    }

    fn set(&self, mode: Mode) -> rustix::io::Result<()> {
        // A descriptor of this sort takes no other way.
        let through = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
        chmodat(CWD, through, mode, AtFlags::empty())
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        if let Some(had) = self.had {
            // Whoever could set others can set these. If not, the next point tells it as a change.
            let _ = self.set(had);
        }
    }
}

/// All that was made of a layer by ourselves.
pub(super) fn all(folder: &Path) -> Result<Vec<Found>> {
    let how = (Bounds::of(u64::MAX), Stillness::Still);
    let found = Widened::new(folder).and_then(|mut widened| walk(folder, UPPER, how, &mut widened));
    put_back(folder)?;
    found
}

fn tells_of_stores_in(layer: &Path) -> bool {
    rustix::fs::statfs(layer).is_ok_and(|told| tells_of_stores(told.f_type.cast_unsigned()))
}

/// Whether two looks saw the same, and so one moment.
fn is_still(found: &[Found], again: &[Found]) -> Result<()> {
    let same = |(a, b): (&Found, &Found)| a.mark() == b.mark() && a.path == b.path;
    match found.len() == again.len() && found.iter().zip(again).all(same) {
        true => Ok(()),
        false => Err(moved()),
    }
}

/// An empty directory to make something in. What a crash left of an earlier one is removed.
fn fresh_below(folder: &Path) -> Result<PathBuf> {
    home::remove(folder, FRESH)?;
    home::make(folder, FRESH)?;
    Ok(folder.join(FRESH))
}

/// What came of making something fresh. Where nothing did, nothing is left: a disk that is full is not
/// kept so.
fn or_nothing<T>(made: Result<T>, folder: &Path) -> Result<T> {
    if made.is_err() {
        let _ = home::remove(folder, FRESH);
    }
    made
}

/// Copies a small file of our own, whole or not at all.
fn copy_file(from: &Path, to: &Path, name: &str) -> Result<()> {
    let (whole, fresh) = (to.join(name), to.join(format!(".{name}")));
    std::fs::copy(from.join(name), &fresh)
        .and_then(|_| std::fs::rename(&fresh, &whole))
        .map_err(|e| io("write", &whole, e))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Place, mode};
    use super::*;
    use std::fs;

    #[test]
    fn a_layer_that_nobody_may_write_goes_and_comes_as_it_was() {
        let place = Place::new("take-closed");
        let upper = place.upper();
        let about = || fs::metadata(&upper).unwrap().mode() & 0o7777;
        let text = || fs::read_to_string(upper.join("f")).unwrap();
        mode(&upper, 0o755);
        fs::write(upper.join("f"), "one").unwrap();
        let open = place.point().point;
        fs::write(upper.join("f"), "two").unwrap();
        mode(&upper, 0o555);
        let closed = place.point().point;
        assert_eq!(about(), 0o555, "the control");
        place.go(open);
        assert_eq!((about(), text().as_str()), (0o755, "one"));
        place.go(closed);
        assert_eq!((about(), text().as_str()), (0o555, "two"));
        // From one to another one.
        mode(&upper, 0o311);
        let shut = place.point().point;
        mode(&upper, 0o111);
        place.point();
        place.go(closed);
        assert_eq!(about(), 0o555);
        place.go(shut);
        assert_eq!(about(), 0o311);
    }

    #[test]
    fn what_cannot_be_exchanged_keeps_its_permissions() {
        let place = Place::new("take-fails");
        let upper = place.upper();
        mode(&upper, 0o555);
        assert!(exchange(&upper, &place.base.join("nothing")).is_err());
        // With one that it lies in.
        assert!(exchange(&upper, &place.base.join("kept")).is_err());
        assert_eq!(fs::metadata(&upper).unwrap().mode() & 0o7777, 0o555);
    }
}
