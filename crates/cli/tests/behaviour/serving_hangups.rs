//! What becomes of what was asked for by somebody who hung up.

use crate::place::{SOON, everyone, until};
use crate::serving::Serving;
use serde_json::{Value, json};
use std::time::Duration;

/// The phases of all sandboxes that a server lists.
fn phases(serving: &Serving) -> Vec<String> {
    let listed = serving.ask("", "GET /v1/sandboxes", "").json();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions.map(|session| session["phase"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_ends_though_its_caller_hangs_up_while_its_sandbox_is_made() {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        let slow = json!({ "exec": { "shell": "sleep 300" } }).to_string();
        // Each hangs up a little later, so that some do in the middle of the making.
        for wait_ms in [0, 2, 5, 10, 20, 40] {
            let more = "connection: keep-alive\r\n";
            let runs: Vec<_> =
                (0..3).map(|_| serving.send("", "POST /v1/run", &slow, more)).collect();
            std::thread::sleep(Duration::from_millis(wait_ms));
            drop(runs);
            // Sooner than the server looks again at what is left: nobody else ends them.
            until(SOON, || phases(&serving).is_empty().then_some(())).unwrap_or_else(|| {
                panic!("{wait_ms} ms: {:?}", phases(&serving));
            });
        }
        // The control: one that was begun for certain breaks off, and is gone as the others.
        let run = serving.send("", "POST /v1/run", &slow, "connection: keep-alive\r\n");
        until(SOON, || (!phases(&serving).is_empty()).then_some(())).expect("a run begins");
        drop(run);
        until(SOON, || phases(&serving).is_empty().then_some(())).expect("a run ends");
        let broke_off = || {
            let audit = serving.ask("", "GET /v1/audit", "").json();
            let mut entries = audit["entries"].as_array().unwrap().iter();
            entries.any(|entry| entry["status"] == 0).then_some(())
        };
        until(SOON, broke_off).expect("a run that broke off is written down");
        // All of it is gone, by every account.
        let collected: Value = place.says(&["gc", "--json"], 0).object();
        assert_eq!((&collected["done"], &collected["failed"]), (&json!([]), &json!([])));
        serving.end(place, "-TERM");
    });
}

/// What a model's call runs.
const LINE: &str = "sleep 300 & sleep 300";

#[test]
fn a_call_by_the_protocol_for_models_ends_with_its_caller() {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "shell_exec", "arguments": { "sandbox": "s", "command": LINE } },
    });
    let more = "accept: application/json, text/event-stream\r\n\
                mcp-protocol-version: 2025-11-25\r\nconnection: keep-alive\r\n";
    ends_with_its_caller("POST /mcp", &body, more);
}

#[test]
fn a_call_of_a_tool_ends_with_its_caller() {
    let body = json!({ "sandbox": "s", "command": LINE });
    let more = "connection: keep-alive\r\n";
    ends_with_its_caller("POST /v1/tools/cofferdam/shell_exec", &body, more);
}

/// Hangs up while the command of a call runs in sandbox `s`, and looks for what is left of it.
fn ends_with_its_caller(request: &str, body: &Value, more: &str) {
    everyone(|place| {
        let serving = Serving::start(place, &[]);
        assert_eq!(serving.ask("", "PUT /v1/sandboxes/s", "{}").status, 201);
        let commands = || {
            let listed = serving.ask("", "GET /v1/sandboxes/s/execs", "").json();
            listed["execs"].as_array().unwrap().clone()
        };
        let stream = serving.send("", request, &body.to_string(), more);
        let is_running = |exec: &Value| exec["ended_ms"].is_null();
        until(SOON, || commands().first().filter(|exec| is_running(exec)).map(drop)).unwrap();
        drop(stream);
        let ended = || commands().first().filter(|exec| !is_running(exec)).cloned();
        let ended = until(SOON, ended).expect("the command goes on");
        assert_ne!(ended["ending"], "exited", "{ended}");
        // All that it started went with it.
        let left = |line: &str| {
            let body = json!({ "shell": line }).to_string();
            let exec = serving.ask("", "POST /v1/sandboxes/s/execs", &body).json();
            let at = format!("GET /v1/sandboxes/s/execs/{}", exec["id"].as_str().unwrap());
            serving.ask("", &format!("{at}/wait"), "").json()["exit_code"].clone()
        };
        let looks = "for p in /proc/[0-9]*; do grep -q '^sleep' $p/comm && exit 1; done; exit 0";
        until(SOON, || (left(looks) == 0).then_some(())).expect("something of it goes on");
        serving.end(place, "-TERM");
    });
}
