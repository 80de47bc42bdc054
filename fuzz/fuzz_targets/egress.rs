//! Egress rules from any text.
#![no_main]

#[path = "../../crates/core/tests/hostile/egress.rs"]
mod egress;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| egress::egress_rule(text));
