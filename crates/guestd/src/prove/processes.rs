//! Attacks on other processes and on the sandbox's own process 1: P9, and P5 on privileges.

use super::attack::{Group, Row, Scene, is_ordinary};
use super::calls::{open, open_to_write, plain_call, read, read_something};
use super::outcome::{Door, Layer, Outcome, any};
use super::sys;
use rustix::fs::{FlockOperation, MemfdFlags, flock};

const HOST: Group = Group { axis: "processes", promise: "P9", door: Door::Process };
const PRIVILEGE: Group = Group { axis: "processes", promise: "P5", door: Door::Privileged };

pub(super) const ROWS: &[Row] = &[
    HOST.check("processes.see_host_process", see_host_process, see_self),
    HOST.check("processes.see_kernel_threads", see_kernel_threads, see_self),
    HOST.check("processes.see_locks", see_locks, see_self),
    HOST.check("processes.signal_host_process", signal_host_process, signal_self),
    HOST.check("processes.pidfd_of_host_process", pidfd_of_host_process, pidfd_of_self),
    HOST.check("processes.shared_memory_of_host", shared_memory_of_host, own_shared_memory)
        .when(|scene| scene.request.targets.host_shared_memory.is_some()),
    HOST.check("processes.trace_init", |s| seize(s.init), plain_call),
    HOST.check("processes.read_memory_of_init", read_memory_of_init, plain_call),
    HOST.check("processes.write_memory_of_init", write_memory_of_init, own_memory).confined(),
    HOST.check("processes.environment_of_init", |s| of_init(s, "environ"), own_environment),
    HOST.check(
        "processes.maps_of_init",
        |s| of_init(s, "maps"),
        |_| read_something("/proc/self/maps"),
    ),
    HOST.check(
        "processes.auxv_of_init",
        |s| of_init(s, "auxv"),
        |_| read_something("/proc/self/auxv"),
    ),
    HOST.check("processes.stack_pointer_of_init", |s| of_init(s, "syscall"), plain_call),
    HOST.check("processes.files_of_init", files_of_init, own_files),
    HOST.check("processes.program_of_init", program_of_init, own_program),
    HOST.check("processes.compare_with_init", compare_with_init, plain_call),
    HOST.check("processes.take_file_of_init", take_file_of_init, pidfd_of_self),
    HOST.check("processes.namespaces_of_init", namespaces_of_init, own_namespaces),
    PRIVILEGE.check("processes.capabilities", capabilities, status_is_read),
    PRIVILEGE.check("processes.raise_capability", raise_capability, plain_call),
    PRIVILEGE.check("processes.new_privileges", new_privileges, status_is_read),
    PRIVILEGE.check("processes.filter_is_on", no_filter, status_is_read),
    PRIVILEGE.check("processes.host_root_behind", host_root_behind, status_is_read),
    // Root of its own user namespace is that already, and behind its ids is nobody of the host's.
    PRIVILEGE.check("processes.become_root", become_root, stay_oneself).when(is_ordinary),
    PRIVILEGE.check("processes.join_groups", join_groups, plain_call).when(is_ordinary),
    PRIVILEGE.check("processes.write_id_map", write_id_map, status_is_read).confined(),
    PRIVILEGE.check("processes.lower_oom_score", lower_oom_score, raise_oom_score),
];

/// Field 22 of `stat`, behind the name in brackets that may itself hold anything.
fn started(pid: i32) -> Option<u64> {
    let text = read(&format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// A process inside may have the same number as the one on the host; it has another beginning.
fn is_another(scene: &Scene<'_>) -> bool {
    let targets = &scene.request.targets;
    started(targets.host_pid).is_some_and(|ticks| ticks != targets.host_pid_started)
}

fn host_pid(scene: &Scene<'_>) -> usize {
    usize::try_from(scene.request.targets.host_pid).unwrap_or(usize::MAX)
}

fn see_host_process(scene: &Scene<'_>) -> Outcome {
    let pid = scene.request.targets.host_pid;
    match started(pid) {
        Some(ticks) if ticks == scene.request.targets.host_pid_started => {
            Outcome::did(format!("see process {pid}"))
        }
        Some(_) | None => Outcome::met(libc::ESRCH, format!("see process {pid}")),
    }
}

fn see_self(_: &Scene<'_>) -> Outcome {
    read_something("/proc/self/stat")
}

fn see_kernel_threads(_: &Scene<'_>) -> Outcome {
    match read("/proc/2/comm") {
        Ok(name) if name.trim() == "kthreadd" => Outcome::did("see kthreadd"),
        Ok(_) | Err(_) => Outcome::met(libc::ESRCH, "see kthreadd"),
    }
}

/// The table shows locks of everybody that belong to open files. One of our own would be there too.
fn see_locks(_: &Scene<'_>) -> Outcome {
    let locked = rustix::fs::memfd_create("locked", MemfdFlags::CLOEXEC)
        .and_then(|file| flock(&file, FlockOperation::LockExclusive).map(|()| file));
    match locked {
        Ok(_held) => read_something("/proc/locks"),
        Err(errno) => Outcome::untried(format!("lock an own file: {errno}")),
    }
}

fn signal_host_process(scene: &Scene<'_>) -> Outcome {
    let call = "kill of the host's process with signal 0";
    match sys::raw(libc::SYS_kill, [host_pid(scene), 0, 0, 0, 0, 0]) {
        Ok(_) if is_another(scene) => Outcome::met(libc::ESRCH, call),
        other => Outcome::of_call(call, other),
    }
}

fn signal_self(_: &Scene<'_>) -> Outcome {
    let own = std::process::id() as usize;
    Outcome::of_call("kill with signal 0", sys::raw(libc::SYS_kill, [own, 0, 0, 0, 0, 0]))
}

fn pidfd_of_host_process(scene: &Scene<'_>) -> Outcome {
    let call = "pidfd_open of the host's process";
    match sys::raw(libc::SYS_pidfd_open, [host_pid(scene), 0, 0, 0, 0, 0]) {
        Ok(_) if is_another(scene) => Outcome::met(libc::ESRCH, call),
        other => Outcome::of_call(call, other),
    }
}

fn shared_memory_of_host(scene: &Scene<'_>) -> Outcome {
    let id = scene.request.targets.host_shared_memory.and_then(|id| usize::try_from(id).ok());
    let args = [id.unwrap_or(usize::MAX), 0, SHM_READ_ONLY, 0, 0, 0];
    Outcome::of_call("shmat of the host's segment", sys::raw(libc::SYS_shmat, args))
}

fn own_shared_memory(_: &Scene<'_>) -> Outcome {
    let id = match sys::raw(libc::SYS_shmget, [0, 4096, 0o600, 0, 0, 0]) {
        Ok(id) => id,
        Err(errno) => return Outcome::met(errno, "shmget"),
    };
    let attached = sys::raw(libc::SYS_shmat, [id, 0, SHM_READ_ONLY, 0, 0, 0]);
    // Removed with this process. Command 0 is IPC_RMID.
    let _ = sys::raw(libc::SYS_shmctl, [id, 0, 0, 0, 0, 0]);
    Outcome::of_call("shmat of an own segment", attached)
}

const SHM_READ_ONLY: usize = 0o10000;

fn pidfd_of_self(_: &Scene<'_>) -> Outcome {
    let own = std::process::id() as usize;
    Outcome::of_call("pidfd_open", sys::raw(libc::SYS_pidfd_open, [own, 0, 0, 0, 0, 0]))
}

fn init(scene: &Scene<'_>) -> usize {
    usize::try_from(scene.init).unwrap_or(usize::MAX)
}

/// Seizing does not stop the other, and ends with this process.
fn seize(pid: i32) -> Outcome {
    const SEIZE: usize = 0x4206;
    let pid = usize::try_from(pid).unwrap_or(usize::MAX);
    Outcome::of_call("ptrace seize", sys::raw(libc::SYS_ptrace, [SEIZE, pid, 0, 0, 0, 0]))
}

/// Both share their program's addresses where one was forked from the other, so an address of its
/// own is as good as any: a wrong one gives EFAULT, which means that the right was there.
fn memory_call(pid: usize, number: i64) -> Result<usize, i32> {
    let mut word = 0_u64;
    let vector = [std::ptr::from_mut(&mut word) as usize, size_of::<u64>()];
    let place = vector.as_ptr() as usize;
    sys::raw(number, [pid, place, 1, place, 1, 0])
}

fn read_memory_of_init(scene: &Scene<'_>) -> Outcome {
    match memory_call(init(scene), libc::SYS_process_vm_readv) {
        Err(libc::EFAULT) => Outcome::did("process_vm_readv may read it"),
        other => Outcome::of_call("process_vm_readv", other),
    }
}

fn write_memory_of_init(scene: &Scene<'_>) -> Outcome {
    let path = format!("/proc/{}/mem", scene.init);
    match memory_call(init(scene), libc::SYS_process_vm_writev) {
        Err(libc::EFAULT) => Outcome::did("process_vm_writev may write it"),
        other => any([Outcome::of_call("process_vm_writev", other), open_to_write(&path)]),
    }
}

fn own_memory(_: &Scene<'_>) -> Outcome {
    open("/proc/self/mem")
}

fn of_init(scene: &Scene<'_>, name: &str) -> Outcome {
    read_something(&format!("/proc/{}/{name}", scene.init))
}

/// Opened, not read: it may be empty.
fn own_environment(_: &Scene<'_>) -> Outcome {
    open("/proc/self/environ")
}

fn files_of_init(scene: &Scene<'_>) -> Outcome {
    let directory = format!("/proc/{}/fd", scene.init);
    Outcome::of(&format!("list {directory}"), &std::fs::read_dir(&directory))
}

fn own_files(_: &Scene<'_>) -> Outcome {
    Outcome::of("list /proc/self/fd", &std::fs::read_dir("/proc/self/fd"))
}

fn program_of_init(scene: &Scene<'_>) -> Outcome {
    any(["exe", "cwd", "root"].map(|name| {
        let path = format!("/proc/{}/{name}", scene.init);
        Outcome::of(&format!("read the link {path}"), &std::fs::read_link(&path))
    }))
}

fn own_program(_: &Scene<'_>) -> Outcome {
    Outcome::of("read the link /proc/self/exe", &std::fs::read_link("/proc/self/exe"))
}

fn namespaces_of_init(scene: &Scene<'_>) -> Outcome {
    open(&format!("/proc/{}/ns/mnt", scene.init))
}

fn own_namespaces(_: &Scene<'_>) -> Outcome {
    open("/proc/self/ns/mnt")
}

fn compare_with_init(scene: &Scene<'_>) -> Outcome {
    let files = 2;
    let own = std::process::id() as usize;
    Outcome::of_call("kcmp", sys::raw(libc::SYS_kcmp, [own, init(scene), files, 0, 0, 0]))
}

fn take_file_of_init(scene: &Scene<'_>) -> Outcome {
    match sys::raw(libc::SYS_pidfd_open, [init(scene), 0, 0, 0, 0, 0]) {
        Ok(number) => any((0..8).map(|file| {
            let answer = sys::raw(libc::SYS_pidfd_getfd, [number, file, 0, 0, 0, 0]);
            Outcome::of_call("pidfd_getfd", answer)
        })),
        Err(errno) => Outcome::met(errno, "pidfd_open"),
    }
}

fn status(field: &str) -> Option<String> {
    let text = read("/proc/self/status").ok()?;
    let (_, value) =
        text.lines().find_map(|line| line.split_once(':').filter(|(f, _)| *f == field))?;
    Some(value.trim().to_owned())
}

fn status_is_read(_: &Scene<'_>) -> Outcome {
    Outcome::claim(status("Pid").is_some().into(), "read /proc/self/status")
}

/// Whether a set holds what commands do not keep.
fn capabilities(scene: &Scene<'_>) -> Outcome {
    let kept = scene.request.targets.kept_capabilities;
    any(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|set| {
        match status(set).and_then(|bits| u64::from_str_radix(&bits, 16).ok()) {
            Some(0) => Outcome::met(libc::EPERM, format!("{set} is empty")),
            Some(bits) if bits & !kept == 0 => {
                Outcome::met(libc::EPERM, format!("{set} is {bits:x}, which is kept"))
            }
            Some(bits) => Outcome::did(format!("{set} is {bits:x}")),
            None => Outcome::untried(format!("{set} could not be read")),
        }
    }))
}

/// Takes back CAP_SYS_ADMIN, if the permitted set still knows it.
fn raise_capability(_: &Scene<'_>) -> Outcome {
    let header: [u32; 2] = [0x2008_0522, 0];
    let sys_admin = 1_u32 << 21;
    let sets: [u32; 6] = [sys_admin, sys_admin, sys_admin, 0, 0, 0];
    let args = [header.as_ptr() as usize, sets.as_ptr() as usize, 0, 0, 0, 0];
    Outcome::of_call("capset", sys::raw(libc::SYS_capset, args))
}

fn new_privileges(_: &Scene<'_>) -> Outcome {
    claim_of_status("NoNewPrivs", "1")
}

fn no_filter(_: &Scene<'_>) -> Outcome {
    claim_of_status("Seccomp", "2")
}

/// Stopped where the field has the value that it must have.
fn claim_of_status(field: &str, wanted: &str) -> Outcome {
    match status(field) {
        Some(value) if value == wanted => Outcome::met(libc::EPERM, format!("{field} is {value}")),
        Some(value) => Outcome::did(format!("{field} is {value}")),
        None => Outcome::untried(format!("{field} could not be read")),
    }
}

/// Looks for host user 0 or group 0 behind a mapped id: it owns the host's files.
fn host_root_behind(_: &Scene<'_>) -> Outcome {
    any(["uid_map", "gid_map"].map(|map| {
        let Ok(text) = read(&format!("/proc/self/{map}")) else {
            return Outcome::untried(format!("{map} could not be read"));
        };
        let outside = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
        if text.lines().filter_map(outside).any(|id| id == "0") {
            Outcome::did(format!("{map} reaches host id 0"))
        } else {
            Outcome::met_at(Layer::Namespace, libc::EPERM, format!("{map} has no host id 0"))
        }
    }))
}

fn become_root(_: &Scene<'_>) -> Outcome {
    any([libc::SYS_setresuid, libc::SYS_setresgid]
        .map(|call| Outcome::of_call("become id 0", sys::raw(call, [0; 6]))))
}

fn stay_oneself(_: &Scene<'_>) -> Outcome {
    let uid = rustix::process::getuid().as_raw() as usize;
    Outcome::of_call(
        "setresuid to oneself",
        sys::raw(libc::SYS_setresuid, [uid, uid, uid, 0, 0, 0]),
    )
}

fn join_groups(_: &Scene<'_>) -> Outcome {
    let groups: [u32; 1] = [0];
    let args = [1, groups.as_ptr() as usize, 0, 0, 0, 0];
    Outcome::of_call("setgroups", sys::raw(libc::SYS_setgroups, args))
}

fn write_id_map(_: &Scene<'_>) -> Outcome {
    any(["uid_map", "gid_map", "setgroups"].map(|name| {
        let path = format!("/proc/self/{name}");
        Outcome::of(&format!("write {path}"), &std::fs::write(&path, "0 0 1\n"))
    }))
}

fn lower_oom_score(_: &Scene<'_>) -> Outcome {
    let path = "/proc/self/oom_score_adj";
    Outcome::of(&format!("write -1000 to {path}"), &std::fs::write(path, "-1000"))
}

fn raise_oom_score(_: &Scene<'_>) -> Outcome {
    let path = "/proc/self/oom_score_adj";
    Outcome::of(&format!("write 1000 to {path}"), &std::fs::write(path, "1000"))
}
