//! Any bytes as the head of a request to the gate.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| cofferdam_gate::hostile::head(bytes));
