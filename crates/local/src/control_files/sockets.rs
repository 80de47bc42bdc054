//! Sockets of programs of the host that stand in the workspace.
//!
//! Whoever may write to the node of a socket may connect to it, whatever network namespace they are in, and
//! neither a read-only mount nor Landlock before its ABI 9 keeps them from it. So a socket that somebody
//! listens at is covered. One that nobody listens at is left alone: a server inside removes its own before
//! it makes it anew, and could not remove what is mounted on.
//!
//! LIMIT: a socket that comes while the sandbox lives is not covered.

use super::Search;
use crate::kernel_path::through;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

impl Search<'_> {
    /// Notes which of these are sockets that somebody listens at.
    pub(super) fn listening(&mut self, sockets: Vec<Vec<u8>>) {
        for path in sockets {
            let Ok(path) = String::from_utf8(path) else { continue };
            let is_one = |node: &OwnedFd| {
                let stat = rustix::fs::fstat(node);
                stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
            };
            let node = self.open_as(&path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC);
            if node.is_ok_and(|node| is_one(&node) && is_listened_at(&node)) {
                self.found.sockets.push(path);
            }
        }
    }
}

/// Whether a connection comes about, or would if it were of another kind.
fn is_listened_at(node: &OwnedFd) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(own) = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
    else {
        return true;
    };
    let Ok(address) = SocketAddrUnix::new(through(node)) else { return true };
    // Of somebody else's that may not be written to, nothing can be reached from inside either.
    !matches!(rustix::net::connect(&own, &address), Err(Errno::CONNREFUSED | Errno::ACCESS))
}
