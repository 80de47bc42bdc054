//! What a server does where it can have no more descriptors.

use crate::place::{SOON, everyone, outcome, until};
use crate::serving::{Serving, Told, told};
use std::net::TcpStream;
use std::time::Duration;

/// Fewer than it takes for the connections below.
const FILES: usize = 64;
/// How soon somebody is answered, long before silent connections are given up by themselves.
const AT_ONCE: Duration = Duration::from_secs(10);

/// What somebody is answered, though others are connected and say nothing.
fn answered_beside_others(serving: &Serving, line: &str) -> Told {
    let connect = || TcpStream::connect(serving.address()).unwrap();
    let silent: Vec<TcpStream> = (0..2 * FILES).map(|_| connect()).collect();
    let answer = serving.send("", line, "", "");
    answer.set_read_timeout(Some(AT_ONCE)).unwrap();
    let told = told(answer);
    drop(silent);
    told
}

#[test]
fn connections_that_ask_for_nothing_shut_nobody_out_where_there_are_few_files() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        let asks = "GET /v1/sandboxes";
        assert_eq!(answered_beside_others(&serving, asks).status, 200);
        // Fewer than it had at its start, from which it knows how many connections there may be.
        let (pid, few) = (serving.pid().to_string(), format!("--nofile={FILES}"));
        let set = outcome(place.host("prlimit").args(["--pid", &pid, &few]), SOON);
        assert_eq!(set.code(), Some(0), "{set:?}");
        for _ in 0..3 {
            assert_eq!(answered_beside_others(&serving, "GET /healthz").status, 200);
            // Whose the connection is takes a descriptor to find out: nobody is told that he is another user.
            let told = answered_beside_others(&serving, asks);
            assert!(told.status == 200 || told.body.contains("could not find out"), "{told:?}");
        }
        // The control: as soon as there are descriptors again.
        let answers = || (serving.ask("", asks, "").status == 200).then_some(());
        until(SOON, answers).unwrap();
        serving.end(place, "-TERM");
    });
}
