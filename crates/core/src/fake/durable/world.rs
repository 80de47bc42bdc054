//! The sandboxes of a world, and what is written down about them.

use super::network::{NetworkFault, WayOut};
use super::{Call, Mishap, Ticks};
use crate::fake::files::{Access, FakeFiles};
use crate::{
    Basis, Chunk, Deadlines, DestroyReason, Ending, Enforced, Error, ErrorKind, ExecEnded,
    ExecInput, ExecStatus, Found, Happened, JournalEntry, Part, PausedBy, ProcessId, Result,
    SandboxId, SandboxMetrics, SandboxOrder, SandboxRecord, SandboxStatus, SecretAlarm, Standard,
    UsageReport,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};

/// What outlives every process.
#[derive(Debug)]
pub(super) struct World {
    state: Mutex<State>,
    version: watch::Sender<u64>,
    pub(super) crashed: Notify,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sandboxes: BTreeMap<SandboxId, Sandbox>,
    pub(super) faults: BTreeSet<NetworkFault>,
    pub(super) mishaps: Vec<(Call, usize, Mishap)>,
    pub(super) calls: Vec<Call>,
    pub(super) ticks: Ticks,
}

#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) order: SandboxOrder,
    pub(super) status: SandboxStatus,
    pub(super) execs: Vec<Exec>,
    pub(super) files: Arc<FakeFiles>,
    pub(super) way_out: WayOut,
    record: SandboxRecord,
    journal: Vec<JournalEntry>,
    /// What it is frozen for.
    alarm: Option<SecretAlarm>,
}

/// What whoever lets a sandbox go on knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knows {
    Nothing,
    OfAlarms,
}

#[derive(Debug)]
pub(super) struct Exec {
    pub(super) argv: Vec<OsString>,
    pub(super) status: ExecStatus,
    pub(super) spool_bytes: u64,
    pub(super) max_output_bytes: Option<u64>,
    pub(super) streams: [Vec<u8>; 2],
    pub(super) input: Vec<u8>,
    pub(super) children: u32,
    pub(super) closed: bool,
}

impl Default for World {
    fn default() -> Self {
        Self { state: Mutex::default(), version: watch::Sender::new(0), crashed: Notify::new() }
    }
}

impl World {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something and wakes those who wait for news.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let done = change(&mut self.state());
        self.version.send_modify(|version| *version += 1);
        done
    }

    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}

impl State {
    /// The mishap of this call, if its turn has come.
    pub(super) fn next_mishap(&mut self, call: Call) -> Option<Mishap> {
        self.calls.push(call);
        let mut due = None;
        for (at, (of, nth, mishap)) in self.mishaps.iter_mut().enumerate() {
            if *of == call {
                *nth = nth.saturating_sub(1);
                if *nth == 0 && due.is_none() {
                    due = Some((at, *mishap));
                }
            }
        }
        let (at, mishap) = due?;
        self.mishaps.remove(at);
        Some(mishap)
    }

    pub(super) fn alive(&self) -> Vec<SandboxId> {
        let alive = self.sandboxes.iter().filter(|(_, s)| s.status != SandboxStatus::Gone);
        alive.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn create(
        &mut self,
        id: SandboxId,
        order: SandboxOrder,
        backend: &str,
    ) -> Result<SandboxRecord> {
        if self.sandboxes.contains_key(&id) {
            return Err(Error::new(ErrorKind::Conflict, format!("sandbox id {id} is in use")));
        }
        let record = SandboxRecord {
            external_id: format!("fake-{id}"),
            id: id.clone(),
            backend: backend.to_owned(),
            workspace: "/workspace".to_owned(),
            enforced: Enforced::full(Basis::Applied),
            layer: None,
        };
        let way_out = WayOut::new(order.spec.network_policy()?);
        let mut sandbox = Sandbox {
            order,
            way_out,
            status: SandboxStatus::Running,
            execs: Vec::new(),
            files: Arc::new(FakeFiles::new(Access::ReadWrite, BTreeSet::new())),
            record: record.clone(),
            journal: Vec::new(),
            alarm: None,
        };
        sandbox.write(Happened::Provisioned(Box::new(record.clone())));
        self.sandboxes.insert(id, sandbox);
        Ok(record)
    }

    pub(super) fn status(&self, id: &SandboxId) -> SandboxStatus {
        self.sandboxes.get(id).map_or(SandboxStatus::Gone, |sandbox| sandbox.status)
    }

    /// The sandbox, if it lives.
    pub(super) fn living(&mut self, id: &SandboxId) -> Result<&mut Sandbox> {
        let living = self.sandboxes.get_mut(id).filter(|s| s.status != SandboxStatus::Gone);
        living.ok_or_else(|| gone(id))
    }

    /// One process for it, and one for each command that has not ended.
    pub(super) fn metrics(&mut self, id: &SandboxId) -> Result<SandboxMetrics> {
        let sandbox = self.living(id)?;
        let running = sandbox.execs.iter().filter(|exec| exec.status.ended.is_none()).count();
        let processes = u32::try_from(running).unwrap_or(u32::MAX).saturating_add(1);
        Ok(SandboxMetrics { processes, ..SandboxMetrics::default() })
    }

    pub(super) fn pause(&mut self, id: &SandboxId, idle: bool) -> Result<()> {
        let sandbox = self.living(id)?;
        if sandbox.status == SandboxStatus::Running {
            sandbox.status = SandboxStatus::Paused;
            sandbox.write(Happened::Paused { idle, how: PausedBy::Freezer });
        }
        Ok(())
    }

    pub(super) fn raise(&mut self, id: &SandboxId, alarm: SecretAlarm) -> Result<()> {
        let sandbox = self.living(id)?;
        sandbox.write(Happened::SecretAlarm(alarm.clone()));
        sandbox.alarm = Some(alarm);
        self.pause(id, false)
    }

    pub(super) fn resume(&mut self, id: &SandboxId, knows: Knows) -> Result<()> {
        let sandbox = self.living(id)?;
        match (sandbox.alarm.take(), knows) {
            (Some(alarm), Knows::Nothing) => {
                let error = alarm.freezes(&format!("sandbox {id}"));
                sandbox.alarm = Some(alarm);
                return Err(error);
            }
            (Some(_), Knows::OfAlarms) | (None, Knows::Nothing | Knows::OfAlarms) => {}
        }
        if sandbox.status == SandboxStatus::Paused {
            sandbox.status = SandboxStatus::Running;
            sandbox.write(Happened::Resumed);
        }
        Ok(())
    }

    pub(super) fn set_deadlines(&mut self, id: &SandboxId, deadlines: Deadlines) -> Result<()> {
        let sandbox = self.living(id)?;
        sandbox.order.deadlines = deadlines;
        sandbox.write(Happened::Deadlines(deadlines));
        Ok(())
    }

    pub(super) fn destroy(&mut self, id: &SandboxId, reason: DestroyReason) {
        let Ok(sandbox) = self.living(id) else { return };
        sandbox.status = SandboxStatus::Gone;
        let ending = match reason {
            DestroyReason::Lease => Ending::Killed(crate::Cause::Lease),
            DestroyReason::Lost => Ending::Lost,
            DestroyReason::Timeout => Ending::Killed(crate::Cause::Time),
            DestroyReason::Success | DestroyReason::Error | DestroyReason::Canceled => {
                Ending::Canceled
            }
        };
        for at in 0..sandbox.execs.len() {
            sandbox.end(at, ending.clone());
            sandbox.empty(at);
        }
        sandbox.write(Happened::Destroyed(reason));
    }

    pub(super) fn vanish(&mut self, id: &SandboxId) {
        if let Ok(sandbox) = self.living(id) {
            sandbox.status = SandboxStatus::Gone;
        }
    }

    pub(super) fn forget(&mut self, id: &SandboxId) -> Result<()> {
        if self.status(id) != SandboxStatus::Gone {
            return Err(Error::new(ErrorKind::Conflict, format!("sandbox {id} is not gone")));
        }
        self.sandboxes.remove(id);
        Ok(())
    }

    pub(super) fn pass_time(&mut self, now_ms: u64) {
        for id in self.alive() {
            let Some(deadlines) = self.sandboxes.get(&id).map(|s| s.order.deadlines) else {
                continue;
            };
            if deadlines.run_until_ms.is_some_and(|until| until <= now_ms) {
                self.destroy(&id, DestroyReason::Timeout);
            } else if deadlines.lease_until_ms.is_some_and(|until| until <= now_ms) {
                self.destroy(&id, DestroyReason::Lease);
            }
        }
    }

    pub(super) fn list(&self) -> Vec<Found> {
        let found = self.sandboxes.iter().map(|(id, sandbox)| Found {
            id: id.clone(),
            record: (sandbox.status != SandboxStatus::Gone).then(|| sandbox.record.clone()),
            status: sandbox.status,
            unreachable: None,
        });
        found.collect()
    }

    pub(super) fn journal(&self, id: &SandboxId, after: u64) -> Result<Vec<JournalEntry>> {
        let sandbox = self.sandboxes.get(id).ok_or_else(|| gone(id))?;
        Ok(sandbox.journal.iter().filter(|entry| entry.seq > after).cloned().collect())
    }

    pub(super) fn execs(&mut self, id: &SandboxId) -> Result<Vec<ExecStatus>> {
        Ok(self.living(id)?.execs.iter().map(|exec| exec.status.clone()).collect())
    }

    pub(super) fn exec_status(&mut self, id: &SandboxId, exec: &ProcessId) -> Result<ExecStatus> {
        Ok(self.living(id)?.exec(exec)?.status.clone())
    }

    pub(super) fn read(&mut self, id: &SandboxId, exec: &ProcessId, part: Part) -> Result<Chunk> {
        let sandbox = self.sandboxes.get_mut(id).ok_or_else(|| gone(id))?;
        let exec = sandbox.exec(exec)?;
        let (kept, spooled) = match part.stream {
            Standard::Output => (&exec.streams[0], exec.status.stdout),
            Standard::Error => (&exec.streams[1], exec.status.stderr),
        };
        let offset = part.offset.max(spooled.dropped).min(spooled.written);
        let from = usize::try_from(offset - spooled.dropped).unwrap_or(usize::MAX);
        let len = usize::try_from(part.len).unwrap_or(usize::MAX);
        let bytes = kept.iter().skip(from).take(len).copied().collect();
        Ok(Chunk { offset, bytes })
    }

    pub(super) fn input(
        &mut self,
        id: &SandboxId,
        exec: &ProcessId,
        input: ExecInput,
    ) -> Result<()> {
        let sandbox = self.living(id)?;
        let paused = sandbox.status == SandboxStatus::Paused;
        let at = sandbox.position(exec)?;
        let exec = sandbox.exec(exec)?;
        let harmless = matches!(input, ExecInput::Kill | ExecInput::Close);
        if exec.status.ended.is_some() {
            let takes = matches!(input, ExecInput::Kill | ExecInput::Signal(_));
            if exec.status.left.is_some() && takes && !paused {
                sandbox.empty(at);
                return Ok(());
            }
            let what = format!("command {} has ended", exec.status.id);
            let error = Error::new(ErrorKind::Conflict, what).hint("Start another one.");
            return if harmless { Ok(()) } else { Err(error) };
        }
        if paused && !harmless {
            let error = Error::new(ErrorKind::Conflict, format!("sandbox {id} is paused"));
            return Err(error.hint("Resume it first."));
        }
        match input {
            ExecInput::Bytes(bytes) => exec.input.extend(bytes),
            ExecInput::Close => exec.closed = true,
            ExecInput::Resize(_) | ExecInput::Unread(_) => {}
            ExecInput::Signal(signal) => sandbox.end(at, Ending::Signaled(signal)),
            ExecInput::Kill => sandbox.end(at, Ending::Canceled),
        }
        Ok(())
    }
}

impl Sandbox {
    pub(super) fn write(&mut self, happened: Happened) {
        let seq = self.journal.len() as u64 + 1;
        self.journal.push(JournalEntry { seq, at_ms: now_ms(), happened });
    }

    pub(super) fn position(&self, id: &ProcessId) -> Result<usize> {
        let at = self.execs.iter().position(|exec| exec.status.id == *id);
        at.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no command {id}")))
    }

    pub(super) fn exec(&mut self, id: &ProcessId) -> Result<&mut Exec> {
        let found = self.execs.iter_mut().find(|exec| exec.status.id == *id);
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no command {id}")))
    }

    /// Ends a command unless it has ended.
    pub(super) fn end(&mut self, at: usize, ending: Ending) {
        let Some(exec) = self.execs.get_mut(at).filter(|exec| exec.status.ended.is_none()) else {
            return;
        };
        let usage = UsageReport::default();
        let killed = matches!(ending, Ending::Killed(_) | Ending::Canceled | Ending::Lost)
            || ending == Ending::Signaled(9);
        let leaves = exec.status.detached && exec.children > 0 && !killed;
        exec.status.left = leaves.then_some(exec.children);
        let killed_descendants = (!exec.status.detached).then_some(exec.children);
        let denials = Vec::new();
        exec.status.ended =
            Some(ExecEnded { ending, at_ms: now_ms(), usage, killed_descendants, denials });
        let status = Box::new(exec.status.clone());
        self.write(Happened::ExecEnded(status));
    }

    /// Ends what a command left, if it left something.
    pub(super) fn empty(&mut self, at: usize) {
        let Some(exec) = self.execs.get_mut(at).filter(|exec| exec.status.left.is_some()) else {
            return;
        };
        exec.status.left = None;
        let status = Box::new(exec.status.clone());
        self.write(Happened::ExecEmptied(status));
    }
}

pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn gone(id: &SandboxId) -> Error {
    Error::new(ErrorKind::NotFound, format!("sandbox {id} is gone"))
}
