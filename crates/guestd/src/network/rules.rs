//! The rules of the packet filter inside: TCP of any destination and questions for names are led to
//! the gate's sockets, and everything else that would leave fails at once.
//!
//! They are there so that programs need no setting. What keeps the sandbox inside is that its
//! network has no interface but loopback: without these rules nothing is reached at all.

use super::message::{Body, Messages, NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;

const TABLE: &str = "cofferdam";
const LEAD: &str = "lead";
const HOLD: &str = "hold";

// Of linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const FAMILY_UNSPECIFIED: u8 = 0;
const FAMILY_INET: u8 = 1;
const HOOK_OUTPUT: u32 = 3;
const NAT_BEFORE_FILTER: i32 = -100;
const DROP: i32 = 0;
const ACCEPT: i32 = 1;
const RETURN: i32 = -5;
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const META_PROTOCOL_FAMILY: u32 = 15;
const META_TRANSPORT: u32 = 16;
const IN_NETWORK_HEADER: u32 = 1;
const IN_TRANSPORT_HEADER: u32 = 2;
const V4: u8 = 2;
const V6: u8 = 10;
const TCP: u8 = 6;
const UDP: u8 = 17;
const NAMES_PORT: u16 = 53;
const CT_STATE: u32 = 0;
const CT_ESTABLISHED: u32 = 1 << 1;

/// Where the destination stands in a header of IPv4 and of IPv6.
const V4_DESTINATION: u32 = 16;
const V6_DESTINATION: u32 = 24;
/// All of 127.0.0.0/8, by its first byte.
const V4_LOOPBACK: [u8; 1] = [127];
const V6_LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Sets the rules: all of them or none.
pub(super) fn set(transparent: u16, names: u16) -> Result<(), Errno> {
    messages(transparent, names).send(Some(NETFILTER))
}

fn messages(transparent: u16, names: u16) -> Messages {
    let mut messages = Messages::default();
    messages.add(BATCH_BEGIN, 0, |body| body.fixed(&batch_header()));
    messages.add(NEW_TABLE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |body| {
        body.fixed(&header());
        body.text(1, TABLE);
    });
    chain(&mut messages, LEAD, "nat", NAT_BEFORE_FILTER, ACCEPT);
    chain(&mut messages, HOLD, "filter", 0, DROP);
    let back = |rule: &mut Rule<'_, '_>| rule.verdict(RETURN);
    to_loopback(&mut messages, LEAD, back);
    // ORDER: names first, which may be asked for over TCP too.
    lead(&mut messages, TCP, Some(NAMES_PORT), names);
    lead(&mut messages, TCP, None, transparent);
    lead(&mut messages, UDP, Some(NAMES_PORT), names);
    let accept = |rule: &mut Rule<'_, '_>| rule.verdict(ACCEPT);
    to_loopback(&mut messages, HOLD, accept);
    // The answers to a client that has bound itself to another address.
    rule(&mut messages, HOLD, |rule| {
        rule.expression("ct", |body| {
            body.number(1, REGISTER);
            body.number(2, CT_STATE);
        });
        rule.mask(&CT_ESTABLISHED.to_ne_bytes());
        rule.compare(NOT_EQUAL, &[0; 4]);
        rule.verdict(ACCEPT);
    });
    messages.add(BATCH_END, 0, |body| body.fixed(&batch_header()));
    messages
}

fn header() -> [u8; 4] {
    [FAMILY_INET, 0, 0, 0]
}

fn batch_header() -> [u8; 4] {
    let [high, low] = SUBSYSTEM.to_be_bytes();
    [FAMILY_UNSPECIFIED, 0, high, low]
}

fn chain(messages: &mut Messages, name: &str, kind: &str, priority: i32, policy: i32) {
    messages.add(NEW_CHAIN, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, |body| {
        body.fixed(&header());
        body.text(1, TABLE);
        body.text(3, name);
        body.nested(4, |body| {
            body.number(1, HOOK_OUTPUT);
            body.attribute(2, &priority.to_be_bytes());
        });
        body.attribute(5, &policy.to_be_bytes());
        body.text(7, kind);
    });
}

/// What goes to the loopback addresses stays inside by itself.
fn to_loopback(messages: &mut Messages, name: &str, verdict: impl Fn(&mut Rule<'_, '_>)) {
    for (family, offset, address) in
        [(V4, V4_DESTINATION, &V4_LOOPBACK[..]), (V6, V6_DESTINATION, &V6_LOOPBACK[..])]
    {
        rule(messages, name, |rule| {
            rule.meta(META_PROTOCOL_FAMILY);
            rule.compare(EQUAL, &[family]);
            rule.payload(IN_NETWORK_HEADER, offset, address.len());
            rule.compare(EQUAL, address);
            verdict(rule);
        });
    }
}

/// Leads what goes to this port, or to any, to a port of the loopback address.
fn lead(messages: &mut Messages, transport: u8, port: Option<u16>, to: u16) {
    rule(messages, LEAD, |rule| {
        rule.meta(META_TRANSPORT);
        rule.compare(EQUAL, &[transport]);
        if let Some(port) = port {
            rule.payload(IN_TRANSPORT_HEADER, 2, 2);
            rule.compare(EQUAL, &port.to_be_bytes());
        }
        rule.expression("immediate", |body| {
            body.number(1, REGISTER);
            body.nested(2, |body| body.attribute(1, &to.to_be_bytes()));
        });
        rule.expression("redir", |body| {
            body.number(1, REGISTER);
            body.number(2, REGISTER);
        });
    });
}

fn rule(messages: &mut Messages, chain: &str, expressions: impl FnOnce(&mut Rule<'_, '_>)) {
    messages.add(NEW_RULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND, |body| {
        body.fixed(&header());
        body.text(1, TABLE);
        body.text(2, chain);
        body.nested(4, |body| expressions(&mut Rule(body)));
    });
}

/// The expressions of one rule: each works on what the one before left in the register, and a
/// comparison that fails ends the rule.
struct Rule<'a, 'b>(&'a mut Body<'b>);

impl Rule<'_, '_> {
    fn expression(&mut self, name: &str, data: impl FnOnce(&mut Body<'_>)) {
        self.0.nested(1, |body| {
            body.text(1, name);
            body.nested(2, data);
        });
    }

    fn meta(&mut self, key: u32) {
        self.expression("meta", |body| {
            body.number(1, REGISTER);
            body.number(2, key);
        });
    }

    fn payload(&mut self, base: u32, offset: u32, length: usize) {
        self.expression("payload", |body| {
            body.number(1, REGISTER);
            body.number(2, base);
            body.number(3, offset);
            body.number(4, u32::try_from(length).unwrap_or(0));
        });
    }

    fn compare(&mut self, how: u32, value: &[u8]) {
        self.expression("cmp", |body| {
            body.number(1, REGISTER);
            body.number(2, how);
            body.nested(3, |body| body.attribute(1, value));
        });
    }

    fn mask(&mut self, bits: &[u8; 4]) {
        self.expression("bitwise", |body| {
            body.number(1, REGISTER);
            body.number(2, REGISTER);
            body.number(3, 4);
            body.nested(4, |body| body.attribute(1, bits));
            body.nested(5, |body| body.attribute(1, &[0; 4]));
        });
    }

    fn verdict(&mut self, code: i32) {
        self.expression("immediate", |body| {
            body.number(1, VERDICT);
            body.nested(2, |body| {
                body.nested(2, |body| body.attribute(1, &code.to_be_bytes()));
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds and flags of the messages, in order.
    fn outline(bytes: &[u8]) -> Vec<(u16, u16)> {
        let mut found = Vec::new();
        let mut rest = bytes;
        while let Some(head) = rest.first_chunk::<8>() {
            let [a, b, c, d, kind @ .., e, f] = *head;
            found.push((u16::from_ne_bytes(kind), u16::from_ne_bytes([e, f])));
            rest = &rest[usize::try_from(u32::from_ne_bytes([a, b, c, d])).unwrap()..];
        }
        assert!(rest.is_empty());
        found
    }

    #[test]
    fn the_rules_are_one_batch_that_asks_for_every_answer() {
        let found = outline(messages(61001, 61053).bytes());
        let kinds: Vec<u16> = found.iter().map(|(kind, _)| *kind).collect();
        let mut expected = vec![BATCH_BEGIN, NEW_TABLE, NEW_CHAIN, NEW_CHAIN];
        expected.extend([NEW_RULE; 8]);
        expected.push(BATCH_END);
        assert_eq!(kinds, expected);
        let inner = &found[1..found.len() - 1];
        assert!(inner.iter().all(|(_, flags)| flags & NLM_F_ACK != 0));
    }

    #[test]
    fn a_rule_that_leads_names_the_port_as_networks_write_it() {
        if cfg!(target_endian = "big") {
            return;
        }
        let mut messages = Messages::default();
        lead(&mut messages, UDP, Some(53), 61053);
        #[rustfmt::skip]
        let expected: &[u8] = &[
            // NFT_MSG_NEWRULE, REQUEST | ACK | CREATE | APPEND
            52, 1, 0, 0, 6, 10, 0x05, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0,
            1, 0, 0, 0,
            14, 0, 1, 0, b'c', b'o', b'f', b'f', b'e', b'r', b'd', b'a', b'm', 0, 0, 0,
            9, 0, 2, 0, b'l', b'e', b'a', b'd', 0, 0, 0, 0,
            4, 1, 4, 0x80,
            // meta l4proto => reg 1
            36, 0, 1, 0x80, 9, 0, 1, 0, b'm', b'e', b't', b'a', 0, 0, 0, 0,
            20, 0, 2, 0x80, 8, 0, 1, 0, 0, 0, 0, 1, 8, 0, 2, 0, 0, 0, 0, 16,
            // cmp eq reg 1 17
            44, 0, 1, 0x80, 8, 0, 1, 0, b'c', b'm', b'p', 0,
            32, 0, 2, 0x80, 8, 0, 1, 0, 0, 0, 0, 1, 8, 0, 2, 0, 0, 0, 0, 0,
            12, 0, 3, 0x80, 5, 0, 1, 0, 17, 0, 0, 0,
            // payload load 2 bytes at transport header + 2 => reg 1
            52, 0, 1, 0x80, 12, 0, 1, 0, b'p', b'a', b'y', b'l', b'o', b'a', b'd', 0,
            36, 0, 2, 0x80, 8, 0, 1, 0, 0, 0, 0, 1, 8, 0, 2, 0, 0, 0, 0, 2,
            8, 0, 3, 0, 0, 0, 0, 2, 8, 0, 4, 0, 0, 0, 0, 2,
            // cmp eq reg 1 53
            44, 0, 1, 0x80, 8, 0, 1, 0, b'c', b'm', b'p', 0,
            32, 0, 2, 0x80, 8, 0, 1, 0, 0, 0, 0, 1, 8, 0, 2, 0, 0, 0, 0, 0,
            12, 0, 3, 0x80, 6, 0, 1, 0, 0, 53, 0, 0,
        ];
        assert_eq!(messages.bytes().get(..expected.len()), Some(expected));
        #[rustfmt::skip]
        let rest: &[u8] = &[
            // immediate reg 1 61053
            44, 0, 1, 0x80, 14, 0, 1, 0, b'i', b'm', b'm', b'e', b'd', b'i', b'a', b't', b'e', 0, 0, 0,
            24, 0, 2, 0x80, 8, 0, 1, 0, 0, 0, 0, 1, 12, 0, 2, 0x80, 6, 0, 1, 0, 0xee, 0x7d, 0, 0,
            // redir proto min reg 1 max reg 1
            36, 0, 1, 0x80, 10, 0, 1, 0, b'r', b'e', b'd', b'i', b'r', 0, 0, 0,
            20, 0, 2, 0x80, 8, 0, 1, 0, 0, 0, 0, 1, 8, 0, 2, 0, 0, 0, 0, 1,
        ];
        assert_eq!(messages.bytes().get(expected.len()..), Some(rest));
    }
}
