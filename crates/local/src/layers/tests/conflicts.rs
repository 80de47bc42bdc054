//! What changed in the workspace since the sandbox began is told, and stays.

use super::stage::{Stage, Way, path, shown, ways};
use cofferdam_core::ApplyOrder;

const WORKSPACE: &str = "
    mkdir -p d/e other/e full
    printf a >a; printf b >b; printf x >d/x; printf y >d/e/y; printf o >other/e/y
    printf z >full/z; printf 1 >moved";

/// Shows what is told of a layer whose workspace changed, and that applying it keeps what the
/// workspace has.
fn check(name: &str, inside: &str, meanwhile: &str, expected: &[&str]) {
    check_tiers(name, inside, meanwhile, [expected, expected]);
}

/// The same where an overlay tells more than a copy: it brings the directories on the way, which the
/// sandbox did not change.
fn check_tiers(name: &str, inside: &str, meanwhile: &str, [overlay, copy]: [&[&str]; 2]) {
    for way in ways() {
        let expected = if way == Way::Copy { copy } else { overlay };
        let stage = Stage::new(&format!("conflict-{name}"), way, WORKSPACE);
        stage.inside(inside);
        stage.outside(meanwhile);
        let before = stage.real();
        assert_eq!(stage.shown(), expected, "{name} {way:?}");
        let report = stage.apply(&[]);
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        let conflicts: Vec<&str> =
            expected.iter().copied().filter(|line| line.ends_with(')')).collect();
        assert_eq!(kept.len(), expected.len() - report.applied.len());
        assert!(conflicts.iter().all(|line| kept.contains(&(*line).to_owned())), "{kept:?}");
        let after = stage.real();
        for change in &report.kept {
            let path = change.path.to_string();
            assert_eq!(after.get(&path), before.get(&path), "{name} {path}");
        }
    }
}

#[test]
fn a_file_that_was_edited_stays_as_it_is() {
    check("edited", "printf s >a; printf s >b", "printf mine >a", &["m a (changed)", "m b"]);
    check("permissions", "printf s >a", "chmod 600 a", &["m a (changed)"]);
    check("replaced", "printf s >a", "mv moved a", &["m a (changed)"]);
    check("removing", "rm a b", "printf mine >a", &["r a (changed)", "r b"]);
    check("made", "printf s >new", "printf mine >new", &["m new (changed)"]);
    check("typed", "printf s >a", "rm a; mkdir a", &["m a (changed)"]);
}

#[test]
fn nothing_that_was_removed_comes_back() {
    check("removed", "printf s >a; printf s >b", "rm a", &["a a (gone)", "m b"]);
    check("below", "printf s >d/x", "rm d/x", &["a d/x (gone)"]);
    check_tiers(
        "directory",
        "printf s >d/e/y; printf s >d/new",
        "rm -r d/e",
        [
            &["a d/e (directory_gone)", "a d/e/y (directory_gone)", "a d/new"],
            &["a d/e/y (directory_gone)", "a d/new"],
        ],
    );
    check_tiers(
        "everything",
        "printf s >d/e/new",
        "rm -r d",
        [
            &["a d (directory_gone)", "a d/e (directory_gone)", "a d/e/new (directory_gone)"],
            &["a d/e/new (directory_gone)"],
        ],
    );
}

#[test]
fn a_directory_that_was_exchanged_is_another_one() {
    check(
        "exchanged",
        "printf s >d/e/y",
        "mv d/e d/f; mv other/e d/e",
        &["m d/e/y (directory_moved)"],
    );
    // The control: entries that come and go do not make it another one.
    check("entries", "printf s >d/e/y", "printf m >d/e/mine; rm d/x", &["m d/e/y"]);
    check_tiers(
        "vanished",
        "printf s >d/e/y",
        "rm -r d/e; printf f >d/e",
        [&["m d/e (changed)", "a d/e/y (gone)"], &["a d/e/y (directory_gone)"]],
    );
}

#[test]
fn a_directory_goes_only_with_all_that_is_in_it() {
    for way in ways() {
        let stage = Stage::new("conflict-full", way, WORKSPACE);
        stage.inside("rm -r full d");
        stage.outside("printf mine >full/mine");
        let report = stage.apply(&[]);
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        assert_eq!(kept, ["r full (changed)", "r full/mine (changed)"]);
        let real = stage.real();
        assert!(real.contains_key("full/mine") && !real.contains_key("full/z"));
        assert!(!real.contains_key("d"), "the control: the other one goes");
    }
}

#[test]
fn what_the_sandbox_renamed_is_no_conflict() {
    for way in ways() {
        let stage = Stage::new("conflict-renamed", way, WORKSPACE);
        stage.inside("mv a renamed; mv d/x d/renamed; ln b linked");
        let shown = ["r a", "m b", "a d/renamed", "r d/x", "a linked", "a renamed"];
        assert_eq!(stage.shown(), shown);
        // What lands itself is no sign that somebody else was there.
        stage.apply(&["d/x"]);
        assert_eq!(stage.shown(), ["r a", "m b", "a d/renamed", "a linked", "a renamed"]);
        stage.apply(&[]);
        stage.assert_landed();
    }
}

#[test]
fn a_move_lands_beside_what_somebody_else_made_meanwhile() {
    for way in ways() {
        let stage = Stage::new("conflict-beside", way, WORKSPACE);
        stage.inside("mv a renamed; mv d/x d/renamed");
        stage.outside("printf m >mine; printf m >d/mine");
        let shown = ["r a", "a d/renamed", "r d/x", "a renamed"];
        assert_eq!(stage.shown(), shown, "{way:?}");
        // The new name alone may be asked for.
        let report = stage.apply(&["renamed"]);
        assert_eq!((report.applied.len(), report.kept.len()), (1, 0), "{way:?}");
        assert!(stage.apply(&[]).kept.is_empty(), "{way:?}");
        let mut expected = stage.saw();
        let real = stage.real();
        for mine in ["mine", "d/mine"] {
            expected.insert(mine.to_owned(), real[mine].clone());
        }
        assert_eq!(real, expected, "{way:?}");
    }
}

#[test]
fn of_a_move_both_halves_land_or_neither() {
    for way in ways() {
        for (inside, meanwhile, expected) in [
            ("mv a b", "printf mine >b", ["r a (move)", "m b (changed)"]),
            ("mv a b", "printf mine >a", ["r a (changed)", "m b (move)"]),
            ("mv a new", "printf mine >new", ["r a (move)", "m new (changed)"]),
            ("mv full/z full/a", "printf m >>full/z", ["a full/a (move)", "r full/z (changed)"]),
        ] {
            // Once the workspace's file is another one, that layer does not know it any more; what
            // comes lands then, and what would go stays.
            if way == Way::User
                && expected.iter().any(|line| line.starts_with("r") && line.ends_with("(changed)"))
            {
                continue;
            }
            let stage = Stage::new("conflict-halves", way, WORKSPACE);
            stage.inside(inside);
            stage.outside(meanwhile);
            let before = stage.real();
            let report = stage.apply(&[]);
            let kept: Vec<String> = report.kept.iter().map(shown).collect();
            assert_eq!(kept, expected, "{way:?} {inside} {meanwhile}");
            assert_eq!(stage.real(), before, "{way:?} {inside} {meanwhile}");
        }
        // Of what was written to as well, not every layer knows what it was called.
        let stage = Stage::new("conflict-edited-move", way, WORKSPACE);
        stage.inside("mv a new; printf more >>new");
        stage.outside("printf m >mine");
        let report = stage.apply(&[]);
        let count = (report.applied.len(), report.kept.len());
        assert_eq!(count, if way == Way::User { (0, 2) } else { (2, 0) }, "{report:?}");
        // The control: a removal and what is not made of it have nothing to do with each other.
        let stage = Stage::new("conflict-apart", way, WORKSPACE);
        stage.inside("cp a b; rm a");
        stage.outside("printf mine >b");
        let report = stage.apply(&[]);
        assert_eq!(report.applied.iter().map(shown).collect::<Vec<_>>(), ["r a"]);
    }
}

#[test]
fn of_a_moved_link_or_pipe_both_halves_land_or_neither() {
    let workspace = "ln -s a l; ln -s a other; mkfifo pipe; printf a >a";
    for way in ways() {
        for (inside, meanwhile, expected) in [
            ("mv l new", "printf mine >new", ["r l (move)", "m new (changed)"]),
            ("mv l new", "ln -sf b l", ["r l (changed)", "a new (move)"]),
            ("mv pipe new", "true", ["a new (special)", "r pipe (move)"]),
        ] {
            // Another link is another file: an overlay does not know any more what its own was called.
            if way != Way::Copy && expected[0].ends_with("(changed)") {
                continue;
            }
            let stage = Stage::new("conflict-moved-link", way, workspace);
            stage.inside(inside);
            stage.outside(meanwhile);
            let before = stage.real();
            let report = stage.apply(&[]);
            let kept: Vec<String> = report.kept.iter().map(shown).collect();
            assert_eq!(kept, expected, "{way:?} {inside} {meanwhile}");
            assert_eq!(stage.real(), before, "{way:?} {inside} {meanwhile}");
        }
        let stage = Stage::new("conflict-link-lands", way, workspace);
        stage.inside("mv l new");
        // Who asks for the new name alone has it, and a link that was made anew is no move.
        assert_eq!(stage.apply(&["new"]).applied.len(), 1, "{way:?}");
        assert_eq!(stage.apply(&[]).applied.len(), 1, "{way:?}");
        stage.assert_landed();
        stage.inside("rm other; sleep 0.02; ln -s a made");
        stage.outside("printf mine >made");
        let report = stage.apply(&[]);
        assert_eq!(report.applied.iter().map(shown).collect::<Vec<_>>(), ["r other"], "{way:?}");
    }
}

#[test]
fn what_is_mounted_there_is_not_touched() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for way in ways() {
        let stage = Stage::new("conflict-mounted", way, WORKSPACE);
        stage.inside("printf s >d/e/y; rm -r full");
        let mounted = [stage.workspace().join("d/e"), stage.workspace().join("full")];
        for place in &mounted {
            stage.outside(&format!("mount --bind other {}", place.display()));
        }
        let told = stage.shown();
        let report = stage.try_apply(&[]);
        for place in &mounted {
            stage.outside(&format!("umount {}", place.display()));
        }
        assert!(told.contains(&"r full (mounted)".to_owned()), "{told:?}");
        assert!(report.is_ok_and(|report| report.applied.is_empty()));
        assert_eq!(stage.real()["other/e/y"].1, b"o");
        // The control: without them it lands.
        stage.apply(&[]);
        stage.assert_landed();
    }
}

#[test]
fn what_landed_and_was_removed_on_the_host_does_not_come_back() {
    for way in ways() {
        let stage = Stage::new("landed-gone", way, WORKSPACE);
        stage.inside("printf n >n; mkdir nd; printf m >nd/m; printf k >k; printf s >a");
        assert_eq!(stage.apply(&[]).kept, []);
        stage.outside("rm n; rm -r nd; mv k other/k");
        stage.inside("printf l >nd/later; printf t >b");
        let report = stage.apply(&[]);
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        let real = stage.real();
        for gone in ["n", "nd", "nd/m", "nd/later", "k"] {
            assert!(!real.contains_key(gone), "{way:?} {gone}: {kept:?}");
        }
        assert!(kept.contains(&"a n (gone)".to_owned()), "{way:?} {kept:?}");
        assert_eq!(real["b"].1, b"t", "the control: others land");
        // What the session itself removed and makes again is its own.
        let own = Stage::new("landed-own", way, WORKSPACE);
        for (inside, is_there) in [("printf n >n", true), ("rm n", false), ("printf o >n", true)] {
            own.inside(inside);
            assert_eq!(own.apply(&[]).kept, [], "{way:?} {inside}");
            assert_eq!(own.real().contains_key("n"), is_there, "{way:?} {inside}");
        }
    }
}

#[test]
fn what_is_named_lands_over_what_changed_where_that_is_wanted() {
    for way in ways() {
        let stage = Stage::new(
            "overwrite",
            way,
            "mkdir d .vscode; printf a >a; printf b >b; printf x >d/x; ln -s a l",
        );
        stage.inside(
            "printf s >a; printf s >b; rm d/x; ln -sfn b l; printf s >typed; printf s >.vscode/s",
        );
        stage.outside(
            "printf mine >a; printf mine >b; printf mine >d/x; ln -sfn d l; mkdir typed; printf m >.vscode/s",
        );
        let order = |paths: &[&str]| ApplyOrder {
            paths: paths.iter().map(path).collect(),
            overwrite: true,
            ..ApplyOrder::default()
        };
        let apply = |order: &ApplyOrder| {
            let report = stage.layer().apply(order, &stage.state()).unwrap();
            report.kept.iter().map(shown).collect::<Vec<_>>()
        };
        // Only what is named, and no directory.
        assert_eq!(apply(&order(&[])).len(), 6, "{way:?}");
        let kept = apply(&order(&["a", "d", "l", "typed"]));
        assert!(kept.iter().all(|line| line.contains("typed (changed)")), "{way:?} {kept:?}");
        let real = stage.real();
        assert_eq!((&*real["a"].1, &*real["b"].1), (&b"s"[..], &b"mine"[..]), "{way:?}");
        assert!(!real.contains_key("d/x"));
        assert_eq!(std::fs::read_link(stage.workspace().join("l")).unwrap().to_str(), Some("b"));
        // A control file is one still: it lands by its own path.
        let kept = apply(&order(&[".vscode/s"]));
        assert_eq!(kept, [""; 0], "{way:?}");
    }
}
