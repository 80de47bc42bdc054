//! The tools that read and write single files.

use crate::Outcome;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::text::{Part, counted};
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::files::{HasRead, Only, Read, Write};
use cofferdam_core::{Error, ErrorKind, Files, Result, made_visible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;

/// The largest file that is read by lines, in bytes.
const MAX_TEXT_BYTES: u64 = 64 << 20;
/// The most bytes of a file in one answer.
const SHOWN_BYTES: usize = 24 << 10;
/// The most lines of one answer.
const MAX_LINES: u64 = 2000;

pub(super) const PATH: Param =
    Param::required("path", Kind::Word, "Relative to the workspace, or below /workspace.");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    start_line: usize,
    max_lines: usize,
    encoding: String,
    offset: u64,
}

/// A part of a file.
#[derive(Serialize, JsonSchema)]
struct ReadPart {
    /// The file.
    path: String,
    /// How many bytes it has.
    size_bytes: u64,
    /// How `content` is written: `text`, lines with their numbers; or `base64`, bytes.
    encoding: String,
    /// The part.
    content: String,
    /// Whether something of the file is behind it.
    truncated: bool,
    /// How many lines the file has, if it is text.
    total_lines: Option<usize>,
    /// The first line that is shown.
    first_line: Option<usize>,
    /// The last line that is shown.
    last_line: Option<usize>,
    /// The `start_line` to go on with, if a line follows.
    next_start_line: Option<usize>,
    /// The `offset` to go on with, in base64: of bytes that follow, or of the rest of a line that is cut.
    next_offset: Option<u64>,
}

pub(super) const READ: Row = Row {
    name: "file_read",
    title: "Read a file",
    about: "Reads a file of the workspace: text by lines, each led by its number and a bar, anything else \
            as bytes in base64. A part that does not reach the end says how to go on.",
    params: &[
        PATH,
        Param::whole("start_line", (1, u64::MAX), 1, "The first line that is shown, from 1."),
        Param::whole("max_lines", (1, MAX_LINES), MAX_LINES, "How many lines are shown at most."),
        Param::word(
            "encoding",
            Kind::Choice(&["auto", "text", "base64"]),
            "auto",
            "text: an error where it is none. base64: bytes, from offset on.",
        ),
        Param::whole("offset", (0, u64::MAX), 0, "The first byte that is read in base64."),
    ],
    output: output_of::<ReadPart>,
    conduct: Conduct::Reads,
};

pub(super) async fn read(call: Call<'_>) -> Result<Outcome> {
    let asked: ReadArguments = call.arguments()?;
    let files = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?.files();
    if asked.encoding == "base64" || (asked.encoding == "auto" && asked.offset > 0) {
        return bytes(&files, &asked).await;
    }
    let content = match files.read(&asked.path, MAX_TEXT_BYTES).await {
        Err(error) if error.kind == ErrorKind::TooLarge => {
            return Err(
                error.hint("Read parts of it in base64, or use shell_exec with sed or tail.")
            );
        }
        other => other?,
    };
    // A zero byte is UTF-8, and in no text.
    match std::str::from_utf8(&content).ok().filter(|text| !text.contains('\0')) {
        Some(text) => lines(text, &asked),
        None if asked.encoding == "auto" => bytes(&files, &asked).await,
        None => {
            let what = format!("{} is not UTF-8 text, and so has no lines", asked.path);
            Err(Error::new(ErrorKind::NotAFile, what).hint("Read it in base64."))
        }
    }
}

fn lines(text: &str, asked: &ReadArguments) -> Result<Outcome> {
    let total = text.split_inclusive('\n').count();
    if asked.start_line > total.max(1) {
        let what = format!(
            "{} has {}, and none from {} on",
            asked.path,
            counted(total, "line", "lines"),
            asked.start_line
        );
        return Err(Error::new(ErrorKind::Usage, what).hint("Use a smaller start_line."));
    }
    Ok(Outcome::fitting(SHOWN_BYTES, |budget| {
        let part = Part::new(text, asked.start_line, asked.max_lines, budget);
        let next_offset = part.cut_at.map(|at| at as u64);
        ReadPart {
            path: asked.path.clone(),
            size_bytes: text.len() as u64,
            encoding: "text".to_owned(),
            truncated: part.next().is_some() || next_offset.is_some(),
            total_lines: Some(total),
            first_line: part.shown.map(|(first, _)| first),
            last_line: part.shown.map(|(_, last)| last),
            next_start_line: part.next(),
            next_offset,
            content: part.content,
        }
        .outcome()
    }))
}

async fn bytes(files: &Files, asked: &ReadArguments) -> Result<Outcome> {
    let order = Read {
        path: asked.path.as_str().into(),
        offset: asked.offset,
        length: Some(SHOWN_BYTES as u64),
        ..Read::default()
    };
    let mut bytes = Vec::new();
    let HasRead { size, .. } = files.read_to(&order, &mut bytes).await?;
    Ok(Outcome::fitting(SHOWN_BYTES * 3 / 4, |budget| {
        let shown = bytes.get(..budget.min(bytes.len())).unwrap_or_default();
        let next = asked.offset.saturating_add(shown.len() as u64);
        ReadPart {
            path: asked.path.clone(),
            size_bytes: size,
            encoding: "base64".to_owned(),
            content: BASE64.encode(shown),
            truncated: next < size,
            total_lines: None,
            first_line: None,
            last_line: None,
            next_start_line: None,
            next_offset: (next < size).then_some(next),
        }
        .outcome()
    }))
}

impl ReadPart {
    fn outcome(self) -> Outcome {
        let mut text = match (self.encoding.as_str(), self.size_bytes) {
            (_, 0) => "(the file is empty)".to_owned(),
            ("base64", size) => {
                let size = counted(size, "byte", "bytes");
                format!("(base64 of a part of {size})\n{}", self.content)
            }
            _ => self.content.clone(),
        };
        if let (Some(total), Some(next)) = (self.total_lines, self.next_start_line) {
            let left = total - next + 1;
            let follow = if left == 1 { "follows" } else { "follow" };
            let lines = counted(total, "line", "lines");
            write!(text, "\n[{left} of {lines} {follow}; go on with start_line {next}]").ok();
        }
        if let Some(offset) = self.next_offset {
            let what =
                if self.total_lines.is_some() { "the last line is cut" } else { "more follows" };
            write!(text, "\n[{what}; go on with encoding \"base64\" and offset {offset}]").ok();
        }
        Outcome::done(text, json!(self))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
    encoding: String,
    only: String,
    #[serde(default)]
    executable: Option<bool>,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
struct HasWritten {
    /// The file.
    path: String,
    /// How many bytes it has.
    bytes_written: u64,
    /// Whether there was no such file before.
    created: bool,
    /// The SHA-256 of what it holds, in hexadecimal.
    sha256: String,
}

pub(super) const WRITE: Row = Row {
    name: "file_write",
    title: "Write a file",
    about: "Writes a whole file of the workspace: a reader sees the old one or the new one. Directories on \
            the way are made.",
    params: &[
        PATH,
        Param::required("content", Kind::Text, "What it is to hold; may be empty."),
        Param::word(
            "encoding",
            Kind::Choice(&["text", "base64"]),
            "text",
            "How content is written here.",
        ),
        Param::word(
            "only",
            Kind::Choice(&["any", "new", "existing"]),
            "any",
            "new: an error if it is there. existing: an error if it is not.",
        ),
        Param::optional(
            "executable",
            Kind::Flag,
            "Whether it can be executed. Left out: as it was, and not for a new one.",
        ),
    ],
    output: output_of::<HasWritten>,
    conduct: Conduct::Of(Hints::REMOVES),
};

pub(super) async fn write(call: Call<'_>) -> Result<Outcome> {
    let WriteArguments { path, content, encoding, only, executable } = call.arguments()?;
    let bytes = match encoding.as_str() {
        "base64" => BASE64.decode(content.as_bytes()).map_err(|cause| {
            Error::new(ErrorKind::Usage, "content is not base64").source(cause).hint(
                "Use the standard alphabet with padding and without line ends, or encoding \"text\".",
            )
        })?,
        _ => content.into_bytes(),
    };
    let only = match only.as_str() {
        "new" => Only::IfMissing,
        "existing" => Only::IfExists,
        _ => Only::Always,
    };
    let mode = executable.map(|executable| if executable { 0o755 } else { 0o644 });
    let order = Write { path: path.as_str().into(), only, mode };
    let files = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?.files();
    let written = files.write_from(&order, &mut bytes.as_slice()).await?;
    let what = if written.created { "created" } else { "written" };
    let text =
        format!("{} {what}, {}", made_visible(&path), counted(written.bytes, "byte", "bytes"));
    let written = HasWritten {
        path,
        bytes_written: written.bytes,
        created: written.created,
        sha256: written.sha256,
    };
    Ok(Outcome::done(text, json!(written)))
}
