//! Requests as they are written down, and what is shown of them.

use super::*;

fn requests(count: u16, now_ms: u64) -> Requests {
    let mut requests = Requests::default();
    for port in 1..=count {
        let asked: Asked = Asked { host: "a.test".parse().unwrap(), port };
        let words = (format!("--egress a.test:{port}"), "to build".to_owned());
        requests.add(&asked, words, now_ms);
    }
    requests
}

#[test]
fn a_request_waits_until_it_is_answered_or_too_old() {
    let mut all = requests(3, 1000);
    all.settle(2, Settlement::Denied);
    let waiting = |all: &Requests, now_ms| -> Vec<u64> {
        all.waiting(now_ms).map(|one| one.number).collect()
    };
    assert_eq!(waiting(&all, 1000), [1, 3]);
    let last = 1000 + u64::try_from(REQUEST_LASTS.as_millis()).unwrap();
    assert_eq!(waiting(&all, last - 1), [1, 3]);
    assert_eq!(waiting(&all, last), [] as [u64; 0]);
    let state = |number| all.find(number).unwrap().state(last);
    assert_eq!(state(1), PermissionState::TimedOut);
    assert_eq!(state(2), PermissionState::Denied);
}

#[test]
fn only_so_many_answered_requests_are_remembered_and_no_number_comes_twice() {
    let mut all = requests(80, 0);
    (1..=80).for_each(|number| all.settle(number, Settlement::Denied));
    let asked = Asked { host: "b.test".parse().unwrap(), port: 1 };
    let next = all.add(&asked, ("--egress b.test:1".to_owned(), String::new()), 0);
    assert_eq!((next, all.all.len()), (81, ANSWERED + 1));
    assert!(all.find(80).is_some() && all.find(1).is_none());
}

#[test]
fn a_reason_from_inside_is_shown_as_it_is() {
    let mut all = Requests::default();
    let asked: Asked = "10.1.2.3:80".parse().unwrap();
    let words = ("--egress 10.1.2.3:80".to_owned(), "safe \u{202e}live\u{200b}".to_owned());
    let number = all.add(&asked, words, now_ms());
    let request = all.find(number).unwrap();
    assert_eq!(request.asked().unwrap(), asked);
    let shown = request.shown("s", "s.r1".to_owned());
    assert_eq!(shown.reason.as_deref(), Some("safe \\u{202e}live\\u{200b}"));
    assert_eq!(shown.leads_to.as_deref(), Some("10.1.2.3"));
    assert!(shown.notice.unwrap().contains("private network"));
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    assert_eq!(shortened("why"), "why");
    let cut = shortened(&"é".repeat(MAX_REASON_BYTES));
    assert_eq!(cut.len(), MAX_REASON_BYTES);
    assert!(cut.chars().all(|one| one == 'é'));
}
