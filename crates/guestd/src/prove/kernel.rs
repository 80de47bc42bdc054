//! Attacks on the kernel's own files: settings, memory, control groups.

use super::attack::{Group, Row, Scene};
use super::calls::{create_private, open_to_write, read, read_something};
use super::outcome::{Door, Layer, Outcome, any};

const SETTINGS: Group = Group { axis: "processes", promise: "P2", door: Door::Path };
const SURFACE: Group = Group { axis: "processes", promise: "P6", door: Door::Path };

pub(super) const ROWS: &[Row] = &[
    SETTINGS.check(
        "processes.core_pattern",
        |_| open_to_write("/proc/sys/kernel/core_pattern"),
        create_private,
    ),
    SETTINGS.check(
        "processes.module_loader",
        |_| open_to_write("/proc/sys/kernel/modprobe"),
        create_private,
    ),
    SETTINGS.check(
        "processes.kernel_settings",
        |_| any(SETTING_FILES.map(open_to_write)),
        create_private,
    ),
    SETTINGS.check(
        "processes.network_settings",
        |_| any(NETWORK_FILES.map(open_to_write)),
        create_private,
    ),
    SETTINGS.check(
        "processes.namespace_settings",
        |_| any(NAMESPACE_FILES.map(open_to_write)),
        create_private,
    ),
    SETTINGS.check("processes.sysrq", |_| open_to_write("/proc/sysrq-trigger"), create_private),
    SETTINGS.check(
        "processes.interrupts",
        |_| any(INTERRUPT_FILES.map(open_to_write)),
        create_private,
    ),
    SURFACE.check(
        "processes.kernel_memory",
        |_| any(MEMORY_FILES.map(super::calls::open)),
        own_status,
    ),
    SURFACE.check("processes.kernel_keys", |_| any(KEY_FILES.map(read_something)), own_status),
    SURFACE.check("processes.kernel_log", |_| any(LOG_FILES.map(super::calls::open)), own_status),
    SURFACE.check("processes.kernel_lists", |_| any(LIST_FILES.map(read_something)), own_status),
    SURFACE.check("processes.kernel_addresses", kernel_addresses, own_status),
    SURFACE.check("processes.control_groups", control_groups, own_status),
    SURFACE.check(
        "processes.debug_files",
        |_| any(DEBUG_FILES.map(super::calls::list)),
        |_| super::calls::list("/"),
    ),
];

const SETTING_FILES: [&str; 6] = [
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/binfmt_misc/register",
];

const NETWORK_FILES: [&str; 3] = [
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv4/ip_unprivileged_port_start",
    "/proc/sys/net/core/somaxconn",
];

const NAMESPACE_FILES: [&str; 3] = [
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/kernel/ns_last_pid",
];

const INTERRUPT_FILES: [&str; 3] =
    ["/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/bus/pci/devices"];

const MEMORY_FILES: [&str; 4] = ["/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port"];

const KEY_FILES: [&str; 2] = ["/proc/keys", "/proc/key-users"];

const LOG_FILES: [&str; 2] = ["/proc/kmsg", "/dev/kmsg"];

const LIST_FILES: [&str; 5] = [
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/latency_stats",
    "/proc/scsi/scsi",
    "/proc/acpi/wakeup",
];

const DEBUG_FILES: [&str; 5] = [
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/kernel/security",
];

fn own_status(_: &Scene<'_>) -> Outcome {
    read_something("/proc/self/status")
}

/// Unprivileged readers get zeros, which tell nothing.
fn kernel_addresses(_: &Scene<'_>) -> Outcome {
    match read("/proc/kallsyms") {
        Ok(text) if text.lines().take(64).any(|line| !line.starts_with("0000000000000000")) => {
            Outcome::did("read addresses in /proc/kallsyms")
        }
        Ok(_) => Outcome::met_at(Layer::Permission, libc::EPERM, "/proc/kallsyms shows no address"),
        Err(error) => Outcome::met(error.raw_os_error().unwrap_or(0), "open /proc/kallsyms"),
    }
}

fn control_groups(_: &Scene<'_>) -> Outcome {
    let mounts = match read("/proc/self/mountinfo") {
        Ok(text) => text,
        Err(error) => return Outcome::untried(format!("read /proc/self/mountinfo: {error}")),
    };
    match mounts.lines().find(|line| line.contains(" - cgroup")) {
        Some(line) => Outcome::did(format!("there is {line}")),
        None => Outcome::met_at(Layer::View, libc::ENOENT, "find a control group file system"),
    }
}
