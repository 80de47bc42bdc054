//! What a server says of itself, of tools and of errors.

use crate::AuditReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An error as a problem document. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemReport {
    /// What the kind is described by; `about:blank`, for the kind says all of it.
    #[serde(rename = "type")]
    pub about: String,
    /// The kind in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// The kind's stable name.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether the same request may succeed later without any change.
    pub retryable: bool,
}

/// An error as a problem document, with what was found out. Format 1.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProblemWith{T}")]
pub struct ProblemWith<T> {
    /// What the kind is described by; `about:blank`, for the kind says all of it.
    #[serde(rename = "type")]
    pub about: String,
    /// The kind in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// The kind's stable name.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether the same request may succeed later without any change.
    pub retryable: bool,
    /// What was found out, and what was done. Absent where the request was refused before anything was
    /// looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<T>,
}

/// What callers did. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditList {
    /// The entries, oldest first.
    pub entries: Vec<AuditReport>,
}

/// A pack of tools. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    /// Its name.
    pub pack: String,
    /// What a model should know of the place that it works in, for its system prompt.
    pub preamble: String,
    /// The tools, in the order in which they are best shown.
    pub tools: Vec<ToolReport>,
}

/// A tool, as a model is told of it. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Its name.
    pub name: String,
    /// A few words for people.
    pub title: String,
    /// What it does, for a model.
    pub description: String,
    /// What it takes, as a JSON Schema.
    pub input: Value,
    /// What it answers where it does not fail, as a JSON Schema.
    pub output: Option<Value>,
    /// It changes nothing.
    pub read_only: bool,
    /// It may remove or overwrite what cannot be brought back.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It may reach what is outside the sandbox.
    pub open_world: bool,
}

/// The arguments of a tool, as its own schema says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolArguments(pub Map<String, Value>);

/// What a call of a tool came to; an error is one too. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutcome {
    /// Short, for a model.
    pub text: String,
    /// The same for a program, and whole.
    pub structured: Value,
    /// Whether what was asked for was not done.
    pub is_error: bool,
}

/// How the server is. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthReport {
    /// `ok`.
    pub status: String,
}
