//! Any bytes as a line that a gate is told.
#![no_main]

#[path = "../../crates/core/tests/hostile/to_gate.rs"]
mod to_gate;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| to_gate::line(bytes));
