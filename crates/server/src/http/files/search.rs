//! Names and lines that match.

use crate::Server;
use crate::http::door::{Door, ReadsFiles};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path};
use crate::http::{objects, place};
use axum::Json;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_search::{Case, Glob, Grep, MAX_FILE_BYTES, Scope, Want};
use cofferdam_session::objects::{FileMatches, FileNames};
use schemars::JsonSchema;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(glob)).routes(routes!(grep))
}

/// Names that are looked for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GlobWish {
    /// The patterns, of which one has to match the whole path below the directory that is searched.
    patterns: Vec<String>,
    /// The directory. Default: the workspace.
    path: Option<String>,
    /// The directory in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// Takes capital letters and small ones for the same.
    ignore_case: bool,
    /// Finds only what is one of these; anything where there are none.
    kinds: Vec<KindWish>,
    /// At most so many names, and never more than 10000.
    limit: Option<u64>,
    /// What is passed over.
    scope: ScopeWish,
}

/// Lines that are looked for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GrepWish {
    /// Regular expressions, of which one has to match.
    patterns: Vec<String>,
    /// The files and directories. Default: the workspace.
    paths: Vec<String>,
    /// Further ones in base64, which are not UTF-8.
    paths_base64: Vec<String>,
    /// Takes the patterns for text as it stands.
    fixed_strings: bool,
    /// Finds whole words alone.
    word: bool,
    /// What capital letters mean.
    case: CaseWish,
    /// So many lines before each match, at most 1000.
    before: u32,
    /// So many lines behind each match, at most 1000.
    after: u32,
    /// What is told of a file.
    tell: TellWish,
    /// Searches files with zero bytes as if they were text.
    binary_as_text: bool,
    /// At most so many matches of one file.
    max_count: Option<u64>,
    /// At most so many matches, and never more than 10000.
    limit: Option<u64>,
    /// Leaves out a file of more bytes, at most 64 MiB.
    max_file_bytes: Option<u64>,
    /// What is passed over.
    scope: ScopeWish,
}

/// What is passed over in a search. What is called `.git` is in any case.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScopeWish {
    /// Searches names that begin with a dot too.
    hidden: bool,
    /// Searches what a .gitignore excludes too.
    no_ignore: bool,
    /// Searches only files that one of these matches, as a line of a .gitignore would.
    include: Vec<String>,
    /// Passes over files and directories that one of these matches.
    exclude: Vec<String>,
}

/// What something in the workspace is.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindWish {
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
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CaseWish {
    /// They are other letters.
    #[default]
    Sensitive,
    /// They are the same letters.
    Insensitive,
    /// They are other letters where the pattern holds one.
    Smart,
}

/// What is told of a file.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TellWish {
    /// Its lines that match.
    #[default]
    Lines,
    /// How many match.
    Count,
    /// That one matches.
    Name,
}

impl ScopeWish {
    fn scope(self, paths: Vec<cofferdam_core::files::ByteString>) -> Scope {
        let Self { hidden, no_ignore: ignored, include, exclude } = self;
        Scope { paths, hidden, ignored, include, exclude, ..Scope::default() }
    }
}

impl KindWish {
    fn kind(self) -> EntryKind {
        match self {
            Self::File => EntryKind::File,
            Self::Directory => EntryKind::Directory,
            Self::Link => EntryKind::Link,
            Self::Fifo => EntryKind::Fifo,
            Self::Socket => EntryKind::Socket,
            Self::Device => EntryKind::Device,
        }
    }
}

impl GlobWish {
    fn order(self) -> Result<Glob> {
        some(&self.patterns)?;
        let place = place::named("path", self.path.as_deref(), self.path_base64.as_deref())?;
        Ok(Glob {
            patterns: self.patterns,
            ignore_case: self.ignore_case,
            kinds: self.kinds.into_iter().map(KindWish::kind).collect(),
            max_matches: self.limit,
            scope: self.scope.scope(place.into_iter().collect()),
        })
    }
}

impl GrepWish {
    fn order(self) -> Result<Grep> {
        some(&self.patterns)?;
        let paths = place::several("paths", &self.paths, &self.paths_base64)?;
        Ok(Grep {
            patterns: self.patterns,
            fixed: self.fixed_strings,
            word: self.word,
            case: match self.case {
                CaseWish::Sensitive => Case::Sensitive,
                CaseWish::Insensitive => Case::Insensitive,
                CaseWish::Smart => Case::Smart,
            },
            before: self.before,
            after: self.after,
            want: match self.tell {
                TellWish::Lines => Want::Lines,
                TellWish::Count => Want::Count,
                TellWish::Name => Want::Name,
            },
            binary_as_text: self.binary_as_text,
            max_matches_of_one: self.max_count,
            max_matches: self.limit,
            max_file_bytes: self.max_file_bytes.unwrap_or(MAX_FILE_BYTES),
            scope: self.scope.scope(paths),
        })
    }
}

fn some(patterns: &[String]) -> Result<()> {
    if patterns.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "patterns are missing").hint("Give one at least."));
    }
    Ok(())
}

/// Finds names by patterns: `*` and `?` stay within a directory, `**` goes through any number of them.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/glob", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::GlobWish, responses(
    (status = 200, description = "What was found.", body = objects::FileNames),
))]
async fn glob(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<GlobWish>,
) -> Answer<Json<FileNames>> {
    let order = wish.order()?;
    Ok(Json(door.session(&sandbox).await?.glob(&order).await?))
}

/// Finds lines by regular expressions, which match in linear time.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/grep", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::GrepWish, responses(
    (status = 200, description = "What was found.", body = objects::FileMatches),
))]
async fn grep(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<GrepWish>,
) -> Answer<Json<FileMatches>> {
    let order = wish.order()?;
    Ok(Json(door.session(&sandbox).await?.grep(&order).await?))
}
