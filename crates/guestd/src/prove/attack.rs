//! A check before it is run: what attacks, what controls, and what it counts for.

use super::outcome::{Door, Outcome};
use cofferdam_wire::message::Prove;

/// What an attack needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    /// The request.
    pub(super) request: &'a Prove,
    /// The process that stands for process 1 of the sandbox.
    pub(super) init: i32,
}

impl Scene<'_> {
    /// A name below the workspace if it can be written, else below `/tmp`.
    pub(super) fn scratch(&self, name: &str) -> String {
        let targets = &self.request.targets;
        let directory = if targets.workspace_writable { &targets.workspace } else { "/tmp" };
        format!("{directory}/.cofferdam-attack-{}-{name}", std::process::id())
    }

    /// A name below the private writable space.
    pub(super) fn private(&self, name: &str) -> String {
        format!("/tmp/.cofferdam-attack-{}-{name}", std::process::id())
    }
}

/// One try, made in a child of its own.
pub(super) type Act = fn(&Scene<'_>) -> Outcome;

/// Whether a check makes sense for a request.
pub(super) type Applies = fn(&Scene<'_>) -> bool;

/// Whether commands keep no capability, as they do unless they are root of their own user namespace.
pub(super) fn is_ordinary(scene: &Scene<'_>) -> bool {
    scene.request.targets.kept_capabilities == 0
}

/// Where an attack may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    /// Anywhere: it harms nothing where it succeeds.
    Anywhere,
    /// Only where it is expected to fail: it would change the machine, or use it up.
    ConfinedOnly,
}

/// A check before it is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Its stable name.
    pub(super) name: &'static str,
    /// The promise of SECURITY.md.
    pub(super) promise: &'static str,
    /// The axis it counts for.
    pub(super) axis: &'static str,
    /// Which way the attack takes.
    pub(super) door: Door,
    /// Where the attack may run.
    pub(super) arm: Arm,
    /// How long each of the two tries may take.
    pub(super) deadline_ms: u64,
    /// Whether it is tried at all.
    pub(super) applies: Applies,
    /// The attack; without one it is a check of usability.
    pub(super) attack: Option<Act>,
    /// The same action where it must succeed.
    pub(super) control: Act,
}

/// How long a try may take. All together have two seconds, and nearly all need less than a
/// millisecond; this is for the one that hangs.
const DEADLINE_MS: u64 = 400;

/// The axis of a group of checks, and the promise they belong to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// The axis.
    pub(super) axis: &'static str,
    /// The promise.
    pub(super) promise: &'static str,
    /// Which way its attacks take.
    pub(super) door: Door,
}

impl Group {
    /// A check of this group.
    pub(super) const fn check(self, name: &'static str, attack: Act, control: Act) -> Row {
        Row { attack: Some(attack), ..self.usable(name, control) }
    }

    /// A check of usability that counts for this group's axis.
    pub(super) const fn usable(self, name: &'static str, control: Act) -> Row {
        Row {
            name,
            promise: self.promise,
            axis: self.axis,
            door: self.door,
            arm: Arm::Anywhere,
            deadline_ms: DEADLINE_MS,
            applies: |_| true,
            attack: None,
            control,
        }
    }
}

impl Row {
    /// The same, never attacked unconfined.
    pub(super) const fn confined(mut self) -> Self {
        self.arm = Arm::ConfinedOnly;
        self
    }

    /// The same, only where this holds.
    pub(super) const fn when(mut self, applies: Applies) -> Self {
        self.applies = applies;
        self
    }

    /// The same, with more time.
    pub(super) const fn within_ms(mut self, deadline_ms: u64) -> Self {
        self.deadline_ms = deadline_ms;
        self
    }
}
