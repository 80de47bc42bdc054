//! The rows for a gate, a process on the host that reads what comes from inside.
//!
//! It accepts, dials, asks for names, reads the few files that say how, and writes its log. So it has
//! sockets of three families, clocks, memory that is never run, and threads. It starts no program and
//! no process, and nothing of the kernel is there that it does not need for this.

use super::conditions::{
    DESCRIPTORS, INTERNET, NEW_NAMESPACE, SOCKET_OPTIONS, STREAM_OR_DATAGRAM, TCP_OR_UDP, deny, is,
    only, unless,
};
use super::native;
use super::rule::{Clause, Errno, Rule, Test, Verdict};
use super::table::{FOREIGN, UNLISTED, absent, allow, calls};

/// All rows, those for unlisted calls and foreign ABIs last.
pub fn rules() -> impl Iterator<Item = Rule> {
    ROWS.iter().chain(native::GATE).copied().chain([UNLISTED, FOREIGN])
}

/// The memory can be run.
const RUNS: Test = Test::AnyBit { argument: 2, bits: libc::PROT_EXEC.cast_unsigned() };
const A_THREAD: Test = Test::AnyBit { argument: 0, bits: libc::CLONE_THREAD.cast_unsigned() };
const A_NAMESPACE: Test = Test::AnyBit { argument: 0, bits: NEW_NAMESPACE };

const FIOCLEX: u32 = 0x5451;
const FIONBIO: u32 = 0x5421;
const FIONREAD: u32 = 0x541b;
const TCGETS: u32 = 0x5401;

const fn let_pass(tests: &'static [Test], when: &'static str) -> Clause {
    Clause { tests, when, verdict: Verdict::Allow }
}

const UNIX: Clause = let_pass(&[is(0, &[libc::AF_UNIX.cast_unsigned()])], "the family is unix");

const ROWS: &[Rule] = &[
    allow(
        calls![
            SYS_bind,
            SYS_connect,
            SYS_accept,
            SYS_accept4,
            SYS_getsockname,
            SYS_getpeername,
            SYS_getsockopt,
            SYS_sendto,
            SYS_recvfrom,
            SYS_sendmsg,
            SYS_recvmsg,
            SYS_shutdown,
        ],
        "uses sockets; which kinds there are is decided where they are made",
    ),
    only(
        calls![SYS_socket],
        &[let_pass(&[INTERNET, STREAM_OR_DATAGRAM, TCP_OR_UDP], "it is TCP or UDP")],
        Errno::Eafnosupport,
        "dials and asks for names; its way to whoever holds the sandbox is open already",
    ),
    only(calls![SYS_socketpair], &[UNIX], Errno::Eafnosupport, "wakes itself"),
    SOCKET_OPTIONS,
    DESCRIPTORS,
    allow(
        calls![
            SYS_read,
            SYS_write,
            SYS_readv,
            SYS_writev,
            SYS_pread64,
            SYS_pwrite64,
            SYS_lseek,
            SYS_ftruncate,
            SYS_fallocate,
            SYS_close,
            SYS_fstat,
        ],
        "works on what is open",
    ),
    allow(
        calls![
            SYS_openat,
            SYS_newfstatat,
            SYS_statx,
            SYS_faccessat,
            SYS_readlinkat,
            SYS_getdents64
        ],
        "opens the few files that Landlock leaves",
    ),
    only(
        calls![SYS_ioctl],
        &[let_pass(
            &[is(1, &[FIONBIO, FIONREAD, FIOCLEX, TCGETS])],
            "it is about waiting, or asks what is there",
        )],
        Errno::Eperm,
        "every driver has calls of its own behind this one",
    ),
    allow(
        calls![SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_ppoll, SYS_eventfd2],
        "waits for what comes",
    ),
    unless(
        calls![SYS_mmap, SYS_mprotect],
        &[deny(&[RUNS], "the memory could be run")],
        "what is read is never run",
    ),
    allow(calls![SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise], "memory of its own"),
    only(
        calls![SYS_clone],
        &[deny(&[A_NAMESPACE], "it makes a namespace"), let_pass(&[A_THREAD], "it makes a thread")],
        Errno::Eperm,
        "a gate is one process, and starts none",
    ),
    absent(calls![SYS_clone3], "its flags lie behind a pointer; the C library falls back to clone"),
    allow(
        calls![
            SYS_futex,
            SYS_set_robust_list,
            SYS_rseq,
            SYS_sched_yield,
            SYS_sched_getaffinity,
            SYS_exit,
            SYS_exit_group,
            SYS_getpid,
            SYS_gettid,
            SYS_getppid,
            SYS_getuid,
            SYS_geteuid,
            SYS_getgid,
            SYS_getegid,
        ],
        "threads of its own, and who it is",
    ),
    allow(
        calls![
            SYS_rt_sigaction,
            SYS_rt_sigprocmask,
            SYS_rt_sigreturn,
            SYS_sigaltstack,
            SYS_restart_syscall,
        ],
        "takes signals; it sends none",
    ),
    only(
        calls![SYS_prctl],
        &[let_pass(&[is(0, &[libc::PR_SET_NAME.cast_unsigned()])], "it names a thread")],
        Errno::Eperm,
        "what it gave up stays given up",
    ),
    unless(
        calls![SYS_prlimit64],
        &[deny(&[Test::NotNull { argument: 2 }], "it sets a limit")],
        "its limits stay as they are",
    ),
    allow(
        calls![
            SYS_clock_gettime,
            SYS_clock_getres,
            SYS_gettimeofday,
            SYS_nanosleep,
            SYS_clock_nanosleep,
            SYS_getrandom,
            SYS_uname,
            SYS_sysinfo,
        ],
        "clocks, chance, and what every process may know",
    ),
];
