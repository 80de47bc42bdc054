//! `cofferdam audit`.

use crate::door::Session;
use crate::moment::timestamp;
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::{ConnectionDecision, ConnectionHow, ConnectionReport, Result};
use cofferdam_session::ConnectionList;
use std::fmt::Write as _;

/// Lists the connections of a session: what was asked for, what became of it, and by which rule.
///
/// Questions for names are among them, where they were refused. With each stand the commands that ran, or had
/// left processes that did, when it came: it is of one of these. What is kept is bounded; the oldest goes
/// first. Of the present sandbox, or of the last one where it has ended. All of it goes with the session.
///
/// Example: cofferdam audit agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct AuditArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Lists those alone that were refused.
    ///
    /// Example: --denied
    #[arg(long)]
    pub(crate) denied: bool,

    /// Begins at this place, which an earlier look ended with. Default: 0.
    ///
    /// Example: --since 4096
    #[arg(long, value_name = "PLACE", default_value_t = 0, hide_default_value = true)]
    pub(crate) since: u64,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists them.
pub(super) fn perform(args: &AuditArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        let mut list = all(&session, args.since).await?;
        if args.denied {
            list.connections.retain(|one| one.decision == ConnectionDecision::Denied);
        }
        match args.json {
            true => render::print_json(&list)?,
            false => {
                let lines: Vec<String> = list.connections.iter().map(line).collect();
                render::print_each(&lines)?;
            }
        }
        Ok(exit::DONE)
    })
}

/// All connections behind a place.
pub(super) async fn all(session: &Session, since: u64) -> Result<ConnectionList> {
    let mut list = session.connections(since).await?;
    loop {
        let more = session.connections(list.next).await?;
        if more.next == list.next {
            return Ok(list);
        }
        list.next = more.next;
        list.connections.extend(more.connections);
    }
}

fn line(one: &ConnectionReport) -> String {
    let decision = match one.decision {
        ConnectionDecision::Allowed => "allowed",
        ConnectionDecision::Denied => "denied",
        ConnectionDecision::Failed => "failed",
        ConnectionDecision::Asked => "asked",
    };
    let how = match one.how {
        ConnectionHow::Transparent => "tcp",
        ConnectionHow::Connect => "connect",
        ConnectionHow::Http => "http",
        ConnectionHow::Socks5 => "socks5",
        ConnectionHow::Dns => "dns",
    };
    let asked = one.host.as_deref().or(one.address.as_deref()).unwrap_or("?");
    let port = if one.port == 0 { String::new() } else { format!(":{}", one.port) };
    let mut line = format!("{}  {decision:<7}  {how:<7}  {asked}{port}", timestamp(one.at_ms));
    // Writing to a string does not fail.
    if let (Some(_), Some(address)) = (&one.host, &one.address) {
        let _ = write!(line, "  at {address}");
    }
    if one.decision == ConnectionDecision::Allowed {
        let (up, down, took) = (one.bytes_up, one.bytes_down, one.duration_ms);
        let _ = write!(line, "  {up} bytes out, {down} in, {took} ms");
    }
    if let Some(rule) = &one.rule {
        let _ = write!(line, "  by {rule}");
    }
    let _ = write!(line, "  rules of version {}", one.policy_version);
    if let Some(execs) = one.execs.as_ref().filter(|execs| !execs.is_empty()) {
        let _ = write!(line, "  asked by {}", execs.join(" or "));
    }
    if let Some(reason) = &one.reason {
        let _ = write!(line, "  {reason}");
    }
    if let Some(remedy) = &one.remedy {
        let _ = write!(line, "  ({remedy} would allow it)");
    }
    line
}
