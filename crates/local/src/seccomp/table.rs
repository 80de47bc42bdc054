//! All rows, and the words for a row.
//!
//! A call that both architectures have stands in `allowed`, `refused` or `conditions`; what only
//! one has stands in its own file. Calls younger than the C library's list stand with their
//! number, which is the same everywhere from 424 on.

use super::rule::{Call, Decision, Errno, Rule, Scope, Verdict};
use super::surface::{Surface, Tracing};
use super::{allowed, conditions, native, refused};
use cofferdam_core::User;

/// Calls by the constants of `libc`, whose prefix is cut off for the name.
macro_rules! calls {
    [$($constant:ident),* $(,)?] => {
        &[$($crate::seccomp::Call {
            name: stringify!($constant).split_at(4).1,
            number: libc::$constant,
        }),*]
    };
}
pub(super) use calls;

/// All rows for this surface, those for unlisted calls and foreign ABIs last.
pub fn rules(surface: &Surface) -> impl Iterator<Item = Rule> + use<> {
    let tracing = match surface.tracing {
        Tracing::Refused => NO_TRACING,
        Tracing::OwnProcesses => OWN_TRACING,
    };
    let root_change = match surface.user {
        User::Ordinary => NO_ROOT_CHANGE,
        User::Root => ROOT_CHANGE,
    };
    let everywhere =
        allowed::ROWS.iter().chain(refused::REFUSED).chain(refused::ABSENT).chain(conditions::ROWS);
    everywhere.chain(native::ROWS).copied().chain([tracing, root_change, UNLISTED, FOREIGN])
}

/// A row that allows its calls.
pub(super) const fn allow(calls: &'static [Call], why: &'static str) -> Rule {
    Rule { scope: Scope::Calls(calls), decision: Decision::Always(Verdict::Allow), why }
}

/// A row that refuses its calls for being dangerous.
pub(super) const fn refuse(calls: &'static [Call], why: &'static str) -> Rule {
    let decision = Decision::Always(Verdict::Refuse(Errno::Eperm));
    Rule { scope: Scope::Calls(calls), decision, why }
}

/// A row whose calls are known, and answered as if the kernel did not have them.
pub(super) const fn absent(calls: &'static [Call], why: &'static str) -> Rule {
    let decision = Decision::Always(Verdict::Refuse(Errno::Enosys));
    Rule { scope: Scope::Calls(calls), decision, why }
}

/// A call that not every `libc` has a constant for.
pub(super) const fn call(name: &'static str, number: i64) -> Call {
    Call { name, number }
}

pub(super) const UNLISTED: Rule = Rule {
    scope: Scope::Unlisted,
    decision: Decision::Always(Verdict::Refuse(Errno::Enosys)),
    why: "what nobody has judged is not there, and programs fall back to what they know",
};

pub(super) const FOREIGN: Rule = Rule {
    scope: Scope::ForeignAbi,
    decision: Decision::Always(Verdict::KillProcess),
    why: "their numbers mean other calls, so no row would hold for them",
};

const TRACERS: &[Call] = calls![SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev];

const NO_TRACING: Rule = refuse(
    TRACERS,
    "no command works in another's memory; debuggers and leak sanitisers need full-dev",
);

const OWN_TRACING: Rule =
    allow(TRACERS, "debuggers work in this profile; only processes of the sandbox can be named");

const NO_ROOT_CHANGE: Rule =
    refuse(calls![SYS_chroot], "a new root directory is a step of many escapes");

const ROOT_CHANGE: Rule =
    allow(calls![SYS_chroot], "package managers run scripts so; the old root is gone already");
