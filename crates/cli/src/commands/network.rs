//! `cofferdam network`.

use crate::args::{RuleOptions, parse_ask};
use crate::{exit, render, sessions};
use clap::{Args, Subcommand};
use cofferdam_core::{EgressRule, Result};
use cofferdam_session::{NetworkChange, NetworkReport};
use std::fmt::Write as _;
use std::time::Duration;

/// Shows and changes what a session may reach, while it runs.
///
/// A change holds from the next connection on, for the sandbox that is there and for those that come
/// after it; connections that stand go on. A session that was made without a way out gets none.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct NetworkArgs {
    #[command(subcommand)]
    pub(crate) verb: NetworkVerb,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam network show agent-1
  cofferdam network allow agent-1 crates.io:443 '*.crates.io:443'
  cofferdam network deny agent-1 ads.example.com
  cofferdam network set agent-1 --egress github.com:443 --ask 30s";

/// What is done with the rules.
#[derive(Debug, Subcommand)]
pub(crate) enum NetworkVerb {
    Show(ShowArgs),
    Set(SetArgs),
    Allow(AllowArgs),
    Deny(DenyArgs),
}

/// Shows what a session may reach.
///
/// Example: cofferdam network show agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ShowArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Makes these rules all there are.
///
/// What is not given is empty then, except for the ports of this host and the time of waiting: where none
/// is given these stay as they are, and a port that a rule denies now is closed without that rule, too.
///
/// Example: cofferdam network set agent-1 --egress github.com:443
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct SetArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) rules: RuleOptions,

    /// Lets a connection that is not allowed wait so long to be allowed; 0s: not at all.
    ///
    /// Example: --ask 30s
    #[arg(long, value_name = "TIME", value_parser = parse_ask)]
    pub(crate) ask: Option<Duration>,

    /// Prints what holds then as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Allows destinations, which are denied no more.
///
/// Connections that wait for one of them go on at once.
///
/// Example: cofferdam network allow agent-1 crates.io:443
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct AllowArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// Denies destinations, whatever allows them.
///
/// Example: cofferdam network deny agent-1 ads.example.com
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// A session and rules.
#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The destinations, as HOST[:PORT].
    #[arg(value_name = "RULE", required = true, num_args = 1..)]
    pub(crate) rules: Vec<EgressRule>,

    /// Prints what holds then as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Does what the verb says.
pub(super) fn perform(args: &NetworkArgs) -> Result<u8> {
    match &args.verb {
        NetworkVerb::Show(args) => show(args),
        NetworkVerb::Set(args) => {
            let RuleOptions { egress, deny_egress, allow_host_port: ports } = &args.rules;
            let change = NetworkChange::Set {
                allow: egress.clone(),
                deny: deny_egress.clone(),
                host_ports: Some(ports.clone()).filter(|ports| !ports.is_empty()),
                ask: args.ask,
            };
            set(&args.session, &change, args.json)
        }
        NetworkVerb::Allow(AllowArgs { rules }) => {
            set(&rules.session, &NetworkChange::Allow(rules.rules.clone()), rules.json)
        }
        NetworkVerb::Deny(DenyArgs { rules }) => {
            set(&rules.session, &NetworkChange::Deny(rules.rules.clone()), rules.json)
        }
    }
}

fn show(args: &ShowArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        print(&session.network().await?, args.json)
    })
}

fn set(name: &str, change: &NetworkChange, json: bool) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = sessions::find_to_change(sessions, name).await?;
        print(&session.set_network(change).await?, json)
    })
}

fn print(report: &NetworkReport, json: bool) -> Result<u8> {
    match json {
        true => render::print_json(report)?,
        false => render::print_lines(&text(report))?,
    }
    Ok(exit::DONE)
}

fn text(report: &NetworkReport) -> String {
    if !report.way_out {
        return "no way out".to_owned();
    }
    let mut text = String::new();
    let mut line = |word: &str, rule: &dyn std::fmt::Display| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{word:<6} {rule}");
    };
    report.allow.iter().for_each(|rule| line("allow", rule));
    report.deny.iter().for_each(|rule| line("deny", rule));
    report.host_ports.iter().for_each(|port| {
        line("allow", &format_args!("port {port} of this host, as host.cofferdam.internal"));
    });
    if report.ask_ms > 0 {
        line("ask", &format_args!("and wait {} ms to be allowed", report.ask_ms));
    }
    line("deny", &"everything else");
    line("rules", &format_args!("of version {}", report.version));
    text
}
