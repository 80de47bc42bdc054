//! Any bytes as a resolver's answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| cofferdam_gate::hostile::answer(bytes));
