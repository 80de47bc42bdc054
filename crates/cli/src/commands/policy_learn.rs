//! `cofferdam policy learn`.

use super::run::CAPTURED_BYTES;
use super::{audit, create};
use crate::args::{CommandOptions, SessionOptions};
use crate::context::argv;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::{
    ConnectionDecision, ConnectionReport, EgressRule, Error, ErrorKind, Profile, Result, Workspace,
    parse_duration,
};
use cofferdam_session::{Session, SessionOrder, Sessions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a command, watches what it connects to, and writes the smallest rules under which it runs.
///
/// The command runs twice, each time in a sandbox of its own that is gone afterwards, on a copy-on-write
/// layer of the workspace that is thrown away. The first time every public address is allowed and private
/// ones are denied as ever, unless rules are given: then those are what is allowed. The second time only
/// what the first one reached is allowed, which shows whether that suffices. What is written is for a
/// configuration; what was refused the first time is told beside it.
///
/// Example: cofferdam policy learn -- npm ci
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam policy learn [OPTIONS] -- ARGV…\n       \
    cofferdam policy learn [OPTIONS] --shell LINE")]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct LearnArgs {
    #[command(flatten)]
    pub(crate) session: SessionOptions,
    /// Writes the rules to this file, which must not be there, in place of standard output.
    ///
    /// Example: --output learned.toml
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Prints what was learned as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Names the directory that the command starts in, inside. Default: the workspace.
    ///
    /// A relative path starts at the workspace.
    ///
    /// Example: --cwd crates/core
    #[arg(long, value_name = "DIR", help_heading = "Command")]
    pub(crate) cwd: Option<PathBuf>,

    /// Kills the command and all its descendants after this long, each of the two times. Default: no limit.
    ///
    /// A number with its unit: ms, s, m, h or d.
    ///
    /// Example: --timeout 5m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,

    /// Runs a line of shell with /bin/sh -c, in place of ARGV.
    ///
    /// Example: --shell 'npm ci && npm test'
    #[arg(long, value_name = "LINE", help_heading = "Command")]
    pub(crate) shell: Option<OsString>,

    /// The program and its arguments, after `--`.
    #[arg(last = true, value_name = "ARGV")]
    pub(crate) argv: Vec<OsString>,
}

const EXIT_CODES: &str = "\
Exit code:
  0 the rules suffice: the command ended both times as the first time; 1 they do not, or Cofferdam could
  not do it; 2 usage";

/// What `policy learn --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Learned {
    /// The rules, as they are written.
    pub(crate) egress: Vec<String>,
    /// The ports of this host that were reached.
    pub(crate) host_ports: Vec<u16>,
    /// What was granted while it was watched.
    pub(crate) granted: Vec<String>,
    /// What was asked for and refused while it was watched.
    pub(crate) refused: Vec<String>,
    /// How the command ended under what was granted.
    pub(crate) observed_exit_code: i32,
    /// How it ended under the rules alone.
    pub(crate) proved_exit_code: i32,
    /// What was refused under the rules alone.
    pub(crate) missing: Vec<String>,
    /// Whether it ended the same way, and nothing more was refused.
    pub(crate) suffices: bool,
}

/// Watches, writes and tries.
pub(super) fn perform(args: &LearnArgs) -> Result<u8> {
    let (watched, argv) = watched(args)?;
    let how = How { argv, cwd: args.cwd.as_deref(), timeout: args.timeout };
    if let Some(path) = args.output.as_ref().filter(|path| path.exists()) {
        let what = format!("{} is there already", path.display());
        return Err(Error::new(ErrorKind::Conflict, what).hint("Name a file that is not there."));
    }
    let learned = sessions::here(async |sessions| {
        let first = once(sessions, &watched, &how, args.json).await?;
        let mut proved = watched.clone();
        (proved.spec.egress, proved.spec.host_ports) = rules(&first.connections)?;
        if proved.spec.egress.is_empty() {
            // Without any rule that profile would open everything.
            proved.spec.profile = Profile::RepoWrite;
        }
        let second = once(sessions, &proved, &how, true).await?;
        Ok(compared(&watched, &proved, &first, &second))
    })?;
    tell(args, &learned)?;
    Ok(if learned.suffices { exit::DONE } else { exit::FAILED })
}

/// A session that is watched, and the words of the command.
fn watched(args: &LearnArgs) -> Result<(SessionOrder, Vec<OsString>)> {
    let mut options = args.session.clone();
    // The usual profile has no way out that could be watched.
    options.policy.profile.get_or_insert(Profile::RepoWrite);
    let mut order = create::order(None, &options)?;
    order.owned = true;
    order.checkpoints = false;
    let spec = &mut order.spec;
    if spec.egress.is_empty() {
        spec.egress = vec![EgressRule::anywhere()];
    }
    if let Workspace::Directory(path) = &spec.workspace {
        spec.workspace = Workspace::CopyOnWrite(path.clone());
    }
    let command = CommandOptions {
        shell: args.shell.clone(),
        argv: args.argv.clone(),
        ..CommandOptions::default()
    };
    Ok((order, argv(&command, "policy learn")?))
}

/// How the command is run, each time.
struct How<'a> {
    argv: Vec<OsString>,
    cwd: Option<&'a Path>,
    timeout: Option<Duration>,
}

/// What came of one run.
struct Once {
    exit_code: i32,
    connections: Vec<ConnectionReport>,
}

async fn once(
    sessions: &Sessions,
    order: &SessionOrder,
    how: &How<'_>,
    quiet: bool,
) -> Result<Once> {
    let session = sessions.create(order).await?;
    let done = run(&session, how, quiet).await;
    let removed = sessions.delete(session.id()).await;
    let done = done?;
    removed.map(|_| done)
}

async fn run(session: &Session, how: &How<'_>, quiet: bool) -> Result<Once> {
    let here = crate::door::Session::Here(session.clone());
    let mut order = Session::order(how.argv.clone())?;
    order.command.timeout = how.timeout;
    order.command.cwd = sessions::directory_inside(&here, how.cwd).await?;
    let most = usize::try_from(CAPTURED_BYTES).unwrap_or(usize::MAX);
    let output = session.exec(&order, most).await?;
    if !quiet {
        // Its output is the caller's, as of any command; what cannot be written is no matter of rules.
        std::io::stderr().write_all(&output.stdout).ok();
        std::io::stderr().write_all(&output.stderr).ok();
    }
    let list = audit::all(&here, 0).await?;
    let ended = session.status(&output.status.id).await?;
    Ok(Once { exit_code: ended.exit_code.unwrap_or(-1), connections: list.connections })
}

/// The smallest rules that allow what was reached, and the ports of this host among it.
fn rules(connections: &[ConnectionReport]) -> Result<(Vec<EgressRule>, Vec<u16>)> {
    let (mut rules, mut ports) = (BTreeSet::new(), BTreeSet::new());
    let reached = |one: &&ConnectionReport| {
        one.port != 0
            && matches!(one.decision, ConnectionDecision::Allowed | ConnectionDecision::Failed)
    };
    for one in connections.iter().filter(reached) {
        match (&one.host, &one.address) {
            (Some(host), _) if host == cofferdam_core::network::HOST_NAME => {
                ports.insert(one.port);
            }
            (Some(host), _) => {
                rules.insert(format!("{host}:{}", one.port));
            }
            (None, Some(address)) if address.contains(':') => {
                rules.insert(format!("[{address}]:{}", one.port));
            }
            (None, Some(address)) => {
                rules.insert(format!("{address}:{}", one.port));
            }
            (None, None) => {}
        }
    }
    let rules = rules.iter().map(|rule| rule.parse()).collect::<Result<_>>()?;
    Ok((rules, ports.into_iter().collect()))
}

/// What was refused, each once.
fn refused(connections: &[ConnectionReport]) -> Vec<String> {
    let denied = connections.iter().filter(|one| one.decision == ConnectionDecision::Denied);
    let mut all = BTreeMap::new();
    for one in denied {
        let asked = one.host.as_deref().or(one.address.as_deref()).unwrap_or("?");
        let port = if one.port == 0 { String::new() } else { format!(":{}", one.port) };
        all.insert(format!("{asked}{port}"), ());
    }
    all.into_keys().collect()
}

fn compared(watched: &SessionOrder, proved: &SessionOrder, first: &Once, second: &Once) -> Learned {
    let words = |rules: &[EgressRule]| rules.iter().map(ToString::to_string).collect();
    let before = refused(&first.connections);
    let mut missing = refused(&second.connections);
    missing.retain(|one| !before.contains(one));
    let suffices = first.exit_code == second.exit_code && missing.is_empty();
    Learned {
        egress: words(&proved.spec.egress),
        host_ports: proved.spec.host_ports.clone(),
        granted: words(&watched.spec.egress),
        refused: before,
        observed_exit_code: first.exit_code,
        proved_exit_code: second.exit_code,
        missing,
        suffices,
    }
}

fn tell(args: &LearnArgs, learned: &Learned) -> Result<()> {
    if let Some(path) = &args.output {
        let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
        let written = opened.and_then(|mut file| file.write_all(toml(learned).as_bytes()));
        written.map_err(|error| {
            Error::new(ErrorKind::Io, format!("write {}", path.display())).source(error)
        })?;
    }
    for one in &learned.refused {
        report::note(&format!("{one} was asked for and refused"));
    }
    for one in &learned.missing {
        report::note(&format!("{one} is refused under these rules"));
    }
    if !learned.suffices {
        let (before, now) = (learned.observed_exit_code, learned.proved_exit_code);
        report::note(&format!(
            "under these rules the command exits with {now}, before with {before}"
        ));
    }
    match (args.json, &args.output) {
        (true, _) => render::print_json(learned),
        (false, Some(_)) => Ok(()),
        (false, None) => render::print_lines(&toml(learned)),
    }
}

/// The rules as a part of a configuration.
fn toml(learned: &Learned) -> String {
    let quoted =
        |all: &[String]| all.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
    let mut text = format!("profile = \"repo-write\"\negress = [{}]\n", quoted(&learned.egress));
    if !learned.host_ports.is_empty() {
        let ports: Vec<String> = learned.host_ports.iter().map(ToString::to_string).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "allow_host_port = [{}]", ports.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::ConnectionHow;

    fn one(
        host: Option<&str>,
        address: Option<&str>,
        decision: ConnectionDecision,
    ) -> ConnectionReport {
        ConnectionReport {
            at_ms: 0,
            id: 1,
            how: ConnectionHow::Transparent,
            host: host.map(str::to_owned),
            address: address.map(str::to_owned),
            port: 443,
            decision,
            rule: None,
            reason: None,
            remedy: None,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            policy_version: 1,
            request: None,
            execs: None,
        }
    }

    #[test]
    fn what_was_reached_is_allowed_by_name_where_it_has_one_and_once() {
        use ConnectionDecision::{Allowed, Asked, Denied};
        let seen = [
            one(Some("a.example"), Some("192.0.2.1"), Allowed),
            one(Some("a.example"), Some("192.0.2.2"), Allowed),
            one(None, Some("192.0.2.3"), Allowed),
            one(None, Some("2001:db8::1"), Allowed),
            one(Some("host.cofferdam.internal"), Some("127.0.0.1"), Allowed),
            one(Some("b.example"), None, Denied),
            one(Some("c.example"), None, Asked),
        ];
        let (rules, ports) = rules(&seen).unwrap();
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(rules, ["192.0.2.3:443", "[2001:db8::1]:443", "a.example:443"]);
        assert_eq!(ports, [443]);
        assert_eq!(refused(&seen), ["b.example:443"]);
    }
}
