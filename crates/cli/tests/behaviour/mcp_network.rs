//! What a model sees of its network, and that the sentences which it is told of the place are true.

use crate::mcp_client::{Client, Generation};
use crate::place::{Place, everyone};
use crate::way_out::{HOST, ask, server};
use serde_json::{Value, json};

/// What a shell inside says.
fn said(client: &mut Client, line: &str) -> String {
    let ran = client.done("shell_exec", json!({ "command": line }));
    ran["stdout"]["text"].as_str().unwrap().to_owned()
}

/// What a model is told of the place before it calls anything.
fn told(place: &Place, words: &[&str]) -> (Client, String) {
    let mut client = Client::start(place, words, Generation::Stateless);
    let found = client.result("server/discover", json!({}));
    let text = found["instructions"].as_str().unwrap().to_owned();
    (client, text)
}

#[test]
fn a_model_sees_its_rules_and_what_was_denied_and_sets_none() {
    everyone(|place| {
        let (open, closed) = (server(), server());
        let port = open.to_string();
        let words =
            ["--profile", "repo-write", "--allow-host-port", &port, "--egress", "a.test:443"];
        let mut client = Client::start(place, &words, Generation::Handshake);
        let early = client.failed("network_show", json!({}));
        assert_eq!(early["kind"], "not_found", "it makes no sandbox: {early}");
        assert_eq!(said(&mut client, &ask(HOST, open)), "reached\n");
        assert_eq!(said(&mut client, &ask(HOST, closed)), "no\n");
        assert_eq!(said(&mut client, &ask("192.0.2.1", 8443)), "no\n");
        let shown = client.done("network_show", json!({}));
        let rules = json!({
            "way_out": shown["way_out"], "version": shown["version"], "allow": shown["allow"],
            "deny": shown["deny"], "host_ports": shown["host_ports"],
        });
        let expected = json!({
            "way_out": true, "version": 1, "allow": ["a.test:443"], "deny": [],
            "host_ports": [open],
        });
        assert_eq!(rules, expected);
        denied(&mut client, &shown, closed);
        let all = shown["connections"].as_array().unwrap();
        let what = |one: &Value| (one["decision"].clone(), one["port"].clone());
        assert!(all.iter().map(what).any(|one| one == (json!("allowed"), json!(open))), "{shown}");
        assert!(all.iter().map(what).any(|one| one == (json!("denied"), json!(closed))), "{shown}");
        let few = client.done("network_show", json!({ "connections": 1 }));
        assert_eq!(few["connections"].as_array().unwrap(), &all[all.len() - 1..]);
        assert_eq!(few["connections_omitted"], all.len() - 1);
        // No tool sets rules. The user does, and then they are shown.
        let tools = client.result("tools/list", json!({}))["tools"].clone();
        let about: Vec<&Value> =
            tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        let network = about.iter().filter(|name| name.as_str().unwrap().starts_with("network"));
        assert_eq!(network.collect::<Vec<_>>(), [&&json!("network_show")]);
        let id = client.done("sandbox_status", json!({}))["sandbox"]["id"].clone();
        place.says(&["network", "allow", id.as_str().unwrap(), "b.test:443"], 0);
        let shown = client.done("network_show", json!({ "connections": 0 }));
        assert_eq!((&shown["version"], &shown["connections"]), (&json!(2), &json!([])));
        assert_eq!(shown["allow"], json!(["a.test:443", "b.test:443"]));
        client.close();
    });
}

/// What was denied is there once for each destination, and its remedy is a call that asks for it.
fn denied(client: &mut Client, shown: &Value, closed: u16) {
    let all = shown["denied"].as_array().unwrap();
    let one = all.iter().find(|one| one["port"] == closed).expect("it was denied");
    assert_eq!((&one["host"], &one["count"]), (&json!(HOST), &json!(1)), "{one}");
    let remedy = format!("permission_request with host {HOST:?} and port {closed}");
    assert_eq!(one["remedy"], remedy, "{one}");
    let other = all.iter().find(|one| one["port"] == 8443).expect("it was denied");
    assert_eq!(other["host"], "192.0.2.1", "{other}");
    let asked = json!({ "host": HOST, "port": closed, "reason": "to test", "wait_s": 0 });
    assert_eq!(client.done("permission_request", asked)["state"], "pending");
}

#[test]
fn a_sandbox_without_a_way_out_says_so_to_a_model() {
    everyone(|place| {
        let mut client = Client::start(place, &[], Generation::Stateless);
        client.done("sandbox_ensure", json!({}));
        let shown = client.call("network_show", json!({}));
        assert_eq!(shown["structuredContent"]["way_out"], false, "{shown}");
        let text = shown["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("There is no network"), "{text}");
        client.close();
    });
}

#[test]
fn what_a_model_is_told_of_the_place_is_so() {
    everyone(|place| {
        let open = server();
        let port = open.to_string();
        let layered = ["--cow"];
        let one = ["--profile", "repo-write", "--allow-host-port", &port, "--egress", "a.test:443"];
        let dev = ["--profile", "full-dev", "--deny-egress", "evil.test"];
        let host = format!("the user's own machine as {HOST}, port {port}, and nothing else");
        for (words, network, host_reached) in [
            (&[] as &[&str], "There is no network", "no\n"),
            (&layered, "There is no network", "no\n"),
            (&one, &host, "reached\n"),
            (&dev, "reaches any public address, but never evil.test. Addresses of private", "no\n"),
        ] {
            let (mut client, text) = told(place, words);
            assert!(text.contains(network), "{words:?}: {text}");
            assert!(!text.contains("reaches *"), "{text}");
            assert_eq!(said(&mut client, &ask(HOST, open)), host_reached, "{words:?}");
            assert_eq!(said(&mut client, &ask("127.0.0.1", open)), "no\n", "{words:?}");
            let at = said(&mut client, "pwd");
            let start = format!("Commands start in {}, which", at.trim_end());
            assert!(at == "/workspace\n" || text.contains(&start), "{words:?} {at}: {text}");
            assert_eq!(said(&mut client, "test . -ef /workspace && echo same"), "same\n");
            assert!(text.contains("The workspace is /workspace,"), "{text}");
            assert!(text.contains("There is no root"), "{text}");
            assert_eq!(said(&mut client, "id -u | grep -cx 0"), "0\n");
            assert!(text.contains("There is no display and no browser"), "{text}");
            assert_eq!(said(&mut client, "echo [$DISPLAY$WAYLAND_DISPLAY]"), "[]\n");
            let asks = text.contains("waits up to");
            assert!(!asks, "nothing waits where nobody asked for it: {text}");
            said(&mut client, "echo x > made-inside");
            let is_undone = client.call("sandbox_undo", json!({}))["isError"] == false;
            assert_eq!(is_undone, words == layered, "{words:?}");
            assert_eq!(text.contains("Commands can be undone"), words == layered, "{text}");
            assert_eq!(client.close().code(), Some(0));
        }
    });
}
