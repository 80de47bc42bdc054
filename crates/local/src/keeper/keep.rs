//! The one loop of a keeper: its sandbox's line, its clients, what commands write, the clock.

use super::clock::Clock;
use super::execs::Execs;
use super::journal::{Journal, now_ms};
use super::place::Place;
use super::serve::Conn;
use super::stop::{Stop, give_back_memory};
use super::tree::children;
use crate::assemble::Assembly;
use crate::cgroup::{Cgroups, Counters};
use crate::gate::Gatehouse;
use crate::launch::{Born, io_error};
use crate::sys;
use crate::watchman::Watchman;
use cofferdam_core::secret::{Mask, SecretValue};
use cofferdam_core::{
    Deadlines, DestroyReason, Error, ErrorKind, Happened, PausedBy, Result, SandboxRecord,
    SecretAlarm,
};
use cofferdam_guestd::line::Line;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long to wait where nothing has a time. Then it looks whether anybody can still find it.
const LONG: Duration = Duration::from_secs(30);
/// When an entry that the disk did not take is tried again.
const FLUSH_AFTER: Duration = Duration::from_millis(500);
/// After this long without anything to do, memory is given back.
const QUIET: Duration = Duration::from_millis(250);
/// How many of the commands that run are written down beside a denial.
const MAX_EXECS_TOLD: usize = 16;

/// A sandbox and all that is known of it.
pub(super) struct Keeper<'a> {
    pub(super) place: &'a Place,
    pub(super) record: SandboxRecord,
    pub(super) assembly: &'a Assembly,
    pub(super) born: &'a Born,
    pub(super) counters: Counters,
    pub(super) journal: Journal,
    pub(super) line: Line,
    pub(super) pins: Option<Watchman<'a>>,
    /// Who holds the way out, if there is one.
    pub(super) gate: Option<Gatehouse>,
    pub(super) execs: Execs,
    pub(super) conns: BTreeMap<u64, Conn>,
    pub(super) next_conn: u64,
    pub(super) listener: OwnedFd,
    pub(super) stop: Stop,
    pub(super) paused: Option<PausedBy>,
    /// It is paused for a moment only, and nobody was told.
    pub(super) is_held: bool,
    /// The process that asked for that moment, which ends with it.
    pub(super) holder: Option<OwnedFd>,
    /// Whether the memory of what was just paused is still to be given back.
    pub(super) wants_memory: bool,
    /// A copy of this process that gives memory back.
    pub(super) reclaiming: Option<OwnedFd>,
    pub(super) clock: Clock,
    pub(super) deadlines: Deadlines,
    /// Since when the time of idleness counts; `None` while it does not.
    pub(super) idle_since: Option<Instant>,
    /// Whether memory may be free that was not given back.
    pub(super) holds_memory: bool,
    /// The private space, once it was looked at.
    pub(super) private: Option<OwnedFd>,
    /// The secrets that its commands were ever given, and what covers them.
    pub(super) secrets: Vec<SecretValue>,
    pub(super) mask: Option<Mask>,
    /// Why it is paused, where only somebody who knows of that lets it go on.
    pub(super) alarm: Option<SecretAlarm>,
    /// The rules of its commands, where they can come to be about another layer.
    pub(super) rules: Option<OwnedFd>,
    /// The process in which the layer ends that was mounted before.
    pub(super) renewing: Option<OwnedFd>,
    /// Nothing runs in it but its first process, so that nobody looks after its pins until the next request.
    pub(super) at_rest: bool,
    /// The client that has had it cleared for another layer.
    pub(super) cleared: Option<u64>,
    /// Why the sandbox is to end.
    pub(super) over: Option<DestroyReason>,
}

/// Which of the descriptors are waited on, in order.
#[derive(Clone, Copy)]
enum About {
    Line,
    Gone,
    Listener,
    Calendar,
    Idle,
    Pins,
    Reclaiming,
    Renewing,
    Holder,
    Gate,
    Conn(u64),
    Output(u32),
    Input,
}

impl<'a> Keeper<'a> {
    /// Takes over a sandbox that stands.
    pub(super) fn new(
        (place, journal): (&'a Place, Journal),
        (assembly, born, line): (&'a Assembly, &'a Born, Line),
        record: SandboxRecord,
        (listener, gate, rules): (OwnedFd, Option<Gatehouse>, Option<OwnedFd>),
        deadlines: Deadlines,
    ) -> Result<Self> {
        Ok(Self {
            place,
            record,
            assembly,
            born,
            counters: assembly.cgroups().map(Cgroups::counters).unwrap_or_default(),
            journal,
            line,
            pins: Watchman::start(assembly, born)?,
            gate,
            execs: Execs::new(),
            conns: BTreeMap::new(),
            next_conn: 0,
            listener,
            stop: Stop::new(assembly, born),
            paused: None,
            is_held: false,
            holder: None,
            wants_memory: false,
            reclaiming: None,
            clock: Clock::new()?,
            deadlines,
            idle_since: None,
            holds_memory: true,
            private: None,
            secrets: Vec::new(),
            mask: None,
            alarm: None,
            rules,
            renewing: None,
            at_rest: false,
            cleared: None,
            over: None,
        })
    }

    /// Keeps it until it is over, and says why it is.
    pub(super) fn keep(&mut self) -> DestroyReason {
        self.set_calendar();
        loop {
            if let Some(reason) = self.over {
                return reason;
            }
            if self.turn().is_err() {
                // Without its own descriptors a keeper keeps nothing.
                return DestroyReason::Lost;
            }
        }
    }

    fn turn(&mut self) -> Result<()> {
        if self.line.flush().is_err() {
            self.over.get_or_insert(DestroyReason::Lost);
        }
        let ready = self.wait()?;
        let quiet = ready.is_empty();
        for about in ready {
            match about {
                About::Line => self.hear(),
                About::Gone => self.gone(),
                About::Listener => self.accept(),
                About::Calendar => self.set_calendar(),
                About::Idle => self.ring(),
                About::Pins => self.look_after_pins_or_rest(),
                About::Reclaiming => self.reap_reclaiming(),
                About::Renewing => self.reap_renewing(),
                About::Holder => self.let_go(),
                About::Gate => self.turn_gate(),
                About::Conn(number) => self.hear_conn(number),
                About::Output(channel) => self.spool(channel),
                About::Input => {}
            }
        }
        if !self.journal.is_whole() {
            self.journal.flush();
        }
        self.end_what_stays_cleared();
        self.enforce_calendar();
        self.enforce_timeouts();
        self.pay_inputs();
        self.answer_parked();
        self.look_for_use();
        // ORDER: after the answers, because a copy of this process takes longer than a pause.
        if std::mem::take(&mut self.wants_memory)
            && self.paused.is_some()
            && self.reclaiming.is_none()
        {
            self.reclaiming = give_back_memory(self.assembly);
        }
        if self.holds_memory && quiet {
            sys::give_memory_back();
        }
        if quiet && !self.journal.is_there() {
            // Somebody removed the state directory: no client finds it any more, and no start what it leaves.
            self.over.get_or_insert(DestroyReason::Lost);
        }
        self.holds_memory = !quiet;
        Ok(())
    }

    fn wait(&self) -> Result<Vec<About>> {
        let mut wait = Wait::default();
        wait.add(About::Line, self.line.socket(), PollFlags::IN);
        if !self.line.is_idle() {
            wait.add(About::Input, self.line.socket(), PollFlags::OUT);
        }
        wait.add(About::Gone, self.born.pidfd.as_fd(), PollFlags::IN);
        let [calendar, idle] = self.clock.alarms();
        wait.add(About::Calendar, calendar, PollFlags::IN);
        wait.add(About::Idle, idle, PollFlags::IN);
        // While it is paused or at rest nothing runs that could profit from a lost pin.
        if let Some(pins) = self.pins.as_ref().filter(|_| self.paused.is_none() && !self.at_rest) {
            wait.add(About::Pins, pins.fd(), PollFlags::IN);
        }
        if let Some(process) = &self.reclaiming {
            wait.add(About::Reclaiming, process.as_fd(), PollFlags::IN);
        }
        if let Some(process) = &self.renewing {
            wait.add(About::Renewing, process.as_fd(), PollFlags::IN);
        }
        // ORDER: before the clients, who may want to hold it next.
        if let Some(holder) = &self.holder {
            wait.add(About::Holder, holder.as_fd(), PollFlags::IN);
        }
        for (fd, flags) in self.gate.iter().flat_map(Gatehouse::waits) {
            wait.add(About::Gate, fd, flags);
        }
        for (number, conn) in &self.conns {
            wait.add(About::Conn(*number), conn.wire.socket.as_fd(), conn.interest());
        }
        let now = Instant::now();
        for live in self.execs.running().filter_map(|exec| exec.live.as_ref()) {
            for source in live.sources(now) {
                wait.add(About::Output(live.channel), source, PollFlags::IN);
            }
        }
        for input in self.inputs_waited_for() {
            wait.add(About::Input, input, PollFlags::OUT);
        }
        // ORDER: last, because clients that hung up make room.
        wait.add(About::Listener, self.listener.as_fd(), PollFlags::IN);
        wait.until(self.next_moment(now))
    }

    /// How long nothing has to be done unless something happens.
    fn next_moment(&self, now: Instant) -> Duration {
        let live = self.execs.running().filter_map(|exec| exec.live.as_ref());
        let live = live.filter(|_| self.paused.is_none());
        let kills = live.flat_map(|live| [live.next_moment(), live.wakes_at(now)]).flatten();
        let first = kills.chain(self.conns.values().filter_map(Conn::until)).min();
        let mut left = first.map_or(LONG, |moment| moment.saturating_duration_since(now));
        if !self.journal.is_whole() {
            left = left.min(FLUSH_AFTER);
        }
        if self.holds_memory { left.min(QUIET) } else { left }
    }

    /// Several of its sockets may be ready at once: what it did for one it finds done.
    fn turn_gate(&mut self) {
        let Some(gate) = &mut self.gate else { return };
        gate.turn();
        for happened in gate.news() {
            self.journal.add(happened);
        }
        for denial in gate.take_denials() {
            let running = self.execs.running().take(MAX_EXECS_TOLD);
            let execs = running.map(|exec| exec.id().clone()).collect();
            self.journal.add(Happened::ConnectionDenied { denial: Box::new(denial), execs });
        }
        let alarm = gate.take_alarm().filter(|_| self.alarm.is_none());
        if let Some(alarm) = alarm {
            self.freeze(alarm);
        }
    }

    /// Stops everything in it until somebody who knows why lets it go on.
    fn freeze(&mut self, alarm: SecretAlarm) {
        self.journal.add(Happened::SecretAlarm(alarm.clone()));
        self.journal.settle();
        self.alarm = Some(alarm);
        if self.paused.is_none() {
            match self.stop.freeze() {
                Ok(how) => self.stand_still(false, how),
                // What cannot be stopped is ended, and nothing of it goes on until then.
                Err(_) => {
                    self.over.get_or_insert(DestroyReason::Error);
                }
            }
        } else if self.pause(false).is_err() {
            self.over.get_or_insert(DestroyReason::Error);
        }
    }

    /// Lets everything go on for somebody who may not know of an alarm.
    pub(super) fn resume_unless_frozen(&mut self) -> Result<()> {
        match &self.alarm {
            Some(alarm) => Err(alarm.freezes(&format!("sandbox {}", self.record.id))),
            None => self.resume(),
        }
    }

    /// Its first process is gone, and with it everything inside.
    fn gone(&mut self) {
        // ORDER: what it said before it died counts.
        self.hear();
        self.over.get_or_insert(DestroyReason::Lost);
    }

    fn look_after_pins(&mut self) {
        // A name that cannot be pinned again could be written: nothing may run on.
        if self.pins.as_mut().is_some_and(|pins| pins.look().is_err()) {
            self.over.get_or_insert(DestroyReason::Lost);
        }
    }

    /// The same where something may have happened. Where that is looked for again and again, which hundreds of
    /// sandboxes cannot afford, it is left while nothing can run in it: what does is asked for first.
    fn look_after_pins_or_rest(&mut self) {
        self.look_after_pins();
        self.at_rest = self.pins.as_ref().is_some_and(Watchman::looks_by_itself)
            && self.conns.is_empty()
            && self.execs.channels().is_empty()
            && children(self.born.pid).is_empty();
    }

    /// Looks after what nobody has looked after for a while, before anything is started.
    pub(super) fn rest_no_more(&mut self) -> Result<()> {
        if std::mem::take(&mut self.at_rest) { self.pin_all() } else { Ok(()) }
    }

    fn pin_all(&mut self) -> Result<()> {
        self.look_after_pins();
        if self.over.is_none() {
            return Ok(());
        }
        let what = "go on: protected names of the sandbox's workspace cannot be protected again";
        Err(Error::new(ErrorKind::Unenforceable, what).hint("Make a new sandbox."))
    }

    /// Ends what is over by the time of day.
    fn enforce_calendar(&mut self) {
        let now = now_ms();
        let over = |moment: Option<u64>| moment.is_some_and(|moment| moment <= now);
        if over(self.deadlines.run_until_ms) {
            self.over.get_or_insert(DestroyReason::Timeout);
        } else if over(self.deadlines.lease_until_ms) {
            self.over.get_or_insert(DestroyReason::Lease);
        }
    }

    pub(super) fn set_deadlines(&mut self, deadlines: Deadlines) {
        self.deadlines = deadlines;
        self.journal.add(Happened::Deadlines(deadlines));
        self.set_calendar();
        self.touch();
    }

    fn set_calendar(&mut self) {
        let Deadlines { lease_until_ms, run_until_ms, .. } = self.deadlines;
        let first = lease_until_ms.into_iter().chain(run_until_ms).min();
        if self.clock.wake_at(first).is_err() {
            self.over.get_or_insert(DestroyReason::Lost);
        }
    }

    /// Somebody used it: the time of idleness begins anew.
    pub(super) fn touch(&mut self) {
        self.idle_since = None;
    }

    fn is_in_use(&self) -> bool {
        let counts = |live: &&super::exec::Live| live.counts_as_use;
        self.execs.running().filter_map(|exec| exec.live.as_deref()).any(|l| counts(&l))
            || self.conns.values().any(Conn::is_use)
    }

    /// Sets the alarm of idleness when nobody uses it any more.
    fn look_for_use(&mut self) {
        let counts = self.paused.is_none() && !self.is_in_use();
        let pause = self.deadlines.idle_pause_ms.map(Duration::from_millis).filter(|_| counts);
        match (pause, self.idle_since) {
            (Some(pause), None) => {
                self.idle_since = Some(Instant::now());
                if self.clock.wake_after(Some(pause)).is_err() {
                    self.over.get_or_insert(DestroyReason::Lost);
                }
            }
            (None, Some(_)) => {
                self.idle_since = None;
                let _ = self.clock.wake_after(None);
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn ring(&mut self) {
        if self.clock.is_idle() && self.idle_since.is_some() && self.paused.is_none() {
            // One that cannot be stopped now is tried again after the next such time.
            let _ = self.pause(true);
            self.touch();
        }
    }

    /// Stops everything in it. Repeating it changes nothing.
    pub(super) fn pause(&mut self, is_idle: bool) -> Result<()> {
        let how = match self.paused {
            Some(how) if std::mem::take(&mut self.is_held) => how,
            Some(_) => return Ok(()),
            None => self.stop.pause()?,
        };
        self.stand_still(is_idle, how);
        Ok(())
    }

    /// Notes that everything in it is stopped.
    fn stand_still(&mut self, is_idle: bool, how: PausedBy) {
        self.paused = Some(how);
        self.holder = None;
        self.hang_up_files();
        self.set_clocks(true);
        self.journal.add(Happened::Paused { idle: is_idle, how });
        self.wants_memory = true;
    }

    /// Stops everything in it for a moment: connections wait, and its memory stays where it is. It goes
    /// on without being asked when the process `holder` ends, which nobody else may notice.
    pub(super) fn hold(&mut self, holder: Option<OwnedFd>) -> Result<()> {
        if self.paused.is_none() {
            self.paused = Some(self.stop.pause()?);
            self.is_held = true;
            self.holder = holder;
            self.set_clocks(true);
        }
        Ok(())
    }

    /// Who held it is gone.
    fn let_go(&mut self) {
        self.holder = None;
        // Where it cannot go on now, the next who uses it asks for that.
        let _ = self.resume_unless_frozen();
    }

    /// Lets everything go on. Repeating it changes nothing.
    pub(super) fn resume(&mut self) -> Result<()> {
        self.touch();
        if self.paused.is_none() {
            return Ok(());
        }
        // ORDER: pins before the processes, which must find no name open.
        self.pin_all()?;
        self.stop.resume()?;
        self.alarm = None;
        self.paused = None;
        self.holder = None;
        self.set_clocks(false);
        if !std::mem::take(&mut self.is_held) {
            self.journal.add(Happened::Resumed);
        }
        Ok(())
    }

    fn set_clocks(&mut self, is_paused: bool) {
        for live in self.execs.iter_mut().filter_map(|exec| exec.live.as_mut()) {
            live.set_paused(is_paused);
        }
    }

    fn reap_reclaiming(&mut self) {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        if let Some(process) = self.reclaiming.take() {
            let _ = waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED);
        }
    }
}

/// What is waited on.
#[derive(Default)]
struct Wait<'a> {
    about: Vec<About>,
    fds: Vec<PollFd<'a>>,
}

impl<'a> Wait<'a> {
    fn add(&mut self, about: About, fd: BorrowedFd<'a>, flags: PollFlags) {
        self.about.push(about);
        self.fds.push(PollFd::from_borrowed_fd(fd, flags));
    }

    fn until(mut self, left: Duration) -> Result<Vec<About>> {
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut self.fds, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(io_error("wait for the sandbox", errno)),
        }
        let ready = self.about.iter().zip(&self.fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(about, _)| *about).collect())
    }
}
