//! A throw-away sandbox, attacked from inside.

use crate::assemble::{Assembly, Stay, assemble, assemble_and_clone, assemble_and_launch};
use crate::launch::{Born, io_error, launch};
use crate::oneshot::{await_hello, unique};
use crate::plan::WayOut;
use crate::probe_targets::leftovers::Noted;
use crate::probe_targets::{PROBE_LEAD, ProbeTargets, Surroundings};
use crate::state::StateDirectory;
use crate::verdict::{Expected, ProbeReport, report};
use crate::verify::verify;
use cofferdam_core::{
    Axis, Enforced, Error, ErrorKind, Limit, LimitsCount, OnUnavailable, Result, SandboxId, Spec,
    Workspace,
};
use cofferdam_guestd::line::{Line, understand};
use cofferdam_guestd::prove;
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::{HostOpens, Proof, Prove, Targets};
use cofferdam_wire::plan::Plan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The channel of the battery.
const CHANNEL: u32 = 1;
/// How long the battery may take. It takes about two seconds.
const WITHIN: Duration = Duration::from_secs(120);
/// Stands in the caller's environment and must not be inside.
const SECRET_VARIABLE: &str = "COFFERDAM_PROBE_SECRET";

// Limits of the sandbox that is attacked, where nobody named any: the same mechanisms at numbers
// that can be reached quickly.
const MEMORY_BYTES: u64 = 256 << 20;
const PIDS: u32 = 256;
const DISK_BYTES: u64 = 64 << 20;

/// Attacks a sandbox such as `spec` describes, in a workspace of its own.
///
/// The caller must have one thread only. Takes a few seconds.
pub fn probe(spec: &Spec, state: &StateDirectory) -> Result<ProbeReport> {
    let start = |spec: &Spec, id: &SandboxId| {
        let (assembly, born) = assemble_and_launch((spec, Stay::PASSING), state, id)?;
        Ok((assembly, target(born)?))
    };
    examine(spec, state, start, |verified| verified)
}

fn target(mut born: Born) -> Result<Target<Born>> {
    let line = born.take_line().ok_or_else(|| no_proof("its line is lost"))?;
    Ok(Target { pid: born.pid, line, held: born })
}

/// A sandbox to attack, as it was cloned.
pub(crate) struct Target<H> {
    /// Its first process.
    pub(crate) pid: i32,
    /// Our end of its line.
    pub(crate) line: OwnedFd,
    /// What ends it when it is dropped.
    pub(crate) held: H,
}

/// The same with a sandbox from anywhere.
pub(crate) fn probe_by<H>(
    spec: &Spec,
    state: &StateDirectory,
    clone: impl Fn(&Assembly) -> Result<Target<H>>,
) -> Result<ProbeReport> {
    let start =
        |spec: &Spec, id: &SandboxId| assemble_and_clone((spec, Stay::PASSING), state, id, clone);
    examine(spec, state, start, |verified| verified)
}

/// What became of a sandbox whose plan was altered.
#[derive(Debug)]
pub struct Altered {
    /// What the battery found.
    pub report: ProbeReport,
    /// What the host read back of process 1, with which a run would have gone no further.
    pub verified: Result<()>,
}

/// Attacks a sandbox as [`probe`] does, with a plan that `alter` has changed. For tests of the
/// battery: a sandbox that lacks a mechanism must not be found fully enforced.
///
/// Nothing starts where `alter` fails.
/// The caller must have one thread only. Takes a few seconds.
pub fn probe_with(
    spec: &Spec,
    state: &StateDirectory,
    alter: impl FnOnce(&mut Plan) -> Result<()>,
) -> Result<Altered> {
    let start = |spec: &Spec, id: &SandboxId| {
        let assembly = assemble(spec, state, id)?;
        let mut plan = assembly.planned.plan.clone();
        alter(&mut plan)?;
        let target = target(launch(&plan, assembly.groups()?)?)?;
        Ok((assembly, target))
    };
    let mut verified = Ok(());
    let report = examine(spec, state, start, |found| {
        verified = found;
        Ok(())
    })?;
    Ok(Altered { report, verified })
}

/// Attacks what `start` starts, unless `confirm` refuses what the host read back of it.
fn examine<H>(
    spec: &Spec,
    state: &StateDirectory,
    start: impl FnOnce(&Spec, &SandboxId) -> Result<(Assembly, Target<H>)>,
    confirm: impl FnOnce(Result<()>) -> Result<()>,
) -> Result<ProbeReport> {
    // What a killed probe left may be in the way of this one.
    let _ = state.sweep();
    let name = own_name();
    let ground = Ground::new(state, &name)?;
    let spec = on_ground(spec, &ground);
    let id = SandboxId::new(name)?;
    // What a careless parent leaves open: it must not be seen inside.
    let leak = rustix::fs::openat(CWD, &ground.outside, OFlags::RDONLY, Mode::empty())
        .map_err(|errno| io_error("open a directory to leak", errno))?;
    let (assembly, target) = start(&spec, &id)?;
    let made = make_targets(&spec, &ground)?;
    let targets = complete(made.targets(), &spec, &assembly);
    let prove = Prove { targets, env: assembly.environment() };
    let answer = attack(target, &assembly, &prove, confirm);
    drop(leak);
    let proof = answer?;
    let counts = assembly.planned.limits_count;
    let expected = prove::expected(&prove);
    let expected = Expected { checks: &expected, not_applicable: &[] };
    let mut report = report(spec.profile.name(), &proof, expected, counts);
    lower_to(&mut report.enforced, &assembly.enforced);
    report.overall = report.enforced.overall(counts);
    Ok(report)
}

/// What the plan could not promise no battery can prove.
fn lower_to(enforced: &mut Enforced, planned: &Enforced) {
    for axis in Axis::ALL {
        let lead = format!("{}: ", axis.name());
        if planned.degree(axis) < enforced.degree(axis) {
            for reason in planned.reasons.iter().filter_map(|r| r.strip_prefix(&lead)) {
                enforced.lower(axis, planned.degree(axis), reason);
            }
        }
    }
}

/// Tells the probes of one process apart.
fn own_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("probe-{}-{count}", unique())
}

fn attack<H>(
    target: Target<H>,
    assembly: &Assembly,
    prove: &Prove,
    confirm: impl FnOnce(Result<()>) -> Result<()>,
) -> Result<Proof> {
    let Target { pid, line, held: _held } = target;
    let mut line = Line::new(line);
    // Held as a gate would hold them, or their ports would be anybody's. Nobody answers.
    let (_, _sockets) = await_hello(&mut line)?.map_err(|failure| {
        Error::new(ErrorKind::SetupFailed, format!("{} ({})", failure.call, failure.step))
            .source(std::io::Error::from_raw_os_error(failure.errno))
    })?;
    confirm(verify(pid, &assembly.planned))?;
    line.message(CHANNEL, &HostOpens::Prove(Box::new(prove.clone())), Vec::new());
    line.drain();
    let until = Instant::now() + WITHIN;
    loop {
        while let Some((header, body)) =
            line.next_frame().map_err(|_| no_proof("its line carried what is no frame"))?
        {
            if header.kind == Kind::Message {
                return understand(&body).ok_or_else(|| no_proof("its answer makes no sense"));
            }
            if header.kind == Kind::End {
                return Err(no_proof("it could not run the battery"));
            }
        }
        wait(&line, until)?;
        if line.fill().is_err() {
            return Err(no_proof("it ended during the battery"));
        }
    }
}

fn wait(line: &Line, until: Instant) -> Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    let mut wait = [PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)];
    match poll(&mut wait, Some(&timeout)) {
        Ok(0) => Err(no_proof("the battery took too long")),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(io_error("wait for the battery", errno)),
    }
}

fn no_proof(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the attacked sandbox gave no proof: {why}"))
}

/// A directory of the probe's own: a workspace with a repository in it, and a place outside.
struct Ground {
    root: PathBuf,
    workspace: PathBuf,
    outside: PathBuf,
    /// What is made, for whoever sweeps after a kill.
    noted: Option<Noted>,
}

impl Ground {
    fn new(state: &StateDirectory, name: &str) -> Result<Self> {
        let name = name.strip_prefix("probe-").unwrap_or(name);
        // A short path, because a socket's name below it has room for some hundred bytes only.
        let root = Path::new("/tmp").join(format!("{PROBE_LEAD}{name}"));
        let noted = Noted::new(state)?;
        noted.add(std::slice::from_ref(&root))?;
        let ground = Self {
            workspace: root.join("workspace"),
            outside: root.join("outside"),
            root,
            noted: Some(noted),
        };
        // HOSTILE: whatever the mask says, nobody else may exchange what is in here.
        let mut own = std::fs::DirBuilder::new();
        own.mode(0o755);
        let made = own
            .create(&ground.root)
            .and_then(|()| own.create(&ground.outside))
            .and_then(|()| std::fs::create_dir_all(ground.workspace.join(".git/hooks")))
            .and_then(|()| std::fs::create_dir_all(ground.workspace.join(".git/objects")))
            .and_then(|()| std::fs::create_dir_all(ground.workspace.join(".git/refs")))
            .and_then(|()| {
                std::fs::write(ground.workspace.join(".git/HEAD"), "ref: refs/heads/main\n")
            })
            .and_then(|()| std::fs::write(ground.workspace.join(".git/config"), "[core]\n"));
        made.map_err(|error| {
            Error::new(ErrorKind::Io, format!("make {}", ground.root.display())).source(error)
        })?;
        Ok(ground)
    }

    fn note(&self, paths: &[PathBuf]) -> Result<()> {
        self.noted.as_ref().map_or(Ok(()), |noted| noted.add(paths))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let is_gone = std::fs::remove_dir_all(&self.root).is_ok();
        // ORDER: last. The canaries elsewhere are gone already, for their owner was made later.
        if let Some(noted) = self.noted.take().filter(|_| is_gone) {
            let _ = noted.settle();
        }
    }
}

fn on_ground(spec: &Spec, ground: &Ground) -> Spec {
    let mut spec = spec.clone();
    spec.workspace = match spec.workspace {
        // What is attacked is what protects a directory that is written; a layer protects it by being
        // written in its place.
        Workspace::Directory(_) | Workspace::CopyOnWrite(_) => {
            Workspace::Directory(ground.workspace.clone())
        }
        Workspace::Private => Workspace::Private,
    };
    spec.caller.env.insert(SECRET_VARIABLE.into(), "secret".into());
    // A probe looks at what holds here; whether that is enough is its verdict.
    spec.on_unavailable = OnUnavailable::Degrade;
    let limits = &mut spec.limits;
    let smaller = |limit: Limit<u64>, default| match limit {
        Limit::Default(_) => Limit::Default(default),
        Limit::Asked(_) => limit,
    };
    limits.memory_bytes = smaller(limits.memory_bytes, MEMORY_BYTES);
    limits.disk_bytes = smaller(limits.disk_bytes, DISK_BYTES);
    if let Limit::Default(pids) = &mut limits.pids {
        *pids = PIDS;
    }
    spec
}

fn make_targets(spec: &Spec, ground: &Ground) -> Result<ProbeTargets> {
    let mut others: Vec<&Path> = vec![Path::new("/run"), Path::new("/var/tmp"), Path::new("/tmp")];
    others.extend(spec.caller.home.as_deref());
    let shown: Vec<&Path> = spec
        .read
        .iter()
        .chain(&spec.write)
        .map(PathBuf::as_path)
        .chain([&*ground.workspace])
        .collect();
    let around = Surroundings {
        directory: &ground.outside,
        other_directories: &others,
        shown: &shown,
        secret_variable: SECRET_VARIABLE,
    };
    ProbeTargets::create_announced(&around, |paths| ground.note(paths))
}

/// Adds what is known of the sandbox.
fn complete(made: &Targets, spec: &Spec, assembly: &Assembly) -> Targets {
    let counts = assembly.planned.limits_count == LimitsCount::Yes || assembly.holds_limits();
    let way_out = assembly.planned.way_out.as_ref();
    Targets {
        workspace: assembly.planned.workspace.clone(),
        // A private one is private space, under every profile.
        workspace_writable: spec.profile.writes_workspace()
            || matches!(spec.workspace, Workspace::Private),
        image: spec.image.is_some(),
        redirected: way_out.is_some_and(WayOut::redirects),
        gate_ports: way_out.map(WayOut::ports).unwrap_or_default(),
        kept_capabilities: assembly.planned.plan.kept_capabilities().unwrap_or(0),
        protected: assembly.protected_names(),
        pids: counts.then(|| u64::from(spec.limits.pids.value())),
        memory_bytes: counts.then(|| spec.limits.memory_bytes.value()),
        disk_bytes: Some(spec.limits.disk_bytes.value()),
        ..made.clone()
    }
}
