//! What is dropped from a layer.

use super::stage::{Stage, Way, path, ways};
use cofferdam_core::ErrorKind;

const WORKSPACE: &str = "
    mkdir -p d/e gone/below; printf a >a; printf x >d/x; printf y >d/e/y; printf 1 >gone/one
    printf f >typed; mkdir full; printf z >full/z";
const WORK: &str = "
    printf s >a; rm -r gone; rm -r d; mkdir d; printf n >d/n; printf s >d/x; rm typed; mkdir typed
    printf t >typed/t; rm -r full; printf f >full; mkdir -p new/deep; printf m >new/deep/m";

#[test]
fn without_its_changes_a_session_sees_the_workspace() {
    for way in ways() {
        let stage = Stage::new("discard", way, WORKSPACE);
        stage.inside(WORK);
        let real = stage.real();
        stage.layer().discard(&[]).unwrap();
        assert_eq!(stage.shown(), [""; 0]);
        stage.inside("true");
        assert_eq!(stage.saw(), real);
        assert_eq!(stage.real(), real, "the workspace is not touched");
        // And it is a layer still.
        stage.inside("printf again >a");
        assert_eq!(stage.shown(), ["m a"]);
    }
}

#[test]
fn a_part_is_dropped_and_the_rest_stays() {
    for way in ways() {
        let stage = Stage::new("discard-part", way, WORKSPACE);
        stage.inside(WORK);
        for name in ["a", "gone", "typed", "full", "new/deep", "d"] {
            let all = stage.shown();
            stage.layer().discard(&[path(name)]).unwrap();
            let is_below = |line: &&String| {
                let rest = line[2..].strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let rest: Vec<String> = all.iter().filter(|line| !is_below(line)).cloned().collect();
            assert!(rest.len() < all.len(), "{name}");
            assert_eq!(stage.shown(), rest, "{name}");
        }
        assert_eq!(stage.shown(), ["a new"]);
        stage.layer().discard(&[path("nothing/there")]).unwrap();
        let mut left =
            std::fs::read_dir(stage.cow()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(!left.any(|name| name.to_string_lossy().starts_with("discarded-")));
    }
}

#[test]
fn what_is_hidden_by_something_above_is_dropped_with_it_alone() {
    for way in ways() {
        let stage = Stage::new("discard-hidden", way, WORKSPACE);
        stage.inside(WORK);
        // A copy knows that the directory that was made anew is of the same name.
        let of_tier: &[_] = match way {
            Way::Copy => &[("d/e/y", "d/e")],
            Way::User | Way::Trusted => &[("d/e/y", "d"), ("d/x", "d")],
        };
        for (name, above) in [("gone/one", "gone"), ("full/z", "full")].iter().chain(of_tier) {
            let before = stage.shown();
            let error = stage.layer().discard(&[path("a"), path(name)]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Conflict, "{name}");
            assert!(error.hint.unwrap().contains(&format!("{above:?}")));
            assert_eq!(stage.shown(), before, "none of it");
        }
        // The control: beside it one can go.
        stage.layer().discard(&[path("d/n")]).unwrap();
        assert!(!stage.shown().contains(&"a d/n".to_owned()));
    }
}

#[test]
fn a_tree_without_end_is_refused_and_dropped() {
    for way in ways() {
        let stage = Stage::new("discard-endless", way, WORKSPACE);
        stage.inside(
            "printf s >a; i=0; while [ $i -lt 300 ]; do mkdir d$i; cd d$i; i=$((i+1)); done",
        );
        let error = stage.layer().changes(&[]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        assert!(error.message.contains("128 levels"), "{error}");
        let all = stage.layer().changes(&[path("a")]).unwrap();
        assert_eq!(all.len(), 1, "the control: another path is looked at");
        assert_eq!(stage.try_apply(&[]).unwrap_err().kind, ErrorKind::TooLarge);
        stage.apply(&["a"]);
        stage.layer().discard(&[path("d0")]).unwrap();
        assert_eq!(stage.shown(), [""; 0]);
    }
}
