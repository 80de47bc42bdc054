//! The one loop of process 1: the line, the children, the pipes, the clock.

use crate::line::{Line, LineLost, understand};
use crate::process::{Prepared, Tie};
use crate::reap::Children;
use crate::relay::{Outcome, Relay};
use crate::terminal::{self, Monitor};
use crate::{proof, sys};
use cofferdam_wire::frame::{Header, Kind, MAX_CHANNELS};
use cofferdam_wire::message::{
    Descendants, Ended, FromProcess, Greeting, HostOpens, NotStarted, NotStartedReason, Prove,
    Spawn, Stdio, Stream, TerminalSize, ToProcess,
};
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The size of the pipes that carry output over the line.
const PIPE_BYTES: usize = 1 << 20;

/// The most signals that are kept for a command that is just starting.
const MAX_EARLY_SIGNALS: usize = 16;

/// After this long without anything to do, memory is given back. What the set-up and the commands
/// left free would be most of what an idle sandbox holds.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

// What an event is about. A channel's number stands in the low half.
const OF_LINE: u64 = 0;
const OF_CHILDREN: u64 = 1;
const OF_RELAY: u64 = 1 << 32;
const OF_MONITOR: u64 = 2 << 32;

/// A command that runs, or whose end was not reported yet.
struct Running {
    id: String,
    /// The command's process and its group. 0 until a monitor has said it.
    leader: i32,
    monitor: Option<Monitor>,
    master: Option<OwnedFd>,
    descendants: Descendants,
    deadline: Option<Instant>,
    timed_out: bool,
    ended: Option<Ended>,
    /// Signals that came before the command's group was known.
    early: Vec<i32>,
    /// Channels that still carry its output.
    outputs: BTreeSet<u32>,
}

impl Running {
    fn new(spawn: &Spawn) -> Self {
        let timeout = spawn.timeout_ms.map(Duration::from_millis);
        Self {
            id: spawn.id.clone(),
            leader: 0,
            monitor: None,
            master: None,
            descendants: spawn.descendants,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            timed_out: false,
            ended: None,
            early: Vec::new(),
            outputs: BTreeSet::new(),
        }
    }
}

/// Process 1 at work.
pub(crate) struct Serve {
    line: Line,
    line_wants_out: bool,
    null: OwnedFd,
    /// Rules for commands, where no process namespace keeps them from signalling us.
    scope: Option<OwnedFd>,
    epoll: OwnedFd,
    signals: OwnedFd,
    children: Children,
    running: BTreeMap<u32, Running>,
    relays: BTreeMap<u32, Relay>,
    /// Processes of ours that are no command: they end by themselves.
    own: BTreeSet<i32>,
    /// Orphans that were sent SIGKILL and have not gone yet.
    dying: BTreeSet<i32>,
    /// Whether memory may be free that was not given back.
    holds_memory: bool,
}

impl Serve {
    /// Greets the host and serves the line for as long as it lasts. Never returns.
    pub(crate) fn start(
        line: Line,
        null: OwnedFd,
        scope: Option<OwnedFd>,
        greeting: &Greeting,
    ) -> ! {
        if let Ok(mut serve) = Self::new(line, null, scope) {
            serve.line.message(0, greeting, Vec::new());
            while serve.turn().is_ok() {}
        }
        // The kernel ends everything else in this namespace with its first process.
        sys::exit_now(0)
    }

    fn new(line: Line, null: OwnedFd, scope: Option<OwnedFd>) -> Result<Self, Errno> {
        let signals = sys::child_signals()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let input = epoll::EventFlags::IN;
        epoll::add(&epoll, line.socket(), epoll::EventData::new_u64(OF_LINE), input)?;
        epoll::add(&epoll, &signals, epoll::EventData::new_u64(OF_CHILDREN), input)?;
        Ok(Self {
            line,
            line_wants_out: false,
            null,
            scope,
            epoll,
            signals,
            children: Children::open(),
            running: BTreeMap::new(),
            relays: BTreeMap::new(),
            own: BTreeSet::new(),
            dying: BTreeSet::new(),
            holds_memory: true,
        })
    }

    fn turn(&mut self) -> Result<(), LineLost> {
        self.line.flush()?;
        if self.line.has_room() {
            self.resume_relays();
            self.line.flush()?;
        }
        self.watch_line();
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 32];
        let timeout = self.until_deadline().or(self.holds_memory.then_some(IDLE));
        let count = match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(_) => return Err(LineLost),
        };
        if self.holds_memory && count == 0 {
            sys::give_memory_back();
        }
        self.holds_memory = count > 0;
        for event in events.iter().take(count) {
            let data = event.data.u64();
            let channel = u32::try_from(data & 0xffff_ffff).unwrap_or(0);
            match data & !0xffff_ffff {
                0 if data == OF_LINE => self.hear(event.flags)?,
                0 => self.reap(),
                OF_RELAY => self.relay(channel),
                OF_MONITOR => self.hear_monitor(channel),
                _ => {}
            }
        }
        self.enforce_deadlines();
        self.finish_ended();
        Ok(())
    }

    /// Asks to be told of room in the socket only while something waits for it.
    fn watch_line(&mut self) {
        let wants_out = !self.line.is_idle();
        if wants_out == self.line_wants_out {
            return;
        }
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, wants_out);
        let data = epoll::EventData::new_u64(OF_LINE);
        if epoll::modify(&self.epoll, self.line.socket(), data, flags).is_ok() {
            self.line_wants_out = wants_out;
        }
    }

    fn until_deadline(&self) -> Option<Timespec> {
        let first =
            self.running.values().filter(|r| !r.timed_out).filter_map(|r| r.deadline).min()?;
        let left = first.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        })
    }

    fn hear(&mut self, flags: epoll::EventFlags) -> Result<(), LineLost> {
        if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR)
        {
            self.line.fill()?;
            while let Some((header, body)) = self.line.next_frame()? {
                self.frame(header, &body)?;
            }
        }
        Ok(())
    }

    fn frame(&mut self, header: Header, body: &[u8]) -> Result<(), LineLost> {
        let channel = header.channel;
        match header.kind {
            Kind::Message if self.running.contains_key(&channel) => {
                if let Some(message) = understand(body) {
                    self.command(channel, &message);
                }
            }
            Kind::Message => match understand(body) {
                Some(HostOpens::Spawn(spawn)) => self.spawn(channel, &spawn),
                Some(HostOpens::Prove(request)) => self.prove(channel, &request),
                Some(HostOpens::Ping) => self.line.frame(channel, Kind::Data, b"", Vec::new()),
                // Sent before the host knew that its command had ended.
                None if understand::<ToProcess>(body).is_some() => {}
                None => return Err(LineLost),
            },
            Kind::Data | Kind::Credit | Kind::End => {
                if let Some(relay) = self.relays.get_mut(&channel) {
                    relay.hear(header.kind, body);
                    self.relay(channel);
                }
            }
        }
        Ok(())
    }

    fn command(&mut self, channel: u32, message: &ToProcess) {
        let Some(running) = self.running.get_mut(&channel) else { return };
        match message {
            ToProcess::Signal(signal) if running.leader > 0 => {
                let _ = sys::kill(-running.leader, *signal);
            }
            ToProcess::Signal(signal) if running.early.len() < MAX_EARLY_SIGNALS => {
                running.early.push(*signal);
            }
            ToProcess::Signal(_) => {}
            ToProcess::Resize(size) => {
                if let Some(master) = &running.master {
                    let _ = terminal::resize(master, *size);
                }
            }
            ToProcess::Kill => kill_command(running),
        }
    }

    fn spawn(&mut self, channel: u32, spawn: &Spawn) {
        // ORDER: before anything is refused, or the next command would get them.
        let given = self.take_given(&spawn.stdio);
        let started = match &spawn.stdio {
            _ if self.running.values().any(|running| running.id == spawn.id) => {
                Err(refused("this id is in use"))
            }
            _ if self.relays.len() >= MAX_CHANNELS => Err(refused("too many channels are open")),
            Stdio::Streams { stdin, stdout, stderr } => {
                self.spawn_on_streams(channel, spawn, [*stdin, *stdout, *stderr], given)
            }
            Stdio::Terminal(size) => self.spawn_on_terminal(channel, spawn, *size),
        };
        if let Err(why) = started {
            self.drop_relays_of(channel);
            self.line.message(channel, &FromProcess::NotStarted(why), Vec::new());
            self.end_with(spawn.descendants);
        }
    }

    /// The descriptors that came for these streams, by position.
    fn take_given(&mut self, stdio: &Stdio) -> Vec<Option<OwnedFd>> {
        let Stdio::Streams { stdin, stdout, stderr } = stdio else { return Vec::new() };
        let is_given = |stream: &&&Stream| matches!(stream, Stream::Descriptor(_));
        let count = [stdin, stdout, stderr].iter().filter(is_given).count();
        (0..count).map(|_| self.line.take_descriptor()).collect()
    }

    fn spawn_on_streams(
        &mut self,
        channel: u32,
        spawn: &Spawn,
        streams: [Stream; 3],
        mut given: Vec<Option<OwnedFd>>,
    ) -> Result<(), NotStarted> {
        let mut ends = Vec::with_capacity(3);
        let mut outputs = BTreeSet::new();
        for (position, stream) in streams.into_iter().enumerate() {
            let end =
                self.stream_end(channel, stream, position == 0, &mut given).map_err(|_| {
                    refused("a stream could not be opened, or its descriptor did not arrive")
                })?;
            if let (Stream::Line(output), 1..) = (stream, position) {
                outputs.insert(output);
            }
            ends.push(end);
        }
        let prepared = Prepared::new(spawn)?;
        let null = self.null.as_fd();
        let fd = |position: usize| -> BorrowedFd<'_> {
            ends.get(position).and_then(Option::as_ref).map_or(null, AsFd::as_fd)
        };
        let tie = Tie {
            gathers_orphans: spawn.descendants == Descendants::Die,
            scope: self.scope.as_ref().map(AsFd::as_fd),
        };
        let pid = prepared.start([fd(0), fd(1), fd(2)], None, tie)?;
        self.running.insert(channel, Running { leader: pid, outputs, ..Running::new(spawn) });
        self.line.message(channel, &FromProcess::Started { pid }, Vec::new());
        Ok(())
    }

    /// The command's end of one stream; ours goes to a relay. `None` is `/dev/null`.
    fn stream_end(
        &mut self,
        of: u32,
        stream: Stream,
        is_input: bool,
        given: &mut [Option<OwnedFd>],
    ) -> Result<Option<OwnedFd>, Errno> {
        match stream {
            Stream::Null => Ok(None),
            Stream::Descriptor(position) => usize::try_from(position)
                .ok()
                .and_then(|position| given.get_mut(position)?.take())
                .map(Some)
                .ok_or(Errno::BADF),
            Stream::Line(channel) => {
                let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
                // The user's quota of pipe memory may be used up: a small pipe works too.
                let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
                let (relay, theirs) = if is_input {
                    (Relay::input(writer, of)?, reader)
                } else {
                    (Relay::output(reader, of)?, writer)
                };
                self.relays.insert(channel, relay);
                self.arm(channel);
                Ok(Some(theirs))
            }
        }
    }

    fn spawn_on_terminal(
        &mut self,
        channel: u32,
        spawn: &Spawn,
        size: TerminalSize,
    ) -> Result<(), NotStarted> {
        let prepared = Prepared::new(spawn)?;
        let exhausted = |errno: Errno| NotStarted {
            reason: NotStartedReason::Exhausted,
            errno: errno.raw_os_error(),
            detail: "no terminal could be opened".to_owned(),
        };
        let pair = terminal::open(size).map_err(exhausted)?;
        let ours = rustix::io::fcntl_dupfd_cloexec(&pair.master, 3).map_err(exhausted)?;
        let monitor =
            terminal::start_monitor(&prepared, pair.slave, self.scope.as_ref().map(AsFd::as_fd))
                .map_err(exhausted)?;
        let data = epoll::EventData::new_u64(OF_MONITOR | u64::from(channel));
        let _ = epoll::add(&self.epoll, &monitor.reports, data, epoll::EventFlags::IN);
        self.own.insert(monitor.pid);
        let (monitor, master) = (Some(monitor), Some(pair.master));
        self.running.insert(channel, Running { monitor, master, ..Running::new(spawn) });
        // The master goes up before anything is known of the command, so that no output waits.
        self.line.frame(channel, Kind::Data, b"", vec![ours]);
        Ok(())
    }

    fn prove(&mut self, channel: u32, request: &Prove) {
        match proof::start(request) {
            Ok((pid, answer)) => {
                self.own.insert(pid);
                if let Ok(relay) = Relay::proof(answer, channel) {
                    self.relays.insert(channel, relay);
                    self.arm(channel);
                }
            }
            Err(_) => self.line.frame(channel, Kind::End, b"", Vec::new()),
        }
    }

    fn hear_monitor(&mut self, channel: u32) {
        let Some(running) = self.running.get_mut(&channel) else { return };
        let Some(monitor) = &running.monitor else { return };
        let mut bytes = [0; 4096];
        let count = match rustix::io::read(&monitor.reports, &mut bytes) {
            Ok(count) => count,
            Err(_) => return,
        };
        if count == 0 {
            let _ = epoll::delete(&self.epoll, &monitor.reports);
            if running.ended.is_none() {
                kill_command(running);
            }
            // A monitor that says nothing about the end was killed from inside.
            let _ = running.ended.get_or_insert(Ended {
                how: cofferdam_wire::message::How::Signaled(libc::SIGKILL),
                timed_out: false,
                killed_descendants: 0,
                cpu_us: 0,
                peak_rss_bytes: 0,
            });
            return;
        }
        for line in bytes.get(..count).unwrap_or_default().split(|byte| *byte == b'\n') {
            match understand(line) {
                Some(FromProcess::Ended(ended)) => running.ended = Some(ended),
                Some(message) => {
                    if let FromProcess::Started { pid } = message {
                        running.leader = pid;
                        for signal in running.early.drain(..) {
                            let _ = sys::kill(-pid, signal);
                        }
                    }
                    let gone = matches!(message, FromProcess::NotStarted(_));
                    self.line.message(channel, &message, Vec::new());
                    if gone {
                        let descendants = running.descendants;
                        self.running.remove(&channel);
                        return self.end_with(descendants);
                    }
                }
                None => {}
            }
        }
    }

    fn reap(&mut self) {
        let mut buffer = [0; 512];
        while rustix::io::read(&self.signals, &mut buffer).is_ok() {}
        while let Ok(Some(child)) = sys::wait4(-1, libc::WNOHANG) {
            self.own.remove(&child.pid);
            self.dying.remove(&child.pid);
            let main = self.running.values_mut().find(|running| running.leader == child.pid);
            if let Some(running) = main
                && running.monitor.is_none()
            {
                running.ended = Some(terminal::ended(&child));
                running.leader = 0;
            }
        }
    }

    fn enforce_deadlines(&mut self) {
        let now = Instant::now();
        for running in self.running.values_mut() {
            let over = running.deadline.is_some_and(|deadline| deadline <= now);
            if over && !running.timed_out && running.ended.is_none() {
                running.timed_out = true;
                kill_command(running);
            }
        }
    }

    /// Reports every command that has ended once nothing of it is left.
    fn finish_ended(&mut self) {
        if !self.running.values().any(|running| running.ended.is_some()) {
            return;
        }
        let orphans = self.kill_orphans();
        let mut counted = false;
        for running in self.running.values_mut() {
            if let Some(ended) = &mut running.ended {
                if !counted {
                    ended.killed_descendants += orphans;
                    counted = true;
                }
                ended.timed_out = running.timed_out;
            }
        }
        if !self.dying.is_empty() {
            return;
        }
        let done: Vec<u32> = self
            .running
            .iter()
            .filter(|(_, running)| running.ended.is_some() && running.outputs.is_empty())
            .map(|(channel, _)| *channel)
            .collect();
        for channel in done {
            self.drop_relays_of(channel);
            let Some(running) = self.running.remove(&channel) else { continue };
            if let Some(ended) = running.ended {
                self.line.message(channel, &FromProcess::Ended(ended), Vec::new());
            }
            self.end_with(running.descendants);
        }
    }

    /// Kills every child that is no command and none of ours. As a command gathers its own orphans
    /// while it lives, what comes to us outlived its command. Answers how many were new.
    fn kill_orphans(&mut self) -> u32 {
        let mut new = 0;
        for pid in self.children.now() {
            let known = self.own.contains(&pid)
                || self.running.values().any(|running| running.leader == pid);
            if !known && self.dying.insert(pid) {
                let _ = sys::kill(pid, libc::SIGKILL);
                new += 1;
            }
        }
        new
    }

    /// Ends the sandbox, if it was to end with its command.
    fn end_with(&mut self, descendants: Descendants) {
        match descendants {
            Descendants::Die => {}
            Descendants::DieWithSandbox => {
                self.line.drain();
                sys::exit_now(0);
            }
        }
    }

    fn relay(&mut self, channel: u32) {
        let Some(relay) = self.relays.get_mut(&channel) else { return };
        let outcome = relay.work(channel, &mut self.line);
        match outcome {
            Outcome::Waits => self.arm(channel),
            Outcome::Blocked => self.disarm(channel),
            Outcome::Done => self.end_relay(channel),
        }
    }

    fn end_relay(&mut self, channel: u32) {
        self.disarm(channel);
        if let Some(relay) = self.relays.remove(&channel)
            && let Some(running) = self.running.get_mut(&relay.of())
        {
            running.outputs.remove(&channel);
        }
    }

    fn drop_relays_of(&mut self, of: u32) {
        let channels: Vec<u32> = self
            .relays
            .iter()
            .filter(|(_, relay)| relay.of() == of)
            .map(|(channel, _)| *channel)
            .collect();
        for channel in channels {
            self.end_relay(channel);
        }
    }

    fn resume_relays(&mut self) {
        let blocked: Vec<u32> = self
            .relays
            .iter()
            .filter(|(_, relay)| !relay.is_armed())
            .map(|(channel, _)| *channel)
            .collect();
        for channel in blocked {
            self.relay(channel);
        }
    }

    fn arm(&mut self, channel: u32) {
        let Some(relay) = self.relays.get_mut(&channel) else { return };
        if relay.is_armed() {
            return;
        }
        let data = epoll::EventData::new_u64(OF_RELAY | u64::from(channel));
        if epoll::add(&self.epoll, relay.pipe(), data, relay.interest()).is_ok() {
            relay.set_armed(true);
        }
    }

    fn disarm(&mut self, channel: u32) {
        let Some(relay) = self.relays.get_mut(&channel) else { return };
        if relay.is_armed() {
            let _ = epoll::delete(&self.epoll, relay.pipe());
            relay.set_armed(false);
        }
    }
}

fn kill_command(running: &Running) {
    if running.leader > 0 {
        let _ = sys::kill(-running.leader, libc::SIGKILL);
        let _ = sys::kill(running.leader, libc::SIGKILL);
    }
    if let Some(monitor) = &running.monitor
        && running.leader == 0
    {
        let _ = sys::kill(monitor.pid, libc::SIGKILL);
    }
}

fn refused(detail: &str) -> NotStarted {
    NotStarted {
        reason: NotStartedReason::BadRequest,
        errno: Errno::INVAL.raw_os_error(),
        detail: detail.to_owned(),
    }
}
