//! The way through the directories of a workspace, a page of names at a time.

use crate::left_out::{LeftOut, Reason, leave_out};
use crate::rules::{MAX_RULE_BYTES, RULES, Rules};
use crate::scope::Scope;
use cofferdam_core::files::{
    Entry, EntryKind, List, MAX_DEPTH, MAX_ENTRIES, Page, ReadMany, is_of_the_file,
};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use ignore::Match;
use ignore::overrides::Override;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most names that one search looks at.
pub const MAX_VISITED: u64 = 1_000_000;

/// What is passed over wherever it is met.
const REPOSITORY: &[u8] = b".git";

/// Goes through a scope. Of each directory on the way to the present one, one page is held.
pub(crate) struct Walk<'a> {
    files: &'a Files,
    scope: &'a Scope,
    patterns: Override,
    starts: VecDeque<Vec<u8>>,
    stack: Vec<Level>,
    rules: Rules,
    /// The directory that was named last, into which the walk goes next.
    into: Option<Vec<u8>>,
    visited: u64,
    pub(crate) left_out: Vec<LeftOut>,
}

/// A directory on the way.
struct Level {
    path: Vec<u8>,
    entries: std::vec::IntoIter<Entry>,
    order: List,
    /// How many files with rules held above it.
    rules: usize,
}

/// Something that was met.
#[derive(Debug)]
pub(crate) struct Met {
    /// Its path from the workspace on.
    pub(crate) path: Vec<u8>,
    /// How much of that is the directory that was to be searched.
    pub(crate) start: usize,
    /// Whether the scope names it.
    pub(crate) is_named: bool,
    pub(crate) entry: Entry,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(files: &'a Files, scope: &'a Scope) -> Result<Self> {
        let root = [Vec::new()];
        let starts = match scope.paths.is_empty() {
            true => root.into(),
            false => scope.paths.iter().map(|path| plain(path.as_bytes())).collect(),
        };
        Ok(Self {
            files,
            scope,
            patterns: scope.patterns()?,
            starts,
            stack: Vec::new(),
            rules: Rules::default(),
            into: None,
            visited: 0,
            left_out: Vec::new(),
        })
    }

    /// The next thing, each directory before what is in it. `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Met>> {
        loop {
            if let Some(path) = self.into.take() {
                self.descend(path).await?;
            }
            let Some(level) = self.stack.last_mut() else {
                match self.start().await? {
                    Begun::Directory => continue,
                    Begun::File(met) => return Ok(Some(*met)),
                    Begun::Nothing => return Ok(None),
                }
            };
            let Some(entry) = level.entries.next() else {
                self.turn_page().await?;
                continue;
            };
            if self.visited >= self.scope.max_visited.min(MAX_VISITED) {
                let path = join(&level.path, entry.path.as_bytes());
                leave_out(&mut self.left_out, Reason::TooManyNames, &path);
                (self.stack, self.starts) = (Vec::new(), VecDeque::new());
                return Ok(None);
            }
            self.visited += 1;
            if let Some(met) = self.admit(entry)? {
                return Ok(Some(met));
            }
        }
    }

    /// Whether somebody wants to know of this entry of the present directory.
    fn admit(&mut self, entry: Entry) -> Result<Option<Met>> {
        let Some(level) = self.stack.last() else { return Ok(None) };
        let name = entry.path.as_bytes();
        // HOSTILE: it is to be one name.
        if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
            let what = "the file worker listed what is no name in the directory";
            return Err(Error::new(ErrorKind::Protocol, what));
        }
        if name == REPOSITORY || (name.starts_with(b".") && !self.scope.hidden) {
            return Ok(None);
        }
        let path = join(&level.path, name);
        let is_directory = entry.kind == EntryKind::Directory;
        match self.patterns.matched(Path::new(OsStr::from_bytes(&path)), is_directory) {
            Match::Ignore(_) => return Ok(None),
            Match::None if self.rules.exclude(&path, is_directory) => return Ok(None),
            Match::None | Match::Whitelist(_) => {}
        }
        if is_directory {
            self.into = Some(path.clone());
        }
        let start = self.stack.first().map_or(0, |first| first.path.len());
        Ok(Some(Met { path, start, is_named: false, entry }))
    }

    /// Begins with the next place of the scope.
    async fn start(&mut self) -> Result<Begun> {
        let Some(path) = self.starts.pop_front() else { return Ok(Begun::Nothing) };
        self.rules.truncate(0);
        let entry = self.files.stat(shown(&path)).await?;
        if matches!(entry.kind, EntryKind::Directory | EntryKind::Link) {
            self.add_rules_above(&path).await?;
            match self.enter(&path).await {
                Ok(()) => return Ok(Begun::Directory),
                // A link to something else.
                Err(error) if error.kind == ErrorKind::NotAFile => {}
                Err(error) => return Err(error),
            }
        }
        let start = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        Ok(Begun::File(Box::new(Met { path, start, is_named: true, entry })))
    }

    /// Goes down, unless that is too deep or impossible.
    async fn descend(&mut self, path: Vec<u8>) -> Result<()> {
        if self.stack.len() >= MAX_DEPTH {
            leave_out(&mut self.left_out, Reason::TooDeep, &path);
            return Ok(());
        }
        match self.enter(&path).await {
            Ok(()) => Ok(()),
            Err(error) if is_of_the_file(&error) => {
                if error.kind != ErrorKind::NotFound {
                    leave_out(&mut self.left_out, Reason::Unreadable, &path);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn enter(&mut self, path: &[u8]) -> Result<()> {
        let order =
            List { path: shown(path).to_owned().into(), depth: 1, after: None, limit: MAX_ENTRIES };
        let page = self.page(&order).await?;
        let rules = self.rules.len();
        let has_rules = |entry: &Entry| entry.path.as_bytes() == RULES;
        if !self.scope.ignored && (page.next.is_some() || page.entries.iter().any(has_rules)) {
            self.add_rules(&[path.to_vec()]).await?;
        }
        let order = List { after: page.next, ..order };
        let entries = page.entries.into_iter();
        self.stack.push(Level { path: path.to_vec(), entries, order, rules });
        Ok(())
    }

    /// Goes on in the present directory, or back to the one above.
    async fn turn_page(&mut self) -> Result<()> {
        let Some(mut level) = self.stack.pop() else { return Ok(()) };
        if level.order.after.is_none() {
            self.rules.truncate(level.rules);
            return Ok(());
        }
        match self.page(&level.order).await {
            Ok(page) => {
                (level.entries, level.order.after) = (page.entries.into_iter(), page.next);
                self.stack.push(level);
                Ok(())
            }
            Err(error) if is_of_the_file(&error) => {
                leave_out(&mut self.left_out, Reason::Unreadable, &level.path);
                self.rules.truncate(level.rules);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn page(&self, order: &List) -> Result<Page> {
        let page = self.files.list(order).await?;
        // HOSTILE: it would never end.
        if page.entries.is_empty() && page.next.is_some() {
            let what = "the file worker said that behind an empty page there is another";
            return Err(Error::new(ErrorKind::Protocol, what));
        }
        Ok(page)
    }

    /// Adds what holds for a directory because of those above it.
    async fn add_rules_above(&mut self, path: &[u8]) -> Result<()> {
        if self.scope.ignored || path.is_empty() || is_indirect(path) {
            return Ok(());
        }
        let cuts = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let above = [0].into_iter().chain(cuts).filter_map(|at| path.get(..at).map(<[u8]>::to_vec));
        self.add_rules(&above.collect::<Vec<_>>()).await
    }

    async fn add_rules(&mut self, directories: &[Vec<u8>]) -> Result<()> {
        let order = ReadMany {
            paths: directories.iter().map(|directory| join(directory, RULES).into()).collect(),
            max_bytes: MAX_RULE_BYTES as u64,
            total_bytes: self.rules.room() as u64,
        };
        for (directory, read) in directories.iter().zip(self.files.read_many(&order).await?) {
            match read {
                Ok(content) if self.rules.room() >= content.bytes.len().max(1) => {
                    self.rules.add(directory, &content.bytes, &mut self.left_out);
                }
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Ok(_) | Err(_) => leave_out(&mut self.left_out, Reason::Rules, directory),
            }
        }
        Ok(())
    }
}

/// What a place of the scope is.
enum Begun {
    Directory,
    File(Box<Met>),
    Nothing,
}

/// A path as it is asked for: the workspace itself is called `.`.
pub(crate) fn shown(path: &[u8]) -> &OsStr {
    if path.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(path) }
}

/// A path from the workspace on, without words that say nothing. One that goes up, or begins with
/// another name of the workspace, stays as it is.
fn plain(path: &[u8]) -> Vec<u8> {
    let below = match path.strip_prefix(b"/workspace") {
        Some(rest) if matches!(rest.first(), Some(b'/') | None) => rest,
        Some(_) | None => path,
    };
    if is_indirect(below) && below.len() == path.len() {
        return path.to_vec();
    }
    let names = below.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names.collect::<Vec<_>>().join(&b'/')
}

/// Whether the directories above something cannot be told from its path.
fn is_indirect(path: &[u8]) -> bool {
    path.first() == Some(&b'/') || path.split(|byte| *byte == b'/').any(|name| name == b"..")
}

pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory.is_empty() || directory.ends_with(b"/") {
        true => [directory, name].concat(),
        false => [directory, b"/", name].concat(),
    }
}
