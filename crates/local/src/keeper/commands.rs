//! A keeper's dealings with its commands: start, output, time, end.

use super::exec::{Exec, Killed, LastWord, Live, own_ending, with_kill};
use super::keep::Keeper;
use super::talk::Start;
use super::tree::count_below;
use crate::gate::Gatehouse;
use crate::handing;
use crate::plan::Tier;
use crate::private;
use cofferdam_core::secret::{Mask, SecretValue};
use cofferdam_core::{
    Cause, DestroyReason, Ending, Error, ErrorKind, Happened, LimitHits, ProcessId, Result,
};
use cofferdam_guestd::line::understand;
use cofferdam_wire::ByteString;
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::{Descendants, FromProcess, HostOpens, News, Spawn, ToProcess};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long the guest has to report the end of a command that it was told to kill. One that does not
/// is not trusted any more.
const KILLED_WITHIN: Duration = Duration::from_secs(20);

impl Live {
    /// When the keeper has to look at it again.
    pub(super) fn next_moment(&self) -> Option<Instant> {
        match self.killed {
            Some((_, since)) => since.checked_add(KILLED_WITHIN),
            None => self.deadline(),
        }
    }
}

impl Keeper<'_> {
    /// Starts a command, unless it was started before.
    pub(super) fn start(&mut self, order: &Start, came: &[OwnedFd]) -> Result<()> {
        self.touch();
        if self.execs.knows(order)? {
            return Ok(());
        }
        self.refuse_while_paused()?;
        self.execs.check_room()?;
        let user = self.assembly.outside_ids;
        let channel = self.execs.take_channel();
        // ORDER: what would show a value is masked before anybody has it.
        let secrets = self.take_secrets(order, came)?;
        let (mut exec, mut streams) = Exec::prepare(order, self.place, channel, user)?;
        if let (Some(mask), Some(live)) = (&self.mask, &mut exec.live) {
            live.cover(mask);
        }
        streams.theirs.extend(secrets);
        let spawn = self.spawn(order, streams.stdio);
        if let Err(error) = handing::refuse_long(&spawn) {
            self.place.forget_spools(&order.id);
            return Err(error);
        }
        let spawn = HostOpens::Spawn(Box::new(spawn));
        let (hits, log_from) = (self.hits(), self.gate.as_ref().map_or(0, Gatehouse::logged));
        // The first one finds the space empty, and waits for no look at it.
        let is_first = self.private.is_none() && self.execs.iter().next().is_none();
        let found_full = !is_first && private::is_full(&mut self.private, self.born);
        if let Some(live) = &mut exec.live {
            live.hits = hits;
            live.found_full = found_full;
            live.log_from = log_from;
        }
        // ORDER: written down before it runs.
        let status = exec.status(|_| true);
        if !self.journal.begin(Happened::ExecStarted(Box::new(status))) {
            self.place.forget_spools(&order.id);
            return Err(Error::new(
                ErrorKind::Unavailable,
                "write down that the command starts: the disk of the state directory is full",
            )
            .hint(
                "Free some space there, or remove sessions: `cofferdam rm` works all the same.",
            ));
        }
        for gone in self.execs.add(exec) {
            self.place.forget_spools(&gone);
        }
        self.line.message(channel, &spawn, streams.theirs);
        Ok(())
    }

    fn spawn(&self, order: &Start, stdio: cofferdam_wire::message::Stdio) -> Spawn {
        let planned = &self.assembly.planned;
        let mut env = planned.env.clone();
        env.extend(
            order.env.iter().map(|(n, v)| (n.as_os_str().to_owned(), v.as_os_str().to_owned())),
        );
        let cwd = std::path::Path::new(&planned.cwd);
        let cwd = order.cwd.as_ref().map_or(cwd.to_owned(), |at| cwd.join(at.as_os_str()));
        Spawn {
            id: order.id.as_str().to_owned(),
            argv: order.argv.clone(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: ByteString::from(cwd.into_os_string()),
            stdio,
            // The guest's clock would go on while it is paused; ours does not.
            timeout_ms: None,
            descendants: if order.detached { Descendants::Stay } else { Descendants::Die },
            news: match order.patience() {
                Some(_) => News::Together,
                None => News::AtOnce,
            },
            handed: order.handed.clone(),
        }
    }

    /// Takes the values that came, masks them from now on in all that any command here writes, and gives
    /// them as the guest is to have them.
    fn take_secrets(&mut self, order: &Start, came: &[OwnedFd]) -> Result<Vec<OwnedFd>> {
        if order.handed.is_empty() {
            return Ok(Vec::new());
        }
        if self.assembly.planned.tier == Tier::Landlock {
            handing::refuse_files(&order.handed)?;
        }
        if came.len() != order.handed.len() {
            return Err(Error::new(ErrorKind::Protocol, "the secrets did not arrive"));
        }
        let values = came.iter().map(handing::value_of).collect::<Result<Vec<_>>>()?;
        let files = handing::as_files(&values, Some(self.assembly.outside_ids))?;
        self.mask_from_now(values)?;
        Ok(files)
    }

    /// Masks these values, too, in all that any command here writes from now on.
    pub(super) fn mask_from_now(&mut self, values: Vec<SecretValue>) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mut all = self.secrets.clone();
        all.extend(values);
        all.sort_unstable_by(|a, b| a.expose().cmp(b.expose()));
        all.dedup();
        let mask = Mask::new(&all)?;
        for live in self.execs.iter_mut().filter_map(|exec| exec.live.as_mut()) {
            live.cover(&mask);
        }
        (self.secrets, self.mask) = (all, Some(mask));
        Ok(())
    }

    /// Fails while it is paused.
    pub(super) fn refuse_while_paused(&self) -> Result<()> {
        match (self.paused, &self.alarm) {
            (None, _) => Ok(()),
            (Some(_), Some(alarm)) => Err(alarm.freezes(&format!("sandbox {}", self.record.id))),
            (Some(_), None) => {
                let what = format!("sandbox {} is paused", self.record.id);
                Err(Error::new(ErrorKind::Conflict, what).hint("Resume it first."))
            }
        }
    }

    /// Takes what the guest says.
    pub(super) fn hear(&mut self) {
        let lost = self.line.fill().is_err();
        loop {
            // HOSTILE: what comes up the line comes from inside. Anything odd ends the sandbox.
            let understood = match self.line.next_frame() {
                Ok(None) => break,
                Ok(Some((header, body))) => match header.kind {
                    Kind::Message => understand::<FromProcess>(&body)
                        .is_some_and(|message| self.command_says(header.channel, &message)),
                    Kind::Data => self.take_master(header.channel),
                    Kind::Credit | Kind::End => false,
                },
                Err(_) => false,
            };
            if !understood {
                self.over.get_or_insert(DestroyReason::Lost);
                return;
            }
        }
        if lost {
            self.over.get_or_insert(DestroyReason::Lost);
        }
    }

    fn command_says(&mut self, channel: u32, message: &FromProcess) -> bool {
        let Some(exec) = self.execs.on(channel) else { return false };
        match message {
            FromProcess::Started { .. } => {
                if let Some(live) = &mut exec.live {
                    live.is_started = true;
                }
            }
            // Whoever sits at its terminal stops too, and sends SIGCONT when called back.
            FromProcess::Stopped { .. } => exec.stop(),
            FromProcess::Emptied if exec.has_ended() => self.empty(channel),
            FromProcess::Emptied => return false,
            FromProcess::NotStarted(_) | FromProcess::Ended(_) if exec.has_ended() => return false,
            FromProcess::NotStarted(_) | FromProcess::Ended(_) => {
                let (own, word) = own_ending(message);
                if word.left_below.is_some() && !exec.leaves_descendants() {
                    return false;
                }
                let killed = exec.live.as_ref().and_then(|live| live.killed);
                let before = exec.live.as_ref().map(|live| (live.hits, live.found_full));
                let ending = with_kill(own, killed.map(|(why, _)| why));
                let ending = self.explain(before.unwrap_or_default(), ending);
                self.end(channel, ending, word);
            }
        }
        true
    }

    /// Names the limit that a command failed by. One that found the private space full may have failed by
    /// anything.
    fn explain(&mut self, (before, found_full): (LimitHits, bool), ending: Ending) -> Ending {
        let ending = before.explain(self.hits(), ending);
        let failed = match &ending {
            Ending::Exited(code) => *code != 0,
            Ending::Signaled(_) => true,
            Ending::Killed(_)
            | Ending::NotStarted { .. }
            | Ending::SetupFailed { .. }
            | Ending::Canceled
            | Ending::Lost => false,
        };
        if failed && !found_full && private::is_full(&mut self.private, self.born) {
            return Ending::Killed(Cause::Disk { code: ending.exit_code() });
        }
        ending
    }

    /// Writes down that a command ended.
    pub(super) fn end(&mut self, channel: u32, ending: Ending, word: LastWord) {
        let first = self.born.pid;
        let Some(exec) = self.execs.on(channel) else { return };
        let log_from = exec.live.as_ref().map_or(0, |live| live.log_from);
        // What cannot be read of the log is told by nobody; the command has ended all the same.
        let denials = self.gate.as_ref().map(|gate| gate.denied_since(log_from));
        let denials = denials.and_then(Result::ok).unwrap_or_default();
        let mut status = exec.end(ending, word, denials);
        status.left = word.left_below.map(|below| count_below(first, below));
        let entry = self.journal.add(Happened::ExecEnded(Box::new(status)));
        if let Some(exec) = self.execs.on(channel) {
            exec.set_ended_in(entry);
        }
        if word.left_below.is_none() {
            self.execs.close(channel);
        }
    }

    /// Writes down that nothing is left of what a command left.
    pub(super) fn empty(&mut self, channel: u32) {
        let Some(exec) = self.execs.on(channel) else { return };
        let status = exec.empty();
        self.journal.add(Happened::ExecEmptied(Box::new(status)));
        self.execs.close(channel);
    }

    fn hits(&self) -> LimitHits {
        let causes = self.counters.read();
        LimitHits {
            memory: causes.oom_kills.unwrap_or_default(),
            pids: causes.pids_hits.unwrap_or_default(),
        }
    }

    fn take_master(&mut self, channel: u32) -> bool {
        let master = self.line.take_descriptor();
        let live = self.execs.on(channel).and_then(|exec| exec.live.as_mut());
        match (master, live) {
            (Some(master), Some(live)) => live.take_master(master).is_ok(),
            (None | Some(_), _) => false,
        }
    }

    /// Moves what a command wrote.
    pub(super) fn spool(&mut self, channel: u32) {
        let Some(live) = self.execs.on(channel).and_then(|exec| exec.live.as_mut()) else { return };
        if live.spool() {
            // Its writes meet a broken pipe from now on, and nothing more is kept.
            live.close_streams();
            self.kill(channel, Killed::Output);
        }
    }

    /// Has the guest kill a command and all its descendants.
    pub(super) fn kill(&mut self, channel: u32, why: Killed) {
        let Some(live) = self.execs.on(channel).and_then(|exec| exec.live.as_mut()) else { return };
        if live.killed.is_none() {
            live.killed = Some((why, Instant::now()));
            self.line.message(channel, &ToProcess::Kill, Vec::new());
        }
    }

    pub(super) fn enforce_timeouts(&mut self) {
        if self.paused.is_some() {
            return;
        }
        let now = Instant::now();
        for channel in self.execs.channels() {
            let live = self.execs.on(channel).and_then(|exec| exec.live.as_ref());
            let Some(live) = live else { continue };
            if live.next_moment().is_none_or(|moment| moment > now) {
                continue;
            }
            match live.killed {
                None => self.kill(channel, Killed::Time),
                Some(_) => {
                    self.over.get_or_insert(DestroyReason::Lost);
                }
            }
        }
    }

    /// A command that has not ended.
    pub(super) fn live(&mut self, id: &ProcessId) -> Result<&mut Live> {
        let exec = self.known(id)?;
        match exec.has_ended() {
            false => exec.live.as_deref_mut().ok_or_else(|| has_ended(id)),
            true => Err(has_ended(id)),
        }
    }

    /// A command of which something runs: itself, or what it left.
    pub(super) fn partly_live(&mut self, id: &ProcessId) -> Result<&mut Live> {
        self.known(id)?.live.as_deref_mut().ok_or_else(|| has_ended(id))
    }

    pub(super) fn known(&mut self, id: &ProcessId) -> Result<&mut Exec> {
        self.execs.find_mut(id).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no command {id} is known in this sandbox"))
                .hint("List the commands with `cofferdam ps`.")
        })
    }

    /// Gives commands what they are owed of their inputs.
    pub(super) fn pay_inputs(&mut self) {
        self.execs.iter_mut().filter_map(|exec| exec.live.as_mut()).for_each(|live| live.pay());
    }

    /// Ends of commands' inputs for which bytes wait.
    pub(super) fn inputs_waited_for(&self) -> Vec<BorrowedFd<'_>> {
        use rustix::fd::AsFd;
        let waiting = self.conns.values().filter_map(super::serve::Conn::feeds);
        let live = waiting.filter_map(|id| self.execs.find(id)?.live.as_ref());
        let owing = self.execs.running().filter_map(|exec| exec.live.as_ref());
        let owing = owing.filter(|live| !live.owed.is_empty());
        live.chain(owing).filter_map(|live| live.input().map(AsFd::as_fd)).collect()
    }
}

fn has_ended(id: &ProcessId) -> Error {
    Error::new(ErrorKind::Conflict, format!("command {id} has ended and takes nothing"))
        .hint("See with `cofferdam ps` how it ended.")
}
