//! Linux isolation on this machine.
//!
//! A [`cofferdam_core::Spec`] and host facts become a [`cofferdam_wire::plan::Plan`], which the box
//! carries out before it takes commands. Deciding is pure and lives in `plan`; acting is in files
//! that meet the kernel through `sys`.

pub mod launch;
pub mod launcher;
pub mod oneshot;
mod sys;
pub mod seccomp;
pub mod cgroup;
pub mod control_files;
pub mod pin_watch;
pub mod placeholders;
pub mod session_uid;
pub mod state;

#[cfg(test)]
mod test_directory;
pub mod doctor;
pub mod environment;
pub mod explain;
pub mod host;
pub mod plan;
pub mod view;
pub mod probe_targets;
pub mod verdict;
