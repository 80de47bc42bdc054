//! Which names belong to whoever keeps a registry, and not to one holder.

use super::host::HostName;
#[cfg(feature = "registries")]
use psl::{List, Psl, Type};

/// Whether names below this one are handed out by a registry to anybody, or are themselves such names:
/// `co.uk`, `kawasaki.jp`. The list is Mozilla's, as it was when this was built.
///
/// What companies hand out to their customers (`github.io`) is on that list too, and is not meant here:
/// much of it is one holder's after all, such as `githubusercontent.com`. Without the feature `registries`
/// no name is one.
pub(super) fn is_registry(name: &HostName) -> bool {
    // Where every name of the next level is a registry, the list has none but those.
    [name.as_str(), &format!("any.{name}")].into_iter().any(is_suffix)
}

#[cfg(not(feature = "registries"))]
fn is_suffix(_: &str) -> bool {
    false
}

#[cfg(feature = "registries")]
fn is_suffix(name: &str) -> bool {
    let suffix = List.suffix(name.as_bytes());
    suffix.is_some_and(|suffix| {
        suffix.typ() == Some(Type::Icann) && suffix.as_bytes().len() == name.len()
    })
}

#[cfg(all(test, feature = "registries"))]
mod tests {
    use super::*;

    #[test]
    fn what_a_registry_hands_out_below_is_no_holders() {
        let is = |text: &str| is_registry(&text.parse().unwrap());
        for registry in [
            "com",
            "uk",
            "co.uk",
            "com.au",
            "kawasaki.jp",
            "a.kawasaki.jp",
            "xn--55qx5d.cn",
            "CO.uk.",
        ] {
            assert!(is(registry), "{registry}");
        }
        for holder in [
            "example.com",
            "example.co.uk",
            "city.kawasaki.jp",
            "github.io",
            "githubusercontent.com",
            "amazonaws.com",
            "corp.example",
            "svc.cluster.local",
            "a.internal",
        ] {
            assert!(!is(holder), "{holder}");
        }
    }
}
