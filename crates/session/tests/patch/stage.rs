//! Trees in memory, and plans carried out on them as strictly as a disk would.

use cofferdam_core::GuestPath;
use cofferdam_session::patch::{
    Change, Executable, HunkOutcome, Node, Patch, PatchOutcome, PatchPlan, PatchRefusalKind,
    PatchReport, Tree,
};
use std::collections::BTreeSet;

pub(crate) fn path(text: impl AsRef<[u8]>) -> GuestPath {
    GuestPath::new(text).unwrap()
}

pub(crate) fn file(content: impl AsRef<[u8]>) -> Node {
    Node::File { content: content.as_ref().into(), executable: Executable::No }
}

pub(crate) fn program(content: impl AsRef<[u8]>) -> Node {
    Node::File { content: content.as_ref().into(), executable: Executable::Yes }
}

pub(crate) fn link(target: impl AsRef<[u8]>) -> Node {
    Node::Link { target: target.as_ref().into() }
}

pub(crate) fn tree(nodes: &[(&str, Node)]) -> Tree {
    nodes.iter().map(|(name, node)| (path(name), node.clone())).collect()
}

pub(crate) fn files(contents: &[(&str, &str)]) -> Tree {
    contents.iter().map(|(name, content)| (path(name), file(content))).collect()
}

/// What a file service would find at the paths of a patch.
pub(crate) fn looked_up(patch: &Patch, tree: &Tree) -> Tree {
    let listed = patch.directories();
    let mut found = Tree::new();
    for path in patch.paths() {
        if let Some(node) = tree.get(&path) {
            found.insert(path, node.clone());
            continue;
        }
        let is_below = |other: &&GuestPath| other.ancestors().any(|above| above == path);
        let below: BTreeSet<GuestPath> = tree.keys().filter(is_below).cloned().collect();
        if !below.is_empty() {
            let below = listed.contains(&path).then_some(below);
            found.insert(path, Node::Directory { below });
        }
    }
    found
}

pub(crate) fn plan(text: impl AsRef<[u8]>, tree: &Tree) -> PatchPlan {
    let patch = Patch::parse(text.as_ref()).unwrap();
    patch.plan(&looked_up(&patch, tree))
}

pub(crate) fn plan_reversed(text: impl AsRef<[u8]>, tree: &Tree) -> PatchPlan {
    let patch = Patch::parse(text.as_ref()).unwrap().reversed().unwrap();
    patch.plan(&looked_up(&patch, tree))
}

/// The tree with the plan carried out. Every change has to be possible when its turn comes.
pub(crate) fn carried_out(plan: &PatchPlan, tree: &Tree) -> Tree {
    let mut tree = tree.clone();
    let free_way = |tree: &Tree, path: &GuestPath| {
        let closed = path.ancestors().find(|above| tree.contains_key(above));
        assert_eq!(closed, None, "on the way to {path:?}");
        let below = tree.keys().find(|other| other.ancestors().any(|above| above == *path));
        assert_eq!(below, None, "below {path:?}");
    };
    for change in &plan.changes {
        match change {
            Change::Rename { from, to } => {
                assert!(!tree.contains_key(to), "{to:?} is in the way");
                free_way(&tree, to);
                let node = tree.remove(from).expect("what is renamed is there");
                tree.insert(to.clone(), node);
            }
            Change::Remove { path } => {
                tree.remove(path).expect("what is removed is there");
            }
            Change::RemoveDirectory { path } => free_way(&tree, path),
            Change::Write { path, content, executable } => {
                free_way(&tree, path);
                let node = Node::File { content: content.clone(), executable: *executable };
                assert_ne!(tree.insert(path.clone(), node.clone()), Some(node), "{path:?}");
            }
            Change::Link { path, target } => {
                free_way(&tree, path);
                tree.insert(path.clone(), Node::Link { target: target.clone() });
            }
            Change::SetExecutable { path, executable } => {
                let Some(Node::File { executable: present, .. }) = tree.get_mut(path) else {
                    panic!("{path:?} is no file");
                };
                assert_ne!(present, executable, "{path:?}");
                *present = *executable;
            }
        }
    }
    tree
}

/// Applied to `before`, the patch makes `after`; reversed, it makes `before` again.
pub(crate) fn check(text: impl AsRef<[u8]>, before: &Tree, after: &Tree) -> PatchReport {
    let text = text.as_ref();
    let report = check_forward(text, before, after);
    let back = plan_reversed(text, after);
    assert_eq!(back.report.outcome, PatchOutcome::Fits, "reversed: {:#?}", back.report);
    assert!(back.report.reversed);
    assert_eq!(&carried_out(&back, after), before, "reversed");
    report
}

/// Applied to `before`, the patch makes `after`.
pub(crate) fn check_forward(text: impl AsRef<[u8]>, before: &Tree, after: &Tree) -> PatchReport {
    let plan = plan(text, before);
    assert_eq!(plan.report.outcome, PatchOutcome::Fits, "{:#?}", plan.report);
    assert_eq!(&carried_out(&plan, before), after);
    plan.report
}

/// The patch is understood and refused, and nothing is to be done.
pub(crate) fn check_refused(text: impl AsRef<[u8]>, before: &Tree) -> PatchReport {
    let plan = plan(text, before);
    assert_eq!(plan.report.outcome, PatchOutcome::Refused, "{:#?}", plan.report);
    assert_eq!(plan.changes, []);
    plan.report
}

pub(crate) fn hunk_outcomes(report: &PatchReport) -> Vec<HunkOutcome> {
    report.files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.outcome).collect()
}

pub(crate) fn refusals(report: &PatchReport) -> Vec<Option<PatchRefusalKind>> {
    report.files.iter().map(|file| file.refusal.as_ref().map(|refusal| refusal.kind)).collect()
}

/// Numbered lines, from 1.
pub(crate) fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}
