//! Names and lines that match.

use crate::Server;
use crate::http::door::{Door, ReadsFiles};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path};
use crate::http::wish::Wish;
use crate::http::{objects, place};
use axum::Json;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_search::{Case, Glob, Grep, MAX_FILE_BYTES, Scope, Want};
pub(crate) use cofferdam_session::objects::{
    CaseWish, GlobWish, GrepWish, KindWish, ScopeWish, TellWish,
};
use cofferdam_session::objects::{FileMatches, FileNames};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(glob)).routes(routes!(grep))
}

fn scope(wish: ScopeWish, paths: Vec<cofferdam_core::files::ByteString>) -> Scope {
    let ScopeWish { hidden, no_ignore: ignored, include, exclude } = wish;
    Scope { paths, hidden, ignored, include, exclude, ..Scope::default() }
}

fn kind(wish: KindWish) -> EntryKind {
    match wish {
        KindWish::File => EntryKind::File,
        KindWish::Directory => EntryKind::Directory,
        KindWish::Link => EntryKind::Link,
        KindWish::Fifo => EntryKind::Fifo,
        KindWish::Socket => EntryKind::Socket,
        KindWish::Device => EntryKind::Device,
    }
}

impl Wish for GlobWish {
    type Order = Glob;

    fn order(self) -> Result<Glob> {
        some(&self.patterns)?;
        let place = place::named("path", self.path.as_deref(), self.path_base64.as_deref())?;
        Ok(Glob {
            patterns: self.patterns,
            ignore_case: self.ignore_case,
            kinds: self.kinds.into_iter().map(kind).collect(),
            max_matches: self.limit,
            scope: scope(self.scope, place.into_iter().collect()),
        })
    }
}

impl Wish for GrepWish {
    type Order = Grep;

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
            scope: scope(self.scope, paths),
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
