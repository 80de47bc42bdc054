//! `cofferdam approve`.

use crate::config::{OwnFile, Prepared};
use crate::door::{Session, Sessions, is_chosen};
use crate::moment::timestamp;
use crate::surroundings::Surroundings;
use crate::{exit, render, report, sessions};
use clap::{ArgGroup, Args};
use cofferdam_core::{Error, ErrorKind, Opening, Result};
use cofferdam_session::{
    PermissionAnswer, PermissionId, PermissionKind, PermissionList, PermissionReport,
    PermissionState,
};
use std::collections::BTreeMap;

/// Answers what waits to be allowed: a connection that a session's gate holds back, or a request.
///
/// With `--ask` a connection that no rule allows waits. `exec` tells it on standard error with its id, and
/// so do `events` and `approve --list`. What is approved goes on at once, with all that wait for the same.
/// A rule that denies it is not lifted by an answer.
///
/// Example: cofferdam approve agent-1.1.4 --session
#[derive(Debug, Args)]
#[command(
    override_usage = "cofferdam approve ID [--once | --session | --profile | --deny]\n       \
    cofferdam approve --list [SESSION]"
)]
#[command(group(ArgGroup::new("answer").args(["once", "session", "profile", "deny"])))]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ApproveArgs {
    /// What waits, as it was told: SESSION.1.4 is a connection, SESSION.r2 a request.
    #[arg(value_name = "ID", required_unless_present = "list")]
    pub(crate) id: Option<String>,

    /// Lets it pass, and others that wait for the same; nothing that comes later. This is the default.
    ///
    /// Example: --once
    #[arg(long)]
    pub(crate) once: bool,

    /// Allows it for the session, as `network allow` does: from now on, and in sandboxes to come.
    ///
    /// Example: --session
    #[arg(long)]
    pub(crate) session: bool,

    /// Allows it for the session, and writes the rule in your own configuration too.
    ///
    /// Never in that of a project. What else stands there stays as it is, comments included. The profile
    /// that it names must have a way out: where there is no file yet, write one that names such a profile first.
    ///
    /// Example: --profile
    #[arg(long)]
    pub(crate) profile: bool,

    /// Refuses it, and others that wait for the same.
    ///
    /// Example: --deny
    #[arg(long)]
    pub(crate) deny: bool,

    /// Lists what waits, in one session or in all.
    ///
    /// With --json what did so lately is listed as well.
    ///
    /// Example: --list agent-1
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["id", "answer"])]
    pub(crate) list: Option<String>,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it, as where nothing waits by this id any more; 2 usage

Examples:
  cofferdam approve --list
  cofferdam approve agent-1.1.4
  cofferdam approve agent-1.1.4 --session
  cofferdam approve agent-1.1.4 --deny";

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// For a session, or less.
    Given(PermissionAnswer),
    /// For the user.
    Profile,
}

impl ApproveArgs {
    fn answer(&self) -> Answer {
        match (self.session, self.profile, self.deny) {
            (true, _, _) => Answer::Given(PermissionAnswer::Session),
            (_, true, _) => Answer::Profile,
            (_, _, true) => Answer::Given(PermissionAnswer::Deny),
            (false, false, false) => Answer::Given(PermissionAnswer::Once),
        }
    }
}

/// Answers, or lists.
pub(super) fn perform(args: &ApproveArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        match (&args.list, &args.id) {
            (Some(name), _) => list(sessions, name, args.json).await?,
            (None, Some(id)) => {
                let (session, id) = sessions.permission(id).await?;
                let report = match args.answer() {
                    Answer::Given(answer) => session.answer_permission(&id, answer).await?,
                    Answer::Profile => for_the_user(&session, &id).await?,
                };
                match args.json {
                    true => render::print_json(&report)?,
                    false => render::print_lines(&render::plain(&said(&report)))?,
                }
            }
            (None, None) => return Err(Error::new(ErrorKind::Usage, "no id is given")),
        }
        Ok(exit::DONE)
    })
}

/// Allows it for the session, and writes that down for the sessions to come.
async fn for_the_user(session: &Session, id: &PermissionId) -> Result<PermissionReport> {
    if is_chosen() {
        let what = "--profile writes the configuration of this machine, and a server has its own";
        return Err(Error::new(ErrorKind::Usage, what).hint("Use --session."));
    }
    let waiting = find(session, id).await?;
    let opening = Opening::of_remedy(&waiting.allow)?;
    // ORDER: all that may be wrong with the file is found before anything is opened.
    let file = OwnFile::open(&Surroundings::of_this_process())?;
    let prepared = file.prepare(&opening)?;
    let report = session.answer_permission(id, PermissionAnswer::Session).await?;
    match prepared {
        Prepared::Known(path) => {
            report::note(&format!("{} allows it already", path.display()));
        }
        Prepared::Changed(change) => {
            let path = change.write().map_err(|error| {
                error.hint(
                    "The session may reach it; write the rule in the file by hand, below [run].",
                )
            })?;
            report::note(&format!("{opening} is written in {}", path.display()));
        }
    }
    Ok(report)
}

async fn find(session: &Session, id: &PermissionId) -> Result<PermissionReport> {
    let (all, text) = (session.permissions().await?, id.to_string());
    all.permissions.into_iter().find(|one| one.id == text).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("nothing is known to wait as {id}"))
            .hint("List what waits with `cofferdam approve --list`.")
    })
}

async fn list(sessions: &Sessions, name: &str, json: bool) -> Result<()> {
    let mut permissions = Vec::new();
    if name.is_empty() {
        for one in sessions.list(&BTreeMap::new()).await? {
            let session = sessions::find(sessions, &one.id).await?;
            permissions.extend(session.permissions().await?.permissions);
        }
    } else {
        permissions = sessions::find(sessions, name).await?.permissions().await?.permissions;
    }
    if json {
        return render::print_json(&PermissionList { permissions });
    }
    let waiting = permissions.iter().filter(|one| one.state == PermissionState::Waiting);
    let lines: Vec<String> = waiting.map(line).collect();
    render::print_each(&lines)
}

/// What it is for, as host and port.
pub(crate) fn destination(one: &PermissionReport) -> String {
    match (&one.host, &one.address) {
        (None, Some(address)) if address.contains(':') => format!("[{address}]:{}", one.port),
        (host, address) => {
            let place = host.as_deref().or(address.as_deref()).unwrap_or("?");
            format!("{place}:{}", one.port)
        }
    }
}

fn line(one: &PermissionReport) -> String {
    let kind = match one.kind {
        PermissionKind::Connection => "connection",
        PermissionKind::Request => "request",
    };
    let (id, until) = (&one.id, timestamp(one.until_ms));
    let mut line = format!("{id}  {kind}  {}  until {until}", destination(one));
    // What a private network is opened by stands for itself: it is no more of the same.
    let notice = one.notice.as_ref().map(|notice| format!("PRIVATE NETWORK: {notice}"));
    let allow = one.notice.is_none().then(|| format!("allow: {}", one.allow));
    for part in [notice, allow, one.reason.clone()].into_iter().flatten() {
        line.push_str("  ");
        line.push_str(&part);
    }
    render::plain(&line).into_owned()
}

/// What came of an answer.
fn said(report: &PermissionReport) -> String {
    let place = match &report.leads_to {
        Some(address) if report.host.is_some() => {
            format!("{address}, to which {} leads,", destination(report))
        }
        Some(_) | None => destination(report),
    };
    match report.state {
        PermissionState::Approved => format!("{place} was let through once"),
        PermissionState::Allowed => format!("{place} is allowed for the session"),
        PermissionState::Denied => format!("{place} was refused"),
        PermissionState::TimedOut | PermissionState::Gone => {
            format!("{place} is allowed for the session; what waited for it does so no more")
        }
        PermissionState::Waiting => format!("{place} waits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ApproveArgs,
    }

    fn read(line: &str) -> Result<ApproveArgs, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.args)
    }

    #[test]
    fn a_wait_for_a_private_address_does_not_look_like_one_for_its_name() {
        let one = |allow: &str, notice: Option<&str>| PermissionReport {
            id: "a.1.2".to_owned(),
            session: "a".to_owned(),
            kind: PermissionKind::Connection,
            state: PermissionState::Waiting,
            host: Some("a.test".to_owned()),
            address: None,
            port: 443,
            how: None,
            reason: Some("because\u{202e}".to_owned()),
            allow: allow.to_owned(),
            leads_to: notice.map(|_| "10.1.2.3".to_owned()),
            notice: notice.map(str::to_owned),
            requested_ms: 0,
            until_ms: 0,
        };
        let first = line(&one("--egress a.test:443", None));
        assert!(first.contains("allow: --egress a.test:443"), "{first}");
        assert!(first.ends_with("because\\u{202e}") && !first.contains("PRIVATE"), "{first}");
        let notice = "a.test leads to 10.1.2.3, an address of a private network: \
                      --egress 10.1.2.3:443 would open that";
        let mut second = one("--egress 10.1.2.3:443", Some(notice));
        let told = line(&second);
        assert!(told.contains(&format!("PRIVATE NETWORK: {notice}")), "{told}");
        second.state = PermissionState::Approved;
        assert_eq!(said(&second), "10.1.2.3, to which a.test:443 leads, was let through once");
    }

    #[test]
    fn one_answer_is_given_and_once_is_the_default() {
        let check = |line: &str, answer| assert_eq!(read(line).unwrap().answer(), answer, "{line}");
        check("approve a.1.4", Answer::Given(PermissionAnswer::Once));
        check("approve a.1.4 --once", Answer::Given(PermissionAnswer::Once));
        check("approve a.1.4 --session", Answer::Given(PermissionAnswer::Session));
        check("approve --profile a.1.4", Answer::Profile);
        check("approve a.1.4 --deny", Answer::Given(PermissionAnswer::Deny));
        for wrong in
            ["approve", "approve a --once --deny", "approve a --list", "approve --list --deny"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read("approve --list").unwrap().list.as_deref(), Some(""));
        assert_eq!(read("approve --list a").unwrap().list.as_deref(), Some("a"));
    }
}
