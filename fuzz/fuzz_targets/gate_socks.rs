//! Any bytes as words to the gate as a proxy of SOCKS. The first says how they are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    cofferdam_gate::hostile::socks(bytes, usize::from(*piece));
});
