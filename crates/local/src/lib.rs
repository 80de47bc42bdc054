//! Linux isolation on this machine.
//!
//! A [`cofferdam_core::Spec`] and host facts become a [`cofferdam_wire::plan::Plan`], which the box
//! carries out before it takes commands. Deciding is pure and lives in `plan`; acting is in files
//! that meet the kernel through `sys`.

pub mod assemble;
pub mod backend;
mod blank;
pub mod cgroup;
mod clearing;
pub mod control_files;
mod conversation;
mod cores;
pub mod cow;
pub mod doctor;
pub mod environment;
pub mod explain;
pub mod gate;
mod guarded;
mod handing;
pub mod host;
mod image;
pub mod keeper;
mod kernel_path;
mod kernel_text;
pub mod launch;
pub mod launcher;
pub mod layers;
pub mod oneshot;
pub mod pin_watch;
pub mod placeholders;
pub mod plan;
mod private;
pub mod probe;
pub mod probe_targets;
pub mod raw_mode;
mod scratch;
pub mod seccomp;
pub mod session_uid;
pub mod state;
mod sys;
pub mod template;
pub mod verdict;
pub mod verify;
pub mod view;
mod watchman;
mod whose;

pub use cores::write_no_core;
pub use sys::is_ignored;

#[cfg(test)]
mod test_directory;
