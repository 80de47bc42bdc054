//! `cofferdam doctor`.

use crate::args::DoctorArgs;
use crate::{engine, exit, render, secret_key};
use cofferdam_core::Result;

/// Prints what this host can do. What is missing is told, and is no failure.
pub(super) fn perform(args: &DoctorArgs) -> Result<u8> {
    let mut diagnosis = engine::doctor();
    diagnosis.facts.push(secret_key::fact());
    match args.json {
        true => render::print_json(&diagnosis)?,
        false => render::print_lines(&diagnosis.text())?,
    }
    Ok(exit::DONE)
}
