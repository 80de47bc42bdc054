//! Any bytes as a question for a name.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| cofferdam_gate::hostile::question(bytes));
