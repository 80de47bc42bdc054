//! Linux isolation on this machine.
//!
//! A [`cofferdam_core::Spec`] and host facts become a [`cofferdam_wire::plan::Plan`], which the box
//! carries out before it takes commands. Deciding is pure and lives in `plan`; acting is in files
//! that meet the kernel through `sys`.

pub mod probe_targets;
pub mod verdict;
