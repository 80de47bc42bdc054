//! The kernel, as far as facts about this host need it.
#![expect(unsafe_code, reason = "rustix has no call for Landlock's version")]

use std::ptr;

/// Asks `landlock_create_ruleset` for its version instead of a rule set.
const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;

/// Asks the kernel which Landlock ABI it speaks: 0 where there is none, or it is switched off.
pub(super) fn landlock_abi() -> u32 {
    let null: *const libc::c_void = ptr::null();
    let size: libc::size_t = 0;
    // SAFETY: with the version flag the kernel reads neither the attributes nor their size, both
    // are empty, and it writes nothing.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            null,
            size,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(answer).unwrap_or(0)
}
