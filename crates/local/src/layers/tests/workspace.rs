//! What the workspace itself has, below a layer that hides it.

use super::stage::{Stage, path, ways};
use crate::layers::workspace::Looking;
use cofferdam_core::{ErrorKind, GuestPath, WorkspaceEntry, WorkspaceOrder};
use std::collections::BTreeMap;

fn shown(found: &BTreeMap<GuestPath, WorkspaceEntry>) -> Vec<String> {
    found.iter().map(|(path, entry)| format!("{} {path}", entry.state.kind.name())).collect()
}

#[test]
fn it_is_told_what_the_workspace_has_whatever_the_layer_hides() {
    for way in ways() {
        let prepared = "mkdir -p d/e out; echo abc >d/e/f; ln d/e/f d/g; ln -s ../out d/link; \
                            echo hidden >out/h";
        let stage = Stage::new("workspace-look", way, prepared);
        stage.inside("rm -r d; echo d >d");
        let order = WorkspaceOrder {
            at: [path("d"), path("nothing"), path("d/link/h")].into(),
            below: [path("d"), path("d/link"), path("nothing")].into(),
            hashed: [(path("d/e/f"), 4), (path("d/g"), 5)].into(),
        };
        let found = stage.layer().look_at_workspace(&order).unwrap();
        let expected = ["directory d", "directory d/e", "file d/e/f", "file d/g", "link d/link"];
        assert_eq!(shown(&found), expected, "nothing is reached through a link");
        let (one, other) = (&found[&path("d/e/f")], &found[&path("d/g")]);
        assert_eq!(one.identity, other.identity);
        let sum = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb";
        assert_eq!(one.sha256.map(cofferdam_core::hexadecimal).as_deref(), Some(sum));
        assert_eq!(other.sha256, None, "it is of another size");
    }
}

#[test]
fn there_is_a_limit_of_what_is_looked_at() {
    for way in ways() {
        let stage = Stage::new("workspace-limit", way, "mkdir d; touch d/1 d/2 d/3 d/4");
        let (layer, order) = (stage.layer(), WorkspaceOrder::default());
        let looking = |most| Looking { layer: &layer, order: &order, most, found: BTreeMap::new() };
        assert_eq!(looking(3).below(&path("d")).unwrap_err().kind, ErrorKind::TooLarge);
        looking(4).below(&path("d")).unwrap();
    }
}
