//! Commands of sessions at a terminal. The scenes are played by `sessions_terminal.py`.

use crate::terminal::play_one;

pub(crate) const SCENES: &str =
    concat!(include_str!("screen.py"), include_str!("sessions_terminal.py"));

fn play(scene: &str) {
    play_one(SCENES, scene);
}

#[test]
fn a_command_of_a_session_gets_a_terminal_with_keys_and_size() {
    play("keys_and_size");
}

#[test]
fn a_command_at_a_terminal_can_be_left_and_come_back_to() {
    play("left_and_come_back_to");
}

#[test]
fn a_shell_stays_open_when_it_is_left_or_its_caller_is_killed() {
    play("a_shell_stays_open");
}

#[test]
fn a_command_of_a_session_that_the_key_stops_stops_its_caller_too() {
    play("the_key_that_stops");
    play("stopped_from_a_shell");
}

#[test]
fn the_modes_of_the_callers_terminal_come_back() {
    play("modes_come_back");
}

#[test]
fn a_shell_whose_session_is_stopped_says_so() {
    play("stopped_under_a_shell");
}
