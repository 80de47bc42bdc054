//! What becomes of each wanted limit on this host, before anything is made.

use super::facts::{CgroupFacts, Where};
use cofferdam_core::{Degree, Error, ErrorKind, Limits, OnUnavailable, Result};

/// Processes of our own in the sandbox: its process 1. They do not count as the caller's.
pub(crate) const GUEST_PROCESSES: u32 = 1;
/// Threads of process 1 besides, where it keeps a layer: the one that serves under the rules of commands.
pub(crate) const GUEST_THREADS_OVER_A_LAYER: u32 = 1;

/// What became of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// It holds for the sandbox as a whole.
    Held,
    /// Something weaker holds; the sentence says what and why.
    Partly(String),
    /// It does not hold, for this reason.
    NotHeld(String),
    /// Nobody wants one.
    NotWanted,
}

/// Limits of each process, for what no group holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RlimitFallback {
    /// Processes of the sandbox's user in its user namespace.
    pub nproc: Option<u64>,
    /// Private writable memory of one process, in bytes.
    pub data: Option<u64>,
}

/// What becomes of the limits that groups hold. The private writable space is not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// Memory.
    pub memory: Holding,
    /// Processes.
    pub pids: Holding,
    /// Processor time.
    pub cpu: Holding,
    /// What each process is limited to in addition.
    pub rlimits: RlimitFallback,
}

impl Assessment {
    /// How far the limits hold together.
    pub fn degree(&self) -> Degree {
        let wanted = || self.all().into_iter().filter(|holding| **holding != Holding::NotWanted);
        if wanted().all(|holding| *holding == Holding::Held) {
            Degree::Full
        } else if wanted().all(|holding| matches!(holding, Holding::NotHeld(_))) {
            Degree::None
        } else {
            Degree::Partial
        }
    }

    /// Why they do not hold further: one sentence each, led by the axis and a colon.
    pub fn reasons(&self) -> Vec<String> {
        self.all()
            .into_iter()
            .filter_map(|holding| match holding {
                Holding::Held | Holding::NotWanted => None,
                Holding::Partly(why) | Holding::NotHeld(why) => Some(format!("limits: {why}")),
            })
            .collect()
    }

    fn all(&self) -> [&Holding; 3] {
        [&self.memory, &self.pids, &self.cpu]
    }
}

/// Decides what becomes of each limit. One that was asked for and does not hold as a whole is an
/// error, unless the caller takes less.
pub fn assess(
    facts: &CgroupFacts,
    limits: &Limits,
    on_unavailable: OnUnavailable,
) -> Result<Assessment> {
    limits.check()?;
    let mut rlimits = RlimitFallback::default();
    let memory = match &facts.memory {
        Where::Unified | Where::V1(_) => Holding::Held,
        Where::Nowhere(why) => {
            rlimits.data = Some(limits.memory_bytes.value());
            Holding::Partly(format!("memory is limited for each process alone: {why}"))
        }
    };
    let pids = match &facts.pids {
        Where::Unified | Where::V1(_) => Holding::Held,
        // The kernel counts the processes of a user namespace, and a sandbox has one of its own.
        // Where it has none, the plan says so.
        Where::Nowhere(_) => {
            rlimits.nproc = Some(u64::from(limits.pids.value()) + u64::from(GUEST_PROCESSES));
            Holding::Held
        }
    };
    let cpu = match (&facts.cpu, limits.cpu_millis.value()) {
        (_, 0) => Holding::NotWanted,
        (Where::Unified | Where::V1(_), _) => Holding::Held,
        (Where::Nowhere(why), _) => {
            Holding::NotHeld(format!("processor time is not limited: {why}"))
        }
    };
    let assessment = Assessment { memory, pids, cpu, rlimits };
    let asked = [
        limits.memory_bytes.is_asked().then_some(&assessment.memory),
        limits.pids.is_asked().then_some(&assessment.pids),
        limits.cpu_millis.is_asked().then_some(&assessment.cpu),
    ];
    match on_unavailable {
        OnUnavailable::Degrade => {}
        OnUnavailable::Refuse => {
            for holding in asked.into_iter().flatten() {
                check(facts, holding)?;
            }
        }
    }
    Ok(assessment)
}

fn check(facts: &CgroupFacts, holding: &Holding) -> Result<()> {
    match holding {
        Holding::Held | Holding::NotWanted => Ok(()),
        Holding::Partly(why) | Holding::NotHeld(why) => {
            Err(Error::new(ErrorKind::Unenforceable, format!("hold a limit: {why}"))
                .hint(format!("{} Or accept less with --on-unavailable degrade.", facts.remedy())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::Limit;

    fn facts(memory: Where, pids: Where, cpu: Where) -> CgroupFacts {
        CgroupFacts { unified: None, memory, pids, cpu, freezer: None, is_v1: false }
    }

    fn nowhere() -> Where {
        Where::Nowhere("no group".to_owned())
    }

    fn asked() -> Limits {
        Limits { memory_bytes: Limit::Asked(1 << 20), ..Limits::default() }
    }

    #[test]
    fn groups_hold_all() {
        let facts = facts(Where::Unified, Where::V1("/p".into()), nowhere());
        let found = assess(&facts, &asked(), OnUnavailable::Refuse).unwrap();
        assert_eq!((found.degree(), found.reasons().len()), (Degree::Full, 0));
        assert_eq!(found.rlimits, RlimitFallback::default());
    }

    #[test]
    fn a_default_limit_falls_back_and_says_so() {
        let facts = facts(nowhere(), nowhere(), nowhere());
        let found = assess(&facts, &Limits::default(), OnUnavailable::Refuse).unwrap();
        assert_eq!(found.degree(), Degree::Partial);
        assert_eq!(found.reasons().len(), 1);
        assert!(found.reasons().iter().all(|why| why.starts_with("limits: ")));
        let expected = RlimitFallback { nproc: Some(4097), data: Some(Limits::MEMORY_BYTES) };
        assert_eq!(found.rlimits, expected);
    }

    #[test]
    fn a_limit_that_was_asked_for_is_refused_unless_degraded() {
        let facts = facts(nowhere(), Where::Unified, nowhere());
        let error = assess(&facts, &asked(), OnUnavailable::Refuse).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unenforceable);
        assert!(error.hint.unwrap().contains("Delegate=yes"));
        let found = assess(&facts, &asked(), OnUnavailable::Degrade).unwrap();
        assert_eq!(found.degree(), Degree::Partial);
        let cpu = Limits { cpu_millis: Limit::Asked(500), ..Limits::default() };
        assert!(assess(&facts, &cpu, OnUnavailable::Refuse).is_err());
        let none = assess(&facts, &cpu, OnUnavailable::Degrade).unwrap();
        assert!(matches!(none.cpu, Holding::NotHeld(_)));
    }
}
