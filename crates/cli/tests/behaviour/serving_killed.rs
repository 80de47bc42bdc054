//! A server that is killed while many ask it, and the one that comes after.

use crate::place::{Place, SOON, everyone, outcome, until};
use crate::serving::Serving;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many clients start commands, and how many make sandboxes.
const CLIENTS: usize = 4;
/// How much is finished before the server is killed.
const ENOUGH: usize = 24;

/// Asks a server that may die meanwhile: `None` where no whole answer came.
fn try_ask(at: &str, line: &str, body: &str, more: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(SOON * 3)).ok()?;
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\n{more}content-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

/// What a client knows: commands by their keys, and whether each had ended.
#[derive(Debug, Default)]
struct Known {
    begun: BTreeMap<String, String>,
    ended: Vec<String>,
    /// What it asked for last and was never answered.
    open: Option<String>,
}

/// Starts one command under its key, and waits for its end.
fn once(at: &str, key: &str, known: &mut Known, finished: &AtomicUsize) -> Option<()> {
    known.open = Some(key.to_owned());
    let body = json!({ "shell": format!("echo {key} >> log; echo out-{key}") }).to_string();
    let more = format!("idempotency-key: {key}\r\n");
    let (status, exec) = try_ask(at, "POST /v1/sandboxes/work/execs", &body, &more)?;
    assert!([200, 201].contains(&status), "{exec}");
    let id = exec["id"].as_str()?.to_owned();
    known.begun.insert(key.to_owned(), id.clone());
    known.open = None;
    let wait = format!("GET /v1/sandboxes/work/execs/{id}/wait");
    let (_, ended) = try_ask(at, &wait, "", "")?;
    assert_eq!(ended["ending"], "exited", "{ended}");
    known.ended.push(key.to_owned());
    finished.fetch_add(1, Ordering::Relaxed);
    Some(())
}

/// Asks from many sides until the server is killed, and gives what the clients know.
fn load_and_kill(place: &Place, serving: Serving) -> (Vec<Known>, Vec<String>) {
    let (finished, at) = (AtomicUsize::new(0), serving.address().to_owned());
    let (finished, at) = (&finished, at.as_str());
    let slow = json!({ "exec": { "shell": "sleep 300" } }).to_string();
    let runs: Vec<TcpStream> =
        (0..CLIENTS).map(|_| serving.send("", "POST /v1/run", &slow, "")).collect();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let mut known = Known::default();
                    let mut number = 0;
                    while once(at, &format!("c{client}-{number}"), &mut known, finished).is_some() {
                        number += 1;
                    }
                    known
                })
            })
            .collect();
        let makers: Vec<_> = (0..CLIENTS)
            .map(|maker| {
                scope.spawn(move || {
                    let mut made = Vec::new();
                    for number in 0.. {
                        let name = format!("made-{maker}-{number}");
                        match try_ask(at, &format!("PUT /v1/sandboxes/{name}"), "{}", "") {
                            Some((201, _)) => made.push(name),
                            Some(other) => panic!("{other:?}"),
                            None => break,
                        }
                    }
                    made
                })
            })
            .collect();
        let is_enough = || (finished.load(Ordering::Relaxed) >= ENOUGH).then_some(());
        until(SOON * 3, is_enough).expect("the load begins");
        serving.end(place, "-KILL");
        drop(runs);
        let known = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let made = makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect();
        (known, made)
    })
}

#[test]
fn nothing_finished_is_lost_and_nothing_leaks_when_a_server_is_killed_under_load() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        assert_eq!(serving.ask("", "PUT /v1/sandboxes/work", "{}").status, 201);
        let (mut clients, made) = load_and_kill(place, serving);
        let next = Serving::start(place, &[]);
        let finished = AtomicUsize::new(0);
        for known in &mut clients {
            // Whoever was not answered asks again, twice, and goes on.
            for _ in 0..2 {
                if let Some(open) = known.open.clone() {
                    once(next.address(), &open, known, &finished).unwrap();
                    known.open = Some(open);
                }
            }
            for (key, id) in &known.begun {
                let wait = format!("GET /v1/sandboxes/work/execs/{id}/wait");
                let ended = next.ask("", &wait, "").json();
                assert_eq!(ended["ending"], "exited", "{key}: {ended}");
                let part = format!("GET /v1/sandboxes/work/execs/{id}/output?stream=stdout");
                assert_eq!(next.ask("", &part, "").json()["text"], format!("out-{key}\n"));
            }
        }
        let ended: usize = clients.iter().map(|known| known.ended.len()).sum();
        assert!(ended >= ENOUGH, "{clients:?}");
        // Each command ran once, however often somebody asked for it.
        let log = next.ask("", "GET /v1/sandboxes/work/files?path=log", "").body;
        let mut ran: Vec<&str> = log.lines().collect();
        ran.sort_unstable();
        let mut keys: Vec<&str> =
            clients.iter().flat_map(|known| known.begun.keys()).map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(ran, keys);
        // Every sandbox that somebody was told of runs; none is half made; those of runs are gone.
        let listed = || {
            let listed = next.ask("", "GET /v1/sandboxes?limit=200", "").json();
            let sessions = listed["sessions"].as_array().unwrap().clone();
            assert!(sessions.len() < 200, "too many to compare");
            sessions
        };
        let is_settled = || {
            place.says(&["gc"], 0);
            let all = listed();
            all.iter()
                .all(|one| one["phase"] == "running" && one["name"].is_string())
                .then_some(all)
        };
        let all = until(SOON, is_settled).unwrap_or_else(|| panic!("{:?}", listed()));
        let names: Vec<&str> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert!(made.iter().all(|name| names.contains(&name.as_str())), "{made:?}: {names:?}");
        for name in &names {
            let gone = next.ask("", &format!("DELETE /v1/sandboxes/{name}"), "");
            assert_eq!(gone.status, 204, "{}", gone.body);
        }
        let collected = place.says(&["gc", "--json"], 0).object();
        assert_eq!((&collected["done"], &collected["failed"]), (&json!([]), &json!([])));
        next.end(place, "-TERM");
        let left =
            outcome(place.host("/bin/ls").args(["-A"]).arg(place.state.join("sessions")), SOON);
        assert_eq!(left.text(), "", "directories of sandboxes that are gone");
    });
}
