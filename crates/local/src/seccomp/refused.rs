//! The rows that refuse, whatever the arguments.

use super::rule::Rule;
use super::table::{absent, call, calls, refuse};

/// Known and dangerous, for all architectures.
pub(super) const REFUSED: &[Rule] = &[
    refuse(
        calls![
            SYS_mount,
            SYS_umount2,
            SYS_pivot_root,
            SYS_open_tree,
            SYS_move_mount,
            SYS_fsopen,
            SYS_fsconfig,
            SYS_fsmount,
            SYS_fspick,
            SYS_mount_setattr,
            SYS_setns,
        ],
        "the view of files is made once, from outside",
    ),
    refuse(&[call("open_tree_attr", 467)], "a younger form of the mount calls"),
    refuse(
        calls![SYS_name_to_handle_at, SYS_open_by_handle_at],
        "a handle opens a file without a path, past the view",
    ),
    refuse(
        calls![SYS_keyctl, SYS_add_key, SYS_request_key],
        "key rings belong to the host's user, no namespace divides them",
    ),
    refuse(
        calls![SYS_bpf, SYS_perf_event_open, SYS_userfaultfd],
        "large parts of the kernel that most of its escapes went through",
    ),
    refuse(
        calls![SYS_pidfd_getfd, SYS_kcmp],
        "takes descriptors out of other processes, or tells their kernel objects apart",
    ),
    refuse(
        calls![SYS_fanotify_init, SYS_fanotify_mark],
        "watches whole file systems, beyond the view",
    ),
    refuse(
        calls![
            SYS_init_module,
            SYS_finit_module,
            SYS_delete_module,
            SYS_kexec_load,
            SYS_reboot,
            SYS_swapon,
            SYS_swapoff,
            SYS_acct,
            SYS_quotactl,
            SYS_quotactl_fd,
            SYS_syslog,
            SYS_vhangup,
            SYS_sethostname,
            SYS_setdomainname,
        ],
        "belongs to the administrator of the host",
    ),
    refuse(
        calls![SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime],
        "the clock is shared with the host",
    ),
];

/// Answered as if the kernel did not have them, for all architectures.
pub(super) const ABSENT: &[Rule] = &[
    absent(
        calls![SYS_openat2],
        "its mode bits lie in memory, where no filter sees them; programs fall back to openat",
    ),
    absent(
        calls![SYS_clone3],
        "its flags lie in memory, where no filter sees them; the C library falls back to clone",
    ),
    absent(
        calls![SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register],
        "carries out calls behind the filter's back; programs fall back to epoll",
    ),
    absent(
        calls![SYS_io_setup],
        "takes from a pool of the whole machine, which a few programs empty; programs fall back to threads",
    ),
    absent(
        calls![
            SYS_mbind,
            SYS_set_mempolicy,
            SYS_get_mempolicy,
            SYS_set_mempolicy_home_node,
            SYS_move_pages,
            SYS_migrate_pages,
        ],
        "as on a kernel without NUMA; move_pages tells what memory is shared with others",
    ),
    absent(calls![SYS_memfd_secret], "as where it is switched off; hides memory from the host"),
    absent(
        &[call("statmount", 457), call("listmount", 458), call("listns", 470)],
        "tells of mounts and namespaces; programs fall back to /proc",
    ),
    absent(
        &[
            call("lsm_get_self_attr", 459),
            call("lsm_set_self_attr", 460),
            call("lsm_list_modules", 461),
        ],
        "nothing inside needs to know or change what the host's security modules say",
    ),
    absent(
        &[call("file_setattr", 469)],
        "its flags lie in memory; programs fall back to the ioctl",
    ),
    absent(
        calls![SYS_nfsservctl, SYS_lookup_dcookie],
        "gone from the kernel, or for profilers of the whole machine",
    ),
];
