use crate::ground::Ground;
use crate::stage::{Stage, exec, sandbox_id};
use crate::stand_in::DENIED;
use cofferdam::{
    Deadlines, DestroyReason, DurableBackend, Ending, ErrorKind, GateProgram, NetworkPolicy,
    Profile, SandboxOrder, SandboxRecord, Spec, own_backend,
};
use std::sync::Arc;

pub(crate) const ALL: [(&str, fn()); 6] = [
    ("a_sandbox_of_a_library_has_a_gate_too", a_sandbox_of_a_library_has_a_gate_too),
    ("connections_of_all_kinds_come_to_the_gate", connections_of_all_kinds_come_to_the_gate),
    ("it_starts_when_it_is_needed_and_ends_with_the_sandbox", it_starts_when_it_is_needed),
    ("what_was_denied_stands_in_the_end_of_a_command", what_was_denied_stands_in_the_end),
    ("a_policy_changes_while_the_sandbox_lives", a_policy_changes_while_the_sandbox_lives),
    ("nobody_inside_can_change_the_way", nobody_inside_can_change_the_way),
];

fn on_runtime(work: impl AsyncFnOnce()) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().unwrap().block_on(work());
}

/// A place whose backend knows this program as the gate.
fn place(name: &str) -> Stage {
    let mut stage = Stage::new(name);
    let program = GateProgram::open(&std::env::current_exe().unwrap()).unwrap();
    stage.backend = stage.backend.clone().with_gate(program);
    stage
}

async fn open(stage: &Stage, name: &str) -> SandboxRecord {
    let spec = Spec {
        profile: Profile::RepoWrite,
        egress: vec!["allowed.test:443".parse().unwrap()],
        ..stage.spec()
    };
    let order = SandboxOrder {
        spec,
        owner: String::new(),
        deadlines: Deadlines::default(),
        home: None,
        kept: None,
    };
    stage.backend.create(&sandbox_id(name), &order).await.unwrap()
}

/// Ends a sandbox, so that nothing of it is left for a next start that there is not.
async fn end(stage: &Stage, of: &SandboxRecord) {
    stage.backend.destroy(of, DestroyReason::Success).await.unwrap();
}

/// What somebody inside hears at this place.
async fn heard(stage: &Stage, of: &SandboxRecord, name: &str, place: &str) -> String {
    let script = format!("exec bash -c 'exec 5<>/dev/tcp/{place}; cat <&5'");
    assert_eq!(stage.run(of, &exec(name, &script)).await, Ending::Exited(0), "{place}");
    stage.output(of, name).await
}

fn connections_of_all_kinds_come_to_the_gate() {
    on_runtime(async || {
        let stage = place("out-kinds");
        let of = open(&stage, "out-kinds").await;
        for (number, (place, kind)) in [
            ("192.0.2.7/443", "transparent_v4"),
            ("10.0.0.1/22", "transparent_v4"),
            ("2001:db8::7/80", "transparent_v6"),
            ("127.0.0.1/61002", "proxy"),
            ("198.18.0.1/53", "dns_tcp"),
        ]
        .into_iter()
        .enumerate()
        {
            let said = heard(&stage, &of, &format!("c{number}"), place).await;
            let expected = format!("{kind} of {}", of.id);
            assert!(said.starts_with(&expected), "{place}: {said}");
            assert!(said.ends_with("version 1: allowed.test:443\n"), "{said}");
        }
        let ask = "exec bash -c 'exec 5<>/dev/udp/198.18.0.1/53; echo who >&5; head -c 4 <&5'";
        assert_eq!(stage.run(&of, &exec("names", ask)).await, Ending::Exited(0));
        assert_eq!(stage.output(&of, "names").await, "who\n");
        let own = "exec python3 -c '
import socket, threading
s = socket.create_server((\"127.0.0.1\", 0))
c = socket.create_connection(s.getsockname())
s.accept()[0].sendall(b\"own\")
print(c.recv(3).decode())'";
        assert_eq!(stage.run(&of, &exec("own", own)).await, Ending::Exited(0));
        assert_eq!(stage.output(&of, "own").await, "own\n", "control: servers of its own work");
        end(&stage, &of).await;
    });
}

fn a_sandbox_of_a_library_has_a_gate_too() {
    on_runtime(async || {
        let ground = Ground::new("out-library");
        let program = GateProgram::open(&std::env::current_exe().unwrap()).unwrap();
        let backend = Arc::new(own_backend(ground.place.join("state")).with_gate(program));
        let closed = ground.builder(&backend).create().await.unwrap();
        let builder = ground.builder(&backend).profile(Profile::RepoWrite);
        let sandbox = builder.egress("allowed.test:443").unwrap().create().await.unwrap();
        let script = "exec 5<>/dev/tcp/192.0.2.7/443; cat <&5";
        let said = sandbox.exec(["bash", "-c", script]).await.unwrap().stdout;
        let said = String::from_utf8(said).unwrap();
        assert!(said.starts_with("transparent_v4 of "), "{said}");
        assert!(said.ends_with("version 1: allowed.test:443\n"), "{said}");
        let gate = process_of(&said);
        assert!(is_there(gate));
        let now = sandbox.network().await.unwrap().unwrap();
        let other = vec!["other.test:443".parse().unwrap()];
        let next = NetworkPolicy { version: 2, allow: other, ..now.clone() };
        sandbox.set_network(&next).await.unwrap();
        assert_eq!(sandbox.network().await.unwrap(), Some(next.clone()));
        let stale = sandbox.set_network(&next).await.unwrap_err();
        assert_eq!(stale.kind, ErrorKind::Conflict);
        for attempt in 0.. {
            let said = sandbox.exec(["bash", "-c", script]).await.unwrap().stdout;
            let said = String::from_utf8(said).unwrap();
            // The gate hears of it beside what comes.
            match said.ends_with("version 2: other.test:443\n") {
                true => break,
                false => assert!(attempt < 100, "{said}"),
            }
        }
        assert_eq!(closed.network().await.unwrap(), None);
        let none = closed.set_network(&NetworkPolicy { version: 1, ..now }).await.unwrap_err();
        assert_eq!(none.kind, ErrorKind::Conflict);
        let refused = closed.exec(["bash", "-c", script]).await.unwrap();
        assert_ne!(refused.ending, Ending::Exited(0), "control: the other has no way out");
        sandbox.destroy().await.unwrap();
        assert!(!is_there(gate));
        closed.destroy().await.unwrap();
    });
}

fn process_of(said: &str) -> u32 {
    let (_, rest) = said.split_once("process ").unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

fn is_there(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn it_starts_when_it_is_needed() {
    on_runtime(async || {
        let stage = place("out-start");
        let of = open(&stage, "out-start").await;
        stage.run(&of, &exec("idle", "true")).await;
        assert_eq!(stage.backend.connections(&of.id, 0).await.unwrap().reports, []);
        let first = process_of(&heard(&stage, &of, "one", "192.0.2.7/443").await);
        let same = process_of(&heard(&stage, &of, "two", "192.0.2.7/443").await);
        assert_eq!(first, same, "there is one gate");
        let die = "exec bash -c 'exec 5<>/dev/tcp/192.0.2.7/1; printf die >&5; cat <&5'";
        stage.run(&of, &exec("die", die)).await;
        let next = process_of(&heard(&stage, &of, "three", "192.0.2.7/443").await);
        assert_ne!(first, next, "another one answers");
        let told = stage.backend.connections(&of.id, 0).await.unwrap().reports;
        let told = told.iter().filter_map(|report| report.reason.as_deref());
        assert_eq!(told.filter(|why| why.contains("exit status: 7")).count(), 1);
        assert!(is_there(next), "control: it is there as long as the sandbox is");
        stage.backend.destroy(&of, DestroyReason::Success).await.unwrap();
        assert!(!is_there(next) && !is_there(first));
    });
}

fn what_was_denied_stands_in_the_end() {
    on_runtime(async || {
        let stage = place("out-denied");
        let of = open(&stage, "out-denied").await;
        heard(&stage, &of, "one", "192.0.2.7/443").await;
        heard(&stage, &of, "two", "127.0.0.1/61002").await;
        stage.run(&of, &exec("none", "true")).await;
        for (name, denied) in [("one", 1), ("two", 1), ("none", 0)] {
            let ended = stage.wait(&of, name).await.ended.unwrap();
            assert_eq!(ended.denials.len(), denied, "{name}: {:?}", ended.denials);
            let is_told = |denial: &cofferdam::Denial| denial.host.as_deref() == Some(DENIED);
            assert!(ended.denials.iter().all(is_told));
        }
        let all = stage.backend.connections(&of.id, 0).await.unwrap();
        assert_eq!(all.reports.len(), 2);
        let later = stage.backend.connections(&of.id, all.next).await.unwrap();
        assert_eq!((later.reports.len(), later.next), (0, all.next));
        stage.backend.destroy(&of, DestroyReason::Success).await.unwrap();
        assert_eq!(
            stage.backend.connections(&of.id, 0).await.unwrap(),
            all,
            "until it is forgotten"
        );
    });
}

fn a_policy_changes_while_the_sandbox_lives() {
    on_runtime(async || {
        let stage = place("out-policy");
        let of = open(&stage, "out-policy").await;
        let before = stage.backend.network(&of).await.unwrap().unwrap();
        assert_eq!(before.version, 1);
        let next = |version| NetworkPolicy {
            version,
            allow: vec!["other.test:443".parse().unwrap()],
            ..before.clone()
        };
        // Before the gate runs, and while it does.
        stage.backend.set_network(&of, &next(2)).await.unwrap();
        let said = heard(&stage, &of, "one", "192.0.2.7/443").await;
        assert!(said.ends_with("version 2: other.test:443\n"), "{said}");
        stage.backend.set_network(&of, &next(3)).await.unwrap();
        let mut number = 0;
        loop {
            number += 1;
            let said = heard(&stage, &of, &format!("n{number}"), "192.0.2.7/443").await;
            if said.contains("version 3") {
                break;
            }
            assert!(number < 100, "{said}");
        }
        let stale = stage.backend.set_network(&of, &next(3)).await.unwrap_err();
        assert_eq!(stale.kind, ErrorKind::Conflict);
        assert_eq!(stage.backend.network(&of).await.unwrap().unwrap(), next(3));
        let closed = stage.make("out-closed").await;
        assert_eq!(stage.backend.network(&closed).await.unwrap(), None);
        let refused = stage.backend.set_network(&closed, &next(2)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        assert!(refused.hint.unwrap().contains("--egress"));
        end(&stage, &of).await;
        end(&stage, &closed).await;
    });
}

/// Each line: what is tried, and what a process with the right would get.
const ATTEMPTS: &str = r#"
import errno, socket, struct

def netlink(protocol, kind, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    s.send(struct.pack("=IHHII", 16 + len(body), kind, 5, 1, 0) + body)
    answer = s.recv(4096)
    return -struct.unpack("=i", answer[16:20])[0]

def attempt(name, work):
    try:
        print(name, work())
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))

def bound(family, kind, address, port):
    s = socket.socket(family, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind((address, port))
    return "bound"

route = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 255, 3, 254, 2, 0) + struct.pack("=HHI", 8, 4, 1)
attempt("route.remove", lambda: errno.errorcode[netlink(0, 25, route)])
attempt("route.add", lambda: errno.errorcode[netlink(0, 24, route)])
attempt("link.down", lambda: errno.errorcode[netlink(0, 16, struct.pack("=BBHiII", 0, 0, 0, 1, 0, 1))])
attempt("rules", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) and "made")
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW, 0x300) and "made")
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and "made")
attempt("tables", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(0, 64, b"x" * 100))
attempt("transparent", lambda: socket.socket().setsockopt(0, 19, 1))
for address in ["127.0.0.1", "0.0.0.0", "192.0.2.7"]:
    attempt("bind.tcp " + address, lambda: bound(socket.AF_INET, socket.SOCK_STREAM, address, 61001))
    attempt("bind.proxy " + address, lambda: bound(socket.AF_INET, socket.SOCK_STREAM, address, 61002))
    attempt("bind.udp " + address, lambda: bound(socket.AF_INET, socket.SOCK_DGRAM, address, 61053))
attempt("bind.v6", lambda: bound(socket.AF_INET6, socket.SOCK_STREAM, "::1", 61001))
attempt("control.bind", lambda: bound(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1", 61000))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
attempt("udp", lambda: udp.sendto(b"x", ("192.0.2.7", 443)))
udp6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
attempt("udp6", lambda: udp6.sendto(b"x", ("2001:db8::7", 443)))
attempt("control.udp", lambda: udp.sendto(b"x", ("127.0.0.1", 9)))
"#;

fn nobody_inside_can_change_the_way() {
    on_runtime(async || {
        let stage = place("out-inside");
        let of = open(&stage, "out-inside").await;
        std::fs::write(stage.ground.workspace().join("attempts.py"), ATTEMPTS).unwrap();
        let ended = stage.run(&of, &exec("try", "exec python3 attempts.py")).await;
        let said = stage.output(&of, "try").await;
        assert_eq!(ended, Ending::Exited(0), "{said}");
        let mut lines = said.lines().filter_map(|line| line.rsplit_once(' '));
        let refused = ["EPERM", "EACCES", "EADDRINUSE", "EAFNOSUPPORT", "EPROTONOSUPPORT"];
        let mut count = 0;
        for (name, came) in lines.by_ref() {
            count += 1;
            match name {
                "control.bind" => assert_eq!(came, "bound"),
                "control.udp" => assert_eq!(came, "1"),
                _ => assert!(refused.contains(&came), "{name}: {came}\n{said}"),
            }
        }
        assert_eq!(count, 22, "{said}");
        assert!(heard(&stage, &of, "after", "192.0.2.7/443").await.starts_with("transparent_v4"));
        end(&stage, &of).await;
    });
}
