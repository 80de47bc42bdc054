//! A wish, host facts and a look at the disk become a plan. Pure: nothing here asks the system.
//!
//! There are two tiers. Where user namespaces can be made, the sandbox gets a root, processes and a
//! network of its own, and Landlock is a second layer whose absence is noted and lowers nothing.
//! Where they are forbidden, Landlock and the system call filter are all there is, and
//! [`Planned::enforced`] says axis by axis what that cannot hold.

mod confinement;
mod enforced;
mod image;
mod limits;
mod root;
mod split;
mod way_out;
mod without_namespaces;

pub(crate) use root::GIT_CONFIG;
pub use split::{Split, split};
pub use way_out::{WayOut, way_out};

use crate::control_files::PinnedName;
use crate::environment::{Identity, environment};
use crate::host::{HostFacts, UserNamespaces};
use crate::view::{HOME, View, WORKSPACE, WorkspaceView, is_within};
use cofferdam_core::secret::SecretGrant;
use cofferdam_core::{Enforced, Error, ErrorKind, LimitsCount, Profile, Result, Spec, User};
use cofferdam_guestd::apply::Opening;
use cofferdam_wire::plan::{IdRange, Namespace, Need, Op, Plan, Step};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;

/// The user and group id of an ordinary user inside.
pub const USER_ID: u32 = 1000;

/// The host name inside.
pub const HOST_NAME: &str = "cofferdam";

/// What a plan needs besides wish, facts and view.
#[derive(Debug, Clone, Copy)]
pub struct PlanInputs<'a> {
    /// Who commands are on the host.
    pub ids: &'a IdChoice,
    /// Names in the workspace that are protected, parents first. Used only where the workspace can be
    /// written.
    pub pins: &'a [PinnedName],
    /// The system call filter, as the kernel takes it.
    pub seccomp: &'a [(u16, u8, u8, u32)],
    /// What control groups hold.
    pub cgroups: CgroupUse,
    /// A directory of the sandbox's own on the host, for home and temporary files where there can be
    /// no private root. Without it commands have nowhere but the workspace to write.
    pub scratch: Option<&'a str>,
    /// Its way out, if it has one.
    pub way_out: Option<&'a WayOut>,
}

/// Who commands are on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdChoice {
    /// Their user: the caller's own, or, for the host's root, one of the session's own. Never 0.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// Further host user ids for [`User::Root`], inside from 1 on: first id and count.
    pub more_uids: Vec<(u32, u32)>,
    /// The same for groups.
    pub more_gids: Vec<(u32, u32)>,
}

/// What control groups hold for this sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupUse {
    /// Memory of all processes together.
    pub memory: bool,
    /// Processes and threads.
    pub pids: bool,
    /// Processor time.
    pub cpu: bool,
    /// The sandbox has to join by itself, through descriptors handed over (version 1).
    pub child_joins: bool,
}

/// How a sandbox is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// By namespaces, with Landlock and a system call filter on top.
    Namespaces,
    /// By Landlock and a system call filter alone.
    Landlock,
}

/// What a sandbox that is cloned before all is known waits for. Nothing where it has no namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// The steps that pin names. They and the later ones need what the host prepares meanwhile: names
    /// and groups.
    pub pins: Range<usize>,
}

/// A plan, and what is known from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The steps.
    pub plan: Plan,
    /// Which of them can be named later.
    pub late: Late,
    /// How the sandbox is held.
    pub tier: Tier,
    /// How far the policy would hold, derived from facts.
    pub enforced: Enforced,
    /// Whether the limits axis counts: somebody needs a limit that is not held in full.
    pub limits_count: LimitsCount,
    /// The environment of every command.
    pub env: BTreeMap<OsString, OsString>,
    /// Where the workspace is inside, by its stable name where it has one.
    pub workspace: String,
    /// Where commands start unless told otherwise: the workspace at its host path, so that build
    /// caches made outside stay good; by its stable name in a hermetic sandbox.
    pub cwd: String,
    /// The way out, if there is one.
    pub way_out: Option<WayOut>,
    /// Remarks that lower nothing; sentences for people.
    pub notes: Vec<String>,
}

impl IdChoice {
    /// An ordinary user's own ids.
    pub fn own(facts: &HostFacts) -> Self {
        Self { uid: facts.uid, gid: facts.gid, more_uids: Vec::new(), more_gids: Vec::new() }
    }
}

impl Planned {
    /// Puts these steps in the place of those that pin names.
    pub(crate) fn pin(&mut self, steps: Vec<Step>) {
        let end = self.late.pins.start + steps.len();
        self.plan.steps.splice(self.late.pins.clone(), steps);
        self.late.pins.end = end;
    }
}

/// Makes the plan.
///
/// Fails where the wish contradicts itself, or where root would have to be root of the host inside.
pub fn plan(
    spec: &Spec,
    facts: &HostFacts,
    view: &View,
    inputs: &PlanInputs<'_>,
) -> Result<Planned> {
    if inputs.ids.uid == 0 || inputs.ids.gid == 0 {
        return Err(Error::new(ErrorKind::Denied, "commands would be root of the host")
            .hint("Give the session a user id of its own."));
    }
    let context = Context { spec, facts, view, inputs };
    let tier = match facts.user_namespaces {
        UserNamespaces::Allowed => Tier::Namespaces,
        UserNamespaces::Forbidden(_) => Tier::Landlock,
    };
    let mut planned = match tier {
        Tier::Namespaces => context.with_namespaces()?,
        Tier::Landlock => without_namespaces::plan(&context)?,
    };
    planned.notes.extend(view.notes.iter().cloned());
    planned.notes.extend(context.notes());
    Ok(planned)
}

/// What is known of the plan of a sandbox with namespaces before the host is looked at: how
/// [`plan`] begins, and of which ids and network it will be.
pub(crate) fn opening(spec: &Spec, facts: &HostFacts, ids: &IdChoice) -> Opening {
    let mut steps = Steps::default();
    root::opening((spec, facts), Home::Private, &mut steps);
    if facts.is_root() && spec.image.is_none() {
        // Root opens on the host whatever is shown. Anybody else does that inside, and before this.
        root::enter(&mut steps);
    }
    let known = steps.0.len();
    steps.add(Op::LoopbackUp, "");
    let (uid, gid) = ids_inside(spec);
    steps.add(Op::Identity { uid, gid }, "");
    let (uid_map, gid_map) = maps(spec, ids);
    let plan = Plan { namespaces: Namespace::ALL.to_vec(), uid_map, gid_map, steps: steps.0 };
    Opening { plan, known }
}

/// The steps of [`Late::pins`], once the names are known, and the sockets of the host in the workspace.
pub(crate) fn pin_steps(
    spec: &Spec,
    facts: &HostFacts,
    view: &View,
    (inputs, sockets): (&PlanInputs<'_>, &[String]),
) -> Vec<Step> {
    let mut steps = Steps(root::pins(&Context { spec, facts, view, inputs }));
    if let WorkspaceView::Directory(workspace) = &view.workspace {
        for socket in sockets {
            let path = format!("{}/{socket}", workspace.path);
            steps.add(Op::Mask { path }, "a program of the host listens there");
        }
    }
    steps.0
}

/// User and group of commands inside. An ordinary user is the one that the image wants, where there is an
/// image that wants one.
fn ids_inside(spec: &Spec) -> (u32, u32) {
    let wished = spec.image.as_ref().and_then(|image| image.run.ids).filter(|ids| ids.uid != 0);
    match (spec.user, wished) {
        (User::Root, _) => (0, 0),
        (User::Ordinary, Some(ids)) => (ids.uid, ids.gid),
        (User::Ordinary, None) => (USER_ID, USER_ID),
    }
}

/// Which ids inside stand for which outside. An ordinary user inside needs one of each; root inside
/// may have more, for the users that packages bring.
fn maps(spec: &Spec, ids: &IdChoice) -> (Vec<IdRange>, Vec<IdRange>) {
    let (uid, gid) = ids_inside(spec);
    let map = |inside: u32, own: u32, more: &[(u32, u32)]| {
        let mut ranges = vec![IdRange { inside, outside: own, count: 1 }];
        if spec.user == User::Root {
            let mut next = 1;
            for (outside, count) in more {
                ranges.push(IdRange { inside: next, outside: *outside, count: *count });
                next = next.saturating_add(*count);
            }
        }
        ranges
    };
    (map(uid, ids.uid, &ids.more_uids), map(gid, ids.gid, &ids.more_gids))
}

/// Whose a home directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// The sandbox's own, gone with it.
    Private,
    /// A directory of the host that stays.
    Kept,
}

impl Home {
    fn of(view: &View) -> Self {
        if view.home.is_some() { Self::Kept } else { Self::Private }
    }
}

/// Everything that is known.
struct Context<'a> {
    spec: &'a Spec,
    facts: &'a HostFacts,
    view: &'a View,
    inputs: &'a PlanInputs<'a>,
}

impl Context<'_> {
    fn with_namespaces(&self) -> Result<Planned> {
        let mut steps = Steps::default();
        let late = root::steps(self, &mut steps);
        confinement::steps(self, &mut steps);
        let (uid_map, gid_map) = maps(self.spec, self.inputs.ids);
        let workspace = match &self.view.workspace {
            WorkspaceView::Directory(directory) if !directory.at_workspace => &directory.path,
            WorkspaceView::Directory(_) | WorkspaceView::Private => WORKSPACE,
        };
        let cwd = match &self.view.workspace {
            WorkspaceView::Directory(directory) if self.spec.profile != Profile::CiOnly => {
                &directory.path
            }
            WorkspaceView::Directory(_) | WorkspaceView::Private => workspace,
        };
        let cwd = image::cwd(self.spec).unwrap_or_else(|| cwd.to_owned());
        let identity = Identity {
            user: if self.spec.user == User::Root { "root" } else { "sandbox" },
            home: HOME,
            temporary: "/tmp",
            owns_workspace: self.owns_workspace(),
        };
        Ok(Planned {
            plan: Plan { namespaces: Namespace::ALL.to_vec(), uid_map, gid_map, steps: steps.0 },
            late,
            tier: Tier::Namespaces,
            enforced: enforced::with_namespaces(self),
            limits_count: limits::count(self, Tier::Namespaces),
            env: environment(self.spec, self.view, &identity, self.inputs.way_out)?,
            workspace: workspace.to_owned(),
            cwd,
            way_out: self.inputs.way_out.cloned(),
            notes: Vec::new(),
        })
    }

    fn ids_inside(&self) -> (u32, u32) {
        ids_inside(self.spec)
    }

    /// As root the workspace is id-mapped to the sandbox's user. Otherwise its owner is the caller,
    /// or nobody that exists inside.
    fn owns_workspace(&self) -> bool {
        match &self.view.workspace {
            WorkspaceView::Private => true,
            WorkspaceView::Directory(directory) => {
                self.facts.is_root() || directory.owner.0 == self.inputs.ids.uid
            }
        }
    }

    /// The protected names, where protecting them means anything.
    fn pins(&self) -> &[PinnedName] {
        // What is written to a layer acts on nobody outside.
        let lands = self.view.workspace.beside().is_none();
        match self.spec.profile.writes_workspace() && lands {
            true => self.inputs.pins,
            false => &[],
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = image::notes(self.spec);
        if self.facts.landlock_abi == 0 {
            notes.push("this kernel has no Landlock: one layer less".to_owned());
        }
        notes.extend(self.inputs.way_out.map(WayOut::notes).unwrap_or_default());
        notes.extend(self.inputs.way_out.map(|_| gate_note(self.facts)));
        notes.extend(self.spec.secrets.iter().map(|grant| {
            let SecretGrant { name, host, place } = grant;
            format!(
                "${name} is a placeholder; the gate puts secret {name} in toward {host}, in {place}, \
                 over TLS that ends there"
            )
        }));
        for hidden in &self.spec.hide {
            let is_absent = hidden.to_str().is_some_and(|path| {
                let of = self.view.hidden.iter().filter(|known| is_within(&known.path, path));
                let mut of = of.peekable();
                of.peek().is_some()
                    && !of.any(|known| self.view.holds(&known.path))
                    && !self.view.shows_elsewhere(path)
            });
            if is_absent {
                notes.push(format!("--hide {} was not shown anyway", hidden.display()));
            }
        }
        if self.spec.user == User::Root && self.inputs.ids.more_uids.is_empty() {
            notes.push(
                "root inside is the only user there: programs that change to another one fail"
                    .to_owned(),
            );
        }
        notes
    }
}

/// What the gate is on this host, for it reads what hostile programs and servers write.
fn gate_note(facts: &HostFacts) -> String {
    let who =
        if facts.is_root() { "a user that owns nothing" } else { "you, without capabilities" };
    match facts.landlock_abi {
        0 => format!(
            "the gate is outside of the sandbox and reads hostile bytes; it is {who}, with the system \
             calls of its trade, but this kernel has no Landlock, so it can open whatever files its \
             user can: start the kernel with lsm=landlock,… among its parameters"
        ),
        _ => format!(
            "the gate is outside of the sandbox and reads hostile bytes, so it is {who}, opens no file \
             but those about names, writes its log alone, and runs nothing"
        ),
    }
}

/// Steps under construction.
#[derive(Debug, Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn add(&mut self, op: Op, why: impl Into<String>) {
        self.0.push(Step { op, why: why.into(), need: Need::Required });
    }

    /// A step that strengthens, and without which every promise still holds.
    fn add_lenient(&mut self, op: Op, why: impl Into<String>) {
        self.0.push(Step { op, why: why.into(), need: Need::BestEffort });
    }
}

#[cfg(test)]
mod tests;
