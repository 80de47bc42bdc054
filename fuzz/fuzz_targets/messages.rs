//! Messages from any bytes.
#![no_main]

#[path = "../../crates/wire/tests/hostile/messages.rs"]
mod messages;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| messages::message(bytes));
