//! What a hint leads to is what it promises: files with output, the rest of bytes and of long lines.

use crate::stage::{Kind, Stage, call, done};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_tools::{MAX_RESULT_BYTES, PackName, Scope, Toolbox};
use serde_json::{Value, json};

/// What a call of everruns shows of a file, from this offset to its end, and how it goes on.
async fn rest_of(tools: &Toolbox, path: &Value, mut offset: Value) -> (Vec<u8>, Value) {
    let mut read = Vec::new();
    loop {
        let asked = json!({ "path": path, "offset": offset, "limit": 100_000 });
        let window = done(tools, "sandbox_read_file", asked).await;
        let content = window["content"].as_str().unwrap();
        let truncation = window["truncation"].clone();
        match window["encoding"].as_str().unwrap() {
            "base64" => read.extend(BASE64.decode(content).unwrap()),
            _ => read.extend(
                content
                    .lines()
                    .flat_map(|line| format!("{}\n", line.split_once('|').unwrap().1).into_bytes()),
            ),
        }
        assert_eq!(truncation["bytes_total"], window["size_bytes"], "{truncation}");
        let returned = truncation["bytes_returned"].as_u64().unwrap();
        assert!(returned <= window["size_bytes"].as_u64().unwrap(), "{truncation}");
        let pair = (truncation.get("next_offset"), truncation.get("resume_hint"));
        assert_eq!(pair.0.is_some(), pair.1.is_some(), "{truncation}");
        assert_eq!(pair.0.is_some(), truncation["truncated"] == true, "{truncation}");
        match pair.0 {
            Some(next) if *next != offset => offset = next.clone(),
            _ => return (read, truncation),
        }
    }
}

#[tokio::test]
async fn output_that_everruns_leaves_out_is_in_the_files_that_it_names() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Everruns, Scope::Implicit, Kind::Direct);
    let command = "seq 1 20000; seq 5 9000 >&2";
    let ran = done(&tools, "sandbox_exec", json!({ "command": command })).await;
    let lines = |from: u32, to: u32| (from..=to).map(|n| format!("{n}\n")).collect::<String>();
    let files = ran["output_files"].as_array().unwrap();
    assert_eq!((files.len(), &ran["full_output"]), (2, &files[0]), "{ran}");
    for (file, whole) in files.iter().zip([lines(1, 20000), lines(5, 9000)]) {
        let (read, _) = rest_of(&tools, file, json!(0)).await;
        assert_eq!(String::from_utf8(read).unwrap(), whole, "{file}");
    }
    // The control: where all is here no file is named, and absent is not null.
    let ran = done(&tools, "sandbox_exec", json!({ "command": "echo x" })).await;
    assert!(ran.get("full_output").is_none() && ran.get("output_files").is_none(), "{ran}");
    // Another sandbox has no such file.
    let other = stage.tools(PackName::Everruns, Scope::Implicit, Kind::Direct);
    let refused = call(&other, "sandbox_read_file", json!({ "path": files[0] })).await;
    assert_eq!(refused.structured["kind"], "not_found", "{}", refused.text);
    // Of more than a mebibyte both ends are there, and that is said.
    let command = json!({ "command": "seq 1 300000" });
    let ran = done(&tools, "sandbox_exec", command).await;
    assert!(ran["hint"].as_str().unwrap().contains("both ends"), "{ran}");
    let (read, _) = rest_of(&tools, &ran["full_output"], json!(0)).await;
    let read = String::from_utf8(read).unwrap();
    assert!(read.starts_with("1\n2\n") && read.ends_with("\n300000\n"));
    assert!(read.contains("bytes omitted") && read.len() > 1 << 20, "{}", read.len());
    stage.end().await;
}

#[tokio::test]
async fn full_output_of_everruns_is_as_much_as_a_result_may_have() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Everruns, Scope::Implicit, Kind::Direct);
    let run = |bytes: u32| {
        let command = format!("head -c {bytes} /dev/zero | tr '\\0' x");
        json!({ "command": command, "output": "full" })
    };
    let ran = done(&tools, "sandbox_exec", run(60_000)).await;
    assert_eq!((ran["stdout"].as_str().unwrap().len(), &ran["truncated"]), (60_000, &json!(false)));
    let ran = done(&tools, "sandbox_exec", run(200_000)).await;
    let shown = ran["stdout"].as_str().unwrap().len();
    assert!(shown > MAX_RESULT_BYTES * 9 / 10 && ran["truncated"] == true, "{shown}");
    stage.end().await;
}

#[tokio::test]
async fn the_hints_of_everruns_lead_to_the_rest_of_bytes_and_of_a_line() {
    let stage = Stage::new().await;
    let tools = stage.tools(PackName::Everruns, Scope::Implicit, Kind::Direct);
    let place = stage.workspace();
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    std::fs::write(place.join("bytes"), &bytes).unwrap();
    assert_eq!(rest_of(&tools, &json!("bytes"), json!(0)).await.0, bytes);
    // One line, which is more than a result has room for, and has quotes in its name.
    let line: String = (0..15_000).map(|n| format!("{n:05},")).collect();
    for (name, text) in [("it's one", line.clone()), ("two", format!("{line}\nend\n"))] {
        std::fs::write(place.join(name), &text).unwrap();
        let asked = json!({ "path": name });
        let window = done(&tools, "sandbox_read_file", asked).await;
        let (shown, hint) = (&window["content"], &window["truncation"]["resume_hint"]);
        let mut read = shown.as_str().unwrap().strip_prefix("1|").unwrap().to_owned();
        let (_, command) = hint.as_str().unwrap().split_once(" and tail ").unwrap();
        let (command, rest) = command.split_once(" goes on in it").unwrap();
        assert_eq!(rest.is_empty(), name != "two", "{rest}");
        let command = json!({ "command": format!("tail {command}"), "output": "full" });
        let ran = done(&tools, "sandbox_exec", command).await;
        assert_eq!(ran["truncated"], false, "{hint}");
        let more = ran["stdout"].as_str().unwrap();
        assert!(more.len() > 20_000, "{hint}");
        read.push_str(more);
        assert!(text.starts_with(&read), "{hint}");
        let (read, end) =
            rest_of(&tools, &json!(name), window["truncation"]["next_offset"].clone()).await;
        assert_eq!((read == b"end\n", &end["truncated"]), (name == "two", &json!(false)));
    }
    stage.end().await;
}

/// What the command in a hint shows, which is led by `by`, and where it begins.
async fn hinted(tools: &Toolbox, (tool, by): (&str, &str), hint: &Value) -> (usize, String) {
    let (_, command) = hint.as_str().unwrap().split_once(by).unwrap();
    let command = command.split_once(", and further").map_or(command, |(command, _)| command);
    let from = command.strip_prefix("tail -c +").unwrap().split(' ').next().unwrap();
    let ran = done(tools, tool, json!({ "command": command })).await;
    (from.parse::<usize>().unwrap() - 1, ran["stdout"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_hints_of_adk_and_fluers_lead_to_the_rest_of_a_file_of_one_line() {
    let stage = Stage::new().await;
    let line: String = (0..20_000).map(|n| format!("{n:05}ä,")).collect();
    std::fs::write(stage.workspace().join("it's one"), &line).unwrap();
    std::fs::write(stage.workspace().join("short"), "one\n").unwrap();
    for (pack, tool, with) in [
        (PackName::Adk, "read_file", ("exec_command", "exec_command with ")),
        (PackName::Fluers, "read", ("bash", "bash with ")),
    ] {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        let read = done(&tools, tool, json!({ "path": "it's one" })).await;
        let (mut from, shown) = hinted(&tools, with, &read["hint"]).await;
        let content = read["content"].as_str().unwrap();
        assert!(content.starts_with(&line[..from]) && from > 5_000, "{pack}: {from}");
        // Piece after piece, as the hint says it, is all that follows.
        let size = shown.len();
        assert!(line[from..].starts_with(&shown) && size > 20_000, "{pack}: {size}");
        let command = read["hint"].as_str().unwrap().split_once(with.1).unwrap().1;
        let mut rest = String::new();
        while from < line.len() {
            let first = command.split_once(' ').unwrap().1.split(", and").next().unwrap();
            let (_, last) = first.split_once("+").unwrap().1.split_once(' ').unwrap();
            let next = json!({ "command": format!("tail -c +{} {last}", from + 1) });
            rest.push_str(done(&tools, with.0, next).await["stdout"].as_str().unwrap());
            from += size;
        }
        assert!(line.ends_with(&rest) && rest.len() > 60_000, "{pack}: {}", rest.len());
        // The control: where nothing is left out there is no hint.
        let read = done(&tools, tool, json!({ "path": "short" })).await;
        assert_eq!((read["content"].as_str(), read.get("hint")), (Some("one\n"), None), "{pack}");
    }
    stage.end().await;
}
