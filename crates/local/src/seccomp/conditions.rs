//! The rows that decide by arguments.
//!
//! HOSTILE: all arguments come from inside. The kernel reads most of them as 32-bit numbers, so
//! the tests do too: comparing 64 bits let `ioctl(0, TIOCSTI | 1 << 32)` through elsewhere.

use super::rule::{Call, Clause, Decision, Errno, Rule, Scope, Test, Verdict};
use super::table::{call, calls};

/// A row with conditions, else allowed.
pub(super) const fn unless(
    calls: &'static [Call],
    clauses: &'static [Clause],
    why: &'static str,
) -> Rule {
    let decision = Decision::ByArguments { clauses, otherwise: Verdict::Allow };
    Rule { scope: Scope::Calls(calls), decision, why }
}

/// A row with conditions, else refused with this error.
pub(super) const fn only(
    calls: &'static [Call],
    clauses: &'static [Clause],
    otherwise: Errno,
    why: &'static str,
) -> Rule {
    let decision = Decision::ByArguments { clauses, otherwise: Verdict::Refuse(otherwise) };
    Rule { scope: Scope::Calls(calls), decision, why }
}

/// A clause that refuses.
pub(super) const fn deny(tests: &'static [Test], when: &'static str) -> Clause {
    Clause { tests, when, verdict: Verdict::Refuse(Errno::Eperm) }
}

/// The argument, as a 32-bit number, is one of these.
pub(super) const fn is(argument: u8, values: &'static [u32]) -> Test {
    Test::OneOf { argument, mask: u32::MAX, values }
}

const SET_ID_BITS: u32 = 0o6000;

/// The argument is a mode that carries set-user-id or set-group-id.
pub(super) const fn set_id(argument: u8) -> Test {
    Test::AnyBit { argument, bits: SET_ID_BITS }
}

/// The argument is a mode whose file type is a device. A whiteout is one too, and the kernel lets
/// everybody make it.
pub(super) const fn device(argument: u8) -> Test {
    Test::OneOf { argument, mask: libc::S_IFMT, values: &[libc::S_IFCHR, libc::S_IFBLK] }
}

/// The argument holds flags of `open` that make a file. Without them the mode is not an argument
/// at all, but what happens to lie in the register.
pub(super) const fn creates(argument: u8) -> Test {
    // O_TMPFILE contains O_DIRECTORY, which alone makes nothing.
    let bits = libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY);
    Test::AnyBit { argument, bits: bits.cast_unsigned() }
}

/// In words, for the three tests above.
pub(super) const WHEN_SET_ID: &str = "the mode carries set-user-id or set-group-id";
pub(super) const WHEN_DEVICE: &str = "it is a device node";
pub(super) const WHEN_CREATES_SET_ID: &str =
    "it makes a file whose mode carries set-user-id or set-group-id";

/// Why mode bits are looked at.
pub(super) const WHY_SET_ID: &str =
    "in a shared workspace such a file would run as somebody else outside";
pub(super) const WHY_DEVICE: &str =
    "device nodes reach the kernel's drivers, and whiteouts hide files of other layers";

/// All bits that make a namespace, as `clone` takes them. A new time namespace has its bit where
/// `clone` keeps the exit signal, so only `unshare` can ask for it.
pub(super) const NEW_NAMESPACE: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();
const NEW_TIME_NAMESPACE: u32 = 0x80;

pub(super) const INTERNET: Test =
    is(0, &[libc::AF_INET.cast_unsigned(), libc::AF_INET6.cast_unsigned()]);
const NETLINK: Test = is(0, &[libc::AF_NETLINK.cast_unsigned()]);
/// The kernel keeps flags in the upper bits of the type.
pub(super) const STREAM_OR_DATAGRAM: Test = Test::OneOf {
    argument: 1,
    mask: 0xf,
    values: &[libc::SOCK_STREAM.cast_unsigned(), libc::SOCK_DGRAM.cast_unsigned()],
};
pub(super) const TCP_OR_UDP: Test =
    is(2, &[0, libc::IPPROTO_TCP.cast_unsigned(), libc::IPPROTO_UDP.cast_unsigned()]);

/// Ways to make a socket, the allowed ones before the errors for their neighbours.
const SOCKETS: &[Clause] = &[
    Clause {
        tests: &[is(0, &[libc::AF_UNIX.cast_unsigned()])],
        when: "the family is unix",
        verdict: Verdict::Allow,
    },
    Clause {
        tests: &[INTERNET, STREAM_OR_DATAGRAM, TCP_OR_UDP],
        when: "it is TCP or UDP",
        verdict: Verdict::Allow,
    },
    // Of all errors only this one makes Go's runtime take TCP instead of MPTCP for good.
    Clause {
        tests: &[INTERNET, STREAM_OR_DATAGRAM],
        when: "it is another internet protocol",
        verdict: Verdict::Refuse(Errno::Eprotonosupport),
    },
    deny(&[INTERNET], "it is a raw or packet socket"),
    Clause {
        tests: &[NETLINK, is(2, &[libc::NETLINK_ROUTE.cast_unsigned()])],
        when: "it is netlink for routes and addresses",
        verdict: Verdict::Allow,
    },
    Clause {
        tests: &[NETLINK],
        when: "it is another netlink protocol",
        verdict: Verdict::Refuse(Errno::Eprotonosupport),
    },
];

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const TIOCSETD: u32 = 0x5423;
const FS_IOC_SET_ENCRYPTION_POLICY: u32 = 0x800c_6613;
const FS_IOC_ADD_ENCRYPTION_KEY: u32 = 0xc050_6617;
const FS_IOC_ENABLE_VERITY: u32 = 0x4080_6685;
const FS_IOC_GETFSUUID: u32 = 0x8011_1500;
const FS_IOC_GETFSSYSFSPATH: u32 = 0x8081_1501;

/// Flags that make files immutable are not here: they need a capability that nobody has, and the
/// harmless ones beside them serve databases and package managers.
const CONTROLS: &[Clause] = &[
    deny(&[is(1, &[TIOCSTI, TIOCLINUX])], "it types into a terminal"),
    deny(&[is(1, &[TIOCSETD])], "it changes a terminal's line discipline"),
    deny(
        &[is(1, &[FS_IOC_SET_ENCRYPTION_POLICY, FS_IOC_ADD_ENCRYPTION_KEY, FS_IOC_ENABLE_VERITY])],
        "it encrypts or seals files of the host's file system",
    ),
    deny(
        &[is(1, &[FS_IOC_GETFSUUID, FS_IOC_GETFSSYSFSPATH])],
        "it asks which file system of the world this is",
    ),
];

const F_SETLEASE: u32 = 1024;
const F_NOTIFY: u32 = 1026;
const F_SETDELEG: u32 = 1040;

/// The row for descriptors. A lease needs no right to write: whoever opens the file outside waits for as
/// long as the host allows, or is told to try again.
pub(super) const DESCRIPTORS: Rule = unless(
    calls![SYS_fcntl],
    &[
        deny(&[is(1, &[F_SETLEASE, F_SETDELEG])], "it leases a file"),
        deny(&[is(1, &[F_NOTIFY])], "it asks for signals about a directory"),
    ],
    "works on what is open; a lease would hold up programs of the host",
);

const SHM_LOCK: u32 = libc::SHM_LOCK.cast_unsigned();
const SHM_HUGETLB: u32 = libc::SHM_HUGETLB.cast_unsigned();
/// Why segments of shared memory are not locked. Unlike `mlock`, of which each process has so much.
const WHY_NOT_LOCKED: &str =
    "messages between processes; the kernel counts what is locked on the host's user";
const SOL_TCP: u32 = libc::IPPROTO_TCP.cast_unsigned();
const TCP_ULP: u32 = 31;
const RENAME_WHITEOUT: u32 = 4;
/// "Tell, change nothing", the plain Linux personality, and that without address randomisation:
/// sanitisers and debuggers run themselves again so, and it weakens nobody else.
const PERSONALITIES: &[u32] = &[u32::MAX, 0, libc::ADDR_NO_RANDOMIZE.cast_unsigned()];

/// Programs of the old and the new kind that a socket runs over what it receives.
const SOCKET_FILTERS: &[u32] = &[
    libc::SO_ATTACH_FILTER.cast_unsigned(),
    libc::SO_ATTACH_BPF.cast_unsigned(),
    libc::SO_ATTACH_REUSEPORT_CBPF.cast_unsigned(),
    libc::SO_ATTACH_REUSEPORT_EBPF.cast_unsigned(),
];

/// The row for the options of a socket. Compiled filters come out of one pool for the machine: where it is empty
/// no program of the host gets a filter of system calls.
pub(super) const SOCKET_OPTIONS: Rule = unless(
    calls![SYS_setsockopt],
    &[
        Clause {
            tests: &[is(1, &[SOL_TCP]), is(2, &[TCP_ULP])],
            when: "it puts TLS into the kernel",
            verdict: Verdict::Refuse(Errno::Enoent),
        },
        deny(
            &[is(1, &[libc::SOL_SOCKET.cast_unsigned()]), is(2, SOCKET_FILTERS)],
            "it has the kernel compile a filter",
        ),
    ],
    "kernel TLS had many faults, and filters of packets use up what all filters of the machine share",
);

/// The first process of a sandbox, as all in it call it.
const FIRST: &[u32] = &[1];
const PRIO_PROCESS: &[u32] = &[0];
const PRIO_GROUP_OR_USER: &[u32] = &[1, 2];
const IOPRIO_WHO_PROCESS: &[u32] = &[1];
const IOPRIO_WHO_GROUP_OR_USER: &[u32] = &[2, 3];
const WHEN_FIRST: &str = "it is about the first process";
const WHEN_MANY: &str =
    "it is about a group's or a user's processes, of which the first may be one";
/// The kernel ends a sandbox in the time of its first process, whose user all in it are.
const WHY_FIRST: &str = "order among own threads; who keeps the first process from running keeps the sandbox from ending";

/// The rows for all architectures.
pub(super) const ROWS: &[Rule] = &[
    unless(
        calls![
            SYS_sched_setparam,
            SYS_sched_setscheduler,
            SYS_sched_setaffinity,
            SYS_sched_setattr
        ],
        &[deny(&[is(0, FIRST)], WHEN_FIRST)],
        WHY_FIRST,
    ),
    unless(
        calls![SYS_setpriority],
        &[
            deny(&[is(0, PRIO_PROCESS), is(1, FIRST)], WHEN_FIRST),
            deny(&[is(0, PRIO_GROUP_OR_USER)], WHEN_MANY),
        ],
        WHY_FIRST,
    ),
    unless(
        calls![SYS_ioprio_set],
        &[
            deny(&[is(0, IOPRIO_WHO_PROCESS), is(1, FIRST)], WHEN_FIRST),
            deny(&[is(0, IOPRIO_WHO_GROUP_OR_USER)], WHEN_MANY),
        ],
        WHY_FIRST,
    ),
    unless(calls![SYS_openat], &[deny(&[creates(2), set_id(3)], WHEN_CREATES_SET_ID)], WHY_SET_ID),
    unless(calls![SYS_fchmod], &[deny(&[set_id(1)], WHEN_SET_ID)], WHY_SET_ID),
    unless(calls![SYS_fchmodat], &[deny(&[set_id(2)], WHEN_SET_ID)], WHY_SET_ID),
    unless(&[call("fchmodat2", 452)], &[deny(&[set_id(2)], WHEN_SET_ID)], WHY_SET_ID),
    unless(
        calls![SYS_mknodat],
        &[deny(&[device(2)], WHEN_DEVICE), deny(&[set_id(2)], WHEN_SET_ID)],
        WHY_DEVICE,
    ),
    unless(
        calls![SYS_renameat2],
        &[deny(&[Test::AnyBit { argument: 4, bits: RENAME_WHITEOUT }], "it leaves a whiteout")],
        "a whiteout is a device node, and hides files of other layers",
    ),
    unless(
        calls![SYS_clone],
        &[deny(&[Test::AnyBit { argument: 0, bits: NEW_NAMESPACE }], "it makes a namespace")],
        "threads and processes are free, new namespaces open the administrator's kernel calls",
    ),
    unless(
        calls![SYS_unshare],
        &[deny(
            &[Test::AnyBit { argument: 0, bits: NEW_NAMESPACE | NEW_TIME_NAMESPACE }],
            "it makes a namespace",
        )],
        "new namespaces open the administrator's kernel calls",
    ),
    DESCRIPTORS,
    unless(calls![SYS_ioctl], CONTROLS, "devices are few; what acts on other programs is refused"),
    only(
        calls![SYS_socket],
        SOCKETS,
        Errno::Eafnosupport,
        "other families cross network namespaces or are old parts of the kernel",
    ),
    only(
        calls![SYS_socketpair],
        &[Clause {
            tests: &[is(0, &[libc::AF_UNIX.cast_unsigned()])],
            when: "the family is unix",
            verdict: Verdict::Allow,
        }],
        Errno::Eafnosupport,
        "no other family has pairs, but the kernel loads it before it says so",
    ),
    SOCKET_OPTIONS,
    unless(
        calls![SYS_prctl],
        &[deny(&[is(0, &[libc::PR_SET_MM.cast_unsigned()])], "it forges the memory map")],
        "a process may adjust itself, but not what the kernel tells others of it",
    ),
    unless(
        calls![SYS_shmctl],
        &[deny(&[is(1, &[SHM_LOCK])], "it locks a segment in memory")],
        WHY_NOT_LOCKED,
    ),
    unless(
        calls![SYS_shmget],
        &[deny(&[Test::AnyBit { argument: 2, bits: SHM_HUGETLB }], "it makes one of huge pages")],
        WHY_NOT_LOCKED,
    ),
    unless(
        calls![SYS_prlimit64],
        &[deny(
            &[Test::AnyBit { argument: 0, bits: u32::MAX }, Test::NotNull { argument: 2 }],
            "it sets limits of another process",
        )],
        "limits are set by each process for itself",
    ),
    only(
        calls![SYS_personality],
        &[Clause {
            tests: &[is(0, PERSONALITIES)],
            when: "it asks, or chooses plain Linux with or without address randomisation",
            verdict: Verdict::Allow,
        }],
        Errno::Eperm,
        "other personalities switch protections of memory off",
    ),
];
