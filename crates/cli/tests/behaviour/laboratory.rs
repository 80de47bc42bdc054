//! A laboratory of two networks: the host, where the real program runs, and an internet of its own with
//! names, servers and tools' places. `laboratory/*.py` build it and play in it; what is told of each
//! attack is what came to the other side of the wire.

use crate::place::{PYTHON, Place, everyone, outcome, skipped};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PARTS: [(&str, &str); 12] = [
    ("attacks.py", include_str!("laboratory/attacks.py")),
    ("battery.py", include_str!("laboratory/battery.py")),
    ("gates.py", include_str!("laboratory/gates.py")),
    ("inside.py", include_str!("laboratory/inside.py")),
    ("naive.py", include_str!("laboratory/naive.py")),
    ("neighbour.py", include_str!("laboratory/neighbour.py")),
    ("play.py", include_str!("laboratory/play.py")),
    ("lab.py", include_str!("laboratory/lab.py")),
    ("internet.py", include_str!("laboratory/internet.py")),
    ("names.py", include_str!("laboratory/names.py")),
    ("shops.py", include_str!("laboratory/shops.py")),
    ("tools.py", include_str!("laboratory/tools.py")),
];

/// Programs that it is built with.
const NEEDED: [&str; 4] = ["ip", "unshare", "setpriv", "openssl"];

/// How long a scene may take on a machine that is busy.
const LATE: Duration = Duration::from_secs(400);

/// Where programs for administrators are, too: people have no such entry on some machines.
fn path(command: &Command) -> String {
    let own = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
    let own = own.map_or_else(|| std::env::var_os("PATH").unwrap_or_default(), Into::into);
    format!("{}:/usr/sbin:/sbin", own.to_string_lossy())
}

/// A command of the person's in namespaces of its own, in which it may arrange networks and mounts.
fn apart(place: &Place, words: &[&str]) -> Command {
    let mut command = place.host("unshare");
    let path = path(&command);
    command.env("PATH", path).env("LC_ALL", "C.UTF-8");
    if !place.is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command.args(["--net", "--mount", "--"]).args(words);
    command
}

/// Why there can be no laboratory here, if there cannot.
fn obstacle(place: &Place) -> Option<String> {
    if !Path::new(PYTHON).exists() {
        return Some(format!("there is no {PYTHON}, which builds it"));
    }
    let path = path(&place.host("true"));
    let has = |program: &&&str| path.split(':').any(|at| Path::new(at).join(program).exists());
    if let Some(program) = NEEDED.iter().find(|program| !has(program)) {
        return Some(format!("there is no program {program}"));
    }
    let said = outcome(&mut apart(place, &["true"]), LATE);
    (!said.status.success()).then(|| format!("no namespaces can be had: {}", said.stderr.trim()))
}

fn play(scene: &str) {
    everyone(|place| {
        if let Some(why) = obstacle(place) {
            return skipped("laboratory", &why);
        }
        let directory = place.base.join("laboratory");
        fs::create_dir(&directory).unwrap();
        for (name, text) in PARTS {
            fs::write(directory.join(name), text).unwrap();
        }
        let built = place.workspace.join("built");
        let script = directory.join("play.py");
        let words = [PYTHON, script.to_str().unwrap(), scene, place.program()];
        let mut command = apart(place, &[&words[..], &[built.to_str().unwrap()]].concat());
        let said = outcome(&mut command, LATE);
        print!("{}", said.text());

        assert!(said.status.success(), "as {}: {}{}", place.uid(), said.text(), said.stderr);
    });
}

#[test]
fn tools_that_fetch_reach_what_is_allowed_and_are_told_of_what_is_not() {
    play("fetching");
}

#[test]
fn package_managers_reach_what_is_allowed_and_are_told_of_what_is_not() {
    play("packages");
}

#[test]
fn languages_and_databases_reach_what_is_allowed_and_are_told_of_what_is_not() {
    play("languages");
}

#[test]
fn of_attacks_on_the_way_out_that_work_on_the_host_no_packet_leaves_a_sandbox() {
    play("attacks");
}

#[test]
fn sixty_five_attacks_on_the_proxy_reach_nobody_from_inside_and_from_outside() {
    play("proxy");
}

#[test]
fn the_gate_of_another_sandbox_cannot_be_reached() {
    play("apart");
}

#[test]
fn tools_that_honour_a_proxy_work_through_the_gates_own() {
    play("proxied");
}
