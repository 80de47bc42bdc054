//! Facts about this host that every run needs. Cheap: some ten system calls, nothing is tried out.
//!
//! What takes longer, or has to be tried to be known, is [`crate::doctor`]'s.

use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// What a plan is made from, apart from the wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The effective user who asks.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// Whether it may make user namespaces.
    pub user_namespaces: UserNamespaces,
    /// The newest Landlock ABI, 0 without Landlock.
    pub landlock_abi: u32,
    /// Limits that it cannot exceed.
    pub ceilings: Ceilings,
}

/// Whether user namespaces can be made, as far as settings tell.
///
/// `Allowed` is no promise: a container's filter may still refuse, and so may a `/proc` that is not
/// fully visible. Then set-up fails, and [`crate::doctor`] says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserNamespaces {
    /// No setting forbids them.
    Allowed,
    /// A setting forbids them.
    Forbidden(Obstacle),
}

/// A setting that forbids user namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// `user.max_user_namespaces` is 0.
    MaxUserNamespaces,
    /// `kernel.unprivileged_userns_clone` is 0 (Debian's switch).
    UnprivilegedClone,
    /// `kernel.apparmor_restrict_unprivileged_userns` is 1 (Ubuntu 24.04), and no profile excepts
    /// this program.
    AppArmor,
    /// No setting is known, but making one was tried and refused: often a container's filter.
    Refused,
}

/// The hard limits of this process and its user, which no sandbox of an ordinary user can exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceilings {
    /// Open descriptors.
    pub open_files: u64,
    /// Locked memory, in bytes.
    pub locked_bytes: u64,
    /// POSIX message queues, in bytes.
    pub queue_bytes: u64,
    /// Signals that wait, and timers.
    pub signals: u64,
    /// Processes of this user.
    pub processes: u64,
    /// Private writable memory of one process, in bytes.
    pub data_bytes: u64,
    /// Files that all programs of a user may watch.
    pub watches: u64,
}

impl HostFacts {
    /// Looks at this process and at `/proc/sys`.
    pub fn gather() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Self {
            uid,
            gid: rustix::process::getegid().as_raw(),
            user_namespaces: user_namespaces(uid, Path::new("/proc")),
            landlock_abi: cofferdam_guestd::landlock_abi(),
            ceilings: Ceilings::gather(Path::new("/proc")),
        }
    }

    /// Whether the caller is the host's root, so that commands get a user of their own.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// What forbids user namespaces, if a setting does.
    pub fn obstacle(&self) -> Option<Obstacle> {
        match self.user_namespaces {
            UserNamespaces::Allowed => None,
            UserNamespaces::Forbidden(obstacle) => Some(obstacle),
        }
    }
}

impl Ceilings {
    fn gather(proc: &Path) -> Self {
        let watches = std::fs::read_to_string(proc.join("sys/fs/inotify/max_user_watches"));
        let hard = |resource| getrlimit(resource).maximum.unwrap_or(u64::MAX);
        Self {
            open_files: hard(Resource::Nofile),
            locked_bytes: hard(Resource::Memlock),
            queue_bytes: hard(Resource::Msgqueue),
            signals: hard(Resource::Sigpending),
            processes: hard(Resource::Nproc),
            data_bytes: hard(Resource::Data),
            // A kernel without it has nothing to watch with.
            watches: watches.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        }
    }
}

impl Obstacle {
    /// The setting, as somebody would look it up.
    pub fn found(self) -> &'static str {
        match self {
            Self::MaxUserNamespaces => "user.max_user_namespaces = 0",
            Self::UnprivilegedClone => "kernel.unprivileged_userns_clone = 0",
            Self::AppArmor => "kernel.apparmor_restrict_unprivileged_userns = 1",
            Self::Refused => "clone(CLONE_NEWUSER) is refused",
        }
    }

    /// What an administrator can do.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::MaxUserNamespaces => {
                "sudo sysctl -w user.max_user_namespaces=15000  \
                 (lasting: the same line in /etc/sysctl.d/60-cofferdam.conf)"
            }
            Self::UnprivilegedClone => {
                "sudo sysctl -w kernel.unprivileged_userns_clone=1  \
                 (lasting: the same line in /etc/sysctl.d/60-cofferdam.conf)"
            }
            Self::AppArmor => {
                "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile cofferdam \
                 /**/cofferdam flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee \
                 /etc/apparmor.d/cofferdam && sudo apparmor_parser -r /etc/apparmor.d/cofferdam  \
                 (or, for every program: sudo sysctl -w \
                 kernel.apparmor_restrict_unprivileged_userns=0)"
            }
            Self::Refused => {
                "in a container, start it with: --security-opt seccomp=unconfined \
                 --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
            }
        }
    }
}

/// Reads the settings below `proc` that forbid user namespaces to `uid`.
fn user_namespaces(uid: u32, proc: &Path) -> UserNamespaces {
    let is = |name: &str, value: &[u8]| {
        std::fs::read(proc.join(name)).is_ok_and(|text| text.trim_ascii() == value)
    };
    if is("sys/user/max_user_namespaces", b"0") {
        return UserNamespaces::Forbidden(Obstacle::MaxUserNamespaces);
    }
    // The other two switches are for users without privileges only.
    if uid == 0 {
        return UserNamespaces::Allowed;
    }
    if is("sys/kernel/unprivileged_userns_clone", b"0") {
        return UserNamespaces::Forbidden(Obstacle::UnprivilegedClone);
    }
    if is("sys/kernel/apparmor_restrict_unprivileged_userns", b"1") && is_unconfined(proc) {
        return UserNamespaces::Forbidden(Obstacle::AppArmor);
    }
    UserNamespaces::Allowed
}

/// Whether no AppArmor profile is attached to this program. One that is attached was written for it
/// and is taken to allow namespaces.
fn is_unconfined(proc: &Path) -> bool {
    let label = std::fs::read(proc.join("self/attr/apparmor/current"))
        .or_else(|_| std::fs::read(proc.join("self/attr/current")));
    label.map_or(true, |label| label.trim_ascii() == b"unconfined")
}

#[cfg(test)]
pub(crate) mod fake {
    use super::*;

    /// A host that can do everything, as seen by this user.
    pub(crate) fn host(uid: u32) -> HostFacts {
        HostFacts {
            uid,
            gid: uid,
            user_namespaces: UserNamespaces::Allowed,
            landlock_abi: 7,
            ceilings: Ceilings {
                open_files: 1 << 20,
                locked_bytes: 8 << 20,
                queue_bytes: 819_200,
                signals: 96_365,
                processes: 96_365,
                data_bytes: u64::MAX,
                watches: 192_533,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uid: u32, settings: &[(&str, &str)], expected: UserNamespaces) {
        let proc = std::env::temp_dir().join(format!(
            "cofferdam-host-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        for (name, value) in settings {
            let file = proc.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, value).unwrap();
        }
        let found = user_namespaces(uid, &proc);
        std::fs::remove_dir_all(&proc).unwrap();
        assert_eq!(found, expected, "{settings:?}");
    }

    #[test]
    fn each_switch_is_recognised() {
        use UserNamespaces::{Allowed, Forbidden};
        const MAX: &str = "sys/user/max_user_namespaces";
        const CLONE: &str = "sys/kernel/unprivileged_userns_clone";
        const APPARMOR: &str = "sys/kernel/apparmor_restrict_unprivileged_userns";
        const LABEL: &str = "self/attr/apparmor/current";
        check(1000, &[(MAX, "96365\n")], Allowed);
        check(1000, &[(MAX, "0\n")], Forbidden(Obstacle::MaxUserNamespaces));
        check(0, &[(MAX, "0\n")], Forbidden(Obstacle::MaxUserNamespaces));
        check(1000, &[(CLONE, "0\n")], Forbidden(Obstacle::UnprivilegedClone));
        check(0, &[(CLONE, "0\n"), (APPARMOR, "1\n")], Allowed);
        check(1000, &[(APPARMOR, "1\n")], Forbidden(Obstacle::AppArmor));
        check(1000, &[(APPARMOR, "1\n"), (LABEL, "unconfined\n")], Forbidden(Obstacle::AppArmor));
        check(1000, &[(APPARMOR, "1\n"), (LABEL, "cofferdam (unconfined)\n")], Allowed);
        check(1000, &[(APPARMOR, "0\n")], Allowed);
    }

    #[test]
    fn gathering_is_cheap() {
        let best = (0..100)
            .map(|_| {
                let start = std::time::Instant::now();
                std::hint::black_box(HostFacts::gather());
                start.elapsed()
            })
            .min()
            .unwrap();
        // Ten times the budget of 100 µs: this host may be busy, and this is no benchmark.
        assert!(best < std::time::Duration::from_millis(1), "{best:?}");
    }
}
