//! What landed.

use super::crash::PLACES;
use super::stage::{Stage, path, shown, ways};
use crate::layers::landing::seam;
use cofferdam_core::{ApplyOrder, ControlFiles, ErrorKind, Progress, Step, Unit};
use sha2::Digest;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::{Arc, Mutex};

const WORKSPACE: &str = "
    mkdir -p d/e gone/below
    printf a >a; printf b >b; printf x >d/x; printf y >d/e/y
    printf 1 >gone/one; printf 2 >gone/below/two
    ln -s a link; printf f >typed; mkdir full; printf z >full/z";

const WORK: &str = "
    printf changed >a; chmod 600 b; printf n >new; mkdir -p made/deep; printf m >made/deep/m
    rm -r gone; ln -sfn b link; rm typed; mkdir typed; printf t >typed/t; chmod 555 typed
    rm -r full; printf now-a-file >full; chmod 700 d; ln new new2; rm -r d/e; mkdir d/e
    printf other >d/e/other; mkdir empty";

#[test]
fn the_workspace_becomes_what_the_sandbox_saw() {
    for way in ways() {
        let stage = Stage::new("landing", way, WORKSPACE);
        stage.inside(WORK);
        assert_ne!(stage.real(), stage.saw());
        let report = stage.apply(&[]);
        assert_eq!(report.kept, []);
        stage.assert_landed();
        assert_eq!(stage.shown(), [""; 0], "what landed is no change any more");
        assert_eq!(stage.apply(&[]).applied, [], "and lands once");
        stage.outside("chmod 755 typed");
    }
}

#[test]
fn a_dry_run_changes_nothing_and_says_the_same() {
    for way in ways() {
        let stage = Stage::new("dry", way, WORKSPACE);
        stage.inside(WORK);
        let before = stage.real();
        let order = ApplyOrder { dry_run: true, ..ApplyOrder::default() };
        let dry = stage.layer().apply(&order, &stage.state()).unwrap();
        assert_eq!(stage.real(), before);
        assert_eq!(dry, stage.apply(&[]));
        stage.outside("chmod 755 typed");
    }
}

#[test]
fn a_part_lands_and_the_rest_stays_a_change() {
    for way in ways() {
        let stage = Stage::new("part", way, WORKSPACE);
        stage.inside(WORK);
        let report = stage.apply(&["made/deep/m", "gone/one", "a"]);
        let applied: Vec<String> = report.applied.iter().map(shown).collect();
        assert_eq!(applied, ["m a", "r gone/one", "a made", "a made/deep", "a made/deep/m"]);
        let real = stage.real();
        assert_eq!(real["a"].1, b"changed");
        assert!(!real.contains_key("gone/one") && real.contains_key("gone/below/two"));
        assert!(!real.contains_key("new"));
        stage.apply(&[]);
        stage.assert_landed();
        stage.outside("chmod 755 typed");
    }
}

#[test]
fn what_landed_and_is_changed_again_lands_again() {
    for way in ways() {
        let stage = Stage::new("again", way, WORKSPACE);
        for round in 0..3 {
            stage.inside(&format!(
                "printf {round} >a; printf {round} >r{round}; rm -f r$(({round}-1))"
            ));
            assert_eq!(stage.apply(&[]).kept, [], "{way:?} {round}");
            stage.assert_landed();
        }
        stage.outside("printf mine >a");
        assert_eq!(stage.shown(), ["m a (changed)"], "what is edited after that is news");
    }
}

#[test]
fn set_id_bits_do_not_land_and_the_owner_is_the_workspaces() {
    for way in ways() {
        let stage = Stage::new("set-id", way, "");
        stage.inside("printf s >s; chmod 6755 s; mkdir d; chmod 3777 d");
        stage.apply(&[]);
        let found = std::fs::metadata(stage.workspace().join("s")).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, 0o755);
        let directory = std::fs::metadata(stage.workspace().join("d")).unwrap();
        assert_eq!(directory.permissions().mode() & 0o7777, 0o1777);
        let workspace = std::fs::metadata(stage.workspace()).unwrap();
        assert_eq!((found.uid(), found.gid()), (workspace.uid(), workspace.gid()));
        assert_eq!(stage.shown(), [""; 0]);
        // The control: the layer has them.
        let upper = std::fs::metadata(stage.cow().join("upper/s")).unwrap();
        assert_eq!(upper.permissions().mode() & 0o7777, 0o6755);
    }
}

#[test]
fn roots_landing_belongs_to_the_workspaces_owner() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (way, place) in ways().into_iter().flat_map(|way| PLACES.map(|place| (way, place))) {
        let stage = Stage::new("owner", way, "printf a >a");
        let base = crate::cow::base::Base::read(std::fs::File::open(stage.cow()).unwrap());
        let mut base = base.unwrap().unwrap();
        base.owner = crate::cow::base::LayerOwner { uid: 4711, gid: 4712 };
        base.write(std::fs::File::open(stage.cow()).unwrap()).unwrap();
        stage.inside("printf b >a; mkdir -p d/e; printf n >d/e/n; ln -s a l; printf e >.envrc");
        seam::set_place(Some(place));
        stage.apply(&["a", "d", "l", ".envrc"]);
        seam::set_place(None);
        for name in ["a", "d", "d/e", "d/e/n", "l", ".envrc"] {
            let found = std::fs::symlink_metadata(stage.workspace().join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (4711, 4712), "{name}");
        }
    }
}

#[test]
fn what_is_neither_file_nor_directory_nor_link_is_kept_back() {
    for way in ways() {
        let stage = Stage::new("special", way, "printf a >a; printf b >b");
        stage.inside("mkfifo pipe; rm b; mkfifo b; mkdir d; mkfifo d/pipe; printf f >d/f");
        let report = stage.apply(&[]);
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        assert_eq!(kept, ["m b (special)", "a d/pipe (special)", "a pipe (special)"]);
        assert_eq!(stage.real().keys().collect::<Vec<_>>(), ["a", "b", "d", "d/f"]);
    }
}

#[test]
fn control_files_land_only_by_name() {
    for way in ways() {
        let stage = Stage::new(
            "control",
            way,
            "git init -q .; git config core.hooksPath own-hooks; mkdir own-hooks; printf a >a",
        );
        stage.inside(
            "printf '#!/bin/sh' >.git/hooks/pre-commit; printf '[alias]' >>.git/config
             printf '#!/bin/sh' >own-hooks/pre-push; mkdir -p .vscode sub/.husky
             printf t >.vscode/tasks.json; printf e >sub/.envrc; printf h >sub/.husky/pre-commit
             printf b >a; mkdir b.git; cd b.git; mkdir objects refs hooks; printf r >HEAD
             printf c >config; printf h >hooks/update",
        );
        let before = stage.real();
        let report = stage.apply(&[]);
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        let expected = [
            "m .git/config",
            "a .git/hooks/pre-commit",
            "a .vscode",
            "a .vscode/tasks.json",
            "a b.git/config",
            "a b.git/hooks",
            "a b.git/hooks/update",
            "a own-hooks/pre-push",
            "a sub/.envrc",
            "a sub/.husky",
            "a sub/.husky/pre-commit",
        ];
        assert_eq!(kept, expected.map(|line| format!("{line} (protected)")), "{way:?}");
        assert_eq!(stage.real()["a"].1, b"b", "the control: others land");
        assert_eq!(stage.real()[".git/config"], before[".git/config"]);
        // What is above it does not name it.
        for above in [".git", "sub", "b.git"] {
            assert_eq!(stage.apply(&[above]).applied, [], "{above}");
        }
        let named = [".git/hooks", ".git/config", ".vscode/tasks.json", "sub/.husky", "sub/.envrc"];
        stage.apply(&named);
        stage.apply(&["b.git/hooks", "b.git/config", "own-hooks"]);
        stage.assert_landed();
    }
}

#[test]
fn the_whiteout_of_a_repository_takes_nothing_that_matters() {
    for way in ways() {
        let stage = Stage::new("no-git", way, "git init -q .; printf a >a");
        stage.inside("rm -rf .git a");
        let report = stage.apply(&[]);
        assert!(report.kept.iter().any(|change| change.path == path(".git")));
        let real = stage.real();
        assert!(real.contains_key(".git/config") && !real.contains_key("a"));
        stage.apply(&[".git"]);
        assert!(stage.real().is_empty(), "the control: by name it goes");
    }
}

#[test]
fn another_workspace_in_its_place_is_refused() {
    for way in ways() {
        let stage = Stage::new("place", way, "printf a >a");
        stage.inside("printf b >a");
        let aside = stage.elsewhere().join("workspace");
        std::fs::rename(stage.workspace(), &aside).unwrap();
        assert_eq!(stage.try_open(), Some(ErrorKind::Conflict));
        std::fs::create_dir(stage.workspace()).unwrap();
        assert_eq!(stage.try_open(), Some(ErrorKind::Conflict));
        std::fs::remove_dir(stage.workspace()).unwrap();
        std::os::unix::fs::symlink(&aside, stage.workspace()).unwrap();
        assert_eq!(stage.try_open(), Some(ErrorKind::Conflict));
        std::fs::remove_file(stage.workspace()).unwrap();
        std::fs::rename(&aside, stage.workspace()).unwrap();
        assert_eq!(stage.try_open(), None);
    }
}

#[test]
fn a_sparse_file_lands_sparse() {
    for way in ways() {
        let stage = Stage::new("sparse", way, "");
        stage.inside("truncate -s 300M big; printf end >>big; printf x | dd of=big bs=1 seek=1000000 conv=notrunc");
        stage.apply(&[]);
        let found = std::fs::metadata(stage.workspace().join("big")).unwrap();
        assert_eq!(found.len(), (300 << 20) + 3);
        assert!(found.blocks() < 1000, "{}", found.blocks());
        assert_eq!(stage.shown(), [""; 0], "byte for byte");
    }
}

#[test]
fn a_chosen_content_lands_in_place_of_the_layers() {
    for way in ways() {
        let stage = Stage::new("chosen", way, "printf 'a\\nb\\n' >a; chmod 640 a");
        stage.inside("printf 'A\\nB\\n' >a; chmod 755 a");
        let contents = [(path("a"), b"A\nb\n".to_vec())].into();
        let order = ApplyOrder { paths: vec![path("a")], contents, ..ApplyOrder::default() };
        stage.layer().apply(&order, &stage.state()).unwrap();
        assert_eq!(stage.real()["a"].0, "100640");
        assert_eq!(stage.real()["a"].1, b"A\nb\n");
        assert_eq!(stage.shown(), ["m a"], "the rest is a change still, and lands");
        stage.apply(&[]);
        stage.assert_landed();
    }
}

#[test]
fn an_order_without_control_files_lands_none_that_it_names() {
    for way in ways() {
        let stage = Stage::new("never", way, "printf a >a");
        stage.inside("printf evil >.envrc; printf good >a");
        let paths = vec![path(".envrc"), path("a")];
        let control_files = ControlFiles::Never;
        let never = ApplyOrder { paths, control_files, ..ApplyOrder::default() };
        let report = stage.layer().apply(&never, &stage.state()).unwrap();
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        assert_eq!(kept, ["a .envrc (protected)"]);
        assert!(!stage.real().contains_key(".envrc"));
        assert_eq!(stage.real()["a"].1, b"good", "the control landed");
        // The control: one that is named lands otherwise.
        stage.apply(&[".envrc"]);
        assert_eq!(stage.real()[".envrc"].1, b"evil");
    }
}

#[test]
fn what_changed_since_it_was_looked_at_does_not_land() {
    for way in ways() {
        let stage = Stage::new("version", way, "printf a >a; printf b >b; printf c >c");
        stage.inside("printf good >a; printf good >b; rm c");
        let versions = stage.changes().into_iter().map(|change| (change.path, change.version));
        let order = ApplyOrder { versions: versions.collect(), ..ApplyOrder::default() };
        // Of the same length, and with its old time.
        stage.inside("printf evil >a; touch -d 2001-01-01 a; printf evil >c");
        let report = stage.layer().apply(&order, &stage.state()).unwrap();
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        assert_eq!(kept, ["m a (another)", "m c (another)"]);
        let real = stage.real();
        assert_eq!((&*real["a"].1, &*real["b"].1), (&b"a"[..], &b"good"[..]), "the control landed");
    }
}

/// A store through a mapping whose page is dirty already leaves every time as it was.
#[test]
fn a_content_that_nobody_saw_does_not_land_whatever_its_times() {
    for way in ways() {
        let stage = Stage::new("sum", way, "printf a >a; printf b >b");
        stage.inside("printf good >a; printf good >b");
        let versions = || stage.changes().into_iter().map(|change| (change.path, change.version));
        let sum = |text: &str| sha2::Sha256::digest(text).into();
        let sums = [("a", "seen"), ("b", "good")].map(|(name, text)| (path(name), sum(text)));
        let order = ApplyOrder {
            versions: versions().collect(),
            sums: sums.into_iter().collect(),
            ..ApplyOrder::default()
        };
        let report = stage.layer().apply(&order, &stage.state()).unwrap();
        let kept: Vec<String> = report.kept.iter().map(shown).collect();
        assert_eq!(kept, ["m a (another)"]);
        let real = stage.real();
        assert_eq!((&*real["a"].1, &*real["b"].1), (&b"a"[..], &b"good"[..]), "the control landed");
    }
}

#[test]
fn a_directory_that_was_made_anew_under_its_name_has_only_what_is_in_it() {
    for way in ways() {
        for _ in 0..20 {
            let stage = Stage::new("anew", way, "mkdir -p d/d/a e/a");
            stage.inside("rm -rf d; mkdir -p d/d; rm -rf e; mkdir e");
            stage.apply(&[]);
            stage.assert_landed();
            assert_eq!(stage.shown(), [""; 0]);
        }
    }
}

#[test]
fn what_landed_and_becomes_what_it_was_lands_again() {
    for way in ways() {
        let stage = Stage::new("back", way, "mkdir b d; printf x >d/x; printf f >f");
        stage.inside("chmod 700 b; rm -r d; printf file >d; rm f; mkdir f");
        assert_eq!(stage.apply(&[]).kept, []);
        stage.assert_landed();
        for script in ["chmod 755 b", "rm d; mkdir d", "rmdir f; printf f >f", "rm -r b; mkdir b"] {
            stage.inside(script);
            assert_eq!(stage.apply(&[]).kept, [], "{way:?} {script}");
            stage.assert_landed();
            assert_eq!(stage.shown(), [""; 0], "{way:?} {script}");
        }
        // The control: what somebody else does is no change of the sandbox.
        stage.outside("chmod 711 b");
        let shown = stage.shown();
        assert!(shown.iter().all(|line| line == "m b (changed)"), "{way:?} {shown:?}");
    }
}

#[test]
fn how_much_is_made_ready_is_told_by_bytes_where_files_are_large() {
    for (script, unit, total) in [
        ("head -c 3000000 /dev/zero | tr '\\0' x >large; printf s >small", Unit::Bytes, 3_000_001),
        ("for n in 1 2 3 4 5; do head -c 100000 /dev/zero >$n; done; rm a", Unit::Bytes, 500_000),
        ("for n in 1 2 3 4 5; do printf s >$n; done; rm a", Unit::Entries, 6),
    ] {
        for way in ways() {
            let stage = Stage::new("share", way, "printf a >a");
            stage.inside(script);
            let told = Arc::new(Mutex::new(Vec::new()));
            let hears = Arc::clone(&told);
            let progress = Progress::new(move |step: Step| hears.lock().unwrap().push(step));
            let order = ApplyOrder { progress, ..ApplyOrder::default() };
            stage.layer().apply(&order, &stage.state()).unwrap();
            let told = told.lock().unwrap();
            assert!(told.iter().all(|step| (step.unit, step.total) == (unit, Some(total))));
            assert!(told.is_sorted_by_key(|step| step.done), "{told:?}");
            assert_eq!(told.last().map(|step| step.done), Some(total), "{told:?}");
            // More than once for the large one.
            assert!(total != 3_000_001 || told.len() > 4, "{told:?}");
        }
    }
}
