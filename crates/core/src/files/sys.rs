//! What the runtime asks a promise for.
#![expect(unsafe_code, reason = "to watch a socket for one direction alone is only offered so")]

use std::io;
use std::os::unix::net::UnixStream;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A socket watched on the current runtime for this and nothing else, which then wakes nobody.
pub(super) fn watched_for(
    socket: UnixStream,
    interest: Interest,
) -> io::Result<AsyncFd<UnixStream>> {
    // SAFETY: the socket is owned, so that its descriptor is open and the same one for as long as it is watched.
    unsafe { AsyncFd::register_with_interest(socket, interest) }.map_err(Into::into)
}
