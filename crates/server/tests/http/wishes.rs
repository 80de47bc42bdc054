//! What requests may ask for besides: receipts, manifests, grants of secrets, and what becomes of a run.

use crate::stage::{Stage, rights};
use cofferdam_core::{Caller, Profile, Spec, Workspace};
use cofferdam_server::Ground;
use cofferdam_session::KeyScope;
use serde_json::{Value, json};
use std::path::PathBuf;

#[tokio::test]
async fn a_receipt_is_told_once_a_command_has_ended_and_takes_the_right_to_read() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let start = async |key: &str, body: Value| {
        stage.ask(key, "POST /v1/sandboxes/a/execs", &body.to_string()).await
    };
    let receipt = async |exec: &str| {
        stage.ask("", &format!("GET /v1/sandboxes/a/execs/{exec}/receipt"), "").await
    };
    let wait = async |exec: &str| {
        stage.ask("", &format!("GET /v1/sandboxes/a/execs/{exec}/wait"), "").await;
    };
    for (id, wanted, why) in
        [("with", true, "the session is not copy-on-write"), ("without", false, "did not look")]
    {
        let body = json!({ "id": id, "argv": ["out=hello", "exit=3"], "receipt": wanted });
        assert_eq!(start("", body.clone()).await.status, 201);
        wait(id).await;
        // Asked for again, it is the same command.
        assert_eq!(start("", body).await.status, 200);
        let told = receipt(id).await.json();
        assert_eq!(told["said_by_guest"]["exit_code"], 3, "{told}");
        assert_eq!(told["seen_by_host"]["stdout"]["written"], 5, "{told}");
        let not_seen = told["seen_by_host"]["files"]["not_seen"].as_str().unwrap();
        assert!(not_seen.contains(why), "{not_seen}");
    }
    start("", json!({ "id": "hangs", "argv": ["hang"], "receipt": true })).await;
    assert_eq!(receipt("hangs").await.kind(), "conflict");
    assert_eq!(receipt("none").await.kind(), "not_found");
    let detached = json!({ "argv": ["x"], "receipt": true, "detached": true });
    assert_eq!(start("", detached).await.kind(), "usage");
    // One who may not read files is not told of them, and nothing is started.
    let runs = stage.key_with("runs", rights(&[KeyScope::Run, KeyScope::Manage])).await;
    stage.sandbox(&runs, "a").await;
    let refused = start(&runs, json!({ "argv": ["out=x"], "receipt": true })).await;
    assert_eq!((refused.status.as_u16(), refused.kind().as_str()), (403, "denied"));
    assert!(refused.text.contains("files-read"), "{}", refused.text);
    let line = "GET /v1/sandboxes/a/execs/x/receipt";
    assert_eq!(stage.ask(&runs, line, "").await.status, 403);
    assert_eq!(start(&runs, json!({ "argv": ["out=x"] })).await.status, 201, "control");
}

#[tokio::test]
async fn a_run_that_failed_is_kept_where_that_is_asked_for() {
    let stage = Stage::new().await;
    let run =
        async |key: &str, body: Value| stage.ask(key, "POST /v1/run", &body.to_string()).await;
    let wish = |on_failure: &str, exit: &str| json!({ "exec": { "argv": ["out=hello", exit] }, "on_failure": on_failure });
    for (on_failure, phase) in [("preserve", "paused"), ("stop", "stopped")] {
        let failed = run("", wish(on_failure, "exit=3")).await.json();
        assert_eq!((&failed["exit_code"], &failed["stdout"]), (&json!(3), &json!("hello")));
        let line = format!("GET /v1/sandboxes/{}", failed["session"].as_str().unwrap());
        assert_eq!(stage.ask("", &line, "").await.json()["phase"], phase);
        let good = run("", wish(on_failure, "exit=0")).await.json();
        assert_eq!((&good["exit_code"], good.get("session")), (&json!(0), None));
    }
    let gone = run("", wish("destroy", "exit=3")).await.json();
    assert_eq!((&gone["exit_code"], gone.get("session")), (&json!(3), None));
    let kept = stage.ask("", "GET /v1/sandboxes", "").await.json();
    assert_eq!(kept["sessions"].as_array().unwrap().len(), 2);
    let preflight = json!({
        "exec": { "argv": ["x"] }, "preflight": ["exit=1"], "on_failure": "stop",
    });
    let preflight = run("", preflight).await.json();
    assert_eq!(preflight["ending"]["kind"], "setup_failed");
    assert!(preflight["session"].is_string(), "{preflight}");
    for bad in [
        json!({ "exec": { "argv": ["x"] }, "on_failure": "never" }),
        json!({ "exec": { "argv": ["x"], "start": {} } }),
        json!({ "exec": { "argv": ["x"], "start": { "entrypoint": "x" } } }),
        json!({ "exec": { "shell": "x", "start": {} } }),
        json!({ "exec": { "argv": ["x"], "receipt": true } }),
    ] {
        assert_eq!(run("", bad.clone()).await.kind(), "usage", "{bad}");
    }
    // What is kept is made: that takes the right to make sandboxes.
    let runs = stage.key_with("runs", rights(&[KeyScope::Run])).await;
    assert_eq!(run(&runs, wish("stop", "exit=3")).await.status, 403);
    assert_eq!(run(&runs, wish("destroy", "exit=3")).await.status, 200, "control");
}

#[tokio::test]
async fn a_manifest_of_a_request_names_nothing_of_the_host() {
    let stage = Stage::new().await;
    let make = async |entry: Value| {
        let manifest = json!({ "version": 1, "entries": [entry] });
        let body = json!({ "workspace": "/srv/allowed", "manifest": manifest }).to_string();
        stage.ask("", "POST /v1/sandboxes", &body).await
    };
    for entry in [
        json!({ "type": "file", "path": "a", "from": "/etc/passwd" }),
        json!({ "type": "copy", "path": "a", "from": "/etc" }),
        json!({ "type": "archive", "path": "a", "from": "/x.tar" }),
        json!({ "type": "mount", "path": "a", "from": "/etc" }),
        json!({ "type": "git", "path": "a", "url": "https://a.example/x" }),
        json!({ "type": "git", "path": "a", "url": "/srv/repository" }),
    ] {
        let refused = make(entry.clone()).await;
        assert_eq!((refused.status.as_u16(), refused.kind().as_str()), (422, "unsupported"));
        assert!(refused.text.contains("\\\"a\\\""), "{entry}: {}", refused.text);
    }
    for bad in [
        json!({ "type": "file", "path": "../a", "text": "" }),
        json!({ "type": "link", "path": "a", "target": "/etc" }),
        json!({ "type": "nothing", "path": "a" }),
    ] {
        assert!(make(bad.clone()).await.status.is_client_error(), "{bad}");
    }
    let nowhere = json!({ "manifest": { "version": 1, "entries": [] } }).to_string();
    let refused = stage.ask("", "POST /v1/sandboxes", &nowhere).await;
    assert!(refused.kind() == "usage" && refused.text.contains("workspace"), "{}", refused.text);
}

#[tokio::test]
async fn a_sandbox_may_begin_with_less_than_the_operator_allows_and_with_no_more() {
    let stage = Stage::with(|options| {
        let template = Spec {
            profile: Profile::RepoWrite,
            egress: vec!["*.example.test:443".parse().unwrap(), "b.test".parse().unwrap()],
            deny: vec!["c.example.test".parse().unwrap()],
            ..Spec::new(Workspace::Private, Caller::default())
        };
        options.ground = Ground::new(template, Vec::new()).unwrap();
    })
    .await;
    let made = async |name: &str, wish: Value| {
        let line = format!("PUT /v1/sandboxes/{name}");
        stage.ask("", &line, &wish.to_string()).await
    };
    let rules = async |name: &str| {
        stage.ask("", &format!("GET /v1/sandboxes/{name}/network"), "").await.json()
    };
    let less = json!({ "egress": ["a.example.test:443"], "deny_egress": ["b.test:1"] });
    assert_eq!(made("less", less).await.status, 201);
    let told = rules("less").await;
    assert_eq!(told["allow"], json!(["a.example.test:443"]));
    assert_eq!(told["deny"], json!(["c.example.test", "b.test:1"]), "the operator's stays");
    assert_eq!(made("none", json!({ "egress": [] })).await.status, 201);
    assert_eq!(rules("none").await["way_out"], false);
    // The controls: what is not said is the operator's.
    assert_eq!(made("all", json!({})).await.status, 201);
    assert_eq!(rules("all").await["allow"], json!(["*.example.test:443", "b.test"]));
    for (wish, kind, word) in [
        (json!({ "egress": ["a.example.test"] }), "denied", "a.example.test"),
        (json!({ "egress": ["evil.test:443"] }), "denied", "evil.test:443"),
        (json!({ "egress": ["*.com"] }), "usage", "*.com"),
        (json!({ "deny_egress": ["a b"] }), "usage", "a b"),
        (json!({ "egress": [], "profile": "full-dev" }), "usage", "full-dev"),
        (json!({ "egress": ["b.test"], "profile": "no-network" }), "usage", "b.test"),
    ] {
        let refused = made("refused", wish.clone()).await;
        assert_eq!(refused.kind(), kind, "{wish}: {}", refused.text);
        assert!(refused.text.contains(word), "{wish}: {}", refused.text);
    }
    assert_eq!(stage.ask("", "GET /v1/sandboxes/refused", "").await.status, 404);
}

#[tokio::test]
async fn a_grant_takes_the_scope_the_secret_of_its_owner_and_a_host_of_the_operator() {
    let stage = Stage::with(|options| {
        let template = Spec {
            profile: Profile::RepoWrite,
            egress: vec!["*.example.test:443".parse().unwrap()],
            ..Spec::new(Workspace::Private, Caller::default())
        };
        options.ground = Ground::new(template, vec![PathBuf::from("/srv/allowed")]).unwrap();
    })
    .await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    assert_eq!(stage.ask(&alice, "PUT /v1/secrets/T", "value").await.status, 200);
    let grant = |grant: &str| json!({ "secrets": [grant] }).to_string();
    let api = grant("T@api.example.test");
    let made = stage.ask(&alice, "PUT /v1/sandboxes/s", &api).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.json()["secrets"], json!(["T@api.example.test:header=authorization"]));
    assert!(!made.text.contains("value"), "{}", made.text);
    assert_eq!(stage.ask(&alice, "PUT /v1/sandboxes/s", &api).await.status, 200);
    for other in [grant("T@www.example.test"), "{}".to_owned()] {
        let differs = stage.ask(&alice, "PUT /v1/sandboxes/s", &other).await;
        assert_eq!(differs.kind(), "conflict", "{other}");
    }
    // Another's does not exist.
    for line in ["POST /v1/sandboxes", "PUT /v1/sandboxes/s"] {
        let missing = stage.ask(&bob, line, &api).await;
        assert_eq!((missing.status.as_u16(), missing.kind().as_str()), (404, "not_found"));
        assert!(missing.text.contains("there is no secret T"), "{}", missing.text);
    }
    let run =
        |grant: &str| json!({ "sandbox": { "secrets": [grant] }, "exec": { "argv": ["out=x"] } });
    let body = run("T@api.example.test").to_string();
    assert_eq!(stage.ask(&bob, "POST /v1/run", &body).await.status, 404);
    assert_eq!(stage.ask(&alice, "POST /v1/run", &body).await.status, 200, "control");
    // The operator says how far.
    let beyond = stage.ask(&alice, "POST /v1/sandboxes", &grant("T@other.test")).await;
    assert_eq!((beyond.status.as_u16(), beyond.kind().as_str()), (403, "denied"));
    assert!(beyond.text.contains("other.test"), "{}", beyond.text);
    for bad in ["T", "T@", "T@*.example.test", "T@127.0.0.1", "a b@api.example.test"] {
        let refused = stage.ask(&alice, "POST /v1/sandboxes", &grant(bad)).await;
        assert_eq!((refused.status.as_u16(), refused.kind().as_str()), (400, "usage"), "{bad}");
    }
    let manages = stage.key_with("alice2", rights(&[KeyScope::Manage, KeyScope::Run])).await;
    for line in ["POST /v1/sandboxes", "PUT /v1/sandboxes/s", "POST /v1/run"] {
        let body = if line.ends_with("run") { &body } else { &api };
        let refused = stage.ask(&manages, line, body).await;
        assert_eq!(refused.status, 403, "{line}");
        assert!(refused.text.contains("no scope secrets"), "{}", refused.text);
    }
    assert_eq!(stage.ask(&manages, "POST /v1/sandboxes", "{}").await.status, 201, "control");
}
