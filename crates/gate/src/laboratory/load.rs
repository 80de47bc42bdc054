//! Rules that change while many connections come.

use super::servers::{Server, Zone};
use super::{Lab, policy, rest, status};
use cofferdam_core::{ConnectionDecision, ConnectionHow};
use std::collections::BTreeSet;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// How many ask at once, and how often each does.
const CLIENTS: usize = 32;
const TIMES: usize = 25;
/// How many are answered before the rules change again.
const BETWEEN: usize = 8;

#[tokio::test]
async fn while_rules_change_every_decision_is_that_of_the_edition_it_names() {
    let zone = Zone::of(&[("ok.test", &["127.0.0.1"])]).await;
    let server = Server::echo("127.0.0.1", "welcome").await;
    let open = policy(&["ok.test".to_owned(), "127.0.0.1".to_owned()]);
    let mut lab = Lab::new(policy(&[]), &zone).await;
    let request = format!("CONNECT ok.test:{} HTTP/1.1\r\n\r\n", server.port);
    let (proxy, mut clients) = (lab.proxy, JoinSet::new());
    let (says, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..CLIENTS {
        let (request, says) = (request.clone(), says.clone());
        clients.spawn(async move {
            for _ in 0..TIMES {
                let mut stream = TcpStream::connect(proxy).await.unwrap();
                let answer = answered_shut(&mut stream, request.as_bytes()).await;
                says.send(status(&answer)).unwrap();
            }
        });
    }
    drop(says);
    // Even editions allow, odd ones do not.
    let mut said = Vec::new();
    while let Some(status) = heard.recv().await {
        said.push(status);
        if said.len() % BETWEEN == 0 {
            let next = if lab.version % 2 == 0 { policy(&[]) } else { open.clone() };
            lab.set_policy(next);
        }
    }
    clients.join_all().await;
    let reports = lab.reports();
    let tunnels: Vec<_> =
        reports.iter().filter(|report| report.how == ConnectionHow::Connect).collect();
    assert_eq!((tunnels.len(), said.len()), (CLIENTS * TIMES, CLIENTS * TIMES));
    for report in &tunnels {
        let expected = match report.policy_version % 2 {
            0 => ConnectionDecision::Allowed,
            _ => ConnectionDecision::Denied,
        };
        assert_eq!(report.decision, expected, "{report:?}");
    }
    // What the log tells is what the clients heard, and what the server saw.
    let allowed = tunnels.iter().filter(|one| one.decision == ConnectionDecision::Allowed).count();
    assert_eq!(said.iter().filter(|status| **status == 200).count(), allowed);
    assert_eq!(said.iter().filter(|status| **status == 403).count(), tunnels.len() - allowed);
    assert_eq!(server.connections(), allowed);
    // The control: both happened, under several editions.
    assert!(allowed > 0 && allowed < tunnels.len(), "{allowed} of {}", tunnels.len());
    let editions: BTreeSet<u64> = tunnels.iter().map(|report| report.policy_version).collect();
    assert!(editions.len() > 4, "{editions:?}");
    // From the next connection on: whoever comes after a change is under it.
    for _ in 0..10 {
        let allows = lab.version % 2 == 1;
        lab.set_policy(if allows { open.clone() } else { policy(&[]) });
        lab.settled().await;
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        let heard = status(&answered_shut(&mut stream, request.as_bytes()).await);
        assert_eq!(heard, if allows { 200 } else { 403 });
    }
}

/// Sends this and no more, and returns all that comes.
async fn answered_shut(stream: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    let _ = stream.write_all(request).await;
    let _ = stream.shutdown().await;
    rest(stream).await
}
