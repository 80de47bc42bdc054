//! Sandboxes that outlive their caller, with a real keeper each.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

mod alone;
mod crash;
mod exchange;
mod files;
#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "../ground/mod.rs"]
mod ground;
mod left;
mod life;
mod memory;
mod output;
mod pause;
mod stage;
