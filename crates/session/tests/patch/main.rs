//! Patches, by example and against real git.
#![cfg(test)]

mod endings;
mod envelope;
mod files;
mod git;
mod history;
mod places;
mod refused;
mod stage;
