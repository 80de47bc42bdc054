//! Any bytes as the first of a connection, cut everywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| cofferdam_gate::hostile::first(bytes));
