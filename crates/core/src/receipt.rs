//! What one command did: what the host saw, apart from what was said inside.

use crate::{Denial, EndingKind, Omitted, StreamReport, UsageReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one command did. A part of [`RunReport`](crate::RunReport).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// What the host saw by itself.
    pub seen_by_host: SeenByHost,
    /// What the sandbox's first process said. Whoever took it over can say anything.
    pub said_by_guest: SaidByGuest,
}

/// What the host saw by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeenByHost {
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: u64,
    /// Why the host ended it, or which limit it failed by; null where neither is so.
    pub cause: Option<EndingKind>,
    /// Its standard output: what was dropped was over the limit of what is kept.
    pub stdout: StreamReport,
    /// Its standard error.
    pub stderr: StreamReport,
    /// How many bytes of its output the answer that the receipt is in leaves out; null in a receipt
    /// that is asked for by itself.
    #[serde(default)]
    pub omitted: Option<Omitted>,
    /// How many processes of it went on when the receipt was made.
    pub processes_left: u32,
    /// What was denied.
    pub denials: Vec<Denial>,
    /// What it did to the workspace.
    pub files: FilesSeen,
}

/// What the sandbox's first process said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaidByGuest {
    /// How it ended.
    pub ending: EndingKind,
    /// The exit code that stands for that.
    pub exit_code: i32,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// What it used.
    pub usage: UsageReport,
    /// How many of its descendants still ran when it ended, and were killed; null where nobody said it.
    #[serde(default)]
    pub killed_descendants: Option<u32>,
}

/// What was done to the workspace between the start of a command and its receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesSeen {
    /// Why nobody looked; null where somebody did.
    pub not_seen: Option<String>,
    /// Commands that ran at the same time, by their ids: what is listed may be theirs.
    pub beside: Vec<String>,
    /// What was not there before.
    pub added: Vec<FileSeen>,
    /// What was there and is other now.
    pub changed: Vec<FileSeen>,
    /// What is not there any more, as it was.
    pub removed: Vec<FileSeen>,
    /// How many paths are not listed, for there are too many.
    pub omitted: u64,
}

/// One path of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSeen {
    /// The path in the workspace, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Its type: `file`, `directory`, `link`, `fifo`, `socket` or `device`. Of what was removed, this
    /// and the rest are what it was; null where nobody looked before it was.
    pub kind: Option<String>,
    /// Its permissions, in octal.
    pub mode: Option<String>,
    /// Its size, in bytes.
    pub size: Option<u64>,
    /// The SHA-256 of a file, in hexadecimal; null where it is too large or changed meanwhile, and of
    /// one that was removed where the workspace does not have it: an earlier command had made it.
    pub sha256: Option<String>,
}
