//! What requests do.

use crate::stage::{Stage, request};
use axum::body::Body;
use serde_json::json;

#[tokio::test]
async fn a_list_is_read_in_pages_that_nothing_moves() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        let body = json!({ "labels": { "kind": if name == "c" { "odd" } else { "even" } } });
        let line = format!("PUT /v1/sandboxes/{name}");
        assert_eq!(stage.ask("", &line, &body.to_string()).await.status, 201);
    }
    let mut names = Vec::new();
    let mut line = "GET /v1/sandboxes?limit=2".to_owned();
    loop {
        let page = stage.ask("", &line, "").await.json();
        for session in page["sessions"].as_array().unwrap() {
            names.push(session["name"].as_str().unwrap().to_owned());
        }
        // What was on a page before may go meanwhile.
        let gone = format!("DELETE /v1/sandboxes/{}", names[0]);
        stage.ask("", &gone, "").await;
        match page["next_cursor"].as_str() {
            Some(cursor) => line = format!("GET /v1/sandboxes?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    let odd = stage.ask("", "GET /v1/sandboxes?label=kind%3Dodd", "").await.json();
    assert_eq!(odd["sessions"][0]["name"], "c");
    assert_eq!(odd["sessions"].as_array().unwrap().len(), 1);
    for bad in ["limit=0", "limit=201", "limit=x", "cursor=x", "label=x", "lable=a%3Db"] {
        let answer = stage.ask("", &format!("GET /v1/sandboxes?{bad}"), "").await;
        assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (400, "usage"), "{bad}");
    }
}

#[tokio::test]
async fn a_sandbox_is_paused_resumed_stopped_and_extended() {
    let stage = Stage::new().await;
    let made = stage.ask("", "PUT /v1/sandboxes/a", r#"{"ttl_ms":60000}"#).await.json();
    for (deed, phase) in [("pause", "paused"), ("resume", "running"), ("stop", "stopped")] {
        for _ in 0..2 {
            let answer = stage.ask("", &format!("POST /v1/sandboxes/a/{deed}"), "").await;
            assert_eq!(answer.json()["phase"], phase, "{deed}");
        }
    }
    let longer = stage.ask("", "POST /v1/sandboxes/a/extend", r#"{"by_ms":1000}"#).await.json();
    let until = |report: &serde_json::Value| report["lease_until_ms"].as_u64().unwrap();
    assert_eq!(until(&longer), until(&made) + 1000);
    stage.sandbox("", "for-ever").await;
    let answer = stage.ask("", "POST /v1/sandboxes/for-ever/extend", r#"{"by_ms":1}"#).await;
    assert_eq!(answer.kind(), "conflict");
}

#[tokio::test]
async fn a_command_is_started_once_for_a_key() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let start = async |words: &[&str], key: &str| {
        let request = request("", "POST /v1/sandboxes/a/execs").header("idempotency-key", key);
        let body = json!({ "argv": words }).to_string();
        stage.send(request.body(Body::from(body)).unwrap()).await
    };
    let first = start(&["out=x"], "one").await;
    let again = start(&["out=x"], "one").await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 200));
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(start(&["out=y"], "one").await.kind(), "conflict");
    assert_ne!(start(&["out=x"], "two").await.json()["id"], first.json()["id"]);
    assert_eq!(start(&["out=x"], &"k".repeat(256)).await.kind(), "usage");
    let all = stage.ask("", "GET /v1/sandboxes/a/execs", "").await.json();
    assert_eq!(all["execs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_command_is_waited_for_and_read_in_parts() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let exec = stage.exec("", "a", &["out=hello"]).await;
    let at = |rest: &str| format!("GET /v1/sandboxes/a/execs/{exec}{rest}");
    let ended = stage.ask("", &at("/wait?timeout_ms=5000"), "").await.json();
    assert_eq!((&ended["ending"], &ended["exit_code"]), (&json!("exited"), &json!(0)));
    let part = stage.ask("", &at("/output?stream=stdout&offset=1&limit=3"), "").await.json();
    assert_eq!((&part["text"], &part["next_offset"]), (&json!("ell"), &json!(4)));
    for bad in ["stream=x", "stream=stdout&limit=0", "stream=stdout&limit=262145", "offset=1"] {
        assert_eq!(
            stage.ask("", &at(&format!("/output?{bad}")), "").await.kind(),
            "usage",
            "{bad}"
        );
    }
    let late = stage.ask("", &format!("POST /v1/sandboxes/a/execs/{exec}/stdin"), "x").await;
    assert_eq!(late.kind(), "conflict");
    for missing in ["none", "-bad", "x%00y"] {
        let answer = stage.ask("", &format!("GET /v1/sandboxes/a/execs/{missing}"), "").await;
        assert_eq!(answer.kind(), "not_found", "{missing}");
    }
    let hanging = stage.exec("", "a", &["hang"]).await;
    let line = format!("GET /v1/sandboxes/a/execs/{hanging}/wait?timeout_ms=1");
    assert_eq!(stage.ask("", &line, "").await.json()["ended_ms"], json!(null));
}

#[tokio::test]
async fn a_terminal_without_room_is_refused() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let with = |rows: u16, columns: u16| json!({ "rows": rows, "columns": columns });
    let start = async |terminal| {
        let body = json!({ "argv": ["hang"], "terminal": terminal }).to_string();
        stage.ask("", "POST /v1/sandboxes/a/execs", &body).await
    };
    let started = start(with(24, 80)).await.json();
    let resize = format!("POST /v1/sandboxes/a/execs/{}/resize", started["id"].as_str().unwrap());
    assert_eq!(stage.ask("", &resize, &with(1, 1).to_string()).await.status, 204);
    for (rows, columns) in [(0, 0), (0, 80), (24, 0)] {
        let none = with(rows, columns);
        for told in [start(none.clone()).await, stage.ask("", &resize, &none.to_string()).await] {
            assert_eq!((told.status.as_u16(), told.kind().as_str()), (400, "usage"), "{none}");
            assert!(told.json()["hint"].as_str().unwrap().contains("one row"), "{}", told.text);
        }
    }
    let all = stage.ask("", "GET /v1/sandboxes/a/execs", "").await.json();
    assert_eq!(all["execs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_signal_is_sent_by_its_number_or_its_name() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let sent = async |signal: serde_json::Value| {
        let hanging = stage.exec("", "a", &["hang"]).await;
        let line = format!("POST /v1/sandboxes/a/execs/{hanging}/signal");
        let answer = stage.ask("", &line, &json!({ "signal": signal }).to_string()).await;
        let line = format!("GET /v1/sandboxes/a/execs/{hanging}");
        (answer, stage.ask("", &line, "").await.json()["ended_ms"].is_number())
    };
    for good in [json!(9), json!("KILL"), json!("SIGKILL"), json!("kill")] {
        let (answer, ended) = sent(good.clone()).await;
        assert!(answer.status == 204 && ended, "{good}: {}", answer.text);
    }
    for bad in [json!(0), json!(65), json!("TREM"), json!(""), json!("SIG"), json!(-1)] {
        let (answer, ended) = sent(bad.clone()).await;
        assert!(answer.status == 400 && !ended, "{bad}: {}", answer.text);
        assert!(answer.kind() == "usage" && answer.text.contains("KILL"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_run_says_what_came_of_it_and_leaves_nothing() {
    let stage = Stage::new().await;
    let run =
        async |body: serde_json::Value| stage.ask("", "POST /v1/run", &body.to_string()).await;
    let done =
        run(json!({ "exec": { "argv": ["out=hello", "exit=3"] }, "capture_bytes": 4 })).await;
    let done = done.json();
    assert_eq!((&done["exit_code"], &done["stdout"]), (&json!(3), &json!("hell")));
    assert_eq!(done["omitted"]["stdout"], 1);
    let failed =
        run(json!({ "exec": { "argv": ["out=x"] }, "preflight": ["exit=1"] })).await.json();
    assert_eq!(failed["ending"]["kind"], "setup_failed");
    let listed = stage.ask("", "GET /v1/sandboxes", "").await.json();
    assert_eq!(listed["sessions"], json!([]));
    for bad in [
        json!({ "exec": {} }),
        json!({ "exec": { "argv": ["x"], "stdin": true } }),
        json!({ "exec": { "argv": ["x"], "detached": true } }),
        json!({ "sandbox": { "name": "x" }, "exec": { "argv": ["x"] } }),
    ] {
        assert_eq!(run(bad.clone()).await.kind(), "usage", "{bad}");
    }
    for large in [
        json!({ "exec": { "argv": ["x"] }, "capture_bytes": (16 << 20) + 1 }),
        json!({ "exec": { "argv": ["x"], "timeout_ms": 3_600_001 } }),
        json!({ "exec": { "argv": ["x"] }, "preflight": vec!["x"; 65] }),
    ] {
        assert_eq!(run(large.clone()).await.kind(), "too_large", "{large}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_name() {
    let stage = Stage::new().await;
    for (body, word) in [
        (r#"{"nmae":"x"}"#, "nmae"),
        (r#"{"limits":{"memory":1}}"#, "memory"),
        (r#"{"profile":"root"}"#, "root"),
        (r#"{"name":"a b"}"#, "a b"),
        (r#"{"copy_on_write":true}"#, "workspace"),
        (r#"{"env":{"A=B":"x"}}"#, "A=B"),
        (r#"{"stay_awake":true,"idle_pause_ms":1}"#, "stay_awake"),
        (r#"{"ttl_ms":0}"#, "lease"),
        (r#"{"ttl_ms":1}"#, "1000 ms"),
        ("{", "EOF"),
        ("[]", "object"),
        ("", "EOF"),
    ] {
        let answer = stage.ask("", "POST /v1/sandboxes", body).await;
        assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (400, "usage"), "{body}");
        assert!(answer.text.contains(word), "{body}: {}", answer.text);
    }
    let way_out = stage.ask("", "POST /v1/sandboxes", r#"{"profile":"full-dev"}"#).await;
    assert_eq!((way_out.status.as_u16(), way_out.kind().as_str()), (403, "denied"));
    let nowhere = stage.ask("", "GET /v1/nothing", "").await;
    assert_eq!((nowhere.status.as_u16(), nowhere.kind().as_str()), (404, "not_found"));
    let method = stage.ask("", "PATCH /v1/sandboxes", "{}").await;
    assert_eq!((method.status.as_u16(), method.kind().as_str()), (405, "usage"));
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(stage.ask("", &format!("GET {path}"), "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_command_that_never_ran_says_why_wherever_it_is_told() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let start = json!({ "argv": ["nobody-has-this"] }).to_string();
    let started = stage.ask("", "POST /v1/sandboxes/a/execs", &start).await.json();
    let at = format!("/v1/sandboxes/a/execs/{}", started["id"].as_str().unwrap());
    let why = "nobody-has-this: no such program";
    let waited = stage.ask("", &format!("GET {at}/wait?timeout_ms=5000"), "").await.json();
    assert_eq!((&waited["ending"], &waited["detail"]), (&json!("not_started"), &json!(why)));
    assert_eq!(stage.ask("", &format!("GET {at}"), "").await.json()["detail"], why);
    let all = stage.ask("", "GET /v1/sandboxes/a/execs", "").await.json();
    assert_eq!(all["execs"][0]["detail"], why, "{all}");
    let news = stage.ask("", &format!("GET {at}/news"), "").await.json();
    assert_eq!((&news["detail"], &news["exec"]["detail"]), (&json!(why), &json!(why)));
    // The control: of one that ran there is nothing to say.
    let started = stage.ask("", "POST /v1/sandboxes/a/execs", r#"{"argv":["out=x"]}"#).await.json();
    let at = format!("/v1/sandboxes/a/execs/{}", started["id"].as_str().unwrap());
    let waited = stage.ask("", &format!("GET {at}/wait?timeout_ms=5000"), "").await.json();
    assert!(waited["ended_ms"].is_u64() && waited.get("detail").is_none(), "{waited}");
}

#[tokio::test]
async fn a_refusal_says_what_is_wrong_and_what_to_ask_instead() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let cases = [
        ("POST /v1/sandboxes/a/fork", r#"{"name":"b"}"#, "not copy-on-write", "`copy_on_write`"),
        ("GET /v1/sandboxes/a/shells/none", "", "no shell", "PUT …/shells/{shell}"),
        ("GET /v1/sandboxes/a/files?path=none", "", "read \"none\"", "List the directory"),
        ("PUT /v1/sandboxes/b", r#"{"x":1}"#, "does not fit: x: unknown field", "/openapi.json"),
        ("GET /v1/sandboxes?x=1", "", "does not fit: x: unknown field", "/openapi.json"),
    ];
    for (line, body, message, hint) in cases {
        let problem = stage.ask("", line, body).await.json();
        let said = |field: &str| problem[field].as_str().unwrap_or_default().to_owned();
        assert!(said("message").contains(message), "{line}: {problem}");
        assert!(said("hint").contains(hint), "{line}: {problem}");
    }
}
