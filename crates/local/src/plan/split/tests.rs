use super::*;
use crate::host::fake;
use crate::plan::Profile;
use crate::plan::tests::{HELD, PROJECT, made, wish};

fn planned(uid: u32) -> Planned {
    let mut planned = made(&wish(Profile::NoNetwork), &fake::host(uid), HELD).unwrap();
    for step in &mut planned.plan.steps {
        // As a look at a real host has it: what is the caller's has an identity, the system has none.
        if let Op::Bind(bind) = &mut step.op
            && ["/usr", "/etc"].iter().any(|system| is_within(&bind.path, system))
        {
            bind.identity = None;
        }
    }
    planned
}

fn own(split: &Split) -> Vec<&Op> {
    let steps = split.rest.steps.iter();
    steps
        .filter_map(|step| match step {
            RestStep::Own(step) => Some(&step.op),
            RestStep::Common(_) => None,
        })
        .collect()
}

#[test]
fn nothing_of_one_sandbox_is_in_its_template() {
    for uid in [0, 1001] {
        let planned = planned(uid);
        let split = split(&planned, Ahead::Process).unwrap();
        let shared = serde_json::to_string(&split.shared).unwrap();
        for secret in [PROJECT, "ann", ".env", ".git", "1001"] {
            assert!(!shared.contains(secret), "{secret} in {shared}");
        }
    }
}

#[test]
fn another_workspace_below_the_same_first_name_has_the_same_template() {
    let planned = planned(0);
    let text = serde_json::to_string(&planned.plan).unwrap();
    let mut other = planned.clone();
    other.plan = serde_json::from_str(&text.replace(PROJECT, "/home/bob/x/y")).unwrap();
    let (one, two) = (split(&planned, Ahead::Nothing), split(&other, Ahead::Nothing));
    assert_ne!(one, two);
    assert_eq!(one.unwrap().shared, two.unwrap().shared);
}

#[test]
fn every_step_is_done_once_and_in_its_order() {
    let planned = planned(0);
    let Split { shared, rest } = split(&planned, Ahead::Nothing).unwrap();
    let mut whole: Vec<Op> = planned.plan.steps.iter().map(|step| step.op.clone()).collect();
    let done = rest.steps.iter().map(|step| match step {
        RestStep::Own(step) => step,
        RestStep::Common(at) => &shared.common[*at],
    });
    let mut last = 0;
    for step in done {
        let Some(position) = whole.iter().position(|op| *op == step.op) else {
            let is_made = matches!(step.op, Op::Space { .. } | Op::Private { .. } | Op::Way { .. });
            assert!(is_made, "{:?} is no step of the plan", step.op);
            continue;
        };
        assert!(position >= last, "{:?} comes too late", step.op);
        last = position;
    }
    // What the template does not do, the sandbox does.
    whole.retain(|op| {
        let in_tree = shared.tree.iter().any(|step| step.op == *op);
        let is_new = matches!(op, Op::NewRoot { .. });
        let in_rest = rest.steps.iter().any(|step| match step {
            RestStep::Own(step) => step.op == *op,
            RestStep::Common(at) => shared.common[*at].op == *op,
        });
        !in_tree && !in_rest && !is_new
    });
    let split = split(&planned, Ahead::Nothing).unwrap();
    let own = own(&split);
    for op in &whole {
        let (Op::Directory { path, .. } | Op::Pin { path, access: Access::ReadWrite }) = op else {
            panic!("{op:?} is done by nobody");
        };
        let is_private =
            own.iter().any(|own| matches!(own, Op::Private { path: made, .. } if made == path));
        assert!(is_private, "{op:?} is done by nobody");
    }
}

#[test]
fn what_confines_is_in_every_sandbox_itself() {
    let Split { shared, rest } = split(&planned(0), Ahead::Process).unwrap();
    let mut done = rest.steps.iter().map(|step| match step {
        RestStep::Own(step) => &step.op,
        RestStep::Common(at) => &shared.common[*at].op,
    });
    assert!(done.any(|op| matches!(op, Op::Space { .. })));
    assert!(done.any(|op| matches!(op, Op::Proc { .. })));
    assert!(done.any(|op| matches!(op, Op::NoUserNamespaces)));
    assert!(done.any(|op| matches!(op, Op::Mask { .. })));
    assert!(done.any(|op| matches!(op, Op::SealRoot)));
    assert!(done.any(|op| matches!(op, Op::Capabilities { .. })));
    assert!(done.any(|op| matches!(op, Op::NoNewPrivileges)));
    assert!(done.any(|op| matches!(op, Op::NotDumpable)));
    assert!(done.any(|op| matches!(op, Op::Landlock(_))));
    assert!(matches!(done.next(), Some(Op::Seccomp { .. })));
    assert_eq!(done.next(), None, "the filter is last");
}

#[test]
fn a_place_that_a_way_would_hide_something_at_is_built_from_nothing() {
    let planned = planned(0);
    let text = serde_json::to_string(&planned.plan).unwrap();
    for path in ["/etc/project", "/var/www/site", "/dev/project"] {
        let mut other = planned.clone();
        other.plan = serde_json::from_str(&text.replace(PROJECT, path)).unwrap();
        assert_eq!(split(&other, Ahead::Nothing), None, "{path}");
    }
    // What the template shows has the name to mount on already.
    let mut other = planned.clone();
    other.plan = serde_json::from_str(&text.replace(PROJECT, "/usr/src/project")).unwrap();
    assert!(split(&other, Ahead::Nothing).is_some());
}

#[test]
fn a_plan_without_namespaces_has_no_template() {
    let mut planned = planned(1001);
    planned.plan.namespaces.retain(|namespace| *namespace != Namespace::User);
    assert_eq!(split(&planned, Ahead::Nothing), None);
}
