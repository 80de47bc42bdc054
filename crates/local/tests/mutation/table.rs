//! What is taken away, and who notices.

use Expected::{Covered, DoesNotStart, Open, Seen, SeenAnyway, SeenByBoth, Unseen};
use cofferdam_core::Profile;
use cofferdam_wire::plan::{Access, Bind, Depth, Namespace, Op, Owner, Plan, Resource, Step};

/// A mechanism that is taken out of a plan.
pub(crate) struct Mutation {
    pub(crate) name: &'static str,
    pub(crate) change: fn(&mut Plan),
    pub(crate) profile: Profile,
    /// What comes of it where root starts the sandbox.
    pub(crate) root: Expected,
    /// What comes of it where an ordinary user does.
    pub(crate) ordinary: Expected,
}

/// What comes of a missing mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The set-up fails: other steps need it.
    DoesNotStart,
    /// The host sees it on process 1, so that no command would run; this check fails too.
    SeenByBoth(&'static str),
    /// This check fails.
    Seen(&'static str),
    /// The set-up fails or this check does, which depends on the host.
    SeenAnyway(&'static str),
    /// Nobody sees it, because this other layer does the same.
    Covered(&'static str),
    /// Nobody sees it, though nothing does the same: a hole in the battery.
    Unseen(&'static str),
    /// Whether it is seen depends on the host.
    Open(&'static str),
}

/// The name of no mutation.
pub(crate) const NOTHING: &str = "nothing";

/// A row whose both columns are the same.
const fn both(name: &'static str, change: fn(&mut Plan), expected: Expected) -> Mutation {
    apart(name, change, expected, expected)
}

const fn apart(
    name: &'static str,
    change: fn(&mut Plan),
    root: Expected,
    ordinary: Expected,
) -> Mutation {
    Mutation { name, change, profile: Profile::NoNetwork, root, ordinary }
}

const INHERITED: Expected = Open("the caller's own limit may be as low");

// Rows of two layers show that it is the second that covers the first.
pub(crate) const MUTATIONS: &[Mutation] = &[
    both("seccomp", seccomp, SeenByBoth("processes.keyctl")),
    both("no-new-privileges", no_new_privileges, DoesNotStart),
    both(
        "no-new-privileges, landlock and seccomp",
        |plan| [no_new_privileges, landlock, seccomp].iter().for_each(|change| change(plan)),
        SeenByBoth("processes.new_privileges"),
    ),
    both("capabilities", capabilities, SeenByBoth("processes.capabilities")),
    both("landlock", landlock, Covered("the tree of mounts, which has nothing else in it")),
    apart(
        "not-dumpable",
        |plan| without(plan, |op| *op == Op::NotDumpable),
        Covered("a process that changes its user is not dumpable anyway"),
        Seen("processes.environment_of_init"),
    ),
    both("no user namespaces", no_user_namespaces, Covered("seccomp")),
    both(
        "no user namespaces and seccomp",
        |plan| [no_user_namespaces, seccomp].iter().for_each(|change| change(plan)),
        SeenByBoth("processes.unshare_user"),
    ),
    apart(
        "identity",
        |plan| without(plan, |op| matches!(op, Op::Identity { .. })),
        DoesNotStart,
        Covered("the map of ids, which has this one only"),
    ),
    both("user namespace", user_namespace, DoesNotStart),
    both("mount namespace", |plan| leave(plan, Namespace::Mount), DoesNotStart),
    both("process namespace", process_namespace, SeenByBoth("processes.see_host_process")),
    both("network namespace", network_namespace, Seen("network.host_loopback")),
    both("loopback", |plan| without(plan, |op| *op == Op::LoopbackUp), Seen("use.loopback_server")),
    both(
        "ipc namespace",
        |plan| leave(plan, Namespace::Ipc),
        Seen("processes.shared_memory_of_host"),
    ),
    both("uts namespace", uts_namespace, Seen("environment.host_name")),
    both("host name", host_name, Seen("environment.host_name")),
    both(
        "cgroup namespace",
        |plan| leave(plan, Namespace::Cgroup),
        Seen("environment.control_group_path"),
    ),
    both(
        "control groups",
        |plan| without(plan, |op| *op == Op::JoinCgroups),
        Seen("limits.memory"),
    ),
    both(
        "private mounts",
        |plan| without(plan, |op| *op == Op::PrivateMounts),
        Covered("the kernel, which lets no mount out of a lesser user namespace"),
    ),
    both("pivot", pivot, SeenAnyway("files.read_outside")),
    both(
        "pivot and landlock",
        |plan| [pivot, landlock].iter().for_each(|change| change(plan)),
        Seen("files.read_outside"),
    ),
    both("seal", seal, Covered("landlock")),
    both(
        "seal and landlock",
        |plan| [seal, landlock].iter().for_each(|change| change(plan)),
        Seen("files.write_root"),
    ),
    both("size of private space", size, Seen("limits.disk")),
    both("number of private files", files, Seen("limits.disk_files")),
    both("covers", |plan| without(plan, is_mask), Seen("environment.boot_command")),
    both("cover of locks", |plan| uncover(plan, "/proc/locks"), Seen("processes.see_locks")),
    both("id of the host's start", |plan| without(plan, is_boot_id), Seen("environment.boot_id")),
    apart(
        "cover of keys",
        |plan| uncover(plan, "/proc/keys"),
        Covered("the session's own user, who has no keys on the host"),
        Seen("processes.kernel_keys"),
    ),
    both(
        "cover of kernel addresses",
        |plan| uncover(plan, "/proc/kallsyms"),
        Covered("the kernel, which shows addresses to whom it trusts only"),
    ),
    both("cover of sysrq", |plan| uncover(plan, "/proc/sysrq-trigger"), Covered(HOSTS_ROOT)),
    both("cover of kernel memory", |plan| uncover(plan, "/proc/kcore"), Covered(HOSTS_ROOT)),
    both("pins of control files", control_files, Seen("files.protected_write")),
    both("pins on the way to them", ways, Seen("files.protected_parent")),
    both("pin of .git/config", |plan| unpin(plan, "/.git/config"), Seen("files.protected_write")),
    both("pin of .git/hooks", |plan| unpin(plan, "/.git/hooks"), Seen("files.protected_rename")),
    both(
        "read-only kernel settings",
        |plan| unpin(plan, "/proc/sys"),
        Seen("processes.namespace_settings"),
    ),
    both("own temporary files", temporary_files, Seen("files.read_outside")),
    both(
        "read-only system",
        writable_system,
        Covered("permissions: it belongs to the host's root"),
    ),
    Mutation {
        profile: Profile::ReadOnly,
        ..both("read-only workspace", writable_system, Covered("landlock"))
    },
    Mutation {
        profile: Profile::ReadOnly,
        ..both(
            "read-only workspace and landlock",
            |plan| [writable_system, landlock].iter().for_each(|change| change(plan)),
            Seen("files.write_workspace"),
        )
    },
    both("owner of the workspace", owner, Seen("files.set_id_by_chmod")),
    both("empty /run", run, Seen("files.read_run")),
    both("own processes in /proc", processes, Seen("processes.see_host_process")),
    both("own terminals", terminals, Seen("processes.other_terminals")),
    both("limit of core files", |plan| unlimit(plan, Resource::Core), Seen("limits.core_size")),
    both("limit of open files", |plan| unlimit(plan, Resource::Nofile), INHERITED),
    both("limit of locked memory", |plan| unlimit(plan, Resource::Memlock), INHERITED),
    both("limit of queues", |plan| unlimit(plan, Resource::Msgqueue), INHERITED),
    both("limit of signals", |plan| unlimit(plan, Resource::Sigpending), INHERITED),
    both("limit of niceness", |plan| unlimit(plan, Resource::Nice), INHERITED),
    both("limit of priority in real time", |plan| unlimit(plan, Resource::Rtprio), INHERITED),
    both(
        "limit of processes",
        |plan| unlimit(plan, Resource::Nproc),
        Unseen("limits are attacked only where all of them hold or one was asked for"),
    ),
    both(
        "limit of a process's memory",
        |plan| unlimit(plan, Resource::Data),
        Unseen("limits are attacked only where all of them hold or one was asked for"),
    ),
];

const HOSTS_ROOT: &str = "permissions: only the host's root may open it";

fn without(plan: &mut Plan, is_dropped: impl Fn(&Op) -> bool) {
    plan.steps.retain(|step| !is_dropped(&step.op));
}

fn uncover(plan: &mut Plan, name: &str) {
    without(plan, |op| matches!(op, Op::Mask { path } if path == name));
}

fn unpin(plan: &mut Plan, name: &str) {
    without(plan, |op| matches!(op, Op::Pin { path, .. } if path.ends_with(name)));
}

fn unlimit(plan: &mut Plan, which: Resource) {
    without(plan, |op| matches!(op, Op::ResourceLimit { resource, .. } if *resource == which));
}

fn leave(plan: &mut Plan, which: Namespace) {
    plan.namespaces.retain(|namespace| *namespace != which);
}

fn each(plan: &mut Plan, change: impl Fn(&mut Op)) {
    for Step { op, .. } in &mut plan.steps {
        change(op);
    }
}

/// A hole: a place of the host at its own path, in place of what `is_it` accepts.
fn show(plan: &mut Plan, path: &str, is_it: impl Fn(&Op) -> bool) {
    let hole = Op::Bind(Bind {
        source: path.to_owned(),
        path: path.to_owned(),
        access: Access::ReadWrite,
        depth: Depth::All,
        devices: true,
        owner: Owner::Same,
        identity: None,
    });
    each(plan, |op| {
        if is_it(op) {
            *op = hole.clone();
        }
    });
}

fn seccomp(plan: &mut Plan) {
    without(plan, |op| matches!(op, Op::Seccomp { .. }));
}

fn no_new_privileges(plan: &mut Plan) {
    without(plan, |op| *op == Op::NoNewPrivileges);
}

fn capabilities(plan: &mut Plan) {
    without(plan, |op| matches!(op, Op::Capabilities { .. }));
}

fn landlock(plan: &mut Plan) {
    without(plan, |op| matches!(op, Op::Landlock(_)));
}

fn no_user_namespaces(plan: &mut Plan) {
    without(plan, |op| *op == Op::NoUserNamespaces);
}

fn user_namespace(plan: &mut Plan) {
    leave(plan, Namespace::User);
    plan.uid_map.clear();
    plan.gid_map.clear();
}

/// Without one of its own a process cannot mount a new `/proc`: that of the host is shown.
fn process_namespace(plan: &mut Plan) {
    leave(plan, Namespace::Pid);
    processes(plan);
}

fn processes(plan: &mut Plan) {
    show(plan, "/proc", |op| matches!(op, Op::Proc { .. }));
}

fn network_namespace(plan: &mut Plan) {
    leave(plan, Namespace::Network);
    without(plan, |op| *op == Op::LoopbackUp);
}

fn uts_namespace(plan: &mut Plan) {
    leave(plan, Namespace::Uts);
    host_name(plan);
}

fn host_name(plan: &mut Plan) {
    without(plan, |op| matches!(op, Op::HostName(_)));
}

fn pivot(plan: &mut Plan) {
    without(plan, |op| *op == Op::Pivot);
}

fn seal(plan: &mut Plan) {
    without(plan, |op| *op == Op::SealRoot);
}

fn size(plan: &mut Plan) {
    each(plan, |op| {
        if let Op::NewRoot { size_bytes, .. } = op {
            *size_bytes = 4 << 30;
        }
    });
}

fn files(plan: &mut Plan) {
    each(plan, |op| {
        if let Op::NewRoot { inodes, .. } = op {
            // No limit.
            *inodes = 0;
        }
    });
}

fn is_mask(op: &Op) -> bool {
    matches!(op, Op::Mask { .. })
}

fn is_boot_id(op: &Op) -> bool {
    matches!(op, Op::Rebind { path, .. } if path.ends_with("/boot_id"))
}

fn control_files(plan: &mut Plan) {
    without(plan, |op| matches!(op, Op::Pin { path, .. } if path.contains("/workspace/")));
}

fn ways(plan: &mut Plan) {
    let is_way = |path: &str, access| path.contains("/workspace/") && access == Access::ReadWrite;
    without(plan, |op| matches!(op, Op::Pin { path, access } if is_way(path, *access)));
}

fn temporary_files(plan: &mut Plan) {
    show(plan, "/tmp", |op| matches!(op, Op::Pin { path, .. } if path == "/tmp"));
}

fn run(plan: &mut Plan) {
    show(plan, "/run", |op| matches!(op, Op::Directory { path, .. } if path == "/run"));
}

fn terminals(plan: &mut Plan) {
    show(plan, "/dev/pts", |op| matches!(op, Op::Devpts { .. }));
}

fn writable_system(plan: &mut Plan) {
    each(plan, |op| {
        if let Op::Bind(bind) = op {
            bind.access = Access::ReadWrite;
        }
    });
}

fn owner(plan: &mut Plan) {
    each(plan, |op| {
        if let Op::Bind(bind) = op {
            bind.owner = Owner::Same;
        }
    });
}
