use super::*;
use cofferdam_core::{ConnectionDecision, MAX_DENIAL_WORD_BYTES, Spec, Workspace};
use rustix::fs::FallocateFlags;

fn house(program: &str) -> Gatehouse {
    let mut spec = Spec::new(Workspace::Private, cofferdam_core::Caller::default());
    spec.profile = cofferdam_core::Profile::FullDev;
    let policy = spec.network_policy().unwrap().unwrap();
    let program = GateProgram::open(std::path::Path::new(program)).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sockets = Sockets::new(&[GateSocket::Proxy], vec![listener.into()]).unwrap();
    let id = SandboxId::new("a").unwrap();
    Gatehouse::new(&id, program, policy, sockets, in_memory().unwrap())
}

/// Waits for what the house waits for, and lets it act.
fn turn(house: &mut Gatehouse) {
    let waits = house.waits();
    let mut fds: Vec<_> = waits
        .iter()
        .map(|(fd, flags)| rustix::event::PollFd::from_borrowed_fd(*fd, *flags))
        .collect();
    let within = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    assert!(rustix::event::poll(&mut fds, Some(&within)).unwrap() > 0);
    drop(fds);
    drop(waits);
    house.turn();
}

fn reasons(house: &Gatehouse) -> Vec<String> {
    let reports = read(&house.log, 0).unwrap().reports;
    reports.into_iter().filter_map(|report| report.reason).collect()
}

#[test]
fn a_gate_that_ends_is_started_again_a_few_times_and_then_nobody_answers() {
    let mut house = house("/bin/false");
    let address = {
        let (_, fd) = house.sockets.0.first().unwrap();
        let address = rustix::net::getsockname(fd).unwrap();
        std::net::SocketAddr::try_from(address).unwrap()
    };
    let _client = std::net::TcpStream::connect(address).unwrap();
    for _ in 0..MAX_STARTS {
        turn(&mut house);
        assert!(house.running.is_some());
        while house.running.is_some() {
            turn(&mut house);
        }
    }
    turn(&mut house);
    assert!(house.running.is_none() && house.waits().is_empty());
    assert!(std::net::TcpStream::connect(address).is_err(), "the socket is closed");
    let reasons = reasons(&house);
    assert_eq!(reasons.len(), MAX_STARTS + 1);
    assert!(reasons.first().unwrap().contains("exit status: 1"), "{reasons:?}");
    assert!(reasons.last().unwrap().contains("no way out any more"), "{reasons:?}");
    let told = house.take_denials();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told.first().unwrap().reason.as_ref(), reasons.last());
}

#[test]
fn a_gate_tells_of_so_many_denials_and_only_in_words_that_can_be_shown() {
    let mut house = house("/bin/true");
    let denial = |reason: &str| Denial::of(&ConnectionReport::of_the_gate(1, 1, reason));
    for bad in ["\u{1b}[2J", "a\u{202e}b", &"x".repeat(MAX_DENIAL_WORD_BYTES + 1)] {
        house.deny(denial(bad));
        assert_eq!(house.take_denials(), [], "{bad:?}");
    }
    (0..MAX_DENIALS_TOLD + 1).for_each(|_| house.deny(denial("control: this can be shown")));
    assert_eq!(house.take_denials().len(), MAX_DENIALS_TOLD);
}

#[test]
fn a_policy_follows_the_one_before() {
    let mut house = house("/bin/cat");
    let next = NetworkPolicy { version: 2, host_ports: vec![1], ..house.policy().clone() };
    let skipped = NetworkPolicy { version: 3, ..next.clone() };
    assert_eq!(house.set_policy(&skipped).unwrap_err().kind, ErrorKind::Conflict);
    house.set_policy(&next).unwrap();
    assert_eq!(house.policy(), &next);
    assert_eq!(house.set_policy(&next).unwrap_err().kind, ErrorKind::Conflict);
    let bad = NetworkPolicy { version: 3, host_ports: vec![0], ..next.clone() };
    assert_eq!(house.set_policy(&bad).unwrap_err().kind, ErrorKind::Usage);
    assert_eq!(house.policy(), &next, "nothing of a bad one is taken");
}

#[test]
fn a_torn_line_of_a_log_is_left_for_the_next_look() {
    let house = house("/bin/true");
    house.note("one");
    let whole = read(&house.log, 0).unwrap();
    assert_eq!(whole.reports.len(), 1);
    rustix::io::write(&house.log, b"{\"at_ms\":").unwrap();
    assert_eq!(read(&house.log, 0).unwrap(), whole);
    rustix::io::write(&house.log, b"\n").unwrap();
    house.note("two");
    let rest = read(&house.log, whole.next).unwrap();
    assert_eq!(rest.reports.len(), 1, "what is no entry is passed over");
}

/// A report of a connection, of at least half a KiB.
fn connection(id: u64, decision: ConnectionDecision) -> ConnectionReport {
    ConnectionReport {
        id,
        host: Some(format!("{id}.test")),
        decision,
        ..ConnectionReport::of_the_gate(1, 1, &"x".repeat(512))
    }
}

fn add(house: &Gatehouse, report: &ConnectionReport) {
    let mut line = serde_json::to_vec(report).unwrap();
    line.push(b'\n');
    assert_eq!(rustix::io::write(&house.log, &line), Ok(line.len()));
}

#[test]
fn a_denial_behind_any_number_of_other_connections_is_told() {
    let house = house("/bin/true");
    for id in 1..=5000 {
        add(&house, &connection(id, ConnectionDecision::Allowed));
    }
    let from = house.logged();
    assert!(from > 2 << 20, "control: more than one look takes");
    add(&house, &connection(5001, ConnectionDecision::Denied));
    let hosts = |from| -> Vec<_> {
        house.denied_since(from).unwrap().into_iter().filter_map(|denial| denial.host).collect()
    };
    assert_eq!(hosts(0), ["5001.test"]);
    // What came before is dropped, in the middle of a block.
    let line = house.logged() - from;
    add(&house, &connection(5002, ConnectionDecision::Denied));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&house.log, hole, 0, from + line).unwrap();
    for place in [0, from, from + line] {
        assert_eq!(hosts(place), ["5002.test"], "{place}");
    }
    assert_eq!(hosts(house.logged()), [""; 0]);
    rustix::fs::ftruncate(&house.log, 0).unwrap();
    add(&house, &connection(1, ConnectionDecision::Denied));
    assert_eq!(hosts(from), ["1.test"], "what begins again is read from its beginning");
}

#[test]
fn sockets_that_were_not_planned_are_refused() {
    assert!(Sockets::new(&[GateSocket::Proxy], Vec::new()).is_err());
}
