//! No result is over the limit, whatever is inside; and what is left out can be had.

use crate::stage::{Kind, Stage, call, done};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_tools::{MAX_RESULT_BYTES, PackName, Scope, Toolbox};
use serde_json::{Value, json};

/// Makes files that are large, have no lines, no text, control characters, and many names.
const HOSTILE: &str = r#"
head -c 200000 /dev/zero | tr '\0' '\001' > control
head -c 200000 /dev/urandom > random
head -c 200000 /dev/zero | tr '\0' '"' > quotes
seq 1 40000 > lines
mkdir many && cd many && i=0 && n=$(printf 'n%.0s' $(seq 1 150))
while [ $i -lt 1500 ]; do : > "$i-$n"; i=$((i+1)); done
: > "$(printf 'a\377b')"
"#;

/// The command of a pack that runs a line, and the names of what it says.
fn shell(pack: PackName, line: &str) -> (&'static str, Value) {
    match pack {
        PackName::Cofferdam => ("shell_exec", json!({ "command": line })),
        PackName::Everruns => ("sandbox_exec", json!({ "command": line, "output": "full" })),
        PackName::Adk => ("exec_command", json!({ "command": line })),
        PackName::Fluers => ("bash", json!({ "command": line })),
        PackName::Openmanus => {
            let action = "execute_command";
            ("sandbox_shell", json!({ "action": action, "command": line, "blocking": true }))
        }
    }
}

/// What reads the file of this name, and lists and searches.
fn looks(pack: PackName, file: &str) -> Vec<(&'static str, Value)> {
    match pack {
        PackName::Cofferdam => vec![
            ("file_read", json!({ "path": file })),
            ("file_read", json!({ "path": file, "encoding": "base64", "offset": 5 })),
            ("file_list", json!({ "path": "many", "limit": 1000 })),
            ("file_search", json!({ "pattern": "1", "limit": 1000 })),
            ("file_search", json!({ "glob": "**", "limit": 1000 })),
        ],
        PackName::Everruns => vec![("sandbox_read_file", json!({ "path": file }))],
        PackName::Adk => {
            vec![("read_file", json!({ "path": file })), ("list_dir", json!({ "path": "many" }))]
        }
        PackName::Fluers => vec![
            ("read", json!({ "path": file })),
            ("glob", json!({ "pattern": "**/*" })),
            ("grep", json!({ "pattern": "." })),
        ],
        PackName::Openmanus => Vec::new(),
    }
}

#[tokio::test]
async fn nothing_makes_a_result_larger_than_its_limit() {
    let stage = Stage::new().await;
    for pack in PackName::ALL {
        std::fs::remove_dir_all(stage.workspace()).ok();
        std::fs::create_dir(stage.workspace()).unwrap();
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        let (name, arguments) = shell(pack, &format!("({HOSTILE})"));
        done(&tools, name, arguments).await;
        for file in ["control", "random", "quotes", "lines"] {
            for both in ["", "; cat FILE >&2", "; exit 1"] {
                let line = format!("cat FILE{both}").replace("FILE", file);
                let (name, arguments) = shell(pack, &line);
                let outcome = call(&tools, name, arguments).await;
                assert!(!outcome.is_error, "{pack} {line}: {}", outcome.text);
            }
            for (name, arguments) in looks(pack, file) {
                let outcome = call(&tools, name, arguments).await;
                assert!(!outcome.is_error, "{pack} {name} {file}: {}", outcome.text);
            }
        }
        let name = tools.tools()[0].name;
        let long = "\u{1}".repeat(MAX_RESULT_BYTES);
        for odd in [json!({ &*long: 1 }), json!({ "command": 1, "path": &*long }), json!([1])] {
            assert!(call(&tools, name, odd).await.is_error);
        }
        assert!(call(&tools, &long, json!({})).await.is_error);
        tools.close().await.unwrap();
    }
    stage.end().await;
}

#[tokio::test]
async fn a_directory_of_more_than_can_be_counted_is_said_to_have_more() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Adk, Scope::Implicit, Kind::Direct);
    std::fs::create_dir(stage.workspace().join("many")).unwrap();
    // Of as many nothing is left out of the count.
    let mut made = 0;
    for (files, least) in [(50_000, ""), (50_001, "at least ")] {
        for number in made..files {
            std::fs::File::create(stage.workspace().join(format!("many/{number}"))).unwrap();
        }
        made = files;
        let listed = done(&tools, "list_dir", json!({ "path": "many" })).await;
        assert_eq!(listed["total"], 50_000, "{}", listed["hint"]);
        let shown = listed["entries"].as_array().unwrap().len();
        let said = format!("{shown} of {least}50000 entries;");
        let hint = listed["hint"].as_str().unwrap();
        assert!(hint.starts_with(&said), "{hint}");
    }
    stage.end().await;
}

async fn poll(tools: &Toolbox, exec: &Value, offset: &Value) -> Value {
    let asked = json!({ "exec": exec, "offset": offset, "encoding": "base64", "wait_ms": 20000 });
    done(tools, "shell_poll", asked).await
}

#[tokio::test]
async fn what_is_left_out_of_output_can_be_polled() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let ran = done(&tools, "shell_exec", json!({ "command": "seq 1 20000" })).await;
    let whole: String = (1..=20000).map(|n| format!("{n}\n")).collect();
    let (stdout, exec) = (&ran["stdout"], &ran["exec"]);
    assert_eq!(stdout["bytes"], whole.len());
    let offset = usize::try_from(stdout["next_offset"].as_u64().unwrap()).unwrap();
    let omitted = usize::try_from(stdout["omitted_bytes"].as_u64().unwrap()).unwrap();
    let text = stdout["text"].as_str().unwrap();
    assert!(text.starts_with(&whole[..offset]) && text.ends_with(&whole[offset + omitted..]));
    let (mut next, mut read) = (json!(offset), whole.as_bytes()[..offset].to_vec());
    loop {
        let part = poll(&tools, exec, &next).await;
        read.extend(BASE64.decode(part["content"].as_str().unwrap()).unwrap());
        next = part["next_offset"].clone();
        if part["more"] == false {
            break;
        }
    }
    assert_eq!(String::from_utf8(read).unwrap(), whole);
    stage.end().await;
}

#[tokio::test]
async fn pages_of_a_list_and_of_a_search_are_all_of_it() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    done(&tools, "shell_exec", json!({ "command": format!("({HOSTILE})") })).await;
    let (mut after, mut listed) = (Value::Null, 0);
    loop {
        let mut asked = json!({ "path": "many", "limit": 700 });
        if let Some(after) = after.as_str() {
            asked["after"] = json!(after);
        }
        let page = done(&tools, "file_list", asked).await;
        listed += page["entries"].as_array().unwrap().len();
        let following = usize::try_from(page["following"].as_u64().unwrap()).unwrap();
        assert_eq!(listed + following, 1501);
        after = page["next_after"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(listed, 1501);
    let sevens = (0..1500).filter(|n| n.to_string().contains('7')).count();
    let (mut skip, mut found) = (json!(0), Vec::new());
    loop {
        let asked = json!({ "glob": "many/*7*", "skip": skip, "limit": 400 });
        let page = done(&tools, "file_search", asked).await;
        assert_eq!((&page["total"], &page["complete"]), (&json!(sevens), &json!(true)));
        found.extend(page["matches"].as_array().unwrap().iter().map(|find| find["path"].clone()));
        skip = page["next_skip"].clone();
        if skip.is_null() {
            break;
        }
    }
    found.dedup();
    assert_eq!(found.len(), sevens);
    stage.end().await;
}

#[tokio::test]
async fn pages_of_a_file_are_all_of_it() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Everruns, Scope::Implicit, Kind::Direct);
    done(&tools, "sandbox_exec", json!({ "command": "seq 1 20000 > lines" })).await;
    let (mut offset, mut last) = (json!(0), 0);
    loop {
        let asked = json!({ "path": "lines", "offset": offset, "limit": 100_000 });
        let window = done(&tools, "sandbox_read_file", asked).await;
        for line in window["content"].as_str().unwrap().lines() {
            last += 1;
            assert_eq!(line, format!("{last}|{last}"));
        }
        let truncation = &window["truncation"];
        let pair = (truncation.get("next_offset"), truncation.get("resume_hint"));
        assert_eq!(pair.0.is_some(), pair.1.is_some());
        match pair.0 {
            Some(next) => offset = next.clone(),
            None => break,
        }
    }
    assert_eq!(last, 20000);
    stage.end().await;
}

/// A value that a schema takes, the least of its kind.
fn least(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer") => schema["minimum"].clone(),
        Some("boolean") => json!(false),
        Some("array") => json!([least(&schema["items"])]),
        Some("object") => required(schema),
        _ => json!("x"),
    }
}

/// What a call has to say.
fn required(schema: &Value) -> Value {
    let names = schema["required"].as_array().into_iter().flatten();
    let names = names.map(|name| name.as_str().unwrap());
    names.map(|name| (name.to_owned(), least(&schema["properties"][name]))).collect()
}

/// A number that its reader, as the pack's own does, takes for the nearest that may be.
const LENIENT: (&str, &str) = ("sandbox_exec", "timeout_secs");

#[tokio::test]
async fn every_limit_of_a_schema_holds() {
    let stage = Stage::new().await;
    let mut limits = 0;
    for pack in PackName::ALL {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        for tool in tools.tools() {
            for (name, schema) in tool.input["properties"].as_object().unwrap() {
                let valued = |more: u64| {
                    let value = match (schema["maximum"].as_u64(), schema["maxItems"].as_u64()) {
                        (Some(most), _) => json!(most + more),
                        (None, Some(most)) => {
                            let items = (0..most + more).map(|_| least(&schema["items"]));
                            items.collect::<Vec<_>>().into()
                        }
                        (None, None) => return None,
                    };
                    let mut arguments = required(&tool.input);
                    arguments[name] = value;
                    Some(arguments)
                };
                if (tool.name, name.as_str()) == LENIENT {
                    continue;
                }
                let (Some(most), Some(more)) = (valued(0), valued(1)) else { continue };
                let refused = call(&tools, tool.name, more).await;
                let what = format!("{pack:?} {} {name}: {}", tool.name, refused.text);
                assert!(refused.is_error && refused.text.contains(name.as_str()), "{what}");
                // The control: at the limit that is not what it fails of, if it does.
                let taken = call(&tools, tool.name, most).await;
                assert_ne!(taken.text, refused.text, "{what}");
                limits += 1;
            }
        }
    }
    assert!(limits > 15, "{limits}");
    stage.end().await;
}

/// A call of each pack that runs a command, with one argument more.
fn running(pack: PackName, command: &str, name: &str, value: Value) -> (&'static str, Value) {
    let (tool, mut arguments) = shell(pack, command);
    arguments[name] = value;
    (tool, arguments)
}

#[tokio::test]
async fn no_time_at_all_is_refused_by_every_tool_with_a_time_limit() {
    let stage = Stage::new().await;
    for (pack, name, range) in [
        (PackName::Cofferdam, "timeout_ms", "from 1 to 3600000"),
        (PackName::Everruns, "timeout_ms", "a positive integer"),
        (PackName::Fluers, "timeout_ms", "from 1 to 3600000"),
        (PackName::Openmanus, "timeout", "from 1 to 3600"),
    ] {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        let (tool, arguments) = running(pack, "true", name, json!(0));
        let refused = call(&tools, tool, arguments).await;
        assert!(refused.is_error && refused.text.contains(range), "{pack}: {}", refused.text);
        let (tool, arguments) =
            running(pack, "true", name, json!(30_000 / if name == "timeout" { 1000 } else { 1 }));
        done(&tools, tool, arguments).await;
        tools.close().await.unwrap();
    }
    // Of what waits for something else, no time is not to wait.
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let started = done(&tools, "shell_start", json!({ "command": "sleep 99" })).await;
    done(&tools, "shell_poll", json!({ "exec": started["exec"], "wait_ms": 0 })).await;
    stage.end().await;
}

#[tokio::test]
async fn a_nul_in_a_command_is_refused_by_its_place_and_starts_nothing() {
    let stage = Stage::new().await;
    for pack in PackName::ALL {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        let (tool, arguments) = shell(pack, "echo x > made\0");
        let refused = call(&tools, tool, arguments).await;
        let said = "the command has a NUL character at byte 13";
        assert!(refused.is_error && refused.text.contains(said), "{pack}: {}", refused.text);
        assert!(!stage.workspace().join("made").exists(), "{pack}");
        let (tool, arguments) = shell(pack, "printf 'a\\0b' | wc -c");
        done(&tools, tool, arguments).await;
        tools.close().await.unwrap();
    }
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    for tool in ["shell_exec", "shell_start"] {
        let refused = call(&tools, tool, json!({ "command": "true", "cwd": "a\0" })).await;
        assert!(refused.text.contains("the working directory has a NUL"), "{}", refused.text);
        let refused = call(&tools, tool, json!({ "command": "a\0" })).await;
        assert!(refused.text.contains("the command has a NUL"), "{}", refused.text);
    }
    stage.end().await;
}

#[tokio::test]
async fn an_offset_behind_the_end_of_output_is_refused_by_what_there_is() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    let exec = done(&tools, "shell_exec", json!({ "command": "echo four" })).await["exec"].clone();
    let asked = |offset: u64| json!({ "exec": exec, "offset": offset, "wait_ms": 60_000 });
    let refused = call(&tools, "shell_poll", asked(6)).await;
    assert_eq!(refused.structured["error"]["kind"], "usage", "{}", refused.text);
    assert!(refused.text.contains("stdout has 5 bytes so far"), "{}", refused.text);
    assert!(refused.text.contains("Use offset 5"), "{}", refused.text);
    // The control: the end itself is where the next bytes would be.
    let part = done(&tools, "shell_poll", asked(5)).await;
    let told = (&part["offset"], &part["next_offset"], &part["bytes"], &part["more"]);
    assert_eq!(told, (&json!(5), &json!(5), &json!(5), &json!(false)));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_of_fluers_tell_so_many_and_how_many_there_are() {
    const MAX_NAMES: usize = 1000;
    const MAX_MATCHES: usize = 100;
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Fluers, Scope::Implicit, Kind::Direct);
    let place = stage.workspace();
    for number in 0..=MAX_NAMES {
        std::fs::write(place.join(format!("n{number}")), "").unwrap();
    }
    std::fs::write(place.join("lines"), "found\n".repeat(MAX_MATCHES + 1)).unwrap();
    let names = done(&tools, "glob", json!({ "pattern": "n*" })).await;
    assert_eq!(names["paths"].as_array().unwrap().len(), MAX_NAMES);
    assert_eq!((&names["total"], &names["truncated"]), (&json!(MAX_NAMES + 1), &json!(true)));
    let lines = done(&tools, "grep", json!({ "pattern": "found" })).await;
    assert_eq!(lines["matches"].as_array().unwrap().len(), MAX_MATCHES);
    assert_eq!((&lines["total"], &lines["truncated"]), (&json!(MAX_MATCHES + 1), &json!(true)));
    // The control: at the limit nothing is left out.
    std::fs::remove_file(place.join("n0")).unwrap();
    std::fs::write(place.join("lines"), "found\n".repeat(MAX_MATCHES)).unwrap();
    let names = done(&tools, "glob", json!({ "pattern": "n*" })).await;
    assert_eq!((&names["total"], &names["truncated"]), (&json!(MAX_NAMES), &json!(false)));
    let lines = done(&tools, "grep", json!({ "pattern": "found" })).await;
    assert_eq!((&lines["total"], &lines["truncated"]), (&json!(MAX_MATCHES), &json!(false)));
    stage.end().await;
}

#[tokio::test]
async fn more_matches_of_one_file_than_are_looked_at_are_no_total() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Cofferdam, Scope::Implicit, Kind::Direct);
    std::fs::write(stage.workspace().join("many"), "x\n".repeat(300_000)).unwrap();
    std::fs::write(stage.workspace().join("few"), "x\n").unwrap();
    let outcome = call(&tools, "file_search", json!({ "pattern": "x", "limit": 5 })).await;
    let (found, text) = (&outcome.structured, &outcome.text);
    let total = found["total"].as_u64().unwrap();
    assert!(total < 300_001 && found["complete"] == false, "{total}");
    assert!(text.starts_with(&format!("at least {total} matches")), "{text}");
    assert!(text.contains("narrow the pattern"), "{text}");
    // Behind the last that is known there is nothing to show, and no range of nothing.
    let beyond = json!({ "pattern": "x", "skip": total });
    let outcome = call(&tools, "file_search", beyond).await;
    assert!(!outcome.text.contains("these are"), "{}", outcome.text);
    assert_eq!(outcome.structured["next_skip"], Value::Null);
    // The control.
    let outcome = call(&tools, "file_search", json!({ "pattern": "x", "path": "few" })).await;
    assert_eq!(
        (&outcome.structured["complete"], &outcome.structured["total"]),
        (&json!(true), &json!(1))
    );
    let fluers = stage.tools(PackName::Fluers, Scope::Implicit, Kind::Direct);
    let outcome = call(&fluers, "grep", json!({ "pattern": "x" })).await;
    assert!(outcome.text.contains("at least "), "{}", outcome.text);
    stage.end().await;
}

#[tokio::test]
async fn all_that_is_left_out_of_output_is_counted() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Everruns, Scope::Implicit, Kind::Direct);
    let line = "yes 0123456 | head -c 5000000";
    for (more, output) in [("", "concise"), ("; echo 'error: x'; false", "concise"), ("", "full")] {
        let run = json!({ "command": format!("{line}{more}"), "output": output });
        let ran = done(&tools, "sandbox_exec", run).await;
        let text = ran["stdout"].as_str().unwrap();
        let marks = text.split("[... ").skip(1);
        let omitted: usize =
            marks.map(|rest| rest.split(' ').next().unwrap().parse::<usize>().unwrap()).sum();
        let shown = text.lines().filter(|line| !line.starts_with('[')).map(|line| line.len() + 1);
        let written: usize = 5_000_000 + if more.is_empty() { 0 } else { 9 };
        // Line ends beside a mark are of nobody.
        assert!(
            written.abs_diff(omitted + shown.sum::<usize>()) < 4,
            "{output}: {omitted} {text:.60}"
        );
    }
    stage.end().await;
}
