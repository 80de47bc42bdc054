//! `sandbox_read_file`: a window of lines, or the bytes of what is no text.

use super::outputs;
use crate::Outcome;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::text::{Part, counted, show_bytes};
use crate::tool::{Conduct, Row, output_of};
use crate::toolbox::Call;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The most bytes of one answer.
const MAX_BYTES: usize = 50 << 10;
/// How many bytes of a line a command may show that goes on where it is cut: what a result has room for
/// in any case but that of control characters.
const SHOWN_BYTES: usize = 24 << 10;
/// How many lines are read where nobody said.
const LINES: u64 = 2000;
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    offset: usize,
    limit: usize,
}

/// A window of a file. Of one that is not text there are no lines, and `encoding` is `base64`.
#[derive(Serialize, JsonSchema)]
struct FileWindow {
    /// The file.
    path: String,
    /// Lines as `N|text`, counted from 1; or bytes in base64.
    content: String,
    /// `text` or `base64`.
    encoding: &'static str,
    /// How many lines it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<usize>,
    /// Which of them these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_shown: Option<LinesShown>,
    /// Whether not all lines are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// How many bytes it has.
    size_bytes: usize,
    /// What is left out behind the window.
    truncation: Truncation,
}

/// Lines from 1, the last among them; 0 and 0 of an empty file.
#[derive(Serialize, JsonSchema)]
struct LinesShown {
    start: usize,
    end: usize,
}

/// What is left out.
#[derive(Serialize, JsonSchema)]
struct Truncation {
    /// Whether something is.
    truncated: bool,
    /// How many bytes of the file are here.
    bytes_returned: usize,
    /// How many bytes the file has.
    bytes_total: usize,
    /// The offset to go on with: lines, or bytes of what is not text. It and the hint come as a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
    /// How to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_hint: Option<String>,
    /// `line_cap` or `size_cap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

pub(super) const ROW: Row = Row {
    name: "sandbox_read_file",
    title: "Read a file",
    about: "Reads a file of the session's sandbox by lines, each led by its number. A file that is not text \
            is answered in base64. Output of a command that sandbox_exec left out is read in the same way.",
    params: &[
        Param::required(
            "path",
            Kind::Word,
            "The file, below the workspace; or one of output_files of sandbox_exec.",
        ),
        Param::whole(
            "offset",
            (0, u64::MAX),
            0,
            "How many lines are passed over; bytes of a file that is not text.",
        ),
        Param::whole("limit", (1, u64::MAX), LINES, "How many lines are read at most."),
    ],
    output: output_of::<FileWindow>,
    conduct: Conduct::Reads,
};

pub(super) async fn read(call: Call<'_>) -> Result<Outcome> {
    let asked: Arguments = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let content = match outputs::read(&session, &asked.path).await? {
        Some(output) => output.into_bytes(),
        None => session.files().read(&asked.path, MAX_FILE_BYTES).await?,
    };
    let text = std::str::from_utf8(&content).ok().filter(|text| !text.contains('\0'));
    let (total, what) = match text {
        Some(text) => (text.split_inclusive('\n').count(), ("line", "lines")),
        None => (content.len(), ("byte, and is not text", "bytes, and is not text")),
    };
    // At the end there is nothing, which is no fault: a hint may have led there.
    if asked.offset > total {
        let total = counted(total, what.0, what.1);
        let what = format!("{} has {total}, none behind {}", asked.path, asked.offset);
        return Err(Error::new(ErrorKind::Usage, what).hint("Use a smaller offset."));
    }
    Ok(Outcome::fitting(MAX_BYTES, |budget| match text {
        Some(text) => text_window(text, &asked, budget),
        None => bytes_window(&content, &asked, budget),
    }))
}

fn text_window(text: &str, asked: &Arguments, budget: usize) -> Outcome {
    let part = Part::new(text, asked.offset.saturating_add(1), asked.limit, budget);
    let (start, end) = part.shown.unwrap_or((0, 0));
    let follow = part.total - end.max(asked.offset);
    let is_cut = follow > 0 || part.cut_at.is_some();
    let next_offset = is_cut.then_some(end);
    let by_lines = part.cut_at.is_none() && end + 1 - start.min(end) >= asked.limit;
    let reason = if by_lines { "line_cap" } else { "size_cap" };
    let window = FileWindow {
        path: asked.path.clone(),
        encoding: "text",
        total_lines: Some(part.total),
        lines_shown: Some(LinesShown { start, end }),
        truncated: Some(is_cut || asked.offset > 0),
        size_bytes: text.len(),
        truncation: Truncation {
            truncated: is_cut,
            bytes_returned: part.bytes,
            bytes_total: text.len(),
            next_offset,
            resume_hint: next_offset.map(|next| resume(&asked.path, &part, (next, follow))),
            reason: is_cut.then_some(reason),
        },
        content: part.content,
    };
    Outcome::json(json!(window))
}

/// How to see what follows: the rest of a line that alone is too long, and the lines behind it.
fn resume(path: &str, part: &Part, (next, follow): (usize, usize)) -> String {
    let cut = part.cut_at.map(|at| {
        if path.starts_with(outputs::DIRECTORY) {
            return format!(
                "line {next} is cut; run its command again, into a file of the workspace"
            );
        }
        let line = show_bytes(path, at as u64, SHOWN_BYTES);
        format!("line {next} is cut; sandbox_exec with output \"full\" and {line} goes on in it")
    });
    let lines = (follow > 0).then(|| {
        let lines = counted(follow, "line follows", "lines follow");
        format!("{lines}; read on with offset {next}")
    });
    cut.into_iter().chain(lines).collect::<Vec<_>>().join(". ")
}

fn bytes_window(content: &[u8], asked: &Arguments, budget: usize) -> Outcome {
    let rest = content.get(asked.offset..).unwrap_or_default();
    let shown = rest.get(..(budget * 3 / 4).min(rest.len())).unwrap_or_default();
    let (next, follow) = (asked.offset + shown.len(), rest.len() - shown.len());
    let is_cut = follow > 0;
    let window = FileWindow {
        path: asked.path.clone(),
        content: BASE64.encode(shown),
        encoding: "base64",
        total_lines: None,
        lines_shown: None,
        truncated: None,
        size_bytes: content.len(),
        truncation: Truncation {
            truncated: is_cut,
            bytes_returned: shown.len(),
            bytes_total: content.len(),
            next_offset: is_cut.then_some(next),
            resume_hint: is_cut.then(|| {
                let bytes = counted(follow, "byte follows", "bytes follow");
                format!("{bytes}; read on with offset {next}")
            }),
            reason: is_cut.then_some("size_cap"),
        },
    };
    Outcome::json(json!(window))
}
