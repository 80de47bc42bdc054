//! Attacks on what should not have come along: P12, and the host's identity: P14.

use super::attack::{Group, Row, Scene};
use super::calls::{find, read, read_something};
use super::outcome::{Door, Layer, Outcome, any};

const INHERITED: Group = Group { axis: "environment", promise: "P12", door: Door::Path };
const IDENTITY: Group = Group { axis: "environment", promise: "P14", door: Door::Path };

pub(super) const ROWS: &[Row] = &[
    INHERITED
        .check("environment.secret_variable", secret_variable, path_is_set)
        .when(|s| !s.request.targets.secret_variable.is_empty() && !s.request.env.is_empty()),
    INHERITED
        .check("environment.secret_of_processes", secret_of_processes, |_| {
            read_something("/proc/self/stat")
        })
        .when(|s| !s.request.targets.secret_variable.is_empty()),
    INHERITED.check("environment.descriptors", descriptors, own_descriptor),
    INHERITED.check("environment.working_directory", working_directory, |_| {
        read_something("/proc/self/stat")
    }),
    IDENTITY
        .check("environment.host_name", host_name, |_| read_something("/proc/sys/kernel/hostname"))
        .when(|s| !s.request.targets.host_name.is_empty()),
    IDENTITY
        .check("environment.machine_id", machine_id, |_| read_something("/proc/self/stat"))
        .when(|s| !s.request.targets.machine_id.is_empty()),
    IDENTITY
        .check("environment.boot_id", boot_id, |_| read_something(BOOT_ID))
        .when(|s| !s.request.targets.boot_id.is_empty()),
    IDENTITY.check(
        "environment.boot_command",
        |_| read_something("/proc/cmdline"),
        |_| read_something("/proc/self/cmdline"),
    ),
    IDENTITY.check(
        "environment.hardware",
        |_| any(HARDWARE.map(read_something)),
        |_| read_something("/proc/self/stat"),
    ),
    IDENTITY.check("environment.mounts", mounts, |_| read_something("/proc/self/mountinfo")),
    IDENTITY.check("environment.control_group_path", control_group_path, |_| {
        read_something("/proc/self/cgroup")
    }),
    IDENTITY
        .check("environment.users", users, |_| read_something("/etc/passwd"))
        .when(|s| !s.request.targets.image),
];

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

const HARDWARE: [&str; 4] = [
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/product_uuid",
    "/sys/class/net/eth0/address",
    "/proc/device-tree/model",
];

fn name(scene: &Scene<'_>) -> Vec<u8> {
    let mut name = scene.request.targets.secret_variable.clone().into_bytes();
    name.push(b'=');
    name
}

/// Looks through the environment that commands get.
fn secret_variable(scene: &Scene<'_>) -> Outcome {
    let secret = scene.request.targets.secret_variable.as_bytes();
    let call = format!("find {}", scene.request.targets.secret_variable);
    if scene.request.env.iter().any(|(key, _)| key.as_bytes() == secret) {
        return Outcome::did(call);
    }
    Outcome::met_at(Layer::View, libc::ENOENT, call)
}

fn path_is_set(scene: &Scene<'_>) -> Outcome {
    let set = scene.request.env.iter().any(|(key, _)| key.as_bytes() == b"PATH");
    Outcome::claim(set.into(), "find PATH")
}

/// Looks through the environments of all processes but those of the battery, which are copies of
/// process 1 and have its memory.
fn secret_of_processes(scene: &Scene<'_>) -> Outcome {
    let wanted = name(scene);
    let own = std::process::id();
    let parent = std::os::unix::process::parent_id();
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|pid| *pid != own && *pid != parent);
    any(others.map(|pid| {
        let path = format!("/proc/{pid}/environ");
        match std::fs::read(&path) {
            Ok(bytes) if bytes.split(|byte| *byte == 0).any(|pair| pair.starts_with(&wanted)) => {
                Outcome::did(format!("read it in {path}"))
            }
            Ok(_) => Outcome::met_at(Layer::View, libc::ENODATA, format!("find it in {path}")),
            Err(error) => Outcome::met(error.raw_os_error().unwrap_or(0), format!("open {path}")),
        }
    }))
}

/// Counts what would stay open when a command is executed: three, and no more.
fn descriptors(_: &Scene<'_>) -> Outcome {
    let entries = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries,
        Err(error) => return Outcome::untried(format!("list /proc/self/fd: {error}")),
    };
    let numbers = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    match numbers.filter(|number| *number > 2).find(|number| stays_open(*number)) {
        Some(number) => {
            let behind = std::fs::read_link(format!("/proc/self/fd/{number}"));
            Outcome::did(format!("descriptor {number} is {:?}", behind.unwrap_or_default()))
        }
        None => Outcome::met_at(Layer::View, libc::EBADF, "find a descriptor beyond the three"),
    }
}

/// `flags` in `fdinfo` is octal; 02000000 is O_CLOEXEC.
fn stays_open(number: u32) -> bool {
    let info = read(&format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    flags.is_some_and(|flags| flags & 0o2_000_000 == 0)
}

fn own_descriptor(_: &Scene<'_>) -> Outcome {
    let file = std::fs::File::open("/dev/null");
    let seen = file.and_then(|file| {
        use std::os::fd::AsRawFd;
        std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
    });
    Outcome::of("see a descriptor of its own", &seen)
}

/// A working directory outside the root is a way out.
fn working_directory(_: &Scene<'_>) -> Outcome {
    match std::fs::read_link("/proc/self/cwd") {
        Ok(path) if path.to_string_lossy().starts_with("(unreachable)") => {
            Outcome::did("the working directory is outside")
        }
        Ok(path) => Outcome::met_at(Layer::View, libc::ENOENT, format!("it is {}", path.display())),
        Err(error) => Outcome::untried(format!("read /proc/self/cwd: {error}")),
    }
}

fn host_name(scene: &Scene<'_>) -> Outcome {
    let wanted = &scene.request.targets.host_name;
    let met = rustix::system::uname().nodename().to_string_lossy() == wanted.as_str();
    if met {
        return Outcome::did("uname shows the host's name");
    }
    match find("/etc/hostname", wanted) {
        seen if seen.succeeded() => seen,
        _ => Outcome::met_at(Layer::Namespace, libc::ENOENT, "find the host's name"),
    }
}

fn machine_id(scene: &Scene<'_>) -> Outcome {
    let wanted = &scene.request.targets.machine_id;
    any(["/etc/machine-id", "/var/lib/dbus/machine-id"].map(|path| find(path, wanted)))
}

fn boot_id(scene: &Scene<'_>) -> Outcome {
    find(BOOT_ID, &scene.request.targets.boot_id)
}

/// Looks for host places in the table of mounts that are no part of the view.
fn mounts(scene: &Scene<'_>) -> Outcome {
    let table = match read("/proc/self/mountinfo") {
        Ok(table) => table,
        Err(error) => return Outcome::untried(format!("read /proc/self/mountinfo: {error}")),
    };
    let outside = &scene.request.targets.outside_directory;
    if !outside.is_empty() && table.contains(outside.as_str()) {
        return Outcome::did(format!("the table of mounts shows {outside}"));
    }
    match mount_of_the_host(&table) {
        Some(line) => Outcome::did(format!("the table of mounts shows {line}")),
        None => Outcome::met_at(Layer::Namespace, libc::ENOENT, "find a mount of the host"),
    }
}

/// A line of such a place. What lies on the sandbox's own space is no place of the host: the way to a workspace
/// or to a tool may lead through one of that name.
fn mount_of_the_host(table: &str) -> Option<&str> {
    const PLACES: [&str; 6] =
        ["/run", "/sys", "/boot", "/sys/fs/cgroup", "/dev/hugepages", "/root"];
    let field = |line: &'_ str, at: usize| line.split(' ').nth(at).map(str::to_owned);
    let own = table.lines().rfind(|line| field(line, 4).as_deref() == Some("/tmp"));
    let own = own.and_then(|line| field(line, 2));
    table.lines().find(|line| {
        let is_one = field(line, 4).is_some_and(|place| PLACES.contains(&place.as_str()));
        is_one && (own.is_none() || field(line, 2) != own)
    })
}

fn control_group_path(_: &Scene<'_>) -> Outcome {
    let table = match read("/proc/self/cgroup") {
        Ok(table) => table,
        Err(error) => return Outcome::untried(format!("read /proc/self/cgroup: {error}")),
    };
    let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    match table.lines().filter_map(path).find(|path| path != "/") {
        Some(path) => Outcome::did(format!("the control group is {path}")),
        None => {
            Outcome::met_at(Layer::Namespace, libc::ENOENT, "find the path of its control group")
        }
    }
}

/// Looks for people in the list of users: ids from 1000 on, but the sandbox's own and nobody's.
fn users(_: &Scene<'_>) -> Outcome {
    let table = match read("/etc/passwd") {
        Ok(table) => table,
        Err(error) => return Outcome::met(error.raw_os_error().unwrap_or(0), "open /etc/passwd"),
    };
    let person = |line: &&str| {
        let mut fields = line.split(':');
        let name = fields.next().unwrap_or_default();
        let id = fields.nth(1).and_then(|id| id.parse::<u32>().ok()).unwrap_or(0);
        (1000..65534).contains(&id) && name != "sandbox"
    };
    match table.lines().find(person) {
        Some(line) => Outcome::did(format!("there is {line}")),
        None => Outcome::met_at(Layer::View, libc::ENOENT, "find a user of the host"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_of_the_host_is_told_from_a_way_through_the_sandboxs_own_space() {
        let own = "30 29 0:44 /1 /tmp rw - tmpfs cofferdam rw\n31 29 0:44 /0 /root ro - tmpfs cofferdam rw\n";
        assert_eq!(mount_of_the_host(own), None);
        for line in [
            "32 29 254:0 /root /root ro - ext4 /dev/vda rw",
            "32 29 0:21 / /run rw - tmpfs tmpfs rw",
            "32 29 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
        ] {
            assert_eq!(mount_of_the_host(&format!("{own}{line}\n")), Some(line));
            assert_eq!(mount_of_the_host(&format!("{line}\n")), Some(line), "without a space");
        }
    }
}
