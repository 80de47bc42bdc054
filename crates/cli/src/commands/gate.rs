//! `cofferdam gate`: what Cofferdam starts beside a sandbox that has a way out.

use crate::exit;
use cofferdam_core::Result;

/// Is a gate until its control socket ends.
pub(super) fn perform() -> Result<u8> {
    cofferdam_gate::process(cofferdam_local::gate::confine)?;
    Ok(exit::DONE)
}
