//! One command of a kept sandbox.

use super::input::Owed;
use super::journal::now_ms;
use super::place::Place;
use super::spool::{Ledger, Moved, Sink, Spool, Way};
use super::talk::Start;
use crate::oneshot::{large_pipe, not_started};
use cofferdam_core::secret::Mask;
use cofferdam_core::{
    Cause, Denial, Ending, Error, ErrorKind, ExecEnded, ExecStatus, LimitHits, ProcessId, Result,
    Seen, Spooled, Standard, UsageReport,
};
use cofferdam_wire::ByteString;
use cofferdam_wire::message::{FromProcess, How, Stdio, Stream};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// How much of a command's words is kept for people.
pub(super) const MAX_WORDS_BYTES: usize = 4096;
/// How much of the guest's own words about a failed start is kept.
const MAX_DETAIL_CHARS: usize = 1000;
/// How often a stream is emptied after its command ended: enough for a full pipe, and no more for
/// somebody who still writes.
const LAST_TURNS: u32 = 3;

/// How long what a command writes is left in its pipes, where nobody asks for it before its end. Most
/// have ended by then. Longer than the kernel's tick: a shorter wait programs the processor's clock, which
/// is dear on a virtual machine.
const LEFT_ALONE: Duration = Duration::from_millis(5);

/// Why the keeper killed a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    Time,
    Output,
    ByClient,
    /// A client sent it the signal that does.
    BySignal,
}

/// A command, from its start until it is forgotten.
#[derive(Debug)]
pub(super) struct Exec {
    status: ExecStatus,
    /// Tells another command of the same id.
    order: u64,
    /// The journal's entry of its end.
    ended_in: Option<u64>,
    pub(super) live: Option<Box<Live>>,
}

/// What a command has while it, or something that it left, runs.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) channel: u32,
    /// Whether the guest said what came of the start.
    pub(super) is_started: bool,
    pub(super) counts_as_use: bool,
    pub(super) stdin: Input,
    pub(super) owed: Owed,
    pub(super) stdout: Option<Spool>,
    pub(super) stderr: Option<Spool>,
    /// Where the output of a terminal goes, until its master comes.
    file: Option<(Sink, Ledger)>,
    spool_bytes: u64,
    /// Until then nobody asks for what it writes, which waits in its pipes.
    asleep_until: Option<Instant>,
    /// What is covered in what it writes.
    mask: Option<Mask>,
    pub(super) hits: LimitHits,
    /// Whether the private space was full before it was started.
    pub(super) found_full: bool,
    /// Where the gate's log ended when it was started.
    pub(super) log_from: u64,
    /// What is left of its time, and since when that is so; the clock stands while paused.
    left: Option<Duration>,
    since: Option<Instant>,
    max_output: u64,
    pub(super) killed: Option<(Killed, Instant)>,
    /// It has ended, and below this process, as the guest calls it, some of it goes on.
    left_below: Option<i32>,
}

/// What a command reads.
#[derive(Debug)]
pub(super) enum Input {
    None,
    Pipe(OwnedFd),
    /// Its terminal.
    Terminal,
}

/// A command's streams, as the guest is told of them.
pub(super) struct Streams {
    pub(super) stdio: Stdio,
    pub(super) theirs: Vec<OwnedFd>,
}

impl Exec {
    /// Makes its streams and spools. Nothing runs yet.
    pub(super) fn prepare(
        order: &Start,
        place: &Place,
        channel: u32,
        user: (u32, u32),
    ) -> Result<(Self, Streams)> {
        let failed = |errno: Errno| {
            Error::new(ErrorKind::Io, "make the streams of the command")
                .source(std::io::Error::from(errno))
        };
        let mut live = Live {
            channel,
            is_started: false,
            counts_as_use: !order.detached || order.keep_awake,
            stdin: Input::None,
            owed: Owed::default(),
            stdout: None,
            stderr: None,
            file: None,
            spool_bytes: order.spool_bytes,
            asleep_until: order
                .patience()
                .and_then(|patience| Instant::now().checked_add(patience.min(LEFT_ALONE))),
            mask: None,
            hits: LimitHits::default(),
            found_full: false,
            log_from: 0,
            left: order.timeout_ms.map(Duration::from_millis),
            since: Some(Instant::now()),
            max_output: order.max_output_bytes.unwrap_or(u64::MAX),
            killed: None,
            left_below: None,
        };
        let streams = live.open(order, place, user).map_err(failed)?;
        let status = ExecStatus {
            id: order.id.clone(),
            argv: shown(&order.argv),
            detached: order.detached,
            terminal: order.terminal.is_some(),
            started_ms: now_ms(),
            ended: None,
            left: None,
            stops: 0,
            stdout: Spooled::default(),
            stderr: Spooled::default(),
        };
        Ok((
            Self { status, order: hash(order), ended_in: None, live: Some(Box::new(live)) },
            streams,
        ))
    }

    pub(super) fn id(&self) -> &ProcessId {
        &self.status.id
    }

    /// Whether it was started by the same order, or the same one again.
    pub(super) fn is_of(&self, order: &Start) -> bool {
        self.order == hash(order)
    }

    /// Whether what it starts outlives it.
    pub(super) fn leaves_descendants(&self) -> bool {
        self.status.detached
    }

    pub(super) fn has_ended(&self) -> bool {
        self.status.ended.is_some()
    }

    /// The process, as the guest calls it, below which some of it goes on though it has ended.
    pub(super) fn left_below(&self) -> Option<i32> {
        self.live.as_ref()?.left_below
    }

    /// How it stands, its end included only if `is_written` says that this entry of the journal is.
    pub(super) fn status(&self, is_written: impl Fn(u64) -> bool) -> ExecStatus {
        let mut status = self.status.clone();
        if let Some(live) = &self.live {
            (status.stdout, status.stderr) = live.spooled();
        }
        if !self.ended_in.is_some_and(is_written) {
            status.ended = None;
        }
        status
    }

    /// Whether it runs, has left something, or ended at this moment or later, or nobody may know yet that
    /// it ended.
    pub(super) fn is_of_interest_since(&self, ms: u64, is_written: impl Fn(u64) -> bool) -> bool {
        self.live.is_some()
            || !self.ended_in.is_some_and(is_written)
            || self.status.is_of_interest_since(ms)
    }

    /// Whether there is news for somebody who has seen so much.
    pub(super) fn is_beyond(&self, seen: Seen, is_written: impl Fn(u64) -> bool) -> bool {
        let (stdout, stderr) = match &self.live {
            Some(live) => live.spooled(),
            None => (self.status.stdout, self.status.stderr),
        };
        stdout.written > seen.stdout
            || seen.stops.is_some_and(|known| self.status.stops > known)
            || stderr.written > seen.stderr
            || self.ended_in.is_some_and(is_written) && (!seen.end || self.live.is_none())
    }

    /// Counts that a signal of job control stopped it.
    pub(super) fn stop(&mut self) {
        self.status.stops = self.status.stops.saturating_add(1);
    }

    /// Takes the last of its output and notes how it ended; gives what the journal is to say.
    pub(super) fn end(
        &mut self,
        ending: Ending,
        word: LastWord,
        denials: Vec<Denial>,
    ) -> ExecStatus {
        let LastWord { usage, killed_descendants, left_below } = word;
        self.take_output(left_below.is_none());
        match (&mut self.live, left_below) {
            (Some(live), Some(_)) => live.begin_afterlife(left_below),
            (Some(_) | None, _) => self.live = None,
        }
        self.status.ended =
            Some(ExecEnded { ending, at_ms: now_ms(), usage, killed_descendants, denials });
        self.status.clone()
    }

    /// Takes the last that was written by what it left; gives what the journal is to say.
    pub(super) fn empty(&mut self) -> ExecStatus {
        self.take_output(true);
        self.live = None;
        self.status.clone()
    }

    fn take_output(&mut self, is_last: bool) {
        let Some(live) = &mut self.live else { return };
        for spool in live.stdout.iter_mut().chain(&mut live.stderr) {
            let _ = (0..LAST_TURNS).any(|_| spool.work() == Moved::Done);
        }
        if is_last {
            live.finish();
        }
        (self.status.stdout, self.status.stderr) = live.spooled();
    }

    /// Its end is this entry of the journal.
    pub(super) fn set_ended_in(&mut self, entry: u64) {
        self.ended_in = Some(entry);
    }
}

impl Live {
    fn open(
        &mut self,
        order: &Start,
        place: &Place,
        user: (u32, u32),
    ) -> rustix::io::Result<Streams> {
        if !place.takes_files() {
            return Err(Errno::NOSPC);
        }
        let file = place.sink(&order.id, Standard::Output);
        if let Some(size) = order.terminal {
            self.file = Some((file, place.ledger(&order.id, Standard::Output)));
            self.stdin = if order.reads { Input::Terminal } else { Input::None };
            return Ok(Streams { stdio: Stdio::Terminal(size), theirs: Vec::new() });
        }
        let mut theirs = Vec::with_capacity(3);
        let mut stdin = Stream::Null;
        if order.reads {
            let (reader, writer) = large_pipe(user)?;
            rustix::io::ioctl_fionbio(&writer, true)?;
            self.stdin = Input::Pipe(writer);
            stdin = Stream::Descriptor(0);
            theirs.push(reader);
        }
        let first = u32::from(order.reads);
        let mut spool = |file, ledger| {
            let (ours, writer) = large_pipe(user)?;
            theirs.push(writer);
            Spool::new(ours, file, Way::Splice, order.spool_bytes, ledger)
        };
        self.stdout = Some(spool(file, place.ledger(&order.id, Standard::Output))?);
        let file = place.sink(&order.id, Standard::Error);
        self.stderr = Some(spool(file, place.ledger(&order.id, Standard::Error))?);
        let [stdout, stderr] = [first, first + 1].map(Stream::Descriptor);
        Ok(Streams { stdio: Stdio::Streams { stdin, stdout, stderr }, theirs })
    }

    /// Takes the master of its terminal.
    pub(super) fn take_master(&mut self, master: OwnedFd) -> rustix::io::Result<()> {
        let (file, ledger) = self.file.take().ok_or(Errno::INVAL)?;
        let mut spool = Spool::new(master, file, Way::Copy, self.spool_bytes, ledger)?;
        if let Some(mask) = &self.mask {
            spool.cover(mask);
        }
        self.stdout = Some(spool);
        Ok(())
    }

    /// Covers this in what it writes from now on.
    pub(super) fn cover(&mut self, mask: &Mask) {
        for spool in self.stdout.iter_mut().chain(&mut self.stderr) {
            spool.cover(mask);
        }
        self.mask = Some(mask.clone());
    }

    /// Writes what was held back: nothing more is taken.
    fn finish(&mut self) {
        for spool in self.stdout.iter_mut().chain(&mut self.stderr) {
            spool.finish();
        }
    }

    /// The master of its terminal, once it has come.
    pub(super) fn master(&self) -> Option<&OwnedFd> {
        self.stdout.as_ref().and_then(Spool::master)
    }

    /// It has ended and what it left goes on: nobody reads its input any more.
    fn begin_afterlife(&mut self, left_below: Option<i32>) {
        self.left_below = left_below;
        self.stdin = Input::None;
    }

    /// Ends of what it writes that are to be waited on at this moment.
    pub(super) fn sources(&self, now: Instant) -> impl Iterator<Item = BorrowedFd<'_>> {
        let is_awake = self.asleep_until.is_none_or(|until| until <= now);
        let spools = self.stdout.iter().chain(&self.stderr).filter(move |_| is_awake);
        spools.filter_map(Spool::source)
    }

    /// When these ends are to be waited on, if they are not yet.
    pub(super) fn wakes_at(&self, now: Instant) -> Option<Instant> {
        self.asleep_until.filter(|until| *until > now)
    }

    fn spooled(&self) -> (Spooled, Spooled) {
        let of = |spool: &Option<Spool>| spool.as_ref().map(Spool::spooled).unwrap_or_default();
        (of(&self.stdout), of(&self.stderr))
    }

    /// Moves what it wrote. Says whether that was more than it may.
    pub(super) fn spool(&mut self) -> bool {
        let mut over = false;
        for spool in self.stdout.iter_mut().chain(&mut self.stderr) {
            if spool.source().is_some() {
                let _ = spool.work();
            }
            over |= spool.written() > self.max_output;
        }
        over
    }

    /// Whether what it writes to is a terminal of its own.
    pub(super) fn has_terminal(&self) -> bool {
        self.file.is_some() || self.stdout.as_ref().is_some_and(|spool| spool.master().is_some())
    }

    /// Takes nothing more of a stream: what it writes there meets a pipe without a reader.
    pub(super) fn let_go(&mut self, stream: Standard) {
        let spool = match stream {
            Standard::Output => &mut self.stdout,
            Standard::Error => &mut self.stderr,
        };
        if let Some(spool) = spool {
            spool.close();
        }
    }

    /// Lets go of what it writes and reads.
    pub(super) fn close_streams(&mut self) {
        for spool in self.stdout.iter_mut().chain(&mut self.stderr) {
            spool.close();
        }
    }

    /// When its time is over, if the clock goes on as now.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.since?.checked_add(self.left?)
    }

    /// Stops its clock, or lets it go on.
    pub(super) fn set_paused(&mut self, is_paused: bool) {
        let now = Instant::now();
        if let (true, Some(since)) = (is_paused, self.since.take()) {
            let spent = now.saturating_duration_since(since);
            self.left = self.left.map(|left| left.saturating_sub(spent));
        } else if !is_paused {
            self.since = Some(now);
            // Paused, the guest could not report an end.
            self.killed = self.killed.map(|(why, _)| (why, now));
        }
    }
}

/// What the guest says of a command that has ended, besides how it ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastWord {
    pub(super) usage: UsageReport,
    /// How many descendants went on when it ended, and were killed.
    pub(super) killed_descendants: Option<u32>,
    /// The process below which some of it goes on.
    pub(super) left_below: Option<i32>,
}

/// How a command ended by itself, from the guest's last word on it.
pub(super) fn own_ending(last: &FromProcess) -> (Ending, LastWord) {
    match last {
        FromProcess::NotStarted(why) => {
            // HOSTILE: the text comes from inside, and will be shown to people.
            let mut ending = not_started(why);
            if let Ending::NotStarted { detail, .. } = &mut ending {
                let printed = detail.chars().filter(|c| !c.is_control());
                *detail = printed.take(MAX_DETAIL_CHARS).collect();
            }
            (ending, LastWord::default())
        }
        FromProcess::Ended(ended) => {
            #[expect(clippy::cast_precision_loss, reason = "microseconds fit a float exactly")]
            let cpu_ms = Some(ended.cpu_us as f64 / 1000.0);
            let usage = UsageReport { cpu_ms, peak_memory_bytes: Some(ended.peak_rss_bytes) };
            let killed_descendants = Some(ended.killed_descendants);
            let word = LastWord { usage, killed_descendants, left_below: ended.left_below };
            match ended.how {
                How::Exited(code) => (Ending::Exited(code), word),
                How::Signaled(signal) => (Ending::Signaled(signal), word),
            }
        }
        FromProcess::Started { .. } | FromProcess::Stopped { .. } | FromProcess::Emptied => {
            (Ending::Lost, LastWord::default())
        }
    }
}

/// What the ending is, knowing why the keeper killed it.
pub(super) fn with_kill(own: Ending, killed: Option<Killed>) -> Ending {
    match (own, killed) {
        (own @ Ending::NotStarted { .. }, _) | (own, None) => own,
        // However it took that nobody listens any more.
        (_, Some(Killed::Output)) => Ending::Killed(Cause::Output),
        // It ended before the kill came.
        (own @ Ending::Exited(_), _) | (own, Some(Killed::BySignal)) => own,
        (_, Some(Killed::Time)) => Ending::Killed(Cause::Time),
        (_, Some(Killed::ByClient)) => Ending::Canceled,
    }
}

/// The words for people: text, and not too much of it.
fn shown(argv: &[ByteString]) -> Vec<String> {
    let mut room = MAX_WORDS_BYTES;
    let mut words = Vec::new();
    for word in argv {
        let mut word = word.to_string();
        if word.len() >= room {
            word.truncate(word.floor_char_boundary(room));
            word.push('…');
            words.push(word);
            break;
        }
        room -= word.len() + 1;
        words.push(word);
    }
    words
}

/// What makes one command another. Who asks again may wait for one that was detached, and the size of a terminal
/// changes with the window.
fn hash(order: &Start) -> u64 {
    let Start { argv, cwd, env, reads, terminal, timeout_ms, max_output_bytes, .. } = order;
    let mut hasher = DefaultHasher::new();
    (argv, cwd, env, reads, terminal.is_some()).hash(&mut hasher);
    (timeout_ms, max_output_bytes).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::talk::order_of;
    use super::*;

    #[test]
    fn long_words_are_cut_for_people_and_still_told_apart() {
        let long = |end: &str| vec![ByteString::from("ä".repeat(5000) + end), "x".into()];
        let text = shown(&long("a"));
        assert_eq!(text.len(), 1);
        assert!(text[0].len() <= MAX_WORDS_BYTES + 3 && text[0].ends_with("ä…"));
        let order = |end: &str| {
            let mut start = order_of("x", "true");
            start.argv = long(end);
            hash(&start)
        };
        assert_eq!(order("a"), order("a"));
        assert_ne!(order("a"), order("b"));
        assert_eq!(shown(&["a".into(), "b".into()]), ["a", "b"]);
    }

    #[test]
    fn a_command_that_ended_before_it_was_killed_ended_by_itself() {
        let check = |own, killed, expected| assert_eq!(with_kill(own, killed), expected);
        let time = Some(Killed::Time);
        check(Ending::Exited(3), time, Ending::Exited(3));
        check(Ending::Signaled(9), time, Ending::Killed(Cause::Time));
        check(Ending::Signaled(9), Some(Killed::ByClient), Ending::Canceled);
        check(Ending::Signaled(9), None, Ending::Signaled(9));
        check(Ending::Signaled(9), Some(Killed::BySignal), Ending::Signaled(9));
        check(Ending::Exited(1), Some(Killed::Output), Ending::Killed(Cause::Output));
    }
}
