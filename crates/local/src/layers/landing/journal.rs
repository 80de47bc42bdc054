//! What is written down of changes that land, before each thing is done: lines of JSON in a record of
//! the state directory. Format 1.

use super::super::look::Id;
use crate::state::Record;
use cofferdam_core::{ByteString, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

const FORMAT: u32 = 1;

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
    /// The name of a directory in the workspace that holds what comes and what went.
    pub(super) stage: String,
}

/// One step. What it needs is in the stage under the step's number, and so is what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Op {
    /// Something goes to the stage.
    Take { path: ByteString, was: Id },
    /// Something comes from the stage, in exchange for what was there.
    Put { path: ByteString, new: Id, was: Option<Id> },
    /// A directory gets other permissions.
    Mode { path: ByteString, of: Id, from: u32, to: u32 },
}

#[derive(Debug, Serialize, Deserialize)]
enum Line {
    Head(Head),
    Ops { ops: Vec<Op>, untouched: Vec<ByteString> },
    Landed,
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
}

impl Head {
    pub(super) fn new(
        folder: ByteString,
        (workspace, device, inode): (String, u64, u64),
        stage: String,
    ) -> Self {
        Self { format: FORMAT, folder, workspace, device, inode, stage }
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

fn add(record: &Record, line: &Line) -> Result<()> {
    let mut text = serde_json::to_vec(line)
        .map_err(|error| Error::new(ErrorKind::Io, "write down what lands").source(error))?;
    text.push(b'\n');
    record.append(&text)
}

/// Reads what somebody wrote down; `None` where he died before the first line was whole.
pub(super) fn read(content: &[u8]) -> Result<Option<Journal>> {
    let mut journal = None;
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        // A line without an end was never followed by anything.
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            Error::new(ErrorKind::Unsupported, "its record is of another version, or damaged")
                .source(error)
        })?;
        match (line, &mut journal) {
            (Line::Head(head), None) if head.format == FORMAT => {
                let (ops, untouched) = (Vec::new(), Vec::new());
                journal = Some(Journal { head, ops, untouched, landed: false });
            }
            (Line::Ops { ops, untouched }, Some(journal)) => {
                journal.ops = ops;
                let paths = untouched.iter();
                journal.untouched = paths.map(|path| path.as_bytes().to_vec()).collect();
            }
            (Line::Landed, Some(journal)) => journal.landed = true,
            (Line::Head(_) | Line::Ops { .. } | Line::Landed, _) => {
                let what = "its record is of another version, or damaged";
                return Err(Error::new(ErrorKind::Unsupported, what));
            }
        }
    }
    Ok(journal)
}
