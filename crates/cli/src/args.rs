//! What was typed, and nothing about what it means.

mod bare;
#[cfg(feature = "serve")]
mod names;
mod options;
mod session;

#[cfg(feature = "mcp")]
use crate::commands::mcp::McpArgs;
use crate::commands::secret::SecretArgs;
use crate::commands::{
    ORDINARY_EXIT_CODES, apply::ApplyArgs, approve::ApproveArgs, attach::AttachArgs,
    audit::AuditArgs, complete::CompleteArgs, create::CreateArgs, diff::DiffArgs,
    discard::DiscardArgs, ensure::EnsureArgs, events::EventsArgs, exec::ExecArgs,
    extend::ExtendArgs, file::FileArgs, fork::ForkArgs, gc::GcArgs, history::HistoryArgs,
    image::ImageArgs, logs::LogsArgs, ls::LsArgs, network::NetworkArgs, pause::PauseArgs,
    policy::PolicyArgs, port::PortArgs, ps::PsArgs, resume::ResumeArgs, rm::RmArgs,
    shell::ShellArgs, show::ShowArgs, signal::SignalArgs, snapshot::SnapshotArgs, stop::StopArgs,
    undo::UndoArgs, wait::WaitArgs,
};
#[cfg(feature = "serve")]
use crate::commands::{key::KeyArgs, serve::ServeArgs};
use bare::bare;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

#[cfg(feature = "serve")]
pub(crate) use names::{parse_host_name, parse_origin, parse_port_domain};
pub(crate) use options::{
    CommandOptions, ConfigOptions, PolicyOptions, RuleOptions, StartOptions, VariableOptions,
    checked_name, choice, parse_ask, parse_host, parse_pids, parse_port, split_assignment,
};
#[cfg(feature = "serve")]
pub(crate) use session::KeepingOptions;
pub(crate) use session::{
    DetachKeys, IdlePause, ScopeOptions, SessionOptions, label, parse_exec_id, parse_idle_pause,
};

/// Run any command safely on this machine.
///
/// Cofferdam runs a command in a sandbox of its own: it sees the system's programs, the toolchains
/// on your PATH and one workspace, and it cannot read your keys, write elsewhere, reach the network,
/// see your other processes or outlive the run. No root, no daemon, no other sandbox program.
///
/// Example: cofferdam run -- python3 -c 'print(6*7)'
#[derive(Debug, Parser)]
#[command(name = "cofferdam", version, max_term_width = 100)]
#[command(disable_help_subcommand = true, subcommand_required = true)]
#[command(after_long_help = OVERVIEW)]
pub(crate) struct Cli {
    /// Asks this server in place of this machine: http://HOST:PORT, https://HOST or unix:///PATH. It
    /// stands before the verb. $COFFERDAM_SERVER means the same.
    ///
    /// A key is taken from $COFFERDAM_KEY or --server-key-file. What is of this machine by its nature, as
    /// `doctor`, is refused then; no configuration is read, and files are those of the workspace there.
    ///
    /// Example: cofferdam --server http://127.0.0.1:7070 ls
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<OsString>,

    /// Takes the key for the server from this file, which nobody else may read or write.
    ///
    /// Example: cofferdam --server https://sandboxes.example --server-key-file ~/.cofferdam-key ls
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) server_key_file: Option<PathBuf>,

    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const OVERVIEW: &str = "\
Configuration, a later one wins:
  ~/.config/cofferdam/config.toml   yours ($XDG_CONFIG_HOME is honoured)
  cofferdam.toml                    the project's: the nearest from here upward, once approved
                                    with `cofferdam config trust FILE`
  COFFERDAM_PROFILE, …              the environment
  --profile, …                      the command line

Lists (read, write, hide, egress, env_from) add up; a variable separates paths by colons, the rest by
commas. `cofferdam config check` shows what is in force and who said so.

Files:
  $COFFERDAM_HOME, or ~/.local/state/cofferdam ($XDG_STATE_HOME is honoured)   state";

/// A verb. Each is documented at its arguments, which is where the help comes from.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(RunArgs),
    Create(CreateArgs),
    Ensure(EnsureArgs),
    Exec(ExecArgs),
    Ps(PsArgs),
    Logs(LogsArgs),
    Attach(AttachArgs),
    Signal(SignalArgs),
    Wait(WaitArgs),
    Shell(ShellArgs),
    File(FileArgs),
    Diff(DiffArgs),
    Apply(ApplyArgs),
    Discard(DiscardArgs),
    History(HistoryArgs),
    Undo(UndoArgs),
    Snapshot(SnapshotArgs),
    Fork(ForkArgs),
    Port(PortArgs),
    Network(NetworkArgs),
    Approve(ApproveArgs),
    Audit(AuditArgs),
    Policy(PolicyArgs),
    Ls(LsArgs),
    Show(ShowArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Stop(StopArgs),
    Rm(RmArgs),
    Extend(ExtendArgs),
    Events(EventsArgs),
    Gc(GcArgs),
    Image(ImageArgs),
    Probe(ProbeArgs),
    Explain(ExplainArgs),
    Doctor(DoctorArgs),
    Wrap(WrapArgs),
    #[cfg(feature = "serve")]
    Serve(ServeArgs),
    #[cfg(feature = "serve")]
    Key(KeyArgs),
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    Secret(SecretArgs),
    Config(ConfigArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(skip)]
    Complete(CompleteArgs),
    #[cfg(feature = "gate")]
    #[command(skip)]
    Gate,
}

/// Runs one command in a fresh sandbox.
///
/// The sandbox is made, the command runs, and nothing is left. Standard output and standard error
/// pass through byte for byte. Standard input is empty unless -i is given or all three streams are a
/// terminal, in whose foreground it is. What follows `--` is the command and its arguments, and is never
/// read again.
#[derive(Debug, Default, Args)]
#[command(override_usage = "cofferdam run [OPTIONS] -- ARGV…\n       \
    cofferdam run [OPTIONS] --shell LINE\n       \
    cofferdam run --image REF [OPTIONS] [-- ARGV…]")]
#[command(after_long_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    #[command(flatten)]
    pub(crate) command: CommandOptions,
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    #[command(flatten)]
    pub(crate) config: ConfigOptions,
    #[command(flatten)]
    pub(crate) start: StartOptions,

    /// Captures instead of streaming, and prints one JSON object on standard output.
    ///
    /// The object says how the command ended, what it wrote and used, and how far the policy held;
    /// `cofferdam config schema result` prints its schema. Errors are objects too.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output", conflicts_with = "terminal")]
    pub(crate) json: bool,
}

const RUN_EXAMPLES: &str = "\
Exit code:
  the command's own; 124 out of time; 125 Cofferdam could not set up; 126 not executable; 127 not
  found; 128+n killed by signal n

Examples:
  cofferdam run -- cargo build
  cofferdam run --profile read-only -- grep -r TODO .
  cofferdam run --timeout 5m --memory 2G -- npm test
  cofferdam run --json --shell 'ls | wc -l'";

/// Attacks a throw-away sandbox from inside and says what held.
///
/// The sandbox is built exactly as `run` would build it. Each promise is tested twice: the attack
/// must fail, and the same action must succeed where it may. A control that fails makes the axis
/// `none`, never `full`.
///
/// Example: cofferdam probe --profile read-only
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit code:
  0 fully enforced; 1 not fully enforced; 125 the sandbox could not be probed")]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    #[command(flatten)]
    pub(crate) config: ConfigOptions,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Says in sentences what a sandbox would be made of, and runs nothing.
///
/// Lists every mount, every namespace and every rule with its reason, and what is not possible here.
/// Takes the options of `run`, except --entrypoint, --preflight and --on-failure; the command may be
/// left out.
///
/// Example: cofferdam explain --profile ci-only
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam explain [OPTIONS] [-- ARGV…]")]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    #[command(flatten)]
    pub(crate) command: CommandOptions,
    #[command(flatten)]
    pub(crate) config: ConfigOptions,

    /// Shows what a session that is made with this manifest is shown, too.
    ///
    /// Example: --manifest workspace.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Says what this host can do, and how to remedy what it cannot.
///
/// Looks at the kernel, user namespaces and what forbids them, Landlock, seccomp, control groups,
/// overlayfs, /dev/net/tun, nftables, KVM and Docker. Changes nothing.
///
/// Example: cofferdam doctor
#[derive(Debug, Args)]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct DoctorArgs {
    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the argv with which another program can run a command in a sandbox.
///
/// Prints one JSON object, {"argv":[…],"env":{…}}: spawn that argv with those variables added, and
/// the command runs inside, its three streams passed through. The argv holds every setting, so that
/// no configuration file is read later.
///
/// Takes the options of `run`, except -t, --preflight and --on-failure; -i and -T are in every argv.
///
/// Example: cofferdam wrap --profile read-only -- npm test
#[derive(Debug, Args)]
#[command(override_usage = "cofferdam wrap [OPTIONS] -- ARGV…\n       \
    cofferdam wrap [OPTIONS] --shell LINE\n       \
    cofferdam wrap --session SESSION [OPTIONS] -- ARGV…")]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct WrapArgs {
    /// Enters this session, which is there already, in place of a fresh sandbox.
    ///
    /// Its name, whole, or its id, or the beginning of that. The policy is the session's, so no option of
    /// policy and configuration is taken.
    ///
    /// Example: --session agent-1
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    #[command(flatten)]
    pub(crate) start: StartOptions,
    #[command(flatten)]
    pub(crate) command: CommandOptions,
    #[command(flatten)]
    pub(crate) config: ConfigOptions,

    /// Makes the wrapped run print one JSON object, as `run --json` does; errors here are objects.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Checks, approves and describes configuration files.
///
/// Example: cofferdam config check
#[derive(Debug, Args)]
#[command(subcommand_required = true, disable_help_subcommand = true)]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: ConfigVerb,
}

/// What to do with configuration files.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Checks the configuration and prints the values in force, each with its origin.
    ///
    /// Without FILE, checks your file, the nearest cofferdam.toml from here upward, and the
    /// environment; with FILE, that one in place of the nearest. Changes nothing.
    ///
    /// Example: cofferdam config check cofferdam.toml
    Check(CheckArgs),
    /// Approves a configuration file or a manifest as it is now.
    ///
    /// A cofferdam.toml that is found by searching is used only after this. An approval ends when
    /// the file changes, so that no sandboxed program can widen its next run. So is a manifest that lies
    /// in the workspace and takes something from outside of it.
    ///
    /// Example: cofferdam config trust cofferdam.toml
    Trust(TrustArgs),
    /// Prints the JSON Schema of the configuration, or of another object.
    ///
    /// Example: cofferdam config schema > cofferdam.schema.json
    Schema(SchemaArgs),
}

/// Of `config check`.
#[derive(Debug, Args)]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct CheckArgs {
    /// The file to check; the nearest cofferdam.toml by default.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Of `config trust`.
#[derive(Debug, Args)]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct TrustArgs {
    /// The file to approve.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Withdraws the approval instead.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Prints errors as a JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Of `config schema`.
#[derive(Debug, Args)]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct SchemaArgs {
    /// Which object.
    #[arg(value_name = "OBJECT", default_value = "config")]
    #[arg(value_parser = options::choice::<crate::schema::Object>())]
    pub(crate) object: crate::schema::Object,
}

/// Prints the completions of a shell.
///
/// Example: cofferdam completions bash > ~/.local/share/bash-completion/completions/cofferdam
#[derive(Debug, Args)]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct CompletionsArgs {
    /// Which shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints the manual, or writes a page for each verb.
///
/// Example: cofferdam man ~/.local/share/man/man1
#[derive(Debug, Args)]
#[command(after_long_help = ORDINARY_EXIT_CODES)]
pub(crate) struct ManArgs {
    /// A directory for one page a verb; without it, the main page goes to standard output.
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
}

/// Reads the words of a command line, the program's name first.
///
/// Only the verb that is asked for is described to the parser, and a `run` or `exec` without options needs
/// no parser at all: the description of all verbs is a good part of what a short one costs.
pub(crate) fn parse(words: &[OsString]) -> Result<Verb, clap::Error> {
    if let Some(verb) = bare(words) {
        return Ok(verb);
    }
    match words {
        #[cfg(feature = "gate")]
        [_, verb] if verb == GATE => Ok(Verb::Gate),
        [_, verb, rest @ ..] => match verb.to_str().and_then(described) {
            Some(description) => taken(&description.try_get_matches_from(rest)?, verb),
            None => Ok(Cli::try_parse_from(words)?.verb),
        },
        _ => Ok(Cli::try_parse_from(words)?.verb),
    }
}

/// Makes the functions that know every verb by its name.
macro_rules! verbs {
    ($($(#[$when:meta])? $name:ident $verb:ident $args:ty;)+) => {
        /// The description of one verb.
        fn described(verb: &str) -> Option<clap::Command> {
            $($(#[$when])? if verb == verbs!(@text $name) {
                return Some(alone::<$args>(verbs!(@text $name)));
            })+
            None
        }

        /// The verb of this name, as the parser found it by its description.
        fn taken(matches: &ArgMatches, verb: &OsStr) -> Result<Verb, clap::Error> {
            $($(#[$when])? if verb == verbs!(@text $name) {
                return <$args>::from_arg_matches(matches).map(Verb::$verb);
            })+
            Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand))
        }
    };
    (@text complete) => { COMPLETE };
    (@text $name:ident) => { stringify!($name) };
}

verbs! {
    run Run RunArgs;
    create Create CreateArgs;
    ensure Ensure EnsureArgs;
    exec Exec ExecArgs;
    ps Ps PsArgs;
    logs Logs LogsArgs;
    attach Attach AttachArgs;
    signal Signal SignalArgs;
    wait Wait WaitArgs;
    shell Shell ShellArgs;
    file File FileArgs;
    diff Diff DiffArgs;
    apply Apply ApplyArgs;
    discard Discard DiscardArgs;
    history History HistoryArgs;
    undo Undo UndoArgs;
    snapshot Snapshot SnapshotArgs;
    fork Fork ForkArgs;
    port Port PortArgs;
    network Network NetworkArgs;
    approve Approve ApproveArgs;
    audit Audit AuditArgs;
    policy Policy PolicyArgs;
    ls Ls LsArgs;
    show Show ShowArgs;
    pause Pause PauseArgs;
    resume Resume ResumeArgs;
    stop Stop StopArgs;
    rm Rm RmArgs;
    extend Extend ExtendArgs;
    events Events EventsArgs;
    gc Gc GcArgs;
    image Image ImageArgs;
    probe Probe ProbeArgs;
    explain Explain ExplainArgs;
    doctor Doctor DoctorArgs;
    wrap Wrap WrapArgs;
    #[cfg(feature = "serve")]
    serve Serve ServeArgs;
    #[cfg(feature = "serve")]
    key Key KeyArgs;
    #[cfg(feature = "mcp")]
    mcp Mcp McpArgs;
    secret Secret SecretArgs;
    config Config ConfigArgs;
    completions Completions CompletionsArgs;
    man Man ManArgs;
    complete Complete CompleteArgs;
}

/// The verb that the scripts of the shells call, and that no description shows.
const COMPLETE: &str = "__complete";

/// The verb by which Cofferdam starts a gate, and that no description shows.
#[cfg(feature = "gate")]
const GATE: &str = "gate";

/// The parser of one verb and nothing else.
fn alone<A: Args>(verb: &'static str) -> clap::Command {
    let command = clap::Command::new(verb)
        .bin_name(format!("cofferdam {verb}"))
        .no_binary_name(true)
        .disable_help_subcommand(true)
        .max_term_width(100);
    A::augment_args(command)
}

/// The whole command line, for completions and manual pages.
pub(crate) fn whole() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_description_is_sound() {
        whole().debug_assert();
        described(COMPLETE).unwrap().debug_assert();
    }

    #[test]
    fn a_verb_alone_says_what_the_whole_says() {
        let mut all = whole();
        all.build();
        for same in all.get_subcommands() {
            let mut alone = described(same.get_name()).unwrap();
            alone.build();
            assert_same(&alone, same);
        }
        assert!(described("nothing").is_none());
    }

    /// Of their subcommands, too.
    fn assert_same(one: &clap::Command, other: &clap::Command) {
        let help = |it: &clap::Command| it.clone().render_long_help().to_string();
        assert_eq!(help(one), help(other));
        assert_eq!(one.get_subcommands().count(), other.get_subcommands().count());
        for (one, other) in one.get_subcommands().zip(other.get_subcommands()) {
            assert_same(one, other);
        }
    }

    #[test]
    fn every_verb_is_taken_as_what_it_is() {
        let line = |verb: &str, rest: &[&str]| {
            let all: Vec<&str> =
                ["cofferdam", verb].into_iter().chain(rest.iter().copied()).collect();
            parse(&words(&all))
        };
        assert!(matches!(line("ls", &[]), Ok(Verb::Ls(_))));
        assert!(matches!(line("rm", &["a"]), Ok(Verb::Rm(_))));
        assert!(matches!(line("file", &["read", "a", "b"]), Ok(Verb::File(_))));
        let text = |error: clap::Error| error.to_string();
        // The same as by the whole description, which a word before the verb leads to.
        for rest in [&["--nothing"][..], &["a", "b", "--json=3"], &["--help"]] {
            let all: Vec<&str> = ["cofferdam", "wait"].iter().chain(rest).copied().collect();
            let whole = text(Cli::try_parse_from(words(&all)).unwrap_err());
            assert_eq!(text(line("wait", rest).unwrap_err()), whole);
        }
        let known = text(line("nonsense", &[]).unwrap_err());
        assert!(known.contains("nonsense"), "{known}");
    }

    #[test]
    fn what_follows_two_hyphens_is_never_read() {
        for option in [None, Some("-i")] {
            let mut line = words(&["cofferdam", "run"]);
            line.extend(option.map(OsString::from));
            line.extend(words(&["--", "--json", "-i", "--", "--help"]));
            let Verb::Run(run) = parse(&line).unwrap() else { panic!("not run") };
            assert!(!run.json);
            assert_eq!(run.command.argv, words(&["--json", "-i", "--", "--help"]));
        }
    }
}
