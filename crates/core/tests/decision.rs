//! A decision is a function of the policy and of what was asked: however that was spelled.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

use cofferdam_core::EgressRule;
use cofferdam_core::network::{HOST_NAME, NetworkPolicy};
use cofferdam_core::policy::{
    AddressClass, Asked, Host, address_class, decide, decide_name, decide_resolved,
    intersect_rules, is_listed,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn policy(allow: &[&str], deny: &[&str]) -> NetworkPolicy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    NetworkPolicy { allow: rules(allow), deny: rules(deny), ..NetworkPolicy::default() }
}

fn asked(text: &str) -> Asked {
    text.parse().unwrap()
}

fn allows(policy: &NetworkPolicy, text: &str) -> bool {
    decide(policy, &asked(text)).allowed
}

#[test]
fn nothing_is_allowed_that_is_not_listed() {
    let nothing = NetworkPolicy::default();
    assert!(!allows(&nothing, "example.com:443"));
    assert!(!allows(&nothing, "1.1.1.1:443"));
    assert!(!allows(&nothing, "host.cofferdam.internal:80"));
    let some = policy(&["example.com:443", "*.pkg.example:443", "8.8.8.0/24:53"], &[]);
    for yes in ["example.com:443", "pkg.example:443", "a.b.pkg.example:443", "8.8.8.8:53"] {
        assert!(allows(&some, yes), "{yes}");
    }
    for no in [
        "example.com:80",
        "a.example.com:443",
        "example.com.evil.test:443",
        "notpkg.example:443",
        "evil-pkg.example:443",
        "8.8.9.8:53",
        "8.8.8.8:443",
        "93.184.216.34:443",
    ] {
        assert!(!allows(&some, no), "{no}");
    }
}

#[test]
fn a_denial_names_what_was_asked_and_the_line_that_would_allow_it() {
    let some = policy(&["example.com:443"], &["*.ads.example"]);
    let denied = decide(&some, &asked("Example.org.:8443"));
    assert_eq!(denied.reason.as_deref(), Some("no rule allows example.org:8443"));
    assert_eq!(denied.remedy.as_deref(), Some("--egress example.org:8443"));
    let address = decide(&some, &asked("[2606:4700::1]:443"));
    assert_eq!(address.remedy.as_deref(), Some("--egress [2606:4700::1]:443"));
    let purpose = decide(&some, &asked("x.ads.example:443"));
    assert_eq!(purpose.rule.as_deref(), Some("*.ads.example"));
    assert_eq!(purpose.remedy, None);
    for remedy in [denied.remedy.unwrap(), address.remedy.unwrap()] {
        let rule = remedy.strip_prefix("--egress ").unwrap();
        rule.parse::<EgressRule>().unwrap();
    }
}

#[test]
fn a_rule_that_denies_wins_for_names_and_for_where_they_lead() {
    let some = policy(&["*"], &["evil.test", "1.2.3.0/24", "*:25"]);
    assert!(allows(&some, "good.test:443"));
    assert!(!allows(&some, "evil.test:443"));
    assert!(!allows(&some, "good.test:25"));
    assert!(!allows(&some, "1.2.3.4:443"));
    let led = |address: &str| {
        decide_resolved(&some, &asked("good.test:443"), address.parse().unwrap()).allowed
    };
    assert!(led("1.1.1.1"));
    assert!(!led("1.2.3.4"));
    assert!(!led("::ffff:1.2.3.4"));
    assert!(!led("64:ff9b::1.2.3.4"));
}

#[test]
fn what_is_not_public_is_reached_only_where_it_is_listed_as_an_address() {
    let led = |policy: &NetworkPolicy, address: &str| {
        decide_resolved(policy, &asked("db.corp:5432"), address.parse().unwrap()).allowed
    };
    let name = policy(&["db.corp:5432", "*", "0.0.0.0/0", "[::/0]"], &[]);
    let listed = policy(&["db.corp:5432", "10.0.0.0/8:5432"], &[]);
    assert!(led(&name, "93.184.216.34") && led(&listed, "93.184.216.34"));
    assert!(led(&listed, "10.1.2.3"), "control");
    for private in [
        "10.1.2.3",
        "127.0.0.1",
        "169.254.169.254",
        "192.168.0.1",
        "0.0.0.0",
        "::1",
        "fd00::1",
        "fe80::1",
        "::ffff:10.1.2.3",
        "64:ff9b::10.1.2.3",
        "2002:a01:203::",
        "168.63.129.16",
    ] {
        assert!(!led(&name, private), "{private}");
        assert!(!allows(
            &name,
            &format!("{}:5432", Host::from(private.parse::<IpAddr>().unwrap()))
        ));
    }
    assert!(!decide_resolved(&listed, &asked("other.corp:5432"), [10, 1, 2, 3].into()).allowed);
}

#[test]
fn the_address_of_nobody_is_opened_by_no_rule() {
    let wide = policy(&["zero.test", "0.0.0.0/8", "0.0.0.0", "[::]", "*"], &[]);
    let zero = asked("zero.test:80");
    for nobody in ["0.0.0.0", "::", "::ffff:0.0.0.0"] {
        let address: IpAddr = nobody.parse().unwrap();
        let direct = Asked { host: address.into(), port: 80 };
        for denied in [decide_resolved(&wide, &zero, address), decide(&wide, &direct)] {
            assert!(!denied.allowed && denied.remedy.is_none(), "{nobody}: {denied:?}");
            assert!(denied.reason.unwrap().ends_with("the address of nobody"));
        }
    }
    assert!(decide_resolved(&wide, &zero, [0, 0, 0, 1].into()).allowed, "control");
    for rule in ["0.0.0.0", "0.0.0.0:80", "[::]:80"] {
        let rule: EgressRule = rule.parse().unwrap();
        let error = rule.check_allowing().unwrap_err();
        assert!(error.message.ends_with("opens nothing: it is the address of nobody"), "{error}");
    }
    "0.0.0.0/8".parse::<EgressRule>().unwrap().check_allowing().unwrap();
}

#[test]
fn a_public_address_is_listed_by_itself_alone() {
    let listed = |rule: &str, at: &str| {
        let policy = policy(&["*", rule], &[]);
        let address: IpAddr = at.parse().unwrap();
        let asked = Asked { host: address.into(), port: 443 };
        assert!(decide(&policy, &asked).allowed, "control: as anybody's it is open");
        is_listed(&policy, address, 443)
    };
    assert!(listed("8.8.4.2", "8.8.4.2") && listed("8.8.4.2:443", "8.8.4.2"));
    assert!(listed("[2a00::1]", "2a00::1"));
    for wide in ["0.0.0.0/0", "8.8.4.0/24", "8.8.4.2/31", "8.8.4.2:80", "*.a.test", "*:443"] {
        assert!(!listed(wide, "8.8.4.2"), "{wide}");
    }
    assert!(!listed("[::/0]", "2a00::1") && !listed("[2a00::/64]", "2a00::1"));
}

#[test]
fn the_hosts_loopback_has_one_name_and_the_ports_that_are_opened() {
    let opened = NetworkPolicy { host_ports: vec![3000], ..policy(&["*"], &[]) };
    let own = |port: u16| asked(&format!("{HOST_NAME}:{port}"));
    assert!(decide(&opened, &own(3000)).allowed);
    let denied = decide(&opened, &own(3001));
    assert_eq!(denied.remedy.as_deref(), Some("--allow-host-port 3001"));
    assert!(!denied.allowed);
    assert!(decide_resolved(&opened, &own(3000), Ipv4Addr::LOCALHOST.into()).allowed);
    assert!(!decide_resolved(&opened, &own(3000), [10, 0, 0, 1].into()).allowed);
    assert!(!decide_resolved(&opened, &own(3000), [1, 1, 1, 1].into()).allowed);
    for other in ["127.0.0.1:3000", "[::1]:3000", "localhost.cofferdam.internal:3000"] {
        assert!(!allows(&opened, other), "{other}");
    }
    let localhost = asked("localhost:3000");
    assert!(!decide_resolved(&opened, &localhost, Ipv4Addr::LOCALHOST.into()).allowed);
    assert!(decide_name(&opened, &HOST_NAME.parse().unwrap()).allowed);
    assert!(!decide_name(&policy(&["*"], &[]), &HOST_NAME.parse().unwrap()).allowed);
}

#[test]
fn a_name_is_answered_where_one_of_its_ports_may_be_reached() {
    let some = policy(&["*.example.com:443"], &["bad.example.com", "half.example.com:80"]);
    let answered = |name: &str| decide_name(&some, &name.parse().unwrap()).allowed;
    assert!(answered("example.com") && answered("a.example.com") && answered("half.example.com"));
    assert!(!answered("bad.example.com") && !answered("example.org") && !answered("com"));
}

fn label() -> impl Strategy<Value = String> {
    "[a-c]{1,2}"
}

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(label(), 1..4).prop_map(|labels| labels.join("."))
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())),
        (0_u32..4).prop_map(|low| IpAddr::V4((0x0a00_0000 + low).into())),
        any::<u128>().prop_map(|bits| IpAddr::V6(bits.into())),
        any::<u32>().prop_map(|bits| IpAddr::V6(Ipv4Addr::from(bits).to_ipv6_mapped())),
        any::<u32>()
            .prop_map(|bits| IpAddr::V6(Ipv6Addr::from((0x64_ff9b << 96) | u128::from(bits)))),
    ]
}

fn rule() -> impl Strategy<Value = EgressRule> {
    let host = prop_oneof![
        Just("*".to_owned()),
        name(),
        name().prop_map(|name| format!("*.{name}")),
        address().prop_map(|address| Host::from(address).to_string()),
        (0_u32..=8, 0_u32..8).prop_map(|(prefix, top)| {
            let kept =
                top.checked_shl(29).unwrap_or(0) & !u32::MAX.checked_shr(prefix).unwrap_or(0);
            format!("{}/{prefix}", Ipv4Addr::from(kept))
        }),
        Just("10.0.0.0/8".to_owned()),
        Just("10.0.0.0/30".to_owned()),
    ];
    let ports = prop_oneof![
        Just(String::new()),
        (1_u16..6).prop_map(|port| format!(":{port}")),
        (1_u16..4, 0_u16..4).prop_map(|(first, more)| format!(":{first}-{}", first + more)),
    ];
    (host, ports)
        .prop_filter_map("not a rule", |(host, ports)| format!("{host}{ports}").parse().ok())
}

fn rules() -> impl Strategy<Value = Vec<EgressRule>> {
    prop::collection::vec(rule(), 0..6)
}

fn destination() -> impl Strategy<Value = Asked> {
    let host = prop_oneof![
        name().prop_map(|name| Host::Name(name.parse().unwrap())),
        address().prop_map(Host::from)
    ];
    (host, 1_u16..6).prop_map(|(host, port)| Asked { host, port })
}

proptest! {
    #[test]
    fn a_decision_does_not_depend_on_how_the_host_is_spelled(
        allow in rules(), deny in rules(), name in name(), port in 1_u16..6, upper in any::<u64>(),
    ) {
        let policy = NetworkPolicy { allow, deny, ..NetworkPolicy::default() };
        let shouted: String = name.chars().enumerate().map(|(place, letter)| {
            if upper >> (place % 64) & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
        }).collect();
        let plain = decide(&policy, &asked(&format!("{name}:{port}")));
        prop_assert_eq!(&plain, &decide(&policy, &asked(&format!("{shouted}:{port}"))));
        prop_assert_eq!(&plain, &decide(&policy, &asked(&format!("{shouted}.:{port}"))));
    }

    #[test]
    fn two_lists_allow_together_what_each_allows_and_nothing_else(
        one in rules(), other in rules(), asked in destination(),
    ) {
        let of = |allow: Vec<EgressRule>| NetworkPolicy { allow, ..NetworkPolicy::default() };
        let both = decide(&of(intersect_rules(&one, &other)), &asked).allowed;
        let each = decide(&of(one), &asked).allowed && decide(&of(other), &asked).allowed;
        prop_assert_eq!(both, each);
    }

    #[test]
    fn another_rule_that_denies_opens_nothing(
        allow in rules(), deny in rules(), more in rule(), asked in destination(), at in address(),
    ) {
        let before = NetworkPolicy { allow, deny, ..NetworkPolicy::default() };
        let mut after = before.clone();
        after.deny.push(more);
        prop_assert!(decide(&before, &asked).allowed || !decide(&after, &asked).allowed);
        let led = |policy| decide_resolved(policy, &asked, at).allowed;
        prop_assert!(led(&before) || !led(&after));
    }

    #[test]
    fn without_rules_for_addresses_no_name_leads_anywhere_but_to_the_public(
        name in name(), at in address(), port in 1_u16..6,
    ) {
        let policy = policy(&["*"], &[]);
        let led = decide_resolved(&policy, &asked(&format!("{name}:{port}")), at);
        prop_assert_eq!(led.allowed, address_class(at) == AddressClass::Public);
    }

    #[test]
    fn text_that_is_no_host_is_never_asked_for(text in any::<String>()) {
        if let Ok(asked) = text.parse::<Asked>() {
            prop_assert_eq!(asked.to_string().parse::<Asked>().unwrap(), asked);
        }
    }
}
