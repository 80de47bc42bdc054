//! What models are told: the tools of each pack as they stand in a snapshot, and in the docs.

use crate::stage::{Kind, Stage};
use cofferdam_session::InitCommand;
use cofferdam_tools::{CallContext, Hints, PackName, Scope, Tool, Toolbox};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Compares a file with what it has to hold; with BLESS=1 it is written.
fn check(path: &Path, expected: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, expected).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let name = path.display();
    assert!(found == expected, "{name} is not what the tools are; renew it with BLESS=1");
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn shown(tool: &Tool) -> Value {
    let Hints { read_only, destructive, idempotent, open_world } = tool.hints;
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input": tool.input,
        "output": tool.output,
        "hints": {
            "read_only": read_only, "destructive": destructive,
            "idempotent": idempotent, "open_world": open_world,
        },
    })
}

#[tokio::test]
async fn the_tools_are_those_of_the_snapshots() {
    let stage = Stage::new().await;
    for pack in PackName::ALL {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        let all: Vec<Value> = tools.tools().iter().map(shown).collect();
        let text = serde_json::to_string_pretty(&all).unwrap() + "\n";
        check(&here().join(format!("tests/packs/snapshots/{pack}.json")), &text);
    }
    stage.end().await;
}

#[tokio::test]
async fn a_tool_that_says_it_only_looks_has_nothing_run() {
    let stage = Stage::new().await;
    let ran = stage.workspace().join("ran");
    for pack in PackName::ALL {
        let mut order = stage.order(Kind::Direct);
        order.init.push(InitCommand::shell("touch ran"));
        let tools = Toolbox::new(pack, stage.sessions.clone(), Scope::Implicit, order);
        let looks = |tools: &Toolbox| -> Vec<&'static str> {
            let all = tools.tools().iter().filter(|tool| tool.hints.read_only);
            all.map(|tool| tool.name).collect()
        };
        for name in looks(&tools) {
            let arguments = match name {
                "shell_poll" => json!({ "exec": "x" }),
                _ => json!({}),
            };
            tools.call(name, arguments, CallContext::new()).await;
            assert!(!ran.exists(), "{pack}: {name}");
        }
        // The control: those that read files say so where nothing prepares the sandbox, and have it made.
        let plain = looks(&stage.tools(pack, Scope::Implicit, Kind::Direct));
        let reads: Vec<&str> =
            plain.into_iter().filter(|name| !looks(&tools).contains(name)).collect();
        assert_eq!(reads, reading(pack));
        if let Some(name) = reads.first() {
            tools.call(name, json!({ "path": "x" }), CallContext::new()).await;
            assert!(ran.exists(), "{pack}: {name}");
            std::fs::remove_file(&ran).unwrap();
        }
        tools.close().await.unwrap();
    }
    stage.end().await;
}

/// The tools of a pack that read files.
fn reading(pack: PackName) -> &'static [&'static str] {
    match pack {
        PackName::Cofferdam => &["file_read", "file_list", "file_search"],
        PackName::Everruns => &["sandbox_read_file"],
        PackName::Adk => &["read_file", "list_dir"],
        PackName::Fluers => &["read", "glob", "grep"],
        PackName::Openmanus => &[],
    }
}

/// What a client is told of all tools of a pack at most, in bytes of JSON: it reads that before anything.
const MAX_OWN_BYTES: usize = 72 << 10;
/// The same of the tools of other systems.
const MAX_OTHER_BYTES: usize = 9 << 10;

#[tokio::test]
async fn the_tools_of_a_pack_are_told_in_few_bytes_and_nothing_twice() {
    let stage = Stage::new().await;
    for pack in PackName::ALL {
        let tools = stage.tools(pack, Scope::Named, Kind::Direct);
        let all: Vec<Value> = tools.tools().iter().map(shown).collect();
        let bytes = serde_json::to_string(&all).unwrap().len();
        let most = if pack == PackName::Cofferdam { MAX_OWN_BYTES } else { MAX_OTHER_BYTES };
        assert!(bytes <= most, "{pack}: {bytes}");
        // What a report of a sandbox holds is told by one tool.
        let report = |tool: &&Tool| {
            let at = "/properties/sandbox/anyOf/0/properties/incarnation";
            let named = "/properties/sandbox/properties/incarnation";
            let output = tool.output.as_ref().unwrap();
            output.pointer(at).or(output.pointer(named)).is_some()
        };
        let told: Vec<&str> = tools.tools().iter().filter(report).map(|tool| tool.name).collect();
        let expected: &[&str] = if pack == PackName::Cofferdam { &["sandbox_status"] } else { &[] };
        assert_eq!(told, expected, "{pack}");
    }
    stage.end().await;
}

#[tokio::test]
async fn every_schema_is_strict_and_a_named_scope_asks_for_the_name() {
    let stage = Stage::new().await;
    for pack in PackName::ALL {
        let implicit = stage.tools(pack, Scope::Implicit, Kind::Direct);
        let named = stage.tools(pack, Scope::Named, Kind::Direct);
        for (tool, with_name) in implicit.tools().iter().zip(named.tools()) {
            assert_eq!(tool.input["additionalProperties"], false, "{}", tool.name);
            assert_eq!(tool.input["type"], "object", "{}", tool.name);
            assert_eq!(tool.output.as_ref().unwrap()["type"], "object", "{}", tool.name);
            let asks = |tool: &Tool| {
                let required = tool.input["required"].as_array().unwrap();
                required.contains(&json!("sandbox"))
            };
            assert!(!asks(tool) && asks(with_name), "{}", tool.name);
            let has = tool.input["properties"].get("sandbox").is_some();
            assert_eq!(has, pack == PackName::Cofferdam, "{}: the parent's own schema", tool.name);
            assert!(!(tool.hints.read_only && tool.hints.destructive), "{}", tool.name);
        }
        let mut names: Vec<&str> = implicit.tools().iter().map(|tool| tool.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), implicit.tools().len(), "{pack}: a name twice");
    }
    stage.end().await;
}

#[tokio::test]
async fn the_docs_list_every_tool_of_every_pack() {
    let stage = Stage::new().await;
    let mut text = String::from(HEAD);
    for pack in PackName::ALL {
        let tools = stage.tools(pack, Scope::Implicit, Kind::Direct);
        write!(text, "\n## {pack}\n\n{}\n", about(pack)).unwrap();
        for tool in tools.tools() {
            write!(text, "\n### `{}`\n\n{}\n", tool.name, tool.description).unwrap();
            write!(text, "{}", parameters(tool)).unwrap();
        }
    }
    check(&here().join("../../docs/tools.md"), &text);
    stage.end().await;
}

fn about(pack: PackName) -> &'static str {
    match pack {
        PackName::Cofferdam => {
            "Everything that a session can do. Each tool also takes `sandbox`, the name or id of another \
             sandbox than the own one; where every call names its sandbox it is required. Errors are \
             `{\"error\": {\"kind\", \"message\", \"hint\", \"retryable\"}}`."
        }
        PackName::Everruns => {
            "The one sandbox of a session. Errors are `{\"error\": message, \"kind\", \"hint\", \
             \"retryable\"}`, with everruns' own words where it has some. Where output is left out, \
             `output_files` names the files that `sandbox_read_file` has all of it from, a mebibyte of each \
             stream; `full_output` is that of standard output."
        }
        PackName::Adk => {
            "A workspace session, and `sandbox_exec` for code. Errors are `{\"error\": code, \"message\", \
             …}`; of `sandbox_exec` a `status` and `stderr`. Code runs with what is in the sandbox: where a \
             language's tools are missing, the exit code is 127."
        }
        PackName::Fluers => {
            "Files and a shell. A path through a link, or to a file of several names, is refused. Errors are \
             those of Cofferdam's own pack."
        }
        PackName::Openmanus => {
            "Shell and files. A command of `sandbox_shell` has an exit code, and its end is known, not \
             guessed. Errors are `{\"success\": false, \"error\": message, …}`."
        }
    }
}

fn parameters(tool: &Tool) -> String {
    let (mut text, required) = (String::new(), tool.input["required"].as_array().unwrap());
    let all = tool.input["properties"].as_object().unwrap();
    let mut rows: Vec<(&String, &Value)> =
        all.iter().filter(|(name, _)| *name != "sandbox").collect();
    if rows.is_empty() {
        return "\nTakes nothing.\n".to_owned();
    }
    rows.sort_by_key(|(name, _)| !required.contains(&json!(name)));
    text.push_str("\n| Parameter | Takes | Meaning |\n|---|---|---|\n");
    for (name, schema) in rows {
        let needed = if required.contains(&json!(name)) { ", required" } else { "" };
        let preset = schema.get("default").map(|value| format!(", {value} by default"));
        let words = schema["enum"].as_array().map(|words| {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.join(", ")
        });
        let kind = words.unwrap_or_else(|| schema["type"].as_str().unwrap().to_owned());
        let about = schema["description"].as_str().unwrap();
        let preset = preset.unwrap_or_default();
        writeln!(text, "| `{name}` | {kind}{needed}{preset} | {about} |").unwrap();
    }
    text
}

const HEAD: &str = "# Tools for models

Packs of tools over sessions. A pack has the names, parameters and results of a system that exists, so that a
prompt written for it goes on working; Cofferdam's own has everything that a session can do. Packs are never
mixed: two may have tools of one name that mean different things.

- Arguments are checked before anything is done. An unknown parameter is an error that names it and the known
  one that is most like it.
- Tools that only look say so (`readOnlyHint`), and change nothing. Those that read files make the sandbox where there
  is none yet, or replace one that was lost: where init commands or a manifest prepare it (`--init`, `--manifest`) they
  do not say that they only look, for a call may have these run. `sandbox_status` and others that tell of a sandbox make none.
- Errors are results that a model can read: what kind, what happened, what to do, whether to try again. What to do
  is a tool of the pack, or said to be the user's to do.
- A result has at most 64 KiB, its text and its structured content together. What is left out is counted, and
  the result says how to get it. Lists say how much follows. Where the structured content takes most of the room,
  the text has both ends of what is long and says that it is not all: at least 4 KiB of them.
- A command that is given up is killed, and what it wrote so far is answered. Over HTTP whoever hangs up gives it up.
- What a sandbox may do is the order of whoever offers the tools. Nothing that a model says widens it. Control
  files (git hooks, editor and agent settings) never land from a copy of the workspace by a tool, even where they are
  named. In a workspace that is used in place those of its root and of its repositories cannot be changed, and none can be made
  there; further down those of editors and agents are files like others. New repositories are told when the sandbox ends: on
  standard error, and as the event `new_control_files`.
- Sandboxes with all labels of that order and of its kind can be named, and no others; one that ends with somebody else's
  process is never named. To a server's caller by key all of its own are open, for they were made within what the
  server allows. To one without a key (the local user, whose sandboxes others make too) those are that are as
  the server's options say, over a directory that requests may name or none; rules that somebody changed since
  do not count.

What a sandbox is like is told by a preamble for the system prompt, made from what holds there.

This page is written by a test.
";
