//! A plan in two parts: what a template builds once, and what one sandbox does by itself. Pure.
//!
//! The tree of a template is read-only and shared, so nothing in it may tell of one sandbox. What a
//! sandbox shows at places of its own lies below a *way*: a directory of the sandbox's own space that
//! is shown at the first name of the path.

use super::Planned;
use crate::view::is_within;
use cofferdam_wire::plan::{Access, Bind, Namespace, Need, Op, Owner, Plan, Step};
use cofferdam_wire::template::{Ahead, Rest, RestStep, Shared};
use std::collections::BTreeSet;

/// The size of a template's tree. Nothing is in it but names and a few small files.
const TREE_BYTES: u64 = 4 << 20;
/// How many names it may have.
const TREE_FILES: u64 = 8192;

/// First names that the template has something below, which a way would hide.
const NO_WAYS: &[&str] = &["/dev", "/etc", "/proc", "/usr", "/var", "/bin", "/sbin", "/lib"];

/// A plan in two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// What the template is made from.
    pub shared: Shared,
    /// What the sandbox does besides. Its mounts and groups are not counted yet.
    pub rest: Rest,
}

/// Splits a plan. `None` where a sandbox of this plan cannot come from a template.
pub fn split(planned: &Planned, ahead: Ahead) -> Option<Split> {
    let plan = &planned.plan;
    let needs = [Namespace::User, Namespace::Mount, Namespace::Pid, Namespace::Network];
    if !needs.iter().all(|namespace| plan.namespaces.contains(namespace)) {
        return None;
    }
    let places = Places::of(plan)?;
    let mut split = Splitting { ahead, ..Splitting::default() };
    let mut steps = plan.steps.iter().peekable();
    while let Some(step) = steps.next() {
        if let Op::Directory { path, mode } = &step.op
            && places.private.contains(path.as_str())
        {
            split.private(&places, path, *mode);
            // Its pin, which made it a mount of its own, is part of that.
            steps.next();
        } else {
            split.step(&places, step)?;
        }
    }
    Some(split.done())
}

/// Where what is one sandbox's own is shown.
struct Places<'a> {
    /// Directories of its own that are written.
    private: BTreeSet<&'a str>,
    /// What the template shows of the host.
    shown: Vec<&'a str>,
    /// First names below which everything is the sandbox's own.
    ways: BTreeSet<&'a str>,
}

impl<'a> Places<'a> {
    fn of(plan: &'a Plan) -> Option<Self> {
        let private: BTreeSet<&str> = plan
            .steps
            .windows(2)
            .filter_map(|pair| match pair {
                [Step { op: Op::Directory { path, .. }, .. }, Step { op: pin, .. }] => {
                    let is_own = matches!(pin,
                        Op::Pin { path: pinned, access: Access::ReadWrite } if pinned == path);
                    is_own.then_some(path.as_str())
                }
                _ => None,
            })
            .collect();
        let binds = || {
            plan.steps
                .iter()
                .filter_map(|step| if let Op::Bind(bind) = &step.op { Some(bind) } else { None })
        };
        let shown: Vec<&str> =
            binds().filter(|bind| is_of_all(bind)).map(|bind| bind.path.as_str()).collect();
        let mut ways = BTreeSet::new();
        for bind in binds().filter(|bind| !is_of_all(bind)) {
            let path = bind.path.as_str();
            let is_held = private.iter().chain(&shown).any(|above| is_within(path, above));
            let first = first_name(path);
            if is_held || first == path {
                continue;
            }
            if NO_WAYS.contains(&first) {
                return None;
            }
            ways.insert(first);
        }
        Some(Self { private, shown, ways })
    }

    /// Whether a path is below what is the sandbox's own.
    fn is_own(&self, path: &str) -> bool {
        self.private.iter().chain(&self.ways).any(|own| is_within(path, own))
    }

    /// Whether the template must have a name to mount on.
    fn needs_name(&self, path: &str) -> bool {
        let ways = &self.ways;
        !ways.iter().any(|way| is_within(path, way))
            && !self.shown.iter().any(|shown| is_within(path, shown))
    }
}

/// Whether a bind shows every sandbox of this caller the same.
fn is_of_all(bind: &Bind) -> bool {
    bind.owner == Owner::Same
        && bind.identity.is_none()
        && (bind.access == Access::ReadOnly || bind.devices)
}

fn first_name(path: &str) -> &str {
    match path.get(1..).and_then(|rest| rest.find('/')) {
        Some(end) => path.get(..=end).unwrap_or(path),
        None => path,
    }
}

#[derive(Default)]
struct Splitting {
    ahead: Ahead,
    tree: Vec<Step>,
    common: Vec<Step>,
    rest: Vec<RestStep>,
    /// The size and the number of files of the sandbox's own space.
    space: Option<(u64, u64)>,
}

impl Splitting {
    fn step(&mut self, places: &Places<'_>, step: &Step) -> Option<()> {
        match &step.op {
            Op::PrivateMounts | Op::Pivot => self.tree(step),
            Op::NewRoot { size_bytes, inodes } => {
                let (tree_bytes, tree_files) = (TREE_BYTES, TREE_FILES);
                self.space = Some((*size_bytes, *inodes));
                self.tree_op(Op::NewRoot { size_bytes: tree_bytes, inodes: tree_files });
                for way in &places.ways {
                    self.name(way);
                }
                self.ways(places)?;
            }
            Op::SealRoot => {
                self.tree(step);
                self.own(step);
            }
            Op::Bind(bind) if is_of_all(bind) && !places.is_own(&bind.path) => self.tree(step),
            Op::Bind(bind) => {
                if places.needs_name(&bind.path) && !places.is_own(&bind.path) {
                    self.name(&bind.path);
                }
                self.own(step);
            }
            Op::File { path, .. }
            | Op::Bytes { path, .. }
            | Op::Symlink { path, .. }
            | Op::Directory { path, .. } => match places.is_own(path) {
                true => self.own(step),
                false => self.tree(step),
            },
            Op::Proc { path } => {
                self.tree(step);
                self.name(path);
                self.own(step);
            }
            Op::Tmpfs { path, .. } | Op::Rebind { path, .. } | Op::Devpts { path } => {
                if !places.is_own(path) {
                    self.name(path);
                }
                self.own(step);
            }
            Op::Mask { .. }
            | Op::Pin { .. }
            | Op::JoinCgroups
            | Op::Landlock(_)
            | Op::CommandRules(_) => self.own(step),
            Op::HostName(_)
            | Op::LoopbackUp
            | Op::NoUserNamespaces
            | Op::Watches { .. }
            | Op::ResourceLimit { .. }
            | Op::Identity { .. }
            | Op::Capabilities { .. }
            | Op::NoNewPrivileges
            | Op::NotDumpable
            | Op::Seccomp { .. } => self.common(step),
            // The network that a copy is in may belong to the user namespace above its own, and then
            // no right of its reaches there.
            Op::LocalRoutes { .. } | Op::Redirect { .. } | Op::EgressGate { .. } => return None,
            // Layers are one sandbox's own, and where they stand for a moment is no way.
            Op::Overlay(_) | Op::Start { .. } => return None,
            Op::Space { .. } | Op::Private { .. } | Op::Way { .. } => return None,
        }
        Some(())
    }

    /// The space lies under the first private directory, which every plan has; ways come first, for
    /// the rest to be made below them.
    fn ways(&mut self, places: &Places<'_>) -> Option<()> {
        let (size_bytes, inodes) = self.space?;
        let under = (*places.private.iter().find(|path| !places_way(places, path))?).to_owned();
        self.name(&under);
        self.own_op(Op::Space { path: under, size_bytes, inodes });
        for way in &places.ways {
            self.own_op(Op::Way { path: (*way).to_owned() });
        }
        Some(())
    }

    fn private(&mut self, places: &Places<'_>, path: &str, mode: u32) {
        if places.needs_name(path) {
            self.name(path);
        }
        self.own_op(Op::Private { path: path.to_owned(), mode });
    }

    /// A directory to mount on.
    fn name(&mut self, path: &str) {
        self.tree_op(Op::Directory { path: path.to_owned(), mode: 0o755 });
    }

    fn tree(&mut self, step: &Step) {
        self.tree.push(without_reason(step));
    }

    fn tree_op(&mut self, op: Op) {
        self.tree.push(Step { op, why: String::new(), need: Need::Required });
    }

    fn own(&mut self, step: &Step) {
        self.rest.push(RestStep::Own(without_reason(step)));
    }

    fn own_op(&mut self, op: Op) {
        let step = Step { op, why: String::new(), need: Need::Required };
        self.rest.push(RestStep::Own(step));
    }

    fn common(&mut self, step: &Step) {
        self.rest.push(RestStep::Common(self.common.len()));
        self.common.push(without_reason(step));
    }

    fn done(self) -> Split {
        let Self { ahead, tree, common, rest, .. } = self;
        let rest = Rest { steps: rest, ..Rest::default() };
        Split { shared: Shared { tree, common, ahead }, rest }
    }
}

fn places_way(places: &Places<'_>, path: &str) -> bool {
    places.ways.iter().any(|way| is_within(path, way))
}

/// Reasons are for people, and do not tell templates apart.
fn without_reason(step: &Step) -> Step {
    Step { op: step.op.clone(), why: String::new(), need: step.need }
}

#[cfg(test)]
mod tests;
