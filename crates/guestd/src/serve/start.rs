//! From a request to a process.

use super::running::{Look, Running};
use super::{OF_MONITOR, Serve};
use crate::monitor::{self, Charge, Monitor, Seat};
use crate::process::{Prepared, Tie, exhausted};
use crate::relay::Relay;
use crate::terminal;
use cofferdam_wire::frame::{Kind, MAX_CHANNELS};
use cofferdam_wire::message::{
    Descendants, FromProcess, News, NotStarted, NotStartedReason, Spawn, Stdio, Stream,
    TerminalSize,
};
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeSet;

impl Serve {
    pub(super) fn spawn(&mut self, channel: u32, spawn: &Spawn) {
        // ORDER: before anything is refused, or the next command would get them.
        let given = self.take_given(&spawn.stdio);
        let handed = self.take_handed(spawn);
        let started = match &spawn.stdio {
            _ if self.running.values().any(|running| running.id == spawn.id) => {
                Err(refused("this id is in use"))
            }
            _ if self.relays.len() >= MAX_CHANNELS => Err(refused("too many channels are open")),
            Stdio::Streams { stdin, stdout, stderr }
                if spawn.descendants == Descendants::Stay
                    && [stdin, stdout, stderr].iter().any(|s| matches!(s, Stream::Line(_))) =>
            {
                Err(refused("what stays cannot write to a stream that the line carries"))
            }
            Stdio::Streams { stdin, stdout, stderr } => {
                self.place_handed(channel, spawn, handed).and_then(|handed| {
                    let streams = [*stdin, *stdout, *stderr];
                    self.spawn_on_streams(channel, spawn, streams, (given, handed))
                })
            }
            Stdio::Terminal(size) => self
                .place_handed(channel, spawn, handed)
                .and_then(|handed| self.spawn_on_terminal(channel, spawn, *size, handed)),
        };
        if let Err(why) = started {
            self.drop_relays_of(channel);
            self.handed_files.let_go(channel);
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
        (mut given, handed): (Vec<Option<OwnedFd>>, Vec<(OwnedFd, u32)>),
    ) -> Result<(), NotStarted> {
        let mut ends = Vec::with_capacity(3);
        let mut outputs = BTreeSet::new();
        for (position, stream) in streams.into_iter().enumerate() {
            let end =
                self.stream_end((channel, spawn.news), stream, position == 0, &mut given).map_err(
                    |_| refused("a stream could not be opened, or its descriptor did not arrive"),
                )?;
            if let (Stream::Line(output), 1..) = (stream, position) {
                outputs.insert(output);
            }
            ends.push(end);
        }
        let prepared = Prepared::new(spawn)?.with(handed).within(self.open_files);
        let null = self.null.as_fd();
        let fd = |position: usize| -> BorrowedFd<'_> {
            ends.get(position).and_then(Option::as_ref).map_or(null, AsFd::as_fd)
        };
        let stdio = [fd(0), fd(1), fd(2)];
        let scope = self.scope.as_ref().map(AsFd::as_fd);
        let gathers_orphans = match spawn.descendants {
            Descendants::Die => true,
            Descendants::DieWithSandbox => false,
            Descendants::Stay => {
                let charge =
                    Charge { stdio, seat: Seat::Streams, scope, descendants: Descendants::Stay };
                let monitor = monitor::start(prepared, charge)
                    .map_err(|errno| exhausted("no process could be made", errno))?;
                self.watch_over(channel, spawn, monitor, None);
                return Ok(());
            }
        };
        let tie = Tie { gathers_orphans, scope };
        let starting = prepared.start(stdio, None, tie)?;
        // ORDER: before the wait, so that a pipe's end is seen however long that takes.
        drop(ends);
        let mut running = Running::new(spawn);
        running.outputs = outputs;
        if let Look::Started(pid) = running.begin(starting)? {
            self.line.message(channel, &FromProcess::Started { pid }, Vec::new());
        }
        self.running.insert(channel, running);
        Ok(())
    }

    /// The command's end of one stream; ours goes to a relay. `None` is `/dev/null`.
    fn stream_end(
        &mut self,
        (of, news): (u32, News),
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
                let (relay, theirs) = self.relay_for((of, news), is_input)?;
                let is_asleep = relay.is_asleep();
                self.relays.insert(channel, relay);
                if !is_asleep {
                    self.arm(channel);
                }
                Ok(Some(theirs))
            }
        }
    }

    fn relay_for(
        &mut self,
        (of, news): (u32, News),
        is_input: bool,
    ) -> Result<(Relay, OwnedFd), Errno> {
        let (relay, theirs) = if is_input {
            let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            (Relay::input(writer, of)?, reader)
        } else {
            let (reader, writer) = self.spare.pipe()?;
            (Relay::output(reader, of, news), writer)
        };
        relay.enlarge();
        Ok((relay, theirs))
    }

    fn spawn_on_terminal(
        &mut self,
        channel: u32,
        spawn: &Spawn,
        size: TerminalSize,
        handed: Vec<(OwnedFd, u32)>,
    ) -> Result<(), NotStarted> {
        let prepared = Prepared::new(spawn)?.with(handed).within(self.open_files);
        let exhausted = |errno| exhausted("no terminal could be opened", errno);
        let pair = terminal::open(size).map_err(exhausted)?;
        let ours = rustix::io::fcntl_dupfd_cloexec(&pair.master, 3).map_err(exhausted)?;
        let charge = Charge {
            stdio: [pair.slave.as_fd(); 3],
            seat: Seat::Terminal,
            scope: self.scope.as_ref().map(AsFd::as_fd),
            descendants: spawn.descendants,
        };
        let monitor = monitor::start(prepared, charge).map_err(exhausted)?;
        self.watch_over(channel, spawn, monitor, Some(pair.master));
        // The master goes up before anything is known of the command, so that no output waits.
        self.line.frame(channel, Kind::Data, b"", vec![ours]);
        Ok(())
    }

    fn watch_over(
        &mut self,
        channel: u32,
        spawn: &Spawn,
        monitor: Monitor,
        master: Option<OwnedFd>,
    ) {
        let data = epoll::EventData::new_u64(OF_MONITOR | u64::from(channel));
        let _ = epoll::add(&self.epoll, &monitor.reports, data, epoll::EventFlags::IN);
        self.own.insert(monitor.pid);
        let mut running = Running::new(spawn);
        (running.monitor, running.master) = (Some(monitor), master);
        self.running.insert(channel, running);
    }
}

pub(super) fn refused(detail: &str) -> NotStarted {
    NotStarted {
        reason: NotStartedReason::BadRequest,
        errno: Errno::INVAL.raw_os_error(),
        detail: detail.to_owned(),
    }
}
