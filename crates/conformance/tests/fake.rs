//! The suite over the fake backend, which has no fault.

use cofferdam_conformance::{FakeFixture, Subject};
use cofferdam_core::fake::FakeBackend;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let subject = Subject::new("fake", Arc::new(FakeBackend::new()), Arc::new(FakeFixture))
        .skips_in(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/skips"));
    cofferdam_conformance::main(subject)
}
