//! Workspaces of which not all is the caller's, or not all is there.

use crate::place::{SOON, caller, everyone, started, until};
use crate::workspace::{has_git, repository};
use std::fs;
use std::path::Path;

/// What stands at an absent name protects it. Where nobody inside can make it nothing has to, and the run
/// goes on: in a directory of somebody else's, and where somebody else made the repository.
#[test]
fn what_is_somebody_elses_can_be_worked_in() {
    everyone(|place| {
        // Only root can make something somebody else's.
        if caller() != 0 || place.is_root() {
            return;
        }
        let foreign = place.base.join("foreign");
        fs::create_dir(&foreign).unwrap();
        let words = ["-w", foreign.to_str().unwrap(), "--", "sh", "-c", "ls -a; >.envrc"];
        let report = place.report(&words);
        assert_eq!(report["enforced"]["files"], "full", "{report}");
        assert_eq!(report["stdout"], ".\n..\n", "{report}");
        assert!(report["stderr"].as_str().unwrap().contains(".envrc"), "{report}");
        assert_eq!(fs::read_dir(foreign).unwrap().flatten().count(), 0, "nothing is left");
        let repository = place.workspace.join("sub/.git");
        fs::create_dir_all(&repository).unwrap();
        fs::write(repository.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let script = "echo x >sub/.git/config; echo x >sub/.git/hooks/post-commit; echo x >mine";
        let report = place.report(&["--", "sh", "-c", script]);
        assert_eq!(report["enforced"]["files"], "full", "{report}");
        assert_eq!(fs::read(place.workspace.join("mine")).unwrap(), b"x\n");
        assert_eq!(fs::read_dir(&repository).unwrap().flatten().count(), 1);
    });
}

#[test]
fn a_part_of_a_repository_says_with_which_workspace_git_would_work() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        repository(place);
        place.write("some/part/file", "x\n");
        let top = place.workspace.to_str().unwrap();
        let part = format!("{top}/some/part");
        let said = place.says(&["run", "-w", &part, "--", "git", "status"], 128);
        let remedy = format!("-w {top} --cwd some/part");
        assert!(said.stderr.contains(&remedy), "{said:?}");
        place.says(&["run", "-w", top, "--cwd", "some/part", "--", "git", "status"], 0);
        let said = place.says(&["run", "-w", top, "--", "sh", "-c", "exit 128"], 128);
        assert!(!said.stderr.contains("--cwd"), "control: a whole one: {said:?}");
    });
}

/// The names in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_a_killed_run_left_goes_though_its_workspace_was_out_of_reach() {
    everyone(|place| {
        place.write("one/mine", "x");
        let workspace = place.workspace.join("one");
        let elsewhere = place.base.join("elsewhere");
        let moved = place.workspace.join("moved");
        fs::create_dir(&elsewhere).unwrap();
        place.give(&elsewhere);
        let elsewhere = elsewhere.to_str().unwrap();
        let killed = |workspace: &Path| {
            let words = ["run", "-w", workspace.to_str().unwrap(), "--", "sleep", "1000"];
            let mut child = started(&mut place.cofferdam(&words));
            let is_held = || workspace.join(".envrc").symlink_metadata().ok();
            assert!(until(SOON, is_held).is_some(), "the control: something is left");
            child.kill().unwrap();
            child.wait().unwrap();
        };
        // Another start finds it nowhere, and the next one in it knows it all the same.
        killed(&workspace);
        fs::rename(&workspace, &moved).unwrap();
        place.says(&["run", "-w", elsewhere, "--", "true"], 0);
        assert!(names(&moved).len() > 1, "the control");
        place.says(&["run", "-w", moved.to_str().unwrap(), "--", "true"], 0);
        assert_eq!(names(&moved), ["mine"]);
        // Where it is in its place again, the search for what is left finds it.
        killed(&moved);
        fs::rename(&moved, &workspace).unwrap();
        place.says(&["run", "-w", elsewhere, "--", "true"], 0);
        fs::rename(&workspace, &moved).unwrap();
        place.says(&["gc"], 0);
        assert_eq!(names(&moved), ["mine"]);
        fs::rename(&moved, &workspace).unwrap();
    });
}
