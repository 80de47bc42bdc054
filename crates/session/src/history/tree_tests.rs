use super::*;
use proptest::prelude::*;

fn entry(path: &str, node: Node) -> Entry {
    Entry {
        path: path.as_bytes().to_vec(),
        node,
        mode: 0o644,
        user: 1,
        group: 2,
        modified: (-1, 999_999_999),
        accessed: (5, 0),
        attributes: Vec::new(),
    }
}

fn file(path: &str) -> Entry {
    entry(path, Node::File(Content { blob: 7, size: 3 }))
}

fn sample() -> Vec<Entry> {
    let mut noted = file("a/b\n");
    noted.attributes = vec![(b"user.note".to_vec(), vec![0, 255])];
    vec![
        entry("", Node::Directory),
        entry("a", Node::Directory),
        noted,
        entry("a/c", Node::Again(2)),
        entry("a-b", Node::Link(b"/etc".to_vec())),
        entry("fifo", Node::Fifo),
        entry("gone", Node::Removed),
        entry("socket", Node::Socket),
    ]
}

#[test]
fn a_tree_is_read_as_it_was_written_and_damage_is_told() {
    let tree = Tree::new(sample()).unwrap();
    let bytes = tree.encode().unwrap();
    assert_eq!(Tree::decode(&bytes).unwrap(), tree);
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 4;
        assert!(Tree::decode(&bad).unwrap_err().message.contains("damaged"), "{at}");
        assert!(Tree::decode(&bytes[..at]).is_err(), "{at}");
    }
}

#[test]
fn a_directory_stands_before_what_is_in_it_and_what_is_beside_it_after_that() {
    let tree = Tree::new(sample()).unwrap();
    assert_eq!(tree.get(b"a/c").unwrap().node, Node::Again(2));
    assert_eq!(tree.resolved(tree.get(b"a/c").unwrap()).path, b"a/b\n");
    assert_eq!(tree.get(b"a-b").unwrap().node, Node::Link(b"/etc".to_vec()));
    assert!(tree.get(b"a/d").is_none());
    assert_eq!(tree.blobs().collect::<Vec<_>>(), [7]);
}

/// What a list would have to say for something to be made outside of the layer, or twice.
#[test]
fn what_no_walk_finds_is_refused() {
    let top = || entry("", Node::Directory);
    let dir = |path: &str| entry(path, Node::Directory);
    let with = |change: fn(&mut Entry)| {
        let mut one = file("a");
        change(&mut one);
        one
    };
    let deep: Vec<String> = (1..=MAX_TREE_DEPTH + 1).map(|n| vec!["d"; n].join("/")).collect();
    let mut too_deep = vec![top()];
    too_deep.extend(deep.iter().map(|path| dir(path)));
    for (why, entries) in [
        ("nothing", vec![]),
        ("no top", vec![file("a")]),
        ("a top that is a file", vec![file("")]),
        ("twice", vec![top(), file("a"), file("a")]),
        ("out of order", vec![top(), file("b"), file("a")]),
        ("two tops", vec![top(), top()]),
        ("above", vec![top(), file("..")]),
        ("above from within", vec![top(), dir("a"), file("a/..")]),
        ("itself", vec![top(), file(".")]),
        ("absolute", vec![top(), file("/etc")]),
        ("a slash at the end", vec![top(), dir("a"), file("a/")]),
        ("below what is not there", vec![top(), file("a/b")]),
        ("below a file", vec![top(), file("a"), file("a/b")]),
        ("below a link", vec![top(), entry("a", Node::Link(b"/".to_vec())), file("a/b")]),
        ("below a sibling", vec![top(), dir("a"), dir("b"), file("a/c")]),
        ("another name of a directory", vec![top(), dir("a"), entry("b", Node::Again(1))]),
        ("another name of itself", vec![top(), entry("a", Node::Again(1))]),
        ("another name of a later one", vec![top(), entry("a", Node::Again(2)), file("b")]),
        ("another name of nothing", vec![top(), file("a"), entry("b", Node::Again(9))]),
        ("a NUL", vec![top(), file("a\0")]),
        ("a link to nowhere", vec![top(), entry("a", Node::Link(Vec::new()))]),
        ("a long name", vec![top(), file(&"x".repeat(256))]),
        ("odd permissions", vec![top(), with(|one| one.mode = 0o100_644)]),
        ("an odd time", vec![top(), with(|one| one.modified.1 = 1_000_000_000)]),
        (
            "an attribute of others",
            vec![top(), with(|one| one.attributes = vec![(b"security.x".to_vec(), vec![])])],
        ),
        ("too deep", too_deep),
    ] {
        assert!(Tree::new(entries).is_err(), "{why}");
    }
    let mut deepest = vec![top()];
    deepest.extend(deep.iter().take(MAX_TREE_DEPTH).map(|path| dir(path)));
    assert!(Tree::new(deepest).is_ok());
}

proptest! {
    #[test]
    fn no_bytes_make_it_break_off(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        // With a right sum, so that what is behind it is reached.
        let mut all = [&LEAD[..], &bytes].concat();
        let sum = Sha256::digest(&all);
        all.extend(sum);
        if let Ok(tree) = Tree::decode(&all) {
            prop_assert_eq!(tree.encode().unwrap(), all);
        }
    }
}

#[test]
fn a_tree_that_nobody_would_read_again_is_not_written() {
    assert!(check_size(MAX_TREE_BYTES).is_ok());
    assert_eq!(check_size(MAX_TREE_BYTES + 1).unwrap_err().kind, ErrorKind::TooLarge);
}
