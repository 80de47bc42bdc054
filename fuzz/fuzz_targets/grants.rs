//! Grants of secrets from any text.
#![no_main]

#[path = "../../crates/core/tests/hostile/grant.rs"]
mod grant;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| grant::grant(text));
