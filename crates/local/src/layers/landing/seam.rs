//! Where tests reach into a landing of their thread.

use super::place::Place;
use super::steps::Hitch;
use rustix::io::Errno;
use std::cell::{Cell, RefCell};

type Meanwhile = Box<dyn FnOnce(&str)>;

thread_local! {
    static PLACE: Cell<Option<Place>> = const { Cell::new(None) };
    static FAR_AT: Cell<Option<usize>> = const { Cell::new(None) };
    static FAILING_AT: Cell<Option<usize>> = const { Cell::new(None) };
    static STAYING_AT: Cell<Option<usize>> = const { Cell::new(None) };
    static ALL_NAMED: Cell<bool> = const { Cell::new(false) };
    static CUT_OFF: Cell<bool> = const { Cell::new(false) };
    static MEANWHILE: RefCell<Option<Meanwhile>> = const { RefCell::new(None) };
}

/// Has all landings staged there.
pub(in super::super) fn set_place(place: Option<Place>) {
    PLACE.set(place);
}

/// Has the kernel refuse one step from beside the records, as if it led to another file system.
pub(in super::super) fn set_far_at(step: Option<usize>) {
    FAR_AT.set(step);
}

/// Has one step find no room.
pub(in super::super) fn set_failing_at(step: Option<usize>) {
    FAILING_AT.set(step);
}

/// Has the disk fail where one step is undone.
pub(in super::super) fn set_staying_at(step: Option<usize>) {
    STAYING_AT.set(step);
}

/// Has the file system make no file without a name.
pub(in super::super) fn set_all_named(all_named: bool) {
    ALL_NAMED.set(all_named);
}

/// Does something once between the making ready and the first step. It is told the name of the stage.
pub(in super::super) fn set_meanwhile(act: impl FnOnce(&str) + 'static) {
    MEANWHILE.set(Some(Box::new(act)));
}

/// Has the next stage that is cleared cleared in part, and the disk fail then.
pub(in super::super) fn set_cut_off() {
    CUT_OFF.set(true);
}

pub(super) fn is_cut_off() -> bool {
    CUT_OFF.replace(false)
}

pub(super) fn is_allowed(place: Place) -> bool {
    PLACE.get().is_none_or(|only| only == place)
}

pub(super) fn makes_nameless() -> bool {
    !ALL_NAMED.get()
}

pub(super) fn step(at: usize, place: Place) -> Result<(), Hitch> {
    if place == Place::Records && FAR_AT.get() == Some(at) {
        return Err(Hitch::Failed(Errno::XDEV));
    }
    if FAILING_AT.get() == Some(at) {
        return Err(Hitch::Failed(Errno::NOSPC));
    }
    Ok(())
}

pub(super) fn undo(at: usize) -> Result<(), Hitch> {
    if STAYING_AT.get() == Some(at) { Err(Hitch::Failed(Errno::IO)) } else { Ok(()) }
}

pub(super) fn meanwhile(stage: &str) {
    if let Some(act) = MEANWHILE.take() {
        act(stage);
    }
}
