//! Keepers that do not answer, because they were stopped or hang.
//!
//! A keeper that is stopped is told by its state, after [`SILENT_FOR`] without an answer; one that runs and
//! says nothing has as long as what was asked may take. Whoever asks it once more soon afterwards does not
//! wait all of that again, so that a verb of several questions waits about once.

use super::client::AT_ONCE;
use super::tree;
use cofferdam_core::{Error, ErrorKind, Result, SandboxId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

/// After how long without an answer it is looked whether the keeper was stopped.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(2);
/// The same for one that did not answer before.
const STILL_SILENT_FOR: Duration = Duration::from_millis(100);
/// How long one that did not answer is known as such.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// How long a keeper may take to go that was killed: the kernel takes the sandbox's memory with it.
const GONE_WITHIN: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// The process that keeps a sandbox.
#[derive(Debug, Clone)]
struct Process {
    pid: i32,
    /// Never comes to mean another process.
    pidfd: Arc<OwnedFd>,
}

impl Process {
    /// Who listens at the other end, where it has a number here.
    fn at(socket: &UnixStream) -> Option<Self> {
        let pid = socket.peer_cred().ok()?.pid()?;
        let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        // ORDER: after the descriptor. Nobody hung up, so whoever listened lives and has that number.
        let mut other = [PollFd::new(socket, PollFlags::RDHUP)];
        match poll(&mut other, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) => Some(Self { pid, pidfd: Arc::new(pidfd) }),
            Ok(_) | Err(_) => None,
        }
    }

    fn is_stopped(&self) -> bool {
        tree::stat(self.pid).is_some_and(|stat| stat.is_stopped())
    }
}

/// A keeper that did not answer.
#[derive(Debug)]
pub(super) struct Silence {
    id: SandboxId,
    process: Option<Process>,
    is_stopped: bool,
}

impl From<Silence> for Error {
    fn from(silence: Silence) -> Self {
        let Silence { id, process, is_stopped } = silence;
        let remove = "or remove the session with `cofferdam rm`, which kills it";
        match process {
            Some(Process { pid, .. }) if is_stopped => {
                let what = format!("the keeper of sandbox {id}, process {pid}, is stopped");
                Self::new(ErrorKind::TimedOut, what)
                    .hint(format!("Let it go on with `kill -CONT {pid}`, {remove}."))
            }
            Some(Process { pid, .. }) => {
                let what = format!("the keeper of sandbox {id}, process {pid}, does not answer");
                Self::new(ErrorKind::TimedOut, what)
                    .hint(format!("Try again, look at what process {pid} does, {remove}."))
            }
            None => {
                let what = format!("the keeper of sandbox {id} does not answer");
                Self::new(ErrorKind::TimedOut, what).hint(format!("Try again, {remove}."))
            }
        }
    }
}

impl Silence {
    /// Kills the keeper, with which the kernel kills the sandbox, and waits until it is gone. To be called
    /// where waiting is allowed.
    pub(super) fn end(self) -> Result<()> {
        let Some(Process { pid, pidfd }) = self.process.clone() else { return Err(self.into()) };
        let failed = |errno: rustix::io::Errno| {
            let what = format!("kill the keeper of sandbox {}, process {pid}", self.id);
            Error::new(ErrorKind::Io, what).source(io::Error::from(errno))
        };
        match pidfd_send_signal(&pidfd, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let mut end = [PollFd::new(&*pidfd, PollFlags::IN)];
        match rustix::io::retry_on_intr(|| poll(&mut end, Some(&GONE_WITHIN))).map_err(failed)? {
            0 => Err(self.into()),
            _ => Ok(()),
        }
    }
}

/// Keepers that did not answer a short time ago, by the external ids of their sandboxes.
#[derive(Debug, Default)]
pub(super) struct Silent(Mutex<BTreeMap<String, (Instant, Option<Process>)>>);

impl Silent {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Instant, Option<Process>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, external_id: &str) -> Option<Option<Process>> {
        let mut all = self.all();
        if all.is_empty() {
            return None;
        }
        all.retain(|_, (since, _)| since.elapsed() < KNOWN_FOR);
        all.get(external_id).map(|(_, process)| process.clone())
    }

    /// The keeper of this sandbox.
    pub(super) fn of<'a>(&'a self, id: &'a SandboxId, external_id: &'a str) -> Whom<'a> {
        Whom { id, external_id, silent: self }
    }

    fn forget(&self, external_id: &str) {
        let mut all = self.all();
        if !all.is_empty() {
            all.remove(external_id);
        }
    }
}

/// The keeper that somebody asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whom<'a> {
    pub(super) id: &'a SandboxId,
    pub(super) external_id: &'a str,
    silent: &'a Silent,
}

impl Whom<'_> {
    /// It answered. That it took a question does not say so: the kernel takes that for it.
    pub(super) fn answered(self) {
        self.silent.forget(self.external_id);
    }

    /// Fails at once where this keeper is known to be stopped: its socket would take a question more.
    pub(super) fn refuse_stopped(self) -> Result<(), Silence> {
        match self.silent.known(self.external_id).flatten() {
            Some(process) if process.is_stopped() => {
                Err(Silence { id: self.id.clone(), process: Some(process), is_stopped: true })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Waits for something of the keeper, as long as that may take and the keeper is not stopped. It is at
    /// the other end of the socket, where there is one yet.
    pub(super) async fn wait<T>(
        self,
        (socket, within): (Option<&UnixStream>, Duration),
        work: impl Future<Output = T>,
    ) -> Result<T, Silence> {
        let (look, within) = match self.silent.known(self.external_id) {
            Some(_) if within <= AT_ONCE => (STILL_SILENT_FOR, within.min(SILENT_FOR)),
            // What may take long by itself, as news of a command, says nothing of the keeper.
            Some(_) | None => (SILENT_FOR, within),
        };
        let (mut work, until) = (pin!(work), Instant::now() + within);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Ok(done) = timeout(look.min(left), &mut work).await {
                return Ok(done);
            }
            let process = socket.and_then(Process::at);
            let is_stopped = process.as_ref().is_some_and(Process::is_stopped);
            if is_stopped || Instant::now() >= until {
                let said = (Instant::now(), process.clone());
                self.silent.all().insert(self.external_id.to_owned(), said);
                return Err(Silence { id: self.id.clone(), process, is_stopped });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use tokio::net::UnixListener;

    fn of(name: &str) -> SandboxId {
        SandboxId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_is_waited_for_once() {
        let (silent, id) = (Silent::default(), of("a"));
        let began = Instant::now();
        let ask = |within| {
            silent
                .of(&id, "x")
                .wait((None, Duration::from_secs(within)), std::future::pending::<()>())
        };
        ask(10).await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 10);
        // Soon afterwards it is not given so long, though the kernel takes the question.
        silent.of(&id, "x").wait((None, SILENT_FOR), async {}).await.unwrap();
        ask(10).await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 12);
        silent.of(&id, "x").answered();
        // The control: it answered since.
        ask(10).await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 22);
        tokio::time::advance(KNOWN_FOR).await;
        ask(10).await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 42);
    }

    #[tokio::test]
    async fn one_that_is_stopped_is_named_with_what_helps_and_can_be_killed() {
        let place = std::env::temp_dir().join(format!("cofferdam-silence-{}", std::process::id()));
        let script = "import socket, sys, time\n\
            s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n\
            print('up', flush=True); time.sleep(60)";
        let started = Command::new("python3")
            .args(["-c", script, place.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut keeper) = started else { return };
        let mut word = [0; 2];
        std::io::Read::read_exact(keeper.stdout.as_mut().unwrap(), &mut word).unwrap();
        let pid = i32::try_from(keeper.id()).unwrap();
        let socket = UnixStream::connect(&place).await.unwrap();
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
        let (silent, id, began) = (Silent::default(), of("a"), Instant::now());
        let within = Duration::from_secs(60);
        let asked = silent.of(&id, "x").wait((Some(&socket), within), std::future::pending::<()>());
        let error = Error::from(asked.await.unwrap_err());
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        assert_eq!(error.kind, ErrorKind::TimedOut);
        assert!(error.message.contains(&format!("process {pid}, is stopped")), "{error}");
        assert!(error.hint.unwrap().contains(&format!("kill -CONT {pid}")));
        // Nobody needs to ask it again to know.
        let silence = silent.of(&id, "x").refuse_stopped().unwrap_err();
        silent.of(&id, "y").refuse_stopped().unwrap();
        silence.end().unwrap();
        assert!(!keeper.wait().unwrap().success());
        silent.of(&id, "x").refuse_stopped().unwrap();
        std::fs::remove_file(&place).unwrap();
        // One that hung up tells of no process: its number may be another's by now.
        let pair = std::env::temp_dir().join(format!("cofferdam-hung-{}", std::process::id()));
        let listener = UnixListener::bind(&pair).unwrap();
        let ours = UnixStream::connect(&pair).await.unwrap();
        assert!(Process::at(&ours).is_some());
        drop(listener);
        assert!(Process::at(&ours).is_none());
        std::fs::remove_file(&pair).unwrap();
    }
}
