//! Both sides of a layer, path by path.
//!
//! The upper directory is walked whole. Of the workspace, what stands under the same names is looked
//! at, and all that the layer hides: below what was removed or replaced, and in directories that were
//! made anew, which the kernel marks as opaque.

use super::content::{failed, same};
use super::layer::Layer;
use super::look::{Kind, Seen, directory, look, mark, names};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result, is_at_or_below};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::BTreeSet;

/// How deep a change may lie below the workspace.
pub const MAX_LAYER_DEPTH: usize = 128;
/// How many entries of a layer, and of what it hides, are looked at.
pub const MAX_LAYER_ENTRIES: usize = 500_000;

/// Both sides of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) path: GuestPath,
    /// What the layer has; `None` where it hides what the workspace has.
    pub(super) upper: Option<Top>,
    pub(super) lower: Option<Seen>,
    /// Both are files of the same content.
    pub(super) same: bool,
    /// A directory of a copy that is as it was copied, whatever became of it in the workspace.
    pub(super) untouched: bool,
    /// What the layer's file was called in the workspace, where the sandbox gave it this name.
    pub(super) made_of: Option<GuestPath>,
    /// Or it may have had another name, and nobody knows which.
    pub(super) of_unknown: bool,
}

/// What a layer has under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Top {
    pub(super) seen: Seen,
    /// It hides what the workspace has in the directory.
    pub(super) opaque: bool,
    /// It was made of what the workspace had there. Known of directories, and where the workspace has
    /// nothing any more.
    pub(super) copied: bool,
}

/// A directory that is to be listed.
pub(super) enum Waiting {
    Both(Option<GuestPath>, Opaque),
    Copied(Option<GuestPath>),
    Lower(GuestPath),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opaque {
    No,
    Yes,
}

pub(super) struct Walk<'l> {
    pub(super) layer: &'l Layer,
    scope: &'l [GuestPath],
    pairs: Vec<Pair>,
    pub(super) waiting: Vec<Waiting>,
}

/// Everything at, below and above these paths, or everything, in the order of paths.
pub(super) fn walk(layer: &Layer, scope: &[GuestPath]) -> Result<Vec<Pair>> {
    let waiting = match &layer.listing {
        None => vec![Waiting::Both(None, Opaque::No)],
        Some(_) => vec![Waiting::Copied(None)],
    };
    let mut walk = Walk { layer, scope, pairs: Vec::new(), waiting };
    while let Some(next) = walk.waiting.pop() {
        match next {
            Waiting::Both(path, opaque) => walk.both(path, opaque)?,
            Waiting::Copied(path) => {
                if let Some(listing) = &layer.listing {
                    walk.copied(listing, path.as_ref())?;
                }
            }
            Waiting::Lower(path) => walk.lower(&path)?,
        }
    }
    walk.pairs.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walk.pairs)
}

impl Walk<'_> {
    fn both(&mut self, path: Option<GuestPath>, opaque: Opaque) -> Result<()> {
        let bytes = path.as_ref().map_or(&b""[..], |path| path.as_bytes());
        let at = |errno| listing_failed(path.as_ref(), errno);
        // What vanishes meanwhile is not there.
        let Some(upper) = directory(&self.layer.upper, bytes).map_err(at)? else { return Ok(()) };
        let lower = directory(&self.layer.workspace, bytes).map_err(at)?;
        let mine = names(&upper, MAX_LAYER_ENTRIES).map_err(at)?;
        for name in &mine {
            if let Some(path) = self.child(path.as_ref(), name)? {
                self.entry(path, name, (&upper, lower.as_ref()), opaque)?;
            }
        }
        if let (Opaque::Yes, Some(lower)) = (opaque, &lower) {
            let mine: BTreeSet<Vec<u8>> = mine.into_iter().collect();
            let mut hidden = names(lower, MAX_LAYER_ENTRIES).map_err(at)?;
            hidden.retain(|name| !mine.contains(name));
            self.hidden(path.as_ref(), lower, &hidden)?;
        }
        Ok(())
    }

    fn lower(&mut self, path: &GuestPath) -> Result<()> {
        let at = |errno| listing_failed(Some(path), errno);
        let found = directory(&self.layer.workspace, path.as_bytes()).map_err(at)?;
        let Some(lower) = found else { return Ok(()) };
        let all = names(&lower, MAX_LAYER_ENTRIES).map_err(at)?;
        self.hidden(Some(path), &lower, &all)
    }

    fn entry(
        &mut self,
        path: GuestPath,
        name: &[u8],
        (upper, lower): (&OwnedFd, Option<&OwnedFd>),
        above: Opaque,
    ) -> Result<()> {
        let at = |errno| failed("look at", &path, errno);
        let Some((seen, file)) = look(upper, name).map_err(at)? else { return Ok(()) };
        let lower = lower
            .map(|lower| self.layer.below(lower, name, &path))
            .transpose()
            .map_err(at)?
            .flatten();
        if self.is_whiteout(&seen, &file).map_err(at)? {
            return match lower {
                Some((lower, _)) => self.gone(path, lower),
                None => Ok(()),
            };
        }
        let top = self.top(&path, seen, &file, lower.as_ref().map(|(lower, _)| lower.kind))?;
        let both_files = |lower: &Seen| lower.kind == Kind::File && top.seen.kind == Kind::File;
        let same = match &lower {
            Some((lower, other)) if both_files(lower) && lower.size == top.seen.size => {
                same(&file, other).map_err(|errno| failed("compare", &path, errno))?
            }
            Some(_) | None => false,
        };
        let lower = lower.map(|(lower, _)| lower);
        let hides = lower.as_ref().is_some_and(|lower| lower.kind == Kind::Directory);
        if top.seen.kind == Kind::Directory {
            // What is in a directory that hides all hides as well, and the kernel marks only the outer.
            let opaque = if top.opaque { Opaque::Yes } else { above };
            self.waiting.push(Waiting::Both(Some(path.clone()), opaque));
        } else if hides {
            self.waiting.push(Waiting::Lower(path.clone()));
        }
        self.push(Pair {
            path,
            upper: Some(top),
            lower,
            same,
            untouched: false,
            made_of: None,
            of_unknown: false,
        })
    }

    fn top(
        &self,
        path: &GuestPath,
        seen: Seen,
        file: &OwnedFd,
        lower: Option<Kind>,
    ) -> Result<Top> {
        let marked = |name| {
            mark(file, &self.layer.mark(name)).map_err(|errno| failed("look at", path, errno))
        };
        let is_directory = seen.kind == Kind::Directory;
        for (name, of) in [("redirect", Kind::Directory), ("metacopy", Kind::File)] {
            if seen.kind == of && marked(name)?.is_some() {
                let what = format!("{path:?} is in the layer by a reference alone ({name})");
                return Err(Error::new(ErrorKind::Unsupported, what)
                    .hint("Copy the file in the session, and remove the original."));
            }
        }
        let opaque = is_directory && marked("opaque")?.is_some_and(|value| value == b"y");
        let copied = lower != Some(seen.kind) || is_directory;
        let copied = copied && marked("origin")?.is_some();
        Ok(Top { seen, opaque, copied })
    }

    /// Whether this stands for what was removed: a device of no number, or an empty file with a mark.
    fn is_whiteout(&self, seen: &Seen, file: &OwnedFd) -> Result<bool, Errno> {
        match seen.kind {
            Kind::Device => Ok(seen.device_number == 0),
            Kind::File if seen.size == 0 => Ok(mark(file, &self.layer.mark("whiteout"))?.is_some()),
            Kind::File
            | Kind::Directory
            | Kind::Link
            | Kind::Fifo
            | Kind::Socket
            | Kind::Mounted => Ok(false),
        }
    }

    /// What the workspace has in a directory and the layer hides.
    fn hidden(
        &mut self,
        path: Option<&GuestPath>,
        lower: &OwnedFd,
        names: &[Vec<u8>],
    ) -> Result<()> {
        for name in names {
            let Some(path) = self.child(path, name)? else { continue };
            let found = self.layer.below(lower, name, &path);
            let found = found.map_err(|errno| failed("look at", &path, errno))?;
            if let Some((lower, _)) = found {
                self.gone(path, lower)?;
            }
        }
        Ok(())
    }

    pub(super) fn gone(&mut self, path: GuestPath, lower: Seen) -> Result<()> {
        if lower.kind == Kind::Directory && !self.layer.is_left_out(path.as_bytes()) {
            self.waiting.push(Waiting::Lower(path.clone()));
        }
        self.push(Pair {
            path,
            upper: None,
            lower: Some(lower),
            same: false,
            untouched: false,
            made_of: None,
            of_unknown: false,
        })
    }

    pub(super) fn push(&mut self, pair: Pair) -> Result<()> {
        if self.pairs.len() >= MAX_LAYER_ENTRIES {
            let what = format!("the layer has more than {MAX_LAYER_ENTRIES} entries");
            return Err(Error::new(ErrorKind::TooLarge, what)
                .hint("Name the paths that you want, or discard those that you do not."));
        }
        self.pairs.push(pair);
        Ok(())
    }

    /// The path of an entry; `None` where it is not wanted.
    pub(super) fn child(&self, path: Option<&GuestPath>, name: &[u8]) -> Result<Option<GuestPath>> {
        let mut bytes = path.map_or_else(Vec::new, |path| [path.as_bytes(), b"/"].concat());
        bytes.extend_from_slice(name);
        let child = GuestPath::new(&bytes).ok();
        let Some(child) = child.filter(|child| child.names().count() <= MAX_LAYER_DEPTH) else {
            let top = String::from_utf8_lossy(bytes.get(..80).unwrap_or(&bytes)).into_owned();
            let what = format!("{top:?} is deeper than {MAX_LAYER_DEPTH} levels or 4095 bytes");
            return Err(Error::new(ErrorKind::TooLarge, what)
                .hint(
                    "Name other paths, or remove the directory with `cofferdam file rm SESSION DIRECTORY \
                     --recursive`.",
                ));
        };
        let is_related =
            |root: &GuestPath| is_at_or_below(&child, root) || is_at_or_below(root, &child);
        let is_wanted = self.scope.is_empty() || self.scope.iter().any(is_related);
        Ok(is_wanted.then_some(child))
    }
}

pub(super) fn listing_failed(path: Option<&GuestPath>, errno: Errno) -> Error {
    match path {
        _ if errno == Errno::OVERFLOW => {
            let what = format!("a directory has more than {MAX_LAYER_ENTRIES} entries");
            Error::new(ErrorKind::TooLarge, what).hint("Name other paths, or discard it.")
        }
        Some(path) => failed("list", path, errno),
        None => Error::new(ErrorKind::Io, "list the top of the layer")
            .source(std::io::Error::from(errno)),
    }
}
