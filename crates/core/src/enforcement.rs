//! How far a policy holds, and whether that is enough.

use crate::{Error, ErrorKind, Limits, Profile, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far one axis is enforced.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Degree {
    /// Not at all.
    None,
    /// Some promises of the axis hold, others do not.
    Partial,
    /// Every promise of the axis holds.
    Full,
}

/// The five things that are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// What can be read and written.
    Files,
    /// What can be reached.
    Network,
    /// What processes can see, signal and outlive; what of the kernel they can call.
    Processes,
    /// How much can be used.
    Limits,
    /// What of the caller's environment, descriptors and identity can be seen.
    Environment,
}

impl Axis {
    /// All axes.
    pub const ALL: [Self; 5] =
        [Self::Files, Self::Network, Self::Processes, Self::Limits, Self::Environment];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Network => "network",
            Self::Processes => "processes",
            Self::Limits => "limits",
            Self::Environment => "environment",
        }
    }
}

/// What an [`Enforced`] is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It was derived from host facts before anything ran.
    Planned,
    /// It was applied, and confirmed by the host.
    Applied,
    /// It was attacked from inside, and held.
    Probed,
}

/// How far each axis is enforced, and why not further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforced {
    /// What can be read and written.
    pub files: Degree,
    /// What can be reached.
    pub network: Degree,
    /// Visibility, signals, survival, kernel surface.
    pub processes: Degree,
    /// How much can be used.
    pub limits: Degree,
    /// Environment, descriptors, identity.
    pub environment: Degree,
    /// Why an axis is not full: one sentence each, led by the axis and a colon.
    pub reasons: Vec<String>,
    /// What this is known from.
    pub basis: Basis,
}

/// The verdict in one word, as in seed systems that knew three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// Every axis that counts is full.
    FullyEnforced,
    /// Something holds, something does not.
    Partial,
    /// Nothing that counts holds.
    Unavailable,
}

/// What to do where a promise cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnUnavailable {
    /// Run nothing.
    #[default]
    Refuse,
    /// Keep what holds, say what does not, and go on.
    Degrade,
}

/// Leave to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// All that counts holds.
    Full,
    /// Less holds than was asked for, and the caller accepted that.
    Degraded,
}

impl Enforced {
    /// Every axis full.
    pub fn full(basis: Basis) -> Self {
        Self {
            files: Degree::Full,
            network: Degree::Full,
            processes: Degree::Full,
            limits: Degree::Full,
            environment: Degree::Full,
            reasons: Vec::new(),
            basis,
        }
    }

    /// No axis at all, for this reason: what is claimed where nobody can look any more.
    pub fn nowhere(reason: &str) -> Self {
        let mut enforced = Self::full(Basis::Applied);
        for axis in Axis::ALL {
            enforced.lower(axis, Degree::None, reason);
        }
        enforced
    }

    /// The degree of one axis.
    pub fn degree(&self, axis: Axis) -> Degree {
        match axis {
            Axis::Files => self.files,
            Axis::Network => self.network,
            Axis::Processes => self.processes,
            Axis::Limits => self.limits,
            Axis::Environment => self.environment,
        }
    }

    /// Lowers one axis to `degree`, never raises it, and notes why.
    pub fn lower(&mut self, axis: Axis, degree: Degree, reason: &str) {
        let place = match axis {
            Axis::Files => &mut self.files,
            Axis::Network => &mut self.network,
            Axis::Processes => &mut self.processes,
            Axis::Limits => &mut self.limits,
            Axis::Environment => &mut self.environment,
        };
        *place = (*place).min(degree);
        self.reasons.push(format!("{}: {reason}", axis.name()));
    }

    /// The verdict over the axes that count. Limits count only where `limits_count`.
    pub fn overall(&self, limits_count: LimitsCount) -> Enforcement {
        let counted = Axis::ALL
            .into_iter()
            .filter(|axis| *axis != Axis::Limits || limits_count == LimitsCount::Yes)
            .map(|axis| self.degree(axis));
        let (mut all_full, mut all_none) = (true, true);
        for degree in counted {
            all_full &= degree == Degree::Full;
            all_none &= degree == Degree::None;
        }
        match (all_full, all_none) {
            (true, _) => Enforcement::FullyEnforced,
            (false, true) => Enforcement::Unavailable,
            (false, false) => Enforcement::Partial,
        }
    }
}

/// Whether the limits axis counts toward a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitsCount {
    /// The profile or the caller asks for limits.
    Yes,
    /// Default limits only: reported, not judged.
    No,
}

impl LimitsCount {
    /// Whether they count where all that is known is what was asked for.
    pub fn by_wish(profile: Profile, limits: &Limits) -> Self {
        let is_asked = Limited::ALL.into_iter().any(|what| what.is_asked(limits));
        if profile.requires_limits() || is_asked { Self::Yes } else { Self::No }
    }
}

/// What can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Memory.
    Memory,
    /// The number of processes.
    Pids,
    /// Processor time.
    Cpu,
    /// The private writable space.
    Disk,
}

impl Limited {
    /// All of it.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Pids, Self::Cpu, Self::Disk];

    /// What the reason begins with why it is not limited for all processes together.
    pub fn unheld(self) -> &'static str {
        match self {
            Self::Memory => {
                "private memory is limited for each process, not for all together, and memory that is shared is not:"
            }
            Self::Pids => "the number of processes is not limited:",
            Self::Cpu => "processor time is not limited:",
            Self::Disk => "the private writable space is not limited:",
        }
    }

    /// Whether the caller named a limit of it.
    pub fn is_asked(self, limits: &Limits) -> bool {
        match self {
            Self::Memory => limits.memory_bytes.is_asked(),
            Self::Pids => limits.pids.is_asked(),
            Self::Cpu => limits.cpu_millis.is_asked(),
            Self::Disk => limits.disk_bytes.is_asked(),
        }
    }
}

impl Enforced {
    /// Why less holds than was wished for: the reasons of the axes that count, and of limits those that were
    /// asked for, where the profile does not demand all.
    pub fn reasons_that_count(&self, profile: Profile, limits: &Limits) -> Vec<&str> {
        let of_axis = |reason: &str, axis: Axis| {
            reason.strip_prefix(axis.name())?.strip_prefix(": ").map(str::to_owned)
        };
        // What is said of an axis that holds is no reason why it does not.
        let holds = |reason: &str| {
            let of = Axis::ALL.into_iter().find(|axis| of_axis(reason, *axis).is_some());
            of.is_some_and(|axis| self.degree(axis) == Degree::Full)
        };
        let counts = |reason: &&str| {
            if holds(reason) {
                return false;
            }
            let Some(of_limits) = of_axis(reason, Axis::Limits) else { return true };
            let about = Limited::ALL.into_iter().find(|what| of_limits.starts_with(what.unheld()));
            match (LimitsCount::by_wish(profile, limits), about) {
                (LimitsCount::No, _) => false,
                (LimitsCount::Yes, Some(what)) => {
                    profile.requires_limits() || what.is_asked(limits)
                }
                (LimitsCount::Yes, None) => true,
            }
        };
        self.reasons.iter().map(String::as_str).filter(counts).collect()
    }
}

/// Decides whether a sandbox that enforces this much may start.
pub fn admit(
    profile: Profile,
    limits_count: LimitsCount,
    on_unavailable: OnUnavailable,
    enforced: &Enforced,
) -> Result<Admission> {
    match (enforced.overall(limits_count), on_unavailable) {
        (Enforcement::FullyEnforced, _) => Ok(Admission::Full),
        (Enforcement::Partial | Enforcement::Unavailable, OnUnavailable::Degrade) => {
            Ok(Admission::Degraded)
        }
        (Enforcement::Partial | Enforcement::Unavailable, OnUnavailable::Refuse) => {
            let reasons = enforced.reasons.join("; ");
            Err(Error::new(
                ErrorKind::Unenforceable,
                format!("profile {profile} cannot be enforced in full here: {reasons}"),
            )
            .hint("Run `cofferdam doctor` for the remedy, or accept less with --on-unavailable degrade."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_limits_those_are_told_that_were_asked_for() {
        let mut enforced = Enforced::full(Basis::Applied);
        for what in Limited::ALL {
            enforced.lower(Axis::Limits, Degree::Partial, &format!("{} why", what.unheld()));
        }
        let check = |profile, limits: &Limits, expected: &[&str]| {
            let told = enforced.reasons_that_count(profile, limits);
            assert_eq!(told.len(), expected.len(), "{told:?}");
            for (told, expected) in told.iter().zip(expected) {
                assert!(told.contains(expected), "{told}");
            }
        };
        let limits = Limits { pids: crate::Limit::Asked(64), ..Limits::default() };
        check(Profile::NoNetwork, &limits, &["the number of processes"]);
        check(Profile::NoNetwork, &Limits::default(), &[]);
        let all = ["memory", "processes", "processor", "writable space"];
        let strict = Profile::ALL.into_iter().find(|profile| profile.requires_limits()).unwrap();
        check(strict, &limits, &all);
    }

    #[test]
    fn what_is_said_of_an_axis_that_holds_is_no_reason() {
        let mut enforced = Enforced::full(Basis::Applied);
        enforced.lower(Axis::Network, Degree::Full, "the way out is narrow");
        let told = |enforced: &Enforced| {
            enforced.reasons_that_count(Profile::NoNetwork, &Limits::default()).len()
        };
        assert_eq!(told(&enforced), 0);
        enforced.lower(Axis::Files, Degree::Partial, "no namespace");
        assert_eq!(told(&enforced), 1);
        enforced.lower(Axis::Network, Degree::Partial, "no namespace");
        assert_eq!(told(&enforced), 3);
    }

    #[test]
    fn refuse_beats_degrade_only_when_something_is_missing() {
        let mut enforced = Enforced::full(Basis::Planned);
        let go = |e: &Enforced, o| admit(Profile::NoNetwork, LimitsCount::No, o, e);
        assert_eq!(go(&enforced, OnUnavailable::Refuse).unwrap(), Admission::Full);
        enforced.lower(Axis::Network, Degree::None, "no network namespace");
        let error = go(&enforced, OnUnavailable::Refuse).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unenforceable);
        assert!(error.message.contains("no network namespace"), "{error}");
        assert_eq!(go(&enforced, OnUnavailable::Degrade).unwrap(), Admission::Degraded);
    }

    #[test]
    fn limits_count_only_where_somebody_asks() {
        let mut enforced = Enforced::full(Basis::Planned);
        enforced.lower(Axis::Limits, Degree::Partial, "no cgroup");
        assert_eq!(enforced.overall(LimitsCount::No), Enforcement::FullyEnforced);
        assert_eq!(enforced.overall(LimitsCount::Yes), Enforcement::Partial);
    }

    #[test]
    fn an_axis_is_never_raised() {
        let mut enforced = Enforced::full(Basis::Planned);
        enforced.lower(Axis::Files, Degree::None, "a");
        enforced.lower(Axis::Files, Degree::Partial, "b");
        assert_eq!(enforced.files, Degree::None);
    }
}
