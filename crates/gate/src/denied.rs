//! Denials, told to the holder while they happen.

use crate::teller::Teller;
use cofferdam_core::network::FromGate;
use cofferdam_core::{
    ConnectionDecision, ConnectionReport, Denial, MAX_DENIAL_WORD_BYTES, MAX_DENIALS, made_visible,
};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Tells of each destination and reason once for each edition of the rules.
// LIMIT: [`MAX_DENIALS`] for each edition, and a last one that says so: what is inside asks for as much as it
// likes, and what waits to be allowed has to be told as well.
pub(crate) struct Denied {
    teller: Teller,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    version: u64,
    places: HashSet<Place>,
}

/// Host or address, port, and why.
type Place = (Option<String>, Option<String>, u16, Option<String>);

impl Denied {
    pub(crate) fn new(teller: Teller) -> Self {
        Self { teller, told: Mutex::default() }
    }

    /// Tells of this connection, if it was denied and its like was not told of.
    pub(crate) fn look_at(&self, report: &ConnectionReport) {
        match report.decision {
            ConnectionDecision::Denied => {}
            ConnectionDecision::Allowed
            | ConnectionDecision::Failed
            | ConnectionDecision::Asked => return,
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.version != report.policy_version {
            *told = Told { version: report.policy_version, places: HashSet::new() };
        }
        if told.places.len() > MAX_DENIALS || !told.places.insert(place(report)) {
            return;
        }
        let is_last = told.places.len() > MAX_DENIALS;
        drop(told);
        let denial = match is_last {
            true => Denial::more(),
            false => shown(Denial::of(report)),
        };
        self.teller.tell(FromGate::Denied(Box::new(denial)));
    }
}

fn place(report: &ConnectionReport) -> Place {
    // A name is one place, wherever it leads today.
    let address = report.address.clone().filter(|_| report.host.is_none());
    (report.host.clone(), address, report.port, report.reason.clone())
}

/// As a holder believes it: a question for a name may have any bytes in it.
fn shown(denial: Denial) -> Denial {
    let visible = |word: String| {
        let fits = |bytes: &mut usize, c: char| {
            *bytes += c.len_utf8();
            (*bytes <= MAX_DENIAL_WORD_BYTES).then_some(c)
        };
        made_visible(&word).chars().scan(0, fits).collect::<String>()
    };
    match denial.check() {
        Ok(()) => denial,
        Err(_) => Denial {
            host: denial.host.map(visible),
            reason: denial.reason.map(visible),
            // What is no name is opened by no line.
            remedy: None,
            ..denial
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::teller;
    use cofferdam_core::ConnectionHow;
    use std::sync::Arc;
    use tokio::io::AsyncReadExt;

    fn denied(host: &str, port: u16, policy_version: u64) -> ConnectionReport {
        ConnectionReport {
            how: ConnectionHow::Connect,
            host: Some(host.to_owned()),
            port,
            decision: ConnectionDecision::Denied,
            ..ConnectionReport::of_the_gate(1, policy_version, "no rule allows it")
        }
    }

    async fn told(reports: &[ConnectionReport]) -> Vec<Denial> {
        let (teller, untold) = Teller::new();
        let denied = Denied::new(teller);
        reports.iter().for_each(|report| denied.look_at(report));
        drop(denied);
        let (ours, mut theirs) = tokio::net::UnixStream::pair().unwrap();
        tokio::spawn(teller::tell(untold, Arc::new(ours)));
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        let read = |line| match serde_json::from_str(line).unwrap() {
            FromGate::Denied(denial) => *denial,
            said @ (FromGate::Waits(_) | FromGate::Settled(..) | FromGate::Alarm(_)) => {
                panic!("{said:?}")
            }
        };
        text.lines().map(read).collect()
    }

    #[tokio::test]
    async fn a_destination_is_told_once_for_each_reason_and_edition_of_the_rules() {
        let other_reason = ConnectionReport {
            reason: Some("denied by a rule".to_owned()),
            ..denied("a.test", 443, 1)
        };
        let allowed =
            ConnectionReport { decision: ConnectionDecision::Allowed, ..denied("b.test", 443, 1) };
        let all = [
            denied("a.test", 443, 1),
            denied("a.test", 443, 1),
            denied("a.test", 80, 1),
            other_reason,
            allowed,
            denied("a.test", 443, 2),
        ];
        let told = told(&all).await;
        let ports: Vec<u16> = told.iter().map(|denial| denial.port).collect();
        assert_eq!(ports, [443, 80, 443, 443]);
        assert!(told.iter().all(|denial| denial.check().is_ok()));
    }

    #[tokio::test]
    async fn as_many_are_told_as_may_be_and_then_that_there_are_more() {
        let many: Vec<_> =
            (0..500).map(|number| denied(&format!("{number}.test"), 443, 1)).collect();
        let all = told(&many).await;
        assert_eq!(all.len(), MAX_DENIALS + 1);
        assert_eq!(all.last(), Some(&Denial::more()));
    }

    #[tokio::test]
    async fn a_name_of_any_bytes_is_told_in_letters() {
        let hidden = denied("a\u{1b}[2J\u{202e}.test", 53, 1);
        assert!(Denial::of(&hidden).check().is_err(), "control: as it is nobody would believe it");
        let long = denied(&"\u{1b}".repeat(MAX_DENIAL_WORD_BYTES), 53, 1);
        for denial in told(&[hidden, long]).await {
            denial.check().unwrap();
            assert!(denial.host.unwrap().contains("\\u{1b}"));
        }
    }
}
