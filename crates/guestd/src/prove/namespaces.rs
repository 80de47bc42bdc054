//! Attacks on the walls themselves: P4.

use super::attack::{Group, Row, Scene, is_ordinary};
use super::calls::plain_call;
use super::outcome::{Door, Outcome, any};
use super::sys;

/// What a filter refuses; where it is missing, the kernel lets an unprivileged user do it.
const CALL: Group = Group { axis: "processes", promise: "P4", door: Door::Call };
/// What needs a capability beside.
const PRIVILEGED: Group = Group { axis: "processes", promise: "P4", door: Door::Privileged };

pub(super) const ROWS: &[Row] = &[
    CALL.check("processes.unshare_user", |_| unshare("user", NEW_USER), plain_fork),
    CALL.check(
        "processes.unshare_user_and_mount",
        |_| unshare("both", NEW_USER | NEW_MOUNT),
        plain_fork,
    ),
    CALL.check(
        "processes.unshare_high_bits",
        |_| unshare("high bits", NEW_USER | (1 << 40)),
        plain_fork,
    ),
    PRIVILEGED.check("processes.unshare_mount", |_| unshare("mount", NEW_MOUNT), plain_fork),
    PRIVILEGED.check("processes.unshare_pid", |_| unshare("pid", NEW_PID), plain_fork),
    PRIVILEGED.check("processes.unshare_network", |_| unshare("net", NEW_NETWORK), plain_fork),
    PRIVILEGED.check("processes.unshare_ipc", |_| unshare("ipc", NEW_IPC), plain_fork),
    PRIVILEGED.check("processes.unshare_uts", |_| unshare("uts", NEW_UTS), plain_fork),
    PRIVILEGED.check("processes.unshare_cgroup", |_| unshare("cgroup", NEW_CGROUP), plain_fork),
    PRIVILEGED.check("processes.unshare_time", |_| unshare("time", NEW_TIME), plain_fork),
    CALL.check("processes.clone_user", |_| clone("user", NEW_USER), plain_fork),
    CALL.check("processes.clone_all", |_| clone("all", NEW_USER | NEW_MOUNT | NEW_PID), plain_fork),
    PRIVILEGED.check("processes.clone_mount", |_| clone("mount", NEW_MOUNT), plain_fork),
    CALL.check("processes.clone3_user", |_| clone3(NEW_USER), plain_fork),
    PRIVILEGED.check("processes.join_namespace", join_namespace, plain_fork),
    PRIVILEGED.check("processes.join_by_pidfd", join_by_pidfd, plain_fork),
    PRIVILEGED.check("processes.mount", mount, plain_call).confined(),
    PRIVILEGED.check("processes.mount_proc", mount_proc, plain_call).confined(),
    PRIVILEGED.check("processes.bind_mount", bind_mount, plain_call).confined(),
    PRIVILEGED.check("processes.remount", remount, plain_call).confined(),
    PRIVILEGED.check("processes.unmount", unmount, plain_call).confined(),
    PRIVILEGED.check("processes.move_mount", move_mount, plain_call).confined(),
    PRIVILEGED.check("processes.open_tree", open_tree, plain_call),
    PRIVILEGED.check("processes.fsopen", fsopen, plain_call),
    PRIVILEGED.check("processes.fspick", fspick, plain_call).confined(),
    PRIVILEGED.check("processes.fsmount", fsmount, plain_call),
    PRIVILEGED.check("processes.mount_setattr", mount_setattr, plain_call).confined(),
    PRIVILEGED.check("processes.pivot_root", pivot_root, plain_call).confined(),
    // Root of its own user namespace keeps the right to it, and unpacks packages so.
    PRIVILEGED.check("processes.chroot", chroot, plain_call).when(is_ordinary),
];

const NEW_TIME: usize = 0x80;
const NEW_MOUNT: usize = 0x0002_0000;
const NEW_CGROUP: usize = 0x0200_0000;
const NEW_UTS: usize = 0x0400_0000;
const NEW_IPC: usize = 0x0800_0000;
const NEW_USER: usize = 0x1000_0000;
const NEW_PID: usize = 0x2000_0000;
const NEW_NETWORK: usize = 0x4000_0000;

const CHILD_SIGNAL: usize = libc::SIGCHLD as usize;
const HERE: usize = libc::AT_FDCWD as usize;

fn unshare(name: &str, flags: usize) -> Outcome {
    let answer = sys::raw(libc::SYS_unshare, [flags, 0, 0, 0, 0, 0]);
    match answer {
        // The kernel takes bits that it does not know for an error; the filter must have been first.
        Err(libc::EINVAL) => Outcome::did(format!("unshare {name} reached the kernel")),
        other => Outcome::of_call(&format!("unshare {name}"), other),
    }
}

/// The child runs the same code with 0 for an answer, and leaves at once.
fn leave_if_child(answer: Result<usize, i32>) -> Result<usize, i32> {
    if answer == Ok(0) {
        sys::exit(0);
    }
    answer
}

fn clone(name: &str, flags: usize) -> Outcome {
    let answer = sys::raw(libc::SYS_clone, [flags | CHILD_SIGNAL, 0, 0, 0, 0, 0]);
    Outcome::of_call(&format!("clone {name}"), leave_if_child(answer))
}

/// A filter cannot look behind the pointer, so all of `clone3` has to be refused.
fn clone3(flags: usize) -> Outcome {
    // struct clone_args of the first size: flags first, exit_signal fifth.
    let args: [u64; 8] = [flags as u64, 0, 0, 0, CHILD_SIGNAL as u64, 0, 0, 0];
    let place = args.as_ptr() as usize;
    let answer = sys::raw(libc::SYS_clone3, [place, size_of_val(&args), 0, 0, 0, 0]);
    Outcome::of_call("clone3 user", leave_if_child(answer))
}

fn plain_fork(_: &Scene<'_>) -> Outcome {
    let answer = sys::raw(libc::SYS_clone, [CHILD_SIGNAL, 0, 0, 0, 0, 0]);
    Outcome::of_call("clone without namespaces", leave_if_child(answer))
}

/// Joins the namespace that it is in already, which needs the same right.
fn join_namespace(_: &Scene<'_>) -> Outcome {
    any(["mnt", "net", "uts"].map(|kind| {
        match std::fs::File::open(format!("/proc/self/ns/{kind}")) {
            Ok(file) => {
                let number = number_of(&file);
                let call = format!("setns {kind}");
                Outcome::of_call(&call, sys::raw(libc::SYS_setns, [number, 0, 0, 0, 0, 0]))
            }
            Err(error) => Outcome::untried(format!("open /proc/self/ns/{kind}: {error}")),
        }
    }))
}

fn number_of(file: &std::fs::File) -> usize {
    use std::os::fd::AsRawFd;
    usize::try_from(file.as_raw_fd()).unwrap_or(usize::MAX)
}

fn join_by_pidfd(_: &Scene<'_>) -> Outcome {
    let own = std::process::id() as usize;
    match sys::raw(libc::SYS_pidfd_open, [own, 0, 0, 0, 0, 0]) {
        Ok(number) => {
            let args = [number, NEW_UTS | NEW_NETWORK, 0, 0, 0, 0];
            Outcome::of_call("setns by pidfd", sys::raw(libc::SYS_setns, args))
        }
        Err(errno) => Outcome::met(errno, "pidfd_open"),
    }
}

fn mount_call(call: &str, source: &std::ffi::CStr, place: &std::ffi::CStr, rest: Kind) -> Outcome {
    let kind = rest.kind.as_ptr() as usize;
    let args = [source.as_ptr() as usize, place.as_ptr() as usize, kind, rest.flags, 0, 0];
    Outcome::of_call(call, sys::raw(libc::SYS_mount, args))
}

/// The file system and the flags of a mount.
struct Kind {
    kind: &'static std::ffi::CStr,
    flags: usize,
}

fn mount(_: &Scene<'_>) -> Outcome {
    mount_call("mount tmpfs", c"tmpfs", c"/tmp", Kind { kind: c"tmpfs", flags: 0 })
}

fn mount_proc(_: &Scene<'_>) -> Outcome {
    mount_call("mount proc", c"proc", c"/proc", Kind { kind: c"proc", flags: 0 })
}

fn bind_mount(_: &Scene<'_>) -> Outcome {
    mount_call("bind /usr on /tmp", c"/usr", c"/tmp", Kind { kind: c"", flags: 4096 })
}

/// `MS_REMOUNT | MS_BIND`: makes a read-only mount writable.
fn remount(_: &Scene<'_>) -> Outcome {
    mount_call("remount /usr", c"none", c"/usr", Kind { kind: c"", flags: 32 | 4096 })
}

fn unmount(_: &Scene<'_>) -> Outcome {
    let detach = 2;
    let place = c"/proc".as_ptr() as usize;
    Outcome::of_call("umount2 /proc", sys::raw(libc::SYS_umount2, [place, detach, 0, 0, 0, 0]))
}

fn move_mount(_: &Scene<'_>) -> Outcome {
    let (from, to) = (c"/tmp".as_ptr() as usize, c"/usr".as_ptr() as usize);
    Outcome::of_call("move_mount", sys::raw(libc::SYS_move_mount, [HERE, from, HERE, to, 0, 0]))
}

fn open_tree(_: &Scene<'_>) -> Outcome {
    let clone_recursively = 1 | 0x8000;
    let args = [HERE, c"/".as_ptr() as usize, clone_recursively, 0, 0, 0];
    Outcome::of_call("open_tree with clone", sys::raw(libc::SYS_open_tree, args))
}

fn fsopen(_: &Scene<'_>) -> Outcome {
    let name = c"tmpfs".as_ptr() as usize;
    Outcome::of_call("fsopen tmpfs", sys::raw(libc::SYS_fsopen, [name, 0, 0, 0, 0, 0]))
}

fn fspick(_: &Scene<'_>) -> Outcome {
    let place = c"/".as_ptr() as usize;
    Outcome::of_call("fspick /", sys::raw(libc::SYS_fspick, [HERE, place, 0, 0, 0, 0]))
}

fn fsmount(_: &Scene<'_>) -> Outcome {
    match sys::raw(libc::SYS_fsmount, [usize::MAX, 0, 0, 0, 0, 0]) {
        Err(errno) if errno != libc::EPERM && errno != libc::ENOSYS => {
            Outcome::did(format!("fsmount reached the kernel: error {errno}"))
        }
        other => Outcome::of_call("fsmount", other),
    }
}

fn mount_setattr(_: &Scene<'_>) -> Outcome {
    // struct mount_attr: set nothing, clear read-only.
    let attributes: [u64; 4] = [0, 1, 0, 0];
    let place = c"/usr".as_ptr() as usize;
    let args = [HERE, place, 0, attributes.as_ptr() as usize, size_of_val(&attributes), 0];
    Outcome::of_call("mount_setattr /usr", sys::raw(libc::SYS_mount_setattr, args))
}

fn pivot_root(_: &Scene<'_>) -> Outcome {
    let place = c"/tmp".as_ptr() as usize;
    Outcome::of_call("pivot_root", sys::raw(libc::SYS_pivot_root, [place, place, 0, 0, 0, 0]))
}

fn chroot(_: &Scene<'_>) -> Outcome {
    let place = c"/tmp".as_ptr() as usize;
    Outcome::of_call("chroot /tmp", sys::raw(libc::SYS_chroot, [place, 0, 0, 0, 0, 0]))
}
