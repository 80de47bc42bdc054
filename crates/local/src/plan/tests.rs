mod caches;
mod image;
mod layers;

use super::*;
use crate::explain::{action, explain};
use crate::host::{Obstacle, fake};
use crate::view::{Hidden, Landing, Link, Place, Shown, TextFile, WorkspaceDirectory};
use cofferdam_core::{Axis, Caller, Degree, Enforcement, Limit, OnUnavailable, Workspace, admit};
use cofferdam_guestd::Redirection;
use cofferdam_wire::plan::{Access, Bind, Landlock, Overlay, Owner, Resource};
use cofferdam_wire::template::Ahead;
use std::path::PathBuf;

pub(in crate::plan) const PROJECT: &str = "/home/ann/proj";

pub(in crate::plan) fn wish(profile: Profile) -> Spec {
    let mut caller = Caller { env: BTreeMap::new(), home: Some(PathBuf::from("/home/ann")) };
    for (name, value) in
        [("TERM", "xterm"), ("LANG_SECRET", "no"), ("AWS_SECRET_ACCESS_KEY", "no"), ("LC_ALL", "C")]
    {
        caller.env.insert(name.into(), value.into());
    }
    let mut spec = Spec::new(Workspace::Directory(PathBuf::from(PROJECT)), caller);
    spec.profile = profile;
    spec.env.insert("ASKED".into(), "yes".into());
    spec
}

fn shown(path: &str, access: Access, owner: Owner, why: &str) -> Shown {
    Shown {
        source: path.to_owned(),
        path: path.to_owned(),
        access,
        owner,
        identity: Some((1, 2)),
        why: why.to_owned(),
    }
}

fn protocols() -> TextFile {
    TextFile {
        path: "/etc/protocols".to_owned(),
        content: "tcp 6 TCP\n".to_owned(),
        why: "names of protocols".to_owned(),
    }
}

/// A small host, looked at for this spec.
fn view(spec: &Spec, facts: &HostFacts) -> View {
    let owner = match facts.is_root() {
        true => Owner::Mapped { uid: 1001, gid: 1001 },
        false => Owner::Same,
    };
    let access = match spec.profile.writes_workspace() {
        true => Access::ReadWrite,
        false => Access::ReadOnly,
    };
    let mut places = vec![Place::Shown(shown(PROJECT, access, owner, "the workspace"))];
    let mut variables = BTreeMap::new();
    let mut path = vec!["/usr/bin".to_owned()];
    if spec.profile.shows_toolchains() {
        let home = "/home/ann/.cargo".to_owned();
        variables.insert("CARGO_HOME".to_owned(), home.clone());
        path.insert(0, format!("{home}/bin"));
        let bin = shown("/home/ann/.cargo/bin", Access::ReadOnly, Owner::Same, "programs of cargo");
        places.insert(0, Place::Private { path: home, why: "cargo keeps locks".to_owned() });
        places.push(Place::Shown(bin));
    }
    View {
        system: vec![
            shown("/usr", Access::ReadOnly, Owner::Same, "programs and libraries of the system"),
            shown("/etc/ssl/certs", Access::ReadOnly, Owner::Same, "trusted authorities"),
        ],
        links: vec![Link {
            path: "/bin".to_owned(),
            target: "usr/bin".to_owned(),
            why: "programs of the system".to_owned(),
        }],
        files: vec![protocols()],
        places,
        mounts: Vec::new(),
        home: None,
        layer: None,
        held_names: Vec::new(),
        copy: None,
        image: image::seen(spec, owner),
        workspace: WorkspaceView::Directory(WorkspaceDirectory {
            path: PROJECT.to_owned(),
            at_workspace: true,
            owner: (1001, 1001),
            outer_git: None,
            landing: match &spec.workspace {
                Workspace::CopyOnWrite(_) => Landing::Beside { mode: 0o755 },
                Workspace::Directory(_) | Workspace::Private => Landing::InPlace,
            },
        }),
        hidden: vec![Hidden {
            path: format!("{PROJECT}/.env"),
            why: "listed with --hide".to_owned(),
        }],
        path,
        variables,
        git_identity: None,
        trusted: None,
        notes: vec!["/home/ann of PATH is not shown: it is the home directory".to_owned()],
    }
}

fn ids() -> IdChoice {
    IdChoice { uid: 1001, gid: 1001, more_uids: Vec::new(), more_gids: Vec::new() }
}

fn pins() -> Vec<PinnedName> {
    let pin = |path: &str, access| PinnedName { path: path.to_owned(), access };
    vec![pin(".git", Access::ReadWrite), pin(".git/hooks", Access::ReadOnly)]
}

pub(in crate::plan) const HELD: CgroupUse =
    CgroupUse { memory: true, pids: true, cpu: true, child_joins: true };

pub(in crate::plan) fn made(spec: &Spec, facts: &HostFacts, cgroups: CgroupUse) -> Result<Planned> {
    made_on(spec, facts, cgroups, redirection(true))
}

fn made_on(
    spec: &Spec,
    facts: &HostFacts,
    cgroups: CgroupUse,
    redirection: Redirection,
) -> Result<Planned> {
    let (ids, pins) = (ids(), pins());
    let policy = spec.network_policy()?;
    let way_out = policy.map(|policy| WayOut { policy, redirection });
    let inputs = PlanInputs {
        ids: &ids,
        pins: &pins,
        seccomp: &[(6, 0, 0, 0x7fff_0000)],
        cgroups,
        scratch: Some("/home/ann/.local/state/cofferdam/scratch/1"),
        way_out: way_out.as_ref(),
    };
    plan(spec, facts, &view(spec, facts), &inputs)
}

/// A host that leads connections to the gate, or one that does not.
fn redirection(works: bool) -> Redirection {
    let works = if works { Ok(()) } else { Err("no nf_tables".to_owned()) };
    Redirection { v6: works.is_ok(), works }
}

fn forbidden(uid: u32) -> HostFacts {
    HostFacts { user_namespaces: UserNamespaces::Forbidden(Obstacle::AppArmor), ..fake::host(uid) }
}

fn position(planned: &Planned, is: impl Fn(&Op) -> bool) -> usize {
    planned.plan.steps.iter().position(|step| is(&step.op)).expect("the step is there")
}

fn landlock(planned: &Planned) -> &Landlock {
    let rules = planned
        .plan
        .steps
        .iter()
        .find_map(|step| if let Op::Landlock(rules) = &step.op { Some(rules) } else { None });
    rules.expect("there are rules")
}

fn binds(planned: &Planned) -> Vec<&Bind> {
    let steps = planned.plan.steps.iter();
    steps.filter_map(|step| if let Op::Bind(bind) = &step.op { Some(bind) } else { None }).collect()
}

fn check_recorded(name: &str, text: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/plan/snapshots");
    let file = folder.join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, recorded, "{} (BLESS=1 rewrites it)", file.display());
}

#[test]
fn whole_plans_are_as_recorded() {
    for profile in Profile::ALL {
        for (who, uid) in [("user", 1001), ("root", 0)] {
            for (tier, facts) in [("namespaces", fake::host(uid)), ("landlock", forbidden(uid))] {
                let spec = wish(profile);
                let planned = made(&spec, &facts, HELD).unwrap();
                let text = snapshot(&spec, &planned);
                check_recorded(&format!("{profile}.{who}.{tier}.txt"), &text);
            }
        }
    }
}

fn overlays(planned: &Planned) -> Vec<&Overlay> {
    let steps = planned.plan.steps.iter();
    steps.filter_map(|step| if let Op::Overlay(o) = &step.op { Some(o) } else { None }).collect()
}

fn snapshot(spec: &Spec, planned: &Planned) -> String {
    let map = |range: &IdRange| format!("{} is {} (x{})", range.inside, range.outside, range.count);
    let maps: Vec<String> = planned.plan.uid_map.iter().map(map).collect();
    let env = planned
        .env
        .iter()
        .map(|(name, value)| format!("  {}={}", name.to_string_lossy(), value.to_string_lossy()));
    format!(
        "{}\nUsers inside: {}\nEnvironment:\n{}\nLimits count: {:?}\n",
        explain(spec, planned).text(),
        if maps.is_empty() { "those of the host".to_owned() } else { maps.join(", ") },
        env.collect::<Vec<_>>().join("\n"),
        planned.limits_count,
    )
}

#[test]
fn every_plan_begins_as_a_sandbox_does_before_it_is_known() {
    for profile in Profile::ALL {
        for uid in [1001, 0] {
            let (spec, facts) = (wish(profile), fake::host(uid));
            let planned = made(&spec, &facts, HELD).unwrap();
            let begun = opening(&spec, &facts, &ids());
            assert!(begun.begins(&planned.plan), "{profile} as {uid}");
            let somebody = IdChoice { uid: 1002, ..ids() };
            assert!(!opening(&spec, &facts, &somebody).begins(&planned.plan));
            let known = &begun.plan.steps[..begun.known];
            let of_the_host = |op: &Op| matches!(op, Op::Bind(bind) if !bind.devices);
            assert!(!known.iter().any(|step| of_the_host(&step.op)));
            // Who opens inside what is shown has not left the host's tree by then.
            assert_eq!(known.iter().any(|step| step.op == Op::Pivot), facts.is_root());
        }
    }
}

#[test]
fn every_step_has_a_reason() {
    for profile in Profile::ALL {
        for facts in [fake::host(0), fake::host(1001), forbidden(1001)] {
            for cgroups in [HELD, CgroupUse::default()] {
                let planned = made(&wish(profile), &facts, cgroups).unwrap();
                for step in &planned.plan.steps {
                    let what = action(&step.op);
                    assert!(step.why.len() > 8 && !step.why.ends_with('.'), "{what}: {}", step.why);
                }
            }
        }
    }
}

#[test]
fn the_filter_is_last_and_the_workspace_is_doubled_after_its_protection() {
    let planned = made(&wish(Profile::NoNetwork), &fake::host(1001), HELD).unwrap();
    let steps = planned.plan.steps.len();
    assert_eq!(position(&planned, |op| matches!(op, Op::Seccomp { .. })), steps - 1);
    let workspace = position(&planned, |op| matches!(op, Op::Bind(bind) if bind.path == PROJECT));
    let pin = position(
        &planned,
        |op| matches!(op, Op::Pin { path, access: Access::ReadOnly } if path.ends_with(".git/hooks")),
    );
    let hidden = position(&planned, |op| matches!(op, Op::Mask { path } if path.ends_with(".env")));
    let doubled = position(&planned, |op| matches!(op, Op::Rebind { .. }));
    let sealed = position(&planned, |op| matches!(op, Op::SealRoot));
    assert!(workspace < pin && pin < doubled && hidden < doubled && doubled < sealed);
    let closed = position(&planned, |op| matches!(op, Op::NoUserNamespaces));
    let settings =
        position(&planned, |op| matches!(op, Op::Pin { path, .. } if path == "/proc/sys"));
    assert!(closed < settings, "the setting is written while it can be");
}

#[test]
fn the_way_to_what_is_listed_or_hidden_cannot_be_moved_away() {
    let (spec, facts) = (wish(Profile::NoNetwork), fake::host(1001));
    let mut view = view(&spec, &facts);
    let listed = |path: &str, access| Place::Shown(shown(path, access, Owner::Same, "listed"));
    view.places.push(listed("/home/ann/proj/a/b/cache", Access::ReadWrite));
    view.places.push(listed("/home/ann/proj/a/b/cache/x/y", Access::ReadOnly));
    view.places.push(listed("/home/ann/proj/a/b/cache/x/y/z/w", Access::ReadOnly));
    view.places.push(listed("/srv/a/b", Access::ReadWrite));
    let why = "listed with --hide".to_owned();
    view.hidden.push(Hidden { path: format!("{PROJECT}/s/secrets"), why });
    let (ids, pins) = (ids(), pins());
    let inputs = PlanInputs {
        ids: &ids,
        pins: &pins,
        seccomp: &[],
        cgroups: HELD,
        scratch: None,
        way_out: None,
    };
    let planned = plan(&spec, &facts, &view, &inputs).unwrap();
    let held: Vec<&str> = planned
        .plan
        .steps
        .iter()
        .filter_map(|step| {
            let Op::Pin { path, access: Access::ReadWrite } = &step.op else { return None };
            path.strip_prefix(PROJECT)
        })
        .collect();
    assert_eq!(held, ["/.git", "/a", "/a/b", "/a/b/cache/x", "/s"]);
    let pin = |name: &str| {
        let name = format!("{PROJECT}{name}");
        position(&planned, |op| matches!(op, Op::Pin { path, .. } if *path == name))
    };
    let last_bind =
        position(&planned, |op| matches!(op, Op::Bind(bind) if bind.path == "/srv/a/b"));
    let mask =
        position(&planned, |op| matches!(op, Op::Mask { path } if path.ends_with("secrets")));
    assert!(last_bind < pin("/a") && pin("/a") < pin("/a/b") && pin("/s") < mask);
}

#[test]
fn only_what_is_meant_can_be_written() {
    let spec = wish(Profile::ReadOnly);
    let planned = made(&spec, &fake::host(1001), HELD).unwrap();
    let writable: Vec<&str> = binds(&planned)
        .into_iter()
        .filter(|bind| bind.access == Access::ReadWrite && !bind.devices)
        .map(|bind| bind.path.as_str())
        .collect();
    assert_eq!(writable, Vec::<&str>::new());
    assert!(!landlock(&planned).write.iter().any(|path| path == PROJECT));
    let pinned = |op: &Op| matches!(op, Op::Pin { path, .. } if path.starts_with(PROJECT));
    assert!(!planned.plan.steps.iter().any(|step| pinned(&step.op)));
    let planned = made(&wish(Profile::NoNetwork), &fake::host(1001), HELD).unwrap();
    assert!(landlock(&planned).write.iter().any(|path| path == PROJECT));
}

#[test]
fn devices_work_only_in_dev() {
    let planned = made(&wish(Profile::FullDev), &fake::host(0), HELD).unwrap();
    for bind in binds(&planned) {
        assert_eq!(bind.devices, bind.path.starts_with("/dev/"), "{}", bind.path);
        assert_eq!(bind.owner != Owner::Same, bind.path == PROJECT, "{}", bind.path);
    }
}

#[test]
fn nobody_inside_is_root_of_the_host() {
    for uid in [0, 1001] {
        let mut spec = wish(Profile::NoNetwork);
        spec.user = User::Root;
        let planned = made(&spec, &fake::host(uid), HELD).unwrap();
        assert!(planned.plan.uid_map.iter().all(|range| range.outside != 0));
        let keeps =
            |op: &Op| matches!(op, Op::Capabilities { keep } if *keep == [0, 1, 3, 4, 5, 6, 7, 18]);
        position(&planned, keeps);
        spec.user = User::Ordinary;
        let planned = made(&spec, &fake::host(uid), HELD).unwrap();
        position(&planned, |op| matches!(op, Op::Capabilities { keep } if keep.is_empty()));
        position(&planned, |op| matches!(op, Op::Identity { uid: 1000, gid: 1000 }));
    }
    let ids = IdChoice { uid: 0, ..ids() };
    let (spec, facts) = (wish(Profile::NoNetwork), fake::host(0));
    let inputs = PlanInputs {
        ids: &ids,
        pins: &[],
        seccomp: &[],
        cgroups: HELD,
        scratch: None,
        way_out: None,
    };
    let error = plan(&spec, &facts, &view(&spec, &facts), &inputs).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
}

#[test]
fn more_ids_follow_the_first() {
    let mut spec = wish(Profile::NoNetwork);
    spec.user = User::Root;
    let ids = IdChoice { more_uids: vec![(100_000, 999), (200_000, 10)], ..ids() };
    let facts = fake::host(1001);
    let inputs = PlanInputs {
        ids: &ids,
        pins: &[],
        seccomp: &[],
        cgroups: HELD,
        scratch: None,
        way_out: None,
    };
    let planned = plan(&spec, &facts, &view(&spec, &facts), &inputs).unwrap();
    let map: Vec<(u32, u32, u32)> =
        planned.plan.uid_map.iter().map(|r| (r.inside, r.outside, r.count)).collect();
    assert_eq!(map, [(0, 1001, 1), (1, 100_000, 999), (1000, 200_000, 10)]);
}

#[test]
fn limits_fall_back_to_each_process_and_say_so() {
    let resource = |planned: &Planned, wanted: Resource| {
        planned.plan.steps.iter().find_map(|step| {
            let Op::ResourceLimit { resource, limit } = step.op else { return None };
            (resource == wanted).then_some(limit)
        })
    };
    let spec = wish(Profile::NoNetwork);
    let held = made(&spec, &fake::host(1001), HELD).unwrap();
    assert_eq!(resource(&held, Resource::Core), Some(1));
    assert_eq!(resource(&held, Resource::Nproc), None);
    assert_eq!(held.enforced.limits, Degree::Full);

    let alone = made(&spec, &fake::host(1001), CgroupUse::default()).unwrap();
    assert_eq!(resource(&alone, Resource::Nproc), Some(4097));
    assert_eq!(resource(&alone, Resource::Data), Some(8 << 30));
    assert_eq!(alone.enforced.limits, Degree::Partial);
    assert_eq!(alone.limits_count, LimitsCount::No);
    assert_eq!(alone.enforced.overall(alone.limits_count), Enforcement::FullyEnforced);

    let asked = |change: &dyn Fn(&mut Spec)| {
        let mut spec = wish(Profile::NoNetwork);
        change(&mut spec);
        made(&spec, &fake::host(1001), CgroupUse::default()).unwrap().limits_count
    };
    assert_eq!(asked(&|s| s.limits.memory_bytes = Limit::Asked(1 << 20)), LimitsCount::Yes);
    assert_eq!(asked(&|s| s.limits.cpu_millis = Limit::Asked(500)), LimitsCount::Yes);
    // The kernel counts processes by user namespace, and the private space has its own size.
    assert_eq!(asked(&|s| s.limits.pids = Limit::Asked(50)), LimitsCount::No);
    assert_eq!(asked(&|s| s.limits.disk_bytes = Limit::Asked(1 << 20)), LimitsCount::No);
    assert_eq!(asked(&|s| s.profile = Profile::CiOnly), LimitsCount::Yes);
}

#[test]
fn without_namespaces_each_gap_is_named_and_the_run_refused() {
    let spec = wish(Profile::NoNetwork);
    let planned = made(&spec, &forbidden(1001), HELD).unwrap();
    assert_eq!(planned.tier, Tier::Landlock);
    assert!(planned.plan.namespaces.is_empty());
    for axis in [Axis::Files, Axis::Network, Axis::Processes, Axis::Environment] {
        assert_eq!(planned.enforced.degree(axis), Degree::Partial, "{}", axis.name());
        let lead = format!("{}: ", axis.name());
        assert!(planned.enforced.reasons.iter().any(|reason| reason.starts_with(&lead)));
    }
    let admitted = |policy| admit(spec.profile, planned.limits_count, policy, &planned.enforced);
    assert!(admitted(OnUnavailable::Refuse).is_err());
    assert!(admitted(OnUnavailable::Degrade).is_ok());
    assert!(landlock(&planned).no_tcp);
    assert!(!landlock(&planned).read.iter().any(|path| path == "/"));

    let facts = HostFacts { landlock_abi: 0, ..forbidden(1001) };
    let planned = made(&spec, &facts, HELD).unwrap();
    for axis in [Axis::Files, Axis::Network, Axis::Processes] {
        assert_eq!(planned.enforced.degree(axis), Degree::None, "{}", axis.name());
    }
    let mut spec = spec;
    spec.user = User::Root;
    let error = made(&spec, &facts, HELD).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unenforceable);
    assert!(error.hint.unwrap().contains("apparmor"));
}

#[test]
fn without_landlock_the_namespaces_still_hold_and_it_is_noted() {
    let facts = HostFacts { landlock_abi: 0, ..fake::host(1001) };
    let planned = made(&wish(Profile::NoNetwork), &facts, HELD).unwrap();
    assert_eq!(planned.enforced.overall(LimitsCount::Yes), Enforcement::FullyEnforced);
    assert!(planned.notes.iter().any(|note| note.contains("Landlock")));
}

fn wish_for(rule: &str) -> Spec {
    Spec { egress: vec![rule.parse().unwrap()], ..wish(Profile::RepoWrite) }
}

fn content<'a>(planned: &'a Planned, wanted: &str) -> &'a str {
    let file = planned.plan.steps.iter().find_map(|step| {
        let Op::File { path, content, .. } = &step.op else { return None };
        (path == wanted).then_some(content.as_str())
    });
    file.unwrap()
}

#[test]
fn a_way_out_is_built_before_rights_are_given_up_and_only_where_one_is_wished_for() {
    let host = fake::host(1001);
    let closed = made(&wish(Profile::RepoWrite), &host, HELD).unwrap();
    let is_of_the_way_out = |op: &Op| {
        matches!(op, Op::LocalRoutes { .. } | Op::Redirect { .. } | Op::EgressGate { .. })
    };
    assert!(!closed.plan.steps.iter().any(|step| is_of_the_way_out(&step.op)));
    assert_eq!((closed.way_out.as_ref(), content(&closed, "/etc/resolv.conf")), (None, ""));
    let open = made(&wish_for("example.com:443"), &host, HELD).unwrap();
    let up = position(&open, |op| *op == Op::LoopbackUp);
    let routes = position(&open, |op| *op == Op::LocalRoutes { v6: true });
    let led = position(&open, |op| *op == Op::Redirect { transparent: 61001, names: 61053 });
    let gate = position(
        &open,
        |op| matches!(op, Op::EgressGate { rules, .. } if *rules == ["example.com:443"]),
    );
    let rights = position(&open, |op| matches!(op, Op::Capabilities { .. }));
    assert!(up < routes && routes < led && led < gate && gate < rights);
    assert!(split(&open, Ahead::Nothing).is_none(), "its network is its own");
    assert_eq!(content(&open, "/etc/resolv.conf"), "nameserver 198.18.0.1\n");
    assert!(content(&open, "/etc/nsswitch.conf").contains("hosts: files dns\n"));
    assert!(!open.env.contains_key(std::ffi::OsStr::new("HTTPS_PROXY")));
    assert_eq!(open.enforced.overall(LimitsCount::Yes), Enforcement::FullyEnforced);
    let asking = Spec {
        host_ports: vec![5432],
        ask: std::time::Duration::from_secs(2),
        ..wish(Profile::RepoWrite)
    };
    let text = explain(&asking, &made(&asking, &host, HELD).unwrap()).text();
    assert!(text.contains("The way out leads to no host until one is allowed."), "{text}");
    assert!(text.contains("reached as host.cofferdam.internal:5432"), "{text}");
    assert!(text.contains("waits 2000 ms"), "{text}");
    let refused = Spec { profile: Profile::NoNetwork, ..wish_for("example.com:443") };
    assert_eq!(made(&refused, &host, HELD).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn where_the_kernel_cannot_redirect_the_proxy_remains_and_that_is_said() {
    let (host, spec) = (fake::host(1001), wish_for("example.com:443"));
    let planned = made_on(&spec, &host, HELD, redirection(false)).unwrap();
    let steps = || planned.plan.steps.iter().map(|step| &step.op);
    assert!(!steps().any(|op| matches!(op, Op::LocalRoutes { .. } | Op::Redirect { .. })));
    let ports = steps().find_map(|op| {
        let Op::EgressGate { listen, .. } = op else { return None };
        Some(listen.iter().map(|listen| listen.port).collect::<Vec<_>>())
    });
    assert_eq!(ports.unwrap(), [61002, 61053, 61053]);
    assert_eq!(content(&planned, "/etc/resolv.conf"), "");
    for (name, value) in [
        ("https_proxy", "http://127.0.0.1:61002"),
        ("ALL_PROXY", "socks5h://127.0.0.1:61002"),
        ("NO_PROXY", "localhost,127.0.0.1,::1"),
    ] {
        let found = planned.env.get(std::ffi::OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(found, Some(value), "{name}");
    }
    let reasons = planned.enforced.reasons.join("; ");
    assert!(reasons.contains("HTTP_PROXY") && reasons.contains("no nf_tables"), "{reasons}");
    assert_eq!(planned.enforced.overall(LimitsCount::Yes), Enforcement::FullyEnforced);
}

#[test]
fn without_namespaces_there_is_no_way_out_and_that_is_said() {
    let planned = made(&wish_for("example.com:443"), &forbidden(1001), HELD).unwrap();
    assert_eq!(planned.way_out, None);
    assert!(planned.enforced.network < Degree::Full);
    let reasons = planned.enforced.reasons.join("; ");
    assert!(reasons.contains("there is no way out"), "{reasons}");
}

#[test]
fn the_environment_is_an_allowlist() {
    let env = made(&wish(Profile::NoNetwork), &fake::host(1001), HELD).unwrap().env;
    let get = |name: &str| env.get(std::ffi::OsStr::new(name)).and_then(|value| value.to_str());
    assert_eq!(get("TERM"), Some("xterm"));
    assert_eq!(get("LC_ALL"), Some("C"));
    assert_eq!(get("ASKED"), Some("yes"));
    assert_eq!(get("HOME"), Some("/home/sandbox"));
    assert_eq!(get("PATH"), Some("/home/ann/.cargo/bin:/usr/bin"));
    assert_eq!(get("CARGO_NET_OFFLINE"), Some("true"));
    assert_eq!((get("LANG_SECRET"), get("AWS_SECRET_ACCESS_KEY")), (None, None));
    assert_eq!(get("GIT_CONFIG_COUNT"), None);

    let env = made(&wish(Profile::CiOnly), &fake::host(1001), HELD).unwrap().env;
    assert!(!env.contains_key(std::ffi::OsStr::new("TERM")));
    assert!(env.contains_key(std::ffi::OsStr::new("ASKED")));

    let mut spec = wish(Profile::NoNetwork);
    for bad in ["", "A=B", "A\0"] {
        spec.env = BTreeMap::from([(bad.into(), "x".into())]);
        let error = made(&spec, &fake::host(1001), HELD).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage, "{bad:?}");
    }
}

#[test]
fn an_explanation_is_an_object_that_survives_json() {
    let spec = wish(Profile::FullDev);
    let planned = made(&spec, &fake::host(0), CgroupUse::default()).unwrap();
    let explanation = explain(&spec, &planned);
    let json = serde_json::to_string(&explanation).unwrap();
    assert_eq!(serde_json::from_str::<crate::explain::Explanation>(&json).unwrap(), explanation);
    assert!(!json.contains("\"yes\""), "values of variables are not explained");
    assert_eq!(explanation.egress, ["*"]);
    assert_eq!(explanation.namespaces.len(), 7);
}
