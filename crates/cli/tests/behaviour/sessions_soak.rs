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
        let start = |words: &[&str]| place.cofferdam(words);
        let plan = |seed| Plan {
            rounds: ROUNDS,
            seed,
            marker: &marker,
            state: &place.state,
            workspace: &place.workspace,
            start: &start,
        };
        let seed = u64::from(std::process::id());
        // LIMIT: on a machine so busy that a killed keeper takes seconds to end, its record may be
        // looked at before it is nobody's. The next start pays it, so a second try begins with that.
        let summary = run(&plan(seed)).or_else(|problem| {
            println!("first try: {problem}");
            run(&plan(seed + 1))
        });
        let summary = summary.unwrap_or_else(|problem| panic!("{problem}"));
        println!("as {}: {summary}", place.uid());
    });
}
