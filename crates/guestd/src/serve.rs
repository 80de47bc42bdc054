//! The one loop of process 1: the line, the children, the pipes, the clock.

mod finish;
mod handed;
mod running;
mod spare;
mod start;
mod under;

use crate::line::{Line, LineLost, understand};
use crate::reap::Children;
use crate::relay::{Outcome, Relay};
use crate::{files, port, proof, sys, terminal};
use cofferdam_wire::files::MAX_CONNECTIONS;
use cofferdam_wire::frame::{Header, Kind};
use cofferdam_wire::message::{Files, Greeting, HostOpens, Port, Prove, ToProcess};
use cofferdam_wire::port::{MAX_PORT_CONNECTIONS, PortAnswer};
use handed::HandedFiles;
use running::Running;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use spare::Spare;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// After this long without anything to do, memory is given back. What the set-up and the commands
/// left free would be most of what an idle sandbox holds. Commands that follow each other sooner find it
/// there, and need not have it come again page by page.
const IDLE: Duration = Duration::from_millis(250);

/// After this long without anything to do, nobody waits for us. Longer than the kernel's tick, as
/// [`running::LEFT_ALONE`] says.
const QUIET: Duration = Duration::from_millis(5);

// What an event is about. A channel's number stands in the low half.
const OF_LINE: u64 = 0;
const OF_CHILDREN: u64 = 1;
const OF_RELAY: u64 = 1 << 32;
const OF_MONITOR: u64 = 2 << 32;

/// What holds for commands and not for process 1.
#[derive(Debug, Default)]
pub(crate) struct ForCommands {
    /// Rules, where no process namespace keeps them from signalling us.
    pub(crate) scope: Option<OwnedFd>,
    /// Rules of what they may reach, where those are told of more later.
    pub(crate) rules: Option<OwnedFd>,
    /// How many descriptors each may have.
    pub(crate) open_files: Option<u64>,
}

/// Process 1 at work.
pub(crate) struct Serve {
    line: Line,
    line_wants_out: bool,
    null: OwnedFd,
    /// Rules for commands, where no process namespace keeps them from signalling us.
    scope: Option<OwnedFd>,
    /// How many descriptors a command may have.
    open_files: Option<u64>,
    epoll: OwnedFd,
    signals: OwnedFd,
    children: Children,
    running: BTreeMap<u32, Running>,
    relays: BTreeMap<u32, Relay>,
    /// Processes of ours that are no command: they end by themselves.
    own: BTreeSet<i32>,
    /// Those of them that serve files.
    file_workers: BTreeSet<i32>,
    /// Those of them that carry connections to ports.
    port_workers: BTreeSet<i32>,
    /// Orphans that were sent SIGKILL and have not gone yet.
    dying: BTreeSet<i32>,
    /// The kernel said so in this turn.
    has_no_children: bool,
    spare: Spare,
    handed_files: HandedFiles,
    /// Whether memory may be free that was not given back.
    holds_memory: bool,
    /// The host has told the rules of commands of another directory.
    renews: bool,
}

impl Serve {
    /// Greets the host and serves the line for as long as it lasts. Never returns.
    pub(crate) fn start(
        line: Line,
        null: OwnedFd,
        commands: ForCommands,
        greeting: &Greeting,
    ) -> ! {
        let ForCommands { scope, rules, open_files } = commands;
        if let Ok(mut serve) = Self::new(line, null, scope, open_files) {
            match rules {
                None => {
                    serve.line.message(0, greeting, Vec::new());
                    serve.work();
                }
                Some(rules) => under::serve(serve, &rules, greeting),
            }
        }
        // The kernel ends everything else in this namespace with its first process.
        sys::exit_now(0)
    }

    /// Serves until the line is lost, or the host has told our rules of more.
    fn work(&mut self) {
        while !self.renews && self.turn().is_ok() {}
    }

    fn new(
        line: Line,
        null: OwnedFd,
        scope: Option<OwnedFd>,
        open_files: Option<u64>,
    ) -> Result<Self, Errno> {
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
            open_files,
            epoll,
            signals,
            children: Children::open(),
            running: BTreeMap::new(),
            relays: BTreeMap::new(),
            own: BTreeSet::new(),
            file_workers: BTreeSet::new(),
            port_workers: BTreeSet::new(),
            dying: BTreeSet::new(),
            has_no_children: false,
            spare: Spare::default(),
            handed_files: HandedFiles::default(),
            holds_memory: true,
            renews: false,
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
        let timeout = self.until_next_time();
        let rest = self.rest().filter(|rest| timeout.is_none_or(|timeout| *rest < timeout));
        let timeout = rest.or(timeout).and_then(|timeout| Timespec::try_from(timeout).ok());
        let count = match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(_) => return Err(LineLost),
        };
        match rest {
            Some(QUIET) if count == 0 => self.spare.refill(),
            Some(_) if count == 0 => {
                sys::give_memory_back();
                self.holds_memory = false;
            }
            Some(_) | None => self.holds_memory |= count > 0,
        }
        self.has_no_children = false;
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
        self.watch_clock();
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

    /// How long nothing must happen until we use the time.
    fn rest(&self) -> Option<Duration> {
        match (self.spare.is_wanted(), self.holds_memory) {
            (true, _) => Some(QUIET),
            (false, true) => Some(IDLE),
            (false, false) => None,
        }
    }

    fn until_next_time(&self) -> Option<Duration> {
        let first = self.running.values().filter_map(Running::next_time).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    fn hear(&mut self, flags: epoll::EventFlags) -> Result<(), LineLost> {
        if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR)
        {
            self.line.fill()?;
            self.hear_on()?;
        }
        Ok(())
    }

    /// Does what has come.
    fn hear_on(&mut self) -> Result<(), LineLost> {
        // ORDER: whoever is started after the rules are told of more is under them.
        while !self.renews
            && let Some((header, body)) = self.line.next_frame()?
        {
            self.frame(header, &body)?;
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
                Some(HostOpens::Files(request)) => self.files(&request),
                Some(HostOpens::Port(request)) => self.port(request),
                Some(HostOpens::RenewRules) => self.renews = true,
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
            ToProcess::Signal(signal) => running.signal(*signal),
            ToProcess::Resize(size) => {
                if let Some(master) = &running.master {
                    let _ = terminal::resize(master, *size);
                }
            }
            ToProcess::Kill => running.kill(),
        }
    }

    /// Starts a worker on the connection that came with the request.
    fn files(&mut self, request: &Files) {
        let Some(socket) = self.line.take_descriptor() else { return };
        if self.file_workers.len() >= MAX_CONNECTIONS {
            return files::refuse(&socket, &files::Refusal::TooMany);
        }
        match files::start(request, &socket) {
            Ok(pid) => {
                self.own.insert(pid);
                self.file_workers.insert(pid);
            }
            Err(errno) => files::refuse(&socket, &files::Refusal::NoProcess(errno)),
        }
    }

    /// Starts a worker that carries the connection that came with the request.
    fn port(&mut self, request: Port) {
        let Some(socket) = self.line.take_descriptor() else { return };
        let refusal = if self.port_workers.len() >= MAX_PORT_CONNECTIONS {
            PortAnswer::TooMany
        } else {
            match port::start(request, &socket) {
                Ok(pid) => {
                    self.own.insert(pid);
                    self.port_workers.insert(pid);
                    return;
                }
                Err(errno) => PortAnswer::Failed {
                    call: "make a process that carries the connection".to_owned(),
                    errno: errno.raw_os_error(),
                },
            }
        };
        // The host may have given up.
        let _ = port::answer(&socket, &refusal);
    }

    fn prove(&mut self, channel: u32, request: &Prove) {
        match proof::start(request, self.open_files) {
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

    fn relay(&mut self, channel: u32) {
        let Some(relay) = self.relays.get_mut(&channel) else { return };
        let outcome = relay.work(channel, &mut self.line);
        match outcome {
            Outcome::Waits => self.arm(channel),
            Outcome::Blocked => self.disarm(channel),
            Outcome::Done => {
                if let Some(relay) = self.end_relay(channel)
                    && relay.is_output()
                {
                    self.spare.throw_away(relay);
                }
            }
        }
    }

    fn end_relay(&mut self, channel: u32) -> Option<Relay> {
        self.disarm(channel);
        let relay = self.relays.remove(&channel)?;
        if let Some(running) = self.running.get_mut(&relay.of()) {
            running.outputs.remove(&channel);
        }
        Some(relay)
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
            .filter(|(_, relay)| !relay.is_armed() && !relay.is_asleep())
            .map(|(channel, _)| *channel)
            .collect();
        for channel in blocked {
            self.relay(channel);
        }
    }

    fn wake_relays(&mut self, channels: Vec<u32>) {
        for channel in channels {
            if let Some(relay) = self.relays.get_mut(&channel)
                && relay.is_asleep()
            {
                relay.wake();
                self.relay(channel);
            }
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
