//! Everything on the host that one sandbox needs before it is cloned, and owes when it is gone.

mod foreseen;
mod layer;

use crate::cgroup::{
    Assessment, CgroupFacts, Cgroups, GUEST_THREADS_OVER_A_LAYER, are_groups_unified, assess,
};
use crate::control_files::{self, ControlFiles};
use crate::cow::passing::PassingCopy;
use crate::guarded::{GuardedWorkspace, guard};
use crate::host::{HostFacts, Obstacle, UserNamespaces};
use crate::image;
use crate::launch::{Born, Groups, launch, launch_early};
use crate::pin_watch::PinWatch;
use crate::plan::{
    CgroupUse, IdChoice, PlanInputs, Planned, Tier, opening, pin_steps, plan, way_out,
};
use crate::scratch::Scratch;
use crate::seccomp::{self, Surface};
use crate::session_uid::{SessionUid, UidRange};
use crate::state::StateDirectory;
use crate::view::{Landing, Place, View, WorkspaceView, look, look_at_home};
use cofferdam_core::secret::Trusted;
use cofferdam_core::{
    Admission, Axis, Basis, Degree, Enforced, Error, ErrorKind, LayerNote, OnUnavailable, Result,
    SandboxId, Spec, User, admit,
};
use cofferdam_guestd::apply::LostPin;
use cofferdam_wire::ByteString;
use cofferdam_wire::message::HANDED_DIRECTORY;
use cofferdam_wire::plan::Access;
use rustix::fd::OwnedFd;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;

pub use foreseen::{foresee, foresee_kept};

/// A sandbox that can be cloned now. Dropping it gives back all that was taken for it.
#[derive(Debug)]
pub struct Assembly {
    /// The plan and what is known from it.
    pub planned: Planned,
    /// How far the policy holds.
    pub enforced: Enforced,
    /// Whether less holds than was asked for.
    pub admission: Admission,
    /// User and group of its commands on the host.
    pub outside_ids: (u32, u32),
    cgroups: Option<Cgroups>,
    workspace: Option<GuardedWorkspace>,
    /// What is to be said of its layer, where its workspace is copy-on-write.
    pub layer: Option<LayerNote>,
    _layers: Vec<OwnedFd>,
    _scratch: Option<Scratch>,
    _copy: Option<PassingCopy>,
    _user: Option<SessionUid>,
}

/// How long a sandbox is to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay<'a> {
    /// It goes with its caller, and is made as fast as can be.
    Passing {
        /// Why the kernel was found to make no overlay for it.
        no_overlay: Option<&'a str>,
        /// Whether it has a place for files with secrets.
        has_secrets: bool,
        /// What programs trust where secrets are put in for them.
        trusted: Option<&'a Trusted>,
    },
    /// It is kept: it can be frozen, and this directory of the host is its home.
    Kept {
        /// The directory.
        home: Option<&'a Path>,
        /// The directory of the host for what else stays.
        kept: Option<&'a Path>,
        /// What programs trust where secrets are put in for them.
        trusted: Option<&'a Trusted>,
    },
}

impl Stay<'_> {
    /// As nearly everything passes.
    pub(crate) const PASSING: Self =
        Self::Passing { no_overlay: None, has_secrets: false, trusted: None };
}

impl<'a> Stay<'a> {
    fn trusted(self) -> Option<&'a Trusted> {
        match self {
            Self::Passing { trusted, .. } | Self::Kept { trusted, .. } => trusted,
        }
    }
}

/// What was taken for a sandbox and what became of it, once the sandbox is gone.
#[derive(Debug, Default)]
pub struct Farewell {
    /// Control files that appeared in the workspace, relative to it.
    pub new_control_files: Vec<String>,
    /// What could not be given back, and stays recorded for the next start.
    pub leftovers: Vec<Error>,
}

/// Decides what a sandbox for `spec` is made of, takes what it needs, and refuses what cannot be
/// enforced.
pub fn assemble(spec: &Spec, state: &StateDirectory, id: &SandboxId) -> Result<Assembly> {
    assemble_on((spec, Stay::PASSING), state, id, &HostFacts::gather())
}

/// The same where namespaces were tried and refused, though no setting forbids them.
fn assemble_without_namespaces(
    wish: (&Spec, Stay<'_>),
    state: &StateDirectory,
    id: &SandboxId,
) -> Result<Assembly> {
    let user_namespaces = UserNamespaces::Forbidden(Obstacle::Refused);
    assemble_on(wish, state, id, &HostFacts { user_namespaces, ..HostFacts::gather() })
}

/// Assembles a sandbox and has its first process cloned. Where namespaces are refused though no
/// setting forbids them, as by a container's filter, the weaker tier is tried; it is refused too
/// unless the caller takes less.
pub(crate) fn assemble_and_clone<T>(
    wish: (&Spec, Stay<'_>),
    state: &StateDirectory,
    id: &SandboxId,
    clone: impl Fn(&Assembly) -> Result<T>,
) -> Result<(Assembly, T)> {
    let assembly = assemble_on(wish, state, id, &HostFacts::gather())?;
    let refused = match clone(&assembly) {
        Ok(cloned) => return Ok((assembly, cloned)),
        Err(error) if assembly.planned.tier == Tier::Landlock => return Err(error),
        Err(error) if error.kind != ErrorKind::Unavailable => return Err(error),
        Err(error) => error,
    };
    drop(assembly);
    if wish.0.on_unavailable == OnUnavailable::Refuse {
        return Err(refused);
    }
    let assembly = assemble_without_namespaces(wish, state, id)?;
    let cloned = clone(&assembly)?;
    Ok((assembly, cloned))
}

fn assemble_on(
    (spec, stay): (&Spec, Stay<'_>),
    state: &StateDirectory,
    id: &SandboxId,
    facts: &HostFacts,
) -> Result<Assembly> {
    let drafting = Drafting { spec, stay, state, id, facts, copy: RefCell::default() };
    drafting.copy()?;
    drafting.complete(drafting.draft(drafting.grounds(drafting.someone()?)?)?)
}

/// Decides what a one-shot sandbox is made of, has it cloned as soon as its tree is known, and takes
/// what it needs while it builds that. Refuses as [`assemble_and_clone`] does.
///
/// The caller must have one thread only.
pub(crate) fn assemble_and_launch(
    (spec, stay): (&Spec, Stay<'_>),
    state: &StateDirectory,
    id: &SandboxId,
) -> Result<(Assembly, Born)> {
    let facts = HostFacts::gather();
    let drafting = Drafting { spec, stay, state, id, facts: &facts, copy: RefCell::default() };
    drafting.copy()?;
    let someone = drafting.someone()?;
    if facts.obstacle().is_some() {
        let assembly = drafting.complete(drafting.draft(drafting.grounds(someone)?)?)?;
        let born = launch(&assembly.planned.plan, assembly.groups()?)?;
        return Ok((assembly, born));
    }
    let opening = opening(spec, &facts, &someone.ids);
    // Who is to be born in a group waits until there is one.
    let begun = (!are_groups_unified()).then(|| launch_early(&opening, None));
    let mut grounds = drafting.grounds(someone)?;
    drafting.prepare_to_be_born(&mut grounds)?;
    let born_in = grounds.made.as_ref().map(Cgroups::clone_into).transpose()?.flatten();
    let early = match begun.filter(|_| born_in.is_none()) {
        Some(begun) => begun,
        None => launch_early(&opening, born_in.as_ref()),
    };
    let draft = drafting.draft(grounds)?;
    match early {
        Ok(mut early) => {
            early.tell(&opening, &draft.planned.plan, &draft.planned.late)?;
            let (mut assembly, groups) = drafting.hold(draft)?;
            early.name(&assembly.planned.plan, &assembly.planned.late);
            if assembly.cgroups.is_none() {
                // ORDER: after the names, which it waits for, and which take it longer than this takes.
                match drafting.groups(&groups) {
                    Ok(made) => assembly.cgroups = Some(made),
                    Err(error) => {
                        // ORDER: the sandbox before what it stands on.
                        drop(early);
                        return Err(error);
                    }
                }
            }
            let born = early.complete(assembly.join_descriptors()?);
            return Ok((assembly, born));
        }
        Err(error)
            if error.kind != ErrorKind::Unavailable
                || spec.on_unavailable == OnUnavailable::Refuse =>
        {
            return Err(error);
        }
        Err(_) => drop(draft),
    }
    let assembly = assemble_without_namespaces((spec, stay), state, id)?;
    let born = launch(&assembly.planned.plan, assembly.groups()?)?;
    Ok((assembly, born))
}

/// What a sandbox is made from.
struct Drafting<'a> {
    spec: &'a Spec,
    stay: Stay<'a>,
    state: &'a StateDirectory,
    id: &'a SandboxId,
    facts: &'a HostFacts,
    /// The copy of the workspace, where there has to be one for this sandbox alone.
    copy: RefCell<Option<PassingCopy>>,
}

/// Who commands are.
struct Someone {
    user: Option<SessionUid>,
    ids: IdChoice,
}

/// What is known before the host's files are looked at.
struct Grounds {
    someone: Someone,
    groups: CgroupFacts,
    uses: CgroupUse,
    /// The groups, where the first process has to be cloned into one.
    made: Option<Cgroups>,
}

/// All that is decided before the workspace's control files are looked for.
struct Draft {
    grounds: Grounds,
    /// What keeps an image's layers where they are.
    layers: Vec<OwnedFd>,
    layer: Option<LayerNote>,
    view: View,
    scratch: Option<String>,
    filter: Filter,
    planned: Planned,
    enforced: Enforced,
}

/// Gives it a place for files with secrets, unless it is shown something of the host there.
fn add_secrets(view: &mut View) {
    if !view.holds("/run") {
        let path = HANDED_DIRECTORY.to_owned();
        let why = "in memory: files with the secrets of commands while these run".to_owned();
        view.places.push(Place::Private { path, why });
    }
}

impl Drafting<'_> {
    /// Takes a user id where one is needed, and nothing else.
    fn someone(&self) -> Result<Someone> {
        let Self { spec, facts, state, .. } = *self;
        let user = session_user(spec, facts, state)?;
        let ids =
            user.as_ref().map_or_else(|| IdChoice::own(facts), |user| session_ids(spec, user));
        Ok(Someone { user, ids })
    }

    /// Looks where limits can be held.
    fn grounds(&self, someone: Someone) -> Result<Grounds> {
        let Self { spec, stay, state, .. } = *self;
        let groups = match stay {
            Stay::Passing { no_overlay: _, has_secrets: _, trusted: _ } => {
                // What a dead process of ours left behind goes first: it may stand in our way.
                let _ = state.sweep();
                CgroupFacts::read_for_limits()?
            }
            // Whoever asked for it sweeps, and not for each sandbox.
            Stay::Kept { home: _, kept: _, trusted: _ } => CgroupFacts::read()?,
        };
        let assessment = assess(&groups, &spec.limits, spec.on_unavailable)?;
        let uses = in_use(&groups, &assessment);
        Ok(Grounds { someone, groups, uses, made: None })
    }

    /// Looks and decides.
    fn draft(&self, grounds: Grounds) -> Result<Draft> {
        let Self { spec, stay, state, id, facts, copy: _ } = *self;
        let layers = image::hold(spec)?;
        let mut view = look(spec, facts)?;
        view.trusted = stay.trusted().cloned();
        let layer = match stay {
            Stay::Kept { home, kept, trusted: _ } => {
                view.home = home.map(|home| look_at_home(home, facts, state.path())).transpose()?;
                let layer = self.look_at_layer(&mut view, kept)?;
                image::keep(&mut view, kept, facts)?;
                add_secrets(&mut view);
                layer
            }
            Stay::Passing { no_overlay: _, has_secrets, trusted: _ } => {
                if has_secrets {
                    add_secrets(&mut view);
                }
                self.look_at_layer(&mut view, None)?
            }
        };
        let scratch = Scratch::path(state, id, facts)?;
        let filter = filter(spec)?;
        let way_out = way_out(spec)?;
        let inputs = PlanInputs {
            ids: &grounds.someone.ids,
            pins: &[],
            seccomp: &filter,
            cgroups: grounds.uses,
            scratch: scratch.as_deref(),
            way_out: way_out.as_ref(),
        };
        let planned = plan(spec, facts, &view, &inputs)?;
        let enforced = planned.enforced.clone();
        admit(spec.profile, planned.limits_count, spec.on_unavailable, &enforced)?;
        Ok(Draft { grounds, layers, layer, view, scratch, filter, planned, enforced })
    }

    /// Makes the groups that the first process has to be cloned into.
    fn prepare_to_be_born(&self, grounds: &mut Grounds) -> Result<()> {
        if grounds.groups.unified.is_some() {
            grounds.made = Some(self.groups(&grounds.groups)?);
        }
        Ok(())
    }

    fn groups(&self, facts: &CgroupFacts) -> Result<Cgroups> {
        let mut limits = self.spec.limits;
        if matches!(self.stay, Stay::Kept { kept: Some(_), .. }) {
            limits.pids = limits.pids.and(GUEST_THREADS_OVER_A_LAYER);
        }
        Cgroups::prepare(self.state, self.id, &limits, facts)
    }

    /// Takes what is needed, and refuses what cannot be enforced.
    fn complete(&self, mut draft: Draft) -> Result<Assembly> {
        // ORDER: the record of the sandbox before a directory of its own, which has an owner by it.
        if draft.grounds.made.is_none() {
            draft.grounds.made = Some(self.groups(&draft.grounds.groups)?);
        }
        self.hold(draft).map(|(assembly, _)| assembly)
    }

    /// Takes what is needed, and refuses what cannot be enforced. Groups that were not made yet are left to
    /// the caller, with where they can be.
    fn hold(&self, draft: Draft) -> Result<(Assembly, CgroupFacts)> {
        let Self { spec, stay: _, state, id: _, facts, ref copy } = *self;
        let Draft { grounds, layers, layer, view, scratch, filter, mut planned, mut enforced } =
            draft;
        let Grounds { someone: Someone { user, ids }, uses, groups, made } = grounds;
        let workspace = guard(spec, &view, state)?;
        let before = workspace.as_ref().and_then(GuardedWorkspace::control);
        let sockets = sockets(&view, before)?;
        if before.is_some() || !sockets.paths.is_empty() {
            let inputs = PlanInputs {
                ids: &ids,
                pins: before.map_or(&[], |before| &before.pins),
                seccomp: &filter,
                cgroups: uses,
                scratch: scratch.as_deref(),
                way_out: planned.way_out.as_ref(),
            };
            if planned.tier == Tier::Namespaces {
                planned.pin(pin_steps(spec, facts, &view, (&inputs, &sockets.paths)));
            }
        }
        lower(&mut enforced, planned.tier, (before, &sockets));
        let admission = admit(spec.profile, planned.limits_count, spec.on_unavailable, &enforced)?;
        let scratch = scratch.map(|path| Scratch::make(&path, (ids.uid, ids.gid))).transpose()?;
        let assembly = Assembly {
            planned,
            enforced,
            admission,
            outside_ids: (ids.uid, ids.gid),
            cgroups: made,
            workspace,
            layer,
            _layers: layers,
            _scratch: scratch,
            _copy: copy.take(),
            _user: user,
        };
        Ok((assembly, groups))
    }
}

/// The sockets of the host in a workspace that is shown as it is.
#[derive(Debug, Default)]
struct HostSockets {
    /// Relative to the workspace.
    paths: Vec<String>,
    /// Why there may be others, where nothing else says so.
    reasons: Vec<String>,
}

/// Looks for the sockets of the host. Under a layer there are none: what stands in it is another file.
fn sockets(view: &View, before: Option<&ControlFiles>) -> Result<HostSockets> {
    if let Some(before) = before {
        return Ok(HostSockets { paths: before.sockets.clone(), reasons: Vec::new() });
    }
    match &view.workspace {
        WorkspaceView::Directory(directory) if directory.landing == Landing::InPlace => {
            let found = control_files::find_sockets(&open_directory(&directory.path)?)?;
            Ok(HostSockets { reasons: found.reasons_of_sockets(), paths: found.sockets })
        }
        WorkspaceView::Directory(_) | WorkspaceView::Private => Ok(HostSockets::default()),
    }
}

/// A system call filter, as the kernel takes it.
type Filter = Vec<(u16, u8, u8, u32)>;

fn filter(spec: &Spec) -> Result<Filter> {
    seccomp::program(&Surface::of(spec.profile, spec.user)).map_err(|error| {
        Error::new(ErrorKind::SetupFailed, "make the system call filter").source(error)
    })
}

/// Lowers what holds by what cannot be protected of a workspace.
fn lower(
    enforced: &mut Enforced,
    tier: Tier,
    (found, sockets): (Option<&ControlFiles>, &HostSockets),
) {
    let reasons = found.into_iter().flat_map(ControlFiles::reasons);
    for reason in reasons.chain(sockets.reasons.iter().cloned()) {
        let reason = reason.strip_prefix("files: ").unwrap_or(&reason);
        enforced.lower(Axis::Files, Degree::Partial, reason);
    }
    if let (Tier::Landlock, Some(socket)) = (tier, sockets.paths.first()) {
        let why = format!("a program of the host listens at {socket:?} in the workspace");
        enforced.lower(Axis::Network, Degree::Partial, &why);
    }
}

fn in_use(groups: &CgroupFacts, assessment: &Assessment) -> CgroupUse {
    use crate::cgroup::{Holding, Where};
    let held = |holding: &Holding| matches!(holding, Holding::Held | Holding::NotWanted);
    let v1 = |place: &Where| matches!(place, Where::V1(_));
    CgroupUse {
        memory: held(&assessment.memory),
        pids: !matches!(groups.pids, Where::Nowhere(_)),
        cpu: held(&assessment.cpu),
        child_joins: v1(&groups.memory) || v1(&groups.pids) || v1(&groups.cpu),
    }
}

fn session_user(
    spec: &Spec,
    facts: &HostFacts,
    state: &StateDirectory,
) -> Result<Option<SessionUid>> {
    match (facts.is_root(), spec.user) {
        (false, _) => Ok(None),
        (true, User::Ordinary) => SessionUid::acquire(state, UidRange::SINGLE).map(Some),
        (true, User::Root) => SessionUid::acquire_block(state, UidRange::BLOCKS).map(Some),
    }
}

fn session_ids(spec: &Spec, user: &SessionUid) -> IdChoice {
    id_choice(spec, user.uid(), user.count())
}

fn some_session_ids(spec: &Spec) -> IdChoice {
    match spec.user {
        User::Ordinary => id_choice(spec, UidRange::SINGLE.first(), 1),
        User::Root => id_choice(spec, UidRange::BLOCKS.first(), SessionUid::BLOCK),
    }
}

fn id_choice(spec: &Spec, first: u32, count: u32) -> IdChoice {
    let more = match spec.user {
        User::Ordinary => Vec::new(),
        User::Root => vec![(first + 1, count - 1)],
    };
    IdChoice { uid: first, gid: first, more_uids: more.clone(), more_gids: more }
}

fn open_directory(path: &str) -> Result<OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|errno| {
        Error::new(ErrorKind::Io, format!("open the workspace {path:?}"))
            .source(std::io::Error::from(errno))
    })
}

impl Assembly {
    /// The descriptors of the groups that the sandbox is born into.
    pub fn groups(&self) -> Result<Groups> {
        match &self.cgroups {
            Some(groups) => {
                Ok(Groups { join: groups.join_descriptors()?, born_in: groups.clone_into()? })
            }
            None => Ok(Groups::default()),
        }
    }

    /// The descriptors through which the sandbox joins groups by itself.
    fn join_descriptors(&self) -> Result<Vec<OwnedFd>> {
        self.cgroups.as_ref().map_or_else(|| Ok(Vec::new()), Cgroups::join_descriptors)
    }

    /// The control groups, for what they know.
    pub fn cgroups(&self) -> Option<&Cgroups> {
        self.cgroups.as_ref()
    }

    /// Starts to watch the pinned names. `None` where there are none.
    pub fn watch_pins(&self) -> Option<Result<PinWatch>> {
        self.workspace.as_ref().map(GuardedWorkspace::watch)
    }

    /// Pinned names that are not what they were when the sandbox was made.
    pub fn changed_since_the_start(&self) -> Result<Vec<String>> {
        self.workspace.as_ref().map_or_else(|| Ok(Vec::new()), GuardedWorkspace::changed)
    }

    /// Makes a placeholder for every held name that has vanished.
    pub fn renew_placeholders(&self) -> Result<()> {
        self.workspace.as_ref().map_or(Ok(()), GuardedWorkspace::renew)
    }

    /// What is to be mounted again for these names inside: at the workspace's own path and at its stable
    /// name.
    pub fn pins_inside(&self, changed: &[String]) -> Vec<LostPin> {
        let Some(guarded) = &self.workspace else { return Vec::new() };
        let mut places = vec![guarded.path(), &self.planned.workspace];
        places.dedup();
        guarded.lost(changed, &places)
    }

    /// Names below the workspace that cannot be changed from inside, relative to it.
    pub fn protected_names(&self) -> Vec<String> {
        let control = self.workspace.iter().filter_map(GuardedWorkspace::control);
        let pins = control.flat_map(|control| &control.pins);
        pins.filter(|pin| pin.access == Access::ReadOnly).map(|pin| pin.path.clone()).collect()
    }

    /// The variables of every command.
    pub fn environment(&self) -> Vec<(ByteString, ByteString)> {
        let pair = |(name, value): (&OsString, &OsString)| {
            (ByteString::from(name.as_os_str()), ByteString::from(value.as_os_str()))
        };
        self.planned.env.iter().map(pair).collect()
    }

    /// Whether control groups hold the limits of memory and processes.
    pub fn holds_limits(&self) -> bool {
        self.enforced.limits == Degree::Full
    }

    /// Notes that the sandbox stands and that the host confirmed it.
    pub fn confirm(&mut self) {
        self.enforced.basis = Basis::Applied;
    }

    /// Gives everything back. The sandbox must be gone.
    pub fn dissolve(mut self) -> Farewell {
        let mut farewell = Farewell::default();
        if let Some(groups) = self.cgroups.take() {
            farewell.leftovers.extend(groups.remove().err());
        }
        if let Some(guarded) = self.workspace.take() {
            let (appeared, left) = guarded.leave();
            farewell.new_control_files = appeared;
            farewell.leftovers.extend(left);
        }
        farewell
    }
}
