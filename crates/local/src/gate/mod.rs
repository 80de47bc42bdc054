//! The host's end of a sandbox's way out: who holds its sockets, and starts the gate.
//!
//! A gate is a process of its own. Whoever holds the sandbox holds the sockets too, waits on them, and
//! starts the gate when one of them has something to say for the first time. The gate ends with its
//! control socket and with its holder; one that ended by itself is started again when it is needed
//! next, a few times. What comes while there is none waits in the sockets, and is refused when they
//! close.

mod confine;
mod log;
mod permissions;
mod secrets;
mod start;
mod thread;

use crate::launch::io_error;
use cofferdam_core::policy::Host;
use cofferdam_core::secret::GateGrant;
use cofferdam_core::{
    ConnectionReport, Denial, Error, ErrorKind, FromGate, GateOrder, GateSocket, Happened,
    NetworkPolicy, Permission, Result, SandboxId, SecretAlarm, Spec, ToGate, Verdict,
};
use permissions::Permissions;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use start::Running;
use std::time::{Duration, Instant};

pub use confine::confine;
use log::read_denials;
pub(crate) use log::{LOG_NAME, in_memory, read};
pub use secrets::GatedSecrets;
pub use start::GateProgram;
pub(crate) use thread::InThread;

/// How often a gate is started again within [`STARTS_WITHIN`].
const MAX_STARTS: usize = 5;
/// The time in which starts are counted.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// How many denials of one sandbox are told while they happen. All of them are in the log: what is inside can
/// cause as many as it likes, and the journal is not for it to fill.
const MAX_DENIALS_TOLD: usize = 1000;
/// How many bytes of a log are kept.
pub(crate) const LOG_BYTES: u64 = 16 << 20;

/// The sockets of a sandbox's way out, with what they are.
#[derive(Debug)]
pub(crate) struct Sockets(Vec<(GateSocket, OwnedFd)>);

impl Sockets {
    /// Those that came with the greeting. Fails where they are not those that were planned.
    pub(crate) fn new(planned: &[GateSocket], came: Vec<OwnedFd>) -> Result<Self> {
        if planned.len() != came.len() {
            let what = format!("{} sockets of the gate came, not {}", came.len(), planned.len());
            return Err(Error::new(ErrorKind::SetupFailed, what));
        }
        Ok(Self(planned.iter().copied().zip(came).collect()))
    }
}

/// Holds the sockets, and a gate once it is needed.
#[derive(Debug)]
pub(crate) struct Gatehouse {
    sandbox: SandboxId,
    program: GateProgram,
    policy: NetworkPolicy,
    /// None once the gate has failed too often.
    sockets: Sockets,
    log: OwnedFd,
    /// What it puts in, and the file with the values, which nobody here reads.
    secrets: Option<(Vec<GateGrant>, OwnedFd)>,
    /// What it told that nobody has taken yet.
    alarm: Option<SecretAlarm>,
    running: Option<Running>,
    /// When the last few were started.
    starts: Vec<Instant>,
    permissions: Permissions,
    /// What was denied and nobody has taken yet, and how many there ever were.
    denials: Vec<Denial>,
    denials_told: usize,
}

impl Gatehouse {
    /// Starts nothing yet. The log is open to append to it.
    pub(crate) fn new(
        sandbox: &SandboxId,
        program: GateProgram,
        policy: NetworkPolicy,
        sockets: Sockets,
        log: OwnedFd,
    ) -> Self {
        Self {
            sandbox: sandbox.clone(),
            program,
            policy,
            sockets,
            log,
            secrets: None,
            alarm: None,
            running: None,
            starts: Vec::new(),
            permissions: Permissions::default(),
            denials: Vec::new(),
            denials_told: 0,
        }
    }

    /// The same, for secrets: the grants, and a file in memory that is a
    /// [`Vault`](cofferdam_core::secret::Vault).
    pub(crate) fn with_secrets(self, secrets: Option<(Vec<GateGrant>, OwnedFd)>) -> Self {
        Self { secrets, ..self }
    }

    /// Whether the gate raised one that nobody has taken.
    pub(crate) fn has_alarm(&self) -> bool {
        self.alarm.is_some()
    }

    /// What the gate raised an alarm about since this was asked last.
    pub(crate) fn take_alarm(&mut self) -> Option<SecretAlarm> {
        self.alarm.take()
    }

    /// What is waited for, and how: the sockets, or what a gate does that runs.
    pub(crate) fn waits(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        match &self.running {
            Some(running) => running.waits(),
            None => self.sockets.0.iter().map(|(_, fd)| (fd.as_fd(), PollFlags::IN)).collect(),
        }
    }

    /// Something of that has come.
    pub(crate) fn turn(&mut self) {
        match &mut self.running {
            None => self.start(),
            Some(running) => {
                running.flush();
                if let Some(how) = self.hear() {
                    self.running = None;
                    self.permissions.end();
                    self.note(&format!(
                        "the gate ended ({how}) and starts again when it is needed"
                    ));
                }
            }
        }
    }

    /// Takes what the gate says. How it ended, if it did.
    fn hear(&mut self) -> Option<String> {
        let (news, ended) = self.running.as_mut()?.hear();
        for news in news {
            match news {
                FromGate::Alarm(alarm) => {
                    self.alarm.get_or_insert(believable(alarm));
                }
                FromGate::Denied(denial) => self.deny(*denial),
                FromGate::Waits(what) => self.permissions.begin(what),
                FromGate::Settled(number, how) => self.permissions.settle(number, how),
            }
        }
        ended
    }

    /// Something was denied, by what the gate says. What cannot be shown is not: the log has it.
    fn deny(&mut self, denial: Denial) {
        if self.denials_told < MAX_DENIALS_TOLD && denial.check().is_ok() {
            self.denials_told += 1;
            self.denials.push(denial);
        }
    }

    /// What was denied since this was asked last, each destination once for each reason and edition of the
    /// rules, as far as it is told at all.
    pub(crate) fn take_denials(&mut self) -> Vec<Denial> {
        std::mem::take(&mut self.denials)
    }

    /// What may be reached now.
    pub(crate) fn policy(&self) -> &NetworkPolicy {
        &self.policy
    }

    /// Lets this be reached from the next connection on.
    pub(crate) fn set_policy(&mut self, policy: &NetworkPolicy) -> Result<()> {
        policy.check()?;
        let next = self.policy.version.saturating_add(1);
        if policy.version != next {
            let what = format!(
                "the network policy is of version {}, and the next is {next}, not {}",
                self.policy.version, policy.version
            );
            return Err(Error::new(ErrorKind::Conflict, what).hint("Look at it again first."));
        }
        self.policy = policy.clone();
        if let Some(running) = &mut self.running {
            running.tell(&ToGate::Policy(policy.clone()))?;
        }
        Ok(())
    }

    /// What waits to be allowed, and what did so lately.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        self.permissions.all()
    }

    /// What is to be written down of what waits, each once.
    pub(crate) fn news(&mut self) -> Vec<Happened> {
        self.permissions.news()
    }

    /// Answers what waits by this number. One that waits no more is a conflict.
    pub(crate) fn answer(&mut self, id: u64, verdict: Verdict) -> Result<()> {
        self.permissions.check_waits(&self.sandbox, id)?;
        let Some(running) = &mut self.running else { return Ok(()) };
        running.tell(&match verdict {
            Verdict::Approve => ToGate::Approve { id },
            Verdict::Deny => ToGate::Deny { id },
        })
    }

    /// Where its log ends now.
    pub(crate) fn logged(&self) -> u64 {
        rustix::fs::fstat(&self.log).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// What was denied since its log ended there.
    pub(crate) fn denied_since(&self, from: u64) -> Result<Vec<Denial>> {
        read_denials(&self.log, from)
    }

    /// Ends the gate, and says what was denied, and what it raised an alarm about that nobody has taken.
    pub(crate) fn close(mut self) -> Result<(Vec<Denial>, Option<SecretAlarm>)> {
        self.hear();
        self.running = None;
        Ok((read_denials(&self.log, 0)?, self.alarm))
    }

    fn start(&mut self) {
        self.starts.retain(|then| then.elapsed() < STARTS_WITHIN);
        if self.starts.len() >= MAX_STARTS {
            // Nobody answers any more, and whoever asks hears so at once.
            self.sockets.0.clear();
            let what = "the gate ended too often: this sandbox has no way out any more";
            self.note(what);
            let report = ConnectionReport::of_the_gate(crate::keeper::now_ms(), 0, what);
            // Once at most, and to be known whatever else was denied.
            self.denials.push(Denial::of(&report));
            return;
        }
        self.starts.push(Instant::now());
        if let Err(error) = self.try_start() {
            self.note(&format!("the gate cannot be started: {}", error.chain()));
        }
    }

    fn try_start(&mut self) -> Result<()> {
        let mut descriptors: Vec<GateSocket> =
            self.sockets.0.iter().map(|(socket, _)| *socket).collect();
        descriptors.push(GateSocket::Log);
        let vault = self.secrets.as_ref().map(|(_, vault)| vault.as_fd());
        descriptors.extend(vault.map(|_| GateSocket::Vault));
        let secrets = self.secrets.as_ref().map(|(grants, _)| grants.clone()).unwrap_or_default();
        let order = ToGate::Order(GateOrder {
            sandbox: self.sandbox.to_string(),
            policy: self.policy.clone(),
            resolvers: Vec::new(),
            log_bytes: LOG_BYTES,
            secrets,
            last_waiting: self.permissions.last(),
            descriptors,
        });
        let given = self.sockets.0.iter().map(|(_, fd)| fd.as_fd());
        let given: Vec<BorrowedFd<'_>> = given.chain([self.log.as_fd()]).chain(vault).collect();
        self.running = Some(self.program.start(&order, &given)?);
        Ok(())
    }

    /// Writes down what became of the gate itself.
    fn note(&self, what: &str) {
        let now = crate::keeper::now_ms();
        let report = ConnectionReport::of_the_gate(now, self.policy.version, what);
        if let Ok(mut line) = serde_json::to_vec(&report) {
            line.push(b'\n');
            // A full disk takes no line; what it is about goes on all the same.
            while rustix::io::write(&self.log, &line) == Err(Errno::INTR) {}
        }
    }
}

/// An alarm that can be shown. One that cannot be read is an alarm all the same.
// HOSTILE: a gate that was taken over writes what it likes.
fn believable(alarm: SecretAlarm) -> SecretAlarm {
    let is_host = alarm.host.parse::<Host>().is_ok_and(|host| host.to_string() == alarm.host);
    let host = if is_host { alarm.host } else { "an unknown host".to_owned() };
    SecretAlarm { host, ..alarm }
}

/// The error where a way out is wished for and nobody said which program is the gate.
pub(crate) fn no_program() -> Error {
    Error::new(ErrorKind::Unsupported, "a way out needs a gate, and no program was named for it")
        .hint(
            "Make the backend with `own_backend(..).with_gate(GateProgram::open(path)?)`, where the path is \
             that of the command `cofferdam`, or allow no destination.",
        )
}

/// Fails where secrets are to be put in, for ways to make a sandbox that do not do that.
pub(crate) fn refuse_secrets(spec: &Spec) -> Result<()> {
    match spec.secrets.first() {
        None => Ok(()),
        Some(grant) => {
            let what = format!("secret {} cannot be put in by this backend", grant.name);
            Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Use `cofferdam run`, or a session: these have a gate that can."))
        }
    }
}

fn failed(what: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| io_error(what, errno)
}

#[cfg(test)]
mod tests;
