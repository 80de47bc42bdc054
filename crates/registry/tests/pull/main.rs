//! Pulls from a registry of the test's own on this machine: an honest one, and one that attacks.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod fake;
mod ground;
mod honest;
mod hostile;
mod login;
mod resumed;
