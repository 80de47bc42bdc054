//! One sandbox that lives.

use super::carrier;
use crate::assemble::{Assembly, Farewell};
use crate::cgroup::{Cgroups, Counters};
use crate::clearing;
use crate::gate::{Gatehouse, InThread};
use crate::keeper::children;
use crate::launch::{Standing, io_error};
use crate::launcher::Launcher;
use crate::pin_watch::PinWatch;
use crate::template::Template;
use crate::watchman::pin_again;
use async_trait::async_trait;
use cofferdam_core::line::{Surroundings, WireGuest};
use cofferdam_core::{
    Duplex, EgressGate, Error, ErrorKind, Guest, LimitHits, LimitWatch, NoGate, Result,
    SandboxRecord,
};
use cofferdam_guestd::apply::LostPin;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

/// How long a killed sandbox is waited for. The kernel takes milliseconds, and longer only to give
/// gigabytes back.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// A sandbox, and all that it owes the host. Dropping it ends the sandbox, and waits for that.
#[derive(Debug)]
pub(super) struct Living {
    record: SandboxRecord,
    process: First,
    owed: Mutex<Option<Assembly>>,
    way_in: WayIn,
    /// Until it is opened, and watched by a task of that runtime.
    pins: Mutex<Option<PinWatch>>,
    watching: OnceLock<AbortHandle>,
    origin: Origin,
    gate: Mutex<Option<InThread>>,
}

/// Where a sandbox came from. Its end would be the end of the sandbox.
#[derive(Debug)]
pub(super) enum Origin {
    /// Built from nothing.
    Launcher(Arc<Launcher>),
    /// A copy, with its namespaces until it has ended.
    Template(Arc<Template>, Mutex<Option<Standing>>),
}

impl Origin {
    /// Pins names inside that lost their pin.
    fn pin_again(&self, pid: i32, pins: &[LostPin]) -> Result<()> {
        match self {
            Self::Launcher(launcher) => launcher.pin_again(pid, pins),
            Self::Template(template, standing) => {
                match &*standing.lock().unwrap_or_else(PoisonError::into_inner) {
                    Some(standing) => template.pin_again(standing, pins),
                    // One that has ended needs no pins any more.
                    None => Ok(()),
                }
            }
        }
    }

    /// Lets go of the mounts of a sandbox that has ended, in a thread of its own.
    ///
    /// To remove a name from under a mount takes the kernel ten times as long, so this comes before
    /// placeholders go. Nobody waits for the rest of the mounts' end, which takes the kernel a while;
    /// those of a sandbox that was built from nothing end with its launcher's hold, likewise.
    fn let_go(&self) {
        let Self::Template(_, standing) = self else { return };
        let standing = standing.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Where no thread can be had, it is dropped in that attempt.
        let thread = std::thread::Builder::new().name("unmount".to_owned());
        let _ = thread.spawn(move || drop(standing));
    }
}

/// The first process of a sandbox. Dropping it kills the sandbox, and waits for its end.
#[derive(Debug)]
pub(crate) struct First {
    /// As our namespace counts.
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

/// Our end of the line, and the greeting that was read from it already.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) line: OwnedFd,
    pub(super) greeting: Vec<u8>,
}

/// A sandbox that has greeted.
pub(super) struct Cloned {
    pub(super) origin: Origin,
    pub(super) process: First,
    pub(super) greeted: Greeted,
    pub(super) pins: Option<PinWatch>,
    /// The sockets of its way out.
    pub(super) came: Vec<OwnedFd>,
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
        assembly: Assembly,
        cloned: Cloned,
        gate: Option<InThread>,
    ) -> Result<Self> {
        let Cloned { origin, process, greeted, pins, came: _ } = cloned;
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
        if pins.is_some() {
            // ORDER: after the watch has begun, so that no change is in neither.
            let changed = assembly.changed_since_the_start()?;
            pin_again(&assembly, &changed, |pins| origin.pin_again(process.pid, pins))?;
        }
        Ok(Self {
            record,
            process,
            owed: Mutex::new(Some(assembly)),
            way_in,
            pins: Mutex::new(pins),
            watching: OnceLock::new(),
            origin,
            gate: Mutex::new(gate),
        })
    }

    pub(super) fn record(&self) -> &SandboxRecord {
        &self.record
    }

    /// Whether this is the very sandbox of the record, and not a later one of the same id.
    pub(super) fn is(&self, record: &SandboxRecord) -> bool {
        self.record.id == record.id && self.record.external_id == record.external_id
    }

    pub(super) fn is_there(&self) -> bool {
        !self.process.is_gone().unwrap_or(true)
    }

    pub(super) fn kill(&self) {
        self.process.kill();
    }

    /// Ends it and gives everything back. Repeating it changes nothing.
    pub(super) fn end(&self) -> Result<Farewell> {
        if let Some(watching) = self.watching.get() {
            watching.abort();
        }
        // ORDER: the lock before the kill, so that who comes second returns when all is over.
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        self.process.end()?;
        drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner).take());
        let owed = owed.take();
        if owed.is_some() {
            self.origin.let_go();
        }
        Ok(owed.map(Assembly::dissolve).unwrap_or_default())
    }

    /// Does something with the holder of its way out, and waits for that. `None` where it has none.
    pub(super) fn with_gate<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Gatehouse) -> T + Send + 'static,
    ) -> Result<Option<T>> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.as_ref().map(|gate| gate.with(work)).transpose()
    }

    pub(super) async fn open(
        self: &Arc<Self>,
        gate: Arc<dyn EgressGate>,
    ) -> Result<Arc<dyn Guest>> {
        self.way_in.gate.set(gate);
        self.watch()?;
        let guest = self.way_in.guest.get_or_try_init(|| self.way_in.first_open()).await?;
        Ok(Arc::clone(guest) as Arc<dyn Guest>)
    }
}

impl Living {
    /// Starts to look after its pins. Before this no command can run that would profit from a gap.
    fn watch(self: &Arc<Self>) -> Result<()> {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pins) = pins {
            let task = keep_pinned(Arc::downgrade(self), pins).map_err(|error| {
                Error::new(ErrorKind::Io, "watch the pinned names").source(error)
            })?;
            // The place is free, because the watch is taken once.
            let _ = self.watching.set(task);
        }
        Ok(())
    }

    /// Pins again what lost its pin. A sandbox whose names cannot be pinned is ended.
    fn look_after(&self, pins: &mut PinWatch) {
        let owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(assembly) = &*owed else { return };
        let pinned = pins.changed().and_then(|changed| {
            let changed: Vec<String> = changed.into_iter().map(|pin| pin.path).collect();
            pin_again(assembly, &changed, |pins| self.origin.pin_again(self.process.pid, pins))
        });
        let is_at_rest = || children(self.process.pid).is_empty();
        let paced = match pins.looks_by_itself() {
            true => pins.pace(is_at_rest()),
            false => Ok(()),
        };
        if pinned.and(paced).is_err() {
            self.kill();
        }
    }
}

/// Watches until the sandbox is gone or the task is aborted.
fn keep_pinned(living: Weak<Living>, mut pins: PinWatch) -> std::io::Result<AbortHandle> {
    let notices = crate::sys::watched(pins.fd().try_clone_to_owned()?)?;
    let task = tokio::spawn(async move {
        while let Ok(mut ready) = notices.readable().await {
            // ORDER: before looking, so that what comes meanwhile is a new notice.
            ready.clear_ready();
            let Some(living) = living.upgrade() else { return };
            let looked = tokio::task::spawn_blocking(move || {
                living.look_after(&mut pins);
                pins
            });
            let Ok(looked) = looked.await else { return };
            pins = looked;
        }
    });
    Ok(task.abort_handle())
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
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    fn waited(errno: Errno) -> Error {
        io_error("wait for the sandbox", errno)
    }

    /// Whether it is gone, and with it all that is in its process namespace.
    fn is_gone(&self) -> Result<bool> {
        clearing::has_ended(&self.pidfd, Duration::ZERO).map_err(Self::waited)
    }

    fn end(&self) -> Result<()> {
        self.kill();
        match clearing::is_gone(self.pid, &self.pidfd, GONE_WITHIN).map_err(Self::waited)? {
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
