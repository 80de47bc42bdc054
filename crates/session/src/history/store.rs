//! The history of one session on disk: `history` in what the session keeps.
//!
//! | name | what |
//! |---|---|
//! | `points/N` | point N: its header, what the layer held, and small contents (`pack`) |
//! | `points/N.json` | the header of point N, where it holds what another one did or was changed since |
//! | `trees/N` | the same file as `points/N` where the point is gone and something still names what is in it |
//! | `blobs/B` | a content that is not small, which nobody changes |
//! | `live` | what was seen of the present layer by the last look |
//! | `state.json` | where the session stands, and the next numbers |
//! | `working` | somebody is at work on more than the next point, or was when they died |
//!
//! Points that an older version wrote have `points/N.json`, and `trees/N` with the list alone.
//!
//! ORDER: contents, then the point that names them, and `state.json` last: what is of a number that
//! `state.json` does not know yet was never made. All of it is done under the session's
//! lock. Nothing waits for the disk but what gets a name of its own: after a loss of power, sizes and
//! sums tell what is whole.

use super::blobs::Blobs;
use super::grain::Grain;
use super::live::Live;
use super::pack::{Pack, Parts};
use super::point::{Header, PointReport, TreeFile};
use super::state::{self, State};
use super::tree::{MAX_TREE_BYTES, Tree};
use crate::home;
use cofferdam_core::{Error, ErrorKind, Result};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of it all, and what is in it.
const HISTORY: &str = "history";
const POINTS: &str = "points";
const TREES: &str = "trees";
const BLOBS: &str = "blobs";
const LIVE: &str = "live";
const STATE: &str = "state.json";
const WORKING: &str = "working";
/// Leads the name of a file of ours until it is whole.
const FRESH: &str = ".fresh-";
/// How often `state.json` is read again where it is not whole: somebody may be writing it.
const READINGS: usize = 3;
/// The most bytes of a header, and of `state.json`.
const MAX_HEADER_BYTES: u64 = 4 << 20;

/// The history of one session.
#[derive(Debug, Clone)]
pub(crate) struct History {
    kept: PathBuf,
}

/// What a new point is the state of.
pub(super) enum NewTree {
    /// The one that the session stood at last.
    Same,
    /// This one, and what was seen of it in the layer, if it is the layer's.
    Fresh(Tree, Option<Live>),
    /// Nobody knows.
    Unknown,
}

impl History {
    /// That of a session, by the directory of what it keeps.
    pub(crate) fn new(kept: PathBuf) -> Self {
        Self { kept }
    }

    fn folder(&self) -> PathBuf {
        self.kept.join(HISTORY)
    }

    pub(super) fn kept(&self) -> &Path {
        &self.kept
    }

    /// The blobs, when no new ones are made.
    pub(crate) fn blobs(&self) -> Result<Blobs> {
        Blobs::new(self.folder().join(BLOBS), u64::MAX)
    }

    /// Where the session stands; `None` where it has no history. What cannot be read is found out from
    /// what is there.
    ///
    /// Where somebody died who was taking it elsewhere, the layer tells whether it has arrived.
    pub(super) fn state(&self) -> Result<Option<State>> {
        let mut state = self.written_state()?;
        if let Some(state) = state.as_mut().filter(|state| state.going.is_some()) {
            state.arrive(self.layer_inode());
        }
        Ok(state)
    }

    /// The same as it is written down, which tells that somebody died.
    pub(super) fn written_state(&self) -> Result<Option<State>> {
        let path = self.folder().join(STATE);
        for _ in 0..READINGS {
            let Some(text) = read(&path, MAX_HEADER_BYTES)? else {
                return if self.folder().join(POINTS).is_dir() {
                    self.found_out()
                } else {
                    Ok(None)
                };
            };
            if let Some(state) = State::decode(&text)? {
                return Ok(Some(state));
            }
        }
        self.found_out()
    }

    /// What times of change tell in the file system of the history, which is that of the layer as a rule.
    pub(super) fn grain(&self, began: SystemTime) -> Grain {
        Grain::tried(began, &self.folder().join(STATE))
    }

    /// When the last look began; what ended before is in some point. 0 where nobody knows.
    pub(super) fn looked_ms(&self) -> u64 {
        self.state().ok().flatten().map_or(0, |state| state.looked_ms)
    }

    /// Where the session stands as far as headers say it.
    fn found_out(&self) -> Result<Option<State>> {
        let numbers = self.numbers()?;
        let last = numbers.last().copied();
        let mut state = State {
            at: last,
            next_point: last.map_or(0, |last| last.saturating_add(1)),
            next_blob: self.listed(BLOBS)?.last().map_or(1, |last| last.saturating_add(1)),
            ..State::default()
        };
        for number in numbers.into_iter().rev() {
            if let Some(tree) = self.header(number).ok().and_then(|header| header.tree) {
                state.tree = Some(tree);
                break;
            }
        }
        Ok(Some(state))
    }

    /// The numbers of all points, in order.
    pub(super) fn numbers(&self) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for name in names(&self.folder().join(POINTS))? {
            numbers.extend(name.strip_suffix(".json").unwrap_or(&name).parse::<u32>().ok());
        }
        numbers.sort_unstable();
        // A header that was changed lies beside the one that was.
        numbers.dedup();
        Ok(numbers)
    }

    /// The numbers that are names in one of the folders, in order.
    pub(super) fn listed(&self, folder: &str) -> Result<Vec<u64>> {
        let names = names(&self.folder().join(folder))?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The header of a point. One that is not there is not found.
    pub(super) fn header(&self, number: u32) -> Result<Header> {
        if let Some(text) = read(&self.header_path(number), MAX_HEADER_BYTES)? {
            return Header::decode(number, &text);
        }
        let path = self.point_path(number);
        let Some(file) = open(&path)? else { return Err(missing(number)) };
        let part = Parts::of(&file).map(|parts| parts.header).filter(|part| {
            // LIMIT: of what a number says.
            part.end - part.start <= MAX_HEADER_BYTES
        });
        // What is not whole is no header.
        let text = part.and_then(|part| Parts::read(&file, part)).unwrap_or_default();
        Header::decode(number, &text)
    }

    fn point_path(&self, number: u32) -> PathBuf {
        self.folder().join(POINTS).join(number.to_string())
    }

    fn tree_path(&self, number: u64) -> PathBuf {
        self.folder().join(TREES).join(number.to_string())
    }

    fn header_path(&self, number: u32) -> PathBuf {
        self.folder().join(POINTS).join(format!("{number}.json"))
    }

    pub(super) fn read_tree(&self, file: &TreeFile) -> Result<Tree> {
        let lost = || {
            let what = format!("the list of point {} is not there", file.number);
            Error::new(ErrorKind::Io, what).hint("Go to another point of the history.")
        };
        let opened = match open(&self.point_path(file.number))? {
            Some(point) => point,
            None => open(&self.tree_path(file.number.into()))?.ok_or_else(lost)?,
        };
        let part = Parts::of(&opened).map(|parts| parts.list);
        match part.filter(|part| part.end - part.start <= MAX_TREE_BYTES) {
            Some(part) => file.read(&Parts::read(&opened, part).ok_or_else(lost)?),
            // As it was written before points were one file.
            None => file.read(&all_of(opened, MAX_TREE_BYTES).map_err(|e| lost().source(e))?),
        }
    }

    /// What the layer held at a point.
    pub(crate) fn tree(&self, number: u32) -> Result<Tree> {
        let header = self.header(number)?;
        match (&header.tree, &header.said.not_kept) {
            (Some(tree), _) => self.read_tree(tree),
            (None, why) => Err(not_kept(number, why.as_deref())),
        }
    }

    /// What was seen of the layer by the look that found this tree.
    pub(super) fn live(&self, tree: &TreeFile) -> Option<Live> {
        let bytes = read(&self.folder().join(LIVE), MAX_TREE_BYTES).ok().flatten()?;
        Live::decode(&bytes).filter(|live| live.tree == tree.number)
    }

    /// Begins to work on it, with its directories made and what a crash left removed.
    pub(super) fn work(&self) -> Result<Work> {
        let mut work = self.perhaps_work()?;
        work.begin()?;
        Ok(work)
    }

    /// The same where nothing may be made but the next point, and perhaps not even that: what a crash
    /// leaves of it has a number that is known, so nobody has to say before that they are at work.
    pub(super) fn perhaps_work(&self) -> Result<Work> {
        self.make_folders()?;
        let state = self.tidied()?.map(|(state, _)| state).unwrap_or_default();
        let blobs = Blobs::new(self.folder().join(BLOBS), state.next_blob)?;
        let blobs = blobs.packing(state.next_point);
        Ok(Work { history: self.clone(), state, blobs, fresh: Vec::new(), has_begun: false })
    }

    fn make_folders(&self) -> Result<()> {
        // ORDER: the last one that is made tells of all.
        if self.folder().join(POINTS).is_dir() {
            return Ok(());
        }
        if let (Some(above), Some(name)) = (self.kept.parent(), self.kept.file_name()) {
            home::make(above, &name.to_string_lossy())?;
        }
        home::make(&self.kept, HISTORY)?;
        for name in [TREES, BLOBS, POINTS] {
            home::make(&self.folder(), name)?;
        }
        Ok(())
    }

    /// Removes what was being made when somebody died. Says whether there was something. To be called
    /// while nobody else is at work on the session.
    pub(super) fn tidy(&self) -> Result<bool> {
        Ok(self.tidied()?.is_some_and(|(_, was_at_work)| was_at_work))
    }

    /// Where the session stands once that is removed, and whether there was something.
    fn tidied(&self) -> Result<Option<(State, bool)>> {
        let Some(mut state) = self.written_state()? else { return Ok(None) };
        if !self.is_unfinished(&state) {
            return Ok(Some((state, false)));
        }
        // ORDER: first, so that somebody who is killed here is known to have been.
        self.mark()?;
        // Its files may be those of the layer as well, and commands would see that they have two names.
        self.remove_other()?;
        state.arrive(self.layer_inode());
        self.remove_above(&state)?;
        state.bytes = super::evict::sweep(self, &state)?;
        self.write_state(&state)?;
        self.remove_one(&self.folder().join(WORKING))?;
        Ok(Some((state, true)))
    }

    fn layer_inode(&self) -> u64 {
        std::fs::metadata(self.layer().join("upper")).map_or(0, |found| found.ino())
    }

    fn mark(&self) -> Result<()> {
        let marker = self.folder().join(WORKING);
        std::fs::write(&marker, b"").map_err(|e| io("make", &marker, e))
    }

    /// Whether somebody died at work: they left the marker, or what the next point is made of, which
    /// begins with the first free number of its kind.
    pub(super) fn is_unfinished(&self, state: &State) -> bool {
        let (folder, point) = (self.folder(), state.next_point.to_string());
        folder.join(WORKING).exists()
            || state.going.is_some()
            || folder.join(BLOBS).join(state.next_blob.to_string()).exists()
            || folder.join(TREES).join(&point).exists()
            || folder.join(POINTS).join(&point).exists()
            || self.header_path(state.next_point).exists()
            || folder.join(format!("{FRESH}{STATE}")).exists()
    }

    /// Removes what is of numbers that were never given.
    fn remove_above(&self, state: &State) -> Result<()> {
        for name in names(&self.folder())?.iter().filter(|name| name.starts_with(FRESH)) {
            self.remove_one(&self.folder().join(name))?;
        }
        for name in names(&self.folder().join(POINTS))?.iter().filter(|n| n.starts_with(FRESH)) {
            self.remove_one(&self.folder().join(POINTS).join(name))?;
        }
        for number in self.numbers()?.into_iter().filter(|number| *number >= state.next_point) {
            self.remove_fresh(number)?;
        }
        Ok(())
    }

    /// Removes a point that never counted.
    fn remove_fresh(&self, number: u32) -> Result<()> {
        self.remove_one(&self.point_path(number))?;
        self.remove_one(&self.header_path(number))
    }

    fn remove_one(&self, path: &Path) -> Result<()> {
        match std::fs::remove_file(path) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io("remove", path, e)),
        }
    }

    /// Makes a point none. What others name of it stays until [`sweep`](super::evict::sweep).
    pub(super) fn remove_header(&self, number: u32) -> Result<()> {
        let (point, list) = (self.point_path(number), self.tree_path(number.into()));
        // ORDER: first. Whoever is killed here leaves a point with its header beside its list.
        match std::fs::rename(&point, &list) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(io("move", &point, e));
            }
            Ok(()) | Err(_) => {}
        }
        self.remove_one(&self.header_path(number))
    }

    pub(super) fn remove_tree(&self, number: u64) -> Result<()> {
        self.remove_one(&self.tree_path(number))
    }

    pub(super) fn remove_blob(&self, number: u64) -> Result<()> {
        self.remove_one(&self.folder().join(BLOBS).join(number.to_string()))
    }

    pub(super) fn trees(&self) -> Result<Vec<u64>> {
        self.listed(TREES)
    }

    pub(super) fn all_blobs(&self) -> Result<Vec<u64>> {
        self.listed(BLOBS)
    }

    /// Bytes on disk of a tree, of the file of a point, or of a blob.
    pub(super) fn size_of_tree(&self, number: u64) -> u64 {
        on_disk(&self.tree_path(number))
    }

    pub(super) fn size_of_point(&self, number: u32) -> u64 {
        on_disk(&self.point_path(number))
    }

    pub(super) fn size_of_blob(&self, number: u64) -> u64 {
        on_disk(&self.folder().join(BLOBS).join(number.to_string()))
    }

    /// Writes the header of a point anew.
    pub(super) fn write_header(&self, header: &Header) -> Result<()> {
        let name = format!("{}.json", header.said.point);
        write(&self.folder().join(POINTS), &name, &header.encode()?)
    }

    /// Writes the header of a point that does not count yet, so that nobody reads it.
    fn write_first_header(&self, header: &Header) -> Result<()> {
        let path = self.header_path(header.said.point);
        std::fs::write(&path, header.encode()?).map_err(|e| io("write", &path, e))
    }

    pub(super) fn write_state(&self, state: &State) -> Result<()> {
        let (text, path) = (state.encode()?, self.folder().join(STATE));
        match state::write_over(&path, &text).map_err(|e| io("write", &path, e))? {
            true => Ok(()),
            false => write(&self.folder(), STATE, &text),
        }
    }
}

/// Something that is being done to a history. Where it is dropped before it is done, nothing was done.
pub(super) struct Work {
    pub(super) history: History,
    pub(super) state: State,
    pub(super) blobs: Blobs,
    /// The points that were written and do not count yet.
    fresh: Vec<u32>,
    /// Whether the marker is there.
    has_begun: bool,
}

impl Work {
    /// Says that more than the next point is being made from here on.
    pub(super) fn begin(&mut self) -> Result<()> {
        if !self.has_begun {
            self.history.mark()?;
            self.has_begun = true;
        }
        Ok(())
    }

    /// Adds a point, at which the session stands from now on.
    pub(super) fn add(&mut self, said: PointReport, tree: NewTree) -> Result<PointReport> {
        let (said, file) = self.put(said, tree)?;
        self.state.at = Some(said.point);
        self.state.tree = file.or(self.state.tree.take());
        self.commit()?;
        Ok(said)
    }

    /// Writes a point that comes after the one at which the session stands, and stays there. It is one
    /// from [`Work::commit`] on.
    pub(super) fn put(
        &mut self,
        mut said: PointReport,
        tree: NewTree,
    ) -> Result<(PointReport, Option<TreeFile>)> {
        let number = self.state.next_point;
        said.point = number;
        // What came from a file comes after nothing.
        said.parent = self.state.at.filter(|_| said.imported.is_none());
        self.fresh.push(number);
        let next = number.saturating_add(1);
        let pack = self.blobs.take_pack(next);
        let file = match tree {
            NewTree::Same => self.state.tree.clone(),
            NewTree::Fresh(tree, live) => {
                if let Some(live) = live {
                    self.write_live(&live)?;
                }
                let pack = pack.unwrap_or_else(|| Pack::new(number));
                Some(self.write_point(&said, &tree, &pack)?)
            }
            NewTree::Unknown => None,
        };
        if file.as_ref().is_none_or(|file| file.number != number) {
            self.history.write_first_header(&Header::new(said.clone(), file.clone()))?;
        }
        self.state.next_point = next;
        Ok((said, file))
    }

    fn write_point(&mut self, said: &PointReport, tree: &Tree, pack: &Pack) -> Result<TreeFile> {
        let list = tree.encode()?;
        let file = TreeFile::of(said.point, &list);
        let header = Header::new(said.clone(), Some(file.clone())).encode()?;
        let (whole, path) = (pack.whole(&list, &header), self.history.point_path(said.point));
        // Nobody reads it before it counts.
        std::fs::write(&path, &whole).map_err(|e| io("write", &path, e))?;
        self.state.bytes = self.state.bytes.saturating_add(whole.len() as u64);
        Ok(file)
    }

    /// Notes what was seen of the layer. A note that is half written is as good as none.
    pub(super) fn write_live(&self, live: &Live) -> Result<()> {
        let path = self.history.folder().join(LIVE);
        overwrite(&path, &live.encode()).map_err(|e| io("write", &path, e))
    }

    /// Writes down where the session stands: from here on all is done.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.state.next_blob = self.blobs.next.min(u64::MAX - 1);
        self.state.bytes = self.state.bytes.saturating_add(self.blobs.bytes);
        self.history.write_state(&self.state)?;
        self.blobs.bytes = 0;
        self.blobs.keep();
        self.fresh.clear();
        Ok(())
    }

    /// Waits until all that was written is on disk.
    pub(super) fn settle(&self) -> Result<()> {
        let folder = self.history.folder();
        let file = File::open(&folder).map_err(|e| io("open", &folder, e))?;
        rustix::fs::syncfs(&file).map_err(|e| io("write out", &folder, e.into()))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        for number in self.fresh.iter().rev() {
            let _ = self.history.remove_fresh(*number);
        }
        // ORDER: last. A marker that stays costs the next one a look.
        if self.has_begun {
            let _ = std::fs::remove_file(self.history.folder().join(WORKING));
        }
    }
}

pub(super) fn missing(number: u32) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no point {number} in the history"))
        .hint("List the points with `cofferdam history`.")
}

pub(super) fn not_kept(number: u32, why: Option<&str>) -> Error {
    let what = format!("point {number} was not kept: {}", why.unwrap_or("nobody knows why"));
    Error::new(ErrorKind::Conflict, what).hint("Go to another point of the history.")
}

/// Reads a file of our own; `None` where there is none.
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let Some(file) = open(path)? else { return Ok(None) };
    all_of(file, most).map(Some).map_err(|e| io("read", path, e))
}

fn open(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io("read", path, e)),
    }
}

fn all_of(file: File, most: u64) -> std::io::Result<Vec<u8>> {
    // One byte more, so that one call reads it all and another one nothing.
    let size = file.metadata()?.len().min(most).saturating_add(1);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file of our own, whole or not at all.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (whole, fresh) = (folder.join(name), folder.join(format!("{FRESH}{name}")));
    let done = std::fs::write(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, &whole));
    if done.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    done.map_err(|e| io("write", &whole, e))
}

/// Writes a file of our own that tells by itself whether it is whole. It is not emptied first: what was
/// emptied is written to the disk at once by some file systems, for which a command would wait.
fn overwrite(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    file.write_all_at(bytes, 0)?;
    match file.metadata()?.len() > bytes.len() as u64 {
        true => file.set_len(bytes.len() as u64),
        false => Ok(()),
    }
}

/// The names in a folder of our own; none where there is no such folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io("list", folder, e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| io("list", folder, e))?.file_name();
        found.extend(name.into_string().ok());
    }
    Ok(found)
}

fn on_disk(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).map_or(0, |found| found.blocks().saturating_mul(512))
}

pub(super) fn io(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display())).source(error)
}
