//! What must hold for any text that is handed over as an egress rule. Shared with the fuzz targets.

use cofferdam_core::{EgressRule, HostPattern};

/// Any text is a rule that is shown as it is understood, or refused.
pub(crate) fn egress_rule(text: &str) {
    let Ok(rule) = text.parse::<EgressRule>() else { return };
    let shown = rule.to_string();
    assert_eq!(shown.parse::<EgressRule>().ok().as_ref(), Some(&rule), "{text:?} as {shown:?}");
    assert!(!rule.covers_port(0), "{text:?} names port 0");
    match &rule.host {
        HostPattern::Anywhere => assert!(shown.starts_with('*'), "{text:?}"),
        HostPattern::Below(name) => {
            assert!(is_plain(name.as_str()) && name.as_str().contains('.'), "{text:?}");
        }
        HostPattern::Exactly(name) => assert!(is_plain(name.as_str()), "{text:?}"),
        HostPattern::Addresses(range) => {
            assert!(!shown.starts_with('*') && shown.starts_with(&range.to_string()), "{text:?}");
        }
    }
}

/// Only what a resolver, a shell and a proxy understand alike.
fn is_plain(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !name.is_empty() && name.len() <= 253 && name.chars().all(good)
}
