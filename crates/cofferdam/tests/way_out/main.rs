//! The way out of a sandbox that is kept, with a stand-in for the gate: this very program, started as
//! the command would be. What is tested is the handing over, and not what a gate decides.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![expect(dead_code, reason = "what stands on the ground is for other tests, too")]

#[path = "../ground/mod.rs"]
mod ground;
#[path = "../keeper/stage.rs"]
mod stage;
mod stand_in;
mod tests;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if std::env::args_os().nth(1).is_some_and(|word| word == "gate") {
        return stand_in::serve();
    }
    let arguments = Arguments::from_args();
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, tests::ALL.into_iter().map(trial).collect()).exit();
}
