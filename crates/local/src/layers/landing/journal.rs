//! What is written down of changes that land, before each thing is done: lines of JSON in a record of
//! the state directory. Format 2.

use super::super::look::Id;
use super::place::Place;
use crate::state::Record;
use cofferdam_core::{ByteString, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

const FORMAT: u32 = 2;
/// Of landings that were all staged in the workspace.
const EARLIER: u32 = 1;

/// Where changes land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) format: u32,
    /// The folder of the layer.
    pub(super) folder: ByteString,
    pub(super) workspace: String,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// The name of a directory that holds what comes and what went.
    pub(super) stage: String,
    /// In what that directory lies.
    #[serde(default)]
    pub(super) place: Place,
}

/// The SHA-256 of what a file holds, or of where a link leads.
pub(super) type Sum = [u8; 32];

/// One step. What it needs is in the stage under the step's number, and so is what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Op {
    /// Something goes to the stage. `held` is what it held, where others must not change that.
    Take {
        path: ByteString,
        was: Id,
        #[serde(default)]
        held: Option<Sum>,
    },
    /// Something comes from the stage, in exchange for what was there.
    Put {
        path: ByteString,
        new: Id,
        was: Option<Id>,
        #[serde(default)]
        held: Option<Sum>,
    },
    /// A file that has no name comes, after what was there went to the stage.
    Name { path: ByteString, new: Id, was: Option<Id>, held: Option<Sum> },
    /// A directory gets other permissions.
    Mode { path: ByteString, of: Id, from: u32, to: u32 },
}

#[derive(Debug, Serialize, Deserialize)]
enum Line {
    Head(Head),
    Ops { ops: Vec<Op>, untouched: Vec<ByteString> },
    Landed,
    Undone,
}

/// How far somebody came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journal {
    pub(super) head: Head,
    pub(super) ops: Vec<Op>,
    /// The directories in which something was to land and nobody else had changed anything.
    pub(super) untouched: Vec<Vec<u8>>,
    /// All steps were done.
    pub(super) landed: bool,
    /// All that were done are undone.
    pub(super) undone: bool,
}

impl Head {
    pub(super) fn new(
        folder: ByteString,
        (workspace, device, inode): (String, u64, u64),
        (stage, place): (String, Place),
    ) -> Self {
        Self { format: FORMAT, folder, workspace, device, inode, stage, place }
    }

    fn is_understood(&self) -> bool {
        matches!(self.format, EARLIER | FORMAT)
    }

    pub(super) fn note(&self, record: &Record) -> Result<()> {
        add(record, &Line::Head(self.clone()))
    }
}

/// Writes down all steps, before the first.
pub(super) fn note_ops(record: &Record, ops: &[Op], untouched: &[Vec<u8>]) -> Result<()> {
    let untouched = untouched.iter().map(|path| ByteString::from(path.clone())).collect();
    add(record, &Line::Ops { ops: ops.to_vec(), untouched })
}

/// Writes down that all steps were done: from here on nothing is undone.
pub(super) fn note_landed(record: &Record) -> Result<()> {
    add(record, &Line::Landed)
}

/// Writes down that all steps which were done are undone: from here on the stage tells nothing any more.
pub(super) fn note_undone(record: &Record) -> Result<()> {
    add(record, &Line::Undone)
}

fn add(record: &Record, line: &Line) -> Result<()> {
    let mut text = serde_json::to_vec(line)
        .map_err(|error| Error::new(ErrorKind::Io, "write down what lands").source(error))?;
    text.push(b'\n');
    record.append(&text)
}

/// Reads what somebody wrote down; `None` where he died before the first line was whole.
pub(super) fn read(content: &[u8]) -> Result<Option<Journal>> {
    let mut journal: Option<Journal> = None;
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        // A line without an end was never followed by anything.
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            Error::new(ErrorKind::Unsupported, "its record is of another version, or damaged")
                .source(error)
        })?;
        match (line, &mut journal) {
            // One that comes later begins anew: what was before it was undone, and thrown away.
            (Line::Head(head), begun)
                if head.is_understood() && begun.as_ref().is_none_or(|begun| !begun.landed) =>
            {
                let (ops, untouched) = (Vec::new(), Vec::new());
                *begun = Some(Journal { head, ops, untouched, landed: false, undone: false });
            }
            (Line::Ops { ops, untouched }, Some(journal)) => {
                journal.ops = ops;
                let paths = untouched.iter();
                journal.untouched = paths.map(|path| path.as_bytes().to_vec()).collect();
            }
            (Line::Landed, Some(journal)) if !journal.undone => journal.landed = true,
            (Line::Undone, Some(journal)) if !journal.landed => journal.undone = true,
            (Line::Head(_) | Line::Ops { .. } | Line::Landed | Line::Undone, _) => {
                let what = "its record is of another version, or damaged";
                return Err(Error::new(ErrorKind::Unsupported, what));
            }
        }
    }
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(place: Place) -> Head {
        let folder = ByteString::from(b"/cow".to_vec());
        Head::new(folder, ("/w".to_owned(), 1, 2), (format!("stage-{place:?}"), place))
    }

    fn lines(lines: &[Line]) -> Vec<u8> {
        let line = |line: &Line| [serde_json::to_vec(line).unwrap(), b"\n".to_vec()].concat();
        lines.iter().flat_map(line).collect()
    }

    #[test]
    fn a_later_place_counts_and_nothing_begins_anew_after_all_landed() {
        let path = ByteString::from(b"a".to_vec());
        let was = Id { device: 1, inode: 3 };
        let ops = || Line::Ops {
            ops: vec![Op::Take { path: path.clone(), was, held: None }],
            untouched: Vec::new(),
        };
        let both = [Line::Head(head(Place::Records)), ops(), Line::Head(head(Place::Workspace))];
        let journal = read(&lines(&both)).unwrap().unwrap();
        assert_eq!((journal.head, journal.ops.len()), (head(Place::Workspace), 0));
        let [first, second, third] = both;
        let landed = [first, second, Line::Landed, third];
        assert_eq!(read(&lines(&landed)).unwrap_err().kind, ErrorKind::Unsupported);
        // The control.
        let journal = read(&lines(&landed[..3])).unwrap().unwrap();
        assert_eq!((journal.head, journal.ops.len()), (head(Place::Records), 1));
        assert!(journal.landed);
    }
}
