//! The tool that lists directories.

use crate::Outcome;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::text::counted;
use crate::tool::{Conduct, Row, output_of};
use crate::toolbox::Call;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::files::{ByteString, Entry, EntryKind, List, MAX_ENTRIES};
use cofferdam_core::{Error, ErrorKind, Files, Result, made_visible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many entries are counted at most behind those that are shown.
const MAX_COUNTED: usize = 50_000;
/// Leads a name in `after` that is no text.
const ENCODED: &str = "base64:";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    depth: u32,
    limit: u32,
    #[serde(default)]
    after: Option<String>,
}

/// A page of a directory.
#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The directory.
    path: String,
    /// The entries of this page, each directory before what is in it.
    entries: Vec<Listing>,
    /// How many entries follow behind this page.
    following: usize,
    /// Whether more follow than were counted.
    following_more: bool,
    /// The `after` to go on with; null where nothing follows.
    next_after: Option<String>,
}

/// One entry.
#[derive(Serialize, JsonSchema)]
struct Listing {
    /// Its path below the directory; bytes that are no UTF-8 are replaced.
    path: String,
    /// `file`, `directory`, `link`, `fifo`, `socket` or `device`.
    kind: &'static str,
    /// Its size in bytes.
    size: u64,
    /// The permissions, in octal.
    mode: String,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

pub(super) const ROW: Row = Row {
    name: "file_list",
    title: "List a directory",
    about: "Lists a directory of the workspace, hidden names too. A list that is not whole says how many \
            entries follow and how to go on.",
    params: &[
        Param::word("path", Kind::Word, ".", "The directory, relative to the workspace."),
        Param::whole("depth", (1, 64), 1, "How many levels: 1 for its own entries."),
        Param::whole("limit", (1, MAX_ENTRIES as u64), 200, "How many entries are shown at most."),
        Param::optional("after", Kind::Word, "Go on behind this entry, as the last page said."),
    ],
    output: output_of::<Listed>,
    conduct: Conduct::Reads,
};

pub(super) async fn list(call: Call<'_>) -> Result<Outcome> {
    let Arguments { path, depth, limit, after } = call.arguments()?;
    let files = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?.files();
    let after = after.as_deref().map(decoded).transpose()?;
    let mut order = List { path: path.as_str().into(), depth, after, limit };
    let page = files.list(&order).await?;
    order.after = page.next;
    let (behind, more) = count(&files, order).await?;
    let most = page.entries.len();
    Ok(Outcome::fitting(most, |budget| {
        let shown = page.entries.get(..budget.min(most)).unwrap_or_default();
        let following = behind + most - shown.len();
        let next_after =
            shown.last().filter(|_| following > 0 || more).map(|entry| encoded(&entry.path));
        Listed {
            path: path.clone(),
            entries: shown.iter().map(Listing::new).collect(),
            following,
            following_more: more,
            next_after,
        }
        .outcome()
    }))
}

/// How many entries follow, and whether there are more than that.
async fn count(files: &Files, mut order: List) -> Result<(usize, bool)> {
    let mut counted = 0;
    order.limit = MAX_ENTRIES;
    while order.after.is_some() {
        if counted >= MAX_COUNTED {
            return Ok((counted, true));
        }
        let page = files.list(&order).await?;
        counted += page.entries.len();
        order.after = page.next;
    }
    Ok((counted, false))
}

fn encoded(path: &ByteString) -> String {
    match std::str::from_utf8(path.as_bytes()) {
        Ok(text) if !text.starts_with(ENCODED) => text.to_owned(),
        _ => format!("{ENCODED}{}", BASE64.encode(path.as_bytes())),
    }
}

fn decoded(after: &str) -> Result<ByteString> {
    let Some(code) = after.strip_prefix(ENCODED) else { return Ok(after.into()) };
    let bytes = BASE64.decode(code).map_err(|cause| {
        Error::new(ErrorKind::Usage, "after is not what a page said")
            .source(cause)
            .hint("Use the next_after of the last page, or leave it out.")
    })?;
    Ok(bytes.into())
}

impl Listing {
    fn new(entry: &Entry) -> Self {
        Self {
            path: entry.path.to_string(),
            kind: entry.kind.name(),
            size: entry.size,
            mode: format!("{:03o}", entry.mode),
            target: entry.target.as_ref().map(ToString::to_string),
        }
    }

    /// HOSTILE: a name may hold line ends, and would make lines of its own.
    fn line(&self) -> String {
        let path = made_visible(&self.path);
        match (self.kind, &self.target) {
            (kind, _) if kind == EntryKind::Directory.name() => format!("{path}/"),
            (_, Some(target)) => format!("{path} -> {}", made_visible(target)),
            (kind, None) if kind == EntryKind::File.name() => {
                format!("{path} ({})", counted(self.size, "byte", "bytes"))
            }
            (kind, None) => format!("{path} ({kind})"),
        }
    }
}

impl Listed {
    fn outcome(self) -> Outcome {
        let mut lines: Vec<String> = self.entries.iter().map(Listing::line).collect();
        if lines.is_empty() {
            lines.push("(nothing)".to_owned());
        }
        if let Some(after) = &self.next_after {
            let least = if self.following_more { "at least " } else { "" };
            let following = counted(self.following, "entry follows", "entries follow");
            lines.push(format!("[{least}{following}; go on with after {after:?}]"));
        }
        Outcome::done(lines.join("\n"), json!(self))
    }
}
