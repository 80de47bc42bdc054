//! A landing that is killed in the middle is undone, or finished, by whoever comes next.

use super::stage::{Stage, ways};
use crate::test_directory::sweep;
use cofferdam_core::ApplyOrder;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Says to the child of a test where it lands.
const COW: &str = "COFFERDAM_TEST_LANDING";

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
    println!("ready");
    layer.apply(&ApplyOrder::default(), &state).unwrap();
    println!("landed");
}

#[test]
fn a_killed_landing_is_whole_or_not_at_all() {
    for way in ways() {
        let (mut undone, mut finished, mut before_any) = (0, 0, 0);
        for round in 0..12_u32 {
            let stage = Stage::new("crash", way, WORKSPACE);
            stage.inside(WORK);
            let before = stage.real();
            kill_after(&stage, Duration::from_micros(u64::from(round) * 800));
            let half = stage.real();
            let is_littered = half.keys().any(|name| name.starts_with(".cofferdam-landing-"));
            sweep(&stage.state());
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
        println!("{way:?}: undone {undone}, finished {finished}, not begun {before_any}");
    }
}

/// Lets a child land and kills it so long after it began; one that is done sooner was not killed.
fn kill_after(stage: &Stage, moment: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
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
        let stage = Stage::new("steps", way, WORKSPACE);
        stage.inside(WORK);
        let before = stage.real();
        let mut steps = 0;
        loop {
            let done = stage.layer().land_in_part(steps, &stage.state());
            let half = stage.real();
            sweep(&stage.state());
            assert_eq!(stage.real(), before, "{way:?} {steps}");
            assert!(stage.shown().iter().all(|line| !line.ends_with(')')), "{:?}", stage.shown());
            if !done {
                break;
            }
            assert!(steps == 0 || half != before, "{steps}");
            steps += 1;
        }
        assert!(steps > 50, "{steps}");
    }
}
