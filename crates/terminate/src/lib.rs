//! TLS that ends on the host, for the few hosts that are given a secret.
//!
//! A sandbox holds a placeholder. For a host that a [`SecretGrant`](cofferdam_core::secret::SecretGrant)
//! names, and for no other, the gate hands its connection to a [`Terminator`]: that serves TLS by an
//! [`Authority`] of this session alone, reads requests, puts the value where the placeholder stands, and
//! sends them on over TLS that it verifies by the system's authorities. Everything else passes as it is.
//!
//! A placeholder on its way to another host, and a canary on its way to any, are told at once, also when the
//! host has answered before the request was whole; the request that held it goes nowhere as a whole, and its
//! connection ends. A request that is refused for what it is, is told too.
//!
//! LIMIT: HTTP/1.1 alone is spoken; a host that knows only HTTP/2 is not reached. A host that answers with
//! what it was sent shows the value to the sandbox.

mod authority;
mod body;
mod granting;
mod injector;
mod jks;
mod terminator;
mod trust;
mod upstream;
mod watch;

pub use authority::{Authority, MAX_LEAVES};
pub use granting::granted;
pub use injector::{Injector, placeholder};
pub use terminator::{
    FAREWELL_WITHIN, HANDSHAKE_WITHIN, HEAD_WITHIN, HOLDS_BACK, MAX_HEAD_BYTES, MAX_HEADERS,
    Notice, Terminated, Terminator,
};
pub use trust::{JAVA_STORE, OWN_CERTIFICATE, SYSTEM_BUNDLES, Trust, WHOLE_BUNDLE, trust};
pub use upstream::Upstream;
pub use watch::{Sighting, Watch};
