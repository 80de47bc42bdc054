//! Making one sandbox, from the wish to the proof that it stands.

use super::carrier::receive;
use super::living::{Cloned, First, Greeted, Living, Origin};
use super::{Inner, LocalBackend, Preparation};
use crate::assemble::{Assembly, Stay, assemble_and_clone};
use crate::cow;
use crate::gate;
use crate::launch::{Standing, io_error, not_set_up};
use crate::launcher::{Launched, Launcher};
use crate::pin_watch::PinWatch;
use crate::plan::split;
use crate::template::Template;
use crate::verify::verify;
use cofferdam_core::{Error, ErrorKind, Result, SandboxId, SandboxRecord, Spec};
use cofferdam_guestd::line::understand;
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use cofferdam_wire::message::Greeting;
use cofferdam_wire::template::Ahead;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How long a set-up may take: far more than it does, and less than a caller's patience.
const SET_UP_S: i64 = 60;

/// Tells sandboxes apart that had the same first process id.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Inner {
    /// Makes a sandbox and confirms that it is what was planned. A failure leaves nothing.
    pub(super) fn make(&self, id: &SandboxId, spec: &Spec) -> Result<Living> {
        if self.gate.is_none() && spec.network_policy()?.is_some() {
            return Err(gate::no_program());
        }
        gate::refuse_secrets(spec)?;
        let state = self.state()?;
        keep_records_out(spec, state.path())?;
        let clone = |assembly: &Assembly| match self.copy(assembly) {
            Some(copied) => Ok(copied),
            None => self.build(assembly),
        };
        let made = assemble_and_clone((spec, Stay::PASSING), &state, id, clone);
        let (mut assembly, mut cloned) = match made {
            Err(error) => match cow::copies_instead(spec, &error) {
                None => return Err(error),
                Some(why) => {
                    let (no_overlay, has_secrets) = (Some(why.as_str()), false);
                    let stay = Stay::Passing { no_overlay, has_secrets, trusted: None };
                    assemble_and_clone((spec, stay), &state, id, clone)?
                }
            },
            made => made?,
        };
        let process = &cloned.process;
        verify(process.pid, &assembly.planned)?;
        assembly.confirm();
        let record = SandboxRecord {
            id: id.clone(),
            backend: LocalBackend::NAME.to_owned(),
            external_id: format!("{}-{}", process.pid, MADE.fetch_add(1, Ordering::Relaxed)),
            workspace: assembly.planned.workspace.clone(),
            enforced: assembly.enforced.clone(),
            layer: assembly.layer.clone(),
        };
        let gate = self.gatehouse(id, &assembly, std::mem::take(&mut cloned.came))?;
        Living::new(record, assembly, cloned, gate)
    }

    /// Who holds the sockets of the way out, if there is one.
    fn gatehouse(
        &self,
        id: &SandboxId,
        assembly: &Assembly,
        came: Vec<OwnedFd>,
    ) -> Result<Option<gate::InThread>> {
        let Some(way_out) = &assembly.planned.way_out else { return Ok(None) };
        let sockets = gate::Sockets::new(&way_out.sockets(), came)?;
        let program = self.gate.clone().ok_or_else(gate::no_program)?;
        let (policy, log) = (way_out.policy.clone(), gate::in_memory()?);
        let house = gate::Gatehouse::new(id, program, policy, sockets, log);
        gate::InThread::start(house).map(Some)
    }

    /// Copies a template. `None` where there is none or it did not work out: then the sandbox is
    /// built from nothing, which says what is wrong if anything is.
    fn copy(&self, assembly: &Assembly) -> Option<Cloned> {
        let (template, process, line) = self.launch_copy(assembly)?;
        let pins = watch(assembly).ok()?;
        let (greeting, places) = first_word(&line).ok()?;
        let [user, mount] = places.try_into().ok()?;
        let origin = Origin::Template(template, Mutex::new(Some(Standing { user, mount })));
        let came = Vec::new();
        Some(Cloned { origin, process, greeted: Greeted { line, greeting }, pins, came })
    }

    /// Copies a template without waiting for the greeting.
    pub(super) fn launch_copy(
        &self,
        assembly: &Assembly,
    ) -> Option<(Arc<Template>, First, OwnedFd)> {
        let planned = &assembly.planned;
        let groups = assembly.groups().ok()?;
        let ahead = match self.preparation {
            Preparation::Nothing => return None,
            Preparation::Tree => Ahead::Nothing,
            // One that waits is in no group, and cannot be born into one.
            Preparation::Next if groups.born_in.is_some() => Ahead::Network,
            Preparation::Next => Ahead::Process,
        };
        let split = split(planned, ahead)?;
        let template = self.templates.find(self.program, &split).ok()?;
        let launched = template.launch(&planned.plan, split, groups);
        let (process, line) = launched.ok()?;
        Some((template, process, line))
    }

    /// Has one built from nothing.
    fn build(&self, assembly: &Assembly) -> Result<Cloned> {
        let (launcher, Launched { pid, pidfd, line }) = self.launch(assembly)?;
        let process = First { pid, pidfd };
        let pins = watch(assembly)?;
        let (greeting, came) = first_word(&line)?;
        let origin = Origin::Launcher(launcher);
        Ok(Cloned { origin, process, greeted: Greeted { line, greeting }, pins, came })
    }

    /// Has the launcher clone it; a launcher that died meanwhile is replaced once.
    pub(super) fn launch(&self, assembly: &Assembly) -> Result<(Arc<Launcher>, Launched)> {
        let launcher = self.launcher()?;
        let failed = match launcher.launch(&assembly.planned.plan, assembly.groups()?) {
            Ok(launched) => return Ok((launcher, launched)),
            Err(error) => error,
        };
        if launcher.is_there() {
            return Err(failed);
        }
        let launcher = self.launcher()?;
        match launcher.launch(&assembly.planned.plan, assembly.groups()?) {
            Ok(launched) => Ok((launcher, launched)),
            Err(error) if launcher.is_there() => Err(error),
            // Not a matter of what the host allows: less isolation would not help.
            Err(error) => Err(Error { kind: ErrorKind::SetupFailed, ..error }),
        }
    }
}

/// A watch over the pinned names, begun while the sandbox still sets itself up.
fn watch(assembly: &Assembly) -> Result<Option<PinWatch>> {
    assembly.watch_pins().transpose()
}

/// Refuses a sandbox that could write our records: what they name is removed by the next start.
pub(crate) fn keep_records_out(spec: &Spec, records: &Path) -> Result<()> {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    // The records cannot lie under a layer either.
    let workspace = spec.workspace.directory().filter(|_| spec.profile.writes_workspace());
    let own = resolved(records);
    for place in workspace.into_iter().chain(spec.write.iter().map(PathBuf::as_path)) {
        let writable = resolved(place);
        if own.starts_with(&writable) || writable.starts_with(&own) {
            let (place, records) = (place.display(), records.display());
            let what =
                format!("a sandbox that writes {place} could write the records in {records}");
            return Err(Error::new(ErrorKind::Denied, what)
                .hint("Name a project directory as the workspace, or use a private one."));
        }
    }
    Ok(())
}

/// Waits for the greeting, and gives it as it came, with the descriptors that came before it.
fn first_word(line: &OwnedFd) -> Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut came = Vec::new();
    loop {
        let mut frame = vec![0; HEADER_BYTES];
        fill(line, &mut frame, 0, &mut came)?;
        let header = frame.first_chunk().and_then(|head| Header::decode(*head).ok());
        let header = header.filter(|header| header.channel == 0);
        let header = header.ok_or_else(|| lost("its first frame is not a greeting"))?;
        frame.resize(HEADER_BYTES + header.len, 0);
        fill(line, &mut frame, HEADER_BYTES, &mut came)?;
        if header.kind != Kind::Message {
            continue;
        }
        return match frame.get(HEADER_BYTES..).and_then(understand::<Greeting>) {
            Some(Greeting::Hello(_)) => Ok((frame, came)),
            Some(Greeting::SetupFailed(failure)) => Err(not_set_up(&failure)),
            None => Err(lost("its greeting makes no sense")),
        };
    }
}

/// Reads until the buffer is full, from `done` on.
fn fill(line: &OwnedFd, buffer: &mut [u8], mut done: usize, came: &mut Vec<OwnedFd>) -> Result<()> {
    let timeout = Timespec { tv_sec: SET_UP_S, tv_nsec: 0 };
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(lost("the set-up took more than a minute")),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(io_error("wait for the sandbox", errno)),
        }
        match receive(line, rest, came) {
            Ok(0) => return Err(lost("the first process died during the set-up")),
            Ok(count) => done += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(io_error("read the sandbox's line", errno)),
        }
    }
    Ok(())
}

fn lost(why: &str) -> Error {
    Error::new(ErrorKind::SetupFailed, format!("the sandbox's line is lost: {why}"))
}
