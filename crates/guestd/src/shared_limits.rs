//! What the kernel counts on the host's user, for all of that user's sandboxes together.
//!
//! A user namespace has a ceiling for some resources: the soft limits of whoever makes it. The kernel holds the
//! sum of what the owner has, inside and outside, against it for each piece that is taken inside. The limits of
//! the processes inside are no such bound: they hold for each user of the namespace, of whom it may have many, and there
//! may be many sandboxes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Those resources: signals that wait and timers, shared memory that is locked, and message queues.
const COUNTED: [Resource; 3] = [Resource::Sigpending, Resource::Memlock, Resource::Msgqueue];

/// Makes a user namespace in which half of what its owner may have can be taken, so that the other half stays for
/// the host's own programs. Whoever is made in it has the limits that we have.
///
/// The caller must have one thread only: meanwhile the limits hold for all of them.
pub fn share_with_host<T>(make: impl FnOnce() -> T) -> T {
    let before = COUNTED.map(|resource| (resource, getrlimit(resource)));
    for (resource, Rlimit { current, maximum }) in before {
        let half = Rlimit { current: current.map(|most| most / 2), maximum };
        // The lower half of what is allowed is allowed.
        let _ = setrlimit(resource, half);
    }
    let made = make();
    for (resource, limit) in before {
        let _ = setrlimit(resource, limit);
    }
    made
}
