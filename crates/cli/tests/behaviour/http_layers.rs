//! Layers, shells and numbers over HTTP, through the real server.

use crate::http_client::{Served, answered_head};
use crate::place::{Place, SOON, everyone, until};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

const S: &str = "/v1/sandboxes/s";

fn draft(place: &Place) -> Served {
    let server = Served::new(place);
    let workspace = place.workspace.to_str().unwrap();
    let wish = json!({
        "name": "s", "workspace": workspace, "profile": "no-network", "copy_on_write": true,
    });
    server.say("POST /v1/sandboxes", &wish).is(201);
    server
}

#[test]
fn changes_are_looked_at_landed_dropped_and_taken_back() {
    everyone(|place| {
        place.write("a", "one\n");
        let server = draft(place);
        place.says(&["exec", "s", "--shell", "echo two >a; echo new >b"], 0);
        let changes = server.get(&format!("GET {S}/diff")).is(200).object();
        assert_eq!(changes["changes"][0]["lines_added"], 1);
        let text = server.send(&format!("GET {S}/diff"), &[("accept", "text/x-diff")], b"").is(200);
        assert_eq!(text.headers["content-type"], "text/x-diff");
        assert!(text.text().contains("-one\n+two\n"), "{}", text.text());
        assert_eq!(text.text(), place.says(&["diff", "s"], 0).text());
        let names = server.get(&format!("GET {S}/diff?view=names&path=b")).is(200).object();
        assert_eq!(names["changes"].as_array().unwrap().len(), 1);
        assert_eq!(names["changes"][0]["lines_added"], Value::Null);
        // The history, as a range and as points.
        place.says(&["exec", "s", "--shell", "echo three >a"], 0);
        let history = server.get(&format!("GET {S}/history")).is(200).object();
        assert_eq!(history["points"].as_array().unwrap().len(), 3);
        let range = server.get(&format!("GET {S}/diff?range=1..2")).is(200).object();
        assert_eq!((range["from"].as_u64(), range["to"].as_u64()), (Some(1), Some(2)));
        assert_eq!(range["changes"].as_array().unwrap().len(), 1);
        let undone = server.say(&format!("POST {S}/undo"), &json!({})).is(200).object();
        assert_eq!(undone["to"], 1);
        let strict = server.say(&format!("POST {S}/undo"), &json!({"steps": 1})).is(400);
        assert!(strict.text().contains("steps"), "{}", strict.text());
        // What changed in the workspace meanwhile is a conflict, with the list.
        place.write("a", "mine\n");
        let dry = server.say(&format!("POST {S}/apply"), &json!({"dry_run": true})).is(200);
        assert_eq!(dry.object()["kept"][0]["standing"], "changed");
        let applied = server.say(&format!("POST {S}/apply"), &json!({})).is(409);
        assert!(applied.headers["content-type"].contains("problem+json"));
        let applied = applied.object();
        assert_eq!(applied["result"]["kept"][0]["path"], "a");
        assert_eq!(applied["result"]["applied"][0]["path"], "b");
        assert_eq!(fs::read(place.workspace.join("a")).unwrap(), b"mine\n");
        assert_eq!(fs::read(place.workspace.join("b")).unwrap(), b"new\n");
        let over = json!({"paths": ["a"], "overwrite": true, "dry_run": true});
        let over = server.say(&format!("POST {S}/apply"), &over).is(200).object();
        assert_eq!((&over["applied"][0]["path"], &over["kept"]), (&json!("a"), &json!([])));
        let dropped = server.say(&format!("POST {S}/discard"), &json!({"paths": ["a"]})).is(200);
        assert_eq!(dropped.object()["discarded"][0]["path"], "a");
        assert_eq!(place.says(&["exec", "s", "--shell", "cat a"], 0).text(), "mine\n");
    });
}

#[test]
fn a_command_that_nobody_waits_for_is_a_point() {
    everyone(|place| {
        let server = draft(place);
        let wish = json!({"shell": "sleep 0.1; echo new >b; exit 3"});
        server.say(&format!("POST {S}/execs"), &wish).is(201);
        let last = || {
            let history = server.get(&format!("GET {S}/history")).is(200).object();
            history["points"].as_array().unwrap().last().unwrap().clone()
        };
        let point =
            until(SOON, || Some(last()).filter(|point| point["kind"] == "command")).unwrap();
        assert_eq!(point["command"]["exit_code"], 3);
        assert_eq!(point["effects"]["added"], 1);
    });
}

#[test]
fn chosen_parts_land_and_only_as_they_were_looked_at() {
    everyone(|place| {
        let lines = |from: &str, to: &str| {
            let middle: String = (0..20).map(|n| format!("{n}\n")).collect();
            format!("{from}\n{middle}{to}\n")
        };
        place.write("a", &lines("first", "last"));
        let server = draft(place);
        let script = "sed -i 's/first/FIRST/; s/last/LAST/' a";
        place.says(&["exec", "s", "--shell", script], 0);
        let told = server.get(&format!("GET {S}/diff/hunks")).is(200).object();
        let change = &told["changes"][0];
        assert_eq!(change["hunks"].as_array().unwrap().len(), 2);
        let apply = |sha256: &Value, hunks: Value| {
            let chosen = json!({"hunks": [{"path": "a", "sha256": sha256, "hunks": hunks}]});
            server.say(&format!("POST {S}/apply"), &chosen)
        };
        apply(&json!("0".repeat(64)), json!([0])).is(409);
        apply(&change["sha256"], json!([2])).is(400);
        assert_eq!(fs::read_to_string(place.workspace.join("a")).unwrap(), lines("first", "last"));
        apply(&change["sha256"], json!([0])).is(200);
        assert_eq!(fs::read_to_string(place.workspace.join("a")).unwrap(), lines("FIRST", "last"));
    });
}

#[test]
fn a_change_without_parts_is_chosen_as_a_whole_and_only_as_it_was_looked_at() {
    everyone(|place| {
        let server = draft(place);
        place.says(&["exec", "s", "--shell", "printf 'a\\0b' >bytes; echo text >new"], 0);
        let told = |query: &str| server.get(&format!("GET {S}/diff/hunks{query}")).is(200).object();
        let change = |name: &str, query: &str| {
            let told = told(query);
            let all = told["changes"].as_array().unwrap();
            all.iter().find(|one| one["change"]["path"] == name).unwrap().clone()
        };
        assert_eq!(change("new", "").get("whole"), None, "not asked for");
        let text = change("new", "?texts=true")["whole"]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("\n+text\n"), "{text}");
        let apply = |more: Value| {
            let mut chosen = json!({"path": "bytes", "sha256": change("bytes", "")["sha256"]});
            chosen.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            server.say(&format!("POST {S}/apply"), &json!({ "hunks": [chosen] }))
        };
        let seen = change("bytes", "")["sha256"].clone();
        // Other bytes of the same length have the same text, and are another change.
        place.says(&["exec", "s", "--shell", "printf 'x\\0y' >bytes"], 0);
        apply(json!({ "sha256": seen, "whole": true })).is(409);
        apply(json!({ "hunks": [0], "whole": true })).is(400);
        apply(json!({ "hunks": [0] })).is(400);
        assert!(!place.workspace.join("bytes").exists());
        apply(json!({ "whole": true })).is(200);
        assert_eq!(fs::read(place.workspace.join("bytes")).unwrap(), b"x\0y");
        assert!(!place.workspace.join("new").exists(), "nobody chose it");
    });
}

#[test]
fn snapshots_are_kept_carried_and_gone_back_to() {
    everyone(|place| {
        place.write("a", "one\n");
        let server = draft(place);
        place.says(&["exec", "s", "--shell", "echo two >a"], 0);
        let snapshots = format!("{S}/snapshots");
        let taken = server.say(&format!("POST {snapshots}"), &json!({"label": "good"})).is(201);
        let number = taken.object()["snapshot"].as_u64().unwrap();
        let file = server.get(&format!("GET {snapshots}/good/export")).is(200);
        assert!(file.is_whole && !file.body.is_empty());
        let fork = server.say(&format!("POST {S}/fork"), &json!({"name": "other"})).is(201);
        assert_eq!(fork.object()["name"], "other");
        let other = "/v1/sandboxes/other/snapshots";
        let import = format!("POST {other}/import?label=carried");
        let carried = server.send(&import, &[], &file.body).is(201).object();
        assert_eq!(carried["same_directory"], true);
        server.send(&import, &[], &file.body[..file.body.len() - 10]).is(400);
        assert_eq!(
            server.get(&format!("GET {other}")).object()["snapshots"][0]["label"],
            "carried"
        );
        place.says(&["exec", "s", "--shell", "echo three >a"], 0);
        let back = server.say(&format!("POST {snapshots}/{number}/restore"), &json!({})).is(200);
        assert_eq!(back.object()["to"], number);
        assert_eq!(place.says(&["exec", "s", "--shell", "cat a"], 0).text(), "two\n");
        server.send(&format!("DELETE {snapshots}/good"), &[], b"").is(200);
        server.send(&format!("DELETE {snapshots}/good"), &[], b"").is(404);
    });
}

/// A WebSocket that speaks as little as is needed.
pub(crate) struct Line(BufReader<TcpStream>);

impl Line {
    pub(crate) fn open(server: &Served, path: &str) -> Self {
        let mut stream = server.connect();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            server.at
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        assert_eq!(answered_head(&mut stream).0, 101);
        Self(stream)
    }

    /// Sends a message, masked with zeros.
    pub(crate) fn send(&mut self, opcode: u8, body: &[u8]) {
        let mut frame = vec![0x80 | opcode];
        match u8::try_from(body.len()) {
            Ok(short @ ..126) => frame.push(0x80 | short),
            _ => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(body);
        self.0.get_mut().write_all(&frame).unwrap();
    }

    fn say(&mut self, message: &Value) {
        self.send(1, message.to_string().as_bytes());
    }

    /// The next message: what it is, and what it holds.
    pub(crate) fn message(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => self.number(2),
            127 => self.number(8),
            short => u64::from(short),
        };
        let mut body = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut body).unwrap();
        (head[0] & 0xf, body)
    }

    /// The next message: an object, or the place and the bytes of some output.
    fn next(&mut self) -> Result<Value, (u64, Vec<u8>)> {
        loop {
            let (opcode, body) = self.message();
            match opcode {
                1 => return Ok(serde_json::from_slice(&body).unwrap()),
                2 => {
                    let offset = u64::from_be_bytes(body[1..9].try_into().unwrap());
                    return Err((offset, body[9..].to_vec()));
                }
                8 => return Ok(json!({"type": "hung_up"})),
                _ => {}
            }
        }
    }

    fn number(&mut self, bytes: usize) -> u64 {
        let mut number = [0; 8];
        self.0.read_exact(&mut number[8 - bytes..]).unwrap();
        u64::from_be_bytes(number)
    }

    /// All output until a message of this type, that message, and where the output began.
    fn until(&mut self, kind: &str) -> (String, Value, Option<u64>) {
        let (mut output, mut first) = (Vec::new(), None);
        loop {
            match self.next() {
                Ok(message) if message["type"] == kind => {
                    return (String::from_utf8_lossy(&output).into_owned(), message, first);
                }
                Ok(message) => {
                    let is_end = kind != "problem" && message["type"] == "problem";
                    assert!(message["type"] != "hung_up" && !is_end, "{message} before {kind}");
                }
                Err((offset, bytes)) => {
                    first = first.or(Some(offset));
                    output.extend(bytes);
                }
            }
        }
    }
}

#[test]
fn a_shell_is_talked_to_and_told_again_from_any_place() {
    everyone(|place| {
        let server = draft(place);
        let shell = format!("{S}/shells/main");
        server.get(&format!("GET {shell}")).is(404);
        server.send(&format!("PUT {shell}"), &[], b"").is(200);
        assert_eq!(server.get(&format!("GET {shell}/attach")).status, 426);
        let mut line = Line::open(&server, &format!("{shell}/attach"));
        line.until("open");
        line.say(&json!({"type": "run", "text": "cd /tmp; X=kept; echo one"}));
        let (output, ended, _) = line.until("ended");
        assert_eq!((output.as_str(), ended["exit_code"].as_i64()), ("one\n", Some(0)));
        let from = ended["next"].as_u64().unwrap();
        line.say(&json!({"type": "run", "text": "echo $X; pwd; (exit 7)"}));
        let (output, ended, first) = line.until("ended");
        assert_eq!((output.as_str(), ended["exit_code"].as_i64()), ("kept\n/tmp\n", Some(7)));
        assert_eq!(first, Some(from));
        line.say(&json!({"type": "dance"}));
        assert_eq!(line.until("problem").1["problem"]["kind"], "usage");
        drop(line);
        // Who comes back hears it again, from where he says.
        let mut again = Line::open(&server, &format!("{shell}/attach?from={from}"));
        let (output, ended, first) = again.until("ended");
        assert_eq!((output.as_str(), first), ("kept\n/tmp\n", Some(from)));
        assert_eq!(ended["exit_code"], 7);
        // From the middle of what stands between two outputs it is whole, and from that of one the rest.
        let mut within = Line::open(&server, &format!("{shell}/attach?from={}", from - 3));
        let (output, ended, _) = within.until("ended");
        assert_eq!((output.as_str(), ended["next"].as_u64()), ("", Some(from)));
        assert_eq!(within.until("ended").0, "kept\n/tmp\n");
        let mut within = Line::open(&server, &format!("{shell}/attach?from={}", from + 2));
        let (output, _, first) = within.until("ended");
        assert_eq!((output.as_str(), first), ("pt\n/tmp\n", Some(from + 2)));
        // Beside it, by requests.
        let ran = server.say(&format!("POST {shell}/run"), &json!({"text": "echo $X"})).is(200);
        assert_eq!(
            (&ran.object()["text"], &ran.object()["exit_code"]),
            (&json!("kept\n"), &json!(0))
        );
        assert_eq!(again.until("ended").0, "kept\n");
        server.send(&format!("DELETE {shell}"), &[], b"").is(204);
        again.until("died");
        again.until("hung_up");
    });
}

#[test]
fn a_terminal_takes_keys_and_sizes_and_says_how_it_ended() {
    everyone(|place| {
        let server = draft(place);
        let wish = json!({
            "shell": "stty size; read line; stty size; echo got $line; exit 3",
            "stdin": true, "terminal": {"rows": 11, "columns": 22},
        });
        let started = server.say(&format!("POST {S}/execs"), &wish);
        assert!(matches!(started.status, 200..=202), "{}", started.text());
        let exec = started.object()["id"].as_str().unwrap().to_owned();
        let attach = format!("{S}/execs/{exec}/attach");
        let mut line = Line::open(&server, &attach);
        line.until("attached");
        let mut seen = String::new();
        while !seen.contains("11 22") {
            if let Err((_, bytes)) = line.next() {
                seen.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        line.say(&json!({"type": "resize", "rows": 33, "columns": 44}));
        line.send(2, b"hello\r");
        let (output, exited, _) = line.until("exited");
        assert!(output.contains("33 44") && output.contains("got hello"), "{output:?}");
        assert_eq!(exited["exec"]["exit_code"], 3);
        // All of it again, from the beginning, and from the middle.
        let whole = Line::open(&server, &attach).until("exited").0;
        assert!(whole.contains("11 22") && whole.contains("got hello"), "{whole:?}");
        let rest = Line::open(&server, &format!("{attach}?from=7")).until("exited");
        assert_eq!((rest.0.as_str(), rest.2), (&whole[7..], Some(7)));
    });
}

#[test]
fn who_reads_slowly_stops_nobody_and_hears_what_was_dropped() {
    everyone(|place| {
        let server = draft(place);
        // More than is kept: 64 MiB.
        let wish = json!({"shell": "head -c 100000000 /dev/zero | tr '\\0' x; echo end"});
        let started = server.say(&format!("POST {S}/execs"), &wish).object();
        let exec = started["id"].as_str().unwrap().to_owned();
        let attach = format!("{S}/execs/{exec}/attach");
        let mut slow = Line::open(&server, &attach);
        slow.until("attached");
        // It ends though nobody reads.
        let is_over = until(SOON * 3, || {
            let exec = server.get(&format!("GET {S}/execs/{exec}")).object();
            (!exec["exit_code"].is_null()).then_some(())
        });
        assert!(is_over.is_some(), "it waits for its reader");
        let mut late = Line::open(&server, &attach);
        late.until("attached");
        let dropped = late.until("dropped").1;
        assert_eq!(dropped["from"], 0);
        let (output, _, first) = late.until("exited");
        assert_eq!(first, dropped["to"].as_u64());
        assert_eq!(output.len() as u64, 100_000_004 - first.unwrap());
        assert!(output.ends_with("end\n"));
        slow.until("exited");
    });
}

#[test]
fn numbers_are_told_and_no_name_of_anybody() {
    everyone(|place| {
        let server = draft(place);
        server.get("GET /v1/sandboxes/none-such/files?path=x").is(404);
        server.get("GET /none/such/path").is(404);
        let told = server.get("GET /metrics").is(200);
        assert!(told.headers["content-type"].starts_with("text/plain"));
        let told = told.text();
        let has = |line: &str| assert!(told.lines().any(|l| l == line), "{line} in {told}");
        has("cofferdam_sandboxes{phase=\"running\"} 1");
        has("cofferdam_execs_running 0");
        has("cofferdam_connections{decision=\"denied\"} 0");
        has("cofferdam_connection_bytes{direction=\"up\"} 0");
        has(
            "cofferdam_http_requests_total{method=\"POST\",route=\"/v1/sandboxes\",status=\"201\"} 1",
        );
        let route = "/v1/sandboxes/{sandbox}/files";
        has(&format!(
            "cofferdam_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"404\"}} 1"
        ));
        for hidden in ["none-such", "/none/such"] {
            assert!(!told.contains(hidden), "{hidden} in {told}");
        }
    });
}
