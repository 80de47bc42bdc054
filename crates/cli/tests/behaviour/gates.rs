//! The gate as a process of its own. `gate.py` stands for who starts it, for the inside, and for a
//! server outside.

use crate::place::{PYTHON, everyone, outcome, skipped};
use std::path::Path;
use std::time::Duration;

fn play(scene: &str) {
    if !Path::new(PYTHON).exists() {
        skipped("python3", "it starts the gates of these tests");
        return;
    }
    everyone(|place| {
        let mut command = place.host(PYTHON);
        command.args(["-c", include_str!("gate.py"), scene, place.program()]);
        let said = outcome(&mut command, Duration::from_secs(60));
        assert!(said.status.success(), "as {}: {}{}", place.uid(), said.text(), said.stderr);
    });
}

#[test]
fn a_gate_serves_the_sockets_that_it_is_handed_and_nothing_else() {
    play("serves");
}

#[test]
fn a_gate_ends_with_its_control_socket() {
    play("ends");
}

#[test]
fn a_gate_needs_no_environment_and_cannot_be_looked_into() {
    play("closed");
}

#[test]
fn a_gate_that_was_not_started_as_one_says_so() {
    play("alone");
}
