//! A command at a terminal. The scenes are played by `terminal.py`, which sits in front of it.

use crate::place::{PYTHON, Place, everyone, outcome, skipped};
use std::path::Path;
use std::time::Duration;

const SCENES: &str = concat!(include_str!("screen.py"), include_str!("terminal.py"));

fn play(scene: &str) {
    play_one(SCENES, scene);
}

/// Plays a scene of these, as everybody.
pub(crate) fn play_one(scenes: &str, scene: &str) {
    if !Path::new(PYTHON).exists() {
        skipped("python3", "it sits at the terminals of these tests");
        return;
    }
    everyone(|place| sit_at(place, scenes, scene, &[]));
}

/// Plays a scene as this person, with these variables.
pub(crate) fn sit_at(place: &Place, scenes: &str, scene: &str, variables: &[(&str, &str)]) {
    let mut command = place.host(PYTHON);
    command.args(["-c", scenes, scene, place.program()]).env("TERM", "xterm");
    command.envs(variables.iter().copied());
    let said = outcome(&mut command, Duration::from_secs(120));
    assert!(said.status.success(), "as {}: {}{}", place.uid(), said.text(), said.stderr);
}

#[test]
fn three_terminals_are_one_of_the_commands_own() {
    play("a_terminal_of_its_own");
}

#[test]
fn a_change_of_size_arrives() {
    play("size");
}

#[test]
fn interrupt_and_quit_are_keys_of_the_command() {
    play("keys_that_kill");
}

#[test]
fn the_key_that_stops_stops_the_program_too_and_it_goes_on() {
    play("a_key_that_stops");
}

#[test]
fn a_shell_outside_stops_it_and_calls_it_back() {
    play("stopped_from_a_shell_and_called_back");
}

#[test]
fn a_shell_inside_has_job_control() {
    play("a_shell_with_job_control");
}

#[test]
fn the_modes_of_the_terminal_come_back_however_it_ends() {
    play("modes_come_back");
}

#[test]
fn a_signal_ends_it_at_any_moment() {
    play("signals_at_any_moment");
}

#[test]
fn what_is_typed_arrives_byte_for_byte() {
    play("what_is_typed_arrives");
}

#[test]
fn much_output_arrives_at_a_terminal() {
    play("much_output_arrives");
}

#[test]
fn a_terminal_can_be_forbidden_and_forced() {
    play("forbidden_or_forced");
}

#[test]
fn in_the_background_of_a_shell_it_goes_on_without_one() {
    play("in_the_background");
}

#[test]
fn no_terminal_is_made_unless_all_three_are_one() {
    play("not_all_three");
}

#[test]
fn the_callers_terminal_cannot_be_reached() {
    play("nothing_is_left_of_the_callers_terminal");
}
