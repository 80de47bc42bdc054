//! Two callers with keys: what belongs to one does not exist for the other.

use crate::stage::{Stage, rights};
use cofferdam_session::{KeyRights, KeyScope, Quota};
use serde_json::json;

#[tokio::test]
async fn a_name_is_unique_for_its_owner_alone() {
    let stage = Stage::new().await;
    let local = stage.sandbox("", "build").await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let (hers, his) = (stage.sandbox(&alice, "build").await, stage.sandbox(&bob, "build").await);
    assert!(local != hers && hers != his);
    for (key, own) in [(&alice, &hers), (&bob, &his)] {
        let found = stage.ask(key, "GET /v1/sandboxes/build", "").await.json();
        assert_eq!(found["id"], json!(own));
        let again = stage.ask(key, "PUT /v1/sandboxes/build", "{}").await;
        assert_eq!((again.status.as_u16(), &again.json()["id"]), (200, &json!(own)));
        let taken = stage.ask(key, "POST /v1/sandboxes", r#"{"name":"build"}"#).await;
        assert_eq!((taken.status.as_u16(), taken.kind().as_str()), (409, "conflict"));
        let listed = stage.ask(key, "GET /v1/sandboxes", "").await.json();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    }
    // Who removes its own leaves the others.
    assert_eq!(stage.ask(&bob, "DELETE /v1/sandboxes/build", "").await.status, 204);
    assert_eq!(stage.ask(&bob, "GET /v1/sandboxes/build", "").await.status, 404);
    assert_eq!(stage.ask(&alice, "GET /v1/sandboxes/build", "").await.status, 200);
    assert_eq!(
        stage.sessions.status(&stage.sessions.find("build").await.unwrap()).await.unwrap().id,
        local
    );
}

#[tokio::test]
async fn events_and_audit_are_of_their_owner() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let id = stage.sandbox(&alice, "hers").await;
    stage.sandbox(&bob, "his").await;
    assert_eq!(stage.ask(&alice, "DELETE /v1/sandboxes/hers", "").await.status, 204);
    let hers = stage.ask(&alice, "GET /v1/events", "").await.json();
    let sessions: Vec<_> = hers["events"].as_array().unwrap().iter().collect();
    assert!(!sessions.is_empty() && sessions.iter().all(|event| event["session"] == json!(id)));
    // What was told of it is still its owner's after it is gone.
    assert!(!stage.ask(&bob, "GET /v1/events", "").await.text.contains(&id));
    let audit = stage.ask(&alice, "GET /v1/audit", "").await.json();
    let lines: Vec<_> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {}", entry["action"].as_str().unwrap(), entry["status"]))
        .collect();
    assert_eq!(lines, ["PUT /v1/sandboxes/hers 201", "DELETE /v1/sandboxes/hers 204"]);
    assert!(!stage.ask(&bob, "GET /v1/audit", "").await.text.contains("hers"));
}

#[tokio::test]
async fn every_operation_takes_the_scope_that_it_names() {
    let stage = Stage::new().await;
    let owner = stage.key("a").await;
    stage.sandbox(&owner, "s").await;
    for scope in KeyScope::ALL {
        let key = stage.key_with(&format!("only-{}", scope.name()), rights(&[scope])).await;
        let allowed = |status: u16| status != 403;
        let check = async |line: &str, needs: KeyScope| {
            let status = stage.ask(&key, line, "{}").await.status.as_u16();
            assert_eq!(allowed(status), scope == needs, "{line} with {} is {status}", scope.name());
        };
        check("GET /v1/sandboxes", KeyScope::Look).await;
        check("GET /v1/sandboxes/s", KeyScope::Look).await;
        check("GET /v1/events", KeyScope::Look).await;
        check("GET /v1/audit", KeyScope::Look).await;
        check("POST /v1/sandboxes", KeyScope::Manage).await;
        check("DELETE /v1/sandboxes/s", KeyScope::Manage).await;
        check("POST /v1/sandboxes/s/pause", KeyScope::Manage).await;
        check("POST /v1/sandboxes/s/execs", KeyScope::Run).await;
        check("POST /v1/run", KeyScope::Run).await;
        check("GET /v1/sandboxes/s/execs/x/receipt", KeyScope::FilesRead).await;
        check("GET /v1/sandboxes/s/approvals", KeyScope::Look).await;
        check("POST /v1/sandboxes/s/approvals/s.1.1", KeyScope::Approve).await;
        check("POST /v1/sandboxes/s/network/allow", KeyScope::Approve).await;
        check("PUT /v1/sandboxes/s/network", KeyScope::Approve).await;
        check("POST /v1/sandboxes/s/network/deny", KeyScope::Manage).await;
        check("GET /v1/secrets", KeyScope::Look).await;
        check("PUT /v1/secrets/A", KeyScope::Secrets).await;
        check("DELETE /v1/secrets/A", KeyScope::Secrets).await;
    }
}

#[tokio::test]
async fn a_key_opens_from_when_it_is_made_until_it_is_revoked() {
    let stage = Stage::new().await;
    assert_eq!(stage.ask("", "GET /v1/sandboxes", "").await.status, 200);
    let key = stage.key("a").await;
    // From the first key on nobody is let in without one, and revoking it opens nothing.
    for revoked in [false, true] {
        if revoked {
            stage.sessions.revoke_key("a").await.unwrap();
        }
        let with = stage.ask(&key, "GET /v1/sandboxes", "").await;
        assert_eq!(with.status.as_u16(), if revoked { 401 } else { 200 });
        let mut other = key.clone();
        let last = other.pop().unwrap();
        other.push(if last == '0' { '1' } else { '0' });
        let prefix = &key[..20];
        for wrong in ["", "x", "cfd_", "cfd_1_2", &other, prefix] {
            let answer = stage.ask(wrong, "GET /v1/sandboxes", "").await;
            assert_eq!(answer.status, 401, "{wrong}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
    let again = stage.key("a").await;
    assert_ne!(again, key);
    assert_eq!(stage.ask(&again, "GET /v1/sandboxes", "").await.status, 200);
    // It is written down nowhere.
    for file in ["sessions.db", "sessions.db-wal"] {
        let bytes = std::fs::read(stage.state.join(file)).unwrap_or_default();
        let secret = again.rsplit('_').next().unwrap().as_bytes();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{file}");
        assert!(
            file != "sessions.db-wal"
                || bytes.windows(16).any(|part| part == &again.as_bytes()[4..20])
        );
    }
}

#[tokio::test]
async fn a_quota_holds_for_all_ways_to_a_sandbox() {
    let stage = Stage::new().await;
    let quota = Quota { max_sandboxes: Some(2), max_memory_bytes: Some(3 << 30) };
    let key = stage.key_with("a", KeyRights { quota, ..rights(&KeyScope::ALL) }).await;
    let sized = |bytes: u64| json!({ "limits": { "memory_bytes": bytes } }).to_string();
    let too_large = stage.ask(&key, "PUT /v1/sandboxes/x", &sized(4 << 30)).await;
    assert_eq!((too_large.status.as_u16(), too_large.kind().as_str()), (403, "denied"));
    for name in ["x", "y"] {
        let line = format!("PUT /v1/sandboxes/{name}");
        assert_eq!(stage.ask(&key, &line, &sized(1 << 30)).await.status, 201);
        assert_eq!(stage.ask(&key, &line, &sized(1 << 30)).await.status, 200);
    }
    for line in ["PUT /v1/sandboxes/z", "POST /v1/sandboxes"] {
        assert_eq!(stage.ask(&key, line, &sized(1 << 20)).await.status, 403, "{line}");
    }
    let run = json!({
        "sandbox": { "limits": { "memory_bytes": 1 << 20 } }, "exec": { "argv": ["out=x"] },
    });
    assert_eq!(stage.ask(&key, "POST /v1/run", &run.to_string()).await.status, 403);
    // Another key is not concerned, and what is removed makes room.
    let other = stage.key("b").await;
    assert_eq!(stage.ask(&other, "PUT /v1/sandboxes/z", "{}").await.status, 201);
    assert_eq!(stage.ask(&key, "DELETE /v1/sandboxes/x", "").await.status, 204);
    assert_eq!(stage.ask(&key, "POST /v1/run", &run.to_string()).await.status, 200);
    let just_too_large = stage.ask(&key, "PUT /v1/sandboxes/z", &sized((2 << 30) + 1)).await;
    assert_eq!(just_too_large.status, 403);
    assert_eq!(stage.ask(&key, "PUT /v1/sandboxes/z", &sized(2 << 30)).await.status, 201);
}

#[tokio::test]
async fn a_rate_is_told_with_when_to_ask_again() {
    let stage = Stage::new().await;
    let rights = KeyRights { max_rate: Some(1), ..rights(&KeyScope::ALL) };
    let key = stage.key_with("a", rights).await;
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(stage.ask(&key, "GET /v1/sandboxes", "").await);
    }
    assert_eq!(answers[0].status, 200);
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.json()["retryable"], true);
}

#[tokio::test]
async fn a_request_names_only_a_workspace_that_it_may() {
    let stage = Stage::new().await;
    let wish = |path: &str| json!({ "workspace": path }).to_string();
    for (path, status) in
        [("/srv/allowed", 201), ("/srv/allowed/x", 403), ("/", 403), ("/etc", 403)]
    {
        let answer = stage.ask("", "POST /v1/sandboxes", &wish(path)).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text);
    }
    // Who works in the outer one could put a link in the place of the inner one.
    let nested = async |paths: &[&str]| {
        let workspaces = paths.iter().map(Into::into).collect();
        let rights = KeyRights { workspaces, ..rights(&KeyScope::ALL) };
        stage.sessions.create_key(&format!("of-{}", paths.len()), rights).await
    };
    stage
        .key_with(
            "outer",
            KeyRights { workspaces: vec!["/srv/outer".into()], ..rights(&KeyScope::ALL) },
        )
        .await;
    for paths in [&["/srv/outer/inner"][..], &["/srv"], &["/srv/x", "/srv/x/y"]] {
        let refused = nested(paths).await.unwrap_err();
        assert!(refused.message.contains("lie in each other"), "{refused}");
    }
    nested(&["/srv/outer"]).await.unwrap();
    stage.sessions.revoke_key("of-1").await.unwrap();
    stage.sessions.revoke_key("outer").await.unwrap();
    nested(&["/srv/outer/inner"]).await.unwrap();
    let plain = stage.key("plain").await;
    let with = KeyRights { workspaces: vec!["/srv/own".into()], ..rights(&KeyScope::ALL) };
    let with = stage.key_with("with", with).await;
    for (key, path, status) in
        [(&plain, "/srv/allowed", 403), (&with, "/srv/allowed", 403), (&with, "/srv/own", 201)]
    {
        let answer = stage.ask(key, "POST /v1/sandboxes", &wish(path)).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text);
    }
}
