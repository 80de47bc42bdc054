//! Carries out a plan, step by step, in the process that becomes the sandbox's first.

pub(crate) mod confine;
pub(crate) mod identity;
mod image;
pub(crate) mod mounts;
mod overlay;
mod renew;
mod rest;
mod settings;
mod veil;

use crate::{network, sys};
use cofferdam_wire::message::{Confirmed, SetupFailure};
use cofferdam_wire::plan::{Access, Bind, Layer, Namespace, Need, Op, Plan, Resource, Step};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use identity::Network;
use mounts::Source;
pub use renew::{open_layers, renew_layer};
pub use rest::{Awaited, Joined, Names, Told};
pub(crate) use rest::{Heard, by_position, positions};

/// What the host opened beforehand, because the box may not or cannot.
#[derive(Debug, Default)]
pub struct Handover {
    /// Detached mounts, by the position of their step in the plan.
    pub mounts: Mounts,
    /// `tasks` or `cgroup.procs` of the prepared control groups, open for writing.
    pub cgroups: Vec<OwnedFd>,
    /// What comes later, if anything does.
    pub awaited: Option<Awaited>,
}

/// Detached mounts, by the position of the step that they are for: one for a bind, one a layer for an
/// overlay, in the order of [`cofferdam_wire::plan::Overlay::sources`].
pub type Mounts = BTreeMap<usize, Vec<OwnedFd>>;

impl Handover {
    /// All that must stay open.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        self.mounts.values().flatten().chain(&self.cgroups)
    }

    /// Before groups are joined: takes them, where they come later.
    fn take_groups(&mut self) -> Result<(), CallFailed> {
        if let Some(mut awaited) = self.awaited.take() {
            self.cgroups.extend(awaited.heard.joined()?);
        }
        Ok(())
    }
}

/// The beginning of a plan, and what else of it a process has to know from its first moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opening {
    /// The namespaces, the ids, and the first steps. Those after them stand for steps like them that
    /// the whole plan has.
    pub plan: Plan,
    /// How many steps are the plan's first.
    pub known: usize,
}

impl Opening {
    /// Whether `plan` begins like this, and has what this says that it has.
    pub fn begins(&self, plan: &Plan) -> bool {
        let Plan { namespaces, uid_map, gid_map, steps } = &self.plan;
        let (first, later) = steps.split_at(self.known.min(steps.len()));
        let told = plan.steps.get(first.len()..).unwrap_or_default();
        (namespaces, uid_map, gid_map) == (&plan.namespaces, &plan.uid_map, &plan.gid_map)
            && plan.steps.starts_with(first)
            && later.iter().all(|step| told.iter().any(|told| told.op == step.op))
    }

    /// The whole plan.
    fn continued(&self, steps: Vec<Step>) -> Plan {
        let mut plan = self.plan.clone();
        plan.steps.truncate(self.known);
        plan.steps.extend(steps);
        plan
    }
}

/// Why a step failed: the call with its arguments, and the kernel's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailed {
    call: String,
    errno: Errno,
}

impl CallFailed {
    pub(crate) fn new(call: impl Into<String>, errno: Errno) -> Self {
        Self { call: call.into(), errno }
    }

    /// What was called.
    pub(crate) fn call(&self) -> &str {
        &self.call
    }

    /// What the kernel said.
    pub(crate) fn errno(&self) -> Errno {
        self.errno
    }

    /// The failure as the host hears it.
    pub(crate) fn in_step(self, step: &str) -> SetupFailure {
        SetupFailure { step: step.to_owned(), call: self.call, errno: self.errno.raw_os_error() }
    }
}

/// Adds the call to an answer of the kernel. The text is only made when it is needed.
pub(crate) trait During<T> {
    fn during(self, call: impl FnOnce() -> String) -> Result<T, CallFailed>;
}

impl<T> During<T> for rustix::io::Result<T> {
    fn during(self, call: impl FnOnce() -> String) -> Result<T, CallFailed> {
        self.map_err(|errno| CallFailed::new(call(), errno))
    }
}

/// Opens the source of a bind on the host, for [`Handover::mounts`].
///
/// `owner` is a user namespace that maps the owner on disk to the sandbox's user outside.
pub fn prepare_bind(bind: &Bind, owner: Option<BorrowedFd<'_>>) -> Result<OwnedFd, SetupFailure> {
    mounts::prepare(Source::of(bind), owner).map_err(|failed| failed.in_step("bind"))
}

/// The same for a layer of an overlay.
pub fn prepare_layer(
    layer: &Layer,
    owner: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, SetupFailure> {
    mounts::prepare(Source::of_layer(layer), owner).map_err(|failed| failed.in_step("overlay"))
}

/// A name inside that lost what was mounted on it, because the host put another file there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostPin {
    /// The name.
    pub path: String,
    /// Whether it can be written.
    pub access: Access,
    /// What is mounted on it, which is shown at another place inside too. Without it what is there.
    pub from: Option<String>,
}

/// Pins names of a sandbox that stands already. The caller has joined its user and mount namespaces.
pub fn pin_again(pins: &[LostPin]) -> Result<(), SetupFailure> {
    let mut tree = mounts::Tree::standing().map_err(|failed| failed.in_step("pin"))?;
    let mut pin = |lost: &LostPin| match &lost.from {
        None => tree.pin(&lost.path, lost.access),
        Some(from) => tree.pin_from(from, &lost.path, lost.access),
    };
    pins.iter().try_for_each(&mut pin).map_err(|failed| failed.in_step("pin"))
}

/// Builds the tree of a template and enters it.
///
/// A process file system belongs to a process namespace. The tree gets that of one which is gone: it
/// shows nobody, and the kernel lets a sandbox mount its own only where one is to be seen.
pub(crate) fn prepare(steps: &[Step]) -> Result<(), SetupFailure> {
    let plan = Plan::default();
    let mut tree = mounts::Tree::default();
    let mut all = Done::default();
    let mut opened = BTreeMap::new();
    for (position, step) in steps.iter().enumerate() {
        if step.op == Op::Pivot {
            open_sources(steps.iter().enumerate().skip(position), &mut opened)?;
        }
        let done = if let Op::Proc { path } = &step.op {
            in_passing(|| tree.proc(path))
        } else {
            let given = opened.remove(&position).unwrap_or_default();
            one(&plan, step, &mut tree, (given, &[]), &mut all)
        };
        match (done, step.need) {
            (Ok(()), _) | (Err(_), Need::BestEffort) => {}
            (Err(failed), Need::Required) => return Err(failed.in_step(stage(&step.op))),
        }
    }
    tree.finish().map_err(|failed| failed.in_step("pivot"))
}

/// Does this in the first process of a process namespace that ends with it.
fn in_passing(work: impl FnOnce() -> Result<(), CallFailed>) -> Result<(), CallFailed> {
    let call = || "clone(CLONE_NEWPID)".to_owned();
    match sys::fork_into(libc::CLONE_NEWPID).during(call)? {
        0 => sys::exit_now(work().map_or_else(|failed| failed.errno.raw_os_error(), |()| 0)),
        pid => {
            let waited = loop {
                match sys::wait4(pid, 0) {
                    Err(Errno::INTR) => {}
                    other => break other.during(|| "wait4".to_owned())?,
                }
            };
            match waited.map(|child| child.status) {
                Some(0) => Ok(()),
                status => {
                    let errno = status.unwrap_or(0) >> 8 & 0xff;
                    let call = "mount a process file system in passing";
                    Err(CallFailed::new(call, Errno::from_raw_os_error(errno)))
                }
            }
        }
    }
}

/// Where steps are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Footing {
    /// In a copy of the host's tree, to build a new root.
    Host,
    /// In a tree that was prepared.
    Prepared,
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// What of it the host cannot know from the plan.
    pub(crate) confirmed: Confirmed,
    /// The sockets of the gate, for the host.
    pub(crate) listeners: Vec<OwnedFd>,
    /// Rules for every command.
    pub(crate) rules: Option<OwnedFd>,
    /// How many descriptors each command may have.
    pub(crate) open_files: Option<u64>,
}

/// Does every step in order.
///
/// `network` is entered before the first step that needs it.
pub(crate) fn apply(
    plan: &Plan,
    footing: Footing,
    handover: Handover,
    network: Option<Network>,
) -> Result<Done, SetupFailure> {
    let mut work = Work::new(footing, network)?;
    identity::settle_in_groups(plan).map_err(|failed| failed.in_step("cgroups"))?;
    work.steps(plan, 0..plan.steps.len(), handover)?;
    work.finish()
}

/// Does the first steps of a plan, and meanwhile comes what the plan is.
pub(crate) fn apply_as_told(
    opening: &Opening,
    mut heard: Heard,
    network: Option<Network>,
) -> Result<Done, SetupFailure> {
    let mut work = Work::new(Footing::Host, network)?;
    work.steps(&opening.plan, 0..opening.known, Handover::default())?;
    let told = heard.told().map_err(|failed| failed.in_step("plan"))?;
    let plan = opening.continued(told.steps);
    identity::settle_in_groups(&plan).map_err(|failed| failed.in_step("cgroups"))?;
    let awaited = Some(Awaited { heard, pins: told.pins });
    let handover = Handover { mounts: told.mounts, cgroups: Vec::new(), awaited };
    work.steps(&plan, opening.known..plan.steps.len(), handover)?;
    work.finish()
}

/// Steps that are being done.
struct Work {
    tree: mounts::Tree,
    network: Option<Network>,
    done: Done,
}

impl Work {
    fn new(footing: Footing, network: Option<Network>) -> Result<Self, SetupFailure> {
        let tree = match footing {
            Footing::Host => mounts::Tree::default(),
            Footing::Prepared => mounts::Tree::standing().map_err(|f| f.in_step("tree"))?,
        };
        Ok(Self { tree, network, done: Done::default() })
    }

    fn steps(
        &mut self,
        plan: &Plan,
        range: Range<usize>,
        mut handover: Handover,
    ) -> Result<(), SetupFailure> {
        let mut pinned = 0..0;
        let steps = plan.steps.iter().enumerate().take(range.end).skip(range.start);
        for (position, step) in steps {
            if let Some(awaited) = handover.awaited.as_mut().filter(|a| a.pins.start == position) {
                self.pin_what_is_named(awaited)?;
                pinned = awaited.pins.clone();
            }
            if pinned.contains(&position) {
                continue;
            }
            if step.op == Op::Pivot {
                let later = plan.steps.iter().enumerate().skip(position);
                open_sources(later, &mut handover.mounts)?;
            }
            if step.op == Op::JoinCgroups {
                handover.take_groups().map_err(|failed| failed.in_step(stage(&step.op)))?;
            }
            let given = handover.mounts.remove(&position).unwrap_or_default();
            self.step(plan, step, (given, &handover.cgroups))?;
        }
        Ok(())
    }

    /// Waits for the names, and does what the steps for them stand for.
    fn pin_what_is_named(&mut self, awaited: &mut Awaited) -> Result<(), SetupFailure> {
        let names = awaited.heard.names().map_err(|failed| failed.in_step("names"))?;
        self.tree.pin_all(&names.pins).map_err(|failed| failed.in_step("pin"))?;
        let covered = names.covers.iter().try_for_each(|path| self.tree.mask(path));
        covered.map_err(|failed| failed.in_step("mask"))
    }

    fn step(
        &mut self,
        plan: &Plan,
        step: &Step,
        given: (Vec<OwnedFd>, &[OwnedFd]),
    ) -> Result<(), SetupFailure> {
        if let Some(network) = self.network.take_if(|_| follows_the_network(&step.op)) {
            network.join().map_err(|failed| failed.in_step("namespaces"))?;
        }
        let done = one(plan, step, &mut self.tree, given, &mut self.done);
        match (done, step.need) {
            (Ok(()), _) => {}
            (Err(failed), Need::BestEffort) => {
                let skipped = &mut self.done.confirmed.skipped;
                skipped.push(format!("{}: {}", failed.call, failed.errno));
            }
            (Err(failed), Need::Required) => return Err(failed.in_step(stage(&step.op))),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Done, SetupFailure> {
        if let Some(network) = self.network {
            network.join().map_err(|failed| failed.in_step("namespaces"))?;
        }
        // ORDER: before anybody else runs in this tree.
        self.tree.finish().map_err(|failed| failed.in_step("pivot"))?;
        Ok(self.done)
    }
}

/// Opens what these steps show and the host did not open.
///
/// ORDER: before the host's tree is left. Nothing of it can be found any more after that.
fn open_sources<'a>(
    steps: impl Iterator<Item = (usize, &'a Step)>,
    mounts: &mut Mounts,
) -> Result<(), SetupFailure> {
    for (position, step) in steps {
        let Entry::Vacant(place) = mounts.entry(position) else { continue };
        let Some(sources) = sources(&step.op) else { continue };
        let opened: Result<Vec<OwnedFd>, CallFailed> =
            sources.into_iter().map(mounts::open).collect();
        match (opened, step.need) {
            (Ok(opened), _) => {
                place.insert(opened);
            }
            // It fails again, and is told, where it is done.
            (Err(_), Need::BestEffort) => {}
            (Err(failed), Need::Required) => return Err(failed.in_step(stage(&step.op))),
        }
    }
    Ok(())
}

/// What of the host a step shows.
fn sources(op: &Op) -> Option<Vec<Source<'_>>> {
    if let Op::Bind(bind) = op {
        Some(vec![Source::of(bind)])
    } else if let Op::Overlay(overlay) = op {
        Some(overlay.sources().map(Source::of_layer).collect())
    } else {
        None
    }
}

/// Whether a step needs the network, or gives up what it takes to enter one.
fn follows_the_network(op: &Op) -> bool {
    matches!(
        op,
        Op::LoopbackUp
            | Op::LocalRoutes { .. }
            | Op::Redirect { .. }
            | Op::EgressGate { .. }
            | Op::Identity { .. }
            | Op::Capabilities { .. }
            | Op::Landlock(_)
            | Op::CommandRules(_)
            | Op::Seccomp { .. }
    )
}

fn one(
    plan: &Plan,
    step: &Step,
    tree: &mut mounts::Tree,
    (mounts, cgroups): (Vec<OwnedFd>, &[OwnedFd]),
    done: &mut Done,
) -> Result<(), CallFailed> {
    match &step.op {
        Op::PrivateMounts => tree.private(),
        Op::JoinCgroups => {
            let own_view = plan.namespaces.contains(&Namespace::Cgroup);
            identity::join_cgroups(cgroups, own_view)
        }
        Op::HostName(name) => {
            rustix::system::sethostname(name.as_bytes()).during(|| format!("sethostname({name:?})"))
        }
        Op::NewRoot { size_bytes, inodes } => tree.new_root(*size_bytes, *inodes),
        Op::Directory { path, mode } => tree.directory(path, *mode),
        Op::Start { path } => tree.start(path),
        Op::File { path, content, mode } => tree.file(path, content.as_bytes(), *mode),
        Op::Bytes { path, content, mode } => tree.file(path, content.as_bytes(), *mode),
        Op::Symlink { path, target } => tree.symlink(path, target),
        Op::Tmpfs { path, size_bytes, inodes, mode } => {
            tree.tmpfs(path, *size_bytes, *inodes, *mode)
        }
        Op::Bind(bind) => tree.bind(bind, mounts.into_iter().next()),
        Op::Overlay(overlay) => tree.overlay(overlay, mounts),
        Op::Rebind { from, path } => tree.rebind(from, path),
        Op::Proc { path } => tree.proc(path),
        Op::Devpts { path } => tree.devpts(path),
        Op::Mask { path } => tree.mask(path),
        Op::Pin { path, access } => tree.pin(path, *access),
        Op::Space { path, size_bytes, inodes } => tree.space(path, *size_bytes, *inodes),
        Op::Private { path, mode } => tree.private_directory(path, *mode).map(drop),
        Op::Way { path } => tree.way(path),
        Op::SealRoot => tree.seal(),
        Op::Pivot => tree.pivot(),
        Op::LoopbackUp => identity::loopback_up(),
        Op::NoUserNamespaces => tree.no_user_namespaces(),
        Op::Watches { instances, files } => tree.few_watches(*instances, *files),
        Op::ResourceLimit { resource: Resource::Nofile, limit } => {
            keep_descriptors(*limit).map(|most| done.open_files = Some(most))
        }
        Op::ResourceLimit { resource, limit } => resource_limit(*resource, *limit),
        Op::Identity { uid, gid } => identity::become_user(*uid, *gid),
        Op::Capabilities { keep } => identity::keep_capabilities(keep),
        Op::NoNewPrivileges => sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
            .map(drop)
            .during(|| "prctl(PR_SET_NO_NEW_PRIVS)".to_owned()),
        Op::NotDumpable => sys::prctl(libc::PR_SET_DUMPABLE, 0)
            .map(drop)
            .during(|| "prctl(PR_SET_DUMPABLE)".to_owned()),
        Op::Landlock(rules) => {
            confine::landlock(rules).map(|abi| done.confirmed.landlock_abi = abi)
        }
        Op::CommandRules(rules) => confine::rules(rules).map(|made| done.rules = made),
        Op::Seccomp { program } => {
            confine::seccomp(program).map(|()| done.confirmed.seccomp = true)
        }
        Op::LocalRoutes { v6 } => network::lead_here(*v6),
        Op::Redirect { transparent, names } => network::redirect(*transparent, *names),
        Op::EgressGate { rules: _, listen } => {
            network::listen(listen).map(|made| done.listeners = made)
        }
    }
}

/// Answers how many descriptors a command may have, and keeps for us what there is. The kernel counts those
/// that are on their way on the host's user, and lets nobody send any who may have fewer: what other sandboxes
/// do not receive would keep us from handing ours to the host.
fn keep_descriptors(limit: u64) -> Result<u64, CallFailed> {
    let kept = sys::hard_limit(sys::OPEN_FILES).during(|| "getrlimit(Nofile)".to_owned())?;
    // Without it everything works that others do not take.
    let _ = sys::setrlimit(sys::OPEN_FILES, kept);
    Ok(limit.min(kept))
}

fn resource_limit(resource: Resource, limit: u64) -> Result<(), CallFailed> {
    let number = match resource {
        Resource::Nproc => libc::RLIMIT_NPROC,
        Resource::Nofile => libc::RLIMIT_NOFILE,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::Fsize => libc::RLIMIT_FSIZE,
        Resource::Core => libc::RLIMIT_CORE,
        Resource::Memlock => libc::RLIMIT_MEMLOCK,
        Resource::Msgqueue => libc::RLIMIT_MSGQUEUE,
        Resource::Sigpending => libc::RLIMIT_SIGPENDING,
        Resource::Nice => libc::RLIMIT_NICE,
        Resource::Rtprio => libc::RLIMIT_RTPRIO,
    };
    let number = i32::try_from(number).unwrap_or(i32::MAX);
    // A hard limit cannot be raised without privilege: what is lower already stays.
    let kept = sys::hard_limit(number).during(|| format!("getrlimit({resource:?})"))?;
    sys::setrlimit(number, limit.min(kept)).during(|| format!("setrlimit({resource:?}, {limit})"))
}

/// The stable name of a step, as in `ending.stage`.
pub fn stage(op: &Op) -> &'static str {
    match op {
        Op::PrivateMounts => "private_mounts",
        Op::JoinCgroups => "cgroups",
        Op::HostName(_) => "host_name",
        Op::NewRoot { .. } => "new_root",
        Op::Directory { .. } | Op::Start { .. } => "directory",
        Op::File { .. } | Op::Bytes { .. } => "file",
        Op::Symlink { .. } => "symlink",
        Op::Tmpfs { .. } => "tmpfs",
        Op::Bind(_) => "bind",
        Op::Overlay(_) => "overlay",
        Op::Rebind { .. } => "rebind",
        Op::Proc { .. } => "proc",
        Op::Devpts { .. } => "devpts",
        Op::Mask { .. } => "mask",
        Op::Pin { .. } => "pin",
        Op::Space { .. } => "space",
        Op::Private { .. } => "private_directory",
        Op::Way { .. } => "way",
        Op::SealRoot => "seal_root",
        Op::Pivot => "pivot",
        Op::LoopbackUp => "loopback",
        Op::NoUserNamespaces => "no_user_namespaces",
        Op::Watches { .. } => "watches",
        Op::ResourceLimit { .. } => "resource_limit",
        Op::Identity { .. } => "identity",
        Op::Capabilities { .. } => "capabilities",
        Op::NoNewPrivileges => "no_new_privileges",
        Op::NotDumpable => "not_dumpable",
        Op::Landlock(_) => "landlock",
        Op::CommandRules(_) => "command_rules",
        Op::Seccomp { .. } => "seccomp",
        Op::LocalRoutes { .. } => "local_routes",
        Op::Redirect { .. } => "redirect",
        Op::EgressGate { .. } => "egress_gate",
    }
}
