//! The directories in which names change, held open.

use super::super::failure::refused;
use super::super::walk::Root;
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Failure, MAX_CARRY_DEPTH, MAX_HELD_DIRECTORIES, Part, Why, parts};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::collections::HashMap;

/// Directories by their paths from the root.
pub(super) struct Held<'a> {
    root: &'a Root,
    by_path: HashMap<Vec<u8>, OwnedFd>,
}

impl<'a> Held<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // With fewer, fewer directories can be held, which is said when it comes to that.
        let _ = setrlimit(Resource::Nofile, limit);
        Self { root, by_path: HashMap::new() }
    }

    /// The directory that a path lies in, opened if it was not, through no link.
    pub(super) fn hold(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Failure> {
        let above = above(path);
        if above.is_empty() {
            return Ok(self.root.top());
        }
        if !self.by_path.contains_key(above) {
            let opened = self.root.straight(&above.to_vec().into())?;
            self.keep(path, opened)?;
        }
        self.get(path)
    }

    /// Holds this as the directory that a path lies in.
    pub(super) fn keep(&mut self, path: &[u8], directory: OwnedFd) -> Result<(), Failure> {
        if self.by_path.len() >= MAX_HELD_DIRECTORIES {
            let what = format!("names change in more than {MAX_HELD_DIRECTORIES} directories");
            return Err(refused(Why::TooLarge, what));
        }
        self.by_path.insert(above(path).to_vec(), directory);
        Ok(())
    }

    /// The directory that a path lies in, which is held.
    pub(super) fn get(&self, path: &[u8]) -> Result<BorrowedFd<'_>, Failure> {
        let above = above(path);
        if above.is_empty() {
            return Ok(self.root.top());
        }
        let held = self.by_path.get(above).map(AsFd::as_fd);
        held.ok_or_else(|| refused(Why::NotFound, "the directory that it lies in is not there"))
    }
}

/// The path, if it has the one spelling that a step uses.
pub(super) fn plain(path: &ByteString) -> Result<&[u8], Failure> {
    let bytes = path.as_bytes();
    let parts = parts(bytes, &[]).unwrap_or_default();
    let names: Option<Vec<&[u8]>> = parts
        .into_iter()
        .map(|part| match part {
            Part::Name(name) => Some(name),
            Part::Up => None,
        })
        .collect();
    match names.filter(|names| !names.is_empty() && names.join(&b'/') == bytes) {
        Some(names) if names.len() > MAX_CARRY_DEPTH => {
            let what = format!("{path:?} has more than {MAX_CARRY_DEPTH} names");
            Err(refused(Why::BadRequest, what))
        }
        Some(_) => Ok(bytes),
        None => Err(refused(Why::BadRequest, format!("{path:?} is no plain path"))),
    }
}

/// The path of the directory that a path lies in; empty for the root.
pub(super) fn above(path: &[u8]) -> &[u8] {
    let cut = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    path.get(..cut).unwrap_or_default()
}

/// The last name of a path.
pub(super) fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
