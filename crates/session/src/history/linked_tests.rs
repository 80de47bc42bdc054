use super::super::point::{PointEffects, PointKind, PointReport};
use super::super::store::History;
use super::super::take::all;
use super::super::tests::{A_GRAIN, Place, Seen, large, mode, seen};
use rustix::fs::{XattrFlags, fsetxattr};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// What stays as it is in all of these.
const KEPT: [&str; 3] = ["d/small", "d/large", "d/deep/er/noted"];

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

fn inodes(place: &Place) -> [u64; 3] {
    KEPT.map(|name| inode(&place.upper().join(name)))
}

/// A layer of these files and of one that was changed after its first point, for certain. The points are 0
/// and 1; what it was at the first one is told.
fn changed(name: &str) -> (Place, BTreeMap<PathBuf, Seen>) {
    let place = Place::new(name);
    let upper = place.upper();
    fs::create_dir_all(upper.join("d/deep/er")).unwrap();
    for (name, text) in KEPT.into_iter().zip([b"small".to_vec(), large("l"), b"noted".to_vec()]) {
        fs::write(upper.join(name), text).unwrap();
    }
    let noted = fs::File::options().write(true).open(upper.join(KEPT[2])).unwrap();
    fsetxattr(&noted, "user.note", b"1", XattrFlags::empty()).unwrap();
    noted.set_modified(UNIX_EPOCH + Duration::new(7, 8)).unwrap();
    mode(&upper.join(KEPT[0]), 0o4751);
    fs::write(upper.join("f"), "one").unwrap();
    // What is little is made anew.
    fs::write(upper.join("much"), vec![7; 300_000]).unwrap();
    // The look itself opens files up for a moment.
    let first = seen(&upper);
    // What is changed while the clock does not go on is not certain.
    std::thread::sleep(A_GRAIN);
    assert_eq!(place.point().point, 0);
    fs::write(upper.join("f"), "other").unwrap();
    std::thread::sleep(A_GRAIN);
    assert_eq!(place.point().point, 1);
    (place, first)
}

#[test]
fn a_file_that_both_layers_have_is_one_file_and_all_is_as_it_was() {
    let (place, first) = changed("linked-same");
    let upper = place.upper();
    let (before, other) = (inodes(&place), inode(&upper.join("f")));
    place.go(0);
    assert_eq!(inodes(&place), before);
    assert_ne!(inode(&upper.join("f")), other, "the control");
    assert!(!place.base.join("kept/cow/.fresh").exists());
    // With their contents, permissions, times and attributes, and one name each.
    assert_eq!(seen(&upper), first);
    assert_eq!(place.point().effects, PointEffects::default());
    place.go(1);
    assert_eq!(fs::read(upper.join("f")).unwrap(), b"other");
    place.go(0);
    assert_eq!(seen(&upper), first);
}

#[test]
fn the_look_after_an_undo_reads_nothing() {
    let place = Place::new("linked-marks");
    let upper = place.upper();
    // More than what is sooner read again than waited for.
    for number in 0..1200 {
        fs::write(upper.join(number.to_string()), "x").unwrap();
    }
    std::thread::sleep(A_GRAIN);
    place.point();
    fs::write(upper.join("0"), "y").unwrap();
    place.point();
    let before = inode(&upper.join("1"));
    place.go(0);
    assert_eq!(inode(&upper.join("1")), before);
    let at = place.history.state().unwrap().unwrap().tree.unwrap();
    let live = place.history.live(&at).unwrap();
    assert!(live.is(&all(&place.base.join("kept/cow")).unwrap()));
}

/// What is done to a layer and a directory outside of it, whose files nobody may touch.
type Deed = fn(&Path, &Path);

#[test]
fn a_file_that_is_not_the_one_that_was_listed_is_made_of_its_content() {
    let deeds: [(&str, Deed); 7] = [
        ("written", |upper, _| fs::write(upper.join(KEPT[0]), "SMALL").unwrap()),
        ("touched", |upper, _| mode(&upper.join(KEPT[0]), 0o4751)),
        ("replaced", |upper, outside| {
            fs::rename(outside.join("small"), upper.join(KEPT[0])).unwrap();
        }),
        ("named twice", |upper, _| {
            fs::hard_link(upper.join(KEPT[0]), upper.join("more")).unwrap();
        }),
        ("a link", |upper, outside| {
            fs::remove_file(upper.join(KEPT[0])).unwrap();
            symlink(outside.join("small"), upper.join(KEPT[0])).unwrap();
        }),
        ("a link above it", |upper, outside| {
            fs::rename(upper.join("d"), upper.join("away")).unwrap();
            symlink(outside, upper.join("d")).unwrap();
        }),
        ("a directory", |upper, _| {
            fs::remove_file(upper.join(KEPT[0])).unwrap();
            fs::create_dir(upper.join(KEPT[0])).unwrap();
        }),
    ];
    for (name, deed) in deeds {
        let (place, first) = changed(&format!("linked-{}", name.replace(' ', "-")));
        let (upper, outside) = (place.upper(), place.base.join("outside"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("small"), "small").unwrap();
        // As long as it is open no other file gets its number.
        let _held = fs::File::open(upper.join(KEPT[0])).unwrap();
        let before = inode(&upper.join(KEPT[0]));
        let placed = inode(&outside.join("small"));
        deed(&upper, &outside);
        place.go(0);
        let now = inode(&upper.join(KEPT[0]));
        assert!(now != before && now != placed, "{name}");
        assert_eq!(seen(&upper), first, "{name}");
        if let Ok(outside) = fs::metadata(outside.join("small")) {
            assert_eq!((outside.nlink(), outside.len()), (1, 5), "{name}");
        }
    }
}

#[test]
fn what_may_have_changed_within_a_tick_is_made_again() {
    let (place, first) = changed("linked-tick");
    let upper = place.upper();
    let at = place.history.state().unwrap().unwrap().tree.unwrap();
    let mut live = place.history.live(&at).unwrap();
    live.entries.iter_mut().for_each(|seen| seen.is_certain = false);
    place.history.work().unwrap().write_live(&live).unwrap();
    let before = inodes(&place);
    place.go(0);
    assert!(inodes(&place).iter().zip(before).all(|(now, before)| *now != before));
    assert_eq!(seen(&upper), first);
}

#[test]
fn names_of_one_file_stay_names_of_one_file() {
    let (place, first) = changed("linked-names");
    let upper = place.upper();
    fs::hard_link(upper.join(KEPT[1]), upper.join("e")).unwrap();
    std::thread::sleep(A_GRAIN);
    assert_eq!(place.point().point, 2);
    let links = |name: &str| fs::metadata(upper.join(name)).unwrap().nlink();
    for _ in 0..2 {
        place.go(0);
        assert_eq!(links(KEPT[1]), 1);
        place.go(2);
        assert_eq!((links("e"), links(KEPT[1])), (2, 2));
        assert_eq!(inode(&upper.join("e")), inode(&upper.join(KEPT[1])));
    }
    place.go(0);
    assert_eq!(seen(&upper), first);
}

#[test]
fn a_file_with_a_name_outside_of_the_layer_is_left_to_that() {
    let (place, first) = changed("linked-outside");
    let (upper, outside) = (place.upper(), place.base.join("outside"));
    fs::hard_link(upper.join(KEPT[0]), &outside).unwrap();
    std::thread::sleep(A_GRAIN);
    fs::write(upper.join("new"), "n").unwrap();
    place.point();
    let before = inodes(&place);
    place.go(0);
    assert_ne!(inode(&upper.join(KEPT[0])), inode(&outside));
    assert_eq!(inode(&upper.join(KEPT[1])), before[1], "the control");
    assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1);
    assert_eq!(seen(&upper), first);
}

#[test]
fn whoever_is_killed_while_a_layer_is_made_leaves_the_one_that_is_there() {
    let (place, _) = changed("linked-killed");
    let before = inodes(&place);
    let mut work = place.history.work().unwrap();
    let ready = work.make_ready(0).unwrap();
    let links = || fs::metadata(place.upper().join(KEPT[0])).unwrap().nlink();
    assert_eq!(links(), 2, "the control");
    std::mem::forget((ready, work));
    // Names elsewhere are no change of what the layer is, and are gone before a command can see them.
    assert_eq!(place.point().effects, PointEffects::default());
    assert_eq!((links(), inodes(&place)), (1, before));
    assert!(!place.history.tidy_all().unwrap());
    assert_eq!(fs::read(place.upper().join("f")).unwrap(), b"other");
    assert_eq!(place.point().effects, PointEffects::default());
}

#[test]
fn a_fork_has_files_of_its_own() {
    let (place, first) = changed("linked-fork");
    let fork = History::new(place.base.join("fork"));
    let tree = place.history.tree(0).unwrap();
    let said = PointReport::new(PointKind::Start, 1);
    fork.work().unwrap().fork(&place.history, &tree, said).unwrap();
    let upper = place.base.join("fork/cow/upper");
    let own = KEPT.map(|name| inode(&upper.join(name)));
    assert!(own.iter().zip(inodes(&place)).all(|(own, other)| *own != other));
    assert_eq!(seen(&upper), first);
}
