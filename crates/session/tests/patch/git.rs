//! Whatever git says is between two trees leads from one to the other, and back.

use crate::history::Repository;
use crate::stage::{carried_out, looked_up, path};
use cofferdam_core::GuestPath;
use cofferdam_session::patch::{Executable, Node, Patch, PatchOutcome, Tree};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::cell::OnceCell;

/// Names that git quotes, that look like prefixes, that are files here and directories there.
const NAMES: [&[u8]; 16] = [
    b"x",
    b"y",
    b"x y",
    b"x y z",
    b"end ",
    b"a/x",
    b"b/x",
    b"b",
    b"d/e/x",
    b"d/e",
    b"d/y",
    b"tab\tquote\"back\\slash",
    b"new\nline",
    "caf\u{e9}".as_bytes(),
    b"\xff\xfe",
    b"dev/null",
];

/// Lines that occur again and again, and such that look like a patch's own.
const LINES: [&[u8]; 20] = [
    b"a",
    b"b",
    b"c",
    b"d",
    b"e",
    b"f",
    b"",
    b" ",
    b"}",
    b"-- ",
    b"--- a/x",
    b"+++ b/x",
    b"@@ -1 +1 @@",
    b"\\ No newline at end of file",
    b"diff --git a/x b/x",
    b"*** Begin Patch",
    b"\x00\xff",
    b"\r",
    b"-",
    b"+",
];

/// How `git diff` is asked. Not for `-B` and renames at once: that leaves a deletion out where a
/// renamed file takes the place of another, and git itself does not apply it.
const WAYS: [&[&str]; 10] = [
    &[],
    &["-M"],
    &["-M", "-C", "--find-copies-harder"],
    &["-B", "--no-renames"],
    &["-M", "-C", "-U1"],
    &["-U1", "--no-renames"],
    &["--no-prefix", "-M"],
    &["--src-prefix=old/", "--dst-prefix=new/", "-C"],
    &["--full-index", "--patience", "-U7", "-M10%"],
    &["--inter-hunk-context=3", "-M20%", "-C20%", "--find-copies-harder"],
];

/// What is done to a tree to make another.
#[derive(Debug, Clone)]
enum Edit {
    Put(&'static [u8], Node),
    Remove(Index),
    Rename(Index, &'static [u8]),
    Copy(Index, &'static [u8]),
    Swap(Index, Index),
    Lines(Index, Index, usize, Vec<&'static [u8]>),
    Execution(Index),
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let endings = prop_oneof![
        6 => Just(vec![&b"\n"[..]]),
        2 => Just(vec![&b"\r\n"[..]]),
        1 => Just(vec![&b"\n"[..], b"\r\n"]),
    ];
    (proptest::collection::vec(select(&LINES[..]), 0..30), endings, any::<bool>()).prop_map(
        |(lines, endings, ends)| {
            let mut bytes = Vec::new();
            for (line, ending) in lines.iter().zip(endings.iter().cycle()) {
                bytes.extend_from_slice(line);
                bytes.extend_from_slice(ending);
            }
            if !ends && bytes.ends_with(b"\n") {
                bytes.pop();
            }
            bytes
        },
    )
}

fn node() -> impl Strategy<Value = Node> {
    let executable = prop_oneof![3 => Just(Executable::No), 1 => Just(Executable::Yes)];
    prop_oneof![
        8 => (content(), executable).prop_map(|(content, executable)| Node::File {
            content: content.into(),
            executable,
        }),
        1 => select(vec![&b"x"[..], b"d/e", b"caf\xe9", b"long/target/of/a/link"])
            .prop_map(|target| Node::Link { target: target.into() }),
    ]
}

fn name() -> impl Strategy<Value = &'static [u8]> {
    select(&NAMES[..])
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    let lines = proptest::collection::vec(select(&LINES[..]), 0..4);
    prop_oneof![
        2 => (name(), node()).prop_map(|(name, node)| Edit::Put(name, node)),
        1 => index().prop_map(Edit::Remove),
        2 => (index(), name()).prop_map(|(from, to)| Edit::Rename(from, to)),
        2 => (index(), name()).prop_map(|(from, to)| Edit::Copy(from, to)),
        1 => (index(), index()).prop_map(|(one, other)| Edit::Swap(one, other)),
        5 => (index(), index(), 0_usize..4, lines)
            .prop_map(|(file, at, gone, lines)| Edit::Lines(file, at, gone, lines)),
        1 => index().prop_map(Edit::Execution),
    ]
}

/// Puts a node somewhere; what cannot be beside it goes.
fn put(tree: &mut Tree, path: GuestPath, node: Node) {
    tree.retain(|other, _| {
        let below = other.ancestors().any(|above| above == path);
        !below && !path.ancestors().any(|above| above == *other)
    });
    tree.insert(path, node);
}

fn edited(mut tree: Tree, edits: &[Edit]) -> Tree {
    for edit in edits {
        if let Edit::Put(name, node) = edit {
            put(&mut tree, path(name), node.clone());
        }
        let names: Vec<GuestPath> = tree.keys().cloned().collect();
        if names.is_empty() {
            continue;
        }
        match edit {
            Edit::Put(..) => {}
            Edit::Remove(at) => drop(tree.remove(at.get(&names))),
            Edit::Rename(from, to) => {
                let node = tree.remove(from.get(&names)).unwrap();
                put(&mut tree, path(to), node);
            }
            Edit::Copy(from, to) => {
                let node = tree[from.get(&names)].clone();
                put(&mut tree, path(to), node);
            }
            Edit::Swap(one, other) => {
                let (one, other) = (one.get(&names), other.get(&names));
                let (first, second) = (tree[one].clone(), tree[other].clone());
                tree.insert(one.clone(), second);
                tree.insert(other.clone(), first);
            }
            Edit::Lines(file, at, gone, new) => {
                if let Some(Node::File { content, .. }) = tree.get_mut(file.get(&names)) {
                    let mut lines: Vec<&[u8]> = content.split_inclusive(|b| *b == b'\n').collect();
                    let at = at.index(lines.len() + 1);
                    let new: Vec<Vec<u8>> =
                        new.iter().map(|line| [line, &b"\n"[..]].concat()).collect();
                    let end = (at + gone).min(lines.len());
                    lines.splice(at..end, new.iter().map(Vec::as_slice));
                    *content = lines.concat().into();
                }
            }
            Edit::Execution(file) => {
                if let Some(Node::File { executable, .. }) = tree.get_mut(file.get(&names)) {
                    *executable = match executable {
                        Executable::No => Executable::Yes,
                        Executable::Yes => Executable::No,
                    };
                }
            }
        }
    }
    tree
}

fn trees() -> impl Strategy<Value = (Tree, Tree, Tree)> {
    let edits = || proptest::collection::vec(edit(), 0..7);
    let first = proptest::collection::vec((name(), node()), 0..8);
    (first, edits(), edits()).prop_map(|(nodes, edits, more)| {
        let mut first = Tree::new();
        nodes.into_iter().for_each(|(name, node)| put(&mut first, path(name), node));
        let second = edited(first.clone(), &edits);
        let third = edited(second.clone(), &more);
        (first, second, third)
    })
}

/// The patch leads from one tree to the other, and back.
fn leads(text: &[u8], before: &Tree, after: &Tree) -> Result<(), TestCaseError> {
    let shown = || String::from_utf8_lossy(text).into_owned();
    if text.is_empty() {
        prop_assert_eq!(before, after);
        return Ok(());
    }
    let patch = Patch::parse(text)
        .map_err(|error| TestCaseError::fail(format!("{}\n{}", error.message, shown())))?;
    let plan = patch.plan(&looked_up(&patch, before));
    prop_assert_eq!(plan.report.outcome, PatchOutcome::Fits, "{:#?}\n{}", plan.report, shown());
    prop_assert_eq!(&carried_out(&plan, before), after, "{}", shown());
    let back = patch.reversed().unwrap();
    let plan = back.plan(&looked_up(&back, after));
    prop_assert_eq!(
        plan.report.outcome,
        PatchOutcome::Fits,
        "back: {:#?}\n{}",
        plan.report,
        shown()
    );
    prop_assert_eq!(&carried_out(&plan, after), before, "back: {}", shown());
    Ok(())
}

thread_local! {
    /// One repository for all cases of a test.
    static REPOSITORY: OnceCell<Option<Repository>> = const { OnceCell::new() };
}

fn in_repository(
    work: impl FnOnce(&Repository) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    REPOSITORY.with(|repository| match repository.get_or_init(Repository::new) {
        Some(repository) => work(repository),
        None => Ok(()),
    })
}

proptest! {
    // Each case starts git several times.
    #![proptest_config(ProptestConfig { cases: 80, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_of_git_leads_from_any_tree_to_any_other_and_back(
        (before, after, _) in trees(),
        way in select(&WAYS[..]),
    ) {
        in_repository(|repository| {
            repository.store(&[("before", &before), ("after", &after)]);
            leads(&repository.diff(way, "before", "after"), &before, &after)
        })?;
    }

    #[test]
    fn a_series_of_diffs_leads_from_the_first_tree_to_the_last_and_back(
        (first, second, third) in trees(),
        way in select(&WAYS[..6]),
    ) {
        in_repository(|repository| {
            repository.store(&[("first", &first), ("second", &second), ("third", &third)]);
            let mail = format!("From {} Mon Sep 17 00:00:00 2001\n\nText\n---\n", "1a".repeat(20));
            let diffs = [
                mail.as_bytes(),
                &repository.diff(way, "first", "second"),
                b"-- \n2.47.3\n\n",
                mail.as_bytes(),
                &repository.diff(way, "second", "third"),
                b"-- \n2.47.3\n\n",
            ];
            if second != first || second != third {
                leads(&diffs.concat(), &first, &third)?;
            }
            Ok(())
        })?;
    }
}
