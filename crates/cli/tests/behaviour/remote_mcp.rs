//! `mcp` and `probe` with a server: its tools over standard input and output of this machine, and its proof.

use crate::mcp_client::{Client, Generation};
use crate::place::{Place, SOON, everyone, outcome, until};
use crate::remote::{Server, Way, key, socket};
use crate::schema::is_valid;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

const BOTH: [Generation; 2] = [Generation::Handshake, Generation::Stateless];

/// `cofferdam mcp` at a server, with these words.
fn bridge(place: &Place, server: &Server, key: &str, words: &[&str]) -> Command {
    Way::There(place, &server.url, Some(key)).command(&[&["mcp"], words].concat())
}

/// How many processes of the place have this word in their command line.
fn marked(word: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|other| other == word.as_bytes())
    })
    .count()
}

#[test]
fn the_tools_of_a_server_are_served_here_in_both_generations() {
    everyone(|place| {
        let (alice, bob) = (key(place, "alice"), key(place, "bob"));
        let server = Server::start(place, "127.0.0.1:0");
        for (generation, name) in BOTH.into_iter().zip(["old", "new"]) {
            let mut client = Client::of(bridge(place, &server, &alice, &[]), generation);
            let listed = client.result("tools/list", json!({}));
            let tools = listed["tools"].as_array().unwrap();
            let exec = tools.iter().find(|tool| tool["name"] == "shell_exec").unwrap();
            let needed = exec["inputSchema"]["required"].as_array().unwrap();
            assert!(needed.contains(&json!("sandbox")), "{exec}");
            client.done("sandbox_ensure", json!({ "sandbox": name }));
            let run = json!({ "sandbox": name, "command": "echo $((6 * 7))" });
            assert_eq!(client.done("shell_exec", run)["stdout"]["text"], "42\n");
            let uri = format!("cofferdam://sandboxes/{name}");
            let read = client.result("resources/read", json!({ "uri": uri }));
            let text = read["contents"][0]["text"].as_str().unwrap();
            assert!(text.contains(name), "{read}");
            let unknown = client.ask("nobody/knows", json!({}));
            assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
            let failed = client.failed("sandbox_undo", json!({ "sandbox": "none", "steps": 1 }));
            assert_eq!(failed["kind"], "not_found");
            let said = client.close();
            assert_eq!((said.code(), said.stderr.as_str()), (Some(0), ""), "{said:?}");
            // It is the server's, and stays; and is the caller's alone.
            let hers = Way::There(place, &server.url, Some(&alice));
            assert_eq!(hers.says(&["show", name, "--json"], 0).object()["phase"], "running");
        }
        let mut client = Client::of(bridge(place, &server, &bob, &[]), Generation::Handshake);
        assert_eq!(client.done("sandbox_status", json!({ "sandbox": "old" }))["exists"], false);
        client.close();
    });
}

#[test]
fn what_is_canceled_or_left_here_ends_there() {
    everyone(|place| {
        let alice = key(place, "alice");
        let server = Server::start(place, "127.0.0.1:0");
        for (generation, name) in BOTH.into_iter().zip(["old", "new"]) {
            let mut client = Client::of(bridge(place, &server, &alice, &[]), generation);
            client.done("sandbox_ensure", json!({ "sandbox": name }));
            let word = format!("{}-{name}", place.marker);
            let sleeps = format!("sh -c 'sleep 1000; :' {word}");
            let call = json!({
                "name": "shell_exec",
                "arguments": { "sandbox": name, "command": sleeps },
                "_meta": { "progressToken": "how far" },
            });
            let id = client.request("tools/call", call.clone());
            until(SOON, || (marked(&word) > 0).then_some(())).unwrap();
            let told = client.next();
            assert_eq!(told["method"], "notifications/progress", "{told}");
            assert_eq!(told["params"]["progressToken"], "how far", "{told}");
            let canceled = json!({ "requestId": id });
            client.send(&json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": canceled,
            }));
            until(SOON, || (marked(&word) == 0).then_some(())).unwrap();
            // The control: the connection goes on. What is left when it ends is ended, too.
            client.done("sandbox_status", json!({ "sandbox": name }));
            client.request("tools/call", call);
            until(SOON, || (marked(&word) > 0).then_some(())).unwrap();
            assert_eq!(client.close().code(), Some(0));
            until(SOON, || (marked(&word) == 0).then_some(())).unwrap();
        }
    });
}

#[test]
fn every_request_is_answered_though_the_server_refuses_or_is_gone() {
    everyone(|place| {
        let alice = key(place, "alice");
        let server = Server::start(place, "127.0.0.1:0");
        let mut client = Client::of(bridge(place, &server, "nobody", &[]), Generation::Stateless);
        let refused = client.ask("tools/list", json!({}));
        assert_eq!(refused["error"]["data"]["kind"], "denied", "{refused}");
        assert!(!refused.to_string().contains(&alice), "{refused}");
        assert_eq!(client.close().code(), Some(0));
        let mut client = Client::of(bridge(place, &server, &alice, &[]), Generation::Stateless);
        client.send_line("{");
        assert_eq!(client.next()["error"]["code"], -32700);
        drop(server);
        for _ in 0..2 {
            let gone = client.ask("tools/list", json!({}));
            assert_eq!(gone["error"]["data"]["kind"], "unavailable", "{gone}");
        }
        assert_eq!(client.close().code(), Some(0));
    });
}

#[test]
fn options_of_a_sandbox_are_refused_where_the_server_makes_it() {
    everyone(|place| {
        let url = "http://127.0.0.1:1";
        for (words, what) in [
            (vec!["--name", "s"], "--name with a server: every call names its sandbox"),
            (vec!["--keep"], "--keep with a server"),
            (vec!["--pack", "adk"], "--pack with a server"),
            (vec!["--read", "/etc"], "--read with a server"),
            (vec!["--egress", "a.test:443"], "an option of sandboxes with a server"),
            (vec!["--profile", "read-only"], "an option of sandboxes with a server"),
            (vec!["--memory", "1G"], "an option of sandboxes with a server"),
        ] {
            let words = [&["--server", url, "mcp"], words.as_slice()].concat();
            let said = place.say(&words);
            assert!(said.code() != Some(0) && said.stderr.contains(what), "{words:?}: {said:?}");
        }
    });
}

#[test]
fn an_installed_server_is_the_one_that_was_named() {
    everyone(|place| {
        let file = place.base.join("client.json");
        let install = |words: &[&str], code: i32| {
            let name = file.to_str().unwrap();
            let server = ["--server", "https://a.example", "--server-key-file", "key", "mcp"];
            let install = ["install", "claude", "--yes", "--file", name];
            let mut command = place.cofferdam(&[&server, install.as_slice(), words].concat());
            let said = outcome(&mut command, SOON);
            assert_eq!(said.code(), Some(code), "{said:?}");
            said
        };
        install(&[], 0);
        let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let key = place.workspace.join("key");
        let args =
            json!(["--server", "https://a.example", "--server-key-file", key.to_str(), "mcp"]);
        assert_eq!(written["mcpServers"]["cofferdam"]["args"], args, "{written}");
        let refused = install(&["--", "--cow"], 1);
        assert!(refused.stderr.contains("with a server"), "{refused:?}");
    });
}

#[test]
fn a_server_proves_what_holds_in_sandboxes_as_it_makes_them() {
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        let there = Way::There(place, &server.url, None);
        let workspace = place.workspace.to_str().unwrap();
        let words = ["probe", "--profile", "read-only", "--workspace", workspace, "--json"];
        let object = there.says(&words, 0).object();
        is_valid(place, "probe", &object);
        let told = (&object["profile"], &object["overall"]);
        assert_eq!(told, (&json!("read-only"), &json!("FullyEnforced")), "{object}");
        let text = there.says(&["probe"], 0).text();
        let names = text.lines().next().unwrap().split_whitespace();
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["PROMISE", "CHECK", "RESULT", "STOPPED", "BY", "LAYER"]
        );
        assert!(text.ends_with("no-network: FullyEnforced\n"), "{text}");
        let refused = there.says(&["probe", "--read", "/etc"], 125);
        assert!(refused.stderr.contains("--read with a server"), "{refused:?}");
        // The sandbox that told what is attacked is gone.
        let listed = there.says(&["ls", "--json"], 0).object();
        assert_eq!(listed["sessions"], json!([]));
    });
}
