//! Attacks on the kernel's surface: P6. Calls that have had holes, and calls through other doors.
//!
//! Wherever it can be, a call has arguments that the kernel itself answers with something other
//! than EPERM, so that the filter's refusal can be told from the kernel's.

use super::attack::{Group, Row, Scene};
use super::calls::{plain_call, reach};
use super::outcome::{Door, Outcome, any};
use super::sys;
use std::time::{SystemTime, UNIX_EPOCH};

/// Calls that the kernel lets an unprivileged user make.
const OPEN: Group = Group { axis: "processes", promise: "P6", door: Door::Call };
/// Calls that the kernel refuses to most by itself.
const CLOSED: Group = Group { axis: "processes", promise: "P6", door: Door::Privileged };

pub(super) const ROWS: &[Row] = &[
    OPEN.check(
        "processes.keyctl",
        |_| reach("keyctl", libc::SYS_keyctl, GET_SESSION_KEYRING),
        plain_call,
    ),
    OPEN.check("processes.add_key", add_key, plain_call),
    OPEN.check(
        "processes.request_key",
        |_| reach("request_key", libc::SYS_request_key, NOTHING),
        plain_call,
    ),
    CLOSED.check("processes.bpf", |_| any([0, 5, 18].map(bpf)), plain_call),
    OPEN.check("processes.perf_event", perf_event, plain_call),
    OPEN.check(
        "processes.userfaultfd",
        |_| reach("userfaultfd", libc::SYS_userfaultfd, USER_MODE),
        plain_call,
    ),
    OPEN.check("processes.io_uring_setup", io_uring_setup, plain_call),
    OPEN.check(
        "processes.io_uring_enter",
        |_| reach("io_uring_enter", libc::SYS_io_uring_enter, BAD_FILE),
        plain_call,
    ),
    OPEN.check(
        "processes.io_uring_register",
        |_| reach("io_uring_register", libc::SYS_io_uring_register, BAD_FILE),
        plain_call,
    ),
    OPEN.check("processes.personality", personality, plain_call),
    #[cfg(target_arch = "x86_64")]
    OPEN.check(
        "processes.modify_ldt",
        |_| reach("modify_ldt", libc::SYS_modify_ldt, NOTHING),
        plain_call,
    ),
    #[cfg(target_arch = "x86_64")]
    OPEN.check("processes.x32_call", x32_call, plain_call),
    #[cfg(target_arch = "x86_64")]
    OPEN.check("processes.ia32_call", ia32_call, plain_call),
    OPEN.check("processes.unknown_call", |_| reach("call 4095", 4095, [0; 6]), plain_call),
    OPEN.check(
        "processes.kcmp",
        |_| reach("kcmp", libc::SYS_kcmp, [usize::MAX, usize::MAX, 0, 0, 0, 0]),
        plain_call,
    ),
    OPEN.check(
        "processes.move_pages",
        |_| reach("move_pages", libc::SYS_move_pages, [usize::MAX >> 33, 1, 0, 0, 0, 0]),
        plain_call,
    ),
    OPEN.check(
        "processes.migrate_pages",
        |_| reach("migrate_pages", libc::SYS_migrate_pages, [usize::MAX >> 33, 0, 0, 0, 0, 0]),
        plain_call,
    ),
    OPEN.check(
        "processes.fanotify",
        |_| reach("fanotify_init", libc::SYS_fanotify_init, FANOTIFY),
        plain_call,
    ),
    OPEN.check(
        "processes.quotactl",
        |_| reach("quotactl", libc::SYS_quotactl, [usize::MAX, 0, 0, 0, 0, 0]),
        plain_call,
    ),
    CLOSED.check("processes.load_module", load_module, plain_call).confined(),
    CLOSED
        .check(
            "processes.kexec",
            |_| reach("kexec_load", libc::SYS_kexec_load, [0, 99, 0, 0, 0, 0]),
            plain_call,
        )
        .confined(),
    CLOSED
        .check("processes.reboot", |_| reach("reboot", libc::SYS_reboot, NOTHING), plain_call)
        .confined(),
    CLOSED
        .check("processes.swap", |_| reach("swapon", libc::SYS_swapon, NOTHING), plain_call)
        .confined(),
    CLOSED
        .check("processes.accounting", |_| reach("acct", libc::SYS_acct, NOTHING), plain_call)
        .confined(),
    CLOSED.check("processes.kernel_log_call", kernel_log_call, plain_call),
    #[cfg(target_arch = "x86_64")]
    CLOSED.check("processes.io_ports", io_ports, plain_call),
    CLOSED.check("processes.set_clock", set_clock, plain_call).confined(),
    CLOSED.check("processes.set_host_name", set_host_name, plain_call).confined(),
    CLOSED
        .check("processes.hang_up", |_| reach("vhangup", libc::SYS_vhangup, [0; 6]), plain_call)
        .confined(),
];

const GET_SESSION_KEYRING: [usize; 6] = [0, (-3_isize).cast_unsigned(), 0, 0, 0, 0];
const NOTHING: [usize; 6] = [0; 6];
const BAD_FILE: [usize; 6] = [usize::MAX, 0, 0, 0, 0, 0];
/// `UFFD_USER_MODE_ONLY`: what an unprivileged user may ask for.
const USER_MODE: [usize; 6] = [1, 0, 0, 0, 0, 0];
/// `FAN_REPORT_FID`: what an unprivileged user may ask for.
const FANOTIFY: [usize; 6] = [0x200, 0, 0, 0, 0, 0];

fn add_key(_: &Scene<'_>) -> Outcome {
    let process_keyring = (-2_isize).cast_unsigned();
    let (kind, name) = (c"user".as_ptr() as usize, c"cofferdam-attack".as_ptr() as usize);
    reach("add_key", libc::SYS_add_key, [kind, name, name, 4, process_keyring, 0])
}

/// Makes a map, loads a program, loads a type description: all with an empty request.
fn bpf(command: usize) -> Outcome {
    let request = [0_u64; 16];
    let args = [command, request.as_ptr() as usize, size_of_val(&request), 0, 0, 0];
    reach("bpf", libc::SYS_bpf, args)
}

/// Counts its own processor time in user mode, which needs no right.
fn perf_event(_: &Scene<'_>) -> Outcome {
    // struct perf_event_attr: type software, size 64, config cpu clock; the flags at the sixth
    // word exclude the kernel and the hypervisor.
    let mut request = [0_u64; 8];
    for (place, value) in request.iter_mut().zip([1 | (64 << 32), 0, 0, 0, 0, 0b110_0000]) {
        *place = value;
    }
    let args = [request.as_ptr() as usize, 0, usize::MAX, usize::MAX, 0, 0];
    reach("perf_event_open", libc::SYS_perf_event_open, args)
}

fn io_uring_setup(_: &Scene<'_>) -> Outcome {
    let mut request = [0_u64; 15];
    let args = [1, request.as_mut_ptr() as usize, 0, 0, 0, 0];
    reach("io_uring_setup", libc::SYS_io_uring_setup, args)
}

/// Makes everything that can be read executable, as exploits like it.
fn personality(_: &Scene<'_>) -> Outcome {
    const READ_IS_EXECUTE: usize = 0x0040_0000;
    reach("personality", libc::SYS_personality, [READ_IS_EXECUTE, 0, 0, 0, 0, 0])
}

/// The kernel may have been built without the x32 door; then it answers ENOSYS by itself.
#[cfg(target_arch = "x86_64")]
fn x32_call(_: &Scene<'_>) -> Outcome {
    const X32: i64 = 0x4000_0000;
    reach("getpid as x32", X32 + libc::SYS_getpid, [0; 6])
}

#[cfg(target_arch = "x86_64")]
fn ia32_call(_: &Scene<'_>) -> Outcome {
    const GETPID_OF_IA32: i32 = 20;
    match sys::through_32_bit_door(GETPID_OF_IA32) {
        pid if pid > 0 => Outcome::did(format!("int 0x80 says that this is process {pid}")),
        negative => Outcome::met(-negative, "int 0x80"),
    }
}

fn load_module(_: &Scene<'_>) -> Outcome {
    any([
        reach("init_module", libc::SYS_init_module, NOTHING),
        reach("finit_module", libc::SYS_finit_module, BAD_FILE),
        reach("delete_module", libc::SYS_delete_module, NOTHING),
    ])
}

/// Asks for the size of the kernel's log.
fn kernel_log_call(_: &Scene<'_>) -> Outcome {
    let mut buffer = [0_u8; 64];
    any([[10, 0, 0], [3, buffer.as_mut_ptr() as usize, buffer.len()]].map(
        |[action, place, size]| reach("syslog", libc::SYS_syslog, [action, place, size, 0, 0, 0]),
    ))
}

#[cfg(target_arch = "x86_64")]
fn io_ports(_: &Scene<'_>) -> Outcome {
    any([
        reach("iopl", libc::SYS_iopl, [3, 0, 0, 0, 0, 0]),
        reach("ioperm", libc::SYS_ioperm, [0x80, 1, 1, 0, 0, 0]),
    ])
}

/// Sets the time that it is already.
fn set_clock(_: &Scene<'_>) -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let time: [u64; 2] = [now.as_secs(), u64::from(now.subsec_micros())];
    let place = time.as_ptr() as usize;
    any([
        reach("clock_settime", libc::SYS_clock_settime, [0, place, 0, 0, 0, 0]),
        reach("settimeofday", libc::SYS_settimeofday, [place, 0, 0, 0, 0, 0]),
    ])
}

fn set_host_name(_: &Scene<'_>) -> Outcome {
    let name = c"attacked".as_ptr() as usize;
    any([
        reach("sethostname", libc::SYS_sethostname, [name, 8, 0, 0, 0, 0]),
        reach("setdomainname", libc::SYS_setdomainname, [name, 8, 0, 0, 0, 0]),
    ])
}
