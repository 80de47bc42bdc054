//! One moment of a session's layer, as it is written down and as every door shows it.

use super::tree::Tree;
use crate::events::shortened;
use cofferdam_core::{EndingKind, Error, ErrorKind, Result, hexadecimal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The format of headers that this program writes, and the only one that it reads.
const FORMAT: u32 = 1;
/// The most paths that a point names, of all three sorts together.
pub const MAX_POINT_PATHS: usize = 200;
/// The most bytes of the words of a command in a point.
const MAX_WORDS_BYTES: usize = 1024;

/// A point of the history of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointReport {
    /// Its number in its session, from 0.
    pub point: u32,
    /// What it is the state after.
    pub kind: PointKind,
    /// The point that the session stood at before. It may have been dropped since.
    pub parent: Option<u32>,
    /// When it was taken, in milliseconds since 1970.
    pub made_ms: u64,
    /// What somebody called it.
    pub label: Option<String>,
    /// The command whose end it is.
    pub command: Option<PointCommand>,
    /// Other commands that ended since the point before and have no point of their own.
    pub ended: Vec<String>,
    /// Commands that ran meanwhile: what changed may be theirs.
    pub shared_with: Vec<String>,
    /// Whether somebody looked before the command began, so that nothing from before is in here.
    pub looked_before: bool,
    /// What changed since the last point before that was kept.
    pub effects: PointEffects,
    /// Files and directories in the layer.
    pub files: u64,
    /// Bytes of content in the layer.
    pub bytes: u64,
    /// Why nobody can go to it. Its state was not kept.
    pub not_kept: Option<String>,
    /// For the beginning of a fork: the session that it was forked from, and the point of that.
    pub from: Option<PointOrigin>,
    /// Whether the session went back behind it, and stands elsewhere.
    #[serde(default)]
    pub undone: bool,
    /// For a snapshot that came from a file: what that said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<PointImport>,
}

/// Where an imported snapshot comes from, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointImport {
    /// When it was taken, in milliseconds since 1970.
    pub made_ms: u64,
    /// The workspace that it lay on.
    pub workspace: String,
}

/// What a point is the state after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// The making of the session.
    Start,
    /// A command.
    Command,
    /// Something that is no command that somebody waited for: changed files, detached commands.
    Between,
    /// Nothing: somebody wanted to keep what was there.
    Snapshot,
}

/// A command in a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointCommand {
    /// Its id.
    pub id: String,
    /// Its words, as far as they fit; bytes that are not text are replaced.
    pub argv: Vec<String>,
    /// How it ended.
    pub ending: EndingKind,
    /// The exit code that stands for its ending.
    pub exit_code: i32,
}

/// What changed between two points.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointEffects {
    /// How many paths came.
    pub added: u64,
    /// How many paths are others.
    pub changed: u64,
    /// How many paths are gone.
    pub removed: u64,
    /// Whether there may be more, which nobody counted.
    pub more: bool,
    /// The first of them.
    pub paths: Vec<PointPath>,
}

/// A path that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointPath {
    /// What was done to it.
    pub what: PointDeed,
    /// Where, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where, in base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
}

/// What was done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointDeed {
    /// It came.
    Added,
    /// It is another.
    Changed,
    /// It is gone.
    Removed,
}

/// Where a fork began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointOrigin {
    /// The session.
    pub session: String,
    /// Its point.
    pub point: u32,
}

impl PointReport {
    /// One of this kind, of which nothing else is known yet.
    pub(super) fn new(kind: PointKind, made_ms: u64) -> Self {
        Self {
            point: 0,
            kind,
            parent: None,
            made_ms,
            label: None,
            command: None,
            ended: Vec::new(),
            shared_with: Vec::new(),
            looked_before: true,
            effects: PointEffects::default(),
            files: 0,
            bytes: 0,
            not_kept: None,
            from: None,
            undone: false,
            imported: None,
        }
    }
}

/// The words of a command, as far as they fit.
pub(super) fn words(argv: &[String]) -> Vec<String> {
    shortened(argv, MAX_WORDS_BYTES)
}

/// Which file has a tree, and what it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeFile {
    /// The number of the point that it was written for.
    pub(super) number: u32,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl TreeFile {
    /// That of a tree.
    pub(super) fn of(number: u32, encoded: &[u8]) -> Self {
        let bytes = encoded.len() as u64;
        Self { number, bytes, sha256: hexadecimal(Sha256::digest(encoded)) }
    }

    /// The tree of these bytes, if they are those of the file.
    pub(super) fn read(&self, encoded: &[u8]) -> Result<Tree> {
        if *self != Self::of(self.number, encoded) {
            let what = format!("the list of point {} is damaged", self.number);
            return Err(Error::new(ErrorKind::Io, what).hint("Go to another point of the history."));
        }
        Tree::decode(encoded)
    }
}

/// A point as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    format: u32,
    /// Where its state is; nothing where that was not kept.
    pub(super) tree: Option<TreeFile>,
    pub(super) said: PointReport,
}

impl Header {
    pub(super) fn new(said: PointReport, tree: Option<TreeFile>) -> Self {
        Self { format: FORMAT, tree, said }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Io, "write down a point").source(e))
    }

    /// Reads the header of the point of this number.
    pub(super) fn decode(number: u32, text: &[u8]) -> Result<Self> {
        let damaged = || {
            let what = format!("point {number} of the history is damaged");
            Error::new(ErrorKind::Io, what).hint("Go to another point of the history.")
        };
        let value: serde_json::Value =
            serde_json::from_slice(text).map_err(|e| damaged().source(e))?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        if let Some(other) = format.filter(|format| *format != u64::from(FORMAT)) {
            let what = format!("point {number} is of format {other}, not {FORMAT}");
            return Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Use the version of Cofferdam that made it."));
        }
        let header: Self = serde_json::from_value(value).map_err(|e| damaged().source(e))?;
        if header.said.point == number { Ok(header) } else { Err(damaged()) }
    }
}
