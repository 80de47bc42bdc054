//! What a sandbox may do beyond the base.

use cofferdam_core::{Profile, User};

/// The choices that change the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surface {
    /// Whether commands may trace each other.
    pub tracing: Tracing,
    /// Who commands are. User 0 of the sandbox may change its root directory.
    pub user: User,
}

/// Whether debuggers work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tracing {
    /// Nobody traces or reads the memory of another process.
    #[default]
    Refused,
    /// Processes of the sandbox may trace each other, as far as the kernel lets a user do so.
    OwnProcesses,
}

impl Surface {
    /// All that there are.
    pub const ALL: [Self; 4] = [
        Self { tracing: Tracing::Refused, user: User::Ordinary },
        Self { tracing: Tracing::Refused, user: User::Root },
        Self { tracing: Tracing::OwnProcesses, user: User::Ordinary },
        Self { tracing: Tracing::OwnProcesses, user: User::Root },
    ];

    /// What this profile gives to this user.
    pub fn of(profile: Profile, user: User) -> Self {
        let tracing = match profile.traces_processes() {
            true => Tracing::OwnProcesses,
            false => Tracing::Refused,
        };
        Self { tracing, user }
    }
}
