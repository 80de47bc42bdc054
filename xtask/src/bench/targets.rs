//! What the numbers have to be.

use super::measure::Results;
use super::{files, project, rows, sessions, trees};

/// The guest program on disk.
pub(super) const GUEST_SIZE: &str = "guest-size";

/// The rows of the library, by their names there.
const CREATE: &str = "create";
const EXEC: &str = "exec";
const EXEC_BARE: &str = "exec-bare";
const IDLE_MEMORY: &str = "idle-memory";
const PER_SECOND: [&str; 3] = ["sandboxes-1", "sandboxes-4", "sandboxes-16"];
const STDOUT_DEFAULT: &str = "stdout-default";
const STDOUT_LARGE: &str = "stdout-large";
const STDOUT_PIPE: &str = "stdout-pipe";
const STDOUT_FRAMED: &str = "stdout-framed";

/// A number that is promised.
pub(super) struct Target {
    pub(super) what: &'static str,
    pub(super) limit: Limit,
    measure: fn(&Results, &str) -> Option<f64>,
}

/// On which side of the number the promise is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    pub(super) fn holds(self, number: f64) -> bool {
        match self {
            Self::AtMost(limit) => number <= limit,
            Self::AtLeast(limit) => number >= limit,
        }
    }

    pub(super) fn shown(self) -> String {
        match self {
            Self::AtMost(limit) => format!("≤ {limit}"),
            Self::AtLeast(limit) => format!("≥ {limit}"),
        }
    }
}

/// All that is promised.
pub(super) const TARGETS: [Target; 27] = [
    Target {
        what: "`cofferdam run`, times bare",
        limit: Limit::AtMost(3.0),
        measure: |results, who| over(results, who, rows::RUN, rows::BARE),
    },
    Target {
        what: "`cofferdam run`, times bubblewrap",
        limit: Limit::AtMost(0.6),
        measure: |results, who| over(results, who, rows::RUN, rows::BWRAP),
    },
    Target {
        what: "create until ready with a fresh network namespace, times bare",
        limit: Limit::AtMost(1.25),
        measure: |results, who| over(results, who, CREATE, EXEC_BARE),
    },
    Target {
        what: "a command in a live sandbox, times bare",
        limit: Limit::AtMost(1.10),
        measure: |results, who| over(results, who, EXEC, EXEC_BARE),
    },
    Target {
        what: "a command in a live sandbox, µs added",
        limit: Limit::AtMost(60.0),
        measure: |results, who| Some(results.number(EXEC, who)? - results.number(EXEC_BARE, who)?),
    },
    Target {
        what: "an idle sandbox, KB, user and kernel",
        limit: Limit::AtMost(300.0),
        measure: |results, who| Some(results.number(IDLE_MEMORY, who)? / 1000.0),
    },
    Target {
        what: "sandboxes made and ended a second, best of 1, 4 and 16 at once",
        limit: Limit::AtLeast(1300.0),
        measure: |results, who| {
            PER_SECOND.iter().filter_map(|id| results.number(id, who)).reduce(f64::max)
        },
    },
    Target {
        what: "standard output by a pipe of Cofferdam's, times a default pipe",
        limit: Limit::AtLeast(3.0),
        measure: |results, who| over(results, who, STDOUT_PIPE, STDOUT_DEFAULT),
    },
    Target {
        what: "standard output by a pipe of Cofferdam's, times a bare pipe of that size",
        limit: Limit::AtLeast(0.95),
        measure: |results, who| over(results, who, STDOUT_PIPE, STDOUT_LARGE),
    },
    Target {
        what: "standard output over the framed line, MB/s",
        limit: Limit::AtLeast(700.0),
        measure: |results, who| results.number(STDOUT_FRAMED, who),
    },
    Target {
        what: "a real build inside, times the host",
        limit: Limit::AtMost(1.03),
        measure: |results, who| over(results, who, project::BUILD_INSIDE, project::BUILD_HOST),
    },
    Target {
        what: "`cofferdam exec` in a session of 2,000 commands, times in a new one",
        limit: Limit::AtMost(1.1),
        measure: |results, who| over(results, who, sessions::USED_EXEC_RUN, sessions::NEW_EXEC_RUN),
    },
    Target {
        what: "a session made beside 500 idle ones, times beside none",
        limit: Limit::AtMost(1.5),
        measure: |results, who| {
            over(results, who, sessions::MANY_CREATE, sessions::MANY_CREATE_EMPTY)
        },
    },
    Target {
        what: "a command in a session beside 500 idle ones, times beside none",
        limit: Limit::AtMost(1.1),
        measure: |results, who| over(results, who, sessions::MANY_EXEC, sessions::MANY_EXEC_EMPTY),
    },
    Target {
        what: "an idle session's sandbox, KB, user and kernel, without its keeper",
        limit: Limit::AtMost(300.0),
        measure: |results, who| Some(results.number(sessions::MANY_MEMORY, who)? / 1000.0),
    },
    Target {
        what: "an idle session's keeper, private KB",
        limit: Limit::AtMost(1000.0),
        measure: |results, who| Some(results.number(sessions::MANY_KEEPER, who)? / 1000.0),
    },
    Target {
        what: "a read of 4 KiB, µs over bare and a socket's crossing",
        limit: Limit::AtMost(10.0),
        measure: |results, who| {
            let without = results.number(files::READ_BARE, who)?;
            Some(
                results.number(files::READ, who)?
                    - without
                    - results.number(files::CROSSING, who)?,
            )
        },
    },
    Target {
        what: "a checkpoint over 1,000 files, ms added to a command",
        limit: Limit::AtMost(1.0),
        measure: |results, who| added_ms(results, who, trees::CHECKPOINT[0]),
    },
    Target {
        what: "a checkpoint over 10,000 files, ms added to a command",
        limit: Limit::AtMost(2.5),
        measure: |results, who| added_ms(results, who, trees::CHECKPOINT[1]),
    },
    Target {
        what: "a checkpoint over 50,000 files, ms added to a command",
        limit: Limit::AtMost(6.0),
        measure: |results, who| added_ms(results, who, trees::CHECKPOINT[2]),
    },
    Target {
        what: "an undo over 1,000 files, ms, all processes ended",
        limit: Limit::AtMost(1.0),
        measure: |results, who| Some(results.number(trees::UNDO[0], who)? / 1000.0),
    },
    Target {
        what: "an undo over 10,000 files, ms, all processes ended",
        limit: Limit::AtMost(2.5),
        measure: |results, who| Some(results.number(trees::UNDO[1], who)? / 1000.0),
    },
    Target {
        what: "an undo over 50,000 files, ms, all processes ended",
        limit: Limit::AtMost(6.0),
        measure: |results, who| Some(results.number(trees::UNDO[2], who)? / 1000.0),
    },
    Target {
        what: "a fork over 1,000 files, ms more than a new session",
        limit: Limit::AtMost(1.0),
        measure: |results, who| added_ms(results, who, trees::FORK[0]),
    },
    Target {
        what: "a fork over 10,000 files, ms more than a new session",
        limit: Limit::AtMost(2.5),
        measure: |results, who| added_ms(results, who, trees::FORK[1]),
    },
    Target {
        what: "a fork over 50,000 files, ms more than a new session",
        limit: Limit::AtMost(6.0),
        measure: |results, who| added_ms(results, who, trees::FORK[2]),
    },
    Target {
        what: "the guest program, MiB",
        limit: Limit::AtMost(2.0),
        measure: |results, who| Some(results.number(GUEST_SIZE, who)? / 1_048_576.0),
    },
];

impl Target {
    /// The number as this person, if its rows were measured.
    pub(super) fn measured(&self, results: &Results, who: &str) -> Option<f64> {
        (self.measure)(results, who)
    }
}

fn added_ms(results: &Results, who: &str, (id, base): (&str, &str)) -> Option<f64> {
    Some((results.number(id, who)? - results.number(base, who)?) / 1000.0)
}

fn over(results: &Results, who: &str, id: &str, base: &str) -> Option<f64> {
    let base = results.number(base, who)?;
    (base > 0.0).then_some(results.number(id, who)? / base)
}
