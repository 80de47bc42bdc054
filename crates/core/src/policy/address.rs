//! Which addresses are public, and what the others are.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressClass {
    /// A place on the public network.
    Public,
    /// This machine.
    Loopback,
    /// A place on somebody's own network.
    Private,
    /// A neighbour on the same wire. Most machines that are rented keep their secrets there.
    LinkLocal,
    /// Several places.
    Multicast,
    /// A service of the provider for its machines, at an address that looks public.
    Metadata,
    /// None: unspecified, broadcast, set aside for documents, tests or the future.
    Reserved,
    /// An address of IPv4 in the form of one of IPv6, by a way that leaves the checked path.
    Embedded,
}

impl AddressClass {
    /// What such an address is, in words for somebody who is to open it; `None` of a public one.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Public => None,
            Self::Loopback => Some("an address of this machine itself"),
            Self::Private => Some("an address of a private network"),
            Self::LinkLocal => Some("an address on the wire of this machine (link-local)"),
            Self::Multicast => Some("an address of several machines (multicast)"),
            Self::Metadata => Some("the address of a metadata service"),
            Self::Reserved => Some("a reserved address"),
            Self::Embedded => Some("an address with another one in it"),
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Multicast => "multicast",
            Self::Metadata => "a metadata service",
            Self::Reserved => "reserved",
            Self::Embedded => "an embedded address",
        })
    }
}

/// Addresses of IPv4 that are not public, by their registry of special purposes.
const SPECIAL_V4: [([u8; 4], u8, AddressClass); 17] = [
    ([0, 0, 0, 0], 8, AddressClass::Reserved),
    ([10, 0, 0, 0], 8, AddressClass::Private),
    ([100, 64, 0, 0], 10, AddressClass::Private),
    ([127, 0, 0, 0], 8, AddressClass::Loopback),
    // The service of one provider that stands on an address of the public space.
    ([168, 63, 129, 16], 32, AddressClass::Metadata),
    ([169, 254, 0, 0], 16, AddressClass::LinkLocal),
    ([172, 16, 0, 0], 12, AddressClass::Private),
    ([192, 0, 0, 0], 24, AddressClass::Reserved),
    ([192, 0, 2, 0], 24, AddressClass::Reserved),
    ([192, 31, 196, 0], 24, AddressClass::Reserved),
    ([192, 88, 99, 0], 24, AddressClass::Embedded),
    ([192, 168, 0, 0], 16, AddressClass::Private),
    ([198, 18, 0, 0], 15, AddressClass::Reserved),
    ([198, 51, 100, 0], 24, AddressClass::Reserved),
    ([203, 0, 113, 0], 24, AddressClass::Reserved),
    ([224, 0, 0, 0], 4, AddressClass::Multicast),
    ([240, 0, 0, 0], 4, AddressClass::Reserved),
];

/// Of IPv6 only [`GLOBAL_V6`] is public; these are not, though they are within it, or have a name.
const SPECIAL_V6: [(u128, u8, AddressClass); 14] = [
    (0, 128, AddressClass::Reserved),
    (1, 128, AddressClass::Loopback),
    // Compatible with IPv4, which nothing uses, and mapped, which is read as IPv4 beforehand.
    (0, 96, AddressClass::Embedded),
    (0xffff << 32, 96, AddressClass::Embedded),
    // Translated by a rule of the network's own.
    (0x64_ff9b_0001 << 80, 48, AddressClass::Embedded),
    (0x2001 << 112, 32, AddressClass::Embedded),
    (0x2001 << 112, 23, AddressClass::Reserved),
    (0x2001_0db8 << 96, 32, AddressClass::Reserved),
    (0x2002 << 112, 16, AddressClass::Embedded),
    (0x3fff << 112, 20, AddressClass::Reserved),
    (0xfc00 << 112, 7, AddressClass::Private),
    (0xfe80 << 112, 10, AddressClass::LinkLocal),
    (0xfec0 << 112, 10, AddressClass::Private),
    (0xff00 << 112, 8, AddressClass::Multicast),
];

/// What of IPv6 is handed out to the public network.
const GLOBAL_V6: (u128, u8) = (0x2000 << 112, 3);

/// An address of IPv4 behind a translator that everybody shares (NAT64).
const TRANSLATED_V6: (u128, u8) = (0x64_ff9b << 96, 96);

/// What this address is for. Whatever is not known to be public is not.
pub fn address_class(address: IpAddr) -> AddressClass {
    match address.to_canonical() {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> AddressClass {
    SPECIAL_V4
        .iter()
        .find(|(start, prefix, _)| same_v4(address, Ipv4Addr::from(*start), *prefix))
        .map_or(AddressClass::Public, |(_, _, class)| *class)
}

fn class_v6(address: Ipv6Addr) -> AddressClass {
    let bits = address.to_bits();
    if let Some(inner) = embedded(address) {
        return match class_v4(inner) {
            AddressClass::Public => AddressClass::Public,
            AddressClass::Loopback
            | AddressClass::Private
            | AddressClass::LinkLocal
            | AddressClass::Multicast
            | AddressClass::Metadata
            | AddressClass::Reserved
            | AddressClass::Embedded => AddressClass::Embedded,
        };
    }
    let special = SPECIAL_V6.iter().find(|(start, prefix, _)| same_v6(bits, *start, *prefix));
    match special {
        Some((_, _, class)) => *class,
        None if same_v6(bits, GLOBAL_V6.0, GLOBAL_V6.1) => AddressClass::Public,
        None => AddressClass::Reserved,
    }
}

/// The address of IPv4 that a translator or a tunnel would make of one of IPv6, where there is one by
/// a rule that holds everywhere: NAT64, and the ends of tunnels within a site (ISATAP).
pub(super) fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let [.., flag, zero, high, low, a, b, c, d] = address.octets();
    let is_tunnel = matches!(flag, 0 | 2) && [zero, high, low] == [0, 0x5e, 0xfe];
    let is_translated = same_v6(bits, TRANSLATED_V6.0, TRANSLATED_V6.1);
    (is_tunnel || is_translated).then(|| Ipv4Addr::new(a, b, c, d))
}

fn same_v4(one: Ipv4Addr, other: Ipv4Addr, prefix: u8) -> bool {
    let shift = 32_u32.saturating_sub(prefix.into());
    (one.to_bits() ^ other.to_bits()).checked_shr(shift).unwrap_or(0) == 0
}

fn same_v6(one: u128, other: u128, prefix: u8) -> bool {
    let shift = 128_u32.saturating_sub(prefix.into());
    (one ^ other).checked_shr(shift).unwrap_or(0) == 0
}

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

impl AddressRange {
    /// The addresses whose first `prefix` bits are those of `address`, which has no other bits.
    pub(super) fn new(address: IpAddr, prefix: u8) -> Result<Self, &'static str> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if prefix > bits {
            return Err("the prefix is longer than an address");
        }
        if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return Err("an IPv4 address is written as one");
        }
        let rest = match address {
            IpAddr::V4(address) => {
                u128::from(address.to_bits().checked_shl(prefix.into()).unwrap_or(0))
            }
            IpAddr::V6(address) => address.to_bits().checked_shl(prefix.into()).unwrap_or(0),
        };
        if rest != 0 {
            return Err("the address has bits beyond its prefix");
        }
        Ok(Self { address, prefix })
    }

    /// This address alone.
    pub fn one(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether it is one address alone.
    pub fn is_one(&self) -> bool {
        self.prefix == if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The one address that it is, if it is one alone.
    pub fn as_one(&self) -> Option<IpAddr> {
        self.is_one().then_some(self.address)
    }

    /// The first of them.
    pub fn first(&self) -> IpAddr {
        self.address
    }

    /// Whether this address is among them.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => same_v4(one, other, self.prefix),
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                same_v6(one.to_bits(), other.to_bits(), self.prefix)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Whether all of `other` are among them.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    /// Whether they all lie within one space that is not public. Only who writes such a range means
    /// what is not public.
    pub(super) fn is_special(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => SPECIAL_V4.iter().any(|(start, prefix, _)| {
                self.prefix >= *prefix && same_v4(address, Ipv4Addr::from(*start), *prefix)
            }),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                let within = |start, prefix| self.prefix >= prefix && same_v6(bits, start, prefix);
                let is_named = SPECIAL_V6.iter().any(|(start, prefix, _)| within(*start, *prefix));
                let is_alone = self.is_one() && class_v6(address) != AddressClass::Public;
                is_named || is_alone
            }
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.is_one()) {
            (IpAddr::V4(address), true) => address.fmt(f),
            (IpAddr::V4(address), false) => write!(f, "{address}/{}", self.prefix),
            (IpAddr::V6(address), true) => write!(f, "[{address}]"),
            (IpAddr::V6(address), false) => write!(f, "[{address}/{}]", self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(class: AddressClass, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(address_class(text.parse().unwrap()), class, "{text}");
        }
    }

    #[test]
    fn the_public_network_is_public() {
        check(
            AddressClass::Public,
            &["1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"],
        );
        check(AddressClass::Public, &["172.15.255.255", "172.32.0.0", "198.17.0.1", "198.20.0.1"]);
        check(AddressClass::Public, &["223.255.255.255", "2606:4700::1111", "2a00:1450::200e"]);
        check(AddressClass::Public, &["64:ff9b::8.8.8.8", "::ffff:8.8.8.8"]);
    }

    #[test]
    fn every_form_of_what_is_not_public_is_not() {
        check(AddressClass::Loopback, &["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"]);
        check(
            AddressClass::Private,
            &[
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "100.64.0.1",
                "100.100.100.200",
            ],
        );
        check(AddressClass::Private, &["fc00::1", "fd00:ec2::254", "fec0::1", "::ffff:10.0.0.1"]);
        check(AddressClass::LinkLocal, &["169.254.169.254", "fe80::1", "::ffff:169.254.169.254"]);
        check(AddressClass::Multicast, &["224.0.0.1", "239.255.255.250", "ff02::1"]);
        check(AddressClass::Metadata, &["168.63.129.16", "::ffff:168.63.129.16"]);
        check(
            AddressClass::Reserved,
            &["0.0.0.0", "0.1.2.3", "192.0.0.192", "198.18.0.1", "198.19.255.255", "240.0.0.1"],
        );
        check(
            AddressClass::Reserved,
            &["255.255.255.255", "::", "2001:db8::1", "4000::1", "100::1"],
        );
        check(
            AddressClass::Embedded,
            &["::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1.1.1.1"],
        );
        check(
            AddressClass::Embedded,
            &[
                "2002:7f00:1::",
                "2001:0:4136:e378::1",
                "2a00::5efe:10.0.0.1",
                "2a00::200:5efe:127.0.0.1",
            ],
        );
    }

    #[test]
    fn a_range_that_reaches_into_the_public_network_is_not_special() {
        let range = |text: &str, prefix| AddressRange::new(text.parse().unwrap(), prefix).unwrap();
        for special in [range("10.0.0.0", 8), range("127.0.0.1", 32), range("fd00::", 8)] {
            assert!(special.is_special(), "{special}");
        }
        for public in
            [range("0.0.0.0", 0), range("192.0.0.0", 2), range("::", 0), range("8.8.8.8", 32)]
        {
            assert!(!public.is_special(), "{public}");
        }
        assert!(AddressRange::new("10.0.0.1".parse().unwrap(), 8).is_err());
        assert!(AddressRange::new("10.0.0.0".parse().unwrap(), 33).is_err());
        assert!(AddressRange::new("::ffff:10.0.0.1".parse().unwrap(), 128).is_err());
    }
}
