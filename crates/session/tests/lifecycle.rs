//! The pure lifecycle, over all pairs and over long histories.

use cofferdam_session::{Action, Event, Phase, next};
use proptest::prelude::*;

#[test]
fn every_pair_is_answered_and_deleting_absorbs() {
    for phase in Phase::ALL {
        for event in Event::ALL {
            let step = next(phase, event);
            if phase == Phase::Deleting {
                assert_eq!(step.phase, Phase::Deleting, "{event:?}");
            }
            assert_eq!(next(phase, event), step);
        }
        assert_eq!(next(phase, Event::Delete).phase, Phase::Deleting);
    }
}

#[test]
fn nothing_is_made_or_removed_without_a_phase_that_says_so() {
    for phase in Phase::ALL {
        for event in Event::ALL {
            let step = next(phase, event);
            match step.action {
                Action::Create => {
                    assert_eq!(step.phase, Phase::Creating);
                    assert!(!phase.owes_an_end(), "{phase:?} may still live");
                }
                Action::Remove => {
                    assert_eq!((phase, event), (Phase::Deleting, Event::Ended));
                }
                Action::Pause => assert_eq!(step.phase, Phase::Pausing),
                Action::Resume => assert_eq!(step.phase, Phase::Resuming),
                Action::Refuse => assert_eq!(step.phase, phase),
                Action::Nothing | Action::Look | Action::End => {}
            }
        }
    }
}

#[test]
fn what_owes_an_end_is_left_only_by_proof() {
    for phase in Phase::ALL.into_iter().filter(|phase| phase.owes_an_end()) {
        for event in Event::ALL {
            if !next(phase, event).phase.owes_an_end() {
                assert!(matches!(event, Event::FoundGone | Event::Ended), "{phase:?} {event:?}");
            }
        }
    }
}

#[test]
fn names_are_read_back() {
    for phase in Phase::ALL {
        assert_eq!(Phase::from_name(phase.name()), Some(phase));
    }
    assert_eq!(Phase::from_name("gone"), None);
}

/// What is there, and what a row says of it.
#[derive(Debug, Clone, Copy)]
struct Model {
    row: Option<Phase>,
    alive: bool,
    paused: bool,
}

/// What comes of one action.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Done,
    ReplyLost,
    NotDone,
    CrashBefore,
    CrashAfter,
}

impl Model {
    fn look(self) -> Event {
        match (self.alive, self.paused) {
            (false, _) => Event::FoundGone,
            (true, false) => Event::FoundRunning,
            (true, true) => Event::FoundPaused,
        }
    }

    /// Follows one event to the end of what it entails.
    fn follow(&mut self, mut event: Event, fates: &mut impl Iterator<Item = Fate>) {
        for _ in 0..8 {
            let Some(phase) = self.row else { return };
            let step = next(phase, event);
            self.row = Some(step.phase);
            self.check();
            let fate = fates.next().unwrap_or(Fate::Done);
            let does = !matches!(fate, Fate::NotDone | Fate::CrashBefore);
            let told = matches!(fate, Fate::Done);
            let answer = match step.action {
                Action::Nothing | Action::Refuse => return,
                Action::Remove => {
                    if does {
                        self.row = None;
                    }
                    return;
                }
                Action::Look => self.look(),
                Action::Create => {
                    self.alive |= does;
                    self.paused &= !does;
                    if told { Event::Made } else { Event::NotMade }
                }
                Action::Pause => {
                    self.paused |= does && self.alive;
                    if told && self.alive { Event::PauseDone } else { Event::PauseFailed }
                }
                Action::Resume => {
                    self.paused &= !does;
                    if told && self.alive { Event::ResumeDone } else { Event::ResumeFailed }
                }
                Action::End => {
                    self.alive &= !does;
                    if told { Event::Ended } else { Event::EndFailed }
                }
            };
            self.check();
            if matches!(fate, Fate::CrashBefore | Fate::CrashAfter) {
                return;
            }
            event = answer;
        }
    }

    fn check(&self) {
        let owes = self.row.is_some_and(Phase::owes_an_end);
        assert!(!self.alive || owes, "alive in {:?}", self.row);
    }
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        4 => Just(Fate::Done),
        1 => Just(Fate::ReplyLost),
        1 => Just(Fate::NotDone),
        1 => Just(Fate::CrashBefore),
        1 => Just(Fate::CrashAfter),
    ];
    proptest::collection::vec(fate, 0..200)
}

/// What is asked for, or `None` where the sandbox dies.
fn asks() -> impl Strategy<Value = Vec<Option<Event>>> {
    let ask = prop_oneof![
        4 => Just(Some(Event::Ensure)),
        2 => Just(Some(Event::Pause)),
        1 => Just(Some(Event::Stop)),
        1 => Just(Some(Event::Delete)),
        1 => Just(None),
    ];
    proptest::collection::vec(ask, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Nothing lives without a row that owes its end, and a delete that is repeated without faults
    /// removes all.
    #[test]
    fn nothing_lives_without_a_row_that_owes_its_end(asks in asks(), fates in fates()) {
        let mut fates = fates.into_iter();
        let mut model = Model { row: Some(Phase::Creating), alive: false, paused: false };
        for ask in asks {
            match ask {
                Some(event) => model.follow(event, &mut fates),
                None => (model.alive, model.paused) = (false, false),
            }
            model.check();
        }
        model.follow(Event::Delete, &mut std::iter::empty());
        prop_assert!(model.row.is_none() && !model.alive);
    }

    /// Without faults, two askings bring what still exists to where it is wanted.
    #[test]
    fn what_is_wanted_is_reached(asks in asks(), fates in fates()) {
        let mut fates = fates.into_iter();
        let mut model = Model { row: Some(Phase::Creating), alive: false, paused: false };
        for ask in asks.into_iter().flatten() {
            model.follow(ask, &mut fates);
        }
        for _ in 0..3 {
            model.follow(Event::Ensure, &mut std::iter::empty());
        }
        let good = match model.row {
            None | Some(Phase::Deleting) => true,
            Some(phase) => phase == Phase::Running && model.alive && !model.paused,
        };
        prop_assert!(good, "{model:?}");
    }
}
