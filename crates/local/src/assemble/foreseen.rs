//! What would become of a wish, without taking anything.

use super::{filter, in_use, look_at_home, lower, open_directory, sockets, some_session_ids};
use crate::cgroup::{CgroupFacts, assess};
use crate::control_files;
use crate::cow;
use crate::guarded::protected_path;
use crate::host::HostFacts;
use crate::plan::{IdChoice, PlanInputs, Planned, Tier, pin_steps, plan, way_out};
use crate::view::{View, look};
use cofferdam_core::{Enforced, Result, Spec};
use std::path::Path;

/// The same decisions without taking anything: what [`assemble`](super::assemble()) would do here and now.
pub fn foresee(spec: &Spec) -> Result<(Planned, Enforced)> {
    let facts = HostFacts::gather();
    let mut view = look(spec, &facts)?;
    cow::foreseen(&mut view, spec, &facts, None)?;
    foresee_in(spec, &facts, view)
}

/// The same for a sandbox that is kept, with its home directory and the state directory.
pub fn foresee_kept(spec: &Spec, home: Option<&Path>, state: &Path) -> Result<(Planned, Enforced)> {
    let facts = HostFacts::gather();
    let mut view = look(spec, &facts)?;
    view.home = home.map(|home| look_at_home(home, &facts, state)).transpose()?;
    let place = state.ancestors().find(|place| place.is_dir());
    cow::foreseen(&mut view, spec, &facts, place)?;
    foresee_in(spec, &facts, view)
}

fn foresee_in(spec: &Spec, facts: &HostFacts, view: View) -> Result<(Planned, Enforced)> {
    let before = match protected_path(spec, &view) {
        Some(path) => Some(control_files::find(&open_directory(path)?)?),
        None => None,
    };
    let groups = CgroupFacts::read_for_limits()?;
    let assessment = assess(&groups, &spec.limits, spec.on_unavailable)?;
    let ids = if facts.is_root() { some_session_ids(spec) } else { IdChoice::own(facts) };
    let filter = filter(spec)?;
    let way_out = way_out(spec)?;
    let inputs = PlanInputs {
        ids: &ids,
        pins: before.as_ref().map_or(&[], |before| &before.pins),
        seccomp: &filter,
        cgroups: in_use(&groups, &assessment),
        scratch: None,
        way_out: way_out.as_ref(),
    };
    let mut planned = plan(spec, facts, &view, &inputs)?;
    let sockets = sockets(&view, before.as_ref())?;
    if planned.tier == Tier::Namespaces && !sockets.paths.is_empty() {
        planned.pin(pin_steps(spec, facts, &view, (&inputs, &sockets.paths)));
    }
    let mut enforced = planned.enforced.clone();
    lower(&mut enforced, planned.tier, (before.as_ref(), &sockets));
    Ok((planned, enforced))
}
