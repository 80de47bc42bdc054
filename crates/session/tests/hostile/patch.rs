//! What must hold for any bytes that are handed over as a patch. Shared with the fuzz targets.

use cofferdam_core::GuestPath;
use cofferdam_session::patch::{Executable, Node, Patch, PatchOutcome, PatchPlan, Tree};

/// Any bytes are a patch or refused. What a patch makes of files is done whole or not at all, stays
/// in the workspace and outside of repositories, and is taken back by the reversed patch.
pub(crate) fn patch(text: &[u8], content: &[u8]) {
    let Ok(patch) = Patch::parse(text) else { return };
    for path in patch.paths() {
        assert!(path.names().all(|name| name != b".." && !name.eq_ignore_ascii_case(b".git")));
    }
    let nothing = Tree::new();
    let some: Tree = patch.paths().into_iter().map(|path| (path, file(content))).collect();
    let named: Tree = some.iter().filter(|(path, _)| is_leaf(&patch, path)).map(clone).collect();
    for tree in [&nothing, &some, &named] {
        look(&patch, tree);
        if let Ok(back) = patch.clone().reversed() {
            look(&back, tree);
            let again = back.reversed().map(|again| again.plan(tree)).ok();
            assert_eq!(again, Some(patch.plan(tree)));
        }
    }
}

fn clone((path, node): (&GuestPath, &Node)) -> (GuestPath, Node) {
    (path.clone(), node.clone())
}

fn file(content: &[u8]) -> Node {
    Node::File { content: content.into(), executable: Executable::No }
}

/// Whether no other file of the patch lies below it.
fn is_leaf(patch: &Patch, path: &GuestPath) -> bool {
    !patch.paths().iter().any(|other| other.ancestors().any(|above| above == *path))
}

fn look(patch: &Patch, tree: &Tree) {
    let PatchPlan { changes, report } = patch.plan(tree);
    match report.outcome {
        PatchOutcome::Fits => {
            assert!(report.files.iter().all(|file| file.outcome == PatchOutcome::Fits));
            assert!(report.files.iter().all(|file| file.refusal.is_none()));
        }
        PatchOutcome::AlreadyApplied | PatchOutcome::Refused => assert_eq!(changes, []),
    }
    assert_eq!(patch.plan(tree), PatchPlan { changes, report }, "the same plan each time");
}
