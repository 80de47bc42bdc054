//! `cofferdam wrap`.

use crate::args::{ConfigOptions, PolicyOptions, WrapArgs};
use crate::choice::Choice;
use crate::context::{Context, argv};
use crate::door::Sessions;
use crate::images::PullPolicy;
use crate::{exit, render, sessions};
use cofferdam_core::secret::{SecretPlace, SecretWish};
use cofferdam_core::{Error, ErrorKind, Result, SensitiveWrites, Spec, Workspace};
use cofferdam_local::environment;
use cofferdam_local::view::reads_variable;
use cofferdam_session::Sessions as Own;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// How another program runs a command in a sandbox. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Wrapped {
    /// What to spawn.
    pub(crate) argv: Vec<String>,
    /// Variables to add to the environment of what is spawned.
    pub(crate) env: BTreeMap<String, String>,
}

/// What leads the names of variables that rule programs of the host, Cofferdam among them.
const OF_HOST: [&str; 13] = [
    "COFFERDAM_",
    "DOCKER_CONFIG",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_",
    "LD_",
    "LOCPATH",
    "MALLOC_",
    "NLSPATH",
    "REGISTRY_AUTH_FILE",
    "RUST_",
    "SSL_CERT_",
    "TMPDIR",
];

/// Prints the argv and the variables.
pub(super) fn perform(args: &WrapArgs) -> Result<u8> {
    if args.command.terminal {
        return Err(Error::new(ErrorKind::Usage, "a wrapped command has no terminal")
            .hint("Leave -t out; the program that spawns the argv owns the streams."));
    }
    let wrapped = match &args.session {
        Some(session) => entering(session, args)?,
        None => {
            let context = Context::new(&args.policy, Some(&args.command), &args.config)?;
            let policy = policy_words(&context);
            wrapped(&context, args, [&["run".into(), "--no-config".into()], &*policy].concat())?
        }
    };
    render::print_json(&wrapped)?;
    Ok(exit::DONE)
}

/// How the session that is there is entered. Its id is in the argv, so that a later session of the
/// same name is not entered in its place.
fn entering(session: &str, args: &WrapArgs) -> Result<Wrapped> {
    args.start.refuse("with --session the command is led by nothing")?;
    if args.policy != PolicyOptions::default() || args.config != ConfigOptions::default() {
        let message = "with --session the policy is that of the session";
        return Err(Error::new(ErrorKind::Usage, message)
            .hint("Leave the options of policy, limits of the sandbox and configuration out."));
    }
    let find = async |own: &Own| sessions::find_whole(&Sessions::Here(own.clone()), session).await;
    let id = sessions::here(find)?;
    // The policy is the session's; of this one nothing is used.
    let policy = PolicyOptions { no_workspace: true, ..PolicyOptions::default() };
    let config = ConfigOptions { config: None, no_config: true };
    let context = Context::new(&policy, Some(&args.command), &config)?;
    wrapped(&context, args, vec!["exec".into(), id.to_string().into()])
}

fn wrapped(context: &Context, args: &WrapArgs, verb: Vec<OsString>) -> Result<Wrapped> {
    let program = std::env::current_exe()
        .map_err(|cause| Error::new(ErrorKind::Io, "find this program").source(cause))?;
    let mut words: Vec<OsString> = vec![program.into()];
    words.extend(verb);
    words.extend(command_words(context, args));
    words.extend(["-i".into(), "-T".into(), "--".into()]);
    words.extend(argv(&args.command, "wrap")?);
    let argv = words.iter().map(|word| utf8(word)).collect::<Result<_>>()?;
    Ok(Wrapped { argv, env: carried(context)? })
}

fn policy_words(context: &Context) -> Vec<OsString> {
    let spec = &context.spec;
    let mut words = Words(vec![option("profile", spec.profile.name())]);
    words.0.push(match spec.workspace.directory() {
        Some(path) => option("workspace", path),
        None => "--no-workspace".into(),
    });
    words.0.extend(match &spec.workspace {
        Workspace::CopyOnWrite(_) => Some(option("cow", spec.layer.name())),
        Workspace::Directory(_) | Workspace::Private => None,
    });
    words.each("image", spec.image.as_ref().map(|image| image.name.as_str()));
    if context.asking.policy != PullPolicy::default() {
        words.0.push(option("pull", context.asking.policy.named()));
    }
    words.each("insecure-registry", &context.asking.insecure);
    words.each("read", &spec.read);
    words.each("write", &spec.write);
    words.each("hide", &spec.hide);
    words.each("egress", spec.egress.iter().map(ToString::to_string));
    words.each("deny-egress", spec.deny.iter().map(ToString::to_string));
    words.each("secret", spec.secrets.iter().map(ToString::to_string));
    words.each("allow-host-port", spec.host_ports.iter().map(ToString::to_string));
    words.each("ask", (!spec.ask.is_zero()).then(|| render::duration(spec.ask)));
    words.0.extend(limit_words(spec));
    words.0.push(option("user", spec.user.named()));
    words.0.push(option("on-unavailable", spec.on_unavailable.named()));
    words.0.push(option("backend", context.backend.named()));
    match spec.sensitive_writes {
        SensitiveWrites::Protected => {}
        SensitiveWrites::Allowed => words.0.push("--allow-sensitive-writes".into()),
    }
    words.0
}

/// Only limits that somebody asked for: a default stays one, and is not refused where it cannot hold.
fn limit_words(spec: &Spec) -> Vec<OsString> {
    let limits = &spec.limits;
    let asked = |is_asked: bool, name, text: String| is_asked.then(|| option(name, text));
    let memory = render::bytes(limits.memory_bytes.value());
    let disk = render::bytes(limits.disk_bytes.value());
    [
        asked(limits.memory_bytes.is_asked(), "memory", memory),
        asked(limits.pids.is_asked(), "pids", limits.pids.value().to_string()),
        asked(limits.cpu_millis.is_asked(), "cpu", render::cpu(limits.cpu_millis.value())),
        asked(limits.disk_bytes.is_asked(), "disk", disk),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn command_words(context: &Context, args: &WrapArgs) -> Vec<OsString> {
    let mut words = Words(Vec::new());
    for (name, value) in &context.spec.env {
        if is_by_name(context, name) {
            words.0.push(option("env-from", name));
        } else {
            let mut assignment = name.clone();
            assignment.push("=");
            assignment.push(value);
            words.0.push(option("env", assignment));
        }
    }
    for SecretWish { name, place } in args.command.secrets() {
        words.0.push(match place {
            SecretPlace::File(file) => option("secret-file", format!("{name}={file}")),
            SecretPlace::Descriptor(number) => option("secret-fd", format!("{name}={number}")),
        });
    }
    words.each("entrypoint", &args.start.entrypoint);
    words.each("cwd", &args.command.cwd);
    words.each("timeout", context.timeout.map(render::duration));
    words.each("max-output", context.max_output_bytes.map(render::bytes));
    if args.json {
        words.0.push("--json".into());
    }
    words.0
}

/// Whether a variable goes in the environment, and the argv only names it: its value is a secret as
/// likely as not, and an argv can be seen by all.
///
/// A value that is set for the command alone must not change the run itself, which has the same
/// variables: what it shows, and what the host's loader and C library do before it starts.
fn is_by_name(context: &Context, name: &OsStr) -> bool {
    if context.passed.iter().any(|passed| passed == name) {
        return true;
    }
    let Some(name) = name.to_str() else { return false };
    let is_of_host = OF_HOST.iter().any(|lead| name.starts_with(lead));
    !is_carried(name) && !reads_variable(name) && !is_of_host
}

fn is_carried(name: &str) -> bool {
    environment::is_carried(name)
}

/// Words of a command line in the making.
struct Words(Vec<OsString>);

impl Words {
    fn each<T: AsRef<OsStr>>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        self.0.extend(values.into_iter().map(|value| option(name, value)));
    }
}

/// `--name=value` in one word, so that a value that begins with a hyphen stays a value.
fn option(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}

fn carried(context: &Context) -> Result<BTreeMap<String, String>> {
    let mut env = environment::carried(&context.spec.caller);
    for (name, value) in &context.spec.env {
        if is_by_name(context, name) {
            env.insert(utf8(name)?, utf8(value)?);
        }
    }
    Ok(env)
}

fn utf8(word: &OsStr) -> Result<String> {
    word.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{word:?} is not UTF-8, so JSON cannot carry it"))
            .hint("Rename it, or pass it on standard input.")
    })
}
