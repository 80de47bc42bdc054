//! Plans with a cache that tools add to.

use super::*;
use cofferdam_wire::plan::{Layer, Need, Upper};

const CACHE: &str = "/home/ann/.cargo/registry/cache";

fn planned(spec: &Spec, facts: &HostFacts) -> Planned {
    let ids = ids();
    let inputs = PlanInputs {
        ids: &ids,
        pins: &[],
        seccomp: &[(6, 0, 0, 0x7fff_0000)],
        cgroups: HELD,
        scratch: Some("/home/ann/.local/state/cofferdam/scratch/1"),
        way_out: None,
    };
    let mut view = view(spec, facts);
    let shown = shown(CACHE, Access::ReadOnly, Owner::Same, "crates");
    view.places.push(Place::Layered { shown, owner: Owner::Mapped { uid: 7, gid: 7 } });
    plan(spec, facts, &view, &inputs).unwrap()
}

#[test]
fn a_cache_is_shown_read_only_first_and_the_layer_over_it_may_fail() {
    let (spec, facts) = (wish(Profile::RepoWrite), fake::host(0));
    let planned = planned(&spec, &facts);
    let bind = position(
        &planned,
        |op| matches!(op, Op::Bind(bind) if bind.path == CACHE && bind.access == Access::ReadOnly),
    );
    let over = position(&planned, |op| matches!(op, Op::Overlay(o) if o.path == CACHE));
    assert!(bind < over);
    let step = &planned.plan.steps[over];
    assert_eq!(step.need, Need::BestEffort);
    let [overlay] = *overlays(&planned) else { panic!("one overlay") };
    let owner = Owner::Mapped { uid: 7, gid: 7 };
    let lower = Layer { source: CACHE.to_owned(), owner, identity: Some((1, 2)) };
    assert_eq!(overlay.lower, [lower], "it is the lower layer, which is never written");
    assert_eq!(overlay.upper, Upper::Private { mode: 0o755 });
    assert!(landlock(&planned).write.contains(&CACHE.to_owned()));
    let text = explain(&spec, &planned).text();
    assert!(text.contains(&format!("{CACHE} under a layer")), "{text}");
    assert!(text.contains("the host's cache cannot be changed from inside"), "{text}");
}

#[test]
fn without_namespaces_a_cache_is_read_and_not_written() {
    let planned = planned(&wish(Profile::RepoWrite), &forbidden(1000));
    assert!(overlays(&planned).is_empty());
    let rules = landlock(&planned);
    assert!(rules.read.contains(&CACHE.to_owned()));
    assert!(!rules.write.contains(&CACHE.to_owned()));
}
