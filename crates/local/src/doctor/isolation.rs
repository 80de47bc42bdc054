//! Facts about what the kernel can isolate.

use super::{Fact, State};
use crate::host::{HostFacts, Obstacle, UserNamespaces};
use std::path::Path;
use std::process::{Command, Stdio};

/// The oldest kernel with everything that the namespace tier uses: `mount_setattr` with id maps.
const OLDEST: (u32, u32) = (5, 12);

pub(super) fn kernel() -> Fact {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= OLDEST {
        Fact::new("kernel", State::Ok, release, "new enough for every mount that is made")
    } else {
        Fact::new("kernel", State::Missing, release, "too old: mounts cannot be made as needed")
            .remedy("Use Linux 5.12 or newer.")
    }
}

pub(super) fn user_namespaces(facts: &HostFacts) -> Fact {
    const NAME: &str = "user_namespaces";
    const WITHOUT: &str = "only the weaker tier of Landlock and system call filter is left, and \
                           runs are refused unless --on-unavailable degrade is given";
    let forbidden = |obstacle: Obstacle| {
        Fact::new(NAME, State::Forbidden, obstacle.found(), WITHOUT).remedy(obstacle.remedy())
    };
    match (facts.user_namespaces, unshare(&["-Ur", "true"])) {
        // What a setting forbids to this program may be allowed to unshare(1) by a profile of its
        // own, so the setting is believed first.
        (UserNamespaces::Forbidden(obstacle), _) => forbidden(obstacle),
        (UserNamespaces::Allowed, Tried::Worked) => {
            Fact::new(NAME, State::Ok, "one was made", "sandboxes have namespaces of their own")
        }
        (UserNamespaces::Allowed, Tried::Failed(error)) => {
            let mut fact = forbidden(Obstacle::Refused);
            fact.found = error;
            fact
        }
        (UserNamespaces::Allowed, Tried::NoProgram) => Fact::new(
            NAME,
            State::Unknown,
            "no setting forbids them; unshare(1) is not there to try",
            "sandboxes probably have namespaces of their own; `cofferdam probe` knows",
        ),
    }
}

/// A process file system can be mounted in a user namespace only where one is fully visible.
pub(super) fn proc_file_system(facts: &HostFacts) -> Fact {
    const NAME: &str = "proc";
    if facts.obstacle().is_some() {
        let found = "not tried without user namespaces";
        return Fact::new(NAME, State::Unknown, found, "the weaker tier uses the host's own");
    }
    match unshare(&["-Urpf", "--mount-proc", "true"]) {
        Tried::Worked => Fact::new(NAME, State::Ok, "one was mounted", "processes are private"),
        Tried::Failed(error) => Fact::new(
            NAME,
            State::Forbidden,
            error,
            "no sandbox can have a /proc of its own, so none with namespaces starts",
        )
        .remedy(
            "In a container, show /proc in full: docker run --security-opt systempaths=unconfined",
        ),
        Tried::NoProgram => Fact::new(
            NAME,
            State::Unknown,
            "unshare(1) is not there to try",
            "processes are probably private; `cofferdam probe` knows",
        ),
    }
}

enum Tried {
    Worked,
    Failed(String),
    NoProgram,
}

/// Tries it in a process of its own, so that nothing of this one changes.
fn unshare(words: &[&str]) -> Tried {
    let program = ["/usr/bin/unshare", "/bin/unshare"].into_iter().find(|p| Path::new(p).exists());
    let Some(program) = program else { return Tried::NoProgram };
    let output = Command::new(program)
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Tried::Worked,
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            Tried::Failed(error.lines().next().unwrap_or("unshare failed").trim().to_owned())
        }
        Err(_) => Tried::NoProgram,
    }
}

pub(super) fn landlock(abi: u32) -> Fact {
    const NAME: &str = "landlock";
    const REMEDY: &str = "Start the kernel with lsm=landlock,… among its parameters (see \
                          /sys/kernel/security/lsm); Linux 6.12 or newer has ABI 6.";
    let found = format!("ABI {abi}");
    match abi {
        0 => Fact::new(NAME, State::Missing, "none", "sandboxes lack their second layer")
            .remedy(REMEDY),
        1..=3 => Fact::new(
            NAME,
            State::Ok,
            found,
            "a second layer over files; it does not know TCP, signals or abstract sockets",
        ),
        4..=5 => Fact::new(
            NAME,
            State::Ok,
            found,
            "a second layer over files and TCP; it does not know signals or abstract sockets",
        ),
        _ => Fact::new(
            NAME,
            State::Ok,
            found,
            "a second layer over files, TCP, signals and abstract sockets",
        ),
    }
}

pub(super) fn seccomp() -> Fact {
    const NAME: &str = "seccomp";
    let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
    match actions {
        Ok(actions) if actions.contains("errno") && actions.contains("kill_process") => {
            let consequence = "system calls that no build needs are closed";
            Fact::new(NAME, State::Ok, "filters with all actions", consequence)
        }
        Ok(actions) => Fact::new(
            NAME,
            State::Missing,
            actions.trim(),
            "the system call filter cannot be loaded, so nothing starts",
        )
        .remedy("Use a kernel of 4.14 or newer with CONFIG_SECCOMP_FILTER."),
        Err(_) => Fact::new(
            NAME,
            State::Unknown,
            "/proc/sys/kernel/seccomp cannot be read",
            "whether the filter loads shows only when it is tried; `cofferdam probe` knows",
        ),
    }
}

/// Mounts layers as a sandbox does, where nobody sees it.
const TRY_OVERLAY: &str = "mount -t tmpfs none /tmp && cd /tmp && mkdir l u w m && \
                           mount -t overlay -o userxattr,lowerdir=l,upperdir=u,workdir=w none m";

pub(super) fn overlay(facts: &HostFacts) -> Fact {
    const NAME: &str = "overlayfs";
    const WITHOUT: &str = "copy-on-write workspaces (--cow) are copied first, and with a way out \
                           cargo and Go add nothing to their caches; all else works";
    const NEITHER: &str = "copy-on-write workspaces (--cow) are not possible; all else works";
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known.lines().any(|line| line.split_whitespace().last() == Some("overlay")) {
        let without = if facts.obstacle().is_some() { NEITHER } else { WITHOUT };
        return Fact::new(NAME, State::Missing, "not known to the kernel", without)
            .remedy("sudo modprobe overlay");
    }
    if let Some(obstacle) = facts.obstacle() {
        let found = "known to the kernel, but there are no user namespaces to use it in";
        return Fact::new(NAME, State::Forbidden, found, NEITHER).remedy(obstacle.remedy());
    }
    match unshare(&["-Urm", "sh", "-c", TRY_OVERLAY]) {
        Tried::Worked => {
            let consequence =
                "copy-on-write workspaces (--cow) are layers, and nothing is copied first";
            Fact::new(NAME, State::Ok, "mounted in a user namespace", consequence)
        }
        Tried::Failed(error) => Fact::new(NAME, State::Forbidden, error, WITHOUT)
            .remedy("Use Linux 5.11 or newer, outside of a container that forbids mounts."),
        Tried::NoProgram => Fact::new(
            NAME,
            State::Unknown,
            "known to the kernel; unshare(1) is not there to try",
            "copy-on-write workspaces (--cow) are probably layers, and copied first where not",
        ),
    }
}
