//! Whether a sandbox's private writable space is full, as the host sees it.

use crate::launch::Born;
use rustix::fd::OwnedFd;

/// What is left when the space counts as full: less than a program writes at a time.
const NOTHING_BYTES: u64 = 4096;

/// Whether nothing more can be written there. Never asks the guest, which may lie. The caller must have one thread
/// only.
pub(crate) fn is_full(place: &mut Option<OwnedFd>, born: &Born) -> bool {
    if place.is_none() {
        *place = born.open_inside("/tmp");
    }
    let Some(space) = place.as_ref().and_then(|place| rustix::fs::fstatfs(place).ok()) else {
        return false;
    };
    let block = u64::try_from(space.f_bsize).unwrap_or(0);
    space.f_bavail.saturating_mul(block) < NOTHING_BYTES || space.f_ffree == 0
}
