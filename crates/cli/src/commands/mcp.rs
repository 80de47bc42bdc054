//! `cofferdam mcp`.

use super::mcp_install::{self, InstallArgs};
use super::port::Shown;
use super::{create, manifest};
use crate::appeared::Watch;
use crate::args::{SessionOptions, choice};
use crate::choice::Choice;
use crate::listen::{ENDING, Listening};
use crate::{exit, report, sessions};
use clap::{Args, Subcommand};
use cofferdam_core::{Error, ErrorKind, Result, Workspace};
use cofferdam_mcp::stdio;
use cofferdam_session::{Session, SessionOrder, Sessions};
use cofferdam_tools::{PackName, Scope, Toolbox};
use std::path::PathBuf;
use std::sync::Arc;

/// The label of all sessions that are made for models.
const LABEL: (&str, &str) = ("made-by", "mcp");

/// Serves tools to a model by the Model Context Protocol, over standard input and output.
///
/// A program that works with models starts this, and its model gets tools that run commands and change
/// files in a sandbox: that of the connection, which is made when it is first needed and removed when
/// the connection ends, however it ends. Sandboxes that the model names itself stay. What any of them
/// may do is said here, and nothing that a model asks for widens it. The configuration counts, its
/// `[session]` too. Standard output carries the protocol and nothing else.
///
/// With --server before the verb the tools are those of the server, which says what sandboxes may do.
///
/// Example: cofferdam mcp --cow
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam mcp [OPTIONS]\n       \
    cofferdam mcp install CLIENT [OPTIONS] [-- OPTIONS…]")]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct McpArgs {
    /// What to do in place of serving.
    #[command(subcommand)]
    pub(crate) verb: Option<McpVerb>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// What to do in place of serving.
#[derive(Debug, Subcommand)]
pub(crate) enum McpVerb {
    Install(InstallArgs),
}

/// What is served.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Names the tools: cofferdam, everruns, adk, fluers or openmanus. Default: cofferdam.
    ///
    /// cofferdam is all that a session can do; the others have the names, parameters and results of the
    /// tools of those systems, for prompts that were written for them.
    ///
    /// Example: --pack everruns
    #[arg(long, value_name = "PACK", value_parser = choice::<PackName>(), help_heading = "Tools")]
    pub(crate) pack: Option<PackName>,

    /// Works in the session of this name, which is made if there is none, and keeps it.
    ///
    /// Example: --name agent-1
    #[arg(long, value_name = "NAME", help_heading = "Session")]
    pub(crate) name: Option<String>,

    /// Keeps the session of the connection, and says its id on standard error at the end.
    ///
    /// Example: --keep
    #[arg(long, help_heading = "Session")]
    pub(crate) keep: bool,

    #[command(flatten)]
    pub(crate) session: SessionOptions,

    /// Brings what a manifest in TOML or JSON wants to the workspace, when the session is made.
    ///
    /// Example: --manifest workspace.toml
    #[arg(long, value_name = "FILE", help_heading = "Session")]
    pub(crate) manifest: Option<PathBuf>,
}

impl Choice for PackName {
    const WHAT: &'static str = "pack";
    const ALL: &'static [Self] = &PackName::ALL;

    fn named(self) -> &'static str {
        self.name()
    }
}

/// Serves one connection, or does what is asked in place of that.
pub(super) fn perform(args: &McpArgs) -> Result<u8> {
    match &args.verb {
        Some(McpVerb::Install(install)) => mcp_install::perform(install),
        #[cfg(feature = "remote")]
        None if crate::door::is_chosen() => super::mcp_there::perform(&args.serve),
        None => serve(&args.serve),
    }
}

fn serve(args: &ServeArgs) -> Result<u8> {
    let mut order = create::order(args.name.clone(), &args.session)?;
    let workspace = order.spec.workspace.directory();
    order.manifest = manifest::provisions(args.manifest.as_deref(), workspace)?;
    // A model reaches what other connections made for models, and nothing else of the user's.
    order.labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
    // Whatever becomes of this process, what belongs to its connection goes with it.
    order.owned = args.name.is_none() && !args.keep;
    // Its session is made when a model first needs it, and what can never be is told now.
    order.check()?;
    let pack = args.pack.unwrap_or_default();
    sessions::here(async |sessions| connection(sessions, pack, order).await)
}

async fn connection(sessions: &Sessions, pack: PackName, order: SessionOrder) -> Result<u8> {
    let is_owned = order.owned;
    let has_layer = matches!(order.spec.workspace, Workspace::CopyOnWrite(_));
    let toolbox = Toolbox::new(pack, sessions.clone(), Scope::Implicit, order);
    let toolbox = Arc::new(toolbox.exposing(Arc::new(Shown::default())));
    let mut signals = Listening::to(&ENDING)?;
    let stop = async {
        signals.next().await;
    };
    let streams = (tokio::io::stdin(), tokio::io::stdout());
    let served = stdio::serve(Arc::clone(&toolbox), streams, stop).await;
    let closed = match is_owned {
        true => {
            let session = toolbox.sandbox(None).await.ok();
            if let Some(session) = session.as_ref().filter(|_| has_layer) {
                tell_what_goes(session).await;
            }
            let watch = Watch::begin();
            let closed = toolbox.close().await.map(drop);
            if let Some(session) = session {
                watch.tell(Some(sessions), session.id()).await;
            }
            closed
        }
        false => tell(&toolbox).await,
    };
    // The first error is the one to tell; what could not be removed stays recorded.
    served.and(closed).map(|()| exit::DONE)
}

/// Says how much of what goes with the session never landed. What cannot be known is not said.
async fn tell_what_goes(session: &Session) {
    let changes = session.changes(&[]).await.map_or(0, |changes| changes.len());
    if changes > 0 {
        let what = if changes == 1 { "1 change".to_owned() } else { format!("{changes} changes") };
        report::note(&format!(
            "{what} of session {} never landed in the workspace and went with it; --keep or --name keeps it",
            session.id()
        ));
    }
}

/// Says which session was kept, if one was made.
async fn tell(toolbox: &Toolbox) -> Result<()> {
    match toolbox.sandbox(None).await {
        Ok(session) => {
            report::note(&format!("kept as session {}", session.id()));
            Ok(())
        }
        Err(Error { kind: ErrorKind::NotFound, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
