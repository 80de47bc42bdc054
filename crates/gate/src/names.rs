//! The addresses inside that stand for names.

use cofferdam_core::network::{SYNTHETIC_V4, SYNTHETIC_V6};
use cofferdam_core::policy::HostName;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first address that stands for a name; below it are those with a meaning of their own, such as
/// the resolver's.
const FIRST: u32 = 256;

/// Which name has which address. Bounded: the oldest loses its address to the next.
pub(crate) struct Names {
    by_name: HashMap<HostName, u32>,
    by_place: Vec<HostName>,
    next: usize,
    most: usize,
}

/// What an address inside stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StandsFor {
    /// A name.
    Name(HostName),
    /// A name once, or never: nothing.
    Nothing,
    /// Itself.
    Itself,
}

impl Names {
    pub(crate) fn new(most: u32) -> Self {
        let most = usize::try_from(most).unwrap_or(1).max(1);
        Self { by_name: HashMap::new(), by_place: Vec::new(), next: 0, most }
    }

    /// The addresses that stand for this name from now on.
    pub(crate) fn addresses(&mut self, name: &HostName) -> (Ipv4Addr, Ipv6Addr) {
        let place = match self.by_name.get(name) {
            Some(place) => *place,
            None => self.give(name),
        };
        let number = place.saturating_add(FIRST);
        let v4 = SYNTHETIC_V4.0.to_bits().saturating_add(number);
        let v6 = SYNTHETIC_V6.0.to_bits().saturating_add(number.into());
        (Ipv4Addr::from_bits(v4), Ipv6Addr::from_bits(v6))
    }

    fn give(&mut self, name: &HostName) -> u32 {
        let place = self.next;
        self.next = if place.saturating_add(1) < self.most { place.saturating_add(1) } else { 0 };
        let place_kept = u32::try_from(place).unwrap_or(0);
        match self.by_place.get_mut(place) {
            Some(old) => {
                let old = std::mem::replace(old, name.clone());
                self.by_name.remove(&old);
            }
            None => self.by_place.push(name.clone()),
        }
        self.by_name.insert(name.clone(), place_kept);
        place_kept
    }

    /// What an address stands for.
    pub(crate) fn at(&self, address: IpAddr) -> StandsFor {
        let number = match address.to_canonical() {
            IpAddr::V4(address) => within(
                address.to_bits().into(),
                SYNTHETIC_V4.0.to_bits().into(),
                32_u8.saturating_sub(SYNTHETIC_V4.1),
            ),
            IpAddr::V6(address) => within(
                address.to_bits(),
                SYNTHETIC_V6.0.to_bits(),
                128_u8.saturating_sub(SYNTHETIC_V6.1),
            ),
        };
        let Some(number) = number else { return StandsFor::Itself };
        let place = number.checked_sub(FIRST.into()).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.by_place.get(place)) {
            Some(name) => StandsFor::Name(name.clone()),
            None => StandsFor::Nothing,
        }
    }
}

/// The last `bits` of an address, where the others are those of `start`.
fn within(address: u128, start: u128, bits: u8) -> Option<u128> {
    let apart = address ^ start;
    let is_within = apart.checked_shr(bits.into()).unwrap_or(0) == 0;
    is_within.then_some(apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_keeps_its_addresses_and_is_found_by_each() {
        let mut names = Names::new(8);
        let (v4, v6) = names.addresses(&name("a.test"));
        assert_eq!(names.addresses(&name("a.test")), (v4, v6));
        assert_ne!(names.addresses(&name("b.test")).0, v4);
        assert_eq!(v4.to_string(), "198.18.1.0");
        assert_eq!(v6.to_string(), "fd63:6f66:6665::100");
        assert_eq!(names.at(v4.into()), StandsFor::Name(name("a.test")));
        assert_eq!(names.at(v6.into()), StandsFor::Name(name("a.test")));
        assert_eq!(names.at(v4.to_ipv6_mapped().into()), StandsFor::Name(name("a.test")));
    }

    #[test]
    fn what_was_never_given_stands_for_nothing_and_others_for_themselves() {
        let names = Names::new(8);
        for nothing in ["198.18.0.1", "198.18.1.0", "198.19.255.255", "fd63:6f66:6665::1"] {
            assert_eq!(names.at(nothing.parse().unwrap()), StandsFor::Nothing, "{nothing}");
        }
        for itself in ["198.17.255.255", "198.20.0.0", "1.1.1.1", "fd63:6f66:6666::100", "::1"] {
            assert_eq!(names.at(itself.parse().unwrap()), StandsFor::Itself, "{itself}");
        }
    }

    #[test]
    fn more_names_than_fit_cost_the_oldest_their_addresses() {
        let mut names = Names::new(2);
        let first = names.addresses(&name("a.test")).0;
        names.addresses(&name("b.test"));
        assert_eq!(names.addresses(&name("c.test")).0, first);
        assert_eq!(names.at(first.into()), StandsFor::Name(name("c.test")));
        assert_ne!(names.addresses(&name("a.test")).0, first);
        assert_eq!(names.by_name.len(), 2);
        assert_eq!(names.by_place.len(), 2);
    }
}
