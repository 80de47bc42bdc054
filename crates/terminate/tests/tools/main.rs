//! The tools of this system through a terminator, to a host of the test's own on loopback.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod attacks;
mod limits;
mod programs;
mod stage;
