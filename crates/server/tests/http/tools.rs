//! Tools of packs, called over HTTP and by the Model Context Protocol.

use crate::stage::{Stage, request, rights};
use axum::body::Body;
use cofferdam_session::KeyScope;
use serde_json::{Value, json};

const PACKS: [&str; 5] = ["cofferdam", "everruns", "adk", "fluers", "openmanus"];

#[tokio::test]
async fn every_pack_is_listed_and_an_unknown_one_is_named() {
    let stage = Stage::new().await;
    for pack in PACKS {
        let listed = stage.ask("", &format!("GET /v1/tools/{pack}"), "").await;
        assert_eq!(listed.status, 200, "{pack}: {}", listed.text);
        let listed = listed.json();
        let tools = listed["tools"].as_array().unwrap();
        assert!(!tools.is_empty() && !listed["preamble"].as_str().unwrap().is_empty());
        assert!(tools.iter().all(|tool| tool["input"]["additionalProperties"] == false), "{pack}");
    }
    assert_eq!(stage.ask("", "GET /v1/tools/none", "").await.kind(), "not_found");
    assert_eq!(stage.ask("", "POST /v1/tools/cofferdam/none", "{}").await.kind(), "not_found");
}

#[tokio::test]
async fn a_tool_works_on_the_sandboxes_of_its_caller_alone() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let id = stage.sandbox(&alice, "hers").await;
    let call = async |key: &str, tool: &str, body: Value| {
        let line = format!("POST /v1/tools/cofferdam/{tool}");
        let answer = stage.ask(key, &line, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    };
    for name in ["hers", &id] {
        let own = call(&alice, "sandbox_status", json!({ "sandbox": name })).await;
        assert_eq!(own["is_error"], false, "{own}");
        let other = call(&bob, "sandbox_status", json!({ "sandbox": name })).await;
        assert!(!other.to_string().contains("running"), "{other}");
        // As the rules by their own routes: shown to the owner, and not there for others.
        let own = call(&alice, "network_show", json!({ "sandbox": name })).await;
        assert_eq!(
            (&own["is_error"], &own["structured"]["way_out"]),
            (&json!(false), &json!(false))
        );
        let other = call(&bob, "network_show", json!({ "sandbox": name })).await;
        assert_eq!(other["structured"]["error"]["kind"], "not_found", "{other}");
        call(&bob, "sandbox_delete", json!({ "sandbox": name })).await;
    }
    let wrong = call(&alice, "sandbox_status", json!({ "sandbox": "hers", "nmae": 1 })).await;
    assert_eq!(wrong["is_error"], true);
    assert_eq!(stage.ask(&alice, "GET /v1/sandboxes/hers", "").await.status, 200);
}

#[tokio::test]
async fn without_a_key_a_tool_reaches_sandboxes_of_the_servers_kind_alone() {
    let stage = Stage::new().await;
    stage.sandbox("", "same").await;
    let body = r#"{"profile": "read-only"}"#;
    let other = stage.ask("", "PUT /v1/sandboxes/other", body).await;
    assert_eq!(other.status, 201, "{}", other.text);
    for (name, is_error) in [("same", false), ("other", true)] {
        let body = json!({ "sandbox": name }).to_string();
        let told = stage.ask("", "POST /v1/tools/cofferdam/sandbox_status", &body).await.json();
        assert_eq!(told["is_error"], is_error, "{told}");
        let told = mcp(&stage, "", "sandbox_status", json!({ "sandbox": name })).await;
        assert_eq!(told.text.contains("another kind"), is_error, "{}", told.text);
    }
}

/// A call by the protocol of 2025, which keeps nothing between two requests here.
async fn mcp(stage: &Stage, key: &str, tool: &str, arguments: Value) -> crate::stage::Answer {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    });
    let request = request(key, "POST /mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    stage.send(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn the_protocol_is_served_to_each_caller_for_itself() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let half = stage.key_with("half", rights(&[KeyScope::Run])).await;
    stage.sandbox(&alice, "hers").await;
    let of_hers = json!({ "sandbox": "hers" });
    let own = mcp(&stage, &alice, "sandbox_status", of_hers.clone()).await;
    assert_eq!(own.status, 200, "{}", own.text);
    assert!(own.text.contains("running"), "{}", own.text);
    let other = mcp(&stage, &bob, "sandbox_status", of_hers.clone()).await;
    assert!(!other.text.contains("running"), "{}", other.text);
    assert_eq!(mcp(&stage, "", "sandbox_status", of_hers.clone()).await.status, 401);
    for refused in ["POST /mcp", "POST /v1/tools/cofferdam/sandbox_status"] {
        assert_eq!(stage.ask(&half, refused, "{}").await.status, 403, "{refused}");
    }
}

#[tokio::test]
async fn what_is_no_message_is_answered_by_the_protocol() {
    let stage = Stage::new().await;
    let key = stage.key("alice").await;
    let send = async |body: Vec<u8>| {
        let request = request(&key, "POST /mcp")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        let answer = stage.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.headers["content-type"], "application/json", "{}", answer.text);
        (answer.status.as_u16(), answer.json())
    };
    for (body, status, code, id) in [
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, \"meth".into(), 400, -32700, json!(1)),
        (Vec::new(), 400, -32700, Value::Null),
        (b"\xff".to_vec(), 400, -32700, Value::Null),
        ("{\"id\": 7, \"method\": \"ping\"}".into(), 400, -32600, json!(7)),
        (vec![b' '; (4 << 20) + 1], 413, -32600, Value::Null),
    ] {
        let (is, answer) = send(body).await;
        let told = (is, &answer["error"]["code"], &answer["id"]);
        assert_eq!(told, (status, &json!(code), &id), "{answer}");
    }
    // The control: a message is answered as one.
    let (status, answer) = send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".into()).await;
    assert_eq!((status, &answer["id"]), (200, &json!(1)), "{answer}");
}

#[tokio::test]
async fn a_request_that_is_none_for_the_protocol_is_answered_as_everywhere() {
    let stage = Stage::new().await;
    let key = stage.key("alice").await;
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let both = "application/json, text/event-stream";
    let send = async |method: &str, kind: &str, accept: &str, version: &str| {
        let request = axum::http::Request::builder().method(method).uri("/mcp");
        let request = request.header("host", "127.0.0.1").header("content-type", kind);
        let request = request.header("authorization", format!("Bearer {key}"));
        let request = request.header("accept", accept).header("mcp-protocol-version", version);
        stage.send(request.body(Body::from(body)).unwrap()).await
    };
    let (json, known) = ("application/json", "2025-11-25");
    for (method, kind, accept, version, status, takes) in [
        ("GET", json, both, known, 405, Some(("allow", "POST"))),
        ("DELETE", json, both, known, 405, Some(("allow", "POST"))),
        ("PATCH", json, both, known, 405, Some(("allow", "POST"))),
        ("POST", json, "text/html", known, 406, None),
        ("POST", "text/plain", both, known, 415, Some(("accept", json))),
        ("POST", json, both, "1", 400, None),
    ] {
        let told = send(method, kind, accept, version).await;
        assert_eq!(told.status, status, "{method}: {}", told.text);
        assert_eq!(told.kind(), "usage", "{method}: {}", told.text);
        assert!(told.json()["hint"].is_string(), "{}", told.text);
        if let Some((name, value)) = takes {
            assert_eq!(told.headers[name], value, "{method}");
        }
    }
    // The control: a message is answered.
    assert_eq!(send("POST", json, both, known).await.status, 200);
}
