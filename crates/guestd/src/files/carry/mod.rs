//! Many changes at once, whole or not at all.
//!
//! All that is new is written to a *stage* first: a directory in the root of the workspace, which this
//! worker holds locked. Then everything that has to be so is looked at. Then each change is one renaming:
//! what is new and what was there exchange their names, so that what was there lies in the stage, and
//! is looked at once more, now that nobody reaches it by its name. Where anything is not as expected, the
//! renamings are taken back, the last one first. In the end the stage is removed.
//!
//! Before the first renaming, all of them are written down in the stage. A stage that nobody holds was
//! left by a worker that was killed: whoever comes next takes its renamings back, or removes it if all
//! were done.
//!
//! Directories in which names change are held open from the first look on, so a directory that is
//! moved meanwhile is changed where it is, and nothing leads out.

mod act;
mod carry_out;
mod expect;
#[cfg(test)]
mod fault;
mod held;
mod leftover;
mod stage;
mod stream;
#[cfg(test)]
mod tests;

use super::failure::{Trouble, refused};
use super::talk::Talk;
use super::walk::Root;
use cofferdam_wire::files::{Answer, Carry, Failure, MAX_STEPS, Why, is_carry_name};
use stage::Stage;
use stream::Stream;

pub(super) use leftover::recover;

/// Carries out what comes.
pub(super) fn carry(root: &Root, order: &Carry, talk: &mut Talk) -> Result<Answer, Trouble> {
    named(order)?;
    leftover::put_right(root);
    let mut stage = Stage::new(root, &order.name)?;
    let mut stream = Stream::new(talk);
    let mut steps: u64 = 0;
    while let Some(step) = stream.next()? {
        steps += 1;
        if steps > MAX_STEPS as u64 {
            let what = format!("it has more than {MAX_STEPS} steps");
            return Err(refused(Why::TooLarge, what).into());
        }
        stage.take(step, &mut stream)?;
    }
    stage.carry_out(&mut || talk.still_at_it())?;
    stage.clear()?;
    Ok(Answer::Carried { steps })
}

fn named(order: &Carry) -> Result<(), Failure> {
    match is_carry_name(&order.name) {
        true => Ok(()),
        false => Err(refused(Why::BadRequest, "a carry has another sort of name")),
    }
}

/// A moment at which a test lets something happen.
#[cfg(test)]
fn moment() -> Result<(), Trouble> {
    fault::moment()
}

/// A moment at which a test lets something happen.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail in tests")]
fn moment() -> Result<(), Trouble> {
    Ok(())
}
