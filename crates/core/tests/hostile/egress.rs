//! What must hold for any text that is handed over as an egress rule. Shared with the fuzz targets.

use cofferdam_core::{EgressRule, HostPattern};

/// Any text is a rule that is shown as it is understood, or refused.
pub(crate) fn egress_rule(text: &str) {
    let Ok(rule) = text.parse::<EgressRule>() else { return };
    let shown = rule.to_string();
    assert_eq!(shown.parse::<EgressRule>().ok().as_ref(), Some(&rule), "{text:?} as {shown:?}");
    assert_ne!(rule.port, Some(0), "{text:?} names port 0");
    match &rule.host {
        HostPattern::Anywhere => assert!(shown.starts_with('*'), "{text:?}"),
        HostPattern::Below(name) => assert!(is_plain(name) && name.contains('.'), "{text:?}"),
        HostPattern::Exactly(name) => {
            let is_address = name.parse::<std::net::IpAddr>().is_ok();
            assert!(is_address || is_plain(name), "{text:?}");
        }
    }
}

/// Only what a resolver, a shell and a proxy understand alike.
fn is_plain(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !name.is_empty() && name.len() <= 253 && name.chars().all(good)
}
