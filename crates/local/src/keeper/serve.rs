//! A keeper's dealings with its clients.

use super::exec::{Exec, Input, Killed};
use super::input::{Given, Piece};
use super::keep::Keeper;
use super::mapped::mapped_below;
use super::talk::{Asked, HungUp, Reply, Request, Start, VERSION, Wire};
use super::tree::{count_below, used_by};
use crate::cgroup::Cgroups;
use crate::gate::Gatehouse;
use crate::sys;
use cofferdam_core::{
    Error, ErrorKind, ExecStatus, MappedFiles, NetworkPolicy, ProcessId, Result, SandboxMetrics,
    Seen, Standard, Terminal, Verdict, no_way_out,
};
use cofferdam_wire::message::ToProcess;
use rustix::event::PollFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::termios::{Winsize, tcsetwinsize};
use std::time::{Duration, Instant};

/// How many clients may be connected at once.
pub(super) const MAX_CLIENTS: usize = 512;
/// The longest that a client may wait for news in one request.
pub(super) const MAX_PATIENCE: Duration = Duration::from_secs(600);

/// A client.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) wire: Wire,
    /// Whether it has named this sandbox, as only those can who may read our records.
    is_known: bool,
    parked: Option<Parked>,
}

/// What a client waits for.
#[derive(Debug)]
enum Parked {
    /// That the guest says what came of a start; where there is a moment, that the command ends, or this
    /// moment.
    Start { id: ProcessId, until: Option<Instant> },
    /// News of a command.
    Watch { id: ProcessId, seen: Seen, until: Instant },
    /// That a command takes its input.
    Bytes { id: ProcessId, piece: Piece },
    /// The end of the sandbox.
    Destroy,
    /// Nothing: it has a connection to files, and hangs up when it needs that no more.
    Files,
    /// Nothing: it watches files, and hangs up when it does that no more.
    FileWatch,
    /// Nothing: it has a connection to a port, and hangs up with it.
    Port,
}

/// What came of a request at once.
enum Outcome {
    Now(Reply),
    Later(Parked),
}

impl Conn {
    pub(super) fn interest(&self) -> PollFlags {
        // A client that waits says nothing; that it hangs up is told in any case.
        let read = if self.parked.is_some() { PollFlags::RDHUP } else { PollFlags::IN };
        if self.wire.is_behind() { PollFlags::OUT | PollFlags::RDHUP } else { read }
    }

    pub(super) fn until(&self) -> Option<Instant> {
        match self.parked.as_ref()? {
            Parked::Watch { until, .. } => Some(*until),
            Parked::Bytes { piece, .. } => Some(piece.until()),
            Parked::Start { until, .. } => *until,
            Parked::Destroy | Parked::Files | Parked::FileWatch | Parked::Port => None,
        }
    }

    /// Whether it has a connection to files that a pause ends.
    pub(super) fn has_files(&self) -> bool {
        matches!(self.parked, Some(Parked::Files))
    }

    /// Whether a process in the sandbox works for it alone.
    pub(super) fn has_worker(&self) -> bool {
        matches!(self.parked, Some(Parked::Files | Parked::FileWatch | Parked::Port))
    }

    /// Whether its wait is a use of the sandbox.
    pub(super) fn is_use(&self) -> bool {
        self.parked.is_some()
    }

    /// Tells a client that asked for the end that it has come.
    pub(super) fn say_farewell(&mut self) {
        // What the socket does not take is lost with us; the client sees us go.
        if let Some(Parked::Destroy) = self.parked {
            let _ = self.wire.reply(&Reply::Done);
        }
        let _ = self.wire.flush();
    }

    /// The command whose input it waits for.
    pub(super) fn feeds(&self) -> Option<&ProcessId> {
        match self.parked.as_ref()? {
            Parked::Bytes { id, .. } => Some(id),
            Parked::Start { .. }
            | Parked::Watch { .. }
            | Parked::Destroy
            | Parked::Files
            | Parked::FileWatch
            | Parked::Port => None,
        }
    }
}

/// What a client hears that may not stay.
fn too_many() -> Reply {
    let what = format!("{MAX_CLIENTS} clients are connected, and more may not be");
    // Of a kind that nobody takes for the end of the sandbox.
    Error::new(ErrorKind::TimedOut, what).hint("Try again.").into()
}

impl Keeper<'_> {
    /// Takes a client, if it is one of ours.
    pub(super) fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(socket) = rustix::net::accept_with(&self.listener, flags) else { return };
        let own = rustix::process::geteuid().as_raw();
        if !sys::peer_uid(&socket).is_ok_and(|uid| uid == own || uid == 0) {
            return;
        }
        let mut wire = Wire::new(socket);
        if self.conns.len() >= MAX_CLIENTS && !self.drop_a_stranger() {
            let _ = wire.reply(&too_many());
            return;
        }
        self.next_conn += 1;
        self.conns.insert(self.next_conn, Conn { wire, is_known: false, parked: None });
    }

    /// Makes room at the cost of the oldest who has not named this sandbox: without a
    /// mount namespace that may be a command that wants to keep everybody else out.
    fn drop_a_stranger(&mut self) -> bool {
        let stranger = self.conns.iter().find(|(_, conn)| !conn.is_known);
        let Some(number) = stranger.map(|(number, _)| *number) else { return false };
        let Some(mut stranger) = self.conns.remove(&number) else { return false };
        // It may be one of ours whose question is on its way.
        let _ = stranger.wire.reply(&too_many());
        true
    }

    /// Takes what a client says, and answers what can be answered now.
    pub(super) fn hear_conn(&mut self, number: u64) {
        if self.try_hear(number).is_err() {
            self.conns.remove(&number);
        }
    }

    fn try_hear(&mut self, number: u64) -> Result<(), HungUp> {
        let Some(conn) = self.conns.get_mut(&number) else { return Ok(()) };
        if conn.wire.is_behind() {
            return conn.wire.flush();
        }
        conn.wire.fill()?;
        while let Some(conn) = self.conns.get_mut(&number).filter(|conn| conn.parked.is_none()) {
            let Some(asked) = conn.wire.next()? else { return Ok(()) };
            let outcome = self.perform(number, asked).unwrap_or_else(|e| Outcome::Now(e.into()));
            let Some(conn) = self.conns.get_mut(&number) else { return Ok(()) };
            match outcome {
                Outcome::Now(reply) => conn.wire.reply(&reply)?,
                Outcome::Later(parked) => conn.parked = Some(parked),
            }
        }
        Ok(())
    }

    fn hold_for(&mut self, number: u64) -> Result<()> {
        let holder = self.process(number)?;
        self.hold(holder)
    }

    /// The process of a client, to hear of its end; `None` where the kernel does not tell it.
    fn process(&self, number: u64) -> Result<Option<OwnedFd>> {
        let socket = self.conns.get(&number).map(|conn| &conn.wire.socket);
        let Some(pid) = socket.and_then(sys::peer_pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => Ok(Some(process)),
            Err(Errno::SRCH) => {
                Err(Error::new(ErrorKind::Unavailable, "the process that asked has ended"))
            }
            Err(_) => Ok(None),
        }
    }

    /// Refuses who speaks otherwise than we do, or means another sandbox.
    fn recognize(&mut self, number: u64, asked: &Asked) -> Result<()> {
        if asked.version != VERSION {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "this sandbox is kept by another version of Cofferdam",
            )
            .hint("Use the version that made it, or destroy it."));
        }
        if asked.of != self.record.external_id {
            let what = format!("this sandbox {} is gone, another has its id", self.record.id);
            return Err(Error::new(ErrorKind::Unavailable, what));
        }
        if let Some(conn) = self.conns.get_mut(&number) {
            conn.is_known = true;
        }
        Ok(())
    }

    fn perform(&mut self, number: u64, asked: Asked) -> Result<Outcome> {
        self.recognize(number, &asked)?;
        self.refuse_while_cleared(number, &asked.request)?;
        self.rest_no_more()?;
        let done = Ok(Outcome::Now(Reply::Done));
        match asked.request {
            Request::Status => {
                return Ok(Outcome::Now(Reply::Status { paused: self.paused.is_some() }));
            }
            Request::Pause => self.pause(false)?,
            Request::Hold => self.hold_for(number)?,
            Request::Resume => self.resume_unless_frozen()?,
            Request::ResumeOnPurpose => self.resume()?,
            Request::ClearForLayer => self.clear_for_layer(number)?,
            Request::RenewLayer => self.renew_layer(number)?,
            Request::SetDeadlines(deadlines) => self.set_deadlines(deadlines),
            Request::Destroy(reason) => {
                self.over.get_or_insert(reason);
                return Ok(Outcome::Later(Parked::Destroy));
            }
            Request::Start(order) => return self.start_for(number, *order),
            Request::Files => {
                self.open_files(number)?;
                return Ok(Outcome::Later(Parked::Files));
            }
            Request::WatchFiles => {
                self.open_files(number)?;
                return Ok(Outcome::Later(Parked::FileWatch));
            }
            Request::Port { port } => {
                self.open_port(number, port)?;
                return Ok(Outcome::Later(Parked::Port));
            }
            Request::Network => return Ok(self.network()),
            Request::SetNetwork(policy) => self.set_network(&policy)?,
            Request::Mapped => return Ok(Outcome::Now(self.mapped())),
            Request::Metrics => return Ok(Outcome::Now(Reply::Metrics(self.metrics()))),
            Request::Permissions => return Ok(self.permissions()),
            Request::AnswerPermission { number, verdict } => self.answer(number, verdict)?,
            Request::Execs { since_ms } => self.list(number, since_ms),
            Request::Watch { id, stdout, stderr, stops, end, patience_ms } => {
                let patience = Duration::from_millis(patience_ms).min(MAX_PATIENCE);
                let until = Instant::now() + patience;
                self.find(&id)?;
                let seen = Seen { stdout, stderr, stops, end };
                return Ok(Outcome::Later(Parked::Watch { id, seen, until }));
            }
            Request::Bytes { id, bytes } => {
                self.refuse_while_paused()?;
                self.check_reads(&id)?;
                return Ok(Outcome::Later(Parked::Bytes { id, piece: Piece::new(bytes) }));
            }
            Request::Close { id } => self.close_input(&id)?,
            Request::Signal { id, signal } => self.signal(&id, signal)?,
            Request::Resize { id, size } => self.resize(&id, size)?,
            Request::Unread { id, stream } => self.unread(&id, stream)?,
            Request::Kill { id } => self.kill_if_alive(&id)?,
        }
        done
    }

    /// Starts a command with the descriptors that came with the request.
    fn start_for(&mut self, number: u64, order: Start) -> Result<Outcome> {
        let conn = self.conns.get_mut(&number);
        let came = conn.map(|conn| conn.wire.take_descriptors()).unwrap_or_default();
        let until = order.patience().map(|patience| Instant::now() + patience);
        self.start(&order, &came)?;
        Ok(Outcome::Later(Parked::Start { id: order.id, until }))
    }

    /// Closes the input of a command. One that has ended reads nothing.
    fn close_input(&mut self, id: &ProcessId) -> Result<()> {
        match self.live(id) {
            Ok(live) => live.close_input(),
            Err(error) if error.kind == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Kills a command. One that has ended, and left nothing, is as it was to be.
    fn kill_if_alive(&mut self, id: &ProcessId) -> Result<()> {
        let channel = match self.partly_live(id) {
            Ok(live) => live.channel,
            Err(error) if error.kind == ErrorKind::Conflict => return Ok(()),
            Err(error) => return Err(error),
        };
        self.refuse_while_paused()?;
        self.kill(channel, Killed::ByClient);
        Ok(())
    }

    /// What the sandbox uses: by its groups where these count, else by its processes.
    fn mapped(&self) -> Reply {
        Reply::Mapped(match mapped_below(self.born.pid) {
            MappedFiles::Known(names) => Some(names.into_iter().map(Into::into).collect()),
            MappedFiles::Any => None,
        })
    }

    fn metrics(&self) -> SandboxMetrics {
        let mut used = used_by(self.born.pid);
        let counted = self.assembly.cgroups().map(Cgroups::usage).unwrap_or_default();
        if let Some(us) = counted.cpu_us {
            #[expect(clippy::cast_precision_loss, reason = "it is a measure, not a count")]
            let ms = us as f64 / 1000.0;
            used.cpu_ms = Some(ms);
        }
        used.memory_bytes = counted.memory_bytes.or(used.memory_bytes);
        used.peak_memory_bytes = counted.peak_memory_bytes;
        used
    }

    fn network(&self) -> Outcome {
        Outcome::Now(Reply::Network(self.gate.as_ref().map(|gate| gate.policy().clone())))
    }

    fn set_network(&mut self, policy: &NetworkPolicy) -> Result<()> {
        match &mut self.gate {
            Some(gate) => gate.set_policy(policy),
            None => Err(no_way_out(&self.record.id)),
        }
    }

    fn permissions(&self) -> Outcome {
        let all = self.gate.as_ref().map(Gatehouse::permissions);
        Outcome::Now(Reply::Permissions(all.unwrap_or_default()))
    }

    fn answer(&mut self, number: u64, verdict: Verdict) -> Result<()> {
        match &mut self.gate {
            Some(gate) => gate.answer(number, verdict),
            None => Err(no_way_out(&self.record.id)),
        }
    }

    /// Gives the terminal of a command its size before anybody is told that it has it. As long as its
    /// master has not come, process 1 is asked to.
    fn resize(&mut self, id: &ProcessId, size: Terminal) -> Result<()> {
        self.live(id)?;
        self.refuse_while_paused()?;
        self.touch();
        let live = self.live(id)?;
        let winsize =
            Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        let is_terminal = matches!(live.stdin, Input::Terminal);
        let master = live.input().filter(|_| is_terminal);
        // HOSTILE: what came as a master may be none, and then takes no size.
        if master.is_none_or(|master| tcsetwinsize(master, winsize).is_err()) {
            let channel = live.channel;
            self.line.message(channel, &ToProcess::Resize(size), Vec::new());
        }
        Ok(())
    }

    /// Sends a signal to a command, or to what it left. The one that nobody can refuse ends all of a
    /// command that may leave something: of its group alone it would leave the rest.
    fn signal(&mut self, id: &ProcessId, signal: i32) -> Result<()> {
        let channel = self.partly_live(id)?.channel;
        self.refuse_while_paused()?;
        self.touch();
        if signal == libc::SIGKILL && self.known(id)?.leaves_descendants() {
            self.kill(channel, Killed::BySignal);
        } else {
            self.line.message(channel, &ToProcess::Signal(signal), Vec::new());
        }
        Ok(())
    }

    /// Lets go of a stream of a command. A terminal the guest holds too, so that one is hung up.
    fn unread(&mut self, id: &ProcessId, stream: Standard) -> Result<()> {
        if self.live(id)?.has_terminal() {
            self.signal(id, libc::SIGHUP)?;
            return self.signal(id, libc::SIGCONT);
        }
        self.live(id)?.let_go(stream);
        Ok(())
    }

    fn check_reads(&mut self, id: &ProcessId) -> Result<()> {
        let live = self.live(id)?;
        if !live.reads() {
            let what = format!("command {id} reads nothing, or its input was closed");
            let error = Error::new(ErrorKind::Conflict, what);
            return Err(error.hint("Start one with standard input or a terminal."));
        }
        self.touch();
        Ok(())
    }

    fn list(&mut self, number: u64, since_ms: u64) {
        let is_written = |entry| self.journal.has(entry);
        let is_wanted = |exec: &&Exec| exec.is_of_interest_since(since_ms, is_written);
        let wanted = self.execs.iter().filter(is_wanted);
        let all: Vec<ExecStatus> = wanted.map(|exec| self.status(exec)).collect();
        let Some(conn) = self.conns.get_mut(&number) else { return };
        for status in all {
            if conn.wire.reply(&Reply::Exec(Box::new(status))).is_err() {
                return;
            }
        }
    }

    fn find(&self, id: &ProcessId) -> Result<ExecStatus> {
        let exec = self.execs.find(id).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no command {id} is known in this sandbox"))
                .hint("List the commands with `cofferdam ps`.")
        })?;
        Ok(self.status(exec))
    }

    /// How a command stands, what it left counted.
    fn status(&self, exec: &Exec) -> ExecStatus {
        let mut status = exec.status(|entry| self.journal.has(entry));
        if status.ended.is_some() {
            status.left = exec.left_below().map(|below| count_below(self.born.pid, below));
        }
        status
    }

    /// Answers clients whose wait is over.
    pub(super) fn answer_parked(&mut self) {
        let waiting = self.conns.iter().filter(|(_, conn)| conn.parked.is_some());
        for number in waiting.map(|(number, _)| *number).collect::<Vec<_>>() {
            let Some(parked) = self.conns.get_mut(&number).and_then(|conn| conn.parked.take())
            else {
                continue;
            };
            let outcome = self.look_at(parked).unwrap_or_else(|e| Outcome::Now(e.into()));
            let Some(conn) = self.conns.get_mut(&number) else { continue };
            match outcome {
                Outcome::Later(parked) => conn.parked = Some(parked),
                Outcome::Now(reply) => {
                    if conn.wire.reply(&reply).is_err() {
                        self.conns.remove(&number);
                    }
                }
            }
        }
    }

    fn look_at(&mut self, parked: Parked) -> Result<Outcome> {
        let exec_reply = |status| Ok(Outcome::Now(Reply::Exec(Box::new(status))));
        match parked {
            Parked::Destroy => Ok(Outcome::Later(Parked::Destroy)),
            Parked::Files => Ok(Outcome::Later(Parked::Files)),
            Parked::FileWatch => Ok(Outcome::Later(Parked::FileWatch)),
            Parked::Port => Ok(Outcome::Later(Parked::Port)),
            Parked::Start { id, until } => {
                let status = self.find(&id)?;
                let live = self.execs.find(&id).and_then(|exec| exec.live.as_ref());
                let is_due = match until {
                    None => live.is_some_and(|live| live.is_started),
                    Some(until) => until <= Instant::now(),
                };
                if is_due || status.ended.is_some() {
                    return exec_reply(status);
                }
                Ok(Outcome::Later(Parked::Start { id, until }))
            }
            Parked::Watch { id, seen, until } => {
                let status = self.find(&id)?;
                let news = self
                    .execs
                    .find(&id)
                    .is_some_and(|exec| exec.is_beyond(seen, |entry| self.journal.has(entry)));
                if news || until <= Instant::now() {
                    return exec_reply(status);
                }
                if let Some(alarm) = &self.alarm {
                    // Nobody waits for what stands still.
                    return Err(alarm.freezes(&format!("sandbox {}", self.record.id)));
                }
                Ok(Outcome::Later(Parked::Watch { id, seen, until }))
            }
            Parked::Bytes { id, piece } => self.feed(id, piece),
        }
    }

    /// Gives a command what it takes of its input now.
    fn feed(&mut self, id: ProcessId, mut piece: Piece) -> Result<Outcome> {
        let (taken, of, errno) = match self.live(&id)?.give(&mut piece) {
            Given::Whole => return Ok(Outcome::Now(Reply::Done)),
            Given::Waits => return Ok(Outcome::Later(Parked::Bytes { id, piece })),
            Given::Failed { taken, of, errno } => (taken, of, errno),
        };
        let kind = match errno {
            Errno::AGAIN => ErrorKind::TimedOut,
            _ => ErrorKind::Conflict,
        };
        let what = format!("command {id} took {taken} of {of} bytes of input");
        Err(Error::new(kind, what).source(std::io::Error::from(errno)))
    }
}
