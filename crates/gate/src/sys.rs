//! What takes a number for a descriptor.
#![expect(unsafe_code, reason = "a descriptor that was inherited is known by its number alone")]

use cofferdam_core::network::CONTROL_DESCRIPTOR;
use std::os::fd::{FromRawFd, OwnedFd};

/// Takes the control socket that this process was started with. To be called once.
pub(crate) fn take_control_descriptor() -> rustix::io::Result<OwnedFd> {
    // SAFETY: the caller of the process puts the control socket there, and this is called before
    // anything was opened. If nothing is there, the next call fails and closes nothing.
    let control = unsafe { OwnedFd::from_raw_fd(CONTROL_DESCRIPTOR) };
    match rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::CLOEXEC) {
        Ok(()) => Ok(control),
        Err(error) => {
            std::mem::forget(control);
            Err(error)
        }
    }
}
