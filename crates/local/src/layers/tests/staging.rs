//! Where a landing is staged, and somebody hostile who writes a stage that lies in the workspace.

use super::stage::{Stage, Way, path, ways};
use crate::layers::landing::{Place, seam};
use crate::state::StateDirectory;
use cofferdam_core::{ApplyOrder, ErrorKind};
use sha2::Digest;
use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const GIT: &str = "
    mkdir -p .git/hooks .git/objects .git/refs; printf 'ref: refs/heads/m' >.git/HEAD
    printf old >.git/hooks/pre-commit; printf a >a; printf z >z";

/// What the stage of a landing in the workspace holds before the first step: names and contents.
fn seen_in_workspace(stage: &Stage) -> Rc<RefCell<Option<Vec<Vec<u8>>>>> {
    let (seen, workspace) = (Rc::new(RefCell::new(None)), stage.workspace());
    let told = Rc::clone(&seen);
    seam::set_meanwhile(move |name| {
        let entries = std::fs::read_dir(workspace.join(name));
        let files = |entries: std::fs::ReadDir| {
            entries.filter_map(|entry| std::fs::read(entry.unwrap().path()).ok()).collect()
        };
        told.replace(entries.ok().map(files));
    });
    seen
}

#[test]
fn a_landing_is_staged_beside_the_records_where_that_can_be() {
    for way in ways() {
        for place in [None, Some(Place::Workspace)] {
            let stage = Stage::new("place", way, "printf a >a");
            stage.inside("printf b >a; printf n >n");
            seam::set_place(place);
            let seen = seen_in_workspace(&stage);
            assert_eq!(stage.apply(&[]).kept, []);
            seam::set_place(None);
            let seen = seen.take();
            // The control sees it.
            let expected = place.map(|_| 2);
            assert_eq!(seen.map(|files| files.len()), expected, "{way:?}");
            stage.assert_landed();
            stage.assert_no_stage_is_left();
        }
    }
}

#[test]
fn a_landing_from_another_file_system_is_staged_in_the_workspace() {
    let home = PathBuf::from(format!("/dev/shm/cofferdam-staging-{}", std::process::id()));
    for way in ways() {
        let stage = Stage::new("far", way, "printf a >a");
        let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
        if [None, device(&stage.workspace())].contains(&device(Path::new("/dev/shm"))) {
            eprintln!("skipped: shm: it is no other file system than that of temporary files");
            return;
        }
        stage.inside("printf b >a; printf n >n");
        let seen = seen_in_workspace(&stage);
        let state = StateDirectory::open(&home).unwrap();
        let report = stage.layer().apply(&ApplyOrder::default(), &state);
        let left = std::fs::read_dir(home.join("owed")).unwrap().count();
        std::fs::remove_dir_all(&home).unwrap();
        assert_eq!(report.unwrap().kept, []);
        assert_eq!((left, seen.take().map(|files| files.len())), (0, Some(2)));
        stage.assert_landed();
        stage.assert_no_stage_is_left();
    }
}

#[test]
fn what_cannot_be_renamed_to_its_place_lands_from_the_workspace() {
    for way in ways() {
        for step in 0..4 {
            let stage = Stage::new("too-far", way, "printf a >a; printf b >b");
            stage.inside("printf b >a; printf n >n; mkdir d; rm b");
            seam::set_far_at(Some(step));
            let report = stage.apply(&[]);
            seam::set_far_at(None);
            assert_eq!(report.kept, []);
            stage.assert_landed();
            stage.assert_no_stage_is_left();
            assert_eq!(stage.shown(), [""; 0], "{way:?} {step}");
        }
    }
}

/// Changes that land from the workspace while somebody does this to the stage.
fn tampered(way: Way, act: fn(&Path)) -> (Stage, cofferdam_core::Result<()>) {
    let stage = Stage::new("tampered", way, "printf a >a; printf z >z");
    stage.inside("printf good >a; printf fine >n; ln -s elsewhere l; mkdir d; printf z2 >z");
    let sum = sha2::Sha256::digest("good").into();
    let order =
        ApplyOrder { sums: [(path("a"), sum)].into_iter().collect(), ..ApplyOrder::default() };
    let workspace = stage.workspace();
    seam::set_meanwhile(move |name| act(&workspace.join(name)));
    seam::set_place(Some(Place::Workspace));
    let report = stage.layer().apply(&order, &stage.state());
    seam::set_place(None);
    (stage, report.map(|report| assert_eq!(report.kept, [])))
}

/// What was made ready with this content.
fn slot(directory: &Path, content: &str) -> PathBuf {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let holds = |path: &PathBuf| match std::fs::read_link(path) {
        Ok(target) => target == Path::new(content),
        Err(_) => path.is_file() && std::fs::read(path).unwrap() == content.as_bytes(),
    };
    entries.into_iter().find(holds).unwrap()
}

fn write_with_its_old_times(file: &Path, content: &str) {
    let modified = std::fs::metadata(file).unwrap().modified().unwrap();
    std::fs::write(file, content).unwrap();
    std::fs::File::options().write(true).open(file).unwrap().set_modified(modified).unwrap();
}

#[test]
fn what_others_change_in_a_stage_does_not_land() {
    let acts: [fn(&Path); 6] = [
        // What somebody agreed to is read again, whatever its times.
        |stage| write_with_its_old_times(&slot(stage, "good"), "evil"),
        |stage| std::fs::write(slot(stage, "fine"), "evil").unwrap(),
        |stage| {
            let slot = slot(stage, "fine");
            std::fs::remove_file(&slot).unwrap();
            std::fs::write(&slot, "fine").unwrap();
        },
        |stage| {
            let entries = std::fs::read_dir(stage).unwrap().map(|entry| entry.unwrap().path());
            let is_link = |path: &PathBuf| path.is_symlink();
            let slot = entries.into_iter().find(is_link).unwrap();
            std::fs::remove_file(&slot).unwrap();
            std::os::unix::fs::symlink("evil", &slot).unwrap();
        },
        |stage| {
            let entries = std::fs::read_dir(stage).unwrap().map(|entry| entry.unwrap().path());
            let slot = entries.into_iter().find(|path| path.is_dir()).unwrap();
            std::fs::write(slot.join("evil"), "evil").unwrap();
        },
        |stage| std::fs::remove_file(slot(stage, "z2")).unwrap(),
    ];
    for way in ways() {
        for (number, act) in acts.into_iter().enumerate() {
            let (stage, landed) = tampered(way, act);
            let error = landed.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Conflict, "{number}: {}", error.chain());
            let real = stage.real();
            let names: Vec<&str> = real.keys().map(String::as_str).collect();
            assert_eq!(names, ["a", "z"], "{way:?} {number}: {}", error.chain());
            assert_eq!((&*real["a"].1, &*real["z"].1), (&b"a"[..], &b"z"[..]), "{number}");
            stage.apply(&[]);
            stage.assert_landed();
        }
        // The control: who only looks is in nobody's way.
        let (stage, landed) = tampered(way, |stage| assert!(slot(stage, "good").is_file()));
        landed.unwrap();
        stage.assert_landed();
    }
}

#[test]
fn a_control_file_has_no_name_in_a_stage_of_the_workspace() {
    for way in ways() {
        let stage = Stage::new("nameless", way, GIT);
        stage.inside(
            "printf good >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
             printf good >.git/hooks/pre-push; printf plain >a",
        );
        seam::set_place(Some(Place::Workspace));
        let seen = seen_in_workspace(&stage);
        assert_eq!(stage.apply(&[".git/hooks", "a"]).kept, []);
        seam::set_place(None);
        // The control: another file has one.
        assert_eq!(seen.take(), Some(vec![b"plain".to_vec()]));
        stage.assert_landed();
        stage.assert_no_stage_is_left();
        assert_eq!(stage.shown(), [""; 0]);
    }
}

#[test]
fn a_control_file_that_has_to_have_a_name_lands_only_as_it_was_made_ready() {
    for way in ways() {
        for evil in [None, Some("evil")] {
            let stage = Stage::new("named", way, GIT);
            stage.inside("printf good >.git/hooks/pre-commit");
            let (before, workspace) = (stage.real(), stage.workspace());
            seam::set_place(Some(Place::Workspace));
            seam::set_all_named(true);
            seam::set_meanwhile(move |name| {
                let slot = slot(&workspace.join(name), "good");
                if let Some(evil) = evil {
                    write_with_its_old_times(&slot, evil);
                }
            });
            let landed = stage.try_apply(&[".git/hooks"]);
            seam::set_all_named(false);
            seam::set_place(None);
            stage.assert_no_stage_is_left();
            match evil {
                Some(_) => {
                    assert_eq!(landed.unwrap_err().kind, ErrorKind::Conflict);
                    assert_eq!(stage.real(), before);
                }
                // The control.
                None => stage.assert_landed(),
            }
        }
    }
}

#[test]
fn so_many_control_files_land_at_once_from_the_workspace() {
    for way in ways() {
        for (count, place, lands) in [
            (256, Place::Workspace, true),
            (257, Place::Workspace, false),
            (257, Place::Records, true),
        ] {
            let stage = Stage::new("many", way, GIT);
            stage.inside(&format!("cd .git/hooks; for i in $(seq {count}); do echo $i >h$i; done"));
            seam::set_place(Some(place));
            let landed = stage.try_apply(&[".git/hooks"]);
            seam::set_place(None);
            stage.assert_no_stage_is_left();
            match landed {
                Ok(report) => assert!(lands && report.applied.len() >= count),
                Err(error) => {
                    assert!(!lands && error.kind == ErrorKind::TooLarge, "{}", error.chain())
                }
            }
        }
    }
}

/// A step that was done is undone only with what it took.
#[test]
fn what_was_set_aside_comes_back_only_as_it_was() {
    for way in ways() {
        for evil in [None, Some("bad")] {
            let stage = Stage::new("aside", way, GIT);
            stage.inside("printf good >.git/hooks/pre-commit; printf b >z");
            let before = stage.real();
            let paths = vec![path(".git/hooks/pre-commit"), path("z")];
            let order = ApplyOrder { paths, ..ApplyOrder::default() };
            let place = (Place::Workspace, 1);
            assert!(stage.layer().land_in_part(place, &order, &stage.state()));
            let (_, within) = stage.stages();
            let aside = slot(&within[0], "old");
            if let Some(evil) = evil {
                write_with_its_old_times(&aside, evil);
            }
            let report = stage.state().sweep().unwrap();
            assert_eq!(report.kept.is_empty(), evil.is_none(), "{:?}", report.kept);
            if evil.is_some() {
                let hook = stage.workspace().join(".git/hooks/pre-commit");
                assert_eq!(std::fs::read(hook).unwrap(), b"good", "nobody put another one there");
                let kept = &report.kept[0];
                assert!(kept.contains("pre-commit"), "{kept}");
            } else {
                assert_eq!(stage.real(), before, "the control");
                stage.assert_no_stage_is_left();
            }
        }
    }
}

/// As in a directory that several users share.
#[test]
fn what_lands_has_the_group_that_the_workspace_gives_on() {
    let way = Way::Copy;
    let stage = Stage::new("group", way, "chmod g+s .; printf a >a");
    stage.inside("printf b >a; mkdir d; printf n >d/n");
    let seen = seen_in_workspace(&stage);
    stage.apply(&[]);
    assert_eq!(seen.take(), None, "it lies beside the records");
    let mode = |name: &str| std::fs::metadata(stage.workspace().join(name)).unwrap().mode();
    assert_eq!(mode("d") & 0o2000, 0o2000);
    assert_eq!(mode("d/n") & 0o2000, 0);
}
