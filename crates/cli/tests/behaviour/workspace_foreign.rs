//! Workspaces of which not all is the caller's, or not all is there.

use crate::place::{caller, everyone};
use crate::workspace::{has_git, repository};
use std::fs;

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
