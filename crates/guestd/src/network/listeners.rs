//! The sockets that the gate accepts on.

use crate::apply::{CallFailed, During};
use cofferdam_wire::plan::{Families, Listen, Transport};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, listen as listen_on, socket_with, sockopt,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// How many connections wait to be accepted. More are tried again by their clients' kernel, which is
/// the same one.
const BACKLOG: i32 = 256;

/// Whether sockets of IPv6 can be made.
pub(super) fn has_v6() -> Result<(), Errno> {
    let (family, flags) = (AddressFamily::INET6, SocketFlags::CLOEXEC);
    socket_with(family, SocketType::DGRAM, flags, None).map(drop)
}

/// Makes these sockets, in this order. Each is bound to every address, so that nobody else can be
/// bound to its port of any.
pub(crate) fn listen(wanted: &[Listen]) -> Result<Vec<OwnedFd>, CallFailed> {
    let one = |listen: &Listen| make(*listen).during(|| format!("listen on port {}", listen.port));
    wanted.iter().map(one).collect()
}

fn make(Listen { transport, families, port }: Listen) -> Result<OwnedFd, Errno> {
    let kind = match transport {
        Transport::Tcp => SocketType::STREAM,
        Transport::Udp => SocketType::DGRAM,
    };
    let (family, address): (_, SocketAddr) = match families {
        Families::V4 => (AddressFamily::INET, (Ipv4Addr::UNSPECIFIED, port).into()),
        Families::V6 | Families::Both => {
            (AddressFamily::INET6, (Ipv6Addr::UNSPECIFIED, port).into())
        }
    };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    if family == AddressFamily::INET6 {
        sockopt::set_ipv6_v6only(&socket, families == Families::V6)?;
    }
    bind(&socket, &address)?;
    if transport == Transport::Tcp {
        listen_on(&socket, BACKLOG)?;
    }
    Ok(socket)
}
