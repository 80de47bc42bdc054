//! `cofferdam mcp`: one connection, one sandbox, and nothing of it left.

use crate::mcp_client::{Client, Generation};
use crate::place::{PYTHON, Place, SOON, ended, everyone, outcome, skipped, started, until};
use crate::sessions_durable::keepers;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

const BOTH: [Generation; 2] = [Generation::Handshake, Generation::Stateless];
/// The most resources of one page of a list.
const MAX_RESOURCES_OF_PAGE: usize = 200;
/// The most bytes of one message.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

fn sessions(place: &Place) -> Vec<String> {
    let listed = place.says(&["ls", "--json"], 0).object();
    let all = listed["sessions"].as_array().unwrap().iter();
    all.map(|session| session["id"].as_str().unwrap().to_owned()).collect()
}

/// How many processes have this word in their command line.
fn marked(word: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|other| other == word.as_bytes())
    })
    .count()
}

/// A command line that runs for long and bears the word.
fn sleeper(word: &str) -> Value {
    json!({ "command": format!("sh -c 'sleep 1000; :' {word}") })
}

fn signal(process: u32, name: &str) {
    let killed = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(killed.unwrap().success());
}

fn nothing_is_left(place: &Place) {
    assert_eq!(sessions(place), Vec::<String>::new());
    assert_eq!(keepers(place), Vec::<String>::new());
}

#[test]
fn both_generations_of_the_protocol_are_served() {
    everyone(|place| {
        let mut old = Client::start(place, &[], Generation::Handshake);
        let mut new = Client::start(place, &[], Generation::Stateless);
        let found = new.result("server/discover", json!({}));
        let versions = found["supportedVersions"].as_array().unwrap();
        for version in ["2025-11-25", "2026-07-28"] {
            assert!(versions.contains(&json!(version)), "{found}");
        }
        assert!(found["instructions"].as_str().unwrap().contains("sandbox"), "{found}");
        assert_eq!(found["capabilities"], json!({ "tools": {}, "resources": {} }));
        let tools = [&mut old, &mut new].map(|client| {
            client.result("tools/list", json!({}))["tools"].as_array().unwrap().clone()
        });
        assert_eq!(tools[0], tools[1]);
        assert!(tools[0].len() >= 20, "{:?}", tools[0]);
        for tool in &tools[0] {
            let name = &tool["name"];
            assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                assert!(tool["annotations"][hint].is_boolean(), "{name} {hint}");
            }
            assert!(!tool["description"].as_str().unwrap().is_empty(), "{name}");
        }
        // Nothing was needed yet, so nothing was made.
        assert_eq!(sessions(place), Vec::<String>::new());
        for client in [old, new] {
            let said = client.close();
            assert_eq!((said.code(), said.stderr.as_str()), (Some(0), ""));
        }
    });
}

#[test]
fn every_pack_is_served_with_its_own_tools() {
    everyone(|place| {
        for (pack, tool, arguments) in [
            ("cofferdam", "shell_exec", json!({ "command": "echo in" })),
            ("everruns", "sandbox_exec", json!({ "command": "echo in" })),
            ("adk", "exec_command", json!({ "command": "echo in" })),
            ("fluers", "bash", json!({ "command": "echo in" })),
            (
                "openmanus",
                "sandbox_shell",
                json!({ "action": "execute_command", "command": "echo in" }),
            ),
        ] {
            let mut client = Client::start(place, &["--pack", pack], Generation::Stateless);
            let tools = client.result("tools/list", json!({}))["tools"].clone();
            let tools = tools.as_array().unwrap();
            assert!(tools.iter().any(|one| one["name"] == tool), "{pack}: {tools:?}");
            let strict = |one: &Value| one["inputSchema"]["additionalProperties"] == false;
            assert!(tools.iter().all(strict), "{pack}");
            let result = client.call(tool, arguments);
            assert_eq!(result["isError"], false, "{pack}: {result}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(pack == "openmanus" || text.contains("in"), "{pack}: {text}");
            assert_eq!(client.close().code(), Some(0));
        }
        nothing_is_left(place);
        let said = place.says(&["mcp", "--pack", "nothing"], 2);
        assert!(said.stderr.contains("openmanus"), "{}", said.stderr);
    });
}

#[test]
fn a_whole_session_over_either_generation() {
    everyone(|place| {
        place.write("kept.txt", "old\n");
        for generation in BOTH {
            let mut client = Client::start(place, &["--cow"], generation);
            let done = client.done("shell_exec", json!({ "command": "cat kept.txt; exit 3" }));
            assert_eq!(
                (done["exit_code"].as_i64(), &done["stdout"]["text"]),
                (Some(3), &json!("old\n"))
            );
            client.done("file_write", json!({ "path": "made.txt", "content": "one\n" }));
            client.done("file_write", json!({ "path": "kept.txt", "content": "new\n" }));
            let read = client.done("file_read", json!({ "path": "made.txt" }));
            assert_eq!(read["content"], "1|one", "{read}");
            let diff = client.done("sandbox_diff", json!({}));
            assert_eq!(diff["total"], 2, "{diff}");
            client.done("shell_exec", json!({ "command": "rm made.txt" }));
            client.done("sandbox_undo", json!({}));
            client.done("file_read", json!({ "path": "made.txt" }));
            assert_eq!(fs::read_to_string(place.workspace.join("kept.txt")).unwrap(), "old\n");
            client.done("sandbox_apply", json!({}));
            assert_eq!(fs::read_to_string(place.workspace.join("kept.txt")).unwrap(), "new\n");
            client.done("sandbox_delete", json!({}));
            nothing_is_left(place);
            assert_eq!(client.close().code(), Some(0));
            fs::write(place.workspace.join("kept.txt"), "old\n").unwrap();
            fs::remove_file(place.workspace.join("made.txt")).unwrap();
        }
    });
}

#[test]
fn the_sandbox_goes_with_its_connection_however_that_ends() {
    everyone(|place| {
        let word = |end: &str| format!("{}-{end}", place.marker);
        let at_work = |end: &str| {
            let mut client = Client::start(place, &[], Generation::Handshake);
            let arguments = sleeper(&word(end));
            client.request("tools/call", json!({ "name": "shell_exec", "arguments": arguments }));
            until(SOON, || (marked(&word(end)) > 0).then_some(())).unwrap();
            assert_eq!(sessions(place).len(), 1);
            client
        };
        // The client says goodbye, and something is still at work.
        let client = at_work("closed");
        assert_eq!(client.close().code(), Some(0));
        assert_eq!(marked(&word("closed")), 0);
        nothing_is_left(place);
        // It is killed.
        let child = at_work("vanished").vanish();
        assert_eq!(ended(child, SOON).code(), Some(0));
        assert_eq!(marked(&word("vanished")), 0);
        nothing_is_left(place);
        // The server is asked to end.
        let client = at_work("asked");
        signal(client.process(), "TERM");
        assert_eq!(client.wait().code(), Some(0));
        assert_eq!(marked(&word("asked")), 0);
        nothing_is_left(place);
        // The server is killed: whoever starts the program next removes what it left.
        let client = at_work("killed");
        signal(client.process(), "KILL");
        assert_eq!(client.wait().code(), None);
        nothing_is_left(place);
        until(SOON, || (marked(&word("killed")) == 0).then_some(())).unwrap();
    });
}

#[test]
fn a_client_that_reads_nothing_keeps_nothing_alive() {
    everyone(|place| ["signal", "end"].into_iter().for_each(|how| reads_nothing(place, how)));
}

fn reads_nothing(place: &Place, how: &str) {
    let word = format!("{}-unread-{how}", place.marker);
    let mut command = place.cofferdam(&["mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started(&mut command);
    // Held open, and never read.
    let unread = child.stdout.take().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut send = |message: Value| writeln!(stdin, "{message}").unwrap();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let mut call = |id: u32, arguments: Value| {
        let params = json!({ "name": "shell_exec", "arguments": arguments });
        send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    };
    // More than a pipe holds.
    for id in 1..9 {
        call(id, json!({ "command": "head -c 60000 /dev/zero | tr '\\0' a" }));
    }
    call(9, sleeper(&word));
    until(SOON, || (marked(&word) > 0).then_some(())).unwrap();
    match how {
        "signal" => signal(child.id(), "TERM"),
        _ => drop(stdin),
    }
    assert_eq!(ended(child, SOON).code(), Some(0));
    assert_eq!(marked(&word), 0);
    drop(unread);
    nothing_is_left(place);
}

#[test]
fn a_request_that_is_canceled_ends_its_command_and_nothing_else() {
    everyone(|place| {
        for generation in BOTH {
            let word = |which| format!("{}-{which}-{generation:?}", place.marker);
            let mut client = Client::start(place, &[], generation);
            let ids = ["one", "other"].map(|which| {
                let arguments = sleeper(&word(which));
                let params = json!({ "name": "shell_exec", "arguments": arguments });
                let id = client.request("tools/call", params);
                until(SOON, || (marked(&word(which)) > 0).then_some(())).unwrap();
                id
            });
            let params = json!({ "requestId": ids[0], "reason": "enough" });
            let canceled = "notifications/cancelled";
            client.send(&json!({ "jsonrpc": "2.0", "method": canceled, "params": params }));
            until(SOON, || (marked(&word("one")) == 0).then_some(())).unwrap();
            assert!(marked(&word("other")) > 0);
            // Its place is free, and it is not answered.
            let done = client.done("shell_exec", json!({ "command": "echo on" }));
            assert_eq!(done["stdout"]["text"], "on\n");
            signal(client.process(), "TERM");
            assert_eq!(client.wait().code(), Some(0));
            assert_eq!(marked(&word("other")), 0);
        }
    });
}

#[test]
fn calls_beyond_the_limit_wait_for_a_place() {
    /// How many calls of one client are at work at the same time.
    const MAX_CALLS_AT_ONCE: usize = 64;
    everyone(|place| {
        let word = |which: &str| format!("{}-{which}", place.marker);
        let mut client = Client::start(place, &[], Generation::Handshake);
        client.done("sandbox_ensure", json!({}));
        let ask = |client: &mut Client, which: &str| {
            let arguments = sleeper(&word(which));
            client.request("tools/call", json!({ "name": "shell_exec", "arguments": arguments }))
        };
        let first = ask(&mut client, "in");
        for _ in 1..MAX_CALLS_AT_ONCE {
            ask(&mut client, "in");
        }
        until(SOON * 3, || (marked(&word("in")) == MAX_CALLS_AT_ONCE).then_some(())).unwrap();
        ask(&mut client, "waits");
        // What needs no sandbox is answered meanwhile.
        client.result("tools/list", json!({}));
        assert_eq!(marked(&word("waits")), 0);
        let params = json!({ "requestId": first });
        let canceled = "notifications/cancelled";
        client.send(&json!({ "jsonrpc": "2.0", "method": canceled, "params": params }));
        until(SOON, || (marked(&word("waits")) > 0).then_some(())).unwrap();
        signal(client.process(), "TERM");
        assert_eq!(client.wait().code(), Some(0));
        assert_eq!(marked(&word("in")) + marked(&word("waits")), 0);
        nothing_is_left(place);
    });
}

#[test]
fn whoever_asks_how_far_a_call_is_hears_it_before_the_answer() {
    everyone(|place| {
        for generation in BOTH {
            let mut client = Client::start(place, &[], generation);
            let arguments = json!({ "command": "echo x; sleep 1.6" });
            let params = json!({
                "name": "shell_exec", "arguments": arguments, "_meta": { "progressToken": "t-1" },
            });
            client.result("tools/call", params);
            let told: Vec<&Value> = client.told.iter().map(|told| &told["params"]).collect();
            assert!(!told.is_empty());
            assert!(told.iter().all(|told| told["progressToken"] == "t-1"), "{told:?}");
            let progress: Vec<f64> =
                told.iter().map(|told| told["progress"].as_f64().unwrap()).collect();
            assert!(progress.is_sorted_by(|a, b| a < b), "{progress:?}");
            // Who asks nothing hears nothing.
            client.told.clear();
            client.done("shell_exec", json!({ "command": "sleep 1.2" }));
            assert_eq!(client.told, Vec::<Value>::new());
            assert_eq!(client.close().code(), Some(0));
        }
    });
}

#[test]
fn what_fails_is_a_result_and_what_makes_no_sense_an_error() {
    everyone(|place| {
        let mut client = Client::start(place, &[], Generation::Handshake);
        let missing = client.failed("file_read", json!({ "path": "nothing" }));
        assert_eq!(missing["kind"], "not_found", "{missing}");
        let outside = client.failed("file_read", json!({ "path": "../../etc/passwd" }));
        assert_eq!(outside["kind"], "path_escape", "{outside}");
        let unknown = client.failed("file_read", json!({ "path": "a", "pth": "b" }));
        assert_eq!(unknown["kind"], "usage", "{unknown}");
        assert!(unknown["message"].as_str().unwrap().contains("pth"), "{unknown}");
        let params = json!({ "name": "nothing", "arguments": {} });
        let answer = client.ask("tools/call", params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("shell_exec"), "{answer}");
        for (uri, code) in [
            ("cofferdam://own/files/nothing", -32002),
            ("cofferdam://own/execs/nothing", -32002),
            ("cofferdam://own/files/../../etc/passwd", -32602),
            ("file:///etc/passwd", -32002),
        ] {
            let answer = client.ask("resources/read", json!({ "uri": uri }));
            assert_eq!(answer["error"]["code"], code, "{answer}");
        }
        assert_eq!(client.ask("tools/list", json!({ "cursor": "x" }))["error"]["code"], -32602);
        assert_eq!(client.ask("resources/list", json!({ "cursor": "x" }))["error"]["code"], -32602);
        assert_eq!(client.ask("nonsense", json!({}))["error"]["code"], -32601);
        assert_eq!(client.close().code(), Some(0));
    });
}

#[test]
fn a_message_that_is_too_long_is_refused_by_its_id_and_the_next_is_served() {
    everyone(|place| {
        let mut client = Client::start(place, &[], Generation::Handshake);
        for over in [0, 1] {
            let (before, after) = (
                format!(
                    r#"{{"jsonrpc":"2.0","method":"tools/call","id":{},"params":{{"#,
                    100 + over
                ),
                r#""name":"file_write","arguments":{"path":"big","content":""#,
            );
            let end = r#""}}}"#;
            let room = MAX_MESSAGE_BYTES - before.len() - after.len() - end.len() - 1;
            client.send_line(&format!("{before}{after}{}{end}", "x".repeat(room + over)));
            let answer = client.answer(100 + over as u64);
            if over == 0 {
                assert!(answer["result"].is_object(), "{answer}");
            } else {
                assert_eq!(answer["error"]["code"], -32600, "{answer}");
                assert_eq!(answer["error"]["data"]["kind"], "too_large", "{answer}");
            }
        }
        client.done("sandbox_status", json!({}));
        assert_eq!(client.close().code(), Some(0));
    });
}

#[test]
fn files_receipts_and_logs_are_resources() {
    everyone(|place| {
        place.write("a b.txt", "text\n");
        place.write("sub/deep.txt", "deep\n");
        let many: Vec<String> = (0..=MAX_RESOURCES_OF_PAGE).map(|n| format!("n{n:03}")).collect();
        many.iter().for_each(|name| drop(place.write(name, "")));
        let mut client = Client::start(place, &["--cow"], Generation::Handshake);
        assert_eq!(client.result("resources/list", json!({}))["resources"], json!([]));
        let lines = "seq 1 300000; echo e >&2; printf '\\377' > bin; echo made > made";
        let exec = client.done("shell_exec", json!({ "command": lines }))["exec"].clone();
        let exec = exec.as_str().unwrap();
        let mut names = Vec::new();
        let mut page = client.result("resources/list", json!({}));
        loop {
            let all = page["resources"].as_array().unwrap();
            assert!(all.len() <= MAX_RESOURCES_OF_PAGE, "{}", all.len());
            names.extend(all.iter().map(|one| one["uri"].as_str().unwrap().to_owned()));
            let Some(next) = page["nextCursor"].as_str() else { break };
            page = client.result("resources/list", json!({ "cursor": next }));
        }
        let own = |rest: &str| format!("cofferdam://own{rest}");
        assert!(many.iter().all(|name| names.contains(&own(&format!("/files/{name}")))));
        for rest in [
            "".to_owned(),
            format!("/execs/{exec}"),
            format!("/execs/{exec}/stdout"),
            format!("/execs/{exec}/stderr"),
            "/files/a%20b.txt".to_owned(),
            "/files/made".to_owned(),
        ] {
            assert!(names.contains(&own(&rest)), "{rest}: {names:?}");
        }
        let templates = client.result("resources/templates/list", json!({}));
        let templates = templates["resourceTemplates"].as_array().unwrap().clone();
        assert!(templates.iter().any(|one| one["uriTemplate"] == own("/files/{+path}").as_str()));
        let mut read = |rest: &str| {
            let answer = client.result("resources/read", json!({ "uri": own(rest) }));
            answer["contents"][0].clone()
        };
        assert_eq!(read("/files/a%20b.txt")["text"], "text\n");
        assert_eq!(read("/files/sub/deep.txt")["text"], "deep\n");
        assert_eq!(read("/files/bin")["blob"], "/w==");
        assert_eq!(read(&format!("/execs/{exec}/stderr"))["text"], "e\n");
        let log = read(&format!("/execs/{exec}/stdout"));
        let text = log["text"].as_str().unwrap();
        assert!(text.ends_with("299999\n300000\n"));
        let (part, len) = (&log["_meta"]["cofferdam/part"], text.len() as u64);
        assert!(len <= 1 << 20, "{len}");
        assert_eq!(part["offset"].as_u64().unwrap() + len, part["written"].as_u64().unwrap());
        let receipt = read(&format!("/execs/{exec}"));
        let receipt: Value = serde_json::from_str(receipt["text"].as_str().unwrap()).unwrap();
        assert_eq!(receipt["exec"]["exit_code"], 0, "{receipt}");
        assert_eq!(receipt["point"]["effects"]["added"], 2, "{receipt}");
        let status: Value = serde_json::from_str(read("")["text"].as_str().unwrap()).unwrap();
        assert_eq!(status["copy_on_write"], true);
        client.done("shell_exec", json!({ "command": "head -c 1048577 /dev/zero > big" }));
        let answer = client.ask("resources/read", json!({ "uri": own("/files/big") }));
        assert_eq!(answer["error"]["data"]["kind"], "too_large", "{answer}");
        assert_eq!(client.close().code(), Some(0));
    });
}

#[test]
fn a_name_gives_a_model_no_other_policy_and_no_session_that_was_not_made_for_models() {
    everyone(|place| {
        place.says(&["create", "--name", "mine"], 0);
        let named = |name: &str| json!({ "sandbox": name, "command": "echo in" });
        let mut client = Client::start(place, &[], Generation::Handshake);
        client.done("sandbox_ensure", json!({ "sandbox": "shared" }));
        client.done("shell_exec", named("shared"));
        let refused = client.failed("shell_exec", named("mine"));
        assert_eq!(refused["kind"], "not_found", "{refused}");
        // It stays when the connection ends.
        assert_eq!(client.close().code(), Some(0));
        assert_eq!(sessions(place).len(), 2);
        let mut other = Client::start(place, &["--profile", "read-only"], Generation::Handshake);
        let refused = other.failed("shell_exec", named("shared"));
        assert_eq!(refused["kind"], "denied", "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("profile"), "{refused}");
        assert_eq!(other.close().code(), Some(0));
        let mut same = Client::start(place, &[], Generation::Handshake);
        same.done("shell_exec", named("shared"));
        same.done("sandbox_delete", json!({ "sandbox": "shared" }));
        assert_eq!(same.close().code(), Some(0));
        assert_eq!(sessions(place).len(), 1);
    });
}

#[test]
fn a_sandbox_that_is_to_be_kept_is() {
    everyone(|place| {
        let mut client = Client::start(place, &["--keep"], Generation::Handshake);
        client.done("shell_exec", json!({ "command": "echo kept > ~/note" }));
        let said = client.close();
        let id = sessions(place).pop().unwrap();
        assert_eq!(
            (said.code(), said.stderr.trim_end()),
            (Some(0), format!("cofferdam: kept as session {id}").as_str())
        );
        assert_eq!(place.says(&["exec", &id, "--shell", "cat ~/note"], 0).text(), "kept\n");
        for expected in ["", "first\n"] {
            let mut client = Client::start(place, &["--name", "n"], Generation::Handshake);
            let command = "cat ~/n 2>/dev/null; echo first > ~/n";
            let done = client.done("shell_exec", json!({ "command": command }));
            assert_eq!(done["stdout"]["text"], expected);
            assert_eq!(client.close().code(), Some(0));
        }
        place.says(&["rm", "n", &id], 0);
    });
}

#[test]
fn a_connection_that_makes_no_sense_is_an_error_on_standard_error() {
    everyone(|place| {
        let client = {
            let mut client = Client::start(place, &[], Generation::Stateless);
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/nonsense" }));
            client
        };
        let said = client.wait();
        assert_eq!((said.code(), said.stdout.as_slice()), (Some(1), &b""[..]));
        assert!(said.stderr.contains("begin a connection"), "{}", said.stderr);
        // What is there is what `create` would refuse, too.
        let said = place.says(&["mcp", "--workspace", "/nothing"], 1);
        assert!(said.stderr.contains("/nothing"), "{}", said.stderr);
        assert_eq!(place.says(&["mcp"], 0).stdout, b"", "a client that says nothing");
    });
}

/// The Python that has the official client, where there is one.
fn python_with_client() -> Option<String> {
    let python = std::env::var("TEST_COFFERDAM_MCP_PYTHON").unwrap_or_else(|_| PYTHON.to_owned());
    let has = Path::new(&python).exists()
        && outcome(Command::new(&python).args(["-c", "import mcp"]), SOON).code() == Some(0);
    if !has {
        skipped("mcp", "the official Python client of MCP is not installed");
    }
    has.then_some(python)
}

#[test]
fn the_official_python_client_drives_a_whole_session() {
    let Some(python) = python_with_client() else { return };
    everyone(|place| {
        place.write("kept.txt", "old\n");
        let script = place.write("client.py", include_str!("mcp_client.py"));
        for mode in ["legacy", "auto"] {
            let mut command = place.host(&python);
            command.arg("-B").arg(&script).args([mode, place.program()]);
            let said = ended(
                started(
                    command
                        .stdout(std::process::Stdio::piped())
                        .stderr(std::process::Stdio::piped()),
                ),
                SOON * 3,
            );
            if said.stderr.contains("Permission denied")
                && place.person == crate::place::Person::Ordinary
            {
                skipped(
                    "mcp",
                    "others cannot enter the directory of the Python that has the client",
                );
                return;
            }
            assert_eq!(said.code(), Some(0), "{mode}: {}{}", said.text(), said.stderr);
            assert_eq!(said.text().trim_end(), "done", "{mode}: {}", said.stderr);
            nothing_is_left(place);
            fs::write(place.workspace.join("kept.txt"), "old\n").unwrap();
            fs::remove_file(place.workspace.join("made.txt")).unwrap();
        }
    });
}

#[test]
fn a_model_shows_a_server_to_its_user() {
    everyone(|place| {
        let mut client = Client::start(place, &[], Generation::Stateless);
        let early = client.done("port_expose", json!({ "port": 3100 }));
        assert_eq!(early["listens"], false, "{early}");
        let serve = format!("{PYTHON} -m http.server --bind 127.0.0.1 3100");
        client.done("shell_start", json!({ "command": serve }));
        let shown = until(SOON, || {
            let shown = client.done("port_expose", json!({ "port": 3100 }));
            (shown["listens"] == true).then_some(shown)
        });
        let shown = shown.expect("the server listens");
        assert_eq!(shown["address"], early["address"], "asked again, it is the same");
        let address = shown["address"].as_str().unwrap().to_owned();
        let address = address.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.0 200"), "{said}");
        client.failed("port_expose", json!({ "port": 0 }));
        client.close();
        assert!(TcpStream::connect(address).is_err(), "the address ends with the connection");
        nothing_is_left(place);
    });
}

#[test]
fn a_name_that_no_session_can_have_is_refused_before_a_model_asks() {
    everyone(|place| {
        let refused = place.says(&["mcp", "--name", "a/b"], 2);
        assert!(refused.stderr.contains("cannot be the name of a session"), "{refused:?}");
        // The control: nothing is asked, and it ends with its input.
        place.says(&["mcp", "--name", "a-b"], 0);
    });
}
