//! One command from its start to its end, as the caller's process sees it.

use super::screen::Screen;
use super::stream::{Input, Next, Output};
use crate::clearing;
use crate::gate::Gatehouse;
use crate::launch::{Born, io_error};
use crate::private;
use crate::raw_mode::stop_job;
use crate::sys;
use crate::watchman::Watchman;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::line::{Line, understand};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::{FromProcess, HostOpens, How, Spawn, ToProcess};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The channel of the one command.
const CHANNEL: u32 = 1;

/// Signals that are passed on to a command.
pub const PASSED_ON: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// Those of them by which somebody wants this program to end.
pub const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// How long to wait where nothing has a time.
const LONG: Duration = Duration::from_secs(3600);

/// How long a command runs before the names of its workspace are watched. To end a watch takes the
/// kernel longer than a short command does; what the host changed until then is seen at its start.
const WATCH_AFTER: Duration = Duration::from_millis(20);

/// Starts the watch over pinned names.
pub(crate) type StartWatch<'a> = Box<dyn FnOnce() -> Result<Option<Watchman<'a>>> + 'a>;

/// Why the command was killed by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// Its time was over.
    Time,
    /// It wrote too much.
    Output,
    /// It used a secret toward another host.
    SecretAlarm,
}

/// Streams, time and terminal of one command.
pub(crate) struct Drive<'a> {
    /// Whether the kernel ends everything with the sandbox's first process. Where it does not, that
    /// process is asked to.
    pub(crate) ends_by_kernel: bool,
    /// Who holds the way out, if there is one.
    pub(crate) gate: Option<Gatehouse>,
    /// Starts the watch over pinned names, once.
    pub(crate) watch: Option<StartWatch<'a>>,
    /// The watch, once it was started.
    pub(crate) pins: Option<Watchman<'a>>,
    pub(crate) stdout: Option<Output>,
    pub(crate) stderr: Option<Output>,
    pub(crate) stdin: Option<Input>,
    /// The caller's terminal, where the command gets one of its own.
    pub(crate) screen: Option<Screen>,
    pub(crate) timeout: Option<Duration>,
    /// The most output of each stream.
    pub(crate) max_output: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Driven {
    /// The guest's last message on the command. `None`: it was killed with its sandbox.
    pub(crate) last: Option<FromProcess>,
    /// Whether it failed and left the private space full.
    pub(crate) is_full: bool,
    pub(crate) killed: Option<Killed>,
    /// Lets go of the sandbox's mounts.
    pub(crate) unmounting: Option<JoinHandle<()>>,
    pub(crate) stdout: Option<Output>,
    pub(crate) stderr: Option<Output>,
    pub(crate) gate: Option<Gatehouse>,
}

struct Loop<'a> {
    drive: Drive<'a>,
    born: &'a Born,
    line: Line,
    line_open: bool,
    /// Process 1 is gone, and with it everything in its process namespace.
    gone: bool,
    /// Somebody wants us to end, and nothing but a slow reader is left.
    is_left: bool,
    signals: OwnedFd,
    deadline: Option<Instant>,
    watch_from: Option<Instant>,
    /// When what lives below the first process is killed from here, because that one gets no processor.
    clear_from: Option<Instant>,
    last: Option<FromProcess>,
    is_full: bool,
    killed: Option<Killed>,
    unmounting: Option<JoinHandle<()>>,
    next: [Next; 2],
}

/// Which of the descriptors are waited on, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Line,
    Signals,
    Stdout,
    Stderr,
    Stdin,
    Pins,
    Gone,
    Gate,
}

/// Starts the command on a line whose greeting was read, and sees it through.
pub(crate) fn drive<'a>(
    born: &'a Born,
    mut line: Line,
    spawn: Spawn,
    descriptors: Vec<OwnedFd>,
    drive: Drive<'a>,
) -> Result<Driven> {
    let mut wanted = PASSED_ON.to_vec();
    wanted.extend([libc::SIGWINCH, libc::SIGTSTP]);
    // What whoever started this process had it ignore stays ignored: `nohup` is there to outlive a terminal.
    wanted.retain(|signal| !sys::is_ignored(*signal));
    let signals = sys::signals(&wanted).map_err(|e| io_error("watch signals", e))?;
    line.message(CHANNEL, &HostOpens::Spawn(Box::new(spawn)), descriptors);
    // The kernel may take no descriptors now, and nobody would ever hear of the command.
    line.settle().map_err(|errno| io_error("hand its streams to the command", errno))?;
    let deadline = drive.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut all = Loop {
        drive,
        born,
        line,
        line_open: true,
        gone: false,
        is_left: false,
        signals,
        deadline,
        watch_from: Instant::now().checked_add(WATCH_AFTER),
        clear_from: None,
        last: None,
        is_full: false,
        killed: None,
        unmounting: None,
        next: [Next::Read; 2],
    };
    while !all.is_over() {
        all.turn()?;
    }
    if let Some(screen) = &mut all.drive.screen {
        screen.leave();
    }
    let Loop { drive, last, is_full, killed, unmounting, .. } = all;
    let Drive { stdout, stderr, gate, .. } = drive;
    Ok(Driven { last, is_full, killed, unmounting, stdout, stderr, gate })
}

/// Whether a command ran and did not succeed.
fn has_failed(message: &FromProcess) -> bool {
    match message {
        FromProcess::Ended(ended) => ended.how != How::Exited(0),
        FromProcess::NotStarted(_)
        | FromProcess::Started { .. }
        | FromProcess::Stopped { .. }
        | FromProcess::Emptied => false,
    }
}

impl Loop<'_> {
    fn is_over(&self) -> bool {
        let done = |output: &Option<Output>, next| output.is_none() || next == Next::Done;
        let [out, err] = self.next;
        self.is_left
            || !self.line_open && done(&self.drive.stdout, out) && done(&self.drive.stderr, err)
    }

    fn turn(&mut self) -> Result<()> {
        if self.line.flush().is_err() {
            self.line_open = false;
        }
        let ready = self.wait()?;
        for about in ready {
            match about {
                About::Line => self.hear()?,
                About::Gone => self.gone = true,
                About::Gate => {
                    if let Some(gate) = &mut self.drive.gate {
                        gate.turn();
                        // Nobody can answer what waits in a run that nobody else knows of, and what was
                        // denied is told at its end.
                        drop((gate.news(), gate.take_denials()));
                    }
                    if self.drive.gate.as_ref().is_some_and(Gatehouse::has_alarm) {
                        self.kill(Killed::SecretAlarm);
                    }
                }
                About::Pins => {
                    // A name that cannot be pinned again could be written: nothing may run on.
                    if let Some(pins) = &mut self.drive.pins {
                        pins.look()?;
                    }
                }
                About::Signals => self.signal(),
                About::Stdout | About::Stderr => self.output(about),
                About::Stdin => {
                    let next = self.drive.stdin.as_mut().map(Input::work);
                    if next == Some(Next::Done)
                        && let Some(input) = self.drive.stdin.take()
                        && self.drive.screen.is_some()
                    {
                        input.end_of_terminal();
                    }
                }
            }
        }
        if self.gone || (!self.line_open && !self.drive.ends_by_kernel) {
            self.take_the_rest();
        }
        if self.clear_from.is_some_and(|from| from <= Instant::now()) {
            clearing::kill_below(self.born.pid);
            self.clear_from = Instant::now().checked_add(clearing::AGAIN);
        }
        self.clear_from = self.clear_from.filter(|_| !self.gone);
        if self.watch_from.is_some_and(|from| from <= Instant::now()) {
            self.watch_from = None;
            if let Some(start) = self.drive.watch.take().filter(|_| self.line_open) {
                self.drive.pins = start()?;
            }
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.deadline = None;
            self.kill(Killed::Time);
        }
        Ok(())
    }

    fn wait(&self) -> Result<Vec<About>> {
        let mut about = vec![About::Signals];
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let line = self.line_open.then(|| (About::Line, self.line.socket(), Next::Read));
        let [out, err] = self.next;
        let stdout = self.drive.stdout.as_ref().and_then(|output| output.wait_on(out));
        let stderr = self.drive.stderr.as_ref().and_then(|output| output.wait_on(err));
        let stdout = stdout.map(|fd| (About::Stdout, fd, out));
        let stderr = stderr.map(|fd| (About::Stderr, fd, err));
        let stdin = self.drive.stdin.as_ref().filter(|_| self.line_open).map(|input| {
            let (fd, next) = input.wait_on();
            (About::Stdin, fd, next)
        });
        let gone = (!self.line_open && !self.gone && self.drive.ends_by_kernel)
            .then(|| (About::Gone, self.born.pidfd.as_fd(), Next::Read));
        let pins = self.drive.pins.as_ref().filter(|_| self.line_open);
        let pins = pins.map(|pins| (About::Pins, pins.fd(), Next::Read));
        for (what, fd, next) in [line, stdout, stderr, stdin, pins, gone].into_iter().flatten() {
            let flags = match (what, next) {
                // What did not fit into the socket at once goes when there is room.
                (About::Line, _) if !self.line.is_idle() => PollFlags::IN | PollFlags::OUT,
                (_, Next::Write) => PollFlags::OUT,
                (_, Next::Read | Next::Done) => PollFlags::IN,
            };
            about.push(what);
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        }
        // ORDER: not once the command has ended, because a second thread is at work then.
        let gate = self.drive.gate.as_ref().filter(|_| self.line_open && self.last.is_none());
        for (fd, flags) in gate.map(Gatehouse::waits).unwrap_or_default() {
            about.push(About::Gate);
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        }
        match poll(&mut fds, Some(&self.timeout())) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(io_error("wait for the command", errno)),
        }
        let ready = about.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        let mut ready: Vec<About> = ready.map(|(about, _)| *about).collect();
        // Of several sockets of the gate that are ready one is enough to start it.
        ready.dedup();
        Ok(ready)
    }

    fn timeout(&self) -> Timespec {
        let next = [self.deadline, self.watch_from, self.clear_from].into_iter().flatten().min();
        let left = next.map_or(LONG, |next| next.saturating_duration_since(Instant::now()));
        Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        }
    }

    fn hear(&mut self) -> Result<()> {
        let lost = self.line.fill().is_err();
        loop {
            // HOSTILE: what comes up the line comes from inside. Anything odd ends the sandbox.
            let Ok(frame) = self.line.next_frame() else { return self.distrust() };
            let Some((header, body)) = frame else { break };
            match (header.channel, header.kind) {
                (CHANNEL, Kind::Message) => match understand::<FromProcess>(&body) {
                    Some(message) => self.command_says(message)?,
                    None => return self.distrust(),
                },
                (CHANNEL, Kind::Data) => self.take_terminal()?,
                _ => return self.distrust(),
            }
        }
        if lost {
            self.line_open = false;
        }
        Ok(())
    }

    fn distrust(&mut self) -> Result<()> {
        Err(Error::new(ErrorKind::Protocol, "the sandbox broke the protocol of its line"))
    }

    fn command_says(&mut self, message: FromProcess) -> Result<()> {
        match message {
            FromProcess::Started { .. } => {}
            FromProcess::Emptied => return self.distrust(),
            FromProcess::Stopped { signal: _ } => {
                // Only somebody at a terminal can make us go on.
                if self.drive.screen.as_ref().is_some_and(Screen::is_raw) {
                    self.stop_ourselves();
                }
            }
            FromProcess::NotStarted(_) | FromProcess::Ended(_) => {
                // ORDER: while its mounts are there, and this process has one thread.
                self.is_full = has_failed(&message) && private::is_full(&mut None, self.born);
                self.last = Some(message);
                if self.drive.ends_by_kernel {
                    self.end();
                } else {
                    // It stays to serve us; hanging up ends it.
                    self.line_open = false;
                }
            }
        }
        Ok(())
    }

    /// The command is gone, and the sandbox goes.
    fn end(&mut self) {
        // HOSTILE: what says that it ends is ended, so that nothing goes on without the watch.
        self.kill_first();
        // ORDER: the watch before the thread. It makes processes, which nobody may who has two threads.
        self.drive.watch = None;
        self.drive.pins = None;
        self.unmounting = self.unmounting.take().or_else(|| self.born.let_go());
    }

    /// The master of the command's terminal has come.
    fn take_terminal(&mut self) -> Result<()> {
        let (Some(master), Some(screen)) = (self.line.take_descriptor(), &mut self.drive.screen)
        else {
            return self.distrust();
        };
        let copy = rustix::io::fcntl_dupfd_cloexec(&master, 3)
            .map_err(|errno| io_error("copy a descriptor", errno))?;
        screen.enter();
        let (input, output) =
            screen.connect(master, copy).map_err(|e| io_error("connect the terminal", e))?;
        self.drive.stdin = input;
        self.drive.stdout = Some(output);
        self.next = [Next::Read, Next::Done];
        Ok(())
    }

    /// Stops as the command did, so that the caller's shell gets its prompt back; and goes on.
    fn stop_ourselves(&mut self) {
        if let Some(screen) = &mut self.drive.screen {
            screen.leave();
        }
        stop_job();
        if let Some(screen) = &mut self.drive.screen {
            screen.enter();
            self.line.message(CHANNEL, &ToProcess::Resize(screen.size()), Vec::new());
        }
        self.line.message(CHANNEL, &ToProcess::Signal(libc::SIGCONT), Vec::new());
    }

    fn signal(&mut self) {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.signals, &mut record).is_ok() {
            let number = record.first_chunk::<4>().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
            match (number, &self.drive.screen) {
                (libc::SIGWINCH, Some(screen)) => {
                    let size = screen.size();
                    self.line.message(CHANNEL, &ToProcess::Resize(size), Vec::new());
                }
                (libc::SIGWINCH, None) => {}
                (libc::SIGTSTP, _) => {
                    self.line.message(CHANNEL, &ToProcess::Signal(libc::SIGSTOP), Vec::new());
                    self.line.drain();
                    self.stop_ourselves();
                }
                _ if self.line_open && self.killed.is_none() && self.last.is_none() => {
                    self.line.message(CHANNEL, &ToProcess::Signal(number), Vec::new());
                    // HOSTILE: a command that stands still takes no signal, and would hold its caller for ever.
                    if ENDING.contains(&number) {
                        self.line.message(CHANNEL, &ToProcess::Signal(libc::SIGCONT), Vec::new());
                    }
                }
                // There is no command any more; whoever reads our output can be left.
                _ => self.is_left = true,
            }
        }
    }

    fn output(&mut self, about: About) {
        let [out, err] = &mut self.next;
        let (output, next) = match about {
            About::Stderr => (&mut self.drive.stderr, err),
            About::Stdout
            | About::Line
            | About::Signals
            | About::Stdin
            | About::Pins
            | About::Gate
            | About::Gone => (&mut self.drive.stdout, out),
        };
        let Some(output) = output else { return };
        *next = output.work(self.drive.max_output);
        if output.is_over {
            // What is cut off is told, though the command may have ended before it was seen.
            self.killed.get_or_insert(Killed::Output);
            self.kill(Killed::Output);
        } else if output.has_no_reader && self.drive.screen.is_some() && self.line_open {
            // The guest holds the terminal too, so closing ours hangs nobody up.
            output.discard();
            *next = Next::Read;
            for signal in [libc::SIGHUP, libc::SIGCONT] {
                self.line.message(CHANNEL, &ToProcess::Signal(signal), Vec::new());
            }
        } else if *next == Next::Done && self.line_open {
            // The caller reads no more, or the command closed its end. Closing ours tells the
            // command the first as a broken pipe.
            output.close();
        }
    }

    /// Takes what is in the pipes and waits for no more. A command can give its output to another
    /// sandbox over a socket in the workspace; that one's life is not ours.
    fn take_the_rest(&mut self) {
        for about in [About::Stdout, About::Stderr] {
            self.output(about);
        }
        // What was held back to see what follows it comes out before the end.
        for (output, next) in
            [&mut self.drive.stdout, &mut self.drive.stderr].into_iter().zip(self.next)
        {
            if let Some(output) = output.as_mut().filter(|_| next == Next::Read) {
                output.end();
            }
        }
        for about in [About::Stdout, About::Stderr] {
            self.output(about);
        }
        for next in self.next.iter_mut().filter(|next| **next == Next::Read) {
            *next = Next::Done;
        }
    }

    fn kill(&mut self, why: Killed) {
        if self.last.is_none() {
            self.killed.get_or_insert(why);
            if !self.drive.ends_by_kernel {
                return self.line.message(CHANNEL, &ToProcess::Kill, Vec::new());
            }
            self.kill_first();
        }
    }

    fn kill_first(&mut self) {
        self.born.kill();
        self.clear_from = Instant::now().checked_add(clearing::BY_ITSELF);
    }
}
