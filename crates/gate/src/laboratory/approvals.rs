//! Connections that wait and are answered one by one.

use super::servers::{Server, Zone};
use super::{Lab, policy, rest, soon, status};
use crate::Limits;
use cofferdam_core::network::HOST_NAME;
use cofferdam_core::{
    ConnectionDecision, ConnectionReport, FromGate, NetworkPolicy, Settlement, ToGate,
    WaitingConnection,
};
use std::io::Write;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};

/// What the gate says to who holds its control socket.
struct Heard(BufReader<UnixStream>);

impl Heard {
    fn of(lab: &Lab) -> Self {
        let control = lab.control.as_ref().unwrap().try_clone().unwrap();
        control.set_nonblocking(true).unwrap();
        Self(BufReader::new(UnixStream::from_std(control).unwrap()))
    }

    /// What it says of those that wait, and of alarms.
    async fn next(&mut self) -> FromGate {
        loop {
            let mut line = String::new();
            soon(self.0.read_line(&mut line)).await.unwrap();
            match serde_json::from_str(&line).unwrap() {
                FromGate::Denied(_) => {}
                said @ (FromGate::Waits(_) | FromGate::Settled(..) | FromGate::Alarm(_)) => {
                    return said;
                }
            }
        }
    }

    async fn waits(&mut self) -> WaitingConnection {
        match self.next().await {
            FromGate::Waits(waiting) => waiting,
            said @ (FromGate::Settled(..) | FromGate::Alarm(_) | FromGate::Denied(_)) => {
                panic!("{said:?}")
            }
        }
    }
}

/// A gate that asks about everything, and a server: on a private address, so that the name alone does
/// not lead there.
async fn scene(allow: &[&str], ask_ms: u64) -> (Lab, Server) {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"]), ("other.test", &["127.0.0.1"])]).await;
    let server = Server::echo("127.0.0.1", "welcome").await;
    let allow: Vec<String> = allow.iter().map(|rule| (*rule).to_owned()).collect();
    let asking = NetworkPolicy { ask_ms, ..policy(&allow) };
    (Lab::within(asking, &zone, Limits::default()).await, server)
}

fn say(lab: &Lab, what: &ToGate) {
    let line = crate::order::line(what).unwrap();
    lab.control.as_ref().unwrap().write_all(&line).unwrap();
}

/// A connection that asks for a tunnel, and is not looked at yet.
async fn knock(lab: &Lab, target: &str) -> TcpStream {
    let mut stream = lab.to_proxy().await;
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    stream
}

/// What comes of it, for one that sends nothing more.
async fn heard(stream: &mut TcpStream) -> String {
    let _ = stream.shutdown().await;
    String::from_utf8(rest(stream).await).unwrap()
}

#[tokio::test]
async fn one_that_is_approved_goes_on_with_those_alike_and_the_next_is_asked_about_again() {
    let (lab, server) = scene(&["127.0.0.1"], 60_000).await;
    let mut gate = Heard::of(&lab);
    let target = format!("ok.test:{}", server.port);
    let other = format!("other.test:{}", server.port);
    let mut both = [knock(&lab, &target).await, knock(&lab, &target).await];
    let first = gate.waits().await;
    assert_eq!((first.number, first.host.as_deref()), (1, Some("ok.test")));
    assert_eq!(first.remedy, format!("--egress {target}"));
    assert!(first.until_ms - first.at_ms == 60_000);
    assert_eq!(gate.waits().await.number, 2);
    let mut unlike = knock(&lab, &other).await;
    assert_eq!(gate.waits().await.host.as_deref(), Some("other.test"));
    say(&lab, &ToGate::Approve { id: 1 });
    for stream in &mut both {
        let said = heard(stream).await;
        assert!(status(said.as_bytes()) == 200 && said.ends_with("welcome"), "{said}");
    }
    let mut settled = [gate.next().await, gate.next().await];
    settled.sort_by_key(|news| if let FromGate::Settled(number, _) = news { *number } else { 0 });
    let approved = |number| FromGate::Settled(number, Settlement::Approved);
    assert_eq!(settled, [approved(1), approved(2)]);
    // Control: nothing was opened beside them. The other host waits on, and the same one waits again.
    let mut next = knock(&lab, &target).await;
    assert_eq!(gate.waits().await.number, 4);
    say(&lab, &ToGate::Deny { id: 4 });
    assert_eq!(status(heard(&mut next).await.as_bytes()), 403);
    assert_eq!(gate.next().await, FromGate::Settled(4, Settlement::Denied));
    say(&lab, &ToGate::Deny { id: 3 });
    assert_eq!(status(heard(&mut unlike).await.as_bytes()), 403);
    assert_eq!(server.connections(), 2);
    let allowed = |one: &ConnectionReport| one.decision == ConnectionDecision::Allowed;
    let report = lab.report(allowed).await;
    assert_eq!(report.policy_version, 1, "the rules did not change");
    assert_eq!(report.rule, Some(target));
    assert_eq!(report.reason.as_deref(), Some("approved for this connection alone"));
    assert!(report.request.unwrap().starts_with("laboratory."));
}

#[tokio::test]
async fn an_answer_that_came_before_is_none_to_what_is_asked_next() {
    // The name is approved; where it leads is another question, with another number.
    let (lab, server) = scene(&[], 60_000).await;
    let mut gate = Heard::of(&lab);
    let mut stream = knock(&lab, &format!("ok.test:{}", server.port)).await;
    let name = gate.waits().await;
    say(&lab, &ToGate::Approve { id: name.number });
    assert_eq!(gate.next().await, FromGate::Settled(1, Settlement::Approved));
    let address = gate.waits().await;
    assert_eq!(address.number, 2);
    assert_eq!(address.remedy, format!("--egress 127.0.0.1:{}", server.port));
    // The same answer again is for nobody.
    say(&lab, &ToGate::Approve { id: name.number });
    say(&lab, &ToGate::Approve { id: 77 });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.connections(), 0);
    say(&lab, &ToGate::Approve { id: 2 });
    let said = heard(&mut stream).await;
    assert!(said.ends_with("welcome"), "{said}");
}

#[tokio::test]
async fn an_approval_lifts_no_rule_that_denies() {
    let (mut lab, server) = scene(&["127.0.0.1"], 60_000).await;
    let mut gate = Heard::of(&lab);
    let mut stream = knock(&lab, &format!("ok.test:{}", server.port)).await;
    assert_eq!(gate.waits().await.number, 1);
    let deny = vec!["ok.test".parse().unwrap()];
    lab.set_policy(NetworkPolicy { deny, ask_ms: 60_000, ..policy(&["127.0.0.1".to_owned()]) });
    say(&lab, &ToGate::Approve { id: 1 });
    assert_eq!(status(heard(&mut stream).await.as_bytes()), 403);
    assert_eq!(gate.next().await, FromGate::Settled(1, Settlement::Denied));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn one_that_nobody_answers_in_time_is_refused_and_said_to_be() {
    let (lab, server) = scene(&["127.0.0.1"], 40).await;
    let mut gate = Heard::of(&lab);
    let mut stream = knock(&lab, &format!("ok.test:{}", server.port)).await;
    assert_eq!(status(heard(&mut stream).await.as_bytes()), 403);
    assert_eq!(gate.waits().await.number, 1);
    assert_eq!(gate.next().await, FromGate::Settled(1, Settlement::TimedOut));
    let report = lab.denied().await;
    assert_eq!(report.request.as_deref(), Some("laboratory.1"));
    // An answer that comes too late opens nothing.
    say(&lab, &ToGate::Approve { id: 1 });
    let mut stream = knock(&lab, &format!("ok.test:{}", server.port)).await;
    assert_eq!(status(heard(&mut stream).await.as_bytes()), 403);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_host_can_be_asked_for_where_none_of_its_ports_is_open() {
    let (lab, server) = scene(&[], 60_000).await;
    let mut gate = Heard::of(&lab);
    let mut stream = lab.to_name(HOST_NAME, server.port).await;
    let asked = gate.waits().await;
    assert_eq!(asked.remedy, format!("--allow-host-port {}", server.port));
    say(&lab, &ToGate::Approve { id: 1 });
    assert!(heard(&mut stream).await.ends_with("welcome"));
    // Control: where nothing waits, or it is denied by a rule, there is no such name.
    let (lab, _) = scene(&[], 0).await;
    assert_eq!(lab.lookup(HOST_NAME).await, None);
    let (mut lab, _) = scene(&[], 60_000).await;
    let deny = vec![HOST_NAME.parse().unwrap()];
    lab.set_policy(NetworkPolicy { deny, ask_ms: 60_000, ..policy(&[]) });
    soon(async {
        while lab.lookup(HOST_NAME).await.is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
