//! What begins to wait in a session while somebody looks, told at once.

use crate::commands::approve::destination;
use crate::door::Session;
use crate::report;
use cofferdam_session::{PermissionKind, PermissionReport, PermissionState};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::sleep;

/// How often is looked. What waits does so for somebody who has to read it.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// How many are told. What is inside can ask for as much as it likes, and the caller's terminal is not for it to fill.
const MOST_TOLD: usize = 100;

/// Tells what waits, each once, for as long as it is polled.
pub(super) async fn tell(session: &Session) -> std::convert::Infallible {
    sleep(LOOK_EVERY).await;
    // A session that has no way out gets none, and nothing waits there.
    let has_way_out = session.network().await.is_ok_and(|network| network.way_out);
    if !has_way_out {
        std::future::pending::<()>().await;
    }
    let mut told = BTreeSet::new();
    let mut left = MOST_TOLD;
    loop {
        // Who cannot be asked now is asked again.
        let all = session.permissions().await.map(|all| all.permissions).unwrap_or_default();
        for line in lines(&news(&all, &told), &mut left) {
            report::note(&line);
        }
        told = all.into_iter().map(|one| one.id).collect();
        sleep(LOOK_EVERY).await;
    }
}

/// Those that wait and were not told, of several alike the first alone.
fn news<'a>(all: &'a [PermissionReport], told: &BTreeSet<String>) -> Vec<&'a PermissionReport> {
    let waits = |one: &&PermissionReport| {
        one.state == PermissionState::Waiting && one.kind == PermissionKind::Connection
    };
    let alike = |one: &PermissionReport, other: &PermissionReport| {
        (&one.host, &one.address, one.port, &one.allow)
            == (&other.host, &other.address, other.port, &other.allow)
    };
    let mut news: Vec<&PermissionReport> = Vec::new();
    for one in all.iter().filter(waits).filter(|one| !told.contains(&one.id)) {
        let is_known = |other: &PermissionReport| {
            told.contains(&other.id) && other.state == PermissionState::Waiting && alike(one, other)
        };
        if !all.iter().any(is_known) && !news.iter().any(|other| alike(one, other)) {
            news.push(one);
        }
    }
    news
}

/// A line for each while any are left; the last one says where the others are.
fn lines(news: &[&PermissionReport], left: &mut usize) -> Vec<String> {
    let mut lines = Vec::new();
    for one in news {
        match *left {
            0 => break,
            1 => lines.push(
                "more waits to be allowed than is told here; cofferdam approve --list shows it"
                    .to_owned(),
            ),
            _ => lines.push(line(one)),
        }
        *left -= 1;
    }
    lines
}

fn line(one: &PermissionReport) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(one.until_ms).saturating_sub(now).as_secs();
    let (place, id) = (destination(one), &one.id);
    let answer = format!("cofferdam approve {id} --session would do it");
    match &one.notice {
        Some(notice) => {
            format!("waits {left} s to be allowed: PRIVATE NETWORK: {notice}; {answer}")
        }
        None => format!("waits {left} s to be allowed: {place}; {answer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, port: u16, state: PermissionState) -> PermissionReport {
        PermissionReport {
            id: id.to_owned(),
            session: "s".to_owned(),
            kind: PermissionKind::Connection,
            state,
            host: Some("a.test".to_owned()),
            address: None,
            port,
            how: None,
            reason: None,
            allow: format!("--egress a.test:{port}"),
            leads_to: None,
            notice: None,
            requested_ms: 0,
            until_ms: 0,
        }
    }

    #[test]
    fn what_waits_for_a_private_address_is_told_as_that() {
        let first = one("1", 443, PermissionState::Waiting);
        assert!(line(&first).contains("a.test:443; cofferdam approve 1"), "{}", line(&first));
        let notice = "a.test leads to 10.1.2.3, an address of a private network";
        let second = PermissionReport { notice: Some(notice.to_owned()), ..first };
        let told = line(&second);
        assert!(told.contains(&format!("PRIVATE NETWORK: {notice}; cofferdam")), "{told}");
    }

    #[test]
    fn each_destination_that_waits_is_told_once() {
        use PermissionState::{Denied, Waiting};
        let all = [one("1", 80, Waiting), one("2", 80, Waiting), one("3", 443, Waiting)];
        let ids = |all: &[PermissionReport], told: &[&str]| -> Vec<String> {
            let told = told.iter().map(|id| (*id).to_owned()).collect();
            news(all, &told).into_iter().map(|one| one.id.clone()).collect()
        };
        assert_eq!(ids(&all, &[]), ["1", "3"]);
        assert_eq!(ids(&all, &["1", "3"]), [] as [&str; 0], "the second is like the first");
        let [first, second, _] = all;
        let later = [PermissionReport { state: Denied, ..first }, second];
        assert_eq!(ids(&later, &["1"]), ["2"], "it was answered, and asked again");
    }

    #[test]
    fn a_flood_of_what_waits_fills_no_terminal() {
        let all: Vec<PermissionReport> = (1..=250_u16)
            .map(|port| one(&port.to_string(), port, PermissionState::Waiting))
            .collect();
        let all: Vec<&PermissionReport> = all.iter().collect();
        let mut left = MOST_TOLD;
        let (first, later) = all.split_at(60);
        let mut told = lines(first, &mut left);
        told.extend(lines(later, &mut left));
        assert_eq!((told.len(), left), (MOST_TOLD, 0));
        let shows_list = |line: &&String| line.contains("cofferdam approve --list");
        assert_eq!(told.iter().filter(shows_list).count(), 1);
        assert!(told.last().is_some_and(|line| shows_list(&line)), "{told:?}");
        assert_eq!(lines(later, &mut left), [] as [&str; 0]);
    }
}
