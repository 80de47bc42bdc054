//! What of signals no library tells.
#![expect(unsafe_code, reason = "how a signal is taken is asked of the C library")]

use std::ffi::c_int;

/// Whether this signal is ignored, as `nohup` and a shell's background have it.
pub(crate) fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all-zero bytes are a valid action.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and the place for the answer lives for the call.
    let done = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    done == 0 && now.sa_sigaction == libc::SIG_IGN
}
