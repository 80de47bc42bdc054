//! What must hold for any text that is handed over as a grant of a secret. Shared with the fuzz targets.

use cofferdam_core::secret::{GrantPlace, SecretGrant};

/// Any text names one host and one place in a request, as it stands, or is refused.
pub(crate) fn grant(text: &str) {
    let Ok(grant) = text.parse::<SecretGrant>() else { return };
    let (name, rest) = text.split_once('@').unwrap_or_default();
    assert_eq!(grant.name.as_str(), name, "{text:?}");
    let host = rest.split(':').next().unwrap_or_default().trim_end_matches('.');
    assert_eq!(grant.host, host.to_ascii_lowercase(), "{text:?}");
    assert!(is_plain(&grant.host) && grant.host.parse::<std::net::IpAddr>().is_err(), "{text:?}");
    assert!(grant.is_for(&grant.host) && !grant.is_for(&format!("a.{}", grant.host)), "{text:?}");
    let part = match &grant.place {
        GrantPlace::Header { name, .. } => {
            assert!(!matches!(name.as_str(), "host" | "content-length" | "transfer-encoding"));
            name
        }
        GrantPlace::Query(name) => name,
    };
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    assert!(!part.is_empty() && part.chars().all(good), "{text:?}");
}

/// Only what a resolver, a shell and a proxy understand alike.
fn is_plain(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !name.is_empty() && name.len() <= 253 && name.chars().all(good)
}
