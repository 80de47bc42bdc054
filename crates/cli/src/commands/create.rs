//! `cofferdam create`.

use crate::args::{IdlePause, SessionOptions};
use crate::choice::Choice;
use crate::context::{Context, Keeping};
use crate::copying;
use crate::door::Order;
use crate::meter::Meter;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{InitCommand, SessionId, SessionOrder, SessionReport, Unsaid};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Makes a session: a sandbox that stays until it is removed, with a home directory on disk.
///
/// Prints its id. The sandbox is kept by a process of its own, so that it lives on when this command
/// ends, and no server is needed. Commands run in it with `exec`, see each other's files and
/// processes, and find the workspace and $HOME as they left them. The configuration counts, its
/// `[session]` too; its timeout and max_output are for `run`.
///
/// Example: cofferdam create --name agent-1 --ttl 24h
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam create [OPTIONS]")]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct CreateArgs {
    /// Names the session, in place of its id alone. A name that is in use is an error.
    ///
    /// 1 to 64 letters, digits, '-', '_' or '.'.
    ///
    /// Example: --name agent-1
    #[arg(long, value_name = "NAME", help_heading = "Session")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) session: SessionOptions,

    /// Brings what a manifest in TOML or JSON wants to the workspace, before the --init lines and once:
    /// files, directories, links, copies of directories, git repositories, and what archives hold. All of
    /// it or nothing: where something else is there already, no session is made. Directories of the host
    /// that it mounts are shown read-only in the workspace for as long as the session is there.
    ///
    /// Example: --manifest workspace.toml
    #[arg(long, value_name = "FILE", help_heading = "Session")]
    pub(crate) manifest: Option<PathBuf>,

    /// Prints the session as one JSON object; errors are objects too.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Makes the session and prints its id.
pub(super) fn perform(args: &CreateArgs) -> Result<u8> {
    let order = Order::new(args.name.clone(), &args.session, args.manifest.as_deref())?;
    sessions::with(async |sessions| {
        let meter = meter(&order, args.json);
        let made = sessions.create(&order).await?;
        drop(meter);
        print(args.json, &made)
    })
}

/// Tells how far a session is that has something to bring, to copy or to run before it is there.
pub(super) fn meter(order: &Order, is_json: bool) -> Option<Meter> {
    if !order.takes_long() {
        return None;
    }
    let meter = Meter::start("create", is_json);
    copying::tell_meter(meter.progress());
    Some(meter)
}

/// Prints the id of a session that was wanted, or the session.
pub(super) fn print(is_json: bool, status: &SessionReport) -> Result<u8> {
    if is_json {
        render::print_json(status)?;
        return Ok(exit::DONE);
    }
    // HOSTILE: a server may be anybody, and scripts use what is printed.
    let id = SessionId::new(status.id.as_str())?;
    render::print_text(&format!("{id}\n"))?;
    if let Some(why) = &status.tier_why {
        report::note(&format!("the workspace was copied, because {why}"));
    }
    for what in &status.layer_left_out {
        report::note(&format!("not in the copy of the workspace: {what}"));
    }
    Ok(exit::DONE)
}

/// The session that these options ask for.
pub(crate) fn order(name: Option<String>, options: &SessionOptions) -> Result<SessionOrder> {
    let context = Context::of_session(options)?;
    let keeping = context.keeping;
    let mut order = SessionOrder::new(context.spec);
    order.name = name;
    order.unsaid = unsaid(&keeping, options);
    order.backend = Some(context.backend.named().to_owned());
    order.labels = labels(&options.keeping.label)?;
    order.init = keeping.init.iter().map(InitCommand::shell).collect();
    match keeping.idle_pause {
        None => {}
        Some(IdlePause::After(time)) => order.idle_pause = Some(time),
        Some(IdlePause::Never) => order.idle_pause = None,
    }
    order.ttl = keeping.ttl;
    order.checkpoints = keeping.checkpoints.unwrap_or(true);
    Ok(order)
}

/// What a session that is there already keeps, because nobody says it.
fn unsaid(keeping: &Keeping, options: &SessionOptions) -> BTreeSet<Unsaid> {
    let is_said = [
        (Unsaid::Labels, !options.keeping.label.is_empty()),
        (Unsaid::Init, !keeping.init.is_empty()),
        (Unsaid::IdlePause, keeping.idle_pause.is_some()),
        (Unsaid::Ttl, keeping.ttl.is_some()),
        (Unsaid::Checkpoints, keeping.checkpoints.is_some()),
    ];
    is_said.into_iter().filter(|(_, is_said)| !is_said).map(|(what, _)| what).collect()
}

/// Labels by their keys. A key with two values is a slip.
pub(crate) fn labels(pairs: &[(String, String)]) -> Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for (key, value) in pairs {
        if let Some(other) = labels.insert(key.clone(), value.clone())
            && other != *value
        {
            let message = format!("--label: {key:?} is both {other:?} and {value:?}");
            return Err(Error::new(ErrorKind::Usage, message).hint("Give each key one value."));
        }
    }
    Ok(labels)
}
