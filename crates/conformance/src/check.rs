//! The list of checks.

use crate::layers::LAYERS;
use crate::network::NETWORK;
use crate::points::POINTS;
use crate::stage::Stage;
use crate::{escape, exec, files, life, limits, policy, ports, streams};
use cofferdam_core::{Error, Lost};
use std::pin::Pin;

/// One promise that a backend keeps.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its stable name, as in `exec.bytes_survive`.
    pub name: &'static str,
    /// What is promised, as a sentence.
    pub promise: &'static str,
    /// Tries it.
    pub run: for<'a> fn(&'a mut Stage) -> Running<'a>,
}

/// A check under way.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// What came of a check.
pub type Verdict = Result<(), Stop>;

/// Why a check did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The promise is broken.
    Failed(String),
    /// It cannot be tried here.
    Skipped(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(format!("{}: {}", error.kind.name(), error.chain()))
    }
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Error::from(lost).into()
    }
}

/// Fails with a reason.
pub(crate) fn fail(reason: impl Into<String>) -> Verdict {
    Err(Stop::Failed(reason.into()))
}

/// Fails unless both are the same.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Verdict {
    if found == expected {
        return Ok(());
    }
    fail(format!("{what}: found {found:?}, expected {expected:?}"))
}

macro_rules! check {
    ($name:literal, $run:path, $promise:literal) => {
        Check { name: $name, promise: $promise, run: |stage| Box::pin($run(stage)) }
    };
}

/// All checks, in the order of the document.
pub const ALL: &[Check] = &[
    check!(
        "exec.nonzero_is_not_an_error",
        exec::nonzero_is_not_an_error,
        "A command that fails is a result with its own exit code, and no error."
    ),
    check!(
        "exec.stdout_and_stderr_stay_apart",
        exec::stdout_and_stderr_stay_apart,
        "What is written to standard error never appears in standard output."
    ),
    check!(
        "exec.bytes_survive",
        exec::bytes_survive,
        "Every byte passes unchanged, NUL and invalid UTF-8 too, in both directions."
    ),
    check!(
        "exec.stdin_closed_unless_asked",
        exec::stdin_closed_unless_asked,
        "A command that was promised no input reads the end at once."
    ),
    check!(
        "exec.not_started_says_why",
        exec::not_started_says_why,
        "A missing program ends as 127 and a missing directory as 125, told apart from a run."
    ),
    check!(
        "exec.signal_is_told_apart",
        exec::signal_is_told_apart,
        "Death by a signal is told apart from an exit code, whoever sent it."
    ),
    check!(
        "exec.same_id_runs_once",
        exec::same_id_runs_once,
        "An id that runs is a conflict and starts nothing; it is free again after the end."
    ),
    check!(
        "exec.output_past_the_cap_is_counted",
        exec::output_past_the_cap_is_counted,
        "What is kept of output and what is omitted add up to what was written."
    ),
    check!(
        "exec.timeout_kills_the_tree",
        exec::timeout_kills_the_tree,
        "When a command's time is over, no descendant of it is left when its end is told."
    ),
    check!(
        "exec.partial_output_survives_timeout",
        exec::partial_output_survives_timeout,
        "What a command wrote before its time was over comes back."
    ),
    check!(
        "exec.background_child_does_not_delay",
        exec::background_child_does_not_delay,
        "A child that holds the output open delays no result, and does not outlive its command."
    ),
    check!(
        "streams.slow_reader_stops_nobody",
        streams::slow_reader_stops_nobody,
        "A command whose output nobody reads stops no other, and loses nothing."
    ),
    check!(
        "tty.resize_arrives",
        streams::resize_arrives,
        "A new size of the terminal reaches the program in it."
    ),
    check!(
        "files.bytes_survive",
        files::bytes_survive,
        "Every byte of a file passes unchanged, whole and in parts, and parents are made."
    ),
    check!(
        "files.commands_see_them",
        files::commands_see_them,
        "What is written is read by commands, and what commands write is read."
    ),
    check!(
        "files.conditions_hold",
        files::conditions_hold,
        "A file is written only as far as that was said, and is otherwise as it was."
    ),
    check!(
        "files.carry_is_whole",
        files::carry_is_whole,
        "Many changes at once are all done, or none of them."
    ),
    check!(
        "files.carry_looks_first",
        files::carry_looks_first,
        "Many changes at once are done only if everything is as it was expected."
    ),
    check!(
        "files.remove_twice",
        files::remove_twice,
        "What is removed is gone, and whoever removes it again hears that."
    ),
    check!(
        "files.many_at_once",
        files::many_at_once,
        "Several files come at once, and one that cannot be read stops no other."
    ),
    check!(
        "files.trees_are_copied",
        files::trees_are_copied,
        "A directory is copied with all that is in it, links as links, under a free name."
    ),
    check!(
        "files.names_are_found",
        files::names_are_found,
        "Names are found by patterns, whoever made them, and not where a rule excludes them."
    ),
    check!(
        "files.lines_are_found",
        files::lines_are_found,
        "Lines are found by a regular expression, with their numbers."
    ),
    check!(
        "files.archives_are_made",
        files::archives_are_made,
        "An archive holds what commands made, and is the same tree in another place."
    ),
    check!(
        "files.archives_are_whole",
        files::archives_are_whole,
        "What is in the way of an archive refuses all of it; otherwise every byte comes."
    ),
    check!(
        "files.watch_tells_changes",
        files::watch_tells_changes,
        "A watch tells what is made, written, set, renamed and removed, whoever does it."
    ),
    check!(
        "files.watch_enters_new_directories",
        files::watch_enters_new_directories,
        "What is made in a new directory is told, however soon after it."
    ),
    check!(
        "files.watch_ends_with_its_sandbox",
        files::watch_ends_with_its_sandbox,
        "A watch whose sandbox is gone ends with an error."
    ),
    check!(
        "paths.dotdot_refused",
        files::dotdot_refused,
        "No path goes up from the root of the workspace."
    ),
    check!(
        "paths.symlink_out_refused",
        files::symlink_out_refused,
        "A link that leads out is not followed, and one that stays inside is."
    ),
    check!(
        "ports.bytes_survive",
        ports::bytes_survive,
        "Every byte passes unchanged between a caller and a server inside, in both directions."
    ),
    check!(
        "ports.nobody_listens_is_said",
        ports::nobody_listens_is_said,
        "Where nobody listens inside, no connection is made, and that is said."
    ),
    check!(
        "ports.are_of_the_sandbox",
        ports::are_of_the_sandbox,
        "A port is the sandbox's own: a server of the host is not reached by its number."
    ),
    check!("life.destroy_twice", life::destroy_twice, "Ending a sandbox that is gone succeeds."),
    check!(
        "life.gone_is_gone",
        life::gone_is_gone,
        "After a sandbox was ended nothing runs in it, nothing starts in it and nobody lists it."
    ),
    check!(
        "life.five_at_once_are_five",
        life::five_at_once_are_five,
        "Sandboxes that are made at the same time are different ones."
    ),
    check!(
        "life.same_id_is_a_conflict",
        life::same_id_is_a_conflict,
        "An id of a sandbox that exists is refused, and the first one is unharmed."
    ),
    check!(
        "life.crash_after_create_is_found",
        life::crash_after_create_is_found,
        "A caller that lost the record finds the sandbox by its id, uses it and ends it."
    ),
    check!(
        "policy.refuse_beats_degrade",
        policy::refuse_beats_degrade,
        "What cannot be enforced is refused, unless the caller accepts less; then it is said."
    ),
    check!(
        "policy.probe_agrees_with_create",
        policy::probe_agrees_with_create,
        "A probe promises no more than a sandbox of the same spec keeps."
    ),
    check!(
        "policy.unsupported_is_said_beforehand",
        policy::unsupported_is_said_beforehand,
        "What is not there (a terminal, a way out) is refused before anything runs."
    ),
    check!(
        "policy.read_only_refuses_writes",
        policy::read_only_refuses_writes,
        "A read-only workspace cannot be written, and another one can."
    ),
    check!(
        "policy.copy_on_write_lands_beside",
        policy::copy_on_write_lands_beside,
        "A copy-on-write workspace shows the directory, and what is written there lands beside it."
    ),
    check!(
        "limits.memory_names_its_cause",
        limits::memory_names_its_cause,
        "A command that used too much memory ends with that as its cause."
    ),
    check!(
        "limits.fork_bomb_contained",
        limits::fork_bomb_contained,
        "A command that makes too many processes fails, and the sandbox stays usable."
    ),
    check!(
        "escape.host_pid_invisible",
        escape::host_pid_invisible,
        "No process of the host is seen from inside."
    ),
    check!(
        "escape.host_file_unreadable",
        escape::host_file_unreadable,
        "A file of the host that nobody showed cannot be read from inside."
    ),
    check!(
        "escape.environment_is_clean",
        escape::environment_is_clean,
        "A variable of the caller that nobody named is not inside."
    ),
];

/// `docs/conformance.md`, made from [`ALL`], [`LAYERS`] and [`POINTS`].
pub fn document() -> String {
    let mut text = "# Conformance\n\n\
        Every backend passes these checks of `crates/conformance`, the fake one first. A check that \
        a backend\ncannot be put to is skipped with a reason, and the list of its skips is a file \
        beside its tests. Each\ncheck is known to fail: a test switches on a fault of the fake \
        backend for every one.
Those called `layers`, `points` and `network` are for backends that keep \
         sandboxes; the first two are
passed by an overlay and by a copy.

This page is written by \
         `BLESS=1 cargo test -p \
        cofferdam-conformance`.\n\n| Check | Promise |\n|---|---|\n"
        .to_owned();
    let mut row = |name: &str, promise: &str| {
        for part in ["| `", name, "` | ", promise, " |\n"] {
            text.push_str(part);
        }
    };
    ALL.iter().for_each(|check| row(check.name, check.promise));
    LAYERS.iter().for_each(|check| row(check.name, check.promise));
    POINTS.iter().for_each(|check| row(check.name, check.promise));
    NETWORK.iter().for_each(|check| row(check.name, check.promise));
    text
}
