#![expect(unsafe_code, reason = "the user for file access alone is not in rustix")]
//! The one call of this room that has no safe form.

/// Makes this thread access files as this user and group, and says as which it did before. Root
/// loses its power over files thereby, and gets it back on its way back. What is not permitted
/// changes nothing, so that the caller has to ask again.
pub(super) fn access_files_as(uid: u32, gid: u32) -> (u32, u32) {
    // SAFETY: takes a number and touches no memory.
    let gid_before = unsafe { libc::setfsgid(gid) };
    // SAFETY: takes a number and touches no memory.
    let uid_before = unsafe { libc::setfsuid(uid) };
    (uid_before.cast_unsigned(), gid_before.cast_unsigned())
}
