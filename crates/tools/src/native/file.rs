//! The tools about single files.

use crate::Outcome;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::tool::{Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::Result;
use cofferdam_session::window::{Window, WindowOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    start_line: usize,
    max_lines: usize,
}

pub(super) const READ: Row = Row {
    name: "file_read",
    title: "Read a file",
    about: "Reads a text file of the workspace, with line numbers.",
    params: &[
        Param::required("path", Kind::Word, "The file, relative to the workspace."),
        Param::whole("start_line", (1, u64::MAX), 1, "The first line that is shown, from 1."),
        Param::whole("max_lines", (1, 2000), 2000, "How many lines are shown at most."),
    ],
    output: output_of::<Window>,
    hints: Hints::LOOKS,
};

pub(super) async fn read(call: Call<'_>) -> Result<Outcome> {
    let ReadArguments { path, start_line, max_lines } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let order = WindowOrder { offset: start_line.saturating_sub(1), limit: max_lines };
    let window = session.read_window(&path, order).await?;
    Ok(Outcome::done(window.content.clone(), json!(window)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
struct HasWritten {
    /// The file.
    path: String,
    /// How many bytes it has.
    bytes_written: u64,
}

pub(super) const WRITE: Row = Row {
    name: "file_write",
    title: "Write a file",
    about: "Writes a whole file of the workspace, whatever was there. Directories on the way are made.",
    params: &[
        Param::required("path", Kind::Word, "The file, relative to the workspace."),
        Param::required("content", Kind::Text, "What it is to hold."),
    ],
    output: output_of::<HasWritten>,
    hints: Hints::REMOVES,
};

pub(super) async fn write(call: Call<'_>) -> Result<Outcome> {
    let WriteArguments { path, content } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let written = session.files().write(&path, content.as_bytes()).await?;
    let text = format!("{path} written, {} bytes.", written.bytes);
    Ok(Outcome::done(text, json!(HasWritten { path, bytes_written: written.bytes })))
}
