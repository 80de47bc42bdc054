//! The verbs, one file each.

pub(crate) mod apply;
pub(crate) mod approve;
pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod complete;
pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod diff;
pub(crate) mod discard;
pub(crate) mod doctor;
pub(crate) mod ensure;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod extend;
pub(crate) mod file;
pub(crate) mod file_edit;
mod file_input;
pub(crate) mod file_patch;
pub(crate) mod file_window;
pub(crate) mod fork;
#[cfg(feature = "gate")]
mod gate;
pub(crate) mod gc;
pub(crate) mod generated;
pub(crate) mod history;
pub(crate) mod image;
#[cfg(feature = "serve")]
pub(crate) mod key;
mod layer;
pub(crate) mod logs;
pub(crate) mod ls;
mod manifest;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(feature = "mcp")]
pub(crate) mod mcp_install;
#[cfg(all(feature = "mcp", feature = "remote"))]
mod mcp_there;
pub(crate) mod network;
pub(crate) mod pause;
pub(crate) mod policy;
pub(crate) mod policy_learn;
pub(crate) mod port;
pub(crate) mod probe;
#[cfg(feature = "remote")]
mod probe_there;
pub(crate) mod ps;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod run;
#[cfg(feature = "remote")]
mod run_there;
mod scoped;
pub(crate) mod secret;
#[cfg(feature = "serve")]
pub(crate) mod serve;
#[cfg(feature = "serve")]
mod serve_images;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod signal;
pub(crate) mod snapshot;
mod snapshot_file;
pub(crate) mod stop;
pub(crate) mod undo;
pub(crate) mod wait;
pub(crate) mod wrap;

use crate::args::Verb;
use cofferdam_core::Result;
#[cfg(feature = "remote")]
pub(crate) use manifest::inlined;
pub(crate) use manifest::provisions;

/// The exit codes of verbs that run nothing.
pub(crate) const ORDINARY_EXIT_CODES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage";

/// Does what the verb says, and returns the exit code.
pub(crate) fn perform(verb: Verb) -> Result<u8> {
    match verb {
        #[cfg(feature = "remote")]
        Verb::Run(args) if crate::door::is_chosen() => run_there::perform(&args),
        Verb::Run(args) if args.scope.is_wanted() => scoped::perform(&args),
        Verb::Run(args) => run::perform(&args),
        Verb::Create(args) => create::perform(&args),
        Verb::Ensure(args) => ensure::perform(&args),
        Verb::Exec(args) => exec::perform(&args),
        Verb::Ps(args) => ps::perform(&args),
        Verb::Logs(args) => logs::perform(&args),
        Verb::Attach(args) => attach::perform(&args),
        Verb::Signal(args) => signal::perform(&args),
        Verb::Wait(args) => wait::perform(&args),
        Verb::Shell(args) => shell::perform(&args),
        Verb::File(args) => file::perform(&args),
        Verb::Diff(args) => diff::perform(&args),
        Verb::Apply(args) => apply::perform(&args),
        Verb::Discard(args) => discard::perform(&args),
        Verb::History(args) => history::perform(&args),
        Verb::Undo(args) => undo::perform(&args),
        Verb::Snapshot(args) => snapshot::perform(&args),
        Verb::Fork(args) => fork::perform(&args),
        Verb::Port(args) => port::perform(&args),
        Verb::Network(args) => network::perform(&args),
        Verb::Approve(args) => approve::perform(&args),
        Verb::Audit(args) => audit::perform(&args),
        Verb::Policy(args) => policy::perform(&args),
        Verb::Ls(args) => ls::perform(&args),
        Verb::Show(args) => show::perform(&args),
        Verb::Pause(args) => pause::perform(&args),
        Verb::Resume(args) => resume::perform(&args),
        Verb::Stop(args) => stop::perform(&args),
        Verb::Rm(args) => rm::perform(&args),
        Verb::Extend(args) => extend::perform(&args),
        Verb::Events(args) => events::perform(&args),
        Verb::Gc(args) => gc::perform(&args),
        Verb::Image(args) => image::perform(&args),
        #[cfg(feature = "remote")]
        Verb::Probe(args) if crate::door::is_chosen() => probe_there::perform(&args),
        Verb::Probe(args) => probe::perform(&args),
        Verb::Explain(args) => explain::perform(&args),
        Verb::Doctor(args) => doctor::perform(&args),
        Verb::Wrap(args) => wrap::perform(&args),
        #[cfg(feature = "serve")]
        Verb::Serve(args) => serve::perform(&args),
        #[cfg(feature = "serve")]
        Verb::Key(args) => key::perform(&args),
        #[cfg(feature = "mcp")]
        Verb::Mcp(args) => mcp::perform(&args),
        Verb::Secret(args) => secret::perform(&args),
        Verb::Config(args) => config::perform(&args),
        Verb::Completions(args) => generated::completions(&args),
        Verb::Man(args) => generated::manual(&args),
        Verb::Complete(args) => complete::perform(&args),
        #[cfg(feature = "gate")]
        Verb::Gate => gate::perform(),
    }
}
