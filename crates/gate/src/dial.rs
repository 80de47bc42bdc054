//! Connects to an address that was decided on, and to no other.

use crate::admit::Refusal;
use cofferdam_core::NetworkPolicy;
use cofferdam_core::policy::{AddressClass, Decision, address_class, is_listed};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpStream, UdpSocket};

/// Connects to this address. One of this machine's own is not public, whatever it looks like: where it
/// does, it is dialed only if it is listed by itself.
pub(crate) async fn dial(
    policy: &NetworkPolicy,
    target: SocketAddr,
    patience: Duration,
) -> Result<TcpStream, Refusal> {
    let may_be_own = address_class(target.ip()) != AddressClass::Public
        || is_listed(policy, target.ip(), target.port());
    if !may_be_own && is_own(target.ip()).await {
        return Err(own(target));
    }
    let stream = match tokio::time::timeout(patience, TcpStream::connect(target)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            return Err(Refusal::Failed { reason: format!("{target}: {error}"), is_late: false });
        }
        Err(_) => {
            let reason = format!("{target} did not answer in time");
            return Err(Refusal::Failed { reason, is_late: true });
        }
    };
    let peer = stream.peer_addr().map_err(broken)?;
    if peer.ip().to_canonical() != target.ip().to_canonical() || peer.port() != target.port() {
        let reason = format!("{target} was dialed, and {peer} answered");
        return Err(Refusal::Failed { reason, is_late: false });
    }
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Whether this address is one of this machine's: then a socket can have it. Nothing is sent. Where a
/// machine lets sockets have any address, every address counts as its own.
async fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).await.is_ok()
}

fn own(target: SocketAddr) -> Refusal {
    Refusal::Denied(Decision {
        allowed: false,
        rule: None,
        reason: Some(format!("{} is this machine's own, and no rule lists it", target.ip())),
        remedy: Some(format!("--egress {target}")),
    })
}

fn broken(error: io::Error) -> Refusal {
    Refusal::Failed { reason: error.to_string(), is_late: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_a_socket_can_have_is_this_machines_own() {
        for own in ["127.0.0.1", "127.0.0.2", "127.200.1.1"] {
            assert!(is_own(own.parse().unwrap()).await, "{own}");
        }
        for other in ["1.1.1.1", "192.0.2.1", "2001:db8::1"] {
            assert!(!is_own(other.parse().unwrap()).await, "{other}");
        }
    }
}
