//! Keeps names pinned that the host takes away from under a pin.
//!
//! `git config` on the host renames a new file over `.git/config`; the kernel then drops the mount
//! that protected the name inside. The sandbox is frozen, the name pinned again, the sandbox thawed.

use crate::assemble::Assembly;
use crate::launch::Born;
use crate::pin_watch::PinWatch;
use cofferdam_core::Result;
use cofferdam_guestd::apply::LostPin;
use rustix::fd::BorrowedFd;

/// How often names are pinned that others keep taking away meanwhile. After that the sandbox ends.
const PIN_ATTEMPTS: usize = 8;

/// The watch over one sandbox's pins.
#[derive(Debug)]
pub(crate) struct Watchman<'a> {
    assembly: &'a Assembly,
    born: &'a Born,
    watch: PinWatch,
}

impl<'a> Watchman<'a> {
    /// Starts the watch, where there is something to watch, and pins again what lost its pin before.
    ///
    /// Fails where there can be none: without one, pins hold only as long as the host leaves the names alone.
    pub(crate) fn start(assembly: &'a Assembly, born: &'a Born) -> Result<Option<Self>> {
        let Some(watch) = assembly.watch_pins().transpose()? else { return Ok(None) };
        let watchman = Self { assembly, born, watch };
        // ORDER: after the watch has begun, so that no change is in neither.
        let changed = assembly.changed_since_the_start()?;
        watchman.pin_again(&changed)?;
        Ok(Some(watchman))
    }

    /// Readable when something happened.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// Whether it becomes readable though nothing happened.
    pub(crate) fn looks_by_itself(&self) -> bool {
        self.watch.looks_by_itself()
    }

    /// Looks at what happened, and pins again what lost its pin.
    pub(crate) fn look(&mut self) -> Result<()> {
        let changed = self.watch.changed()?;
        let changed: Vec<String> = changed.into_iter().map(|pin| pin.path).collect();
        self.pin_again(&changed)
    }

    fn pin_again(&self, changed: &[String]) -> Result<()> {
        pin_again(self.assembly, changed, |pins| self.born.pin_again(pins))
    }
}

/// Pins these names again while the sandbox stands still; `pin` does it inside.
pub(crate) fn pin_again(
    assembly: &Assembly,
    changed: &[String],
    pin: impl Fn(&[LostPin]) -> Result<()>,
) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    // Where there is nothing to freeze with, the gap is as long as the next few calls.
    let frozen = assembly.cgroups().is_some_and(|groups| groups.freeze().is_ok());
    let once = || assembly.renew_placeholders().and_then(|()| pin(&assembly.pins_inside(changed)));
    // What vanishes between the two calls, by other programs' work, stands again in the next turn.
    let pinned = (1..PIN_ATTEMPTS).find_map(|_| once().ok()).map_or_else(once, Ok);
    if frozen && let Some(groups) = assembly.cgroups() {
        groups.thaw()?;
    }
    pinned
}
