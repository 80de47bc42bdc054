//! What only x86-64 has: calls from before the `…at` forms, and the leftovers of a long history.

use super::conditions::{
    WHEN_CREATES_SET_ID, WHEN_DEVICE, WHEN_SET_ID, WHY_DEVICE, WHY_SET_ID, creates, deny, device,
    set_id, unless,
};
use super::rule::Rule;
use super::table::{absent, allow, call, calls, refuse};

/// `AUDIT_ARCH_X86_64`. The 32-bit ABI, also by `int 0x80`, has another.
pub(super) const AUDIT_ARCH: u32 = 0xc000_003e;

/// Numbers from here on are calls of the x32 ABI, which shares the architecture above.
pub(super) const FOREIGN_FROM: Option<u32> = Some(0x4000_0000);

/// The rows.
pub(super) const ROWS: &[Rule] = &[
    allow(
        calls![
            SYS_access,
            SYS_stat,
            SYS_lstat,
            SYS_readlink,
            SYS_mkdir,
            SYS_rmdir,
            SYS_link,
            SYS_symlink,
            SYS_unlink,
            SYS_rename,
            SYS_renameat,
            SYS_chown,
            SYS_lchown,
            SYS_utime,
            SYS_utimes,
            SYS_futimesat,
            SYS_getdents,
            SYS_sync_file_range,
        ],
        "works on files as the view and their permissions allow; mkdir drops set-id bits itself",
    ),
    allow(
        calls![
            SYS_dup2,
            SYS_pipe,
            SYS_poll,
            SYS_select,
            SYS_epoll_create,
            SYS_epoll_wait,
            SYS_eventfd,
            SYS_signalfd,
            SYS_inotify_init,
        ],
        "older forms of calls that are allowed",
    ),
    allow(&[call("io_pgetevents", 333)], "waits for events, as every event loop does"),
    allow(
        calls![SYS_fork, SYS_vfork, SYS_getpgrp, SYS_pause, SYS_alarm, SYS_time],
        "processes and time; these forms of clone take no flags",
    ),
    allow(calls![SYS_getrlimit, SYS_setrlimit], "limits of the process itself"),
    allow(calls![SYS_arch_prctl], "thread-local storage and processor features of the thread"),
    allow(
        &[call("uretprobe", 335), call("uprobe", 336)],
        "made by the kernel's own trampoline where the host traces a program; else it is fatal",
    ),
    unless(calls![SYS_open], &[deny(&[creates(1), set_id(2)], WHEN_CREATES_SET_ID)], WHY_SET_ID),
    unless(calls![SYS_creat, SYS_chmod], &[deny(&[set_id(1)], WHEN_SET_ID)], WHY_SET_ID),
    unless(
        calls![SYS_mknod],
        &[deny(&[device(1)], WHEN_DEVICE), deny(&[set_id(1)], WHEN_SET_ID)],
        WHY_DEVICE,
    ),
    refuse(calls![SYS_iopl, SYS_ioperm], "the machine's ports"),
    refuse(calls![SYS_kexec_file_load], "belongs to the administrator of the host"),
    absent(
        calls![SYS_modify_ldt],
        "as on a kernel without it; serves 16-bit programs, and had many faults",
    ),
    absent(
        calls![
            SYS_uselib,
            SYS_ustat,
            SYS_sysfs,
            SYS__sysctl,
            SYS_getpmsg,
            SYS_putpmsg,
            SYS_afs_syscall,
            SYS_tuxcall,
            SYS_security,
            SYS_vserver,
            SYS_epoll_ctl_old,
            SYS_epoll_wait_old,
            SYS_set_thread_area,
            SYS_get_thread_area,
        ],
        "gone from the kernel, or never there",
    ),
    absent(
        &[call("create_module", 174), call("get_kernel_syms", 177), call("query_module", 178)],
        "gone from the kernel",
    ),
];

/// What only a gate's own rows have here: older forms of what it does, by the C library.
pub(super) const GATE: &[Rule] = &[allow(
    calls![
        SYS_open,
        SYS_stat,
        SYS_lstat,
        SYS_access,
        SYS_readlink,
        SYS_getdents,
        SYS_poll,
        SYS_epoll_wait,
        SYS_time,
    ],
    "older forms of calls that are allowed; Landlock says which files",
)];
