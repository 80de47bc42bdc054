//! What is dropped from a layer.

use super::stage::{Stage, Way, path, ways};
use cofferdam_core::ErrorKind;
use std::os::unix::fs::PermissionsExt;

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

/// For an ordinary user: root may write everywhere.
#[test]
fn directories_that_nobody_may_write_give_up_what_they_have() {
    for way in ways() {
        let stage = Stage::new("discard-closed", way, WORKSPACE);
        stage.inside(
            "printf s >d/x; printf s >d/e/y; mkdir -p new/deep; printf m >new/deep/m
            chmod 555 new/deep new d/e d .",
        );
        let mode = |name: &str| {
            let found = std::fs::metadata(stage.cow().join("upper").join(name)).unwrap();
            found.permissions().mode() & 0o7777
        };
        assert_eq!([mode("."), mode("d"), mode("d/e")], [0o555; 3], "the control");
        stage.layer().discard(&[path("d/x"), path("new/deep")]).unwrap();
        assert_eq!([mode("."), mode("d"), mode("new")], [0o555; 3], "{way:?}");
        assert!(!stage.cow().join("upper/new/deep").exists());
        stage.layer().discard(&[]).unwrap();
        assert_eq!(stage.shown(), [""; 0], "{way:?}");
        assert_eq!(mode("."), 0o555);
    }
}

#[test]
fn a_conflict_ends_with_what_is_discarded() {
    for way in ways() {
        for (inside, meanwhile, name, conflict) in [
            ("printf s >a", "printf mine >a", "a", "m a (changed)"),
            ("rm a", "printf mine >a", "a", "r a (changed)"),
            ("printf s >new", "printf mine >new", "new", "m new (changed)"),
            ("printf s >d/e/y", "mv d/e old; cp -r old d/e", "d/e/y", "m d/e/y (changed)"),
            (
                "printf s >d/e/y",
                "cp -r d/e e; sleep 0.02; mv d/e old; mv e d/e",
                "d/e/y",
                "m d/e/y (directory_moved)",
            ),
            ("printf s >d/x", "rm d/x", "d/x", "a d/x (gone)"),
        ] {
            let stage = Stage::new("discard-conflict", way, WORKSPACE);
            stage.inside(&format!("{inside}; printf s >typed"));
            stage.outside(meanwhile);
            let told = || stage.shown().contains(&conflict.to_owned());
            assert!(told(), "{way:?} {meanwhile} {:?}", stage.shown());
            stage.wait_for_a_later_time();
            stage.layer().discard(&[path(name)]).unwrap();
            assert_eq!(stage.shown(), ["m typed"], "{way:?} {meanwhile}");
            // What it makes of what it sees now lands.
            stage.inside(&format!("printf again >{name}"));
            stage.apply(&[name]);
            let real = stage.real();
            assert_eq!(real[name].1, b"again", "{way:?} {meanwhile} {:?}", stage.shown());
            // The control: what changes from now on is a conflict again.
            stage.inside(&format!("printf more >{name}"));
            stage.outside(&format!("printf mine >{name}"));
            assert!(stage.shown().contains(&format!("m {name} (changed)")), "{way:?} {meanwhile}");
        }
    }
}

#[test]
fn what_was_discarded_counts_for_the_layer_that_it_was_dropped_from_and_for_that_path_alone() {
    for way in ways() {
        let stage = Stage::new("discard-other", way, WORKSPACE);
        stage.inside("printf s >a; printf s >d/x");
        stage.outside("printf mine >a; printf mine >d/x");
        stage.wait_for_a_later_time();
        stage.layer().discard(&[path("a")]).unwrap();
        stage.inside("printf again >a");
        assert_eq!(stage.shown(), ["m a", "m d/x (changed)"], "{way:?}");
        // An earlier state of the layer was made of an earlier workspace.
        let upper = stage.cow().join("upper");
        let kept = upper.with_extension("kept");
        std::fs::rename(&upper, &kept).unwrap();
        let copy = std::process::Command::new("cp").args(["-a"]).args([&kept, &upper]).status();
        assert!(copy.unwrap().success());
        assert!(stage.shown().contains(&"m a (changed)".to_owned()), "{:?}", stage.shown());
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
