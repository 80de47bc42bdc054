//! A connection that no rule allows is asked for, answered, and goes on.

use crate::mcp_client::{Client, Generation};
use crate::place::{Place, Said, ended, everyone, lines_of, outcome, started, until};
use crate::schema::is_valid;
use crate::serving::{Serving, key};
use crate::way_out::{HOST, server};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// How long anything here may take before the test is given up.
const SOON: Duration = Duration::from_secs(60);
/// How long a connection waits that somebody answers.
const LONG: &str = "10m";

/// A session that asks, and may reach one port of this machine, so that others can be asked for.
fn session(place: &Place, patience: &str) {
    let open = server().to_string();
    let words = ["create", "--name", "s", "--profile", "repo-write", "--allow-host-port", &open];
    place.says(&[&words[..], &["--ask", patience]].concat(), 0);
}

/// Somebody inside who connects to that port.
fn connects(place: &Place, port: u16) -> Child {
    let script = ask(HOST, port);
    let mut command = place.cofferdam(&["exec", "s", "--shell", &script]);
    started(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// What waits for that port, once as many do.
fn waiting(place: &Place, port: u16, count: usize) -> Vec<Value> {
    let look = || {
        let list = place.says(&["approve", "--list", "s", "--json"], 0).object();
        let all = list["permissions"].as_array().unwrap().clone();
        let waits = |one: &Value| one["state"] == "waiting" && one["port"] == port;
        let all: Vec<Value> = all.into_iter().filter(waits).collect();
        (all.len() == count).then_some(all)
    };
    until(SOON, look).expect("it waits")
}

fn id(one: &Value) -> String {
    one["id"].as_str().unwrap().to_owned()
}

/// What somebody inside hears from a place that may be long in coming: a line, or nothing.
fn ask(name: &str, port: u16) -> String {
    let connect = format!("exec 5<>/dev/tcp/{name}/{port} && timeout 300 head -n1 <&5");
    format!("bash -c '{connect}' 2>/dev/null || echo no")
}

fn home(place: &Place) -> PathBuf {
    place.workspace.with_file_name("home")
}

fn heard(child: Child) -> Said {
    ended(child, SOON)
}

#[test]
fn what_is_approved_once_goes_on_and_the_next_is_refused_again() {
    everyone(|place| {
        let port = server();
        session(place, LONG);
        let both = [connects(place, port), connects(place, port)];
        let all = waiting(place, port, 2);
        let list = place.says(&["approve", "--list", "--json"], 0).object();
        is_valid(place, "permissions", &list);
        let line = place.says(&["approve", "--list"], 0).text();
        assert!(line.contains(&id(&all[0])) && line.contains(&format!("{HOST}:{port}")), "{line}");
        let answered = place.says(&["approve", &id(&all[0]), "--json"], 0).object();
        is_valid(place, "permission", &answered);
        assert_eq!(answered["state"], "approved");
        for child in both {
            let said = heard(child);
            assert_eq!(said.text(), "reached\n", "{said:?}");
        }
        // The rules are as they were, and nothing that comes later is let through.
        assert_eq!(place.says(&["network", "show", "s", "--json"], 0).object()["version"], 1);
        let next = connects(place, port);
        let later = waiting(place, port, 1);
        assert_ne!(id(&later[0]), id(&all[0]));
        let said = place.says(&["approve", &id(&later[0]), "--deny"], 0).text();
        assert!(said.contains("was refused"), "{said}");
        let said = heard(next);
        assert_eq!(said.text(), "no\n", "{said:?}");
        assert!(said.stderr.contains("somebody was asked, and said no"), "{}", said.stderr);
        // What was answered is answered.
        for gone in [&all[0], &later[0]] {
            let said = place.says(&["approve", &id(gone)], 1);
            assert!(said.stderr.contains("already"), "{}", said.stderr);
            assert!(said.stderr.contains("network allow"), "the remedy: {}", said.stderr);
        }
        let events = place.says(&["events", "s", "--json"], 0).object();
        let kinds = |kind: &str| -> Vec<Value> {
            let all = events["events"].as_array().unwrap().iter();
            all.filter(|one| one["kind"] == kind).cloned().collect()
        };
        let requested = kinds("permission_requested");
        assert_eq!(requested.len(), 2, "those alike are told once: {events}");
        assert_eq!(requested[0]["data"]["allow"], json!(format!("--allow-host-port {port}")));
        assert_eq!(kinds("permission_settled").len(), 2, "{events}");
        let audit = place.says(&["audit", "s"], 0).text();
        assert!(audit.contains("approved for this connection alone"), "{audit}");
    });
}

#[test]
fn what_waits_is_told_at_once_with_the_line_that_allows_it() {
    everyone(|place| {
        let port = server();
        session(place, LONG);
        let mut child = connects(place, port);
        let told = lines_of(child.stderr.take().unwrap());
        let id = id(&waiting(place, port, 1)[0]);
        let mut lines = Vec::new();
        let allows = format!("cofferdam approve {id} --session");
        while !lines.last().is_some_and(|line: &String| line.contains(&allows)) {
            lines.push(told.recv_timeout(SOON).unwrap_or_else(|_| panic!("not told: {lines:?}")));
        }
        // Long enough for further looks of the one who tells.
        std::thread::sleep(Duration::from_secs(2));
        place.says(&["approve", &id, "--session"], 0);
        let said = heard(child);
        assert_eq!(said.text(), "reached\n", "{said:?}");
        lines.extend(told);
        let times: usize = lines.iter().map(|line| line.matches("waits").count()).sum();
        assert_eq!(times, 1, "once: {lines:?}");
        // From now on nobody is asked, in this sandbox and in the next.
        assert_eq!(heard(connects(place, port)).text(), "reached\n");
        let shown = place.says(&["network", "show", "s", "--json"], 0).object();
        assert_eq!(shown["version"], 2);
        assert!(shown["host_ports"].as_array().unwrap().contains(&json!(port)), "{shown}");
    });
}

#[test]
fn without_an_answer_it_is_refused_and_an_id_that_is_not_known_is_an_error() {
    everyone(|place| {
        let port = server();
        session(place, "1s");
        // The control of all others: the same connection, and nobody answers.
        let said = heard(connects(place, port));
        assert_eq!(said.text(), "no\n", "{said:?}");
        assert!(said.stderr.contains(&format!("denied: {HOST}:{port}")), "{}", said.stderr);
        let list = place.says(&["approve", "--list", "s", "--json"], 0).object();
        let one = &list["permissions"][0];
        assert_eq!(one["state"], "timed_out", "{list}");
        let report = place.says(&["exec", "--json", "s", "--shell", &ask(HOST, port)], 0).object();
        assert!(report["denials"][0]["request"].as_str().unwrap().ends_with(".1.2"), "{report}");
        let refused = |id: &str, code: i32, why: &str| {
            let said = place.says(&["approve", id], code);
            assert!(said.stderr.contains(why), "{id}: {}", said.stderr);
            assert!(said.stderr.contains("hint:"), "{id}: {}", said.stderr);
        };
        refused(&id(one), 1, "not answered in time");
        refused("s.1.77", 1, "nothing ever waited");
        refused("s.2.1", 1, "nothing ever waited");
        refused("s.r1", 1, "nothing ever waited");
        refused("other.1.1", 1, "there is no session");
        refused("s", 2, "is not the id");
    });
}

#[test]
fn what_is_approved_for_the_user_stands_in_the_users_own_file() {
    everyone(|place| {
        let port = server();
        session(place, LONG);
        let child = connects(place, port);
        let id = id(&waiting(place, port, 1)[0]);
        let file = home(place).join(".config/cofferdam/config.toml");
        let refused = place.says(&["approve", &id, "--profile"], 1);
        assert!(refused.stderr.contains("has no way out"), "{}", refused.stderr);
        assert!(!file.exists(), "nothing is half done");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = "# of mine\n[run] # all\nprofile = \"repo-write\" # writes\n";
        std::fs::write(&file, text).unwrap();
        place.give(&home(place).join(".config"));
        place.give(file.parent().unwrap());
        place.give(&file);
        let said = place.says(&["approve", &id, "--profile"], 0);
        assert!(said.stderr.contains(file.to_str().unwrap()), "{}", said.stderr);
        assert_eq!(heard(child).text(), "reached\n");
        let written = std::fs::read_to_string(&file).unwrap();
        assert_eq!(written, format!("{text}allow_host_port = [\"{port}\"]\n"));
        // Whoever runs next may reach it, without being asked.
        let said = place.says(&["run", "--shell", &ask(HOST, port)], 0);
        assert_eq!(said.text(), "reached\n", "{said:?}");
    });
}

#[test]
fn a_model_asks_beforehand_and_a_person_answers() {
    everyone(|place| {
        let (open, port) = (server().to_string(), server());
        let words = ["--profile", "repo-write", "--allow-host-port", &open];
        let mut client = Client::start(place, &words, Generation::Handshake);
        let arguments = |wait_s: u64| json!({ "host": HOST, "port": port, "reason": "to test", "wait_s": wait_s });
        let pending = client.done("permission_request", arguments(0));
        assert_eq!(pending["state"], "pending", "{pending}");
        // It granted nothing, and asked again it is the same request.
        let said = client.done("shell_exec", json!({ "command": ask(HOST, port) }));
        assert!(said.to_string().contains("no"), "{said}");
        assert_eq!(client.done("permission_request", arguments(1))["id"], pending["id"]);
        let list = place.says(&["approve", "--list", "--json"], 0).object();
        let one = &list["permissions"][0];
        assert_eq!(
            (&one["kind"], &one["reason"]),
            (&json!("request"), &json!("to test")),
            "{list}"
        );
        let id = id(one);
        assert_eq!(pending["id"], id.as_str());
        let said = place.says(&["approve", &id], 1);
        assert!(said.stderr.contains("--session"), "nothing waits that could pass: {said:?}");
        place.says(&["approve", &id, "--session"], 0);
        let granted = client.done("permission_request", arguments(0));
        assert_eq!((&granted["state"], &granted["id"]), (&json!("granted"), &Value::Null));
        let said = client.done("shell_exec", json!({ "command": ask(HOST, port) }));
        assert!(said.to_string().contains("reached"), "{said}");
        let said = place.says(&["approve", &id, "--deny"], 1);
        assert!(said.stderr.contains("is allowed already"), "{}", said.stderr);
        // One that is refused.
        let other = json!({ "host": "b.test", "port": 443, "reason": "x", "wait_s": 0 });
        let asked = client.done("permission_request", other.clone());
        place.says(&["approve", asked["id"].as_str().unwrap(), "--deny"], 0);
        let events = place.says(&["events", "--json"], 0).text();
        assert_eq!(events.matches("permission_requested").count(), 2, "{events}");
        client.close();
    });
}

/// What became of connections to a host.
fn became(place: &Place, host: &str) -> Vec<Value> {
    let audit = place.says(&["audit", "s", "--json"], 0).object();
    let all = audit["connections"].as_array().unwrap().iter();
    all.filter(|one| one["host"] == host).map(|one| one["decision"].clone()).collect()
}

#[test]
fn over_http_an_answer_takes_a_scope_of_its_own_and_opens_no_more_than_the_operator_does() {
    everyone(|place| {
        let open = server().to_string();
        let agent = key(place, "agent");
        let server = Serving::start(
            place,
            &[
                &["--profile", "repo-write", "--ask", LONG][..],
                &["--egress", "ok.invalid:443", "--egress", "b.invalid:443"],
                &["--allow-host-port", &open],
            ]
            .concat(),
        );
        let made = server.ask(&agent, "PUT /v1/sandboxes/s", "{}");
        assert_eq!(made.status, 201, "{}", made.body);
        place.says(&["network", "set", "s", "--egress", "b.invalid:443"], 0);
        let [inside, outside] = ["ok.invalid", "c.invalid"].map(|name| {
            let words = ["exec", "s", "--shell", &ask(name, 443)];
            let mut command = place.cofferdam(&words);
            started(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
        });
        let path = "/v1/sandboxes/s/approvals";
        let listed = until(SOON, || {
            let listed = server.ask(&agent, &format!("GET {path}"), "").json();
            (listed["permissions"].as_array().unwrap().len() == 2).then_some(listed)
        });
        let listed = listed.expect("both wait");
        let of = |host: &str| {
            let all = listed["permissions"].as_array().unwrap();
            id(all.iter().find(|one| one["host"] == host).unwrap())
        };
        let (inside_id, outside_id) = (of("ok.invalid"), of("c.invalid"));
        let says = |key: &str, id: &str, answer: &str, status: u16| {
            let body = json!({ "answer": answer }).to_string();
            let told = server.ask(key, &format!("POST {path}/{id}"), &body);
            assert_eq!(told.status, status, "{answer} {id}: {}", told.body);
            told.body
        };
        // The key of the agent runs commands, and answers nothing.
        assert!(says(&agent, &inside_id, "once", 403).contains("approve"));
        place.says(&["key", "revoke", "agent"], 0);
        let words = ["key", "create", "agent", "--scope", "look", "--scope", "approve"];
        let person = place.says(&words, 0).text().trim().to_owned();
        assert!(says(&person, &inside_id, "profile", 400).contains("operator"));
        assert!(says(&person, &outside_id, "once", 403).contains("does not allow"));
        assert!(says(&person, &outside_id, "session", 403).contains("does not allow"));
        says(&person, "nothing.1.1", "once", 404);
        assert!(says(&person, &inside_id, "once", 200).contains("approved"));
        assert!(says(&person, &outside_id, "deny", 200).contains("denied"));
        says(&person, &outside_id, "deny", 409);
        for child in [inside, outside] {
            assert_eq!(heard(child).text(), "no\n");
        }
        // What was approved was let through: that there is no such name was found outside.
        assert_eq!(became(place, "ok.invalid"), ["asked", "failed"]);
        assert_eq!(became(place, "c.invalid"), ["asked", "denied"]);
    });
}

#[test]
fn what_waits_in_a_single_run_is_answered_too_and_nothing_of_it_stays() {
    everyone(|place| {
        let (open, port) = (server().to_string(), server());
        let words = ["run", "--profile", "repo-write", "--allow-host-port", &open, "--ask", LONG];
        let script = ask(HOST, port);
        let mut command = place.cofferdam(&[&words[..], &["--shell", &script]].concat());
        let run =
            started(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let look = || {
            let list = place.says(&["approve", "--list", "--json"], 0).object();
            list["permissions"].get(0).cloned()
        };
        let one = until(SOON, look).expect("it waits");
        let answered = outcome(&mut place.cofferdam(&["approve", &id(&one)]), SOON);
        let said = heard(run);
        assert_eq!(answered.code(), Some(0), "{answered:?}: {said:?}");
        assert_eq!(said.text(), "reached\n", "{said:?}");
        assert_eq!(place.says(&["ls", "--json"], 0).object()["sessions"], json!([]));
        place.says(&["approve", &id(&one)], 1);
    });
}
