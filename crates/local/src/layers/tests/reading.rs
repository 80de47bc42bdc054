//! What a layer says of itself.

use super::stage::{Stage, overlays, path, ways};
use cofferdam_core::files::EntryKind;
use cofferdam_core::{ErrorKind, Side};

const WORKSPACE: &str = "
    mkdir -p d/e gone/below
    printf a >a; printf b >b; printf x >d/x; printf y >d/e/y
    printf 1 >gone/one; printf 2 >gone/below/two
    ln -s a link; printf '#!/bin/sh' >run; chmod 755 run
    printf f >typed; mkdir full; printf z >full/z";

#[test]
fn every_sort_of_change_is_told() {
    for way in ways() {
        let stage = Stage::new("reading", way, WORKSPACE);
        stage.inside(
            "printf changed >a; chmod 600 b; printf n >new; mkdir -p made/deep; printf m >made/deep/m
             rm -r gone; ln -sfn b link; rm typed; mkdir typed; printf t >typed/t
             rm -r full; printf now-a-file >full; chmod 700 d",
        );
        let expected = [
            "m a",
            "m b",
            "m d",
            "m full",
            "r full/z",
            "r gone",
            "r gone/below",
            "r gone/below/two",
            "r gone/one",
            "m link",
            "a made",
            "a made/deep",
            "a made/deep/m",
            "a new",
            "m typed",
            "a typed/t",
        ];
        assert_eq!(stage.shown(), expected, "{way:?}");
    }
}

#[test]
fn what_was_written_and_is_as_before_is_no_change() {
    for way in ways() {
        let stage = Stage::new("same", way, WORKSPACE);
        stage.inside("printf q >a; printf a >a; chmod 600 b; chmod 644 b; touch d/x; chmod 755 d");
        assert_eq!(stage.shown(), [""; 0], "{way:?}");
        // The control: they are in the layer.
        for copied in ["a", "b", "d/x"] {
            assert!(stage.cow().join("upper").join(copied).exists(), "{copied}");
        }
    }
}

#[test]
fn a_directory_made_anew_hides_what_was_in_it() {
    for way in ways() {
        let stage = Stage::new("opaque", way, WORKSPACE);
        stage.inside("rm -r d; mkdir d; printf new >d/new; printf x >d/x");
        assert_eq!(stage.shown(), ["r d/e", "r d/e/y", "a d/new"], "{way:?}");
    }
}

#[test]
fn whiteouts_by_attribute_count_too() {
    for way in overlays() {
        let stage = Stage::new("whiteout-xattr", way, WORKSPACE);
        let upper = stage.cow().join("upper");
        std::fs::write(upper.join("a"), "").unwrap();
        let prefix = way.prefix();
        let set = |file: &str, name: &str, value: &str| {
            let name = format!("{prefix}.overlay.{name}");
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(upper.join(file), name, value.as_bytes(), flags).unwrap();
        };
        set("a", "whiteout", "");
        set(".", "opaque", "x");
        assert_eq!(stage.shown(), ["r a"], "{way:?}");
        std::fs::write(upper.join("b"), "").unwrap();
        assert_eq!(stage.shown(), ["r a", "m b"], "an empty file without the mark is a file");
    }
}

#[test]
fn a_moved_file_and_a_second_name_are_told() {
    for way in ways() {
        let stage = Stage::new("moved", way, WORKSPACE);
        stage.inside(
            "mv run walk; ln b b2; ln -s /etc/passwd out; ln -s d/x in; printf s >s; chmod 4755 s",
        );
        let changes = stage.changes();
        let of = |name: &str| changes.iter().find(|change| change.path == path(name)).unwrap();
        assert_eq!(of("walk").moved_from, Some(path("run")));
        assert_eq!(of("b2").linked_to, Some(path("b")));
        assert!(of("out").leads_out && !of("in").leads_out);
        assert!(of("s").set_id && of("s").after.as_ref().unwrap().mode == 0o755);
        assert_eq!(of("out").after.as_ref().unwrap().kind, EntryKind::Link);
        // Two names that are one file now are a change of both.
        assert_eq!(stage.shown(), ["m b", "a b2", "a in", "a out", "r run", "a s", "a walk"]);
    }
}

#[test]
fn a_scope_is_all_that_is_looked_at() {
    for way in ways() {
        let stage = Stage::new("scope", way, WORKSPACE);
        stage.inside("printf 1 >a; printf 2 >d/x; printf 3 >d/e/y; mkdir n; printf 4 >n/n");
        let changed = |scope: &[&str]| -> Vec<String> {
            let scope: Vec<_> = scope.iter().map(path).collect();
            let all = stage.layer().changes(&scope).unwrap();
            all.iter().map(|change| change.path.to_string()).collect()
        };
        assert_eq!(changed(&["d"]), ["d/e/y", "d/x"]);
        assert_eq!(changed(&["d/e/y", "a"]), ["a", "d/e/y"]);
        assert_eq!(changed(&["n/n"]), ["n/n"]);
        assert_eq!(changed(&["nothing"]), [""; 0]);
    }
}

#[test]
fn contents_are_read_within_a_limit() {
    for way in ways() {
        let stage = Stage::new("contents", way, WORKSPACE);
        stage.inside("printf changed >a; mkfifo pipe");
        let layer = stage.layer();
        assert_eq!(layer.file(Side::Before, &path("a"), 7).unwrap(), b"a");
        assert_eq!(layer.file(Side::After, &path("a"), 7).unwrap(), b"changed");
        let refused =
            |side, name: &str, most| layer.file(side, &path(name), most).unwrap_err().kind;
        assert_eq!(refused(Side::After, "a", 6), ErrorKind::TooLarge);
        assert_eq!(refused(Side::After, "nothing", 6), ErrorKind::NotFound);
        assert_eq!(refused(Side::After, "pipe", 6), ErrorKind::NotAFile);
        assert_eq!(refused(Side::Before, "d", 6), ErrorKind::NotAFile);
    }
}
