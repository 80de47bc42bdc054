//! A battery of attacks on the files of a session, through the command as a user types it.
//!
//! What must not be reached is in two places: beside the workspace on the host, and in the sandbox's
//! own `/tmp`, where a worker that left the workspace would find it with its own rights. All the while a
//! command inside swaps a directory with a link that leads out. The controls do the same with a program
//! that takes no care, and must get through.

mod attacks;
mod controls;
mod ground;

use crate::place::{PYTHON, everyone, skipped};
use attacks::{ATTACKS, Expected};
use ground::Ground;

#[test]
fn every_attack_on_files_is_held() {
    everyone(|place| {
        if !std::path::Path::new(PYTHON).exists() {
            return skipped("python", "there is no python3 to swap names with");
        }
        let ground = Ground::new(place);
        let failures: Vec<String> = ATTACKS.iter().filter_map(|a| ground.failure_of(a)).collect();
        assert!(ground.swaps() > 100, "the names were hardly swapped");
        assert!(failures.is_empty(), "{} got through:\n{}", failures.len(), failures.join("\n"));
    });
}

#[test]
fn a_program_that_takes_no_care_is_caught_by_each_sort() {
    everyone(|place| {
        if !std::path::Path::new(PYTHON).exists() {
            return skipped("python", "there is no python3 to be careless");
        }
        let ground = Ground::new(place);
        for control in controls::CONTROLS {
            ground.set(control.trap);
            (control.check)(&ground, control.careless);
            ground.restore();
        }
    });
}

#[test]
fn there_are_enough_attacks_and_each_is_another() {
    let refused = ATTACKS.iter().filter(|a| !matches!(a.expected, Expected::Done)).count();
    assert!(ATTACKS.len() >= 64 && refused >= 48, "{} attacks, {refused} refused", ATTACKS.len());
    assert!(controls::CONTROLS.len() >= 6);
    let mut seen = std::collections::BTreeSet::new();
    for attack in ATTACKS {
        assert!(seen.insert((attack.trap, attack.words)), "twice: {attack:?}");
    }
}
