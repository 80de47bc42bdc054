//! Sandboxes as requests want them, and pages of them.

use crate::SessionReport;
use crate::manifest::Manifest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A sandbox as a request wants it. What is not said is as the operator decided; a sandbox that is there
/// already keeps what of labels, `init`, times and checkpoints is not said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxWish {
    /// Its name, unique among yours: 1 to 64 letters, digits, `-`, `_` or `.`.
    pub name: Option<String>,
    /// What it may do.
    pub profile: Option<ProfileName>,
    /// The directory of the host that it works in, one of those that the operator allows. Without one
    /// it has an empty directory of its own.
    pub workspace: Option<String>,
    /// Whether what is written to that directory lands in a layer beside it.
    pub copy_on_write: bool,
    /// The image that it lies on in place of the host's files, one of those that the operator allows, word
    /// for word.
    pub image: Option<String>,
    /// When a registry is asked for that image. As the operator decided where it is not said.
    pub pull: Option<PullName>,
    /// Variables for every command.
    pub env: BTreeMap<String, String>,
    /// Secrets of the caller that are put in toward one host each, as in `TOKEN@api.example`: by a key with
    /// the scope `secrets`, toward hosts that the operator allows. Inside is a placeholder.
    pub secrets: Vec<String>,
    /// What it may reach at first, as `HOST[:PORT]`: each within what the operator allows. What the operator
    /// allows, where it is not said; an empty list is no way out.
    pub egress: Option<Vec<String>>,
    /// What it may not reach even though it is allowed, beside what the operator denies.
    pub deny_egress: Vec<String>,
    /// How much it may use.
    pub limits: LimitsWish,
    /// What it is found by.
    pub labels: Option<BTreeMap<String, String>>,
    /// Lines of shell that prepare it, each list once.
    pub init: Option<Vec<String>>,
    /// What its workspace is to hold before the lines of `init`: files with their bytes, directories and links.
    /// What names something of a host, as `from`, `url` and mounts do, is refused. It needs a `workspace`.
    pub manifest: Option<Manifest>,
    /// It is paused after it was not in use for so long, in milliseconds.
    pub idle_pause_ms: Option<u64>,
    /// It is never paused by itself.
    pub stay_awake: bool,
    /// It is removed after this long, in milliseconds; at least 1000.
    pub ttl_ms: Option<u64>,
    /// Keeps no point of the history after each command of a copy-on-write sandbox.
    pub no_checkpoints: Option<bool>,
}

/// What a sandbox may do, as a request wants it. What is not said is as the operator decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpecWish {
    /// What it may do.
    pub profile: Option<ProfileName>,
    /// The directory of the host that it works in, one of those that the operator allows. Without one
    /// it has an empty directory of its own.
    pub workspace: Option<String>,
    /// Whether what is written to that directory lands in a layer beside it.
    pub copy_on_write: bool,
    /// The image that it lies on in place of the host's files, one of those that the operator allows, word
    /// for word.
    pub image: Option<String>,
    /// When a registry is asked for that image. As the operator decided where it is not said.
    pub pull: Option<PullName>,
    /// Variables for every command.
    pub env: BTreeMap<String, String>,
    /// Secrets of the caller that are put in toward one host each, as in `TOKEN@api.example`: by a key with
    /// the scope `secrets`, toward hosts that the operator allows. Inside is a placeholder.
    pub secrets: Vec<String>,
    /// What it may reach at first, as `HOST[:PORT]`: each within what the operator allows. What the operator
    /// allows, where it is not said; an empty list is no way out.
    pub egress: Option<Vec<String>>,
    /// What it may not reach even though it is allowed, beside what the operator denies.
    pub deny_egress: Vec<String>,
    /// How much it may use.
    pub limits: LimitsWish,
}

impl From<SpecWish> for SandboxWish {
    /// A sandbox that may do this, and of which nothing else is said.
    fn from(spec: SpecWish) -> Self {
        let SpecWish {
            profile,
            workspace,
            copy_on_write,
            image,
            pull,
            env,
            secrets,
            egress,
            deny_egress,
            limits,
        } = spec;
        Self {
            profile,
            workspace,
            copy_on_write,
            image,
            pull,
            env,
            secrets,
            egress,
            deny_egress,
            limits,
            ..Self::default()
        }
    }
}

/// When a registry is asked for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PullName {
    /// Where it was not pulled yet.
    Missing,
    /// Each time.
    Always,
    /// Not at all.
    Never,
}

/// How much a sandbox may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsWish {
    /// Memory of all processes together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u32>,
    /// The private writable space, in bytes.
    pub disk_bytes: Option<u64>,
}

/// What a sandbox may do, by the name of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileName {
    /// The workspace is read-only, and there is no way out.
    ReadOnly,
    /// The workspace can be written; a way out only to what is listed.
    RepoWrite,
    /// The workspace can be written, and there is no way out.
    NoNetwork,
    /// The workspace can be written, with a way out to all public addresses.
    FullDev,
    /// Hermetic: nothing of the host but its system directories.
    CiOnly,
}

/// How much longer a lease is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendWish {
    /// So much, in milliseconds.
    pub by_ms: u64,
}

/// A page of sandboxes. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxPage {
    /// The sandboxes, oldest first.
    pub sessions: Vec<SessionReport>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
