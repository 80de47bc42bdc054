//! What is said over a WebSocket of a shell or a command, beside output.

use super::ProblemReport;
use crate::{ExecReport, ShellReport};
use cofferdam_core::{EndingKind, Signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a caller says. Bytes for standard input may come as binary messages too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Asked")]
pub enum SocketAsked {
    /// Runs a command in a shell.
    Run {
        /// The command.
        text: String,
        /// Whether it reads what comes as input; otherwise nothing.
        #[serde(default)]
        takes_input: bool,
    },
    /// These are the next bytes of standard input.
    Input {
        /// The bytes, where they are UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The bytes in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
    /// Standard input of a command ends.
    Close {},
    /// Interrupts the command that runs in a shell, as by Ctrl-C.
    Interrupt {},
    /// Sends a signal to a command.
    Signal {
        /// Its name, as in TERM or SIGTERM, or its number, as in 15.
        signal: Signal,
    },
    /// The terminal of a command has a new size.
    Resize {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

/// What a caller is told beside output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "Told")]
pub enum SocketTold {
    /// The first message of a command.
    Attached {
        /// How it stands.
        exec: Box<ExecReport>,
    },
    /// The first message of a shell.
    Open {
        /// The shell.
        shell: Box<ShellReport>,
    },
    /// What was written from `from` on to before `to` is not kept any more.
    Dropped {
        /// The stream: 1 or 2.
        stream: u8,
        /// The first place that is gone.
        from: u64,
        /// The first place that is kept.
        to: u64,
    },
    /// A command of a shell began.
    Began {
        /// Its number.
        seq: u64,
        /// Where its output begins.
        offset: u64,
    },
    /// A command of a shell ended; all its output came before.
    Ended {
        /// Its number.
        seq: u64,
        /// Its exit code, where that is known still.
        exit_code: Option<i32>,
        /// Where the output of the next one begins.
        next: u64,
    },
    /// So many bytes of input were taken.
    Taken {
        /// How many.
        bytes: usize,
    },
    /// The command ended; all its output came before. Nothing follows.
    Exited {
        /// How it stands.
        exec: Box<ExecReport>,
    },
    /// The shell ended. Nothing follows.
    Died {
        /// How.
        ending: EndingKind,
    },
    /// Something that was asked for could not be done.
    Problem {
        /// Why.
        problem: ProblemReport,
    },
}
