//! Questions for names inside: answered for names that may be reached, by addresses that stand for
//! them, and never passed on.

use super::servers::{Server, Zone, at};
use super::{Lab, policy, soon};
use cofferdam_core::{ConnectionHow, NetworkPolicy};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use std::net::{IpAddr, Ipv4Addr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

fn question(name: &str, kind: TYPE) -> Vec<u8> {
    let mut packet = Packet::new_query(7);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let class = QCLASS::CLASS(CLASS::IN);
    packet.questions.push(Question::new(Name::new_unchecked(name), kind.into(), class, false));
    packet.build_bytes_vec().unwrap()
}

impl Lab {
    /// What is answered to these bytes.
    async fn asked(&self, question: &[u8]) -> Vec<u8> {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.send_to(question, self.dns_udp).await.unwrap();
        let mut answer = vec![0; 2048];
        let length = soon(socket.recv(&mut answer)).await.unwrap();
        answer.truncate(length);
        answer
    }

    /// What is answered about a name: a code, and addresses.
    async fn told(&self, name: &str, kind: TYPE) -> (RCODE, Vec<IpAddr>) {
        told(&self.asked(&question(name, kind)).await)
    }

    /// The address that stands for a name.
    pub(super) async fn lookup(&self, name: &str) -> Option<IpAddr> {
        self.told(name, TYPE::A).await.1.first().copied()
    }

    /// Waits until the gate goes by the newest policy.
    pub(super) async fn settled(&self) {
        for number in 0.. {
            let name = format!("a{number}.settled.invalid");
            assert_eq!(self.told(&name, TYPE::A).await.0, RCODE::NameError);
            let report = self.report(|report| report.host.as_deref() == Some(&name)).await;
            if report.policy_version == self.version {
                return;
            }
        }
    }
}

fn told(answer: &[u8]) -> (RCODE, Vec<IpAddr>) {
    let packet = Packet::parse(answer).unwrap();
    assert_eq!(packet.id(), 7);
    let address = |data: &RData<'_>| {
        let RData::A(v4) = data else { panic!("no address: {data:?}") };
        IpAddr::from(v4.address.to_be_bytes())
    };
    (packet.rcode(), packet.answers.iter().map(|record| address(&record.rdata)).collect())
}

async fn lab(rules: &[&str]) -> (Lab, Zone) {
    let zone = Zone::new(|_, _| at(&["127.0.0.1"])).await;
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    (Lab::new(policy(&rules), &zone).await, zone)
}

#[tokio::test]
async fn a_name_that_may_be_reached_has_an_address_that_stands_for_it() {
    let (lab, zone) = lab(&["ok.test:443", "*.pkg.test"]).await;
    let first = lab.lookup("ok.test").await.unwrap();
    assert_eq!(first, IpAddr::V4(Ipv4Addr::new(198, 18, 1, 0)));
    assert_eq!(lab.lookup("OK.Test").await, Some(first));
    assert_ne!(lab.lookup("pkg.test").await.unwrap(), first);
    assert!(lab.lookup("a.b.pkg.test").await.is_some());
    assert_eq!(lab.told("ok.test", TYPE::AAAA).await, (RCODE::NoError, vec![]), "no socket for it");
    assert!(zone.was_asked().is_empty(), "no question is passed on");
}

#[tokio::test]
async fn any_other_name_does_not_exist_and_nobody_outside_is_asked() {
    let (lab, zone) = lab(&["ok.test:443"]).await;
    let long = format!("{}.evil.test", vec!["c2VjcmV0".repeat(7); 3].join("."));
    let names = ["evil.test", "a.ok.test", "ok.test.evil.test", "_ssh.ok.test", &long, "127.0.0.1"];
    for name in names {
        for kind in [TYPE::A, TYPE::AAAA, TYPE::TXT, TYPE::MX] {
            assert_eq!(lab.told(name, kind).await, (RCODE::NameError, vec![]), "{name}");
        }
    }
    for kind in [TYPE::TXT, TYPE::NULL, TYPE::MX, TYPE::CNAME, TYPE::SRV] {
        assert_eq!(lab.told("ok.test", kind).await, (RCODE::NoError, vec![]), "{kind:?}");
    }
    let any = |name| {
        let mut packet = Packet::new_query(7);
        let class = QCLASS::CLASS(CLASS::IN);
        packet.questions.push(Question::new(Name::new(name).unwrap(), QTYPE::ANY, class, false));
        packet.build_bytes_vec().unwrap()
    };
    assert_eq!(told(&lab.asked(&any("ok.test")).await), (RCODE::NoError, vec![]));
    assert!(zone.was_asked().is_empty(), "{:?}", zone.was_asked());
    let reports = lab.reports();
    assert_eq!(reports.len(), names.len(), "one line for each name: {reports:?}");
    assert!(reports.iter().all(|report| report.how == ConnectionHow::Dns));
    assert_eq!(reports[0].remedy.as_deref(), Some("--egress evil.test"));
}

#[tokio::test]
async fn a_question_for_the_services_of_a_host_is_a_question_about_the_host() {
    let (lab, zone) = lab(&["ok.test:443"]).await;
    assert_eq!(lab.told("_http._tcp.ok.test", TYPE::SRV).await, (RCODE::NameError, vec![]));
    assert!(lab.reports().is_empty(), "it may be reached: {:?}", lab.reports());
    assert_eq!(lab.told("_http._tcp.evil.test", TYPE::SRV).await, (RCODE::NameError, vec![]));
    assert_eq!(lab.told("_http._tcp", TYPE::SRV).await, (RCODE::NameError, vec![]));
    assert_eq!(lab.told("_http.ok.test", TYPE::A).await, (RCODE::NameError, vec![]));
    let denied: Vec<String> = lab.reports().into_iter().filter_map(|report| report.host).collect();
    assert_eq!(denied, ["evil.test", "_http._tcp", "_http.ok.test"]);
    assert!(zone.was_asked().is_empty(), "{:?}", zone.was_asked());
}

#[tokio::test]
async fn malformed_questions_are_refused_or_dropped() {
    let (lab, _zone) = lab(&["ok.test:443"]).await;
    let good = question("ok.test", TYPE::A);
    let with = |place: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[place] = byte;
        bytes
    };
    let refused = |answer: Vec<u8>| Packet::parse(&answer).unwrap().rcode();
    assert_eq!(refused(lab.asked(&with(4, 255)).await), RCODE::FormatError, "many questions");
    assert_eq!(refused(lab.asked(&with(5, 2)).await), RCODE::FormatError, "two questions");
    assert_eq!(refused(lab.asked(&with(5, 0)).await), RCODE::FormatError, "no question");
    assert_eq!(refused(lab.asked(&with(6, 255)).await), RCODE::FormatError, "many answers");
    assert_eq!(refused(lab.asked(&good[..15]).await), RCODE::FormatError, "cut off");
    assert_eq!(refused(lab.asked(&with(2, 0x28)).await), RCODE::NotImplemented, "an update");
    let mut ring = good[..12].to_vec();
    ring.extend([0xc0, 12, 0, 1, 0, 1]);
    assert_eq!(refused(lab.asked(&ring).await), RCODE::FormatError, "a name within itself");
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(&with(2, 0x81), lab.dns_udp).await.unwrap();
    socket.send_to(&good[..3], lab.dns_udp).await.unwrap();
    socket.send_to(&good, lab.dns_udp).await.unwrap();
    let mut answer = [0; 512];
    let length = soon(socket.recv(&mut answer)).await.unwrap();
    assert_eq!(told(&answer[..length]).0, RCODE::NoError, "answers and scraps are not answered");
}

#[tokio::test]
async fn questions_over_tcp_are_answered_too_and_only_so_many() {
    let (lab, _zone) = lab(&["ok.test:443"]).await;
    let mut stream = TcpStream::connect(lab.dns_tcp).await.unwrap();
    let good = question("ok.test", TYPE::A);
    let mut message = u16::try_from(good.len()).unwrap().to_be_bytes().to_vec();
    message.extend_from_slice(&good);
    let mut answers = 0;
    while stream.write_all(&message).await.is_ok() {
        let Ok(length) = soon(stream.read_u16()).await else { break };
        let mut answer = vec![0; length.into()];
        soon(stream.read_exact(&mut answer)).await.unwrap();
        assert_eq!(told(&answer).1.len(), 1);
        answers += 1;
    }
    assert_eq!(answers, crate::Limits::default().questions);
    let mut stream = TcpStream::connect(lab.dns_tcp).await.unwrap();
    stream.write_all(&[0xff, 0xff, 0]).await.unwrap();
    assert!(super::rest(&mut stream).await.is_empty(), "a question that is too long");
}

#[tokio::test]
async fn a_name_whose_connection_may_wait_leads_to_the_gate() {
    let zone = Zone::new(|_, _| at(&["127.0.0.1"])).await;
    let asking = NetworkPolicy { ask_ms: 60_000, ..policy(&[]) };
    let lab = Lab::new(asking, &zone).await;
    assert!(lab.lookup("new.test").await.is_some());
    assert_eq!(lab.told("_new.test", TYPE::A).await.0, RCODE::NameError);
    assert!(zone.was_asked().is_empty());
}

#[tokio::test]
async fn a_name_that_may_wait_is_refused_with_its_port_and_the_line_that_would_allow_it() {
    let zone = Zone::new(|_, _| at(&["127.0.0.1"])).await;
    let lab = Lab::new(NetworkPolicy { ask_ms: 1, ..policy(&[]) }, &zone).await;
    let mut stream = lab.to_name("new.test", 8080).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: new.test:8080\r\n\r\n").await.unwrap();
    let said = String::from_utf8(super::rest(&mut stream).await).unwrap();
    assert_eq!(super::status(said.as_bytes()), 403);
    assert!(said.contains("allow it with: --egress new.test:8080\n"), "{said}");
    let denied = lab.denied().await;
    assert_eq!((denied.host.as_deref(), denied.port), (Some("new.test"), 8080));
    // Control: where nothing waits the name has no address, and is told by itself.
    let lab = Lab::new(policy(&[]), &zone).await;
    assert_eq!(lab.told("new.test", TYPE::A).await.0, RCODE::NameError);
    let denied = lab.denied().await;
    assert_eq!((denied.port, denied.remedy.as_deref()), (0, Some("--egress new.test")));
    assert!(zone.was_asked().is_empty(), "{:?}", zone.was_asked());
}

#[tokio::test]
async fn the_hosts_loopback_is_reached_by_its_name_on_the_ports_that_are_opened() {
    let zone = Zone::of(&[]).await;
    let (open, shut) = (Server::web("127.0.0.1").await, Server::web("127.0.0.1").await);
    let opened = NetworkPolicy { host_ports: vec![open.port], ..policy(&["*".to_owned()]) };
    let lab = Lab::new(opened, &zone).await;
    let name = "host.cofferdam.internal";
    let mut stream = lab.to_name(name, open.port).await;
    let request = format!("GET / HTTP/1.1\r\nHost: {name}:{}\r\n\r\n", open.port);
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(super::rest(&mut stream).await.ends_with(b"hello"), "control");
    let mut stream = lab.to_name(name, shut.port).await;
    let request = format!("GET / HTTP/1.1\r\nHost: {name}:{}\r\n\r\n", shut.port);
    stream.write_all(request.as_bytes()).await.unwrap();
    let said = String::from_utf8(super::rest(&mut stream).await).unwrap();
    assert!(said.contains(&format!("--allow-host-port {}\n", shut.port)), "{said}");
    assert_eq!(shut.connections(), 0);
    assert!(zone.was_asked().is_empty(), "nobody outside is asked for it");
}
