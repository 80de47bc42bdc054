//! `cofferdam policy learn`.

use super::run::CAPTURED_BYTES;
use super::{audit, create};
use crate::args::{CommandOptions, SessionOptions};
use crate::config::{FILE_NAME, Key};
use crate::context::argv;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::network::HOST_NAME;
use cofferdam_core::policy::{AddressClass, Asked, Host, address_class};
use cofferdam_core::{
    ConnectionDecision, ConnectionReport, EgressRule, Ending, Error, ErrorKind, ExecStatus, Limits,
    OnUnavailable, Profile, Result, SensitiveWrites, Spec, User, Workspace, parse_duration,
};
use cofferdam_session::{Session, SessionOrder, Sessions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a command, watches what it connects to, and writes the smallest rules under which it runs.
///
/// The command runs twice, each time in a sandbox of its own that is gone afterwards, on a copy-on-write
/// layer of the workspace that is thrown away. The first time every public address is allowed and private
/// ones are denied as ever, unless rules are given: then those are what is allowed. The second time only
/// what the first one reached is allowed, which shows whether that suffices. What is written is a
/// configuration with the restrictions that it was tried under; what is not in it is said: `cofferdam run --config FILE` takes it, and so does a workspace as its `cofferdam.toml`, after
/// `cofferdam config trust cofferdam.toml`. What was refused is told beside it; what was refused both times is no matter of
/// these rules.
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
    /// For the `cofferdam.toml` of a workspace use this: one that the shell makes before is read as a
    /// configuration that nobody has approved.
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
  0 the rules suffice, and the command succeeded under them; 1 they do not suffice (the command
  ended otherwise than before, or something more was refused), or Cofferdam could not do it;
  2 usage; 3 the rules suffice, and the command failed both times alike, with the code that is told";

/// What `policy learn --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Learned {
    /// The profile under which they were tried.
    pub(crate) profile: String,
    /// The rules, as they are written.
    pub(crate) egress: Vec<String>,
    /// The ports of this host that were reached.
    pub(crate) host_ports: Vec<u16>,
    /// The secrets that were put in, each toward its host.
    pub(crate) secrets: Vec<String>,
    /// What was granted while it was watched.
    pub(crate) granted: Vec<String>,
    /// What was asked for and refused while it was watched.
    pub(crate) refused: Vec<String>,
    /// How the command ended under what was granted.
    pub(crate) observed_exit_code: i32,
    /// How it ended under the rules alone.
    pub(crate) proved_exit_code: i32,
    /// What was refused both times: no rule that is written here is about it.
    pub(crate) refused_both_times: Vec<String>,
    /// What was refused under the rules alone.
    pub(crate) missing: Vec<String>,
    /// Whether it ended the same way, and nothing more was refused.
    pub(crate) suffices: bool,
}

/// Watches, writes and tries.
pub(super) fn perform(args: &LearnArgs) -> Result<u8> {
    let (watched, argv) = watched(args)?;
    let how = How { argv, cwd: args.cwd.as_deref(), timeout: args.timeout };
    if let Some(path) = &args.output {
        check_output(path)?;
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
        Ok((compared(&watched, &proved, &first, &second), proved.spec))
    });
    let (learned, spec) = learned?;
    tell(args, &learned, &spec)?;
    Ok(match (learned.suffices, learned.proved_exit_code) {
        (false, _) => exit::FAILED,
        (true, 0) => exit::DONE,
        (true, _) => exit::COMMAND_FAILED,
    })
}

/// A session that is watched, and the words of the command.
fn watched(args: &LearnArgs) -> Result<(SessionOrder, Vec<OsString>)> {
    let mut options = args.session.clone();
    // The usual profile has no way out that could be watched.
    let profile = *options.policy.profile.get_or_insert(Profile::RepoWrite);
    if !profile.has_way_out() {
        let what = format!("profile {profile} has no way out, so there is nothing to learn");
        return Err(Error::new(ErrorKind::Usage, what)
            .hint("Leave --profile out, or use --profile repo-write."));
    }
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
    let done = run(sessions, &session, how, quiet).await;
    let removed = sessions.delete(session.id()).await;
    let done = done?;
    removed.map(|_| done)
}

async fn run(sessions: &Sessions, session: &Session, how: &How<'_>, quiet: bool) -> Result<Once> {
    let here = crate::door::Session::Here(session.clone());
    let mut order = Session::order(how.argv.clone())?;
    order.command.timeout = how.timeout;
    order.command.cwd = sessions::directory_inside(&here, how.cwd).await?;
    let most = usize::try_from(CAPTURED_BYTES).unwrap_or(usize::MAX);
    let output = session.exec(&order, most).await?;
    check_began(&output.status)?;
    if !quiet {
        // Its output is the caller's, as of any command; what cannot be written is no matter of rules.
        std::io::stderr().write_all(&output.stdout).ok();
        std::io::stderr().write_all(&output.stderr).ok();
    }
    let ended = session.status(&output.status.id).await?;
    // ORDER: a connection is written down when it ends, and some do so with the sandbox.
    sessions.stop(session.id()).await?;
    let list = audit::all(&here, 0).await?;
    Ok(Once { exit_code: ended.exit_code.unwrap_or(-1), connections: list.connections })
}

/// Fails where a command never began: nothing is learned from it.
fn check_began(status: &ExecStatus) -> Result<()> {
    let ending = status.ended.as_ref().map(|ended| &ended.ending);
    let Some(ending @ Ending::NotStarted { detail, .. }) = ending else { return Ok(()) };
    let error = Error::new(ErrorKind::SetupFailed, format!("the command did not start: {detail}"));
    Err(match ending.hint() {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

/// The smallest rules that allow what was reached, and the ports of this host among it.
fn rules(connections: &[ConnectionReport]) -> Result<(Vec<EgressRule>, Vec<u16>)> {
    let (mut rules, mut ports) = (BTreeSet::new(), BTreeSet::new());
    let reached = |one: &&ConnectionReport| {
        one.port != 0
            && matches!(one.decision, ConnectionDecision::Allowed | ConnectionDecision::Failed)
    };
    for one in connections.iter().filter(reached) {
        let address: Option<IpAddr> = one.address.as_deref().and_then(|text| text.parse().ok());
        match (&one.host, address) {
            (Some(host), _) if host == HOST_NAME => {
                ports.insert(one.port);
            }
            (Some(host), address) => {
                rules.insert(format!("{host}:{}", one.port));
                // Its name alone does not lead there.
                let is_private = |address: &IpAddr| address_class(*address) != AddressClass::Public;
                rules.extend(address.filter(is_private).map(|address| place(address, one.port)));
            }
            (None, Some(address)) => {
                rules.insert(place(address, one.port));
            }
            (None, None) => {}
        }
    }
    let rules = rules.iter().map(|rule| rule.parse()).collect::<Result<_>>()?;
    Ok((rules, ports.into_iter().collect()))
}

/// A place as a rule names it.
fn place(address: IpAddr, port: u16) -> String {
    Asked { host: address.into(), port }.to_string()
}

/// What was refused: a host, and a port where one was asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Refused {
    host: String,
    port: Option<u16>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Refused {
    /// Whether this was refused before, however far it came then. A name that no rule allows is asked for and
    /// has no address; where every name was allowed, it led to one that was refused.
    fn is_among(&self, before: &BTreeSet<Self>) -> bool {
        before.contains(self)
            || self.port.is_none() && before.iter().any(|one| one.host == self.host)
    }
}

/// What was refused, each once.
fn refused(connections: &[ConnectionReport]) -> BTreeSet<Refused> {
    let denied = connections.iter().filter(|one| one.decision == ConnectionDecision::Denied);
    let of = |one: &ConnectionReport| {
        let address = || one.address.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
        let address = || address().map(|address| Host::from(address).to_string());
        let host = one.host.clone().or_else(address).unwrap_or_else(|| "?".to_owned());
        Refused { host, port: Some(one.port).filter(|port| *port != 0) }
    };
    denied.map(of).collect()
}

fn compared(watched: &SessionOrder, proved: &SessionOrder, first: &Once, second: &Once) -> Learned {
    let words = |rules: &[EgressRule]| rules.iter().map(ToString::to_string).collect();
    let before = refused(&first.connections);
    let after = refused(&second.connections).into_iter();
    let (mut both, missing): (Vec<Refused>, Vec<Refused>) =
        after.partition(|one| one.is_among(&before));
    if proved.spec.egress.is_empty() && proved.spec.host_ports.is_empty() {
        // Without any rule there is no way out, and nobody who would write down what it refuses.
        both = before.iter().cloned().collect();
    }
    let suffices = first.exit_code == second.exit_code && missing.is_empty();
    let told = |all: &[Refused]| all.iter().map(ToString::to_string).collect();
    Learned {
        profile: proved.spec.profile.to_string(),
        egress: words(&proved.spec.egress),
        host_ports: proved.spec.host_ports.clone(),
        secrets: proved.spec.secrets.iter().map(ToString::to_string).collect(),
        granted: words(&watched.spec.egress),
        refused: before.iter().map(ToString::to_string).collect(),
        observed_exit_code: first.exit_code,
        proved_exit_code: second.exit_code,
        refused_both_times: told(&both),
        missing: told(&missing),
        suffices,
    }
}

/// Fails where the rules could not be written, before a command runs twice for them.
fn check_output(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        let what = format!("{} is there already", path.display());
        return Err(Error::new(ErrorKind::Conflict, what).hint("Name a file that is not there."));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if !parent.is_dir() {
        let what = format!("there is no directory {}", parent.display());
        return Err(Error::new(ErrorKind::NotFound, what)
            .hint("Make it first, or name a file in one that is there."));
    }
    Ok(())
}

fn tell(args: &LearnArgs, learned: &Learned, spec: &Spec) -> Result<()> {
    let text = toml(learned, spec);
    if let Some(path) = &args.output {
        let opened = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            // What took two runs of a command is not thrown away.
            match args.json {
                true => render::print_json(learned)?,
                false => render::print_lines(&text)?,
            }
            return Err(Error::new(ErrorKind::Io, format!("write {}", path.display()))
                .hint("The rules are on standard output: keep them from there.")
                .source(error));
        }
    }
    told(args, learned).iter().for_each(|line| report::note(line));
    if let Some(left_out) = left_out(spec) {
        report::note(&left_out);
    }
    match (args.json, &args.output) {
        (true, _) => render::print_json(learned),
        (false, Some(_)) => Ok(()),
        (false, None) => render::print_lines(&text),
    }
}

/// What is said beside the rules.
fn told(args: &LearnArgs, learned: &Learned) -> Vec<String> {
    let both = &learned.refused_both_times;
    let once = learned.refused.iter().filter(|one| !both.contains(one));
    let mut lines: Vec<String> =
        once.map(|one| format!("{one} was asked for and refused while it was watched")).collect();
    lines.extend(both.iter().map(|one| {
        format!("{one} was asked for and refused both times, which is no matter of these rules")
    }));
    lines.extend(learned.missing.iter().map(|one| format!("{one} is refused under these rules")));
    let (before, now) = (learned.observed_exit_code, learned.proved_exit_code);
    match learned.suffices {
        true if now == 0 => {}
        true => lines.push(format!("the command fails, with {now}, as it did before")),
        false => lines.push(format!(
            "these rules do not suffice: under them the command exits with {now}, before with {before}"
        )),
    }
    if let (false, Some(path)) = (args.json, &args.output) {
        let path = path.display();
        lines.push(format!(
            "the rules are in {path}: `cofferdam run --config {path}` takes them, and as the {FILE_NAME} \
             of a workspace they are approved with `cofferdam config trust {FILE_NAME}`"
        ));
    }
    lines
}

/// The rules as a configuration, with the restrictions under which they were tried.
fn toml(learned: &Learned, spec: &Spec) -> String {
    let mut text = format!("[run]\nprofile = {}\n", quoted(&learned.profile));
    let _ = writeln!(text, "egress = {}", list(&learned.egress));
    let mut add = |key: Key, all: Vec<String>| {
        if !all.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{} = {}", key.name(), list(&all));
        }
    };
    add(Key::DenyEgress, spec.deny.iter().map(ToString::to_string).collect());
    add(Key::AllowHostPort, learned.host_ports.iter().map(ToString::to_string).collect());
    add(Key::Secret, learned.secrets.clone());
    for (key, paths) in
        [(Key::Read, &spec.read), (Key::Write, &spec.write), (Key::Hide, &spec.hide)]
    {
        add(key, paths.iter().filter_map(|path| path.to_str()).map(str::to_owned).collect());
    }
    let Limits { memory_bytes, pids, cpu_millis, disk_bytes } = spec.limits;
    for (key, limit) in [
        (Key::Memory, memory_bytes.is_asked().then(|| render::bytes(memory_bytes.value()))),
        (Key::Pids, pids.is_asked().then(|| pids.value().to_string())),
        (Key::Cpu, cpu_millis.is_asked().then(|| render::cpu(cpu_millis.value()))),
        (Key::Disk, disk_bytes.is_asked().then(|| render::bytes(disk_bytes.value()))),
    ] {
        if let Some(limit) = limit {
            let _ = writeln!(text, "{} = {}", key.name(), quoted(&limit));
        }
    }
    text
}

/// A text as it is written in a configuration: as in JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| quoted(one)).collect();
    format!("[{}]", all.join(", "))
}

/// What they were tried under that is not written: values may be secret, and more than a configuration of this
/// machine says.
fn left_out(spec: &Spec) -> Option<String> {
    let mut names: Vec<String> =
        spec.env.keys().map(|name| format!("--env {}", name.to_string_lossy())).collect();
    let paths = spec.read.iter().chain(&spec.write).chain(&spec.hide);
    names.extend(paths.filter(|path| path.to_str().is_none()).map(|path| format!("{path:?}")));
    let further = [
        (spec.image.is_some(), "--image"),
        (spec.user == User::Root, "--user root"),
        (spec.sensitive_writes == SensitiveWrites::Allowed, "--allow-sensitive-writes"),
        (spec.on_unavailable == OnUnavailable::Degrade, "--on-unavailable degrade"),
    ];
    names.extend(further.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| (*name).to_owned()));
    (!names.is_empty()).then(|| {
        render::plain(&format!("not written, and to be given again: {}", names.join(", ")))
            .into_owned()
    })
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
            one(Some("a.example"), Some("1.1.1.1"), Allowed),
            one(Some("a.example"), Some("1.1.1.2"), Allowed),
            one(Some("private.example"), Some("10.0.0.5"), Allowed),
            one(None, Some("192.0.2.3"), Allowed),
            one(None, Some("2001:db8::1"), Allowed),
            one(Some("host.cofferdam.internal"), Some("127.0.0.1"), Allowed),
            one(Some("b.example"), None, Denied),
            one(None, Some("2001:db8::2"), Denied),
            one(Some("c.example"), None, Asked),
        ];
        let (rules, ports) = rules(&seen).unwrap();
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let named = ["a.example:443", "private.example:443"];
        let listed = ["10.0.0.5:443", "192.0.2.3:443", "[2001:db8::1]:443"];
        assert_eq!(rules, [&listed[..], &named].concat());
        assert_eq!(ports, [443]);
        let refused: Vec<String> = refused(&seen).iter().map(ToString::to_string).collect();
        assert_eq!(refused, ["[2001:db8::2]:443", "b.example:443"]);
    }

    #[test]
    fn what_was_refused_before_as_well_does_not_make_rules_insufficient() {
        use ConnectionDecision::{Allowed, Denied};
        let question = |name| ConnectionReport { port: 0, ..one(Some(name), None, Denied) };
        let led = one(Some("intra.example"), Some("10.0.0.5"), Denied);
        let first = [
            led,
            one(None, Some("10.0.0.6"), Denied),
            one(Some("a.example"), Some("1.1.1.1"), Allowed),
        ];
        let before = refused(&first);
        let among = |second: &[ConnectionReport]| -> Vec<bool> {
            refused(second).iter().map(|one| one.is_among(&before)).collect()
        };
        // Under the rules the name has no address, so that it comes to no connection any more.
        let second = [question("intra.example"), one(None, Some("10.0.0.6"), Denied)];
        assert_eq!(among(&second), [true, true]);
        // Control: what was not refused before is missing.
        let other_port = ConnectionReport { port: 80, ..one(None, Some("10.0.0.6"), Denied) };
        assert_eq!(among(&[question("a.example"), other_port]), [false, false]);
    }
}
