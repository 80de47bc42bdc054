//! The battery notices when a layer is missing: each mechanism is taken out of the plan, and what is
//! attacked must not be found fully enforced.
//!
//! Where a second layer covers the first so that no attack can tell, the table names that layer. A
//! mechanism that nothing notices and nobody covers cannot be in it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod altered;
mod sys;
mod table;

use altered::{Ground, Outcome, Person};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::{Expected, MUTATIONS};

#[test]
fn a_missing_layer_is_noticed_as_the_caller() {
    judge(Person::Caller);
}

#[test]
fn a_missing_layer_is_noticed_as_an_ordinary_user() {
    // Under `./test` the whole program runs again as the other sort of user.
    if altered::caller() == 0 && std::env::var_os("TEST_COFFERDAM_BIN").is_none() {
        judge(Person::Ordinary);
    }
}

/// Runs in a process of its own, which has one thread only.
#[test]
fn one_altered_sandbox_is_attacked() {
    if let Some(name) = std::env::var_os(altered::NAME) {
        altered::attack(name.to_str().unwrap());
    }
}

fn judge(person: Person) {
    let is_root = altered::caller() == 0 && person == Person::Caller;
    let ground = Ground::new(person);
    let whole = ground.run(table::NOTHING);
    let Outcome::Attacked { failed, lowered, verified: true, .. } = &whole else {
        // Where no sandbox can be made at all, nothing can be taken from one.
        println!("skipped: local: no sandbox can be made here: {whole}");
        return;
    };
    // A host that cannot hold the default limits says so, and is attacked as far as it holds them.
    let is_whole = failed.is_empty() && lowered.iter().all(|axis| axis == "limits");
    assert!(is_whole, "not even the whole plan holds: {whole}");
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = BTreeSet::new();
        while let Some(mutation) = MUTATIONS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = ground.run(mutation.name);
            let expected = if is_root { mutation.root } else { mutation.ordinary };
            println!("{person:?}: without {}: {outcome}; {expected:?}", mutation.name);
            if !agrees(expected, &outcome) {
                wrong.insert(format!("without {}: {expected:?}, but {outcome}", mutation.name));
            }
        }
        wrong
    };
    let wrong = std::thread::scope(|scope| {
        let second = scope.spawn(work);
        let mut wrong = work();
        wrong.extend(second.join().unwrap());
        wrong
    });
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "as {person:?}:\n{}", wrong.join("\n"));
}

fn agrees(expected: Expected, outcome: &Outcome) -> bool {
    let (failed, late, verified) = match outcome {
        Outcome::Absent => return true,
        Outcome::Refused(_) => {
            return matches!(expected, Expected::DoesNotStart | Expected::SeenAnyway(_));
        }
        Outcome::Attacked { failed, late, verified, .. } => (failed, late, *verified),
    };
    let fails = |check: &str| failed.iter().chain(late).any(|known| known == check);
    match expected {
        Expected::DoesNotStart => false,
        Expected::Seen(check) => fails(check) && verified,
        Expected::SeenByBoth(check) => fails(check) && !verified,
        Expected::SeenAnyway(check) => fails(check),
        Expected::Covered(_) | Expected::Unseen(_) => failed.is_empty() && verified,
        Expected::Open(_) => verified,
    }
}
