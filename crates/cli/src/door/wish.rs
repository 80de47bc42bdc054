//! What options mean to a server, which decides what is not said.

use super::Beside;
use super::remote::refuse_if;
use crate::args::{ConfigOptions, IdlePause, PolicyOptions, SessionOptions, VariableOptions};
use crate::commands::create::labels;
use crate::context::command_variables;
use crate::images::PullPolicy;
use crate::surroundings::Surroundings;
use cofferdam_core::secret::{SecretPlace, SecretWish};
use cofferdam_core::{
    EgressRule, Error, ErrorKind, ExecOrder, LayerChoice, Profile, Result, Stdin,
};
use cofferdam_session::PointRange;
use cofferdam_session::objects::{
    ExecWish, LimitsWish, ProfileName, PullName, SandboxWish, SizeWish, SpecWish, StartWish,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// The sandbox that these options ask for.
///
/// No file of configuration is read: what it says is of this machine, and the operator of a server has
/// his own. Options that a server does not take are refused.
pub(crate) fn sandbox(
    name: Option<String>,
    options: &SessionOptions,
    manifest: Option<&Path>,
) -> Result<SandboxWish> {
    let spec = spec(&options.policy, &options.variables, &options.config)?;
    let keeping = &options.keeping;
    let init = keeping.init.iter().map(|line| text("a line of --init", line));
    let idle = keeping.idle_pause;
    Ok(SandboxWish {
        name,
        labels: Some(labels(&keeping.label)?).filter(|labels| !labels.is_empty()),
        manifest: crate::commands::inlined(manifest, &Surroundings::of_this_process())?,
        init: Some(init.collect::<Result<Vec<_>>>()?).filter(|lines| !lines.is_empty()),
        idle_pause_ms: match idle {
            Some(IdlePause::After(time)) => Some(ms(time)),
            Some(IdlePause::Never) | None => None,
        },
        stay_awake: idle == Some(IdlePause::Never),
        ttl_ms: keeping.ttl.map(ms),
        no_checkpoints: keeping.no_checkpoints.then_some(true),
        ..spec.into()
    })
}

/// What a sandbox of these options may do.
pub(crate) fn spec(
    policy: &PolicyOptions,
    variables: &VariableOptions,
    config: &ConfigOptions,
) -> Result<SpecWish> {
    refuse_policy(policy)?;
    refuse_if(config.config.is_some(), "--config", "what it says is of this machine")?;
    let surroundings = Surroundings::of_this_process();
    let workspace = policy.workspace.as_ref();
    let workspace = workspace.map(|path| text("--workspace", path.as_os_str())).transpose()?;
    Ok(SpecWish {
        profile: policy.profile.map(profile),
        workspace,
        copy_on_write: policy.cow.is_some(),
        image: policy.image.clone(),
        pull: policy.pull.map(pull),
        env: env(&command_variables(variables, &surroundings))?,
        secrets: policy.secret.iter().map(ToString::to_string).collect(),
        egress: Some(written(&policy.rules.egress)).filter(|rules| !rules.is_empty()),
        deny_egress: written(&policy.rules.deny_egress),
        limits: LimitsWish {
            memory_bytes: policy.memory,
            pids: policy.pids,
            cpu_millis: policy.cpu,
            disk_bytes: policy.disk,
        },
    })
}

fn refuse_policy(policy: &PolicyOptions) -> Result<()> {
    let host = "its paths are for the operator of the server to show";
    let operator = "that is for the operator of the server to say";
    refuse_if(!policy.insecure_registry.is_empty(), "--insecure-registry", operator)?;
    refuse_if(!policy.read.is_empty(), "--read", host)?;
    refuse_if(!policy.write.is_empty(), "--write", host)?;
    refuse_if(!policy.hide.is_empty(), "--hide", host)?;
    refuse_if(!policy.rules.allow_host_port.is_empty(), "--allow-host-port", operator)?;
    refuse_if(policy.ask.is_some(), "--ask", operator)?;
    refuse_if(policy.allow_sensitive_writes, "--allow-sensitive-writes", operator)?;
    refuse_if(policy.user.is_some(), "--user", operator)?;
    refuse_if(policy.on_unavailable.is_some(), "--on-unavailable", operator)?;
    refuse_if(policy.backend.is_some(), "--backend", operator)?;
    let tier = policy.cow.filter(|tier| *tier != LayerChoice::default());
    refuse_if(tier.is_some(), "--cow=TIER", operator)
}

/// Rules as they are written.
fn written(rules: &[EgressRule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

fn pull(policy: PullPolicy) -> PullName {
    match policy {
        PullPolicy::Missing => PullName::Missing,
        PullPolicy::Always => PullName::Always,
        PullPolicy::Never => PullName::Never,
    }
}

fn profile(profile: Profile) -> ProfileName {
    match profile {
        Profile::ReadOnly => ProfileName::ReadOnly,
        Profile::RepoWrite => ProfileName::RepoWrite,
        Profile::NoNetwork => ProfileName::NoNetwork,
        Profile::FullDev => ProfileName::FullDev,
        Profile::CiOnly => ProfileName::CiOnly,
    }
}

/// How the words of an image lead a command.
#[derive(Debug)]
pub(crate) struct StartOf(StartWish);

impl StartOf {
    /// With this in place of its entry point, if there is one.
    pub(crate) fn new(entrypoint: Option<&OsStr>) -> Result<Self> {
        let entrypoint = entrypoint.map(|program| text("--entrypoint", program)).transpose()?;
        Ok(Self(StartWish { entrypoint }))
    }

    fn wish(&self) -> StartWish {
        self.0.clone()
    }
}

/// A command as a server takes it.
pub(super) fn exec(order: &ExecOrder, beside: &Beside<'_>) -> Result<ExecWish> {
    let (mut secret_files, mut secret_descriptors) = (Vec::new(), Vec::new());
    for SecretWish { name, place } in beside.secrets {
        match place {
            SecretPlace::File(file) => secret_files.push(format!("{name}={file}")),
            SecretPlace::Descriptor(number) => secret_descriptors.push(format!("{name}={number}")),
        }
    }
    let command = &order.command;
    let argv = command.argv.iter().map(|word| text("a word of the command", word));
    let cwd = command.cwd.as_ref().map(|cwd| text("--cwd", cwd)).transpose()?;
    Ok(ExecWish {
        argv: argv.collect::<Result<_>>()?,
        id: Some(command.id.to_string()),
        shell: None,
        start: beside.start.map(StartOf::wish),
        cwd,
        env: env(&command.env)?,
        stdin: command.stdin == Stdin::Piped,
        terminal: command.terminal.map(|size| SizeWish { rows: size.rows, columns: size.columns }),
        detached: order.detached,
        keep_awake: order.keep_awake,
        timeout_ms: command.timeout.map(ms),
        max_output_bytes: order.max_output_bytes,
        secret_files,
        secret_descriptors,
        receipt: beside.receipt,
    })
}

fn env(variables: &BTreeMap<OsString, OsString>) -> Result<BTreeMap<String, String>> {
    let pair = |(name, value): (&OsString, &OsString)| {
        Ok((text("the name of a variable", name)?, text("a variable", value)?))
    };
    variables.iter().map(pair).collect()
}

fn text(what: &str, value: &OsStr) -> Result<String> {
    value.to_str().map(str::to_owned).ok_or_else(|| not_text(what))
}

/// An error about bytes that JSON cannot hold.
pub(super) fn not_text(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{what} is not UTF-8, and a server takes nothing else"),
    )
    .hint("Put the bytes in a file of the workspace.")
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A range of points as a request has it.
pub(super) fn range(range: &PointRange) -> String {
    let side = |side: &Option<String>| side.clone().unwrap_or_default();
    format!("{}..{}", side(&range.from), side(&range.to))
}

/// The paths that lie in no other one of them, in their order: what is asked for twice comes once.
pub(super) fn outermost(paths: &[OsString]) -> Vec<&OsStr> {
    let mut all: Vec<&Path> = paths.iter().map(Path::new).collect();
    all.sort();
    all.dedup();
    let lies_in = |path: &Path, other: &Path| path != other && path.starts_with(other);
    let outer = |path: &&Path| !all.iter().any(|other| lies_in(path, other));
    all.iter().filter(|path| outer(path)).map(|path| path.as_os_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::RuleOptions;

    #[test]
    fn what_lies_in_another_path_is_asked_for_once() {
        let paths = ["b", "a/c", "a", "ab", "b"].map(OsString::from);
        assert_eq!(outermost(&paths), ["a", "ab", "b"]);
        assert!(outermost(&[]).is_empty());
    }

    #[test]
    fn a_range_is_said_as_it_was_written() {
        for word in ["3..7", "3..", "..tests pass"] {
            assert_eq!(range(&PointRange::parse(word).unwrap()), word);
        }
    }

    #[test]
    fn what_is_of_this_machine_is_refused_by_name() {
        let refused = |policy: PolicyOptions| refuse_policy(&policy).unwrap_err().message;
        let with = PolicyOptions::default;
        assert!(refused(PolicyOptions { read: vec!["/x".into()], ..with() }).contains("--read"));
        let rules = RuleOptions { allow_host_port: vec![80], ..RuleOptions::default() };
        assert!(refused(PolicyOptions { rules, ..with() }).contains("--allow-host-port"));
        assert!(refuse_policy(&PolicyOptions { image: Some("x".into()), ..with() }).is_ok());
        assert!(
            refused(PolicyOptions { allow_sensitive_writes: true, ..with() }).contains("--allow")
        );
        assert!(refuse_policy(&PolicyOptions { memory: Some(1), ..with() }).is_ok());
    }
}
