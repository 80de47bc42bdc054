//! Routes by which every address is the sandbox itself: it has no other interface.

use super::message::{Messages, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use rustix::io::Errno;
use std::net::Ipv4Addr;

// Of linux/rtnetlink.h.
const RTM_NEWROUTE: u16 = 24;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_HOST: u8 = 254;
const RTN_LOCAL: u8 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// The loopback interface is the first of every network namespace.
const LOOPBACK: u32 = 1;

/// Leads every address of IPv4 here, so that a client is 127.0.0.1 whatever it asks for.
pub(super) fn lead_v4_here() -> Result<(), Errno> {
    v4().send(None)
}

/// The same for IPv6.
pub(super) fn lead_v6_here() -> Result<(), Errno> {
    v6().send(None)
}

fn v4() -> Messages {
    default_route(AF_INET, RT_SCOPE_HOST, Some(Ipv4Addr::LOCALHOST))
}

fn v6() -> Messages {
    default_route(AF_INET6, RT_SCOPE_UNIVERSE, None)
}

fn default_route(family: u8, scope: u8, source: Option<Ipv4Addr>) -> Messages {
    let mut messages = Messages::default();
    messages.add(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |body| {
        // To any address, from any address, for any service; then flags, of which there are none.
        body.fixed(&[family, 0, 0, 0, RT_TABLE_LOCAL, RTPROT_BOOT, scope, RTN_LOCAL, 0, 0, 0, 0]);
        body.attribute(RTA_OIF, &LOOPBACK.to_ne_bytes());
        if let Some(source) = source {
            body.attribute(RTA_PREFSRC, &source.octets());
        }
    });
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_routes_are_as_the_kernel_reads_them() {
        if cfg!(target_endian = "big") {
            return;
        }
        #[rustfmt::skip]
        let expected = [
            44_u8, 0, 0, 0, 24, 0, 0x05, 0x06, 0, 0, 0, 0, 0, 0, 0, 0,
            2, 0, 0, 0, 255, 3, 254, 2, 0, 0, 0, 0,
            8, 0, 4, 0, 1, 0, 0, 0,
            8, 0, 7, 0, 127, 0, 0, 1,
        ];
        assert_eq!(v4().bytes(), expected);
        #[rustfmt::skip]
        let expected = [
            36_u8, 0, 0, 0, 24, 0, 0x05, 0x06, 0, 0, 0, 0, 0, 0, 0, 0,
            10, 0, 0, 0, 255, 3, 0, 2, 0, 0, 0, 0,
            8, 0, 4, 0, 1, 0, 0, 0,
        ];
        assert_eq!(v6().bytes(), expected);
    }
}
