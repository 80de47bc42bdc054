//! Attacks on the whole program, from outside: each is run through `cofferdam run` as a user would.
//!
//! Whether one got through is decided on the host wherever it can be: a file outside has changed, a
//! listener was reached, a process is left, a canary is in the output. What the attack itself says
//! counts beside that. The same attacks run unconfined, where they must succeed.
//!
//! `COFFERDAM_BIN` names another program to attack; `COFFERDAM_EXPECT=local` makes what cannot run
//! here a failure; `COFFERDAM_ESCAPE_ONLY` picks attacks by the beginning of their names.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod arm;
mod attack;
mod lifecycle;
mod snapshot;
mod stage;
mod table;
mod world;

use arm::{Arm, Confinement, Person};

#[test]
fn unconfined_attacks_work() {
    table::run(&Arm::new("bare", Person::Ordinary, Confinement::None));
}

macro_rules! battery {
    ($($test:ident: $person:ident, $profile:literal;)*) => {$(
        #[test]
        fn $test() {
            let arm = Arm::new(stringify!($test), Person::$person, Confinement::Profile($profile));
            if stage::is_set(&arm) {
                table::run(&arm);
            }
        }
    )*};
}

battery! {
    no_network_holds_for_the_caller: Caller, "no-network";
    no_network_holds_for_an_ordinary_user: Ordinary, "no-network";
    read_only_holds_for_the_caller: Caller, "read-only";
    read_only_holds_for_an_ordinary_user: Ordinary, "read-only";
    repo_write_holds_for_the_caller: Caller, "repo-write";
    repo_write_holds_for_an_ordinary_user: Ordinary, "repo-write";
    ci_only_holds_for_the_caller: Caller, "ci-only";
    ci_only_holds_for_an_ordinary_user: Ordinary, "ci-only";
    full_dev_holds_for_the_caller: Caller, "full-dev";
    full_dev_holds_for_an_ordinary_user: Ordinary, "full-dev";
}

#[test]
fn nothing_outlives_the_caller() {
    let arm = Arm::new("life-caller", Person::Caller, Confinement::Profile("no-network"));
    if stage::is_set(&arm) {
        lifecycle::run(&arm);
    }
}

#[test]
fn nothing_outlives_an_ordinary_user() {
    let arm = Arm::new("life-ordinary", Person::Ordinary, Confinement::Profile("no-network"));
    if stage::is_set(&arm) {
        lifecycle::run(&arm);
    }
}
