//! Commands as requests want them.

use super::SpecWish;
use cofferdam_core::Signal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A command as a request wants it: `argv`, or `shell`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecWish {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its id, in place of one that is made: 1 to 64 letters, digits, `-`, `_` or `.`. The same id again
    /// starts nothing and answers with the first one; with another command it is a conflict.
    pub id: Option<String>,
    /// A line for `/bin/sh -c`.
    pub shell: Option<String>,
    /// Puts the words of the sandbox's image around `argv`, which may then be empty. Without it `argv` is
    /// the command as it is.
    pub start: Option<StartWish>,
    /// Where it starts, absolute inside. Without one it starts in the workspace.
    pub cwd: Option<String>,
    /// Variables over those of the sandbox.
    pub env: BTreeMap<String, String>,
    /// Whether it reads what is sent to it; otherwise nothing.
    pub stdin: bool,
    /// A terminal of this size for all its streams.
    pub terminal: Option<SizeWish>,
    /// It does not count as use of the sandbox, and what it starts outlives it.
    pub detached: bool,
    /// It counts as use though it is detached.
    pub keep_awake: bool,
    /// It is killed after this long, in milliseconds. Without it there is no limit but that of a run; 0 is none
    /// that a command could keep, and refused.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// It is killed when a stream exceeds this many bytes.
    pub max_output_bytes: Option<u64>,
    /// Secrets of the caller that it is given as files: `NAME`, or `NAME=FILE` for another name. Each is
    /// `/run/secrets/FILE`, which this command alone can read, until it ends. Their values are masked in what
    /// commands of the sandbox write from then on. By a key with the scope `secrets`.
    pub secret_files: Vec<String>,
    /// Secrets that it is given as open descriptors: `NAME=N`. Masked as those that are files.
    pub secret_descriptors: Vec<String>,
    /// Looks at the workspace before it starts, so that its receipt tells what it did to files. For a command
    /// in the foreground, by a key with the scope `files-read`.
    pub receipt: bool,
}

/// How the words of an image lead a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartWish {
    /// A program that leads in place of the image's entry point; empty for none. The image's own command
    /// then stands for nothing.
    pub entrypoint: Option<String>,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeWish {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// A signal for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalWish {
    /// Its name, as in TERM or SIGTERM, or its number, as in 15.
    pub signal: Signal,
}

/// A command in a sandbox of its own, as a request wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunWish {
    /// The sandbox.
    pub sandbox: SpecWish,
    /// The command. It is in the foreground and reads nothing; its time is `timeout_ms`, or 300 s.
    pub exec: ExecWish,
    /// Lines of shell that must succeed before.
    pub preflight: Vec<String>,
    /// What becomes of the sandbox of a run that failed. What is kept has its id in `session` of the answer,
    /// and is removed after a day.
    pub on_failure: FailureName,
    /// How much of each stream is in the answer, in bytes; more is left out and counted.
    #[schemars(range(max = 16_777_216))]
    pub capture_bytes: Option<usize>,
}

/// What becomes of the sandbox of a run that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailureName {
    /// Nothing is kept.
    #[default]
    Destroy,
    /// It is ended; its home directory and what commands wrote are kept.
    Stop,
    /// It is paused and kept as it is.
    Preserve,
}

/// A command for a shell.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellRunWish {
    /// The command.
    pub text: String,
    /// Waits so long for its end, in milliseconds, at most 60000. Default: that.
    #[serde(default)]
    pub wait_ms: Option<u64>,
    /// At most so many bytes of output, at most 4194304. Default: 262144.
    #[serde(default)]
    pub max_bytes: Option<usize>,
}

/// A command of a shell that is asked for again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellCheckWish {
    /// Its number.
    pub seq: u64,
    /// Where its output begins.
    pub offset: u64,
    /// Waits so long for its end, in milliseconds, at most 60000. Default: not at all.
    #[serde(default)]
    pub wait_ms: Option<u64>,
    /// At most so many bytes of output, at most 4194304. Default: 262144.
    #[serde(default)]
    pub max_bytes: Option<usize>,
}
