//! Plans with a layer over the workspace, or a copy of it.

use super::*;
use cofferdam_wire::plan::{Layer, Upper};

/// The same wish over a layer.
fn beside() -> Spec {
    Spec { workspace: Workspace::CopyOnWrite(PathBuf::from(PROJECT)), ..wish(Profile::NoNetwork) }
}

#[test]
fn a_plan_with_a_layer_is_as_recorded_and_needs_no_pins() {
    for (who, uid) in [("user", 1001), ("root", 0)] {
        let (spec, facts) = (beside(), fake::host(uid));
        let planned = made(&spec, &facts, HELD).unwrap();
        check_recorded(&format!("cow.{who}.namespaces.txt"), &snapshot(&spec, &planned));
        let protected = format!("{PROJECT}/.git/hooks");
        assert!(
            position(&made(&wish(Profile::NoNetwork), &facts, HELD).unwrap(), |op| {
                matches!(op, Op::Pin { path, .. } if *path == protected)
            }) > 0
        );
        let pinned = |step: &Step| matches!(&step.op, Op::Pin { path, .. } if *path == protected);
        assert!(!planned.plan.steps.iter().any(pinned));
        assert!(
            !binds(&planned).iter().any(|bind| bind.source == PROJECT),
            "nothing else shows it"
        );
        assert!(split(&planned, Ahead::Nothing).is_none(), "no template has layers");
    }
}

#[test]
fn a_layer_that_stays_is_that_of_the_view_and_any_other_is_private() {
    let (spec, facts, ids) = (beside(), fake::host(0), ids());
    let inputs = PlanInputs {
        ids: &ids,
        pins: &[],
        seccomp: &[(6, 0, 0, 0x7fff_0000)],
        cgroups: HELD,
        scratch: None,
        way_out: None,
    };
    let mut view = view(&spec, &facts);
    let planned = plan(&spec, &facts, &view, &inputs).unwrap();
    let [passing] = *overlays(&planned) else { panic!("one overlay") };
    assert_eq!(passing.upper, Upper::Private { mode: 0o755 });
    let owner = Owner::Mapped { uid: 1001, gid: 1001 };
    let kept =
        Shown { identity: Some((3, 4)), ..shown("/k/cow", Access::ReadWrite, owner, "kept") };
    view.layer = Some(kept);
    let planned = plan(&spec, &facts, &view, &inputs).unwrap();
    let [stays] = *overlays(&planned) else { panic!("one overlay") };
    let layer = |source: &str, identity| Layer { source: source.to_owned(), owner, identity };
    assert_eq!(stays.upper, Upper::Kept(layer("/k/cow", Some((3, 4)))));
    assert_eq!(stays.lower, [layer(PROJECT, Some((1, 2)))]);
    assert_eq!(stays.path, PROJECT);
}

#[test]
fn a_plan_with_a_copy_shows_the_copy_alone() {
    let (spec, facts, ids) = (beside(), fake::host(0), ids());
    let seccomp = &[(6, 0, 0, 0x7fff_0000)];
    let inputs =
        PlanInputs { ids: &ids, pins: &[], seccomp, cgroups: HELD, scratch: None, way_out: None };
    let mut view = view(&spec, &facts);
    let owner = Owner::Mapped { uid: 1001, gid: 1001 };
    let path = PROJECT.to_owned();
    let copy = shown("/k/cow/upper", Access::ReadWrite, owner, "copied");
    view.copy = Some(Shown { identity: Some((3, 4)), path, ..copy });
    let planned = plan(&spec, &facts, &view, &inputs).unwrap();
    assert!(overlays(&planned).is_empty());
    let at_workspace: Vec<&str> = binds(&planned)
        .into_iter()
        .filter(|bind| bind.path == PROJECT || bind.source == PROJECT)
        .map(|bind| bind.source.as_str())
        .collect();
    assert_eq!(at_workspace, ["/k/cow/upper"]);
    let is_pin = |step: &Step| matches!(&step.op, Op::Pin { path, .. } if *path == format!("{PROJECT}/.git/hooks"));
    assert!(!planned.plan.steps.iter().any(is_pin), "it acts on nobody there");
}

#[test]
fn a_layer_needs_namespaces() {
    let error = made(&beside(), &forbidden(1001), HELD).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unenforceable);
    assert!(error.message.contains("copy-on-write"), "{error}");
}
