//! What requests want of files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A directory that is to be there.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MkdirWish {
    /// Its path.
    pub path: Option<String>,
    /// Its path in base64, where it is not UTF-8.
    pub path_base64: Option<String>,
}

/// Something that is to have another name.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MoveWish {
    /// What there is.
    pub from: Option<String>,
    /// The same in base64, where it is not UTF-8.
    pub from_base64: Option<String>,
    /// Its new path; directories above it are made.
    pub to: Option<String>,
    /// The same in base64, where it is not UTF-8.
    pub to_base64: Option<String>,
    /// Replaces what is there.
    pub replace: bool,
}

/// Something that is to be copied.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopyWish {
    /// What there is.
    pub from: Option<String>,
    /// The same in base64, where it is not UTF-8.
    pub from_base64: Option<String>,
    /// The path of the copy; directories above it are made.
    pub to: Option<String>,
    /// The same in base64, where it is not UTF-8.
    pub to_base64: Option<String>,
    /// Replaces the file that is there.
    pub replace: bool,
    /// Copies a directory with all that is in it, under a name that is free.
    pub recursive: bool,
}

/// Permissions that something is to have.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChmodWish {
    /// The path.
    pub path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    pub path_base64: Option<String>,
    /// The permissions in octal, at most 777.
    pub mode: String,
}

/// Texts of a file that are to be replaced.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EditsWish {
    /// The file.
    pub path: Option<String>,
    /// The file in base64, where its path is not UTF-8.
    pub path_base64: Option<String>,
    /// The edits, one applied after the other.
    pub edits: Vec<EditWish>,
    /// Says what would be done, and changes nothing.
    pub dry_run: bool,
}

/// One replacement.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditWish {
    /// The text that stands there.
    pub old: String,
    /// The text that is to stand there; an empty one removes the old.
    pub new: String,
    /// Replaces every place, and not the only one.
    #[serde(default)]
    pub all: bool,
}

/// Files that are read at once.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadManyWish {
    /// The paths.
    pub paths: Vec<String>,
    /// Further paths in base64, which are not UTF-8.
    pub paths_base64: Vec<String>,
    /// Leaves out a file of more bytes.
    pub max_bytes: Option<u64>,
}

/// Names that are looked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GlobWish {
    /// The patterns, of which one has to match the whole path below the directory that is searched.
    pub patterns: Vec<String>,
    /// The directory. Default: the workspace.
    pub path: Option<String>,
    /// The directory in base64, where it is not UTF-8.
    pub path_base64: Option<String>,
    /// Takes capital letters and small ones for the same.
    pub ignore_case: bool,
    /// Finds only what is one of these; anything where there are none.
    pub kinds: Vec<KindWish>,
    /// At most so many names, and never more than 10000.
    pub limit: Option<u64>,
    /// What is passed over.
    pub scope: ScopeWish,
}

/// Lines that are looked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrepWish {
    /// Regular expressions, of which one has to match.
    pub patterns: Vec<String>,
    /// The files and directories. Default: the workspace.
    pub paths: Vec<String>,
    /// Further ones in base64, which are not UTF-8.
    pub paths_base64: Vec<String>,
    /// Takes the patterns for text as it stands.
    pub fixed_strings: bool,
    /// Finds whole words alone.
    pub word: bool,
    /// What capital letters mean.
    pub case: CaseWish,
    /// So many lines before each match, at most 1000.
    pub before: u32,
    /// So many lines behind each match, at most 1000.
    pub after: u32,
    /// What is told of a file.
    pub tell: TellWish,
    /// Searches files with zero bytes as if they were text.
    pub binary_as_text: bool,
    /// At most so many matches of one file.
    pub max_count: Option<u64>,
    /// At most so many matches, and never more than 10000.
    pub limit: Option<u64>,
    /// Leaves out a file of more bytes, at most 64 MiB.
    pub max_file_bytes: Option<u64>,
    /// What is passed over.
    pub scope: ScopeWish,
}

/// What is passed over in a search. What is called `.git` is in any case.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScopeWish {
    /// Searches names that begin with a dot too.
    pub hidden: bool,
    /// Searches what a .gitignore excludes too.
    pub no_ignore: bool,
    /// Searches only files that one of these matches, as a line of a .gitignore would.
    pub include: Vec<String>,
    /// Passes over files and directories that one of these matches.
    pub exclude: Vec<String>,
}

/// What something in the workspace is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindWish {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe with a name.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// What capital letters mean.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaseWish {
    /// They are other letters.
    #[default]
    Sensitive,
    /// They are the same letters.
    Insensitive,
    /// They are other letters where the pattern holds one.
    Smart,
}

/// What is told of a file.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TellWish {
    /// Its lines that match.
    #[default]
    Lines,
    /// How many match.
    Count,
    /// That one matches.
    Name,
}
