//! Keys of the kernel.
#![expect(unsafe_code, reason = "no library asks for a keyring")]

/// Sees to it that the caller's user has a keyring, as everybody has who logged in: where there is none, a
/// list of keys is empty, and whoever reads it learns nothing. The kernel takes away those that nobody uses.
pub(crate) fn have_a_keyring() {
    // SAFETY: the call takes three numbers and touches no memory of ours.
    let id = unsafe {
        libc::syscall(libc::SYS_keyctl, libc::KEYCTL_GET_KEYRING_ID, libc::KEY_SPEC_USER_KEYRING, 1)
    };
    assert!(id > 0, "a keyring: {}", std::io::Error::last_os_error());
}
