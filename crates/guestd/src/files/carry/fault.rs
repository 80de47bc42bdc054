//! What tests let happen between two steps.

use super::super::failure::{Trouble, failed};
use cofferdam_wire::files::Failure;
use rustix::io::Errno;
use std::cell::{Cell, RefCell};

/// What happens at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The kernel refuses.
    Refused(Errno),
    /// The host is gone.
    Gone,
    /// The worker is killed: nothing is put right by it.
    Killed,
}

/// What is to happen, and when.
type Script = Box<dyn FnMut(usize) -> Option<Fault>>;

#[derive(Default)]
struct Stand {
    script: Option<Script>,
    moments: usize,
    dead: bool,
}

thread_local! {
    static STAND: RefCell<Stand> = RefCell::default();
    static STAYS: Cell<bool> = const { Cell::new(false) };
}

/// Has the disk fail where a stage is removed, or not any more.
pub(super) fn set_stays(stays: bool) {
    STAYS.set(stays);
}

pub(super) fn removal() -> Result<(), Failure> {
    if STAYS.get() { Err(failed(Errno::IO, "a test refuses")) } else { Ok(()) }
}

/// Follows a script, which hears the number of each moment, from 1.
pub(super) fn follow(script: impl FnMut(usize) -> Option<Fault> + 'static) {
    STAND.set(Stand { script: Some(Box::new(script)), ..Stand::default() });
}

/// Lets everything go well. Answers how many moments there were.
pub(super) fn clear() -> usize {
    STAND.take().moments
}

pub(super) fn is_dead() -> bool {
    STAND.with_borrow(|stand| stand.dead)
}

pub(super) fn moment() -> Result<(), Trouble> {
    let script = STAND.with_borrow_mut(|stand| {
        stand.moments += 1;
        stand.script.take().map(|script| (script, stand.moments))
    });
    let Some((mut script, moment)) = script else { return Ok(()) };
    let fault = script(moment);
    STAND.with_borrow_mut(|stand| {
        stand.script = Some(script);
        stand.dead |= fault == Some(Fault::Killed);
    });
    match fault {
        None => Ok(()),
        Some(Fault::Refused(errno)) => Err(failed(errno, "a test refuses").into()),
        Some(Fault::Gone | Fault::Killed) => Err(Trouble::Gone),
    }
}
