//! The verbs, one file each.

pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod generated;
pub(crate) mod probe;
pub(crate) mod run;
pub(crate) mod wrap;

use crate::args::Verb;
use cofferdam_core::Result;

/// Does what the verb says, and returns the exit code.
pub(crate) fn perform(verb: Verb) -> Result<u8> {
    match verb {
        Verb::Run(args) => run::perform(&args),
        Verb::Probe(args) => probe::perform(&args),
        Verb::Explain(args) => explain::perform(&args),
        Verb::Doctor(args) => doctor::perform(&args),
        Verb::Wrap(args) => wrap::perform(&args),
        Verb::Config(args) => config::perform(&args),
        Verb::Completions(args) => generated::completions(&args),
        Verb::Man(args) => generated::manual(&args),
    }
}
