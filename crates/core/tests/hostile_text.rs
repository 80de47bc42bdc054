//! Text is hostile: whatever it is, it is understood as it stands or refused, never repaired.

#[path = "hostile/egress.rs"]
mod egress;
#[path = "hostile/grant.rs"]
mod grant;
#[path = "hostile/quantities.rs"]
mod quantities;
#[path = "hostile/to_gate.rs"]
mod to_gate;

use cofferdam_core::{EgressRule, parse_bytes, parse_cpu, parse_duration};
use proptest::prelude::*;
use std::time::Duration;

proptest! {
    #[test]
    fn any_text_is_a_rule_or_refused(text in any::<String>()) {
        egress::egress_rule(&text);
    }

    #[test]
    fn text_like_a_rule_is_a_rule_or_refused(
        text in "(\\*\\.)?[a-zA-Z0-9.*@%_\\[\\]:\\x00-]{0,80}:[+0-9 ]{0,6}",
    ) {
        egress::egress_rule(&text);
    }

    #[test]
    fn a_rule_is_refused_with_any_other_character_in_it(
        place in 0_usize..11, other in "[^a-zA-Z0-9.:*-]",
    ) {
        let mut text = "example.com:443".to_owned();
        text.insert_str(place, &other);
        prop_assert!(text.parse::<EgressRule>().is_err(), "{:?}", text);
    }

    #[test]
    fn any_text_is_a_grant_or_refused(
        text in any::<String>(),
        near in "[a-zA-Z_-]{1,9}@[a-zA-Z0-9.*-]{1,20}(:(header|query|scheme)=[a-zA-Z-]{0,9}){0,2}",
    ) {
        grant::grant(&text);
        grant::grant(&near);
    }

    #[test]
    fn any_line_is_a_message_to_a_gate_or_refused(
        bytes in any::<Vec<u8>>(), allow in "[a-z.:*0-9]{0,12}", number in any::<u64>(),
    ) {
        to_gate::line(&bytes);
        let policy = format!(
            r#"{{"policy":{{"version":{number},"allow":["{allow}"],"deny":[],"host_ports":[1],"ask_ms":0}}}}"#
        );
        to_gate::line(policy.as_bytes());
    }

    #[test]
    fn any_text_is_an_amount_or_refused(
        text in any::<String>(), near in "[+-]?[0-9.]{0,22}[a-zA-Z ]{0,3}",
    ) {
        quantities::quantity(&text);
        quantities::quantity(&near);
    }

    #[test]
    fn an_amount_means_what_is_written(number in 1_u32..1_000_000) {
        prop_assert_eq!(parse_bytes(&format!("{number}K")).ok(), Some(u64::from(number) << 10));
        prop_assert_eq!(parse_bytes(&format!("{number}G")).ok(), Some(u64::from(number) << 30));
        let seconds = Duration::from_secs(u64::from(number));
        prop_assert_eq!(parse_duration(&format!("{number}s")).ok(), Some(seconds));
        prop_assert_eq!(parse_duration(&format!("{number}m")).ok(), Some(seconds * 60));
        prop_assert_eq!(parse_cpu(&number.to_string()).ok(), number.checked_mul(1000));
    }

    #[test]
    fn any_text_is_a_name_or_refused(text in any::<String>(), near in "[a-zA-Z0-9._/ -]{0,70}") {
        quantities::name(&text);
        quantities::name(&near);
    }
}
