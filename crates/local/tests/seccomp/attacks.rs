//! What the filter refuses, beside what the kernel says to the same call without it.

use crate::sys::{call, confined, load, status_of_child};
use cofferdam_core::User;
use cofferdam_local::seccomp::{Surface, Tracing};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const BASE: Surface = Surface { tracing: Tracing::Refused, user: User::Ordinary };
const JUNK: u64 = 0xdead_beef << 32;
/// No descriptor, no process, no directory.
const NONE: u64 = u64::MAX;

struct Attack {
    name: &'static str,
    number: i64,
    arguments: [u64; 6],
    expected: i32,
}

/// The arguments are such that the kernel refuses the call too where it would change this process
/// or the machine, but for another reason.
fn attack(name: &'static str, number: i64, arguments: &[u64], expected: i32) -> Attack {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    Attack { name, number, arguments: all, expected }
}

fn namespaces_and_mounts() -> Vec<Attack> {
    let new_user = 0x1000_0000;
    let new_user_and_shared_directory = new_user | 0x200;
    vec![
        attack("unshare", libc::SYS_unshare, &[new_user], libc::EPERM),
        attack("unshare, junk above", libc::SYS_unshare, &[new_user | JUNK], libc::EPERM),
        attack(
            "clone, junk above",
            libc::SYS_clone,
            &[new_user_and_shared_directory | JUNK],
            libc::EPERM,
        ),
        attack("clone3", libc::SYS_clone3, &[], libc::ENOSYS),
        attack("setns", libc::SYS_setns, &[NONE], libc::EPERM),
        attack("mount", libc::SYS_mount, &[], libc::EPERM),
        attack("open_tree", libc::SYS_open_tree, &[NONE], libc::EPERM),
        attack("move_mount", libc::SYS_move_mount, &[NONE, 0, NONE], libc::EPERM),
        attack("fsopen", libc::SYS_fsopen, &[], libc::EPERM),
        attack("mount_setattr", libc::SYS_mount_setattr, &[NONE], libc::EPERM),
        attack("chroot", libc::SYS_chroot, &[], libc::EPERM),
        attack("name_to_handle_at", libc::SYS_name_to_handle_at, &[NONE], libc::EPERM),
    ]
}

fn kernel_surface() -> Vec<Attack> {
    vec![
        attack("keyctl", libc::SYS_keyctl, &[0, 0x7fff_ffff], libc::EPERM),
        attack("add_key", libc::SYS_add_key, &[], libc::EPERM),
        attack("bpf", libc::SYS_bpf, &[NONE], libc::EPERM),
        attack("perf_event_open", libc::SYS_perf_event_open, &[], libc::EPERM),
        attack("userfaultfd", libc::SYS_userfaultfd, &[0xdead], libc::EPERM),
        attack("io_uring_setup", libc::SYS_io_uring_setup, &[], libc::ENOSYS),
        attack("openat2", libc::SYS_openat2, &[NONE], libc::ENOSYS),
        attack("io_setup", libc::SYS_io_setup, &[0, 0], libc::ENOSYS),
        attack("memfd_secret", libc::SYS_memfd_secret, &[0xdead], libc::ENOSYS),
        attack("mbind", libc::SYS_mbind, &[1, 1, NONE], libc::ENOSYS),
        attack("fanotify_init", libc::SYS_fanotify_init, &[NONE], libc::EPERM),
        attack("syslog", libc::SYS_syslog, &[NONE], libc::EPERM),
        attack("reboot", libc::SYS_reboot, &[], libc::EPERM),
        attack("clock_settime", libc::SYS_clock_settime, &[0x7fff], libc::EPERM),
        attack("personality", libc::SYS_personality, &[0x0040_0000 | JUNK], libc::EPERM),
    ]
}

fn other_processes() -> Vec<Attack> {
    let peek = 2;
    let nobody = 0x7fff_fff0;
    vec![
        attack("ptrace", libc::SYS_ptrace, &[peek, nobody], libc::EPERM),
        attack("process_vm_readv", libc::SYS_process_vm_readv, &[nobody], libc::EPERM),
        attack("process_vm_writev", libc::SYS_process_vm_writev, &[nobody], libc::EPERM),
        attack("pidfd_getfd", libc::SYS_pidfd_getfd, &[NONE], libc::EPERM),
        attack("kcmp", libc::SYS_kcmp, &[nobody, nobody], libc::EPERM),
        attack("prlimit64", libc::SYS_prlimit64, &[nobody | JUNK, 7, 1], libc::EPERM),
        attack("ioctl TIOCSTI", libc::SYS_ioctl, &[NONE, 0x5412], libc::EPERM),
        attack("ioctl TIOCSTI, junk above", libc::SYS_ioctl, &[NONE, 0x5412 | JUNK], libc::EPERM),
        attack("ioctl TIOCLINUX", libc::SYS_ioctl, &[NONE, 0x541c | JUNK], libc::EPERM),
        attack("fcntl F_SETLEASE", libc::SYS_fcntl, &[NONE, 1024], libc::EPERM),
        attack("fcntl F_SETLEASE, junk above", libc::SYS_fcntl, &[NONE, 1024 | JUNK], libc::EPERM),
        attack("fcntl F_NOTIFY", libc::SYS_fcntl, &[NONE, 1026], libc::EPERM),
        attack("fcntl F_SETDELEG", libc::SYS_fcntl, &[NONE, 1040], libc::EPERM),
        attack("shmctl SHM_LOCK", libc::SYS_shmctl, &[NONE, 11 | JUNK], libc::EPERM),
        attack("shmget SHM_HUGETLB", libc::SYS_shmget, &[0, 0, 0o5600 | JUNK], libc::EPERM),
        attack("ioctl TIOCSETD", libc::SYS_ioctl, &[NONE, 0x5423], libc::EPERM),
    ]
}

fn sockets() -> Vec<Attack> {
    let socket = libc::SYS_socket;
    let (stream, datagram, raw) = (1, 2, 3);
    let kobject_uevent = 15;
    let mptcp = 262;
    vec![
        attack("AF_ALG", socket, &[38, 5], libc::EAFNOSUPPORT),
        attack("AF_VSOCK", socket, &[40, stream], libc::EAFNOSUPPORT),
        attack("AF_PACKET", socket, &[17, raw], libc::EAFNOSUPPORT),
        attack("AF_PACKET by its old name", socket, &[2, 10], libc::EPERM),
        attack("raw, junk above", socket, &[2 | JUNK, raw | JUNK, 1], libc::EPERM),
        attack("icmp", socket, &[2, datagram, 1], libc::EPROTONOSUPPORT),
        attack("mptcp", socket, &[2, stream, mptcp], libc::EPROTONOSUPPORT),
        attack("uevents", socket, &[16, datagram, kobject_uevent], libc::EPROTONOSUPPORT),
        attack("pair of AF_VSOCK", libc::SYS_socketpair, &[40, stream], libc::EAFNOSUPPORT),
        attack("kernel TLS", libc::SYS_setsockopt, &[NONE, 6, 31], libc::ENOENT),
        attack("sched_setscheduler of process 1", libc::SYS_sched_setscheduler, &[1], libc::EPERM),
        attack(
            "sched_setaffinity, junk above",
            libc::SYS_sched_setaffinity,
            &[1 | JUNK],
            libc::EPERM,
        ),
        attack("sched_setparam of process 1", libc::SYS_sched_setparam, &[1], libc::EPERM),
        attack("sched_setattr of process 1", libc::SYS_sched_setattr, &[1], libc::EPERM),
        attack(
            "setpriority of process 1",
            libc::SYS_setpriority,
            &[JUNK, 1, u64::MAX],
            libc::EPERM,
        ),
        attack("setpriority of a user", libc::SYS_setpriority, &[2, 0x7fff_fff0, 19], libc::EPERM),
        attack("ioprio_set of process 1", libc::SYS_ioprio_set, &[1, 1, u64::MAX], libc::EPERM),
        attack("ioprio_set of a user", libc::SYS_ioprio_set, &[3, 0, u64::MAX], libc::EPERM),
        attack("SO_ATTACH_FILTER", libc::SYS_setsockopt, &[NONE, 1, 26], libc::EPERM),
        attack("SO_ATTACH_BPF", libc::SYS_setsockopt, &[NONE, 1, 50], libc::EPERM),
        attack("SO_ATTACH_REUSEPORT_CBPF", libc::SYS_setsockopt, &[NONE, 1, 51], libc::EPERM),
        attack(
            "SO_ATTACH_REUSEPORT_EBPF",
            libc::SYS_setsockopt,
            &[NONE, 1 | JUNK, 52],
            libc::EPERM,
        ),
    ]
}

/// A directory that is gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("seccomp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Each attack confined, then free. Where the free one ends alike, this machine cannot show that
/// the filter did it, and that is said.
fn hold(attacks: Vec<Attack>) {
    let all = attacks.len();
    let mut unshown = Vec::new();
    for Attack { name, number, arguments, expected } in attacks {
        let held = confined(BASE, move || call(number, arguments));
        assert_eq!(held, Err(expected), "{name} with the filter");
        let free = std::thread::spawn(move || call(number, arguments)).join().unwrap();
        if free == Err(expected) {
            unshown.push(name);
        }
    }
    println!("without a difference here: {unshown:?}");
    assert!(unshown.len() * 2 <= all, "the kernel alone refuses most of these: {unshown:?}");
}

#[test]
fn namespaces_and_mounts_are_refused() {
    hold(namespaces_and_mounts());
}

#[test]
fn the_kernel_surface_is_closed() {
    hold(kernel_surface());
}

#[test]
fn other_processes_are_out_of_reach() {
    hold(other_processes());
}

#[test]
fn other_sockets_are_refused() {
    hold(sockets());
}

#[test]
fn set_id_files_and_devices_cannot_be_made() {
    let scratch = Scratch::new("modes");
    let file = scratch.0.join("file");
    std::fs::write(&file, "").unwrap();
    let made = c_path(&file);
    let there = made.as_ptr() as u64;
    let new: Vec<CString> = (0..8).map(|n| c_path(&scratch.0.join(n.to_string()))).collect();
    let fresh = |n: usize| new[n].as_ptr() as u64;
    let at = (-100_i64).cast_unsigned();
    let create = 0o102;
    let tmpfile = 0o20_200_002;
    let directory = c_path(&scratch.0);
    let mut attacks = vec![
        attack("fchmodat", libc::SYS_fchmodat, &[at, there, 0o4755], libc::EPERM),
        attack("fchmodat, junk above", libc::SYS_fchmodat, &[at, there, 0o2755 | JUNK], 1),
        attack("fchmodat2", 452, &[at, there, 0o4755, 0], libc::EPERM),
        attack("openat", libc::SYS_openat, &[at, fresh(0), create, 0o4755], libc::EPERM),
        attack(
            "openat of a file without a name",
            libc::SYS_openat,
            &[at, directory.as_ptr() as u64, tmpfile, 0o4755],
            libc::EPERM,
        ),
        attack("mknodat", libc::SYS_mknodat, &[at, fresh(1), 0o104_755], libc::EPERM),
        attack("mknodat of a whiteout", libc::SYS_mknodat, &[at, fresh(2), 0o020_666], 1),
        attack(
            "renameat2 with a whiteout",
            libc::SYS_renameat2,
            &[at, fresh(6), at, fresh(7), 4],
            libc::EPERM,
        ),
    ];
    #[cfg(target_arch = "x86_64")]
    attacks.extend([
        attack("chmod", libc::SYS_chmod, &[there, 0o4755], libc::EPERM),
        attack("open", libc::SYS_open, &[fresh(3), create, 0o2755], libc::EPERM),
        attack("creat", libc::SYS_creat, &[fresh(4), 0o4755], libc::EPERM),
        attack("mknod", libc::SYS_mknod, &[fresh(5), 0o104_755], libc::EPERM),
    ]);
    hold(attacks);
}

#[test]
fn a_directory_is_never_made_with_a_set_id_bit() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("mkdir");
    let path = scratch.0.join("made");
    let name = c_path(&path);
    let made = confined(BASE, move || {
        let at = (-100_i64).cast_unsigned();
        call(libc::SYS_mkdirat, [at, name.as_ptr() as u64, 0o6755, 0, 0, 0])
    });
    // The kernel drops the bits itself, which is why the filter lets the call through.
    assert_eq!(made, Ok(0));
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o6000, 0);
}

#[test]
fn a_wider_surface_opens_what_it_says_and_no_more() {
    let wide = Surface { tracing: Tracing::OwnProcesses, user: User::Root };
    let nobody = 0x7fff_fff0;
    let peek = [2, nobody, 0, 0, 0, 0];
    assert_eq!(confined(wide, move || call(libc::SYS_ptrace, peek)), Err(libc::ESRCH));
    assert_eq!(confined(wide, || call(libc::SYS_chroot, [0; 6])), Err(libc::EFAULT));
    assert_eq!(confined(wide, || call(libc::SYS_mount, [0; 6])), Err(libc::EPERM));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_foreign_abi_is_deadly() {
    use crate::sys::{ia32_getpid, native_getpid, x32_getpid};
    for act in [x32_getpid, ia32_getpid] {
        let status = confined(BASE, move || status_of_child(act));
        assert!(libc::WIFSIGNALED(status), "{status:x}");
        assert_eq!(libc::WTERMSIG(status), libc::SIGSYS);
    }
    assert_eq!(confined(BASE, move || status_of_child(native_getpid)), 0);
    // Without the filter neither is: x32 is unknown where it is not built in.
    assert_eq!(status_of_child(x32_getpid), 0);
}

#[test]
fn the_kernel_takes_the_program_quickly() {
    for surface in Surface::ALL {
        let mut times: Vec<_> =
            (0..50).map(|_| std::thread::spawn(move || load(&surface)).join().unwrap()).collect();
        times.sort_unstable();
        println!("{surface:?}: best {:?}, median {:?}", times[0], times[25]);
        // The target is 90 µs; this bound only notices a filter of another shape.
        assert!(times[0].as_micros() < 500, "{:?}", times[0]);
    }
}
