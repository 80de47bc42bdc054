//! A landing that is killed in the middle is undone, or finished, by whoever comes next.

use super::stage::{Stage, Way, path, ways};
use crate::layers::landing::{Place, seam};
use crate::test_directory::sweep;
use cofferdam_core::{ApplyOrder, ErrorKind};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Says to the child of a test where it lands.
const COW: &str = "COFFERDAM_TEST_LANDING";
/// And that it is staged in the workspace.
const IN_WORKSPACE: &str = "COFFERDAM_TEST_LANDING_IN_WORKSPACE";
pub(super) const PLACES: [Place; 2] = [Place::Records, Place::Workspace];

const WORKSPACE: &str = "
    mkdir -p d/e gone; printf a >a; printf x >d/x; printf y >d/e/y; printf 1 >gone/one
    i=0; while [ $i -lt 40 ]; do printf old >f$i; i=$((i+1)); done";
const WORK: &str = "
    printf changed >a; rm -r gone; rm -r d/e; printf file >d/e; mkdir -p new/deep; printf n >new/deep/n
    printf n >n1; ln n1 n2; ln -s a l; rm d/x; mkdir d/x; printf x >d/x/x; chmod 700 d
    i=0; while [ $i -lt 40 ]; do printf new >f$i; i=$((i+1)); done";

/// Not a test by itself: what a killed child does.
#[test]
fn land_for_a_parent_who_kills() {
    let Some(cow) = std::env::var_os(COW) else { return };
    let cow = std::path::PathBuf::from(cow);
    let state = crate::state::StateDirectory::open(&cow.parent().unwrap().join("state")).unwrap();
    let mut layer = crate::layers::Layer::open(&cow).unwrap().unwrap();
    seam::set_place(std::env::var_os(IN_WORKSPACE).map(|_| Place::Workspace));
    println!("ready");
    layer.apply(&ApplyOrder::default(), &state).unwrap();
    println!("landed");
}

#[test]
fn a_killed_landing_is_whole_or_not_at_all() {
    for way in ways() {
        PLACES.into_iter().for_each(|place| kill_some(way, place));
    }
}

fn kill_some(way: Way, place: Place) {
    let (mut undone, mut finished, mut before_any) = (0, 0, 0);
    for round in 0..12_u32 {
        let stage = Stage::new("crash", way, WORKSPACE);
        stage.inside(WORK);
        let before = stage.real();
        kill_after(&stage, place, Duration::from_micros(u64::from(round) * 800));
        let is_littered = stage.stages() != (Vec::new(), Vec::new());
        sweep(&stage.state());
        stage.assert_no_stage_is_left();
        let after = stage.real();
        if after == before {
            undone += u32::from(is_littered);
            before_any += u32::from(!is_littered);
            stage.apply(&[]);
        } else {
            finished += 1;
        }
        stage.assert_landed();
        assert_eq!(stage.shown(), [""; 0], "{round}");
    }
    println!("{way:?} {place:?}: undone {undone}, finished {finished}, not begun {before_any}");
}

/// Lets a child land and kills it so long after it began; one that is done sooner was not killed.
fn kill_after(stage: &Stage, place: Place, moment: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    if place == Place::Workspace {
        child.env(IN_WORKSPACE, "yes");
    }
    let mut child = child
        .args(["--exact", "layers::tests::crash::land_for_a_parent_who_kills", "--nocapture"])
        .env(COW, stage.cow())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0);
    }
    let until = Instant::now() + moment;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let _ = kill_process(pid, Signal::KILL);
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}");
}

/// Every step at which somebody can die is undone, one by one: a journal that says so, and a workspace
/// that stopped there.
#[test]
fn a_landing_is_undone_from_every_step() {
    for way in ways() {
        for place in PLACES {
            let stage = Stage::new("steps", way, WORKSPACE);
            stage.inside(WORK);
            let steps = undo_each(&stage, place, &ApplyOrder::default());
            assert!(steps > 50, "{steps}");
        }
    }
}

/// Control files that are staged in the workspace come without a name.
#[test]
fn a_landing_of_control_files_is_undone_from_every_step() {
    const GIT: &str = "
        mkdir -p .git/hooks .git/objects .git/refs; printf 'ref: refs/heads/m' >.git/HEAD
        printf old >.git/hooks/pre-commit; printf old >.git/hooks/update; printf a >a";
    for way in ways() {
        for place in PLACES {
            let stage = Stage::new("hooks", way, GIT);
            stage.inside(
                "cd .git/hooks; rm update; printf new >pre-commit; printf new >pre-push
                 printf one >applypatch-msg; ln applypatch-msg commit-msg; printf b >../../a",
            );
            let paths = [".git/hooks", "a"];
            let order = ApplyOrder { paths: paths.map(path).to_vec(), ..ApplyOrder::default() };
            let steps = undo_each(&stage, place, &order);
            assert_eq!(steps, 6, "{way:?} {place:?}");
            seam::set_place(Some(place));
            assert_eq!(stage.apply(&paths).kept, []);
            seam::set_place(None);
            stage.assert_landed();
            stage.assert_no_stage_is_left();
            assert_eq!(stage.shown(), [""; 0], "{way:?} {place:?}");
        }
    }
}

/// Undoes a landing from each of its steps, and says how many there are.
fn undo_each(stage: &Stage, place: Place, order: &ApplyOrder) -> usize {
    let before = stage.real();
    let mut steps = 0;
    loop {
        let done = stage.layer().land_in_part((place, steps), order, &stage.state());
        let half = stage.real();
        let (beside, within) = stage.stages();
        assert_eq!(
            (beside.len(), within.len()),
            if place == Place::Records { (1, 0) } else { (0, 1) }
        );
        sweep(&stage.state());
        assert_eq!(stage.real(), before, "{place:?} {steps}");
        stage.assert_no_stage_is_left();
        assert!(
            stage.shown().iter().all(|line| !line.ends_with("(changed)")),
            "{:?}",
            stage.shown()
        );
        if !done {
            return steps;
        }
        assert!(steps == 0 || half != before, "{steps}");
        steps += 1;
    }
}

/// The directory of what was put back tells nothing any more once a part of it is gone.
#[test]
fn what_was_undone_is_not_undone_again_where_clearing_up_is_cut_off() {
    for way in ways() {
        for place in PLACES {
            let stage = Stage::new("cleared", way, WORKSPACE);
            stage.inside(WORK);
            let before = stage.real();
            let order = ApplyOrder::default();
            assert!(stage.layer().land_in_part((place, 30), &order, &stage.state()));
            seam::set_cut_off();
            assert_ne!(stage.state().sweep().unwrap().kept, Vec::<String>::new());
            sweep(&stage.state());
            assert_eq!(stage.real(), before, "{way:?} {place:?}");
            stage.assert_no_stage_is_left();
            // The same of a landing that was refused and not killed.
            seam::set_place(Some(place));
            seam::set_failing_at(Some(30));
            seam::set_cut_off();
            let state = stage.state();
            stage.layer().apply(&order, &state).unwrap_err();
            seam::set_failing_at(None);
            sweep(&state);
            assert_eq!(stage.real(), before, "{way:?} {place:?}");
            assert_eq!(stage.apply(&[]).kept, []);
            seam::set_place(None);
            stage.assert_landed();
            stage.assert_no_stage_is_left();
        }
    }
}

#[test]
fn what_landed_is_told_as_that_where_clearing_up_fails() {
    for way in ways() {
        for place in PLACES {
            let stage = Stage::new("uncleared", way, WORKSPACE);
            stage.inside(WORK);
            seam::set_place(Some(place));
            seam::set_cut_off();
            let report = stage.apply(&[]);
            seam::set_place(None);
            assert!(report.not_cleared.unwrap().contains("os error 5"), "{way:?} {place:?}");
            assert_eq!(report.kept, []);
            // Whoever comes next clears up.
            sweep(&stage.state());
            stage.assert_no_stage_is_left();
            stage.assert_landed();
            assert_eq!(stage.apply(&[]).not_cleared, None, "the control");
        }
    }
}

#[test]
fn a_disk_that_puts_nothing_back_is_not_told_as_somebody() {
    for way in ways() {
        let stage = Stage::new("staying", way, WORKSPACE);
        stage.inside(WORK);
        let before = stage.real();
        seam::set_failing_at(Some(30));
        seam::set_staying_at(Some(20));
        let state = stage.state();
        let error = stage.layer().apply(&ApplyOrder::default(), &state).unwrap_err();
        seam::set_failing_at(None);
        seam::set_staying_at(None);
        assert_eq!(error.kind, ErrorKind::Io, "{error:?}");
        assert!(error.message.contains("the file system refuses that"), "{error:?}");
        assert!(!error.chain().contains("somebody"), "{error:?}");
        sweep(&state);
        assert_eq!(stage.real(), before, "{way:?}");
    }
}

/// What a version of Cofferdam left that knew of one place alone.
#[test]
fn a_record_of_an_earlier_version_is_understood() {
    for way in ways() {
        let stage = Stage::new("earlier", way, WORKSPACE);
        stage.inside(WORK);
        let before = stage.real();
        let place = (Place::Workspace, 30);
        assert!(stage.layer().land_in_part(place, &ApplyOrder::default(), &stage.state()));
        let owed = stage.state().path().join("owed");
        let mut records = std::fs::read_dir(owed).unwrap().map(|entry| entry.unwrap().path());
        let record = records.find(|path| path.to_string_lossy().contains("/landing-")).unwrap();
        let text = std::fs::read_to_string(&record).unwrap();
        let earlier = text
            .replace("\"format\":2", "\"format\":1")
            .replace(",\"place\":\"Workspace\"", "")
            .replace(",\"held\":null", "");
        assert!(earlier.len() < text.len() - 200 && !earlier.contains("held"));
        std::fs::write(&record, earlier).unwrap();
        assert_ne!(stage.real(), before);
        sweep(&stage.state());
        assert_eq!(stage.real(), before);
        stage.assert_no_stage_is_left();
    }
}
