//! Which commands may have asked for a connection: those that ran when it came.
//!
//! A connection has no owner that the host could see: who made it may have passed it on, or be gone. What
//! can be seen is who ran at that moment, and where that was one command alone, it was that one.

use super::journal::each;
use super::place::Place;
use crate::gate;
use cofferdam_core::{ConnectionReport, Connections, Happened, JournalEntry, Result};

/// What the gate of a sandbox wrote down from this byte on, with who may have asked for it.
pub(super) fn connections(place: &Place, from: u64) -> Result<Connections> {
    let Some(log) = place.read_egress_log() else {
        return Ok(Connections { next: from, ..Connections::default() });
    };
    let mut found = gate::read(&log, from)?;
    // ORDER: after the log, so that whoever asked for what stands there stands here.
    if let Some(journal) = place.journal()?.filter(|_| !found.reports.is_empty()) {
        let mut asked = Asked::default();
        each(&journal, 0, |entry| asked.take(&entry))?;
        asked.name(&mut found.reports);
    }
    Ok(found)
}

/// The commands of a sandbox, with when each began, and when the last process of it was gone.
#[derive(Debug, Default)]
struct Asked(Vec<Span>);

#[derive(Debug)]
struct Span {
    id: String,
    from_ms: u64,
    /// None while it goes on.
    until_ms: Option<u64>,
}

impl Asked {
    /// Takes what the journal says next.
    fn take(&mut self, entry: &JournalEntry) {
        let at_ms = entry.at_ms;
        match &entry.happened {
            Happened::ExecStarted(status) => {
                let id = status.id.to_string();
                self.0.push(Span { id, from_ms: at_ms, until_ms: None });
            }
            // What it left goes on.
            Happened::ExecEnded(status) if status.left.is_some() => {}
            Happened::ExecEnded(status) | Happened::ExecEmptied(status) => {
                let id = status.id.as_str();
                let span = self.0.iter_mut().rev().find(|span| span.id == id);
                span.into_iter().for_each(|span| span.until_ms = Some(at_ms));
            }
            Happened::Destroyed(_) => {
                let open = self.0.iter_mut().filter(|span| span.until_ms.is_none());
                open.for_each(|span| span.until_ms = Some(at_ms));
            }
            Happened::Provisioned(_)
            | Happened::NotProvisioned(_)
            | Happened::Paused { .. }
            | Happened::SecretAlarm(_)
            | Happened::Resumed
            | Happened::Deadlines(_)
            | Happened::Leftover(_)
            | Happened::ControlFiles(_)
            | Happened::PermissionRequested(_)
            | Happened::PermissionSettled { .. }
            | Happened::PermissionDropped(_)
            | Happened::ConnectionDenied { .. } => {}
        }
    }

    /// Says it in each report that is about a connection.
    fn name(mut self, reports: &mut [ConnectionReport]) {
        let is_one = |report: &&mut ConnectionReport| report.id != 0;
        let first = reports.iter().map(|report| report.at_ms).min().unwrap_or(0);
        self.0.retain(|span| span.until_ms.is_none_or(|until_ms| until_ms >= first));
        for report in reports.iter_mut().filter(is_one) {
            report.execs = Some(self.at(report.at_ms));
        }
    }

    fn at(&self, ms: u64) -> Vec<String> {
        let ran = |span: &&Span| {
            span.from_ms <= ms && span.until_ms.is_none_or(|until_ms| until_ms >= ms)
        };
        self.0.iter().filter(ran).map(|span| span.id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{DestroyReason, ExecStatus, ProcessId, Spooled};

    fn status(id: &str, left: Option<u32>) -> Box<ExecStatus> {
        Box::new(ExecStatus {
            id: ProcessId::new(id).unwrap(),
            argv: vec!["true".to_owned()],
            detached: left.is_some(),
            terminal: false,
            stops: 0,
            started_ms: 0,
            ended: None,
            left,
            stdout: Spooled::default(),
            stderr: Spooled::default(),
        })
    }

    fn asked(entries: Vec<(u64, Happened)>) -> Asked {
        let mut asked = Asked::default();
        for (at_ms, happened) in entries {
            asked.take(&JournalEntry { seq: 1, at_ms, happened });
        }
        asked
    }

    #[test]
    fn a_connection_is_of_those_that_ran_or_left_processes_when_it_came() {
        let asked = asked(vec![
            (10, Happened::ExecStarted(status("a", None))),
            (20, Happened::ExecStarted(status("b", None))),
            (30, Happened::ExecEnded(status("a", None))),
            (40, Happened::ExecEnded(status("b", Some(1)))),
            (60, Happened::ExecEmptied(status("b", None))),
            (70, Happened::ExecStarted(status("c", None))),
            (80, Happened::Destroyed(DestroyReason::Success)),
        ]);
        for (at_ms, expected) in [
            (9, &[][..]),
            (10, &["a"][..]),
            (25, &["a", "b"][..]),
            (30, &["a", "b"][..]),
            (31, &["b"][..]),
            (50, &["b"][..]),
            (61, &[][..]),
            (75, &["c"][..]),
            (81, &[][..]),
        ] {
            assert_eq!(asked.at(at_ms), expected, "{at_ms}");
        }
        let mut of_itself = [ConnectionReport::of_the_gate(25, 1, "it ended")];
        let mut one = [ConnectionReport { id: 7, ..of_itself[0].clone() }];
        Asked::default().name(&mut of_itself);
        assert_eq!(of_itself[0].execs, None);
        asked.name(&mut one);
        assert_eq!(one[0].execs.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
    }
}
