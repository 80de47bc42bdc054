//! What one try met, and which layer is behind it.

use cofferdam_wire::message::Attempt;
use std::io;

/// What the attack of a check says that attacks nothing: a check of usability is all control.
pub const USABILITY: &str = "nothing to attack: this is a check of usability";

/// What one try met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What happened.
    pub(super) attempt: Attempt,
    /// The layer, where the try itself could tell.
    pub(super) layer: Option<Layer>,
}

/// What stops attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// It is not in the file view.
    View,
    /// It is in another namespace.
    Namespace,
    /// The system call filter.
    Seccomp,
    /// Landlock.
    Landlock,
    /// The capability is missing.
    Capability,
    /// Owner, mode bits, or the kernel's own rules.
    Permission,
    /// A limit.
    Limit,
    /// The mount's flags, or that it is a mount.
    Mount,
    /// It cannot be told.
    Unknown,
}

/// Which way an attack takes; it decides how an error number reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// By a path.
    Path,
    /// By a system call that the kernel itself would not refuse with EPERM.
    Call,
    /// By a system call that needs a capability: filter and kernel refuse alike.
    Privileged,
    /// Over the network.
    Network,
    /// To another process.
    Process,
    /// By using much.
    Amount,
}

impl Layer {
    /// Its stable name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Namespace => "namespace",
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::Capability => "capability",
            Self::Permission => "permission",
            Self::Limit => "limit",
            Self::Mount => "mount",
            Self::Unknown => "unknown",
        }
    }

    /// The layer of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [
            Self::View,
            Self::Namespace,
            Self::Seccomp,
            Self::Landlock,
            Self::Capability,
            Self::Permission,
            Self::Limit,
            Self::Mount,
            Self::Unknown,
        ]
        .into_iter()
        .find(|layer| layer.name() == name)
    }

    /// The layer that gives this error to an attack by this door.
    pub(super) fn infer(door: Door, errno: i32) -> Self {
        match (door, errno) {
            (Door::Call, libc::EPERM | libc::ENOSYS) | (_, libc::ENOSYS) => Self::Seccomp,
            (Door::Privileged, libc::EPERM) => Self::Capability,
            // An id that stands for none outside.
            (Door::Privileged, libc::EINVAL) => Self::Namespace,
            (
                Door::Path,
                libc::EEXIST | libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ENXIO,
            ) => Self::View,
            (_, libc::EROFS | libc::EBUSY | libc::EXDEV) => Self::Mount,
            (Door::Network, libc::ENOENT) => Self::View,
            (
                Door::Network,
                libc::ENETUNREACH | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::EADDRNOTAVAIL,
            )
            | (Door::Process, libc::ESRCH | libc::ENOENT) => Self::Namespace,
            (Door::Network, libc::EPERM | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
                Self::Seccomp
            }
            (Door::Call | Door::Amount, libc::ENOSPC | libc::EAGAIN | libc::ENOMEM) => Self::Limit,
            (_, libc::EACCES | libc::EPERM) => Self::Permission,
            _ => Self::Unknown,
        }
    }
}

impl Outcome {
    /// It did what it meant to.
    pub(super) fn did(what: impl Into<String>) -> Self {
        Self { attempt: Attempt::Succeeded(what.into()), layer: None }
    }

    /// This error was met.
    pub(super) fn met(errno: i32, call: impl Into<String>) -> Self {
        Self { attempt: Attempt::Failed { errno, call: call.into() }, layer: None }
    }

    /// This error was met, and the layer is known.
    pub(super) fn met_at(layer: Layer, errno: i32, call: impl Into<String>) -> Self {
        Self { attempt: Attempt::Failed { errno, call: call.into() }, layer: Some(layer) }
    }

    /// It could not be tried.
    pub(super) fn untried(reason: impl Into<String>) -> Self {
        Self { attempt: Attempt::NotTried(reason.into()), layer: None }
    }

    /// Reads a result of the standard library.
    pub(super) fn of<T>(call: &str, result: &io::Result<T>) -> Self {
        match result {
            Ok(_) => Self::did(call),
            Err(error) => Self::met(error.raw_os_error().unwrap_or(0), call),
        }
    }

    /// Reads a raw system call.
    pub(super) fn of_call(call: &str, result: Result<usize, i32>) -> Self {
        match result {
            Ok(value) => Self::did(format!("{call} = {value}")),
            Err(errno) => Self::met(errno, call),
        }
    }

    /// Whether it did what it meant to.
    pub(super) fn succeeded(&self) -> bool {
        matches!(self.attempt, Attempt::Succeeded(_))
    }

    /// A control that found `true`.
    pub(super) fn claim(holds: Holds, what: &str) -> Self {
        match holds {
            Holds::Yes => Self::did(what),
            Holds::No => Self::met(0, what),
        }
    }
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Yes.
    Yes,
    /// No.
    No,
}

impl From<bool> for Holds {
    fn from(value: bool) -> Self {
        if value { Self::Yes } else { Self::No }
    }
}

/// The first success of several tries, else the first error, else that nothing could be tried.
pub(super) fn any(tries: impl IntoIterator<Item = Outcome>) -> Outcome {
    let mut first_error = None;
    let mut first_untried = None;
    for outcome in tries {
        match outcome.attempt {
            Attempt::Succeeded(_) => return outcome,
            Attempt::Failed { .. } => first_error = first_error.or(Some(outcome)),
            Attempt::NotTried(_) => first_untried = first_untried.or(Some(outcome)),
        }
    }
    first_error.or(first_untried).unwrap_or_else(|| Outcome::untried("there is nothing to try"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_its_layer() {
        let check = |door, errno, layer| assert_eq!(Layer::infer(door, errno), layer);
        check(Door::Call, libc::EPERM, Layer::Seccomp);
        check(Door::Privileged, libc::EPERM, Layer::Capability);
        check(Door::Privileged, libc::ENOSYS, Layer::Seccomp);
        check(Door::Path, libc::ENOENT, Layer::View);
        check(Door::Path, libc::EROFS, Layer::Mount);
        check(Door::Path, libc::EACCES, Layer::Permission);
        check(Door::Network, libc::ENETUNREACH, Layer::Namespace);
        check(Door::Network, libc::EAFNOSUPPORT, Layer::Seccomp);
        check(Door::Process, libc::ESRCH, Layer::Namespace);
        check(Door::Amount, libc::EAGAIN, Layer::Limit);
        check(Door::Path, 9999, Layer::Unknown);
    }

    #[test]
    fn one_success_among_many_tries_counts() {
        let error = || Outcome::met(libc::EPERM, "a");
        assert!(any([error(), Outcome::did("b"), Outcome::untried("c")]).succeeded());
        assert_eq!(any([Outcome::untried("c"), error()]), error());
        assert!(matches!(any([]).attempt, Attempt::NotTried(_)));
    }

    #[test]
    fn a_layer_survives_its_name() {
        assert_eq!(Layer::named("landlock"), Some(Layer::Landlock));
        assert_eq!(Layer::named("luck"), None);
    }
}
