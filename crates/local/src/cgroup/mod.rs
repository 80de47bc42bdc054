//! Control groups: limits, freezing, killing, and the cause of a death.
//!
//! Where the controllers are is read once ([`CgroupFacts`]), what they can hold of the wanted limits
//! is decided without touching anything ([`assess`]), and only then are groups made ([`Cgroups`]).
//! Version 2 is used where it has the controllers, version 1 where that has them; on a host with
//! both, the version 2 hierarchy without controllers still freezes, kills and counts time.

mod assessment;
mod counters;
mod directory;
mod facts;
mod freezer;
mod groups;
mod layout;
mod v1;
mod v2;

pub use assessment::{Assessment, Holding, RlimitFallback, assess};
pub use counters::Counters;
pub use facts::{Ceiling, CgroupFacts, Controllers, First, Unified, Where};
pub use freezer::Freezer;
pub use groups::{Causes, Cgroups, Usage};
pub use layout::{Layout, Place};

pub(crate) use assessment::{GUEST_PROCESSES, GUEST_THREADS_OVER_A_LAYER};
pub(crate) use facts::are_groups_unified;
pub(crate) use groups::remove_leftovers;
