//! One caller against the other, at every route of the document: one that is added is attacked by itself.

use crate::document::operations;
use crate::stage::{Answer, Stage};
use cofferdam_server::document;
use serde_json::{Map, Value, json};

/// A name that no sandbox has, as long as the id of one.
const NOBODYS: &str = "ffffffffffffffffffff";
/// Whether it is said that there is no such sandbox.
fn is_absent(told: &Answer) -> bool {
    ["there is no sandbox", "there is no session"].iter().any(|said| told.text.contains(said))
}

/// What an operation is asked with, so that it would work in a sandbox of the caller's own. A body whose
/// fields are all optional, but not all absent, has its line here; others are made from their schema.
fn body(operation: &Value) -> String {
    let content = &operation["requestBody"]["content"]["application/json"];
    let Some(reference) = content["schema"]["$ref"].as_str() else { return String::new() };
    let name = reference.rsplit('/').next().unwrap();
    let body = match name {
        "ExecWish" => json!({ "argv": ["out=x"] }),
        "RunWish" => json!({ "exec": { "argv": ["out=x"] } }),
        "EditsWish" => json!({ "path": "x", "edits": [{ "old": "a", "new": "b" }] }),
        "GlobWish" => json!({ "patterns": ["*"] }),
        "GrepWish" => json!({ "patterns": ["a"] }),
        "ReadManyWish" | "DiscardWish" => json!({ "paths": ["x"] }),
        "MkdirWish" => json!({ "path": "x" }),
        "ChmodWish" => json!({ "path": "x", "mode": "644" }),
        "CopyWish" | "MoveWish" => json!({ "from": "x", "to": "y" }),
        "AnswerWish" => json!({ "answer": "once" }),
        "SignalWish" => json!({ "signal": 9 }),
        other => required(&document()["components"]["schemas"][other]),
    };
    body.to_string()
}

/// The fields that have to be there.
fn required(schema: &Value) -> Value {
    let names = schema["required"].as_array().into_iter().flatten();
    let field = |name: &Value| {
        let name = name.as_str().unwrap();
        let value = match schema["properties"][name]["type"].as_str() {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            _ => json!("x"),
        };
        (name.to_owned(), value)
    };
    Value::Object(names.map(field).collect::<Map<_, _>>())
}

/// The parameters that an operation needs to be understood.
fn query(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let in_query = parameters.filter(|parameter| parameter["in"] == "query");
    let needed = in_query.filter_map(|parameter| match parameter["name"].as_str().unwrap() {
        "path" => Some("path=x".to_owned()),
        name if parameter["required"] == true => {
            let first = parameter["schema"]["enum"][0].as_str().unwrap_or("1");
            Some(format!("{name}={first}"))
        }
        _ => None,
    });
    let needed: Vec<String> = needed.collect();
    if needed.is_empty() { String::new() } else { format!("?{}", needed.join("&")) }
}

/// The path with something in all places that are left.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

async fn ask(stage: &Stage, key: &str, line: &str, operation: &Value) -> Answer {
    stage.ask(key, &format!("{line}{}", query(operation)), &body(operation)).await
}

#[tokio::test]
async fn no_operation_tells_the_sandbox_of_another_from_none() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let id = stage.sandbox(&alice, "hers").await;
    let exec = stage.exec(&alice, "hers", &["out=x"]).await;
    let mut attacks = 0;
    for (method, path, operation) in operations() {
        if !path.contains("{sandbox}") || method == "PUT" && path == "/v1/sandboxes/{sandbox}" {
            // To ensure a name of another makes one's own: see `a_name_is_unique_for_its_owner_alone`.
            continue;
        }
        let line = |sandbox: &str| {
            let path = path.replace("{sandbox}", sandbox).replace("{exec}", &exec);
            format!("{method} {}", filled(&path))
        };
        let of_none = ask(&stage, &bob, &line(NOBODYS), operation).await;
        for hers in [&id, "hers", &id[..12]] {
            let told = ask(&stage, &bob, &line(hers), operation).await;
            assert_eq!((told.status.as_u16(), told.kind().as_str()), (404, "not_found"), "{path}");
            assert!(is_absent(&told), "{method} {path}: {}", told.text);
            assert_eq!(told.status, of_none.status, "{method} {path}: {}", told.text);
            assert_eq!(told.text.replace(hers, NOBODYS), of_none.text, "{method} {path}");
            attacks += 1;
        }
    }
    assert!(attacks > 150, "{attacks}");
    // All of that did nothing to it, and its owner finds it.
    for path in ["", "/execs", &format!("/execs/{exec}")] {
        for name in ["hers", &id] {
            let own = stage.ask(&alice, &format!("GET /v1/sandboxes/{name}{path}"), "").await;
            assert_eq!(own.status, 200, "{path}: {}", own.text);
        }
    }
}

#[tokio::test]
async fn every_operation_reaches_a_sandbox_of_its_callers_own() {
    // The control: what was answered above is not what is answered to everybody.
    let stage = Stage::new().await;
    let alice = stage.key("alice").await;
    for (method, path, operation) in operations() {
        if !path.contains("{sandbox}") || path.ends_with("/stream") || path.ends_with("/watch") {
            // Those two tell without an end.
            continue;
        }
        stage.sandbox_again(&alice, "own").await;
        let exec = stage.exec(&alice, "own", &["out=x"]).await;
        let path = filled(&path.replace("{sandbox}", "own").replace("{exec}", &exec));
        let own = ask(&stage, &alice, &format!("{method} {path}"), operation).await;
        assert!(!is_absent(&own), "{method} {path}: {}", own.text);
        // No bytes are no archive, and no snapshot.
        let takes_bytes = operation["requestBody"]["content"]["application/json"].is_null();
        assert!(own.status != 400 || takes_bytes, "{method} {path}: {}", own.text);
    }
}

#[tokio::test]
async fn no_id_of_another_is_any_in_ones_own_sandbox() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    stage.sandbox(&alice, "hers").await;
    stage.sandbox(&bob, "his").await;
    let exec = stage.exec(&alice, "hers", &["out=x"]).await;
    let mut attacks = 0;
    for (method, path, operation) in
        operations().iter().filter(|(_, path, _)| path.contains("{exec}"))
    {
        let path = path.replace("{sandbox}", "his").replace("{exec}", &exec);
        let told = ask(&stage, &bob, &format!("{method} {path}"), operation).await;
        assert_eq!(told.status, 404, "{method} {path}: {}", told.text);
        attacks += 1;
    }
    assert!(attacks > 5, "{attacks}");
    // Where a sandbox is named in the query it is none either.
    let asks = |(_, _, operation): &&(String, String, &Value)| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let mut names = parameters.map(|parameter| (&parameter["in"], &parameter["name"]));
        names.any(|named| named == (&json!("query"), &json!("sandbox")))
    };
    let mut named = 0;
    for (method, path, _) in operations().iter().filter(asks) {
        let line = format!("{method} {path}?sandbox=hers");
        assert_eq!(stage.ask(&bob, &line, "").await.status, 404, "{line}");
        named += 1;
    }
    assert!(named >= 2, "{named}");
}

#[tokio::test]
async fn a_parameter_that_no_route_knows_is_refused_by_its_name() {
    let stage = Stage::new().await;
    for (method, path, operation) in operations() {
        stage.sandbox_again("", "own").await;
        let exec = stage.exec("", "own", &["out=x"]).await;
        let path = path.replace("{sandbox}", "own").replace("{exec}", &exec);
        let path = filled(&path.replace("{pack}", "cofferdam"));
        let more = match query(operation).as_str() {
            "" => "?lable=1".to_owned(),
            known => format!("{known}&lable=1"),
        };
        let told = stage.ask("", &format!("{method} {path}{more}"), &body(operation)).await;
        assert_eq!(told.status, 400, "{method} {path}: {}", told.text);
        assert!(told.text.contains("lable"), "{method} {path}: {}", told.text);
    }
    // Nothing but the name of a route that there is leads here.
    assert_eq!(stage.ask("", "GET /v1/nothing?lable=1", "").await.status, 404);
    for empty in ["GET /v1/sandboxes/own?", "GET /v1/sandboxes/own/execs?"] {
        assert_eq!(stage.ask("", empty, "").await.status, 200, "{empty}");
    }
}
