use super::evict::{Limits, evict};
use super::live::Live;
use super::mapped::Mapped;
use super::point::{PointEffects, PointKind, PointReport};
use super::store::History;
use super::take::{Look, Order};
use super::tree::{Content, Node};
use super::walk::{Bounds, Stillness, is_moved};
use super::widened::put_back;
use crate::home;
use cofferdam_core::{ErrorKind, Result};
use rustix::fs::{FileType, Mode, XattrFlags, fgetxattr, fsetxattr, mknodat};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Who else may do what with a file.
const ACL: &str = "system.posix_acl_access";
/// More than all clocks of files need to go on.
pub(super) const A_GRAIN: Duration = Duration::from_millis(25);

/// What a session keeps, with a layer.
pub(super) struct Place {
    pub(super) base: PathBuf,
    pub(super) history: History,
}

impl Place {
    pub(super) fn new(name: &str) -> Self {
        let base = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        fs::create_dir_all(base.join("kept/cow/upper")).unwrap();
        fs::create_dir_all(base.join("workspace")).unwrap();
        fs::write(base.join("kept/cow/base.json"), "{}").unwrap();
        let history = History::new(base.join("kept"));
        Self { base, history }
    }

    pub(super) fn upper(&self) -> PathBuf {
        self.base.join("kept/cow/upper")
    }

    fn order(&self, bounds: Bounds, stillness: Stillness) -> Order {
        let workspace = Some(self.base.join("workspace"));
        Order { stillness, bounds, workspace, mapped: Mapped::none() }
    }

    pub(super) fn point(&self) -> PointReport {
        self.bounded(Bounds::of(u64::MAX)).unwrap()
    }

    fn bounded(&self, bounds: Bounds) -> Result<PointReport> {
        let mut work = self.history.work()?;
        let look = work.look(&self.order(bounds, Stillness::Still))?;
        work.add_look(PointReport::new(PointKind::Command, 1), look)
    }

    pub(super) fn go(&self, point: u32) {
        let mut work = self.history.work().unwrap();
        let ready = work.make_ready(point).unwrap();
        work.go(&ready).unwrap();
    }

    pub(super) fn blobs(&self) -> Vec<u64> {
        self.history.all_blobs().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (parent, name) = (self.base.parent().unwrap(), self.base.file_name().unwrap());
        home::remove(parent, name.to_str().unwrap()).unwrap();
    }
}

/// What is too large to be in the file of a point.
pub(super) fn large(text: &str) -> Vec<u8> {
    text.bytes().cycle().take(40_000).collect()
}

/// The first content that a point names.
pub(super) fn first_content(history: &History, point: u32) -> Content {
    let tree = history.tree(point).unwrap();
    tree.entries().iter().find_map(|entry| entry.node.content()).unwrap()
}

pub(super) fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What a file is, but for its number.
pub(super) type Seen = (u32, u32, u32, u64, u64, i64, i64, Vec<u8>, Option<Vec<u8>>);

/// All that is there. What is closed is opened up for the look, and closed again.
pub(super) fn seen(top: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    see(top, top, &mut found);
    found
}

fn see(top: &Path, path: &Path, found: &mut BTreeMap<PathBuf, Seen>) {
    let m = fs::symlink_metadata(path).unwrap();
    let mut content = Vec::new();
    let mut attribute = None;
    let is_opened = m.is_dir() || m.is_file();
    if is_opened {
        mode(path, 0o700);
        let mut value = [0; 64];
        let file = fs::File::open(path).unwrap();
        let count = fgetxattr(&file, "user.note", &mut value[..]);
        attribute = count.ok().map(|count| value[..count].to_vec());
    }
    if m.is_file() {
        content = fs::read(path).unwrap();
    } else if m.is_symlink() {
        content = fs::read_link(path).unwrap().into_os_string().into_encoded_bytes();
    } else if m.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            see(top, &entry.unwrap().path(), found);
        }
    }
    if is_opened {
        mode(path, m.mode() & 0o7777);
    }
    let name = path.strip_prefix(top).unwrap().to_owned();
    let links = if m.is_dir() { 0 } else { m.nlink() };
    let times = (m.mtime(), m.mtime_nsec());
    let one = (m.mode(), m.uid(), m.gid(), links, m.rdev(), times.0, times.1, content, attribute);
    found.insert(name, one);
}

/// Everything that a layer can hold.
pub(super) fn fill(upper: &Path) {
    fs::create_dir_all(upper.join("a/b/closed")).unwrap();
    fs::write(upper.join("a/f"), vec![7; 3 << 20]).unwrap();
    fs::hard_link(upper.join("a/f"), upper.join("g")).unwrap();
    fs::hard_link(upper.join("a/f"), upper.join("a/b/h")).unwrap();
    fs::write(upper.join("a/b/closed/secret"), "s").unwrap();
    fs::write(upper.join("noted \n\u{e4}"), "n").unwrap();
    symlink("/etc/passwd", upper.join("link")).unwrap();
    symlink("/nothing", upper.join("a/dangling")).unwrap();
    let here = fs::File::open(upper).unwrap();
    let all = Mode::from_raw_mode(0o640);
    for (name, kind) in [
        ("removed", FileType::CharacterDevice),
        ("pipe", FileType::Fifo),
        ("socket", FileType::Socket),
    ] {
        mknodat(&here, name, kind, all, 0).unwrap();
    }
    let noted = fs::File::open(upper.join("noted \n\u{e4}")).unwrap();
    fsetxattr(&noted, "user.note", b"1", XattrFlags::empty()).unwrap();
    fsetxattr(&here, "user.note", b"top", XattrFlags::empty()).unwrap();
    mode(&upper.join("a/b/closed/secret"), 0);
    mode(&upper.join("a/b/closed"), 0);
    mode(&upper.join("g"), 0o444);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(upper.join("link"), Some(54_321), Some(54_322)).unwrap();
        std::os::unix::fs::chown(upper.join("a/f"), Some(54_321), Some(54_322)).unwrap();
    }
}

#[test]
fn a_layer_goes_back_exactly_and_forward_again() {
    let place = Place::new("history-exact");
    let upper = place.upper();
    let empty = seen(&upper);
    assert_eq!(place.point().point, 0);
    fill(&upper);
    // One more user may read and execute it.
    let list =
        [2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 5, 0, 57, 48, 0, 0, 4, 0, 4, 0, 255];
    let more = [255, 255, 255, 16, 0, 5, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255];
    let list = [&list[..], &more].concat();
    fs::write(upper.join("listed"), "l").unwrap();
    let listed = fs::File::open(upper.join("listed")).unwrap();
    let lists = fsetxattr(&listed, ACL, &list, XattrFlags::empty()).is_ok();
    let full = seen(&upper);
    let point = place.point();
    assert_eq!((point.point, point.parent, point.files), (1, Some(0), 15));
    assert_eq!(seen(&upper), full, "the layer is as it was");
    place.go(0);
    assert_eq!(seen(&upper), empty);
    place.go(1);
    assert_eq!(seen(&upper), full);
    if lists {
        let mut value = [0; 64];
        let copy = fs::File::open(upper.join("listed")).unwrap();
        let count = fgetxattr(&copy, ACL, &mut value[..]).unwrap();
        assert_eq!(value[..count], list);
    }
    // The same again is the same, and costs no content.
    let blobs = place.blobs();
    let again = place.point();
    assert_eq!((again.parent, again.effects), (Some(1), PointEffects::default()));
    assert_eq!(place.blobs(), blobs);
}

#[test]
fn a_file_that_got_other_attributes_alone_is_changed() {
    let place = Place::new("history-attributes");
    let upper = place.upper();
    let changed = |place: &Place| {
        let effects = place.point().effects;
        assert_eq!((effects.added, effects.removed), (0, 0));
        effects.changed
    };
    let note = |name: &str, key: &str, value: &str| {
        let file = fs::File::open(upper.join(name)).unwrap();
        fsetxattr(&file, key, value.as_bytes(), XattrFlags::empty()).unwrap();
    };
    fs::write(upper.join("own"), "o").unwrap();
    fs::write(place.base.join("workspace/copied"), "c").unwrap();
    place.point();
    note("own", "user.note", "1");
    assert_eq!(changed(&place), 1);
    note("own", "user.note", "2");
    assert_eq!(changed(&place), 1);
    // Copied up for its attributes, as it is in everything else.
    fs::write(upper.join("copied"), "c").unwrap();
    note("copied", "user.note", "1");
    assert_eq!(changed(&place), 1);
    // The control: what the kernel notes is no change, nor is what the workspace has as well.
    note("own", "user.overlay.origin", "x");
    assert_eq!(changed(&place), 0);
    let below = fs::File::open(place.base.join("workspace/copied")).unwrap();
    fsetxattr(&below, "user.note", b"1", XattrFlags::empty()).unwrap();
    fs::write(place.base.join("workspace/same"), "s").unwrap();
    fs::write(upper.join("same"), "s").unwrap();
    assert_eq!(changed(&place), 0);
}

#[test]
fn only_what_changed_is_copied_and_what_nobody_names_is_swept() {
    let place = Place::new("history-shared");
    let upper = place.upper();
    place.point();
    for name in ["a", "b", "c"] {
        fs::write(upper.join(name), large(name)).unwrap();
    }
    place.point();
    std::thread::sleep(A_GRAIN);
    place.point();
    fs::write(upper.join("b"), large("other")).unwrap();
    fs::rename(upper.join("c"), upper.join("d")).unwrap();
    let point = place.point();
    assert_eq!((point.effects.added, point.effects.changed, point.effects.removed), (1, 1, 1));
    // The file that was renamed is compared and found to be the same.
    assert_eq!(place.blobs().len(), 4);
    fs::remove_file(upper.join("b")).unwrap();
    place.point();
    let mut work = place.history.work().unwrap();
    evict(&mut work, Limits { points: 2, batch: 0, bytes: u64::MAX }).unwrap();
    drop(work);
    assert_eq!(place.history.numbers().unwrap(), [3, 4]);
    assert_eq!(place.blobs().len(), 3);
    place.go(3);
    assert_eq!(fs::read(upper.join("b")).unwrap(), large("other"));
    let mut work = place.history.work().unwrap();
    evict(&mut work, Limits { points: 1, batch: 0, bytes: u64::MAX }).unwrap();
    assert_eq!(work.history.numbers().unwrap(), [3]);
}

#[test]
fn snapshots_and_where_it_stands_stay_whatever_is_too_much() {
    let place = Place::new("history-evict");
    let upper = place.upper();
    place.point();
    fs::write(upper.join("f"), vec![1; 100_000]).unwrap();
    place.point();
    let kept = place.history.name_present(Some("kept".to_owned())).unwrap();
    assert_eq!((kept.point, kept.parent, kept.files), (2, Some(1), 2));
    for number in 0..4_u8 {
        fs::write(upper.join("f"), vec![number; 100_000]).unwrap();
        place.point();
    }
    let mut work = place.history.work().unwrap();
    let before = work.state.bytes;
    assert!(before > 500_000, "{before}");
    evict(&mut work, Limits { points: 100, batch: 0, bytes: 250_000 }).unwrap();
    assert!(work.state.bytes <= 250_000, "{}", work.state.bytes);
    evict(&mut work, Limits { points: 100, batch: 0, bytes: 0 }).unwrap();
    drop(work);
    assert_eq!(place.history.numbers().unwrap(), [2, 6]);
    assert_eq!(place.history.named("kept").unwrap(), 2);
    place.go(2);
    assert_eq!(fs::read(upper.join("f")).unwrap(), vec![1; 100_000]);
    assert_eq!(place.history.remove_snapshot(6).unwrap_err().kind, ErrorKind::Conflict);
    place.history.remove_snapshot(2).unwrap();
    assert_eq!(place.history.numbers().unwrap(), [6]);
    assert_eq!(place.history.named("kept").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(place.history.named("2").unwrap_err().kind, ErrorKind::NotFound);
}

/// The same size, and a time of change that is the same for all the clock can tell: what was seen of the
/// file is made what is seen after the change.
#[test]
fn a_change_within_a_tick_of_the_clock_is_seen() {
    for is_certain in [false, true] {
        let place = Place::new(&format!("history-racy-{is_certain}"));
        let file = place.upper().join("f");
        fs::write(&file, "aaaa").unwrap();
        place.point();
        fs::File::options().write(true).open(&file).unwrap().write_all_at(b"bbbb", 0).unwrap();
        let found = super::take::all(&place.base.join("kept/cow")).unwrap();
        let mut live = Live::made(0, &found);
        live.entries.iter_mut().for_each(|seen| seen.is_certain = is_certain);
        place.history.work().unwrap().write_live(&live).unwrap();
        let point = place.point().point;
        let mut kept = [0; 4];
        let content = first_content(&place.history, point);
        let blob = fs::File::from(place.history.blobs().unwrap().open(content).unwrap());
        blob.read_exact_at(&mut kept, 0).unwrap();
        // Who takes it for certain does not see it: that is what must not be done.
        assert_eq!(&kept, if is_certain { b"aaaa" } else { b"bbbb" });
    }
}

#[test]
fn holes_are_not_filled() {
    let place = Place::new("history-holes");
    place.point();
    let sparse = fs::File::create(place.upper().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    sparse.write_all_at(b"end", (1 << 40) - 3).unwrap();
    let point = place.bounded(Bounds::of(1 << 20)).unwrap();
    assert_eq!(point.bytes, 1 << 40);
    place.go(0);
    assert!(!place.upper().join("sparse").exists());
    place.go(1);
    let copy = fs::File::open(place.upper().join("sparse")).unwrap();
    let m = copy.metadata().unwrap();
    assert_eq!(m.len(), 1 << 40);
    assert!(m.blocks() < 1 << 10);
    let mut end = [0; 3];
    copy.read_exact_at(&mut end, (1 << 40) - 3).unwrap();
    assert_eq!(&end, b"end");
}

#[test]
fn a_look_has_bounds_and_leaves_nothing_beyond_them() {
    let bounds = Bounds { entries: 4, bytes: 10, depth: 1 };
    for (name, make, fits) in [
        ("files", &["a", "b", "c"][..], true),
        ("more-files", &["a", "b", "c", "d"], false),
        ("deep", &["x/a"], true),
        ("deeper", &["x/y/a"], false),
        ("bytes", &["0123456789"], true),
        ("more-bytes", &["0123456789", "0"], false),
    ] {
        let place = Place::new(&format!("history-bounds-{name}"));
        for file in make {
            let path = place.upper().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let is_long = name.ends_with("bytes");
            fs::write(&path, if is_long { file } else { "" }).unwrap();
        }
        let made = place.bounded(bounds).map_err(|error| error.kind);
        assert_eq!(made.is_ok(), fits, "{name}: {made:?}");
        if !fits {
            assert_eq!(made, Err(ErrorKind::TooLarge), "{name}");
            assert_eq!(place.blobs(), [0_u64; 0], "{name}");
            assert!(!place.base.join("kept/history/working").exists(), "{name}");
        }
    }
}

#[test]
fn what_was_opened_up_is_closed_again_though_the_look_fails_or_is_killed() {
    let place = Place::new("history-closed");
    let (deep, file) = (place.upper().join("d/e"), place.upper().join("d/e/f"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(&file, "content").unwrap();
    for path in [&file, &deep] {
        mode(path, 0);
    }
    let bounds = Bounds { bytes: 3, ..Bounds::of(0) };
    assert_eq!(place.bounded(bounds).unwrap_err().kind, ErrorKind::TooLarge);
    let permissions = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
    assert_eq!(permissions(&deep), 0);
    // Nothing is opened up while somebody may see it.
    if !rustix::process::geteuid().is_root() {
        let perhaps = place.order(Bounds::of(100), Stillness::Perhaps);
        let looked = place.history.work().unwrap().look(&perhaps).map(drop);
        assert!(is_moved(&looked.unwrap_err()));
    }
    mode(&deep, 0o700);
    assert_eq!(permissions(&file), 0);
    // As somebody left it who was killed: opened up, and written down.
    mode(&file, 0o400);
    mode(&deep, 0o500);
    let folder = place.base.join("kept/cow");
    let list = folder.join(".widened");
    fs::write(&list, "0 upper/d/e\u{0}0 upper/d/e/f\u{0}0 upper/gone/x\u{0}777 uppe").unwrap();
    assert!(put_back(&folder).unwrap());
    assert_eq!(permissions(&deep), 0);
    mode(&deep, 0o700);
    assert_eq!((permissions(&file), list.exists()), (0, false));
    assert!(!put_back(&folder).unwrap());
}

#[test]
fn permissions_are_put_back_over_no_link() {
    let place = Place::new("history-over-link");
    let outside = place.base.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "").unwrap();
    mode(&outside.join("f"), 0o600);
    symlink(outside.join("f"), place.upper().join("f")).unwrap();
    symlink(&outside, place.upper().join("d")).unwrap();
    let list = "777 upper/f\u{0}777 upper/d/f\u{0}";
    fs::write(place.base.join("kept/cow/.widened"), list).unwrap();
    put_back(&place.base.join("kept/cow")).unwrap();
    assert_eq!(fs::symlink_metadata(outside.join("f")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn what_a_killed_one_left_is_removed_and_a_move_that_was_made_counts() {
    let place = Place::new("history-killed");
    let upper = place.upper();
    place.point();
    fs::write(upper.join("f"), large("f")).unwrap();
    place.point();
    let history = place.base.join("kept/history");
    // Killed before a point was one.
    let points = ["points/2", "points/2.json", "points/.fresh-2.json"];
    for left in points.into_iter().chain(["blobs/99", "trees/2", ".fresh-live"]) {
        fs::write(history.join(left), "half").unwrap();
    }
    fs::write(history.join("working"), "").unwrap();
    fs::create_dir_all(place.base.join("kept/cow/.fresh/upper")).unwrap();
    assert!(place.history.is_untidy().unwrap());
    assert!(place.history.tidy_all().unwrap());
    assert!(!place.history.is_untidy().unwrap());
    assert!(!place.history.tidy_all().unwrap());
    assert_eq!(place.history.numbers().unwrap(), [0, 1]);
    assert_eq!((place.blobs().len(), place.history.trees().unwrap().len()), (1, 0));
    assert!(!place.base.join("kept/cow/.fresh").exists());
    // Killed when the layer was exchanged already, and killed before.
    for (arrived, at) in [(true, 0), (false, 1)] {
        let mut work = place.history.work().unwrap();
        let inode = fs::metadata(&upper).unwrap().ino() + u64::from(!arrived);
        let tree = work.history.header(0).unwrap().tree.unwrap();
        work.state.at = Some(1);
        work.state.going = Some(super::state::Going { at: 0, tree, inode });
        work.commit().unwrap();
        drop(work);
        // Whoever only looks is told the same, before anybody puts it right.
        assert_eq!(place.history.state().unwrap().unwrap().at, Some(at));
        fs::write(history.join("working"), "").unwrap();
        assert!(place.history.is_untidy().unwrap());
        assert!(place.history.tidy_all().unwrap());
        assert_eq!(place.history.state().unwrap().unwrap().at, Some(at));
    }
}

#[test]
fn a_layer_that_has_arrived_counts_where_what_is_seen_of_it_cannot_be_noted() {
    let place = Place::new("history-not-noted");
    let upper = place.upper();
    fs::write(upper.join("f"), "one").unwrap();
    place.point();
    fs::write(upper.join("f"), "other").unwrap();
    place.point();
    // As where the disk is full.
    let live = place.base.join("kept/history/live");
    fs::remove_file(&live).unwrap();
    fs::create_dir(&live).unwrap();
    place.go(0);
    assert_eq!(fs::read(upper.join("f")).unwrap(), b"one");
    let state = place.history.state().unwrap().unwrap();
    assert_eq!((state.at, state.going), (Some(0), None));
    fs::remove_dir(&live).unwrap();
    assert_eq!(place.point().effects, PointEffects::default());
}

#[test]
fn what_a_killed_look_left_is_found_by_its_number_and_removed_before_the_next() {
    let place = Place::new("history-killed-look");
    let history = place.base.join("kept/history");
    let kinds = ["blobs", "trees", "points", "headers", ".fresh-state.json"];
    for (number, left) in kinds.iter().enumerate() {
        fs::write(place.upper().join("f"), number.to_string()).unwrap();
        place.point();
        let state = place.history.state().unwrap().unwrap();
        let path = match *left {
            "blobs" => history.join(format!("blobs/{}", state.next_blob)),
            "trees" => history.join(format!("trees/{}", state.next_point)),
            "points" => history.join(format!("points/{}", state.next_point)),
            "headers" => history.join(format!("points/{}.json", state.next_point)),
            name => history.join(name),
        };
        fs::write(&path, "half").unwrap();
        assert!(!history.join("working").exists(), "{left}");
        let work = place.history.perhaps_work().unwrap();
        assert!(!path.exists() && !history.join("working").exists(), "{left}");
        assert_eq!(work.state.next_point, state.next_point, "{left}");
        drop(work);
        assert_eq!(place.point().point, state.next_point, "{left}");
    }
}

#[test]
fn damage_is_told_and_hurts_no_other_point() {
    let place = Place::new("history-damage");
    let upper = place.upper();
    place.point();
    fs::write(upper.join("f"), "f").unwrap();
    place.point();
    fs::write(upper.join("f"), large("gg")).unwrap();
    place.point();
    let history = place.base.join("kept/history");
    let point = fs::read(history.join("points/1")).unwrap();
    let list = point.windows(14).position(|part| part == b"cofferdam-tree").unwrap();
    let flipped: Vec<u8> =
        point.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == list + 20)).collect();
    for bad in [&point[..point.len() - 1], &[0; 100][..], b"", &flipped] {
        fs::write(history.join("points/1"), bad).unwrap();
        let told = place.history.tree(1).unwrap_err();
        assert!(told.message.contains("damaged"), "{told:?}");
    }
    let blob = first_content(&place.history, 2).blob;
    fs::write(history.join(format!("blobs/{blob}")), "g").unwrap();
    let told = place.history.work().unwrap().make_ready(2).map(drop).unwrap_err();
    assert!(told.message.contains("damaged"), "{told:?}");
    assert_eq!(fs::read(upper.join("f")).unwrap(), large("gg"), "nothing is half done");
    // Where it stands is found out from what is there.
    fs::write(history.join("state.json"), "{").unwrap();
    assert_eq!(place.history.state().unwrap().unwrap().at, Some(2));
    assert_eq!(place.point().point, 3);
    place.go(0);
    assert!(!upper.join("f").exists());
    fs::write(history.join("points/0.json"), r#"{"format":9}"#).unwrap();
    assert_eq!(place.history.tree(0).unwrap_err().kind, ErrorKind::Unsupported);
    let told = place.history.reports(u32::MAX).unwrap();
    assert!(told[0].not_kept.as_deref().unwrap().contains("format 9"), "{told:?}");
}

/// Stops what runs beside, also where a test fails.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Links are read by their names alone, so nothing but the second look tells two moments apart.
#[test]
fn a_layer_that_moves_is_not_kept_as_a_mixture() {
    let place = Place::new("history-moves");
    let upper = place.upper();
    for name in ["a", "b"] {
        symlink("0", upper.join(name)).unwrap();
    }
    place.point();
    let stop = AtomicBool::new(false);
    let mut moved = 0;
    std::thread::scope(|scope| {
        let _stopped = Stop(&stop);
        scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                for name in ["a", "b"] {
                    symlink(number.to_string(), upper.join("new")).unwrap();
                    fs::rename(upper.join("new"), upper.join(name)).unwrap();
                }
            }
        });
        for _ in 0..300 {
            let mut work = place.history.work().unwrap();
            let tree = match work.look(&place.order(Bounds::of(u64::MAX), Stillness::Perhaps)) {
                Err(error) if is_moved(&error) => {
                    moved += 1;
                    continue;
                }
                Err(error) => panic!("{error:?}"),
                Ok(Look::Same(_)) => continue,
                Ok(Look::Other(tree, ..)) => tree,
            };
            let number = |name: &[u8]| -> u64 {
                let Node::Link(target) = &tree.get(name).unwrap().node else { panic!("{tree:?}") };
                std::str::from_utf8(target).unwrap().parse().unwrap()
            };
            let (a, b) = (number(b"a"), number(b"b"));
            assert!(a == b || a == b + 1, "{a} {b}");
        }
    });
    assert!(moved > 0);
}
