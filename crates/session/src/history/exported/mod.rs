//! A snapshot in one file, to be carried to another session, user or machine.
//!
//! # The file
//!
//! | part | what |
//! |---|---|
//! | lead | `cofferdam-snapshot`, the format, a line feed |
//! | manifest | its length in 4 bytes, and so many bytes of JSON: [`ExportManifest`] |
//! | list | what the layer held, as a tree of the history is written, with its own SHA-256 |
//! | contents | in the order in which the list names them first: pieces, each its offset in 8 bytes, its length in 4 and its bytes; a piece of no length with the size as its offset; the SHA-256 of all that |
//! | sum | the SHA-256 of everything before it |
//!
//! Numbers are little-endian. What is between pieces is a hole. After the sum there is nothing.
//!
//! No part of it is a name of a file but the entries of the list, and a list has one reader, which the
//! history has too: so there is nothing that two readers could understand in two ways, and nothing that
//! a tool for archives would unpack on a host.
//!
//! HOSTILE: such a file comes from anybody. A length is compared with its limit before anything is made
//! of it; all of it is read and every sum compared before a point of it is seen; and where something is
//! wrong nothing is left. What links lead to is data here.

mod import;
mod outgoing;
mod read;
mod write;

#[cfg(test)]
mod tests;

use super::tree::MAX_TREE_ENTRIES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use import::Imported;
pub(crate) use outgoing::Outgoing;
pub use read::check_export;

/// What a file of this format begins with.
const LEAD: &[u8; 20] = b"cofferdam-snapshot\x01\n";
/// The format of manifests that this program writes, and the only one that it reads.
const FORMAT: u32 = 1;
/// The most bytes of a manifest.
const MAX_MANIFEST_BYTES: u32 = 64 << 10;
/// The most bytes of the list of an exported snapshot, which is held in memory.
pub const MAX_EXPORTED_LIST_BYTES: u64 = 256 << 20;
/// The most files and directories of an exported snapshot.
pub const MAX_EXPORTED_ENTRIES: u64 = MAX_TREE_ENTRIES as u64;
/// The most bytes of contents of an exported snapshot, without holes; also of all its files together,
/// where several of them have one content.
pub const MAX_EXPORTED_BYTES: u64 = 16 << 30;
/// The largest file of an exported snapshot, holes included.
pub const MAX_EXPORTED_FILE_BYTES: u64 = 1 << 40;
/// The most bytes of one piece.
const PIECE_BYTES: u32 = 1 << 20;

/// What an exported snapshot says of itself. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportManifest {
    /// The format of the file.
    pub format: u32,
    /// The version of Cofferdam that wrote it.
    pub cofferdam: String,
    /// When the snapshot was taken, in milliseconds since 1970.
    pub made_ms: u64,
    /// What somebody called it.
    pub label: Option<String>,
    /// The workspace that it lay on.
    pub workspace: ExportedWorkspace,
    /// Files and directories in it.
    pub files: u64,
    /// Bytes of its files, holes included.
    pub bytes: u64,
    /// How many contents follow.
    pub contents: u64,
    /// Bytes of those, without holes.
    pub content_bytes: u64,
    /// Bytes of the list.
    pub list_bytes: u64,
    /// The SHA-256 of the list.
    pub list_sha256: String,
}

/// A workspace that a snapshot lay on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportedWorkspace {
    /// Its path; bytes that are not text are replaced.
    pub path: String,
    /// What tells that directory from others, if that could be found out: a SHA-256.
    pub identity: Option<String>,
}
