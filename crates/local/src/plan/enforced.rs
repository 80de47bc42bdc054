//! How far a plan would hold, derived from facts alone.

use super::{Context, Tier, WayOut, limits};
use crate::view::WorkspaceView;
use cofferdam_core::{Axis, Basis, Degree, Enforced};

/// With namespaces every axis but limits is full. Landlock is a second layer there: without it each
/// promise still has the namespace, the mount or the filter that keeps it.
pub(super) fn with_namespaces(context: &Context<'_>) -> Enforced {
    let mut enforced = Enforced::full(Basis::Planned);
    limits::lower(context, Tier::Namespaces, &mut enforced);
    if let Some(why) = context.inputs.way_out.and_then(WayOut::reason) {
        // Nothing leaks by that.
        enforced.lower(Axis::Network, Degree::Full, &why);
    }
    enforced
}

/// The first ABI that refuses TCP.
const ABI_TCP: u32 = 4;

/// The first ABI that keeps signals and abstract sockets inside.
const ABI_SCOPE: u32 = 6;

/// Without namespaces, each gap is named.
pub(super) fn without_namespaces(context: &Context<'_>) -> Enforced {
    let abi = context.facts.landlock_abi;
    let mut enforced = Enforced::full(Basis::Planned);
    files(context, &mut enforced);
    if abi < ABI_TCP {
        let why = "there is no network namespace, and this Landlock does not know TCP";
        enforced.lower(Axis::Network, Degree::None, why);
    } else {
        let why = "there is no network namespace: TCP is refused, UDP and sockets of the host's \
                   services in the file system are not";
        enforced.lower(Axis::Network, Degree::Partial, why);
    }
    if context.inputs.way_out.is_some() {
        let why = "there is no way out: a gate needs a network namespace";
        enforced.lower(Axis::Network, Degree::Partial, why);
    }
    if abi < ABI_SCOPE {
        let why = "there is no process namespace: processes of this user can be seen and signaled";
        enforced.lower(Axis::Processes, Degree::None, why);
    } else {
        let why = "there is no process namespace: names and arguments of processes can be seen, \
                   and what a command started may outlive it if Cofferdam is killed";
        enforced.lower(Axis::Processes, Degree::Partial, why);
    }
    limits::lower(context, Tier::Landlock, &mut enforced);
    let why = "host name, user names and kernel settings of the host can be read";
    enforced.lower(Axis::Environment, Degree::Partial, why);
    enforced
}

fn files(context: &Context<'_>, enforced: &mut Enforced) {
    let mut lower = |degree, why: &str| enforced.lower(Axis::Files, degree, why);
    if context.facts.landlock_abi == 0 {
        let why = "there is neither a mount namespace nor Landlock: commands reach what you reach";
        return lower(Degree::None, why);
    }
    lower(
        Degree::Partial,
        "there is no mount namespace: names, sizes and times of all files can be seen, and modes \
         and times of your own files outside can be changed",
    );
    if !context.facts.is_root() {
        let why = "your other terminals can be opened: what you type there can be read";
        lower(Degree::Partial, why);
    }
    if !context.pins().is_empty() {
        lower(Degree::Partial, "protected names in the workspace can be changed");
    }
    if context.view.hidden.iter().any(|hidden| context.view.holds(&hidden.path)) {
        lower(Degree::Partial, "what is hidden below a shown directory can be read");
    }
    if context.facts.is_root() && context.view.workspace != WorkspaceView::Private {
        lower(
            Degree::Partial,
            "the workspace cannot be given to the session's user without an id-mapped mount",
        );
    }
}
