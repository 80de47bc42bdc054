//! The suite that every backend must pass.
//!
//! A backend is a [`Subject`]: the backend itself and a [`Fixture`] that says which command does
//! what in its sandboxes. A test target without a harness of its own runs the suite:
//!
//! ```no_run
//! use cofferdam_conformance::{FakeFixture, Subject};
//! use cofferdam_core::fake::FakeBackend;
//! use std::process::ExitCode;
//! use std::sync::Arc;
//!
//! fn main() -> ExitCode {
//!     let subject = Subject::new("fake", Arc::new(FakeBackend::new()), Arc::new(FakeFixture))
//!         .skips_in("tests/skips");
//!     cofferdam_conformance::main(subject)
//! }
//! ```
//!
//! A check that cannot be made is skipped with its reason, and the list of what was skipped is
//! compared with a file; `BLESS=1` writes it. Each check can fail: `tests/faults.rs` names a fault
//! of the fake backend for every one.
//!
//! What becomes of the changes of a copy-on-write sandbox is a suite of its own, [`LAYERS`], for
//! backends that keep them: [`main_of_layers`] runs it over a [`LayerSubject`]. `tests/layers` names a
//! fault of a backend that copies for every one of them. So is what sessions over such a backend promise of
//! their history, [`POINTS`]: [`main_of_points`] runs it over the same subject.
//!
//! So is what such a sandbox may reach, changed while it lives: [`NETWORK`], a check at a time by
//! [`perform_network`] over a [`NetworkSubject`].

mod check;
mod escape;
mod exec;
mod files;
mod fixture;
mod layer_stage;
mod layers;
mod life;
mod limits;
mod network;
mod points;
mod policy;
mod ports;
mod shell;
mod stage;
mod streams;
mod subject;
mod suite;

pub use check::{ALL, Check, Stop, Verdict, document};
pub use fixture::{Action, FakeFixture, Fixture, HostFile, Need};
pub use layer_stage::{LayerGround, LayerPlace, LayerStage, LayerSubject};
pub use layers::{LAYERS, LayerCheck, perform_layers};
pub use network::{
    NETWORK, NetworkCheck, NetworkGround, NetworkStage, NetworkSubject, perform_network,
};
pub use points::{POINTS, PointCheck, perform_points};
pub use shell::ShellFixture;
pub use stage::Stage;
pub use subject::Subject;
pub use suite::{main, main_of_layers, main_of_points, perform, trials};
