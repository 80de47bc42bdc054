//! Patches from any bytes. The first byte says how much of the rest is the files' content.
#![no_main]

#[path = "../../crates/session/tests/hostile/patch.rs"]
mod patch;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, bytes)) = bytes.split_first() else { return };
    let (content, text) = bytes.split_at(usize::from(*length).min(bytes.len()));
    patch::patch(text, content);
});
