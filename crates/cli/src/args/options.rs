//! The options that verbs share.

use crate::choice::Choice;
use crate::images::PullPolicy;
use crate::parts::BackendName;
use clap::Args;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use cofferdam_core::network::MAX_ASK_MS;
use cofferdam_core::secret::{SecretGrant, SecretWish};
use cofferdam_core::{
    EgressRule, Error, ErrorKind, LayerChoice, OnUnavailable, Profile, Result, User, parse_bytes,
    parse_cpu, parse_duration,
};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Options that say what a sandbox may do.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyOptions {
    /// Names what the sandbox may do. Default: no-network.
    ///
    /// read-only reads the workspace, no way out; repo-write writes it, a way out to the listed hosts;
    /// no-network writes it, no way out; full-dev writes it, a way out to all public addresses;
    /// ci-only writes it, with system toolchains only, no host variable, and limits required.
    ///
    /// Example: --profile read-only
    #[arg(long, value_name = "PROFILE", value_parser = choice::<Profile>())]
    pub(crate) profile: Option<Profile>,

    /// Lies on this root file system in place of the host's, of which nothing is shown then.
    ///
    /// oci:DIR[:TAG], oci-archive:FILE[:TAG] and docker-archive:FILE[:TAG] are images as `skopeo`,
    /// `umoci` and `docker save` write them; dir:DIR is a plain directory, tar:FILE a root file system
    /// as tar, packed or not; sha256:ID is one of `cofferdam image ls`. A text that begins with /, ./ or
    /// ../ is a path; another one with a tag or a digest, or after docker://, is an image of a registry,
    /// which is pulled first; the rest is a path if there is one. What is written to the image is the
    /// sandbox's own; a session keeps it. The image's variables and working directory (other than /) count
    /// where none is given.
    ///
    /// Example: --image debian:12
    #[arg(long, value_name = "REF")]
    pub(crate) image: Option<String>,

    /// Says when a registry is asked for the image: missing, always or never. Default: missing.
    ///
    /// missing: where it was not pulled yet; always: what its tag means now; never: not at all.
    ///
    /// Example: --pull always
    #[arg(long, value_name = "WHEN", value_parser = choice::<PullPolicy>())]
    pub(crate) pull: Option<PullPolicy>,

    /// Asks this registry without encryption, if it knows nothing else. Repeatable.
    ///
    /// Whoever is on the way to it sees the credentials and may change what is not pinned by a digest.
    /// This machine's own addresses need no word.
    ///
    /// Example: --insecure-registry registry.lan:5000
    #[arg(long, value_name = "HOST[:PORT]", value_parser = parse_host)]
    pub(crate) insecure_registry: Vec<String>,

    /// Names the directory that the sandbox works in. Default: the current directory.
    ///
    /// It is shown at /workspace and at its own path.
    ///
    /// Example: --workspace ~/src/project
    #[arg(short, long, value_name = "DIR", conflicts_with = "no_workspace")]
    pub(crate) workspace: Option<PathBuf>,

    /// Gives an empty private workspace, gone with the sandbox.
    ///
    /// Example: --no-workspace
    #[arg(long)]
    pub(crate) no_workspace: bool,

    /// Shows the workspace copy-on-write: what is written lands in a layer and not in the directory.
    ///
    /// A session keeps its layer, whatever becomes of its sandbox, until it is removed; `run` throws
    /// it away at the end, unless --on-failure keeps the session. Git hooks and configuration can be
    /// written then, because they act on nobody there. A workspace with something mounted below it is
    /// refused.
    ///
    /// The layer is an overlay of the kernel's; where that cannot be had the workspace is copied first,
    /// which is said with the reason. overlay takes nothing else, and copy copies in any case.
    ///
    /// Example: --cow, --cow=copy
    #[arg(
        long,
        value_name = "TIER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        value_parser = choice::<LayerChoice>(),
        conflicts_with = "no_workspace"
    )]
    pub(crate) cow: Option<LayerChoice>,

    /// Shows a path read-only at its own place. Repeatable.
    ///
    /// Example: --read /srv/models
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,

    /// Makes a path writable at its own place. Repeatable.
    ///
    /// Example: --write /srv/cache
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,

    /// Hides a path, whatever shows it. Repeatable.
    ///
    /// It is one of this host: what a toolchain, the system or another option shows at it or below it is
    /// covered. An image's own files stay.
    ///
    /// Example: --hide ./secrets
    #[arg(long, value_name = "PATH")]
    pub(crate) hide: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: RuleOptions,

    /// Lets a connection that is not allowed wait so long to be allowed. Default: 0, not at all.
    ///
    /// A number with its unit: ms, s, m or h. A sandbox with it has a way out though no destination is
    /// listed.
    ///
    /// Example: --ask 30s
    #[arg(long, value_name = "TIME", value_parser = parse_ask)]
    pub(crate) ask: Option<Duration>,

    /// Puts a secret in toward one host, and nowhere else. Inside is a placeholder. Repeatable.
    ///
    /// NAME@HOST[:header=NAME][,scheme=Bearer|basic], or NAME@HOST:query=NAME; the header authorization where
    /// nothing is said. The secret is one of `cofferdam secret ls`. Inside, the variable NAME is a placeholder,
    /// which the gate replaces in requests of HTTPS to that host; its value never enters. A grant allows port
    /// 443 of the host, unless --deny-egress denies it; other ports take a rule of their own. TLS to that host
    /// ends at the gate, by an authority of the sandbox's own that programs inside trust; to other hosts it
    /// is not touched. A placeholder that is seen on its way to another host freezes the session, and ends a
    /// `run`: within TLS to another host it cannot be seen.
    ///
    /// Example: --secret GITHUB_TOKEN@api.github.com
    #[arg(long, value_name = "NAME@HOST[:PLACE]")]
    pub(crate) secret: Vec<SecretGrant>,

    /// Lets control files in the workspace be written.
    ///
    /// Git hooks and configuration, shell start files, and editor and agent configuration are
    /// protected by default, because they act on you outside the sandbox.
    ///
    /// Example: --allow-sensitive-writes
    #[arg(long)]
    pub(crate) allow_sensitive_writes: bool,

    /// Names who the command is inside: sandbox or root. Default: sandbox.
    ///
    /// root is user 0 of the sandbox's own user namespace, with the few capabilities there that a
    /// package manager needs; it is never root of this host. On an image the default is the user that it
    /// wants, and sandbox is that one where it wants another than root.
    ///
    /// Example: --user root
    #[arg(long, value_name = "USER", value_parser = choice::<User>())]
    pub(crate) user: Option<User>,

    /// Says what to do where a promise cannot be kept: refuse or degrade. Default: refuse.
    ///
    /// refuse runs nothing; degrade keeps what holds, says what does not, and goes on.
    ///
    /// Example: --on-unavailable degrade
    #[arg(long, value_name = "WHAT", value_parser = choice::<OnUnavailable>())]
    pub(crate) on_unavailable: Option<OnUnavailable>,

    /// Names where sandboxes come from. Default: local.
    ///
    /// Example: --backend local
    #[arg(long, value_name = "BACKEND", value_parser = choice::<BackendName>())]
    pub(crate) backend: Option<BackendName>,

    /// Limits the memory of all processes together. Default: 8G.
    ///
    /// A number of bytes with K, M, G or T, powers of 1024. Files in memory count.
    ///
    /// Example: --memory 512M
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Limits")]
    pub(crate) memory: Option<u64>,

    /// Limits the number of processes and threads. Default: 4096.
    ///
    /// Example: --pids 256
    #[arg(long, value_name = "N", value_parser = parse_pids, help_heading = "Limits")]
    pub(crate) pids: Option<u32>,

    /// Limits processor time, in processors. Default: no limit.
    ///
    /// A decimal number of at least 0.01.
    ///
    /// Example: --cpu 1.5
    #[arg(long, value_name = "N", value_parser = parse_cpu, help_heading = "Limits")]
    pub(crate) cpu: Option<u32>,

    /// Limits the private writable space: /tmp, $HOME and /dev/shm together. Default: 2G.
    ///
    /// A number of bytes with K, M, G or T, powers of 1024. The workspace does not count, and neither
    /// does $HOME of a session, which is a directory on disk.
    ///
    /// Example: --disk 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Limits")]
    pub(crate) disk: Option<u64>,
}

/// Rules of the way out.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct RuleOptions {
    /// Allows a destination, as HOST[:PORT]. Repeatable.
    ///
    /// HOST is a name, an address, a range of them as in 10.0.0.0/8, *.NAME (the name and all below it), or
    /// *; PORT may be a range as in 8000-8010, and all ports where it is left out. `*` alone is any public
    /// address. Private addresses are reached only where they are listed as addresses. Programs need no
    /// setting for it: names that are allowed resolve inside, and connections are decided on the host.
    ///
    /// Example: --egress crates.io:443
    #[arg(long, value_name = "RULE")]
    pub(crate) egress: Vec<EgressRule>,

    /// Denies a destination, whatever allows it. Repeatable.
    ///
    /// Written as --egress is.
    ///
    /// Example: --deny-egress '*.ads.example.com:443'
    #[arg(long, value_name = "RULE")]
    pub(crate) deny_egress: Vec<EgressRule>,

    /// Allows one port of this host's own loopback. Repeatable.
    ///
    /// Inside it is reached as host.cofferdam.internal:N; no other port of this host is.
    ///
    /// Example: --allow-host-port 5432
    #[arg(long, value_name = "N", value_parser = parse_port)]
    pub(crate) allow_host_port: Vec<u16>,
}

/// Options that say which variables there are inside.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct VariableOptions {
    /// Sets a variable for the command. Repeatable.
    ///
    /// Example: --env RUST_LOG=debug
    #[arg(long, value_name = "K=V", value_parser = assignment())]
    pub(crate) env: Vec<(OsString, OsString)>,

    /// Passes a variable of your environment on. Repeatable; one that is not set is not passed. A value of --env counts
    /// instead.
    ///
    /// Example: --env-from GITHUB_TOKEN
    #[arg(long, value_name = "NAME", value_parser = variable_name())]
    pub(crate) env_from: Vec<OsString>,
}

/// Options that say what runs, and with what.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct CommandOptions {
    #[command(flatten)]
    pub(crate) variables: VariableOptions,

    /// Names the directory that the command starts in, inside. Default: the workspace.
    ///
    /// A relative path starts at the workspace.
    ///
    /// Example: --cwd crates/core
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Kills the command and all its descendants after this long. Default: no limit.
    ///
    /// A number with its unit: ms, s, m, h or d. Time in which a session is paused does not count.
    ///
    /// Example: --timeout 5m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,

    /// Limits the output, a stream. Default: no limit; 16M with --json.
    ///
    /// The command is killed when it writes more; with --json, what is beyond is dropped and counted.
    /// A number of bytes with K, M, G or T, powers of 1024.
    ///
    /// Example: --max-output 16M
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Limits")]
    pub(crate) max_output: Option<u64>,

    /// Passes standard input on. Without it, and without a terminal, the command reads nothing.
    ///
    /// Example: -i
    #[arg(short = 'i', long)]
    pub(crate) interactive: bool,

    /// Forces a terminal for the command.
    ///
    /// By default it gets one when standard input, output and error are all terminals.
    ///
    /// Example: -t
    #[arg(short = 't', long = "terminal", conflicts_with = "no_terminal")]
    pub(crate) terminal: bool,

    /// Forbids a terminal for the command.
    ///
    /// Example: -T
    #[arg(short = 'T', long = "no-terminal")]
    pub(crate) no_terminal: bool,

    /// Gives the command a secret as a file. Repeatable.
    ///
    /// The file is /run/secrets/NAME unless another name is written. It is in memory, and gone when nothing
    /// is left of the command; until then other commands of the same sandbox can read it too. What any
    /// command of the sandbox writes from then on is masked: the value, also in base64, in hexadecimal
    /// digits and percent-encoded, becomes ***.
    ///
    /// Example: --secret-file DEPLOY_KEY=id_ed25519
    #[arg(long, value_name = "NAME[=FILE]", value_parser = SecretWish::file)]
    pub(crate) secret_file: Vec<SecretWish>,

    /// Gives the command a secret as an open descriptor, and masks output as --secret-file does. Repeatable.
    ///
    /// Example: --secret-fd TOKEN=3
    #[arg(long, value_name = "NAME=N", value_parser = SecretWish::descriptor)]
    pub(crate) secret_fd: Vec<SecretWish>,

    /// Runs a line of shell with /bin/sh -c, in place of ARGV.
    ///
    /// Example: --shell 'ls | wc -l'
    #[arg(long, value_name = "LINE")]
    pub(crate) shell: Option<OsString>,

    /// The program and its arguments, after `--`.
    #[arg(last = true, value_name = "ARGV")]
    pub(crate) argv: Vec<OsString>,
}

impl CommandOptions {
    /// The secrets that the command is to be given.
    pub(crate) fn secrets(&self) -> Vec<SecretWish> {
        self.secret_file.iter().chain(&self.secret_fd).cloned().collect()
    }
}

/// A host with or without a port, and nothing around it.
pub(crate) fn parse_host(text: &str) -> Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(Error::new(ErrorKind::Usage, format!("{text:?} is no host"))
        .hint("Write HOST or HOST:PORT, without a scheme and a path."))
}

/// Options that say how an image is started.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct StartOptions {
    /// Leads the command in place of what the image says; empty for nothing.
    ///
    /// An image's entry point leads ARGV, and its command stands for an ARGV that is not given. With
    /// an entry point of your own, its command does not.
    ///
    /// Example: --entrypoint /bin/sh
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) entrypoint: Option<OsString>,
}

impl StartOptions {
    /// Fails where one is given and cannot count.
    pub(crate) fn refuse(&self, why: &str) -> Result<()> {
        match self.entrypoint {
            None => Ok(()),
            Some(_) => Err(Error::new(ErrorKind::Usage, why).hint("Leave --entrypoint out.")),
        }
    }
}

/// Options that say which configuration is read.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigOptions {
    /// Reads this file in place of the nearest cofferdam.toml; naming it approves it for this once.
    ///
    /// Example: --config ci/cofferdam.toml
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub(crate) config: Option<PathBuf>,

    /// Reads no configuration file, and of the COFFERDAM_* variables COFFERDAM_HOME alone.
    ///
    /// Example: --no-config
    #[arg(long)]
    pub(crate) no_config: bool,
}

/// A port above 0.
pub(crate) fn parse_port(text: &str) -> Result<u16> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{text:?} is not a port"))
            .hint("Write a whole number from 1 to 65535, as in 5432.")
    })
}

/// A duration, or 0 with or without a unit.
pub(crate) fn parse_ask(text: &str) -> Result<Duration> {
    let waits = match text {
        "0" | "0ms" | "0s" | "0m" | "0h" | "0d" => Duration::ZERO,
        _ => parse_duration(text)?,
    };
    match waits > Duration::from_millis(MAX_ASK_MS) {
        false => Ok(waits),
        true => Err(Error::new(ErrorKind::Usage, format!("a wait of {text} is too long"))
            .hint("Use at most 1h.")),
    }
}

/// A number of processes above 0.
pub(crate) fn parse_pids(text: &str) -> Result<u32> {
    text.parse().ok().filter(|pids| *pids > 0).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{text:?} is not a number of processes"))
            .hint("Write a whole number above 0, as in 256.")
    })
}

/// Splits `K=V` at the first equals sign.
pub(crate) fn split_assignment(text: &OsStr) -> Result<(OsString, OsString)> {
    let mut parts = text.as_bytes().splitn(2, |byte| *byte == b'=');
    let (name, value) = (parts.next().unwrap_or_default(), parts.next());
    let value = value.ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{text:?} is not an assignment"))
            .hint("Write NAME=VALUE, or pass a variable of yours on with --env-from NAME.")
    })?;
    Ok((checked_name(OsStr::from_bytes(name))?, OsStr::from_bytes(value).to_owned()))
}

/// The name, if it can name a variable.
pub(crate) fn checked_name(name: &OsStr) -> Result<OsString> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.contains(&b'=') || bytes.contains(&0) {
        let hint = match bytes.is_empty() {
            true => "Name it, as in LANG; with a value as in LANG=C.",
            false => "Write the name alone, without '=', as in LANG.",
        };
        return Err(
            Error::new(ErrorKind::Usage, format!("{name:?} cannot name a variable")).hint(hint)
        );
    }
    Ok(name.to_owned())
}

fn assignment() -> impl TypedValueParser<Value = (OsString, OsString)> {
    OsStringValueParser::new().try_map(|text| split_assignment(&text))
}

fn variable_name() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|text| checked_name(&text))
}

/// Reads one name of a closed set.
pub(crate) fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::ALL.iter().map(|member| member.named()))
        .try_map(|name| T::choose(&name))
}
