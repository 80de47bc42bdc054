//! The one descriptor that this program was started with.
#![expect(unsafe_code, reason = "a descriptor is known by its number")]

use super::{Descriptor, FromRawFd};

/// The control socket of a gate.
pub(super) fn control() -> Descriptor {
    // SAFETY: who starts a gate leaves this descriptor to it, and it is taken once.
    unsafe { Descriptor::from_raw_fd(3) }
}
