//! Two points of a history that somebody wants compared: named, found, and read.

use super::between::{Between, Item, Place, whole};
use super::blobs::Blobs;
use super::checkpoint::layered;
use super::forks::present;
use super::going::{dropped, has_points};
use super::store::{History, not_kept};
use super::taking::history_of;
use super::tree::{Content, Tree};
use crate::Session;
use crate::answer::{CALL_LIMIT, within};
use crate::desk::Desk;
use crate::diff::{Contents, FileDiff, MAX_DIFFED_FILE_BYTES};
use crate::store::blocking;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{Change, Error, ErrorKind, FileState, GuestPath, KeptLayer, Result, Side};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// How long a backend may take to look at what a workspace has.
const WORKSPACE_LIMIT: Duration = Duration::from_secs(3600);

/// What somebody wants compared: from one point of a history to another one, which may be the earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointRange {
    /// The number of a point, or the label of a snapshot; the beginning, point 0, where there is none.
    pub from: Option<String>,
    /// The same; how the session is now, where there is none.
    pub to: Option<String>,
}

/// Which points were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointSpan {
    /// Where it began.
    pub from: u32,
    /// Where it ended.
    pub to: u32,
}

impl PointRange {
    /// What a word such as `3..7`, `3..`, `feat/x..` or `..tests pass` means; `None` where it is none. One
    /// with a slash is a path where it begins with `/` or `./`, ends with `/`, goes up, or has three dots.
    pub fn parse(word: &str) -> Option<Self> {
        let (from, to) = word.split_once("..")?;
        if is_path(word) || (from.is_empty() && to.is_empty()) {
            return None;
        }
        let side = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Some(Self { from: side(from), to: side(to) })
    }
}

/// Whether a word with two dots and a slash is a path. Labels are often names of branches, which have
/// slashes; names in brackets with three dots are often those of files.
fn is_path(word: &str) -> bool {
    let is_of_paths = |part: &str| matches!(part, "" | "." | "..");
    word.contains('/') && (word.contains("...") || word.split('/').any(is_of_paths))
}

impl Session {
    /// What is other at one point of the history than at another one, at these paths and below them, or
    /// everywhere where there is none, in the order of paths. Where it goes to how the session is now,
    /// that becomes a point first, unless it is one already.
    ///
    /// What the layer of a point did not have is what the workspace has by now. No change of them can
    /// land, and each says so.
    ///
    /// A point that is not there any more is not found; one that was not kept is a conflict.
    pub async fn changes_between(
        &self,
        range: &PointRange,
        scope: &[GuestPath],
    ) -> Result<(PointSpan, Vec<Change>)> {
        let (_desk, points, items) = self.between(range, scope).await?;
        Ok((points.span, items.into_iter().map(|item| item.change).collect()))
    }

    /// The same line by line: `each` is called in the order of paths.
    pub async fn diff_between(
        &self,
        range: &PointRange,
        scope: &[GuestPath],
        mut each: impl FnMut(FileDiff) -> Result<()>,
    ) -> Result<PointSpan> {
        let (desk, points, items) = self.between(range, scope).await?;
        for Item { change, before, after } in items {
            let old = points.content(&desk, (&change.path, change.before.as_ref(), before)).await?;
            let new = points.content(&desk, (&change.path, change.after.as_ref(), after)).await?;
            each(FileDiff::new(
                change,
                Contents { before: old.as_deref(), after: new.as_deref() },
            ))?;
        }
        Ok(points.span)
    }

    /// Nobody removes a point as long as the desk is held.
    async fn between(
        &self,
        range: &PointRange,
        scope: &[GuestPath],
    ) -> Result<(Desk, Arc<Points>, Vec<Item>)> {
        let mut desk = self.sessions.0.desk(&self.id).await?;
        layered(&desk.row)?;
        has_points(&desk).await?;
        let Some(layer) = self.layer_of(&desk.row)? else {
            return Err(Error::new(ErrorKind::Conflict, "the session has no layer")
                .hint("Only a copy-on-write session has a history of its files."));
        };
        let (history, named) = (history_of(&desk), range.clone());
        // ORDER: nothing stands still for a point that is not there.
        blocking(move || find(&history, &named).map(drop)).await?;
        if range.to.is_none() {
            present(&mut desk).await?;
        }
        let (history, named) = (history_of(&desk), range.clone());
        let workspace = desk.row.spec.workspace().map(String::into_bytes).unwrap_or_default();
        let scope = scope.to_vec();
        let points = blocking(move || {
            let (from, to) = find(&history, &named)?;
            let (from_tree, to_tree) = (tree(&history, from)?, tree(&history, to)?);
            let span = PointSpan { from: from.number(), to: to.number() };
            let blobs = history.blobs()?;
            let is_copy = history.is_copy();
            Ok(Points {
                from: from_tree,
                to: to_tree,
                blobs,
                scope,
                workspace,
                is_copy,
                layer,
                span,
            })
        });
        let points = Arc::new(points.await?);
        let wanted = Arc::clone(&points);
        let order = blocking(move || wanted.between().wanted()).await?;
        let looked = desk.backend().look_at_workspace(&points.layer, &order);
        let found = within(WORKSPACE_LIMIT, "look at a workspace", looked).await?;
        let compared = Arc::clone(&points);
        let items = blocking(move || compared.between().changes(&found)).await?;
        Ok((desk, points, items))
    }
}

/// Both points, read.
struct Points {
    from: Tree,
    to: Tree,
    blobs: Blobs,
    scope: Vec<GuestPath>,
    workspace: Vec<u8>,
    is_copy: bool,
    layer: KeptLayer,
    span: PointSpan,
}

impl Points {
    fn between(&self) -> Between<'_> {
        let Self { from, to, blobs, scope, workspace, is_copy, .. } = self;
        Between { from, to, scope, blobs, workspace, is_copy: *is_copy }
    }

    /// The content of a file, if it is one and can be shown.
    async fn content(
        &self,
        desk: &Desk,
        (path, state, place): (&GuestPath, Option<&FileState>, Option<Place>),
    ) -> Result<Option<Vec<u8>>> {
        let is_shown = |state: &&FileState| {
            state.kind == EntryKind::File && state.size <= MAX_DIFFED_FILE_BYTES
        };
        let (Some(_), Some(place)) = (state.filter(is_shown), place) else { return Ok(None) };
        match place {
            Place::Kept(content) => self.kept(content, path).map(Some),
            Place::Workspace => {
                let (backend, most) = (desk.backend(), MAX_DIFFED_FILE_BYTES);
                let read = backend.layer_file(&self.layer, Side::Before, path, most);
                match within(CALL_LIMIT, "read a file", read).await {
                    Ok(content) => Ok(Some(content)),
                    Err(error) if error.kind == ErrorKind::TooLarge => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    fn kept(&self, content: Content, path: &GuestPath) -> Result<Vec<u8>> {
        let file = File::from(whole(&self.blobs, content, path.as_bytes())?);
        let mut bytes = Vec::new();
        file.take(content.size).read_to_end(&mut bytes).map_err(|e| {
            Error::new(ErrorKind::Io, format!("read {path:?} at a point of the history")).source(e)
        })?;
        Ok(bytes)
    }
}

/// A point that was found.
#[derive(Debug, Clone, Copy)]
enum FoundPoint {
    Numbered(u32),
    /// How the session stands, by the last look: at this point, which itself may not have been kept.
    Present(u32),
}

impl FoundPoint {
    fn number(self) -> u32 {
        match self {
            Self::Numbered(number) | Self::Present(number) => number,
        }
    }
}

fn find(history: &History, range: &PointRange) -> Result<(FoundPoint, FoundPoint)> {
    let state = history.state()?.unwrap_or_default();
    let one = |text: &str| match (history.named(text), text.parse::<u32>()) {
        (Err(error), Ok(number))
            if error.kind == ErrorKind::NotFound && number < state.next_point =>
        {
            Err(dropped(number))
        }
        (Err(error), Err(_)) if error.kind == ErrorKind::NotFound => {
            Err(error.hint("Name points by numbers or labels. A path with \"..\" begins with ./"))
        }
        (found, _) => found.map(FoundPoint::Numbered),
    };
    let from = one(range.from.as_deref().unwrap_or("0"))?;
    let to = match &range.to {
        Some(text) => one(text)?,
        None => FoundPoint::Present(state.at.unwrap_or_default()),
    };
    for point in [from, to] {
        if let FoundPoint::Numbered(number) = point {
            // A point that nobody kept is told before anything is done.
            let header = history.header(number)?;
            if header.tree.is_none() {
                return Err(not_kept(number, header.said.not_kept.as_deref()));
            }
        }
    }
    Ok((from, to))
}

fn tree(history: &History, point: FoundPoint) -> Result<Tree> {
    match point {
        FoundPoint::Numbered(number) => history.tree(number),
        FoundPoint::Present(number) => match history.state()?.and_then(|state| state.tree) {
            Some(file) => history.read_tree(&file),
            None => Err(not_kept(number, None)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_told_from_a_path() {
        let check = |word: &str, expected: Option<(Option<&str>, Option<&str>)>| {
            let sides = expected.map(|(from, to)| PointRange {
                from: from.map(str::to_owned),
                to: to.map(str::to_owned),
            });
            assert_eq!(PointRange::parse(word), sides, "{word}");
        };
        check("3..7", Some((Some("3"), Some("7"))));
        check("7..3", Some((Some("7"), Some("3"))));
        check("3..", Some((Some("3"), None)));
        check("..7", Some((None, Some("7"))));
        check("tests pass..7", Some((Some("tests pass"), Some("7"))));
        check("feat/x..", Some((Some("feat/x"), None)));
        check("..feat/x", Some((None, Some("feat/x"))));
        check("feat/x..feat/y", Some((Some("feat/x"), Some("feat/y"))));
        for path in ["src", "..", "../src", "a/../b", "a/..", "./3..7", "/3..7", "3.7", ""] {
            check(path, None);
        }
        for path in ["./a/x..y", "a/x../", "a/b", "app/[...slug]/page.tsx", "../feat/x.."] {
            check(path, None);
        }
    }
}
