//! `cofferdam mcp install`: the configuration of other programs, shown, then written whole or not.

use crate::place::{PYTHON, Place, SOON, everyone, outcome, skipped};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// `cofferdam mcp install` with these words, by somebody whose home is the place's.
fn install(place: &Place, words: &[&str], code: i32) -> (String, String) {
    let words: Vec<&str> = [&["mcp", "install"], words].concat();
    let mut command = place.cofferdam(&words);
    command.env("HOME", place.base.join("home"));
    command.env_remove("CODEX_HOME").env_remove("CLAUDE_CONFIG_DIR");
    let said = outcome(&mut command, SOON);
    assert_eq!(said.code(), Some(code), "as {}: {words:?}: {said:?}", place.uid());
    (said.text(), said.stderr)
}

fn home(place: &Place, name: &str) -> PathBuf {
    place.base.join("home").join(name)
}

fn written(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_client_gets_the_server_with_the_options_that_follow() {
    everyone(|place| {
        for (client, file) in [
            ("claude", ".claude.json"),
            ("cursor", ".cursor/mcp.json"),
            ("codex", ".codex/config.toml"),
            ("vscode", ".config/Code/User/mcp.json"),
        ] {
            let file = home(place, file);
            let (shown, _) = install(place, &[client, "--dry-run"], 0);
            assert!(shown.contains("+++ ") && shown.contains("nothing was written"), "{shown}");
            assert!(!file.exists(), "{file:?}");
            install(place, &[client, "--yes", "--", "--profile", "read-only"], 0);
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains(place.program()) && text.contains("read-only"), "{text}");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            let (again, _) = install(place, &[client, "--yes", "--", "--profile", "read-only"], 0);
            assert!(again.contains("has it already"), "{again}");
        }
        for (client, file) in [("claude", ".mcp.json"), ("vscode", ".vscode/mcp.json")] {
            install(place, &[client, "--project", "--yes", "--name", "box"], 0);
            let read = written(&place.workspace.join(file));
            let servers = read.get("mcpServers").or_else(|| read.get("servers")).unwrap();
            assert_eq!(servers["box"]["args"], serde_json::json!(["mcp"]), "{read}");
        }
    });
}

#[test]
fn what_was_written_starts_a_server() {
    everyone(|place| {
        install(place, &["claude", "--yes", "--", "--profile", "read-only"], 0);
        let read = written(&home(place, ".claude.json"));
        let server = &read["mcpServers"]["cofferdam"];
        assert_eq!(server["type"], "stdio");
        let mut command = place.host(server["command"].as_str().unwrap());
        command.args(server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
        // A client that says nothing.
        assert_eq!(outcome(&mut command, SOON).code(), Some(0));
    });
}

#[test]
fn everything_else_of_a_file_stays_and_a_link_stays_a_link() {
    everyone(|place| {
        let real = home(place, "dotfiles.json");
        let before = "{\n    \"z\": 1.0e3,   \n    \"a\": {}\n}\n";
        fs::write(&real, before).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        place.give(&real);
        let link = home(place, ".claude.json");
        symlink("dotfiles.json", &link).unwrap();
        install(place, &["claude", "--yes"], 0);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let after = fs::read_to_string(&real).unwrap();
        assert!(after.starts_with("{\n    \"z\": 1.0e3,   \n    \"a\": {},\n"), "{after}");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        fs::remove_file(&real).unwrap();
        let (_, error) = install(place, &["claude", "--yes"], 1);
        assert!(error.contains("link to nothing"), "{error}");
        let left: Vec<_> = fs::read_dir(place.base.join("home")).unwrap().flatten().collect();
        assert!(
            left.iter().all(|entry| !entry.file_name().to_string_lossy().contains(".cofferdam-"))
        );
    });
}

#[test]
fn a_link_in_a_project_brings_no_other_file_to_be_written() {
    everyone(|place| {
        let own = home(place, ".claude.json");
        fs::write(&own, "{}\n").unwrap();
        place.give(&own);
        let project = place.workspace.join(".mcp.json");
        symlink(&own, &project).unwrap();
        let elsewhere = home(place, "elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        place.give(&elsewhere);
        symlink(&elsewhere, place.workspace.join(".cursor")).unwrap();
        for client in ["claude", "cursor"] {
            let (_, error) = install(place, &[client, "--project", "--yes"], 1);
            assert!(error.contains("leads out of the project"), "{error}");
        }
        assert_eq!(fs::read_to_string(&own).unwrap(), "{}\n");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        // The control: one that stays is followed.
        fs::remove_file(&project).unwrap();
        symlink("real.json", &project).unwrap();
        let real = place.workspace.join("real.json");
        fs::write(&real, "{}\n").unwrap();
        place.give(&real);
        install(place, &["claude", "--project", "--yes"], 0);
        assert!(fs::read_to_string(&real).unwrap().contains("cofferdam"));
    });
}

#[test]
fn a_file_that_cannot_be_read_is_refused_by_name_and_left_as_it_is() {
    everyone(|place| {
        for (client, file, text) in [
            ("claude", ".claude.json", "{\n\"a\": \n"),
            ("claude", ".claude.json", "{\"mcpServers\": []}"),
            ("claude", ".claude.json", "{\n// mine\n}\n"),
            ("codex", ".codex/config.toml", "a = \n"),
        ] {
            let path = home(place, file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            place.give(path.parent().unwrap());
            fs::write(&path, text).unwrap();
            place.give(&path);
            let (_, error) = install(place, &[client, "--yes"], 1);
            assert!(error.contains(file), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let (object, _) = install(place, &[client, "--yes", "--json"], 1);
            let object: Value = serde_json::from_str(&object).unwrap();
            assert!(object["error"]["hint"].is_string(), "{object}");
        }
        let large = home(place, ".cursor/mcp.json");
        fs::create_dir_all(large.parent().unwrap()).unwrap();
        fs::File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
        place.give(&large);
        let (_, error) = install(place, &["cursor", "--yes"], 1);
        assert!(error.contains("more than 67108864 bytes"), "{error}");
    });
}

#[test]
fn nothing_is_written_where_nobody_is_asked_and_nobody_said_yes() {
    everyone(|place| {
        let file = home(place, ".claude.json");
        let (shown, error) = install(place, &["claude"], 2);
        assert!(shown.contains("+++ ") && error.contains("--yes"), "{shown}{error}");
        install(place, &["claude", "--json"], 2);
        assert!(!file.exists());
        let (_, error) = install(place, &["claude", "--yes", "--", "--nonsense"], 2);
        assert!(error.contains("--nonsense"), "{error}");
        install(place, &["claude", "--yes", "--", "install", "codex"], 2);
        install(place, &["claude", "--yes", "--name", "a b"], 2);
        let (_, error) = install(place, &["emacs", "--yes"], 2);
        assert!(error.contains("vscode"), "{error}");
        assert!(!file.exists());
        let (object, _) = install(place, &["claude", "--yes", "--json"], 0);
        let object: Value = serde_json::from_str(&object).unwrap();
        assert_eq!((&object["changes"], &object["written"]), (&true.into(), &true.into()));
    });
}

#[test]
fn somebody_at_a_terminal_is_asked() {
    if !Path::new(PYTHON).exists() {
        return skipped("python3", "it sits at the terminal of this test");
    }
    let scenes = concat!(include_str!("screen.py"), include_str!("mcp_install.py"));
    everyone(|place| {
        for (answer, is_written) in [("n", false), ("y", true)] {
            let mut command = place.host(PYTHON);
            command.args(["-c", scenes, "asked", place.program(), answer]).env("TERM", "xterm");
            command.env("HOME", place.base.join("home")).env_remove("CLAUDE_CONFIG_DIR");
            let said = outcome(&mut command, SOON * 3);
            assert!(said.status.success(), "as {}: {}{}", place.uid(), said.text(), said.stderr);
            assert_eq!(home(place, ".claude.json").exists(), is_written, "{answer}");
        }
    });
}
