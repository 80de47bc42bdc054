//! Times of change of what a landing left, so that only what changes later is news.

use super::super::look::look;
use super::journal::Op;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;

/// Times of change by path.
pub(super) type Times = BTreeMap<Vec<u8>, u64>;

/// The times of change of what these steps put there, or put back, and nobody changed since: what
/// was put there after `until_ns`.
pub(super) fn left(
    workspace: &OwnedFd,
    (ops, until_ns): (&[Op], u64),
    since_ns: impl Fn(&[u8]) -> u64,
) -> Times {
    let mut times = Times::new();
    for op in ops {
        let (new, was) = match op {
            Op::Put { new, was, .. } | Op::Name { new, was, .. } => (Some(*new), *was),
            Op::Mode { of, .. } => (Some(*of), None),
            Op::Take { was, .. } => (None, Some(*was)),
        };
        let Ok(Some((seen, _))) = look(workspace, op.path()) else { continue };
        let is_back = was == Some(seen.id) && seen.modified_ns <= since_ns(op.path());
        let has_come = new == Some(seen.id) && seen.modified_ns <= until_ns;
        if has_come || is_back {
            times.insert(op.path().to_vec(), seen.changed_ns);
        }
    }
    times
}

/// The times of change of these directories; the empty path is the workspace.
pub(super) fn times(workspace: &OwnedFd, paths: &[Vec<u8>]) -> Times {
    let time = |path: &Vec<u8>| {
        let path_or_top = if path.is_empty() { b"." } else { path.as_slice() };
        let (seen, _) = look(workspace, path_or_top).ok().flatten()?;
        Some((path.clone(), seen.changed_ns))
    };
    paths.iter().filter_map(time).collect()
}
