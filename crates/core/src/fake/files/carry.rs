//! Many changes at once, in memory.

use super::tree::{Node, Tree, What, no_file, refused, sha256};
use crate::fake::Fault;
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{
    Before, Failure, Move, Remove, STEP_HEAD_BYTES, Step, Why, Write, step_length,
};

impl Tree {
    /// Carries out what was sent, or leaves all as it was.
    pub(super) fn carry(&mut self, bytes: &[u8]) -> Result<u64, Failure> {
        let steps = steps(bytes).ok_or_else(|| refused(Why::BadRequest, "no step"))?;
        let before = self.nodes.clone();
        for (step, _) in &steps {
            if let Step::Expect { path, is } = step
                && !self.faults.contains(&Fault::FilesCarryStale)
                && !self.is(path, is)?
            {
                return Err(refused(Why::Changed, "something is not what it was"));
            }
        }
        let done = steps.iter().try_for_each(|(step, bytes)| self.step(step, bytes));
        if done.is_err() && !self.faults.contains(&Fault::FilesCarryPart) {
            self.nodes = before;
        }
        done.map(|()| steps.len() as u64)
    }

    fn is(&mut self, path: &ByteString, before: &Before) -> Result<bool, Failure> {
        let node = match self.kept(path) {
            Ok(node) => node,
            Err(Failure { why: Why::NotFound | Why::WrongType, .. }) => {
                return Ok(*before == Before::Nothing);
            }
            Err(failure) => return Err(failure),
        };
        Ok(match (before, &node.what) {
            (Before::File { sha256: hash, mode }, What::File(bytes)) => {
                sha256(bytes).eq_ignore_ascii_case(hash) && node.mode == *mode
            }
            (Before::Link { target }, What::Link(found)) => found == target.as_bytes(),
            (Before::Nothing | Before::File { .. } | Before::Link { .. }, _) => false,
        })
    }

    fn step(&mut self, step: &Step, bytes: &[u8]) -> Result<(), Failure> {
        match step {
            Step::Expect { .. } => Ok(()),
            Step::File { path, mode, .. } => {
                if matches!(self.kept(path), Ok(Node { what: What::Link(_), .. })) {
                    self.gone(path)?;
                }
                let order = Write { path: path.clone(), mode: Some(*mode), ..Write::default() };
                self.write(&order, bytes).map(drop)
            }
            Step::Link { path, target } => match self.kept(path).map(|node| &node.what) {
                Ok(What::Directory) => Err(no_file()),
                Ok(What::File(_) | What::Link(_)) | Err(_) => self.link(path, target.as_bytes()),
            },
            Step::Directory { path, mode } => {
                if !self.make(path)? {
                    return Err(refused(Why::Exists, "something is there already"));
                }
                mode.map_or(Ok(()), |mode| self.set_mode(path, mode).map(drop))
            }
            Step::Remove { path } | Step::RemoveDirectory { path } => self.gone(path),
            Step::Rename { from, to } => {
                self.rename(&Move { from: from.clone(), to: to.clone(), replace: false })
            }
        }
    }

    fn gone(&mut self, path: &ByteString) -> Result<(), Failure> {
        self.remove(&Remove { path: path.clone(), recursive: false })
    }
}

fn steps(mut bytes: &[u8]) -> Option<Vec<(Step, &[u8])>> {
    let mut steps = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<STEP_HEAD_BYTES>()?;
        let (text, rest) = rest.split_at_checked(step_length(*head)?)?;
        let step: Step = serde_json::from_slice(text).ok()?;
        let content = if let Step::File { bytes, .. } = &step { *bytes } else { 0 };
        let (content, rest) = rest.split_at_checked(usize::try_from(content).ok()?)?;
        steps.push((step, content));
        bytes = rest;
    }
    Some(steps)
}
