//! `cofferdam serve`.

use super::serve_images::Opened;
use crate::args::{
    ConfigOptions, KeepingOptions, PolicyOptions, SessionOptions, VariableOptions, parse_host_name,
    parse_origin, parse_port_domain,
};
use crate::context::Context;
use crate::listen::{ENDING, Listening};
use crate::places;
use crate::surroundings::Surroundings;
use crate::{exit, report, secrecy, sessions};
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Result, Spec, Workspace};
use cofferdam_server::{Ground, Listen, Options, Server, Traces, max_connections};
use rustix::process::{Resource, getrlimit};
use std::path::PathBuf;
use std::sync::Arc;

/// Serves sessions over HTTP.
///
/// Listens on this machine alone unless told otherwise, and on an address that is reached from
/// elsewhere only if there are keys. The interface is described at /openapi.json, and to be read at
/// /docs. Sessions and their commands outlive the server: who asks again after it was started anew
/// finds them as they are. A sandbox of a request is made as the options here and the configuration
/// say; a request may ask for less and never for more. How long it is kept is said by requests alone, so that
/// the `[session]` of a configuration does not count. Ends by SIGTERM or Ctrl-C.
///
/// Example: cofferdam serve --listen unix:/run/user/1000/cofferdam.sock
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam serve [OPTIONS]")]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
// Said by requests alone, and refused here.
#[command(mut_arg("workspace", |arg| arg.hide(true)), mut_arg("cow", |arg| arg.hide(true)))]
pub(crate) struct ServeArgs {
    /// Listens there: ADDRESS:PORT, or unix:PATH for a socket that only you can use.
    ///
    /// Port 0 is any free one. The place is printed once the server listens.
    ///
    /// Example: --listen 127.0.0.1:7070
    #[arg(long, value_name = "PLACE", default_value = "127.0.0.1:7070")]
    pub(crate) listen: Listen,

    /// Lets a request name this directory as its workspace. Repeatable.
    ///
    /// None lies in another. Callers with a key may name those of their key instead. Without any, each
    /// sandbox has an empty workspace of its own.
    ///
    /// Example: --allow-workspace ~/src/project
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) allow_workspace: Vec<PathBuf>,

    /// Lets a request lie on this image, which it names in the same words. Repeatable.
    ///
    /// A name in a registry, which is asked with your credentials as --pull says, or the sha256:ID of an
    /// imported image. No path: what lies there could become another thing. All keys may use it.
    ///
    /// Example: --allow-image debian:12
    #[arg(long, value_name = "IMAGE")]
    pub(crate) allow_image: Vec<String>,

    /// Answers requests for this host's name, besides numbers and localhost. Repeatable.
    ///
    /// A page in a browser could have another name lead here; such a request is refused.
    ///
    /// Example: --allow-host box.example
    #[arg(long, value_name = "NAME", value_parser = parse_host_name)]
    pub(crate) allow_host: Vec<String>,

    /// Answers pages of this origin. Repeatable. Default: none.
    ///
    /// Example: --allow-origin https://board.example
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    pub(crate) allow_origin: Vec<String>,

    /// Gives ports of sandboxes addresses below this name, by https. Default: below localhost.
    ///
    /// All names below it have to lead to this server, through something that speaks TLS.
    ///
    /// Example: --port-domain boxes.example
    #[arg(long, value_name = "HOST[:PORT]", value_parser = parse_port_domain)]
    pub(crate) port_domain: Option<String>,

    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    #[command(flatten)]
    pub(crate) variables: VariableOptions,
    #[command(flatten)]
    pub(crate) config: ConfigOptions,
}

/// Serves until a signal ends it.
pub(super) fn perform(args: &ServeArgs) -> Result<u8> {
    secrecy::close()?;
    let context = Context::of_session(&template(args)?)?;
    let workspaces = allowed(&args.allow_workspace, &context.spec)?;
    let images = Opened::new(&args.allow_image, context.asking)?;
    let ground = Ground::new(context.spec, workspaces)?;
    let ground = ground.with_images(args.allow_image.clone(), Arc::new(images));
    sessions::serving(async |sessions| {
        let mut signals = Listening::to(&ENDING)?;
        let keys_only = !args.listen.is_private();
        if keys_only && !sessions.has_keys().await? {
            return Err(reached_by_anybody(&args.listen));
        }
        let options = Options {
            ground,
            keys_only,
            hosts: args.allow_host.clone(),
            origins: args.allow_origin.clone(),
            port_domain: args.port_domain.clone(),
            max_connections: max_connections(getrlimit(Resource::Nofile).current),
            log: report::note,
        };
        let bound = args.listen.bind().await?;
        let traces = Traces::by_environment(report::note)?;
        let server = Server::traced(sessions.clone(), options, traces.clone());
        report::note(&format!("listening on {}", bound.at()));
        let served = server
            .serve(bound, async {
                signals.next().await;
            })
            .await;
        traces.end().await;
        served
    })?;
    Ok(exit::DONE)
}

/// What a sandbox is, as far as no request says it. Where it works is said by requests alone.
fn template(args: &ServeArgs) -> Result<SessionOptions> {
    let mut policy = args.policy.clone();
    if policy.workspace.is_some() || policy.cow.is_some() {
        let what = "requests say where a sandbox works, and whether on a layer";
        return Err(Error::new(ErrorKind::Usage, what)
            .hint("Use --allow-workspace for each directory that they may name."));
    }
    policy.no_workspace = true;
    let (variables, config) = (args.variables.clone(), args.config.clone());
    Ok(SessionOptions { policy, variables, keeping: KeepingOptions::default(), config })
}

fn reached_by_anybody(listen: &Listen) -> Error {
    let what = format!("{listen} is reached from elsewhere, and there is no key to ask for");
    Error::new(ErrorKind::Denied, what)
        .hint("Make one with `cofferdam key create`, or listen on 127.0.0.1 or unix:PATH.")
}

/// The directories without links, none of which leads to Cofferdam's own files.
pub(super) fn allowed(directories: &[PathBuf], template: &Spec) -> Result<Vec<PathBuf>> {
    let surroundings = Surroundings::of_this_process();
    let state = surroundings.state_directory()?;
    let mut allowed = Vec::new();
    for directory in directories {
        let found = places::directory(&surroundings.located(directory)?, &surroundings).map_err(
            |error| {
                let is_planted = error.kind == ErrorKind::Denied;
                let hint = "Name a directory that exists with --allow-workspace.";
                if is_planted { error } else { error.hint(hint) }
            },
        )?;
        if found.to_str().is_none() {
            let what = format!("{} cannot be named in a request", found.display());
            return Err(Error::new(ErrorKind::Usage, what).hint("Use a path that is UTF-8."));
        }
        // As if it were the workspace of the most that a request may ask for.
        let widest = Spec {
            workspace: Workspace::Directory(found.clone()),
            profile: cofferdam_core::Profile::NoNetwork,
            ..template.clone()
        };
        places::keep_own_files_out(&widest, &surroundings, &state)?;
        allowed.push(found);
    }
    Ok(allowed)
}
