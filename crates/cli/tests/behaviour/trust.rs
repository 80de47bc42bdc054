//! A program inside cannot widen its next run.

use crate::place::{PYTHON, Place, SOON, everyone, outcome, skipped, started};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;

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

#[test]
fn a_manifest_written_inside_brings_nothing_from_outside() {
    everyone(|place| {
        let key = outside(place).join("key");
        fs::write(&key, "secret\n").unwrap();
        place.give(&key);
        let harmless = "version = 1\n[[entries]]\ntype = \"file\"\npath = \"plan\"\ntext = \"p\"\n";
        place.write("m.toml", harmless);
        let ensure = ["ensure", "s", "--manifest", "m.toml"];
        place.says(&ensure, 0);
        let taking = format!("[[entries]]\ntype = \"file\"\npath = \"stolen\"\nfrom = {key:?}");
        let line = format!("printf '%s\n' '{taking}' >>m.toml");
        place.says(&["exec", "s", "--shell", &line], 0);
        place.says(&["rm", "s"], 0);
        let said = place.says(&ensure, 1);
        assert!(said.stderr.contains("reaches out of that: \"stolen\" takes"), "{}", said.stderr);
        assert!(said.stderr.contains("config trust m.toml"), "the way out: {}", said.stderr);
        assert!(!place.workspace.join("stolen").exists());
        // The control: approved, and the same outside of the workspace.
        place.says(&["config", "trust", "m.toml"], 0);
        place.says(&ensure, 0);
        assert_eq!(fs::read_to_string(place.workspace.join("stolen")).unwrap(), "secret\n");
        place.says(&["rm", "s"], 0);
        fs::remove_file(place.workspace.join("stolen")).unwrap();
        // An approval is of what it was.
        place.write("m.toml", &format!("{harmless}{taking}\n# another\n"));
        place.says(&ensure, 1);
        let beside = place.base.join("m.toml");
        fs::copy(place.workspace.join("m.toml"), &beside).unwrap();
        place.give(&beside);
        place.says(&["ensure", "s", "--manifest", beside.to_str().unwrap()], 0);
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn a_pipe_in_the_place_of_a_manifest_is_not_waited_for() {
    everyone(|place| {
        place.run(&["--shell", "mkfifo m.toml"]);
        let said = place.says(&["create", "--manifest", "m.toml"], 1);
        assert!(said.stderr.contains("it is a pipe"), "{}", said.stderr);
    });
}

/// Holds a lease on a file until it is killed; a look at it fails meanwhile.
const LEASE: &str = "import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, lambda *_: None)
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, 1024, 1)
print('held', flush=True)
time.sleep(1000)";

#[test]
fn a_configuration_that_cannot_be_read_protects_nothing_silently() {
    if !std::path::Path::new(PYTHON).exists() {
        return skipped("leases", "there is no Python here");
    }
    everyone(|place| {
        for (path, content) in [
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", "[core]\n\thooksPath = .githooks\n"),
            (".githooks/post-commit", "#!/bin/sh\n"),
        ] {
            place.write(path, content);
        }
        let write = ["--shell", "echo x >.githooks/pre-commit"];
        assert_ne!(place.run(&write).code(), Some(0), "the control: hooks are protected");
        // From inside nothing is leased.
        let config = place.workspace.join(".git/config");
        let inside = place.run(&["--", PYTHON, "-c", LEASE, ".git/config"]);
        assert!(inside.stderr.contains("PermissionError"), "{inside:?}");
        // Somebody else's lease is no reason to take it for no configuration.
        let mut command = place.host(PYTHON);
        command.args(["-c", LEASE]).arg(&config).stdout(Stdio::piped());
        let mut lease = started(&mut command);
        let mut held = [0; 4];
        lease.stdout.as_mut().unwrap().read_exact(&mut held).unwrap();
        let said = place.run(&write);
        lease.kill().unwrap();
        lease.wait().unwrap();
        assert_eq!(said.code(), Some(125), "{said:?}");
        assert!(said.stderr.contains("it cannot be read: Resource temporarily"), "{}", said.stderr);
        assert!(!place.workspace.join(".githooks/pre-commit").exists());
    });
}
