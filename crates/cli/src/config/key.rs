//! The keys of the configuration: the one table of them.

use crate::choice::Choice;
use crate::images::PullPolicy;
use crate::parts::BackendName;
use cofferdam_core::{LayerChoice, OnUnavailable, Profile, User};

/// A table of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// `[run]`: what a sandbox is, and how a command runs in it.
    Run,
    /// `[session]`: how a sandbox is kept.
    Session,
}

impl Section {
    pub(crate) const ALL: [Self; 2] = [Self::Run, Self::Session];

    /// Its name in a file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Session => "session",
        }
    }

    /// What it says, as in the schema.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Run => "How commands are run.",
            Self::Session => "How sessions are kept: what `create` and `ensure` do.",
        }
    }
}

/// A key of a section; no two have one name.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// `profile`
    Profile,
    /// `image`
    Image,
    /// `pull`
    Pull,
    /// `insecure_registry`
    InsecureRegistry,
    /// `workspace`
    Workspace,
    /// `read`
    Read,
    /// `write`
    Write,
    /// `hide`
    Hide,
    /// `egress`
    Egress,
    /// `deny_egress`
    DenyEgress,
    /// `allow_host_port`
    AllowHostPort,
    /// `ask`
    Ask,
    /// `secret`
    Secret,
    /// `env`
    Env,
    /// `env_from`
    EnvFrom,
    /// `timeout`
    Timeout,
    /// `memory`
    Memory,
    /// `pids`
    Pids,
    /// `cpu`
    Cpu,
    /// `disk`
    Disk,
    /// `max_output`
    MaxOutput,
    /// `user`
    User,
    /// `on_unavailable`
    OnUnavailable,
    /// `backend`
    Backend,
    /// `allow_sensitive_writes`
    AllowSensitiveWrites,
    /// `copy_on_write`
    CopyOnWrite,
    /// `init`
    Init,
    /// `idle_pause`
    IdlePause,
    /// `ttl`
    Ttl,
    /// `checkpoints`
    Checkpoints,
}

/// What a key takes in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One of these names.
    OneOf(Vec<&'static str>),
    /// A text.
    Text,
    /// A text or a number.
    Amount,
    /// A list of texts.
    List,
    /// A table from names to texts.
    Table,
    /// `true` or `false`.
    Switch,
    /// `true`, `false` or one of these names.
    SwitchOr(Vec<&'static str>),
}

impl Key {
    /// All keys, in the order of the documents.
    pub(crate) const ALL: [Self; 30] = [
        Self::Profile,
        Self::Image,
        Self::Pull,
        Self::InsecureRegistry,
        Self::Workspace,
        Self::Read,
        Self::Write,
        Self::Hide,
        Self::Egress,
        Self::DenyEgress,
        Self::AllowHostPort,
        Self::Ask,
        Self::Secret,
        Self::Env,
        Self::EnvFrom,
        Self::Timeout,
        Self::Memory,
        Self::Pids,
        Self::Cpu,
        Self::Disk,
        Self::MaxOutput,
        Self::User,
        Self::OnUnavailable,
        Self::Backend,
        Self::AllowSensitiveWrites,
        Self::CopyOnWrite,
        Self::Init,
        Self::IdlePause,
        Self::Ttl,
        Self::Checkpoints,
    ];

    /// The section that it stands in.
    pub(crate) fn section(self) -> Section {
        match self {
            Self::Profile
            | Self::Image
            | Self::Pull
            | Self::InsecureRegistry
            | Self::Workspace
            | Self::Read
            | Self::Write
            | Self::Hide
            | Self::Egress
            | Self::DenyEgress
            | Self::AllowHostPort
            | Self::Ask
            | Self::Secret
            | Self::Env
            | Self::EnvFrom
            | Self::Timeout
            | Self::Memory
            | Self::Pids
            | Self::Cpu
            | Self::Disk
            | Self::MaxOutput
            | Self::User
            | Self::OnUnavailable
            | Self::Backend
            | Self::AllowSensitiveWrites
            | Self::CopyOnWrite => Section::Run,
            Self::Init | Self::IdlePause | Self::Ttl | Self::Checkpoints => Section::Session,
        }
    }

    /// Its name in a file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Image => "image",
            Self::Pull => "pull",
            Self::InsecureRegistry => "insecure_registry",
            Self::Workspace => "workspace",
            Self::Read => "read",
            Self::Write => "write",
            Self::Hide => "hide",
            Self::Egress => "egress",
            Self::DenyEgress => "deny_egress",
            Self::AllowHostPort => "allow_host_port",
            Self::Ask => "ask",
            Self::Secret => "secret",
            Self::Env => "env",
            Self::EnvFrom => "env_from",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::Disk => "disk",
            Self::MaxOutput => "max_output",
            Self::User => "user",
            Self::OnUnavailable => "on_unavailable",
            Self::Backend => "backend",
            Self::AllowSensitiveWrites => "allow_sensitive_writes",
            Self::CopyOnWrite => "copy_on_write",
            Self::Init => "init",
            Self::IdlePause => "idle_pause",
            Self::Ttl => "ttl",
            Self::Checkpoints => "checkpoints",
        }
    }

    /// The variable that stands for it. `env` has none, because variables are given as they are, `init` has
    /// none, because a line of shell may hold whatever would separate two, and `secret` has none, because
    /// somebody would put the value there.
    pub(crate) fn variable(self) -> Option<&'static str> {
        match self {
            Self::Profile => Some("COFFERDAM_PROFILE"),
            Self::Image => Some("COFFERDAM_IMAGE"),
            Self::Pull => Some("COFFERDAM_PULL"),
            Self::InsecureRegistry => Some("COFFERDAM_INSECURE_REGISTRY"),
            Self::Workspace => Some("COFFERDAM_WORKSPACE"),
            Self::Read => Some("COFFERDAM_READ"),
            Self::Write => Some("COFFERDAM_WRITE"),
            Self::Hide => Some("COFFERDAM_HIDE"),
            Self::Egress => Some("COFFERDAM_EGRESS"),
            Self::DenyEgress => Some("COFFERDAM_DENY_EGRESS"),
            Self::AllowHostPort => Some("COFFERDAM_ALLOW_HOST_PORT"),
            Self::Ask => Some("COFFERDAM_ASK"),
            Self::Secret | Self::Env | Self::Init => None,
            Self::EnvFrom => Some("COFFERDAM_ENV_FROM"),
            Self::Timeout => Some("COFFERDAM_TIMEOUT"),
            Self::Memory => Some("COFFERDAM_MEMORY"),
            Self::Pids => Some("COFFERDAM_PIDS"),
            Self::Cpu => Some("COFFERDAM_CPU"),
            Self::Disk => Some("COFFERDAM_DISK"),
            Self::MaxOutput => Some("COFFERDAM_MAX_OUTPUT"),
            Self::User => Some("COFFERDAM_USER"),
            Self::OnUnavailable => Some("COFFERDAM_ON_UNAVAILABLE"),
            Self::Backend => Some("COFFERDAM_BACKEND"),
            Self::AllowSensitiveWrites => Some("COFFERDAM_ALLOW_SENSITIVE_WRITES"),
            Self::CopyOnWrite => Some("COFFERDAM_COPY_ON_WRITE"),
            Self::IdlePause => Some("COFFERDAM_IDLE_PAUSE"),
            Self::Ttl => Some("COFFERDAM_TTL"),
            Self::Checkpoints => Some("COFFERDAM_CHECKPOINTS"),
        }
    }

    /// What it takes in a file.
    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::Profile => one_of::<Profile>(),
            Self::Pull => one_of::<PullPolicy>(),
            Self::User => one_of::<User>(),
            Self::OnUnavailable => one_of::<OnUnavailable>(),
            Self::Backend => one_of::<BackendName>(),
            Self::Image
            | Self::Workspace
            | Self::Ask
            | Self::Timeout
            | Self::IdlePause
            | Self::Ttl => Shape::Text,
            Self::Memory | Self::Pids | Self::Cpu | Self::Disk | Self::MaxOutput => Shape::Amount,
            Self::Read
            | Self::Write
            | Self::Hide
            | Self::Egress
            | Self::DenyEgress
            | Self::AllowHostPort
            | Self::Secret
            | Self::EnvFrom
            | Self::Init
            | Self::InsecureRegistry => Shape::List,
            Self::Env => Shape::Table,
            Self::AllowSensitiveWrites | Self::Checkpoints => Shape::Switch,
            Self::CopyOnWrite => Shape::SwitchOr(names::<LayerChoice>()),
        }
    }

    /// What it says, as in the schema.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Profile => "What the sandbox may do. Default: no-network.",
            Self::Image => {
                "The root file system, as oci:DIR[:TAG] or a path. Default: this host's."
            }
            Self::Pull => "When a registry is asked for the image. Default: missing.",
            Self::InsecureRegistry => {
                "Registries that may be asked for the image without encryption, as HOST or HOST:PORT."
            }
            Self::Workspace => {
                "The directory that the sandbox works in. Default: the current directory."
            }
            Self::Read => "Paths shown read-only at their own place.",
            Self::Write => "Paths that can be written at their own place.",
            Self::Hide => "Paths that are hidden, whatever shows them.",
            Self::Egress => "Destinations that can be reached, as HOST:PORT.",
            Self::DenyEgress => {
                "Destinations that cannot be reached, even though they are allowed."
            }
            Self::AllowHostPort => {
                "Ports of the host's own loopback that can be reached, as host.cofferdam.internal:N."
            }
            Self::Ask => {
                "How long a connection that is not allowed waits to be, as in 30s. Default: 0, not at all."
            }
            Self::Secret => {
                "Secrets that are put in toward one host each, as NAME@HOST. No value stands here."
            }
            Self::Env => "Variables for the command.",
            Self::EnvFrom => "Variables of the caller's environment that are passed on.",
            Self::Timeout => {
                "How long the command may run, with a unit: ms, s, m, h or d. Default: no limit."
            }
            Self::Memory => "Memory of all processes together, as in 512M. Default: 8G.",
            Self::Pids => "How many processes and threads may exist. Default: 4096.",
            Self::Cpu => "Processor time in processors, as in 1.5. Default: no limit.",
            Self::Disk => "The private writable space, as in 1G. Default: 2G.",
            Self::MaxOutput => {
                "Bytes a stream of output, as in 16M. Default: no limit; 16M with --json."
            }
            Self::User => "Who the command is inside. Default: sandbox.",
            Self::OnUnavailable => "What to do where a promise cannot be kept. Default: refuse.",
            Self::Backend => "Where sandboxes come from. Default: local.",
            Self::AllowSensitiveWrites => {
                "Whether control files in the workspace can be written. Default: false."
            }
            Self::CopyOnWrite => {
                "Whether what is written to the workspace lands in a layer beside it; overlay and copy \
                 choose what makes the layer, and true is auto. Default: false."
            }
            Self::Init => "Lines of shell that prepare a session, once, in order.",
            Self::IdlePause => {
                "A session that was not in use for so long is paused; none for never. Default: 180s."
            }
            Self::Ttl => "A session ends after so long. Default: never.",
            Self::Checkpoints => {
                "Whether each command of a copy-on-write session is a point that undo goes to. Default: true."
            }
        }
    }
}

fn one_of<T: Choice>() -> Shape {
    Shape::OneOf(names::<T>())
}

fn names<T: Choice>() -> Vec<&'static str> {
    T::ALL.iter().map(|member| member.named()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_named_after_its_key() {
        for key in Key::ALL {
            if let Some(variable) = key.variable() {
                assert_eq!(variable, format!("COFFERDAM_{}", key.name().to_uppercase()));
            }
        }
    }
}
