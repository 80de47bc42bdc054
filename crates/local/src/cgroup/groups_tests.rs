//! Against the kernel that runs the tests, where it lets us; the decisions against made-up facts.

use super::*;
use crate::test_directory::{self, TestDirectory};
use cofferdam_core::Limit;
use std::fmt::Write as _;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

struct Fixture {
    _directory: TestDirectory,
    state: StateDirectory,
    facts: CgroupFacts,
}

/// `None` where this user can make no groups here; says so.
fn fixture(name: &str) -> Option<Fixture> {
    let facts = CgroupFacts::read().unwrap();
    let nowhere = |place: &Where| matches!(place, Where::Nowhere(_));
    if nowhere(&facts.memory) || nowhere(&facts.pids) {
        println!("skipped: {:?}; {:?}", facts.memory, facts.pids);
        return None;
    }
    let directory = TestDirectory::new(&format!("groups-{name}"));
    let state = StateDirectory::open(&directory.path().join("s")).unwrap();
    Some(Fixture { _directory: directory, state, facts })
}

fn id(name: &str) -> SandboxId {
    SandboxId::new(format!("test-{name}-{}", std::process::id())).unwrap()
}

fn limits(memory_bytes: u64, pids: u32) -> Limits {
    Limits {
        memory_bytes: Limit::Asked(memory_bytes),
        pids: Limit::Asked(pids),
        cpu_millis: Limit::Asked(1500),
        ..Limits::default()
    }
}

/// Starts a shell line whose process joins the groups itself, through descriptors of ours, after it
/// has become a user who could not open them.
fn start(groups: &Cgroups, line: &str) -> Child {
    let v1 = groups.join_descriptors().unwrap();
    let files: Vec<OwnedFd> = v1.into_iter().chain(groups.join_unified().unwrap()).collect();
    let mut script = String::new();
    for file in &files {
        writeln!(script, "echo 0 >&{} || exit 9", file.as_raw_fd()).unwrap();
        rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty()).unwrap();
    }
    let user = ["--reuid=2100000000", "--regid=2100000000", "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(user).args(["bash", "-c", &(script + line)]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn paths(groups: &Cgroups) -> Vec<PathBuf> {
    let made = groups.unified.iter().chain(&groups.v1);
    made.map(|made| made.group.path().to_path_buf()).collect()
}

#[test]
fn a_memory_hog_is_killed_and_the_cause_is_known() {
    let Some(fixture) = fixture("hog") else { return };
    let limits = limits(32 << 20, 64);
    let groups = Cgroups::prepare(&fixture.state, &id("hog"), &limits, &fixture.facts).unwrap();
    assert_eq!(groups.causes(), Causes { oom_kills: Some(0), pids_hits: Some(0) });
    let control = start(&groups, "true").wait().unwrap();
    assert!(control.success(), "{control:?}");
    let status = start(&groups, "head -c 200000000 /dev/zero | tail").wait().unwrap();
    assert!(!status.success());
    until("an oom kill is counted", || groups.causes().oom_kills > Some(0));
    let usage = groups.usage();
    let peak = usage.peak_memory_bytes.unwrap();
    assert!(peak > 16 << 20 && peak <= 32 << 20, "{peak}");
    assert!(usage.cpu_us.is_none_or(|us| us > 0));
    let paths = paths(&groups);
    groups.remove().unwrap();
    assert!(paths.iter().all(|path| !path.exists()));
    assert_eq!(fixture.state.sweep().unwrap(), crate::state::SweepReport::default());
}

#[test]
fn the_limit_of_processes_holds_and_is_counted() {
    let Some(fixture) = fixture("pids") else { return };
    let limits = limits(256 << 20, 8);
    let groups = Cgroups::prepare(&fixture.state, &id("pids"), &limits, &fixture.facts).unwrap();
    let line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done 2>/dev/null; exit 3";
    let mut child = start(&groups, line);
    until("a refused fork is counted", || groups.causes().pids_hits > Some(0));
    groups.kill().unwrap();
    let _ = child.wait();
    for path in paths(&groups) {
        assert_eq!(std::fs::read_to_string(path.join("cgroup.procs")).unwrap(), "");
    }
}

#[test]
fn frozen_processes_stop_and_go_on() {
    let Some(fixture) = fixture("freeze") else { return };
    let limits = limits(64 << 20, 16);
    let groups = Cgroups::prepare(&fixture.state, &id("freeze"), &limits, &fixture.facts).unwrap();
    let mut child = start(&groups, "while :; do :; done");
    until("it works", || groups.usage().cpu_us.is_none_or(|us| us > 20_000));
    groups.freeze().unwrap();
    groups.freeze().unwrap();
    let before = groups.usage().cpu_us;
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(groups.usage().cpu_us, before, "nothing runs while frozen");
    groups.thaw().unwrap();
    until("it works again", || before.is_none() || groups.usage().cpu_us > before);
    groups.kill().unwrap();
    assert!(!child.wait().unwrap().success());
}

#[test]
fn what_a_dead_owner_left_is_killed_and_removed() {
    let Some(fixture) = fixture("left") else { return };
    let limits = limits(64 << 20, 16);
    let mut groups =
        Cgroups::prepare(&fixture.state, &id("left"), &limits, &fixture.facts).unwrap();
    let mut child = start(&groups, "sleep 60 & sleep 60");
    let paths = paths(&groups);
    until("it is inside", || {
        let one = |path: &PathBuf| std::fs::read_to_string(path.join("cgroup.procs")).unwrap();
        paths.iter().all(|path| !one(path).is_empty())
    });
    assert_eq!(fixture.state.sweep().unwrap().alive, 1);
    // As if the owner were killed: its lock goes, and nothing else happens.
    drop(groups.record.take());
    let report = test_directory::sweep(&fixture.state);
    assert_eq!((report.cgroups, report.kept.len()), (paths.len(), 0));
    assert!(!child.wait().unwrap().success());
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn version_1_alone_freezes_kills_and_counts() {
    let Some(mut fixture) = fixture("v1") else { return };
    if !matches!(fixture.facts.memory, Where::V1(_)) || fixture.facts.freezer.is_none() {
        println!("skipped: no version 1 controllers");
        return;
    }
    fixture.facts.unified = None;
    let limits = limits(64 << 20, 16);
    let groups = Cgroups::prepare(&fixture.state, &id("v1"), &limits, &fixture.facts).unwrap();
    assert!(groups.clone_into().unwrap().is_none());
    let mut child = start(&groups, "f() { f | f & }; sleep 60 & f; wait");
    until("it is inside", || groups.causes().pids_hits > Some(0));
    groups.freeze().unwrap();
    groups.thaw().unwrap();
    groups.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    groups.remove().unwrap();
}

#[test]
fn an_id_is_used_once_and_a_failure_leaves_nothing() {
    let Some(fixture) = fixture("twice") else { return };
    let id = id("twice");
    let one = Cgroups::prepare(&fixture.state, &id, &Limits::default(), &fixture.facts).unwrap();
    let two = Cgroups::prepare(&fixture.state, &id, &Limits::default(), &fixture.facts);
    assert_eq!(two.unwrap_err().kind, ErrorKind::Conflict);
    let paths = paths(&one);
    drop(one);
    assert!(paths.iter().all(|path| !path.exists()));
    let mut broken = fixture.facts.clone();
    broken.pids = Where::V1("/sys/fs/cgroup/none".into());
    Cgroups::prepare(&fixture.state, &id, &Limits::default(), &broken).unwrap_err();
    assert!(paths.iter().all(|path| !path.exists()));
    assert_eq!(fixture.state.sweep().unwrap(), crate::state::SweepReport::default());
}

#[test]
fn without_any_group_nothing_is_made() {
    let directory = TestDirectory::new("groups-none");
    let state = StateDirectory::open(&directory.path().join("s")).unwrap();
    let nowhere = || Where::Nowhere("none".to_owned());
    let facts = CgroupFacts {
        unified: None,
        memory: nowhere(),
        pids: nowhere(),
        cpu: nowhere(),
        freezer: None,
        is_v1: false,
    };
    let groups = Cgroups::prepare(&state, &id("none"), &Limits::default(), &facts).unwrap();
    assert!(groups.is_empty() && groups.join_descriptors().unwrap().is_empty());
    assert_eq!((groups.causes(), groups.usage()), (Causes::default(), Usage::default()));
    groups.kill().unwrap();
    assert_eq!(groups.freeze().unwrap_err().kind, ErrorKind::Unavailable);
    groups.remove().unwrap();
}

#[test]
fn controllers_that_are_mounted_together_share_a_group() {
    let v1 = |path: &str| Where::V1(path.into());
    let facts = CgroupFacts {
        unified: None,
        memory: v1("/c/memory"),
        pids: v1("/c/all"),
        cpu: v1("/c/all"),
        freezer: Some("/c/freezer".into()),
        is_v1: false,
    };
    let wanted = Wanted::of(&facts, &SandboxId::new("x").unwrap(), &limits(1, 1));
    let names: Vec<_> = wanted.v1.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(names, ["/c/freezer/cofferdam-x", "/c/memory/cofferdam-x", "/c/all/cofferdam-x"]);
    assert!(wanted.v1[2].1.pids && wanted.v1[2].1.cpu);
    let recorded = recorded(&wanted.record()).unwrap();
    assert_eq!(recorded.len(), 3);
}

#[test]
fn a_record_names_nothing_that_is_not_ours() {
    assert!(recorded(b"").unwrap().is_empty());
    assert!(recorded(b"1").unwrap().is_empty());
    assert_eq!(recorded(b"2\0/a\0").unwrap_err().kind, ErrorKind::Unsupported);
    let record = b"1\0/c/cofferdam-a\0/home\0relative/cofferdam-b\0/c/cofferdam-cut";
    assert_eq!(recorded(record).unwrap(), [PathBuf::from("/c/cofferdam-a")]);
}

#[test]
fn a_ceiling_lowers_the_limits() {
    let ceiling =
        super::super::Ceiling { memory_bytes: Some(1000), pids: None, cpu_millis: Some(9) };
    let unified = super::super::Unified {
        parent: "/c".into(),
        controllers: Controllers::default(),
        first: First::Nothing,
        ceiling,
    };
    let facts = CgroupFacts {
        unified: Some(unified),
        memory: Where::Unified,
        pids: Where::Unified,
        cpu: Where::Unified,
        freezer: None,
        is_v1: false,
    };
    let found = numbers(&limits(2000, 7), &facts);
    assert_eq!((found.memory_bytes, found.pids, found.cpu_millis), (1000, 8, 9));
}
