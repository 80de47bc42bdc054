//! Exported snapshots from any bytes: as they are, and as list and contents with sums that are right.
//! The first bytes say how they are divided, and what the manifest says of them.
#![no_main]

#[path = "../../crates/session/tests/hostile/exported.rs"]
mod exported;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    exported::exported(bytes);
    let Some(([length, count, files, size, held], bytes)) = bytes.split_first_chunk::<5>() else {
        return;
    };
    let (entries, contents) = bytes.split_at(usize::from(*length).min(bytes.len()));
    let said = [*files, *size, *held].map(u64::from);
    exported::summed(u32::from(*count), entries, contents, said);
});
