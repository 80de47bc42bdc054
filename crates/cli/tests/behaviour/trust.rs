//! A program inside cannot widen its next run.

use crate::place::{Place, SOON, everyone, outcome};
use std::fs;
use std::path::PathBuf;

/// A policy that lets the next run write where this one cannot.
fn wider(place: &Place) -> String {
    let outside = outside(place);
    format!("[run]\nwrite = [\"{}\"]\nallow_sensitive_writes = true\n", outside.display())
}

/// A directory of the person's beside the workspace.
fn outside(place: &Place) -> PathBuf {
    let path = place.base.join("outside");
    fs::create_dir_all(&path).unwrap();
    place.give(&path);
    path
}

/// Whether a run can write there.
fn is_wide(place: &Place) -> bool {
    let path = outside(place).join("file");
    let _ = fs::remove_file(&path);
    place.run(&["--shell", &format!("echo x >{}", path.display())]);
    path.exists()
}

#[test]
fn a_policy_written_inside_a_directory_of_the_workspace_is_not_followed() {
    everyone(|place| {
        place.write("sub/file", "");
        let line = format!("printf '%s' '{}' >sub/cofferdam.toml", wider(place));
        let said = place.run(&["--shell", &line]);
        // Names are protected in the root of the workspace and of repositories; here it can be
        // written, and must then count for nothing.
        assert_eq!(said.code(), Some(0), "{said:?}");
        let mut next = place.cofferdam(&["run", "--shell", "true"]);
        next.current_dir(place.workspace.join("sub"));
        let said = outcome(&mut next, SOON);
        assert_eq!(said.code(), Some(125), "{said:?}");
        assert!(said.stderr.contains("is not approved"), "{}", said.stderr);
        assert!(said.stderr.contains("config trust"), "the way out is named: {}", said.stderr);
    });
}

#[test]
fn the_name_of_the_policy_cannot_be_made_where_the_next_run_looks() {
    everyone(|place| {
        let line = format!(
            "printf '%s' '{}' >cofferdam.toml; echo $?; ln -s x cofferdam.toml; echo $?; \
             printf x >p; mv p cofferdam.toml; echo $?; rm -f cofferdam.toml; echo $?",
            wider(place)
        );
        let said = place.run(&["--shell", &line]);
        assert!(!said.text().contains('0'), "{said:?}");
        assert!(place.workspace.join("cofferdam.toml").symlink_metadata().is_err());
        assert_eq!(place.run(&["--", "true"]).code(), Some(0), "the next run is as before");
        assert!(!is_wide(place));
    });
}

#[test]
fn a_policy_that_appears_all_the_same_is_refused_until_it_is_approved() {
    everyone(|place| {
        let line = format!("printf '%s' '{}' >cofferdam.toml", wider(place));
        let said = place.run(&["--allow-sensitive-writes", "--shell", &line]);
        assert_eq!(said.code(), Some(0), "{said:?}");
        let refused = place.run(&["--", "true"]);
        assert_eq!(refused.code(), Some(125), "{refused:?}");
        assert!(refused.stderr.contains("is not approved"), "{}", refused.stderr);
        let report = place.run(&["--json", "--", "true"]).object();
        assert_eq!(report["error"]["kind"], "config", "{report}");
        assert!(!is_wide(place));
        // Approved, it does what it says: it is the approval that was missing.
        let words = ["config", "trust", "cofferdam.toml"];
        let trust = outcome(&mut place.cofferdam(&words), SOON);
        assert_eq!(trust.code(), Some(0), "{trust:?}");
        assert!(is_wide(place));
    });
}

#[test]
fn an_approved_policy_cannot_be_changed_from_inside() {
    everyone(|place| {
        place.write("cofferdam.toml", "[run]\nprofile = \"no-network\"\n");
        let trust = outcome(&mut place.cofferdam(&["config", "trust", "cofferdam.toml"]), SOON);
        assert_eq!(trust.code(), Some(0), "{trust:?}");
        let line = format!(
            "printf '%s' '{}' >>cofferdam.toml; rm -f cofferdam.toml; mv cofferdam.toml x; \
             chmod 777 cofferdam.toml; cat cofferdam.toml",
            wider(place)
        );
        let said = place.run(&["--shell", &line]);
        assert_eq!(said.text(), "[run]\nprofile = \"no-network\"\n", "{said:?}");
        assert_eq!(place.run(&["--", "true"]).code(), Some(0));
        assert!(!is_wide(place));
        // Changed by whatever means, the approval is gone.
        place.write("cofferdam.toml", &wider(place));
        assert_eq!(place.run(&["--", "true"]).code(), Some(125));
    });
}

#[test]
fn approvals_and_records_cannot_be_reached_from_inside() {
    everyone(|place| {
        let state = place.state.to_str().unwrap().to_owned();
        let line = format!("ls {state}; mkdir -p {state}/trust; echo x >{state}/trust/x; echo end");
        let said = place.run(&["--shell", &line]);
        assert!(said.text().ends_with("end\n"), "{said:?}");
        assert!(!place.state.join("trust").exists());
        for option in ["--write", "--read", "-w"] {
            let said = place.run(&[option, &state, "--", "true"]);
            assert_eq!(said.code(), Some(125), "{option} of the state directory: {said:?}");
        }
    });
}

#[test]
fn variables_of_the_program_inside_are_not_settings_of_the_next_run() {
    everyone(|place| {
        let line = "export COFFERDAM_PROFILE=full-dev COFFERDAM_WRITE=/; env | grep -c COFFERDAM_";
        assert_eq!(place.run(&["--shell", line]).text(), "2\n");
        let said = place.run(&["--shell", "env | grep COFFERDAM_"]);
        assert_eq!(said.text(), "", "and the settings of this one are not told");
        assert!(!is_wide(place));
    });
}
