//! Frames from any bytes, cut anywhere. The first byte says how they are cut.
#![no_main]

#[path = "../../crates/wire/tests/hostile/frames.rs"]
mod frames;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    frames::stream(bytes, usize::from(*piece));
});
