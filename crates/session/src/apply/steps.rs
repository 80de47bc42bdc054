//! From the changes of a plan to the steps that a file worker takes. Pure, without any I/O.

use super::look_up::{Found, bytes};
use crate::patch::{Change, Executable, Node};
use cofferdam_core::GuestPath;
use cofferdam_core::files::{Before, Content, Load, Step};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The permissions of a new file, and of one that can be executed.
const NEW_FILE: u32 = 0o644;
const NEW_PROGRAM: u32 = 0o755;

/// What has to be so, and then what is to be done.
pub(super) fn steps(found: &Found, changes: Vec<Change>) -> Vec<Load> {
    let mut steps = Steps { found, load: Vec::new(), made: BTreeSet::new() };
    steps.expect();
    for change in changes {
        steps.change(change);
    }
    steps.load
}

struct Steps<'f> {
    found: &'f Found,
    load: Vec<Load>,
    /// The directories that are made.
    made: BTreeSet<GuestPath>,
}

impl Steps<'_> {
    /// Everything that the plan was made on has to be so, also what it does not change: a file may be
    /// a copy of one that stays.
    fn expect(&mut self) {
        for (path, mark) in &self.found.looked {
            let is = match (self.found.tree.get(path), mark) {
                (None, _) => Before::Nothing,
                (Some(Node::File { .. }), Some(mark)) => {
                    Before::File { sha256: mark.sha256.clone(), mode: mark.mode }
                }
                (Some(Node::Link { target }), _) => Before::Link { target: target.to_vec().into() },
                // That a directory is one is seen on the way through it.
                (Some(Node::Directory { .. } | Node::Other | Node::File { .. }), _) => continue,
            };
            self.load.push(Step::Expect { path: bytes(path), is }.into());
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Rename { from, to } => {
                self.make_way(&to);
                self.push(Step::Rename { from: bytes(&from), to: bytes(&to) });
            }
            Change::Remove { path } => self.push(Step::Remove { path: bytes(&path) }),
            Change::RemoveDirectory { path } => {
                self.push(Step::RemoveDirectory { path: bytes(&path) });
            }
            Change::Write { path, content, executable } => self.file(&path, content, executable),
            Change::Link { path, target } => {
                self.make_way(&path);
                self.push(Step::Link { path: bytes(&path), target: target.to_vec().into() });
            }
            Change::SetExecutable { path, executable } => {
                if let Some(Node::File { content, .. }) = self.found.tree.get(&path) {
                    self.file(&path, Arc::clone(content), executable);
                }
            }
        }
    }

    fn file(&mut self, path: &GuestPath, content: Arc<[u8]>, executable: Executable) {
        self.make_way(path);
        let before = self.found.looked.get(path).and_then(Option::as_ref);
        let mode = mode(before.map(|mark| mark.mode), executable);
        let step = Step::File { path: bytes(path), mode, bytes: 0 };
        self.load.push(Load { step, content: Content::Bytes(content) });
    }

    /// Makes the directories above a path that are missing, the outermost first.
    fn make_way(&mut self, path: &GuestPath) {
        let is_there =
            |above: &GuestPath| matches!(self.found.tree.get(above), Some(Node::Directory { .. }));
        let mut missing: Vec<GuestPath> =
            path.ancestors().filter(|above| !is_there(above)).collect();
        missing.retain(|above| self.made.insert(above.clone()));
        for above in missing.iter().rev() {
            self.push(Step::Directory { path: bytes(above), mode: None });
        }
    }

    fn push(&mut self, step: Step) {
        self.load.push(step.into());
    }
}

/// The permissions of a file that had these, if it was there. Who can read it can execute it, or nobody.
fn mode(before: Option<u32>, executable: Executable) -> u32 {
    match (before.map(|mode| mode & 0o777), executable) {
        (None, Executable::No) => NEW_FILE,
        (None, Executable::Yes) => NEW_PROGRAM,
        (Some(mode), Executable::Yes) if mode & 0o100 != 0 => mode,
        (Some(mode), Executable::Yes) => mode | 0o100 | ((mode & 0o444) >> 2),
        (Some(mode), Executable::No) if mode & 0o100 == 0 => mode,
        (Some(mode), Executable::No) => mode & !0o111,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bits_of_a_mode_stay() {
        let check = |before, executable, expected: u32| {
            assert_eq!(mode(before, executable), expected, "{before:?} {executable:?}");
        };
        check(None, Executable::No, 0o644);
        check(None, Executable::Yes, 0o755);
        check(Some(0o640), Executable::No, 0o640);
        check(Some(0o640), Executable::Yes, 0o750);
        check(Some(0o600), Executable::Yes, 0o700);
        check(Some(0o711), Executable::Yes, 0o711);
        check(Some(0o750), Executable::No, 0o640);
        check(Some(0o4755), Executable::Yes, 0o755);
        check(Some(0o200), Executable::Yes, 0o300);
    }
}
