//! Where a name leads to: private answers, answers that change, answers that were forged.

use super::servers::{Server, Told, Zone, at};
use super::{Lab, policy, status};
use cofferdam_core::ConnectionDecision;

/// Answers that lead to what is not public, in every form.
const PRIVATE: [&str; 20] = [
    "127.0.0.2",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.2",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:2",
    "2002:7f00:2::",
    "fd00:ec2::254",
    "fe80::1",
];

async fn get(lab: &Lab, host: &str, port: u16) -> Vec<u8> {
    let request = format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    lab.ask_proxy(request.as_bytes()).await
}

#[tokio::test]
async fn a_name_that_leads_to_what_is_not_public_is_denied() {
    let zone = Zone::new(|name, _| {
        let place: usize = name.trim_start_matches('a').split('.').next().unwrap().parse().unwrap();
        at(&[PRIVATE[place]])
    })
    .await;
    let shut = Server::web("127.0.0.2").await;
    let lab = Lab::new(policy(&["*".to_owned(), "0.0.0.0/0".to_owned()]), &zone).await;
    for (place, address) in PRIVATE.iter().enumerate() {
        let answer = get(&lab, &format!("a{place}.test"), shut.port).await;
        assert_eq!(status(&answer), 403, "{address}: {}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(shut.connections(), 0);
    let last = lab.reports().pop().unwrap();
    let wanted = format!("--egress [fe80::1]:{}", shut.port);
    assert_eq!(last.remedy, Some(wanted), "{last:?}");
    assert!(last.reason.unwrap().contains("leads to fe80::1, which is link-local"));
}

#[tokio::test]
async fn a_name_that_leads_to_what_is_listed_is_reached() {
    let zone = Zone::of(&[("in.test", &["127.0.0.2"])]).await;
    let server = Server::web("127.0.0.2").await;
    let rules = ["in.test".to_owned(), format!("127.0.0.0/8:{}", server.port)];
    let lab = Lab::new(policy(&rules), &zone).await;
    assert_eq!(status(&get(&lab, "in.test", server.port).await), 200);
    let report = lab.report(|report| report.decision == ConnectionDecision::Allowed).await;
    assert_eq!(report.host.as_deref(), Some("in.test"));
    assert_eq!(report.address.as_deref(), Some("127.0.0.2"));
    assert_eq!(report.rule.as_deref(), Some("in.test"));
    assert_eq!(report.bytes_down, 43);
    assert!(report.bytes_up > 20);
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_the_second_time_is_asked_for_once() {
    let zone = Zone::new(|_, times| match times {
        1 => at(&["127.0.0.1"]),
        _ => at(&["127.0.0.2"]),
    })
    .await;
    let (open, shut) = (Server::web("127.0.0.1").await, Server::web("127.0.0.2").await);
    let rules = ["rebind.test".to_owned(), "127.0.0.1".to_owned()];
    let lab = Lab::new(policy(&rules), &zone).await;
    assert_eq!(status(&get(&lab, "rebind.test", open.port).await), 200, "control");
    let questions = zone.was_asked().iter().filter(|asked| asked.ends_with("TYPE(A)")).count();
    assert_eq!(questions, 1, "one connection is one question: {:?}", zone.was_asked());
    assert_eq!(status(&get(&lab, "rebind.test", shut.port).await), 403);
    assert_eq!(shut.connections(), 0);
}

#[tokio::test]
async fn of_several_addresses_only_those_are_dialed_that_may_be_reached() {
    let zone = Zone::of(&[
        ("mixed.test", &["127.0.0.2", "10.0.0.1", "127.0.0.1"]),
        ("dead.test", &["127.0.0.1", "127.0.0.2"]),
    ])
    .await;
    let open = Server::web("127.0.0.1").await;
    // Its port is held at the other address, or a server of another test may get it there.
    let (shut, _held) = loop {
        let shut = Server::web("127.0.0.2").await;
        let held = tokio::net::TcpSocket::new_v4().unwrap();
        if held.bind((std::net::Ipv4Addr::LOCALHOST, shut.port).into()).is_ok() {
            break (shut, held);
        }
    };
    let rules = ["*.test.invalid", "mixed.test", "dead.test", "127.0.0.1"].map(str::to_owned);
    let lab = Lab::new(policy(&rules), &zone).await;
    assert_eq!(status(&get(&lab, "mixed.test", open.port).await), 200);
    // Nobody answers at the address that may be reached, and the other would.
    assert_eq!(status(&get(&lab, "dead.test", shut.port).await), 502);
    assert_eq!(shut.connections(), 0);
}

#[tokio::test]
async fn aliases_are_followed_to_addresses_that_are_checked() {
    let zone = Zone::new(|name, _| match name {
        "alias.test" => Told::Chain(vec!["b.test", "c.test"], vec!["127.0.0.1".parse().unwrap()]),
        "apart.test" => Told::Chain(vec!["end.test"], vec![]),
        "end.test" => at(&["127.0.0.1"]),
        "inside.test" => Told::Chain(vec!["b.test"], vec!["127.0.0.2".parse().unwrap()]),
        "ring.test" => Told::Chain(vec!["a.test", "ring.test"], vec![]),
        "far.test" | "away.test" => {
            Told::Chain(vec![if name == "far.test" { "away.test" } else { "far.test" }], vec![])
        }
        _ => Told::NoSuchName,
    })
    .await;
    let (open, shut) = (Server::web("127.0.0.1").await, Server::web("127.0.0.2").await);
    let names = ["alias", "apart", "inside", "ring", "far"].map(|name| format!("{name}.test"));
    let rules = [&names[..], &["127.0.0.1".to_owned()]].concat();
    let lab = Lab::new(policy(&rules), &zone).await;
    assert_eq!(status(&get(&lab, "alias.test", open.port).await), 200);
    assert_eq!(status(&get(&lab, "apart.test", open.port).await), 200);
    assert_eq!(status(&get(&lab, "inside.test", shut.port).await), 403);
    assert_eq!(status(&get(&lab, "ring.test", open.port).await), 502);
    assert_eq!(status(&get(&lab, "far.test", open.port).await), 502);
    assert_eq!(shut.connections(), 0);
    assert!(zone.was_asked().len() < 40, "{:?}", zone.was_asked());
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_question_is_not_believed() {
    let zone = Zone::new(|name, _| match name {
        "forged.test" => Told::Forged("127.0.0.2".parse().unwrap(), "127.0.0.1".parse().unwrap()),
        _ => Told::Misled("other.test", "127.0.0.1".parse().unwrap()),
    })
    .await;
    let (open, shut) = (Server::web("127.0.0.1").await, Server::web("127.0.0.2").await);
    let rules = ["*.test.invalid", "forged.test", "misled.test", "127.0.0.0/8"].map(str::to_owned);
    let lab = Lab::new(policy(&rules), &zone).await;
    assert_eq!(status(&get(&lab, "forged.test", open.port).await), 200);
    assert_eq!(status(&get(&lab, "forged.test", shut.port).await), 502);
    assert_eq!(status(&get(&lab, "misled.test", open.port).await), 502);
    assert_eq!(shut.connections(), 0);
}

#[tokio::test]
async fn a_name_that_is_not_there_failed_and_was_not_denied() {
    let zone = Zone::new(|name, _| match name {
        "broken.test" => Told::Broken,
        _ => Told::NoSuchName,
    })
    .await;
    let lab = Lab::new(policy(&["*".to_owned()]), &zone).await;
    let answer = String::from_utf8(get(&lab, "gone.test", 80).await).unwrap();
    assert_eq!(status(answer.as_bytes()), 502);
    assert!(answer.contains("there is no name gone.test"), "{answer}");
    assert_eq!(status(&get(&lab, "broken.test", 80).await), 502);
    let report = lab.reports().remove(0);
    assert_eq!(report.decision, ConnectionDecision::Failed);
    assert_eq!(report.remedy, None);
}

#[tokio::test]
async fn a_name_that_is_denied_is_never_asked_for() {
    let zone = Zone::new(|_, _| at(&["127.0.0.1"])).await;
    let lab = Lab::new(policy(&["ok.test:80".to_owned()]), &zone).await;
    let secret = format!("{}.evil.test", "c2VjcmV0".repeat(7));
    assert_eq!(status(&get(&lab, &secret, 80).await), 403);
    assert_eq!(status(&get(&lab, "ok.test", 81).await), 403);
    assert!(zone.was_asked().is_empty(), "{:?}", zone.was_asked());
}

#[tokio::test]
async fn a_machines_own_address_is_not_public_whatever_it_looks_like() {
    // The address by which this machine would go out, where it has one that looks public.
    let zone = Zone::of(&[]).await;
    let lab = Lab::new(policy(&["*".to_owned()]), &zone).await;
    let socket = tokio::net::UdpSocket::bind("0.0.0.0:0").await.unwrap();
    if socket.connect("192.0.2.1:9").await.is_ok() {
        let own = socket.local_addr().unwrap().ip();
        let answer = lab.tunnel(&format!("{own}:9")).await.1;
        assert_eq!(status(answer.as_bytes()), 403, "{own}: {answer}");
    }
    let answer = lab.tunnel("127.0.0.1:9").await.1;
    assert_eq!(status(answer.as_bytes()), 403, "{answer}");
}
