//! Sizes, durations, processors, names and profiles from any text.
#![no_main]

#[path = "../../crates/core/tests/hostile/quantities.rs"]
mod quantities;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    quantities::quantity(text);
    quantities::name(text);
});
