//! What a journal tells of a sandbox whose keeper is gone, and the end that it is owed.

use super::journal::{Journal, each, first, last};
use super::place::Place;
use crate::state::StateDirectory;
use cofferdam_core::{
    DestroyReason, Ending, Error, ErrorKind, ExecEnded, ExecStatus, Happened, JournalEntry,
    ProcessId, Result, SandboxRecord, Standard, UsageReport,
};
use std::collections::BTreeMap;

/// What happened to a sandbox.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) record: Option<SandboxRecord>,
    execs: Vec<ExecStatus>,
    /// When those without an ending last wrote something.
    wrote_ms: BTreeMap<ProcessId, u64>,
    /// Whether its end is written down.
    pub(super) is_over: bool,
    last_ms: u64,
}

/// Of what a journal tells the least, at a cost that does not grow with what happened.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) record: Option<SandboxRecord>,
    /// Whether its end is written down.
    pub(super) is_over: bool,
}

impl Outline {
    pub(super) fn read(place: &Place) -> Result<Self> {
        let Some(journal) = place.journal()? else { return Ok(Self::default()) };
        let record = first(&journal, |entry| {
            let Happened::Provisioned(record) = entry.happened else { return None };
            Some(*record)
        })?;
        // Nothing is written behind the end.
        let last = last(&journal)?.map(|entry| entry.happened);
        Ok(Self { record, is_over: matches!(last, Some(Happened::Destroyed(_))) })
    }
}

impl Past {
    pub(super) fn read(place: &Place) -> Result<Self> {
        let mut past = Self::default();
        if let Some(journal) = place.journal()? {
            each(&journal, 0, |entry| past.take(entry))?;
        }
        let goes_on = |exec: &&mut ExecStatus| exec.left.is_some() || exec.ended.is_none();
        for exec in past.execs.iter_mut().filter(goes_on) {
            exec.stdout = place.counted(&exec.id, Standard::Output).unwrap_or(exec.stdout);
            exec.stderr = place.counted(&exec.id, Standard::Error).unwrap_or(exec.stderr);
            if exec.ended.is_none() {
                let streams = [Standard::Output, Standard::Error];
                let wrote = streams.map(|stream| place.wrote_ms(&exec.id, stream).unwrap_or(0));
                past.wrote_ms.insert(exec.id.clone(), wrote.into_iter().max().unwrap_or(0));
            }
        }
        Ok(past)
    }

    fn take(&mut self, entry: JournalEntry) {
        self.last_ms = entry.at_ms;
        match entry.happened {
            Happened::Provisioned(record) => self.record = Some(*record),
            Happened::ExecStarted(status) => self.execs.push(*status),
            Happened::ExecEnded(status) | Happened::ExecEmptied(status) => {
                match self.execs.iter_mut().rev().find(|exec| exec.id == status.id) {
                    Some(exec) => *exec = *status,
                    None => self.execs.push(*status),
                }
            }
            Happened::Destroyed(_) => self.is_over = true,
            Happened::NotProvisioned(_)
            | Happened::Paused { .. }
            | Happened::SecretAlarm(_)
            | Happened::Resumed
            | Happened::Deadlines(_)
            | Happened::Leftover(_)
            | Happened::ControlFiles(_)
            | Happened::PermissionRequested(_)
            | Happened::PermissionDropped(_)
            | Happened::PermissionSettled { .. }
            | Happened::ConnectionDenied { .. } => {}
        }
    }

    /// Its commands. One whose end nobody wrote down was lost with its keeper, and so was what others
    /// had left. Nobody saw when: it ended no earlier than it or the sandbox last gave a sign.
    pub(super) fn execs(&self) -> Vec<ExecStatus> {
        let lost = |id| ExecEnded {
            ending: Ending::Lost,
            at_ms: self.wrote_ms.get(id).copied().unwrap_or(0).max(self.last_ms),
            usage: UsageReport::default(),
            killed_descendants: None,
            denials: Vec::new(),
        };
        let mut execs = self.execs.clone();
        for exec in &mut execs {
            exec.ended.get_or_insert_with(|| lost(&exec.id));
            exec.left = None;
        }
        execs
    }

    /// Whether a command has such a stream. There is no file of one to which nothing was written.
    pub(super) fn may_write(&self, id: &ProcessId, stream: Standard) -> bool {
        let exec = self.execs.iter().rev().find(|exec| exec.id == *id);
        exec.is_some_and(|exec| stream == Standard::Output || !exec.terminal)
    }

    pub(super) fn exec(&self, id: &ProcessId) -> Result<ExecStatus> {
        self.execs().into_iter().rev().find(|exec| exec.id == *id).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no command {id} is known in this sandbox"))
                .hint("List the commands with `cofferdam ps`.")
        })
    }
}

/// Gives a sandbox that was found dead its end: takes away what it left, then writes that down.
/// Repeating it changes nothing.
pub(super) fn settle(place: &Place, state: &StateDirectory) -> Result<()> {
    let lock = place.take_over()?;
    place.await_first()?;
    let report = state.sweep()?;
    let past = Past::read(place)?;
    place.remove_socket();
    if past.is_over || past.record.is_none() {
        return Ok(());
    }
    let mut journal = Journal::open(lock)?;
    for (written, status) in past.execs.iter().zip(past.execs()) {
        match written.ended {
            None => drop(journal.add(Happened::ExecEnded(Box::new(status)))),
            Some(_) if written.left.is_some() => {
                journal.add(Happened::ExecEmptied(Box::new(status)));
            }
            Some(_) => {}
        }
    }
    for kept in report.kept {
        journal.add(Happened::Leftover(kept));
    }
    journal.add(Happened::Destroyed(DestroyReason::Lost));
    match journal.is_whole() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Io, "write the end of the sandbox into its journal")
            .hint("Make room on the disk of the state directory.")),
    }
}
