//! Points as files, seen from the history: what is in them, how long they stay, and those from before.

use super::evict::{Limits, evict};
use super::pack;
use super::point::{Header, PointKind, PointReport, TreeFile};
use super::store::{History, Work};
use super::tests::{Place, first_content, large, mode, seen};
use super::tree::{Content, Node, Tree};
use cofferdam_core::ErrorKind;
use std::fs;
use std::io::Read;
use std::path::Path;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn keep_only(history: &History, points: usize) {
    let mut work = history.work().unwrap();
    evict(&mut work, Limits { points, batch: 0, bytes: u64::MAX }).unwrap();
}

#[test]
fn a_point_of_small_files_is_one_file_which_stays_as_long_as_something_in_it_is_named() {
    let place = Place::new("pack-shared");
    let (upper, history) = (place.upper(), place.base.join("kept/history"));
    place.point();
    fs::write(upper.join("a"), "kept long").unwrap();
    fs::write(upper.join("b"), "gone soon").unwrap();
    place.point();
    assert_eq!(names(&history.join("points")), ["0", "1"]);
    assert!(place.blobs().is_empty() && names(&history.join("trees")).is_empty());
    fs::write(upper.join("b"), "other").unwrap();
    fs::write(upper.join("c"), large("c")).unwrap();
    let last = seen(&upper);
    place.point();
    assert_eq!(place.blobs().len(), 1, "what is not small is a file of its own");
    assert_eq!(pack::place(first_content(&place.history, 2).blob), Some((1, 16)), "shared");
    keep_only(&place.history, 1);
    assert_eq!(place.history.numbers().unwrap(), [2]);
    assert_eq!(names(&history.join("trees")), ["1"]);
    let bytes = place.history.state().unwrap().unwrap().bytes;
    assert!(bytes > 40_000 + 2 * 4096, "{bytes}");
    fs::write(upper.join("a"), "changed meanwhile").unwrap();
    place.go(2);
    assert_eq!(seen(&upper), last);
    // Nothing names the first one any more.
    fs::remove_file(upper.join("a")).unwrap();
    place.point();
    keep_only(&place.history, 1);
    assert_eq!(names(&history.join("trees")), ["2"]);
}

/// More than one file may hold, and as large as a content may be.
#[test]
fn what_has_no_room_is_a_file_of_its_own_and_all_of_it_goes_back() {
    let place = Place::new("pack-room");
    let upper = place.upper();
    place.point();
    let largest = usize::try_from(pack::MAX_SMALL_BYTES).unwrap();
    for number in 0..12_u8 {
        fs::write(upper.join(format!("f{number}")), vec![number; largest]).unwrap();
    }
    fs::write(upper.join("larger"), vec![7; largest + 1]).unwrap();
    fs::write(upper.join("z-empty"), "").unwrap();
    let full = seen(&upper);
    place.point();
    let beyond = 12 - pack::MAX_PACK_BYTES / largest;
    assert_eq!(place.blobs().len(), beyond + 1);
    place.go(0);
    place.go(1);
    assert_eq!(seen(&upper), full);
    // The same once more is the same.
    for number in 0..12_u8 {
        fs::write(upper.join(format!("f{number}")), vec![number; largest]).unwrap();
    }
    place.point();
    assert_eq!(place.blobs().len(), beyond + 1);
}

/// Writes a history down as it was before points were files.
fn as_before(place: &Place) {
    let (history, mut work) = (place.base.join("kept/history"), place.history.work().unwrap());
    for number in place.history.numbers().unwrap() {
        let (header, tree) = (work.history.header(number).unwrap(), place.history.tree(number));
        let tree = tree.unwrap().with_blobs(|content| blob_of(&mut work, content)).unwrap();
        let list = tree.encode().unwrap();
        let file = TreeFile::of(number, &list);
        fs::write(history.join(format!("trees/{number}")), list).unwrap();
        let header = Header::new(header.said, Some(file.clone())).encode().unwrap();
        fs::remove_file(history.join(format!("points/{number}"))).unwrap();
        fs::write(history.join(format!("points/{number}.json")), header).unwrap();
        work.state.tree = Some(file);
    }
    work.commit().unwrap();
    drop(work);
    let text = fs::read_to_string(history.join("state.json")).unwrap();
    let line = text.lines().next().unwrap().replace(r#""format":2"#, r#""format":1"#);
    assert!(line.contains(r#""format":1"#));
    fs::write(history.join("state.json"), line).unwrap();
    fs::remove_file(history.join("live")).unwrap();
}

fn blob_of(work: &mut Work, content: Content) -> cofferdam_core::Result<u64> {
    let bytes = work.blobs.packed(content).unwrap();
    let (number, file) = work.blobs.make()?;
    rustix::io::pwrite(&file, &bytes, 0).unwrap();
    Ok(number)
}

#[test]
fn points_of_the_version_before_are_gone_to_and_go_on() {
    let place = Place::new("pack-before");
    let (upper, history) = (place.upper(), place.base.join("kept/history"));
    place.point();
    fs::write(upper.join("a"), "one").unwrap();
    fs::write(upper.join("b"), "two").unwrap();
    mode(&upper.join("b"), 0o640);
    let one = seen(&upper);
    place.point();
    as_before(&place);
    assert_eq!(names(&history.join("points")), ["0.json", "1.json"]);
    // What has not changed is as it was kept then.
    fs::write(upper.join("c"), "three").unwrap();
    let two = seen(&upper);
    let point = place.point();
    assert_eq!((point.point, point.effects.added, point.effects.changed), (2, 1, 0));
    assert_eq!(pack::place(first_content(&place.history, 2).blob), None);
    assert_eq!(place.blobs().len(), 2);
    place.go(1);
    assert_eq!(seen(&upper), one);
    place.go(2);
    assert_eq!(seen(&upper), two);
    // The ones from before go like others do.
    keep_only(&place.history, 1);
    assert_eq!((place.history.numbers().unwrap(), place.blobs().len()), (vec![2], 2));
    assert!(names(&history.join("trees")).is_empty());
    place.go(2);
    assert_eq!(seen(&upper), two);
}

/// A kill in the middle of what a point writes: whatever the length is, the point never was.
#[test]
fn a_point_that_is_cut_off_anywhere_never_was() {
    let place = Place::new("pack-cut");
    let (upper, history) = (place.upper(), place.base.join("kept/history"));
    place.point();
    fs::write(upper.join("f"), "before").unwrap();
    place.point();
    let before = fs::read(history.join("state.json")).unwrap();
    fs::write(upper.join("f"), "after it").unwrap();
    place.point();
    let whole = fs::read(history.join("points/2")).unwrap();
    for length in 0..=whole.len() {
        // Where it stands is written last.
        fs::write(history.join("state.json"), &before).unwrap();
        fs::write(history.join("points/2"), &whole[..length]).unwrap();
        assert!(place.history.tidy_all().unwrap(), "{length}");
        assert_eq!(place.history.numbers().unwrap(), [0, 1], "{length}");
    }
    place.go(1);
    assert_eq!(fs::read(upper.join("f")).unwrap(), b"before");
    assert_eq!(place.point().point, 2);
}

#[test]
fn a_fork_has_the_files_of_points_by_other_names_and_outlives_where_they_came_from() {
    let from = Place::new("pack-from");
    for (name, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        fs::write(from.upper().join(name), text).unwrap();
        from.point();
    }
    fs::write(from.upper().join("large"), large("l")).unwrap();
    from.point();
    let full = seen(&from.upper());
    let forked = |name: &str, from: &Place, point: u32| {
        let place = Place::new(name);
        fs::remove_dir_all(place.base.join("kept/cow")).unwrap();
        let said = PointReport::new(PointKind::Start, 1);
        let tree = from.history.tree(point).unwrap();
        place.history.work().unwrap().fork(&from.history, &tree, said).unwrap();
        place
    };
    let fork = forked("pack-fork", &from, 3);
    assert_eq!(seen(&fork.upper()), full);
    let trees = fork.history.trees().unwrap();
    let foreign = |number: &u64| *number >= u64::from(pack::FOREIGN);
    assert!(trees.len() == 3 && trees.iter().all(foreign), "{trees:?}");
    // One that ends before it is whole leaves nothing.
    let tree = from.history.tree(3).unwrap();
    let mut work = fork.history.work().unwrap();
    let theirs = from.history.blobs().unwrap();
    tree.with_blobs(|content| work.blobs.share(&theirs, content)).unwrap();
    assert_eq!(fork.history.trees().unwrap().len(), 6);
    drop(work);
    assert_eq!((fork.history.trees().unwrap(), fork.blobs().len()), (trees, 1));
    // One of a fork, when the others are gone.
    fs::write(fork.upper().join("d"), "four").unwrap();
    fork.point();
    drop(from);
    let second = forked("pack-second", &fork, 1);
    let more = seen(&fork.upper());
    drop(fork);
    assert_eq!(seen(&second.upper()), more);
    fs::write(second.upper().join("a"), "changed").unwrap();
    second.point();
    second.go(0);
    assert_eq!(seen(&second.upper()), more);
    assert_eq!(second.history.trees().unwrap().len(), 4);
    keep_only(&second.history, 1);
    second.go(0);
    assert_eq!(seen(&second.upper()), more);
}

#[test]
fn a_content_that_a_point_does_not_hold_is_told() {
    let place = Place::new("pack-missing");
    fs::write(place.upper().join("f"), "content").unwrap();
    place.point();
    let blobs = place.history.blobs().unwrap();
    let there = first_content(&place.history, 0);
    assert!(blobs.packs(there, b"content") && !blobs.packs(there, b"contend"));
    let mut read = String::new();
    fs::File::from(blobs.open(there).unwrap()).read_to_string(&mut read).unwrap();
    assert_eq!(read, "content");
    let beyond = Content { size: there.size + 1, ..there };
    let elsewhere = Content { blob: pack::moved(there.blob, 9), ..there };
    for bad in [beyond, elsewhere, Content { blob: there.blob - 1, ..there }] {
        assert_eq!(blobs.open(bad).unwrap_err().kind, ErrorKind::Io, "{bad:?}");
    }
    let tree = place.history.tree(0).unwrap();
    let bad: Vec<_> = tree.entries().to_vec();
    let bad = bad.into_iter().map(|mut entry| {
        if let Node::File(content) = &mut entry.node {
            *content = elsewhere;
        }
        entry
    });
    let bad = Tree::new(bad.collect()).unwrap();
    let folder = place.base.join("made");
    fs::create_dir(&folder).unwrap();
    assert!(
        super::restore::make(&bad, &blobs, &folder, None).is_err(),
        "and nothing is made of it"
    );
}

/// A layer that is a copy has all of the workspace: what is missing in it was removed.
#[test]
fn what_is_missing_in_a_copy_was_removed() {
    for (is_copy, removed) in [(true, 1), (false, 0)] {
        let place = Place::new(&format!("pack-copy-{is_copy}"));
        fs::write(place.base.join("workspace/f"), "f").unwrap();
        fs::write(place.upper().join("f"), "f").unwrap();
        if is_copy {
            fs::write(place.base.join("kept/cow/listing"), "").unwrap();
        }
        place.point();
        fs::remove_file(place.upper().join("f")).unwrap();
        let gone = place.point().effects;
        assert_eq!((gone.added, gone.changed, gone.removed), (0, 0, removed), "{is_copy}");
        fs::write(place.upper().join("f"), "f").unwrap();
        assert_eq!(place.point().effects.added, removed, "{is_copy}");
    }
}
