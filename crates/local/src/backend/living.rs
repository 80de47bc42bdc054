//! One sandbox that lives.

use super::carrier;
use crate::assemble::{Assembly, Farewell};
use crate::cgroup::{Cgroups, Counters};
use crate::launch::io_error;
use crate::launcher::Launcher;
use async_trait::async_trait;
use cofferdam_core::line::{Surroundings, WireGuest};
use cofferdam_core::{
    Duplex, EgressGate, Error, ErrorKind, Guest, LimitHits, LimitWatch, NoGate, Result,
    SandboxRecord,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// How long a killed sandbox is waited for. The kernel takes milliseconds, and longer only to give
/// gigabytes back.
const GONE_WITHIN_S: i64 = 60;

/// A sandbox, and all that it owes the host. Dropping it ends the sandbox, and waits for that.
#[derive(Debug)]
pub(super) struct Living {
    record: SandboxRecord,
    process: First,
    owed: Mutex<Option<Assembly>>,
    way_in: WayIn,
    /// Its end would be the end of the sandbox.
    _launcher: Arc<Launcher>,
}

/// The first process of a sandbox. Dropping it kills the sandbox, and waits for its end.
#[derive(Debug)]
pub(super) struct First(pub(super) OwnedFd);

/// Our end of the line, and the greeting that was read from it already.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) line: OwnedFd,
    pub(super) greeting: Vec<u8>,
}

/// What [`Living::open`] needs.
struct WayIn {
    greeted: Mutex<Option<Greeted>>,
    surroundings: Surroundings,
    gate: Arc<CurrentGate>,
    guest: OnceCell<Arc<WireGuest>>,
}

impl std::fmt::Debug for WayIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WayIn").field("is_open", &self.guest.initialized()).finish_non_exhaustive()
    }
}

impl Living {
    pub(super) fn new(
        record: SandboxRecord,
        process: First,
        assembly: Assembly,
        greeted: Greeted,
        launcher: Arc<Launcher>,
    ) -> Self {
        let counters = assembly.cgroups().map(Cgroups::counters).unwrap_or_default();
        let surroundings = Surroundings {
            workspace: assembly.planned.cwd.clone().into(),
            env: assembly.planned.env.clone(),
            watch: Arc::new(Watch(counters)),
        };
        let way_in = WayIn {
            greeted: Mutex::new(Some(greeted)),
            surroundings,
            gate: Arc::default(),
            guest: OnceCell::new(),
        };
        Self { record, process, owed: Mutex::new(Some(assembly)), way_in, _launcher: launcher }
    }

    pub(super) fn record(&self) -> &SandboxRecord {
        &self.record
    }

    /// Whether this is the very sandbox of the record, and not a later one of the same id.
    pub(super) fn is(&self, record: &SandboxRecord) -> bool {
        self.record.id == record.id && self.record.external_id == record.external_id
    }

    pub(super) fn is_there(&self) -> bool {
        !self.process.is_gone(0).unwrap_or(true)
    }

    pub(super) fn kill(&self) {
        self.process.kill();
    }

    /// Ends it and gives everything back. Repeating it changes nothing.
    pub(super) fn end(&self) -> Result<Farewell> {
        // ORDER: the lock before the kill, so that who comes second returns when all is over.
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        self.process.end()?;
        Ok(owed.take().map(Assembly::dissolve).unwrap_or_default())
    }

    pub(super) async fn open(&self, gate: Arc<dyn EgressGate>) -> Result<Arc<dyn Guest>> {
        self.way_in.gate.set(gate);
        let guest = self.way_in.guest.get_or_try_init(|| self.way_in.first_open()).await?;
        Ok(Arc::clone(guest) as Arc<dyn Guest>)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        // Nobody is there to tell; what is left stays recorded for the next start.
        let _ = self.end();
    }
}

impl WayIn {
    async fn first_open(&self) -> Result<Arc<WireGuest>> {
        let greeted = self.greeted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let greeted = greeted.ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "the sandbox's line was lost when it was opened")
        })?;
        let carrier = carrier::over(greeted)
            .map_err(|error| Error::new(ErrorKind::Io, "watch the sandbox's line").source(error))?;
        let gate = Arc::clone(&self.gate) as Arc<dyn EgressGate>;
        WireGuest::over(carrier, gate, self.surroundings.clone()).await.map(Arc::new)
    }
}

impl First {
    fn kill(&self) {
        // What is gone already is gone.
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }

    /// Whether it is gone, and with it all that is in its process namespace, after at most so long.
    fn is_gone(&self, within_s: i64) -> Result<bool> {
        let timeout = Timespec { tv_sec: within_s, tv_nsec: 0 };
        loop {
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout)) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(io_error("wait for the sandbox", errno)),
            }
        }
    }

    fn end(&self) -> Result<()> {
        self.kill();
        match self.is_gone(GONE_WITHIN_S)? {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::TimedOut, "end the sandbox: it does not go away")),
        }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The gate that was given last.
struct CurrentGate(Mutex<Arc<dyn EgressGate>>);

impl Default for CurrentGate {
    fn default() -> Self {
        Self(Mutex::new(Arc::new(NoGate)))
    }
}

impl CurrentGate {
    fn set(&self, gate: Arc<dyn EgressGate>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = gate;
    }
}

#[async_trait]
impl EgressGate for CurrentGate {
    async fn dial(&self, host: &str, port: u16) -> Result<Box<dyn Duplex>> {
        let gate = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        gate.dial(host, port).await
    }
}

/// The counters of the sandbox's control groups.
struct Watch(Counters);

impl LimitWatch for Watch {
    fn hits(&self) -> LimitHits {
        let causes = self.0.read();
        LimitHits {
            memory: causes.oom_kills.unwrap_or_default(),
            pids: causes.pids_hits.unwrap_or_default(),
        }
    }
}
