//! What is told of shells.

use crate::{ShellOutput, ShellReport, ShellTicket, text_or_base64};
use cofferdam_core::EndingKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shells of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellList {
    /// The latest shell of each name, dead ones included.
    pub shells: Vec<ShellReport>,
}

/// A command of a shell. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellRan {
    /// Its number, growing within a shell.
    pub seq: u64,
    /// Where its output begins in that of the shell, in bytes.
    pub offset: u64,
    /// Its exit code; null while it runs, and where the shell died with it.
    pub exit_code: Option<i32>,
    /// How the shell ended; null while it lives.
    pub died: Option<EndingKind>,
    /// What it wrote, both streams in one, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it wrote in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Whether more was written than is in here.
    pub is_cut: bool,
}

impl ShellRan {
    /// How the command of this ticket stands.
    pub fn new(ticket: ShellTicket, output: ShellOutput) -> Self {
        let ShellTicket { seq, offset } = ticket;
        let ShellOutput { exit_code, died, died_code: _, output, is_cut } = output;
        let (text, base64) = text_or_base64(output);
        Self { seq, offset, exit_code, died, text, base64, is_cut }
    }
}
