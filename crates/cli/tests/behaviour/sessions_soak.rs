//! Everybody is killed at random moments: a short form of `cargo xtask soak`.

#[path = "../../../../xtask/src/soak/rounds/mod.rs"]
mod rounds;

use crate::place::everyone;
use rounds::{Plan, run};

const ROUNDS: u64 = 10;

#[test]
fn whoever_is_killed_nothing_is_left_and_no_exit_status_is_lost() {
    everyone(|place| {
        let marker = format!("{}-soak", place.marker);
        let plan = Plan {
            rounds: ROUNDS,
            seed: u64::from(std::process::id()),
            marker: &marker,
            state: &place.state,
            workspace: &place.workspace,
            start: &|words| place.cofferdam(words),
        };
        let summary = run(&plan).unwrap_or_else(|problem| panic!("{problem}"));
        println!("as {}: {summary}", place.uid());
    });
}
