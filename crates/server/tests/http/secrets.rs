//! Secrets: by name, of their owner alone, and never told.

use crate::stage::{Stage, rights};
use cofferdam_core::secret::{MAX_SECRET_BYTES, SecretName, SecretValue};
use cofferdam_session::KeyScope;
use serde_json::{Value, json};

const VALUE: &str = "correct-horse-battery";

fn names(list: &Value) -> Vec<&str> {
    let all = list["secrets"].as_array().unwrap().iter();
    all.map(|secret| secret["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_secret_is_added_listed_and_removed_and_its_value_is_told_nowhere() {
    let stage = Stage::new().await;
    let alice = stage.key("alice").await;
    let mut told = Vec::new();
    let put = stage.ask(&alice, "PUT /v1/secrets/TOKEN", VALUE).await;
    assert_eq!((put.status.as_u16(), &put.json()["name"]), (200, &json!("TOKEN")));
    told.push(put.text);
    let created =
        stage.ask(&alice, "GET /v1/secrets", "").await.json()["secrets"][0]["created_ms"].clone();
    let again = stage.ask(&alice, "PUT /v1/secrets/TOKEN", VALUE).await;
    assert_eq!(again.json()["created_ms"], created);
    let list = stage.ask(&alice, "GET /v1/secrets", "").await;
    assert_eq!(names(&list.json()), ["TOKEN"]);
    let tool =
        stage.ask(&alice, "POST /v1/tools/cofferdam/secret_list", r#"{"sandbox":"s"}"#).await;
    assert!(tool.text.contains("TOKEN"), "{}", tool.text);
    let audit = stage.ask(&alice, "GET /v1/audit", "").await;
    assert!(audit.text.contains("PUT /v1/secrets/TOKEN"));
    told.extend([list.text, tool.text, audit.text]);
    told.push(stage.ask(&alice, "GET /v1/events", "").await.text);
    assert!(!told.iter().any(|text| text.contains(VALUE)), "{told:?}");
    // Control: it is kept, for whoever gives it to a command.
    let store = cofferdam_secrets::SecretStore::open(&stage.state).unwrap();
    let name = SecretName::new("TOKEN").unwrap();
    assert_eq!(store.value("alice", &name).unwrap().expose(), VALUE.as_bytes());
    assert_eq!(stage.ask(&alice, "DELETE /v1/secrets/TOKEN", "").await.status, 204);
    assert_eq!(stage.ask(&alice, "DELETE /v1/secrets/TOKEN", "").await.status, 404);
    assert!(names(&stage.ask(&alice, "GET /v1/secrets", "").await.json()).is_empty());
}

#[tokio::test]
async fn a_secret_of_one_owner_is_not_there_for_another() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    assert_eq!(stage.ask(&alice, "PUT /v1/secrets/TOKEN", VALUE).await.status, 200);
    assert_eq!(stage.ask(&bob, "DELETE /v1/secrets/TOKEN", "").await.status, 404);
    assert_eq!(stage.ask(&bob, "PUT /v1/secrets/TOKEN", "another-value").await.status, 200);
    assert_eq!(stage.ask(&bob, "DELETE /v1/secrets/TOKEN", "").await.status, 204);
    assert!(names(&stage.ask(&bob, "GET /v1/secrets", "").await.json()).is_empty());
    assert_eq!(names(&stage.ask(&alice, "GET /v1/secrets", "").await.json()), ["TOKEN"]);
}

#[tokio::test]
async fn a_secret_takes_its_scope_and_has_a_bound() {
    let stage = Stage::new().await;
    let looks = stage.key_with("looks", rights(&[KeyScope::Look])).await;
    let sets = stage.key_with("sets", rights(&[KeyScope::Secrets])).await;
    for line in ["PUT /v1/secrets/A", "DELETE /v1/secrets/A"] {
        assert_eq!(stage.ask(&looks, line, VALUE).await.status, 403, "{line}");
    }
    assert_eq!(stage.ask(&sets, "GET /v1/secrets", "").await.status, 403);
    let most = "x".repeat(MAX_SECRET_BYTES);
    assert_eq!(stage.ask(&sets, "PUT /v1/secrets/A", &most).await.status, 200);
    let more = stage.ask(&sets, "PUT /v1/secrets/A", &format!("{most}x")).await;
    assert!(more.status.is_client_error() && !more.text.contains("xxxx"), "{}", more.text);
    for bad in ["a b", "%2F", "a%00"] {
        let path = bad.replace(' ', "%20");
        let answer = stage.ask(&sets, &format!("PUT /v1/secrets/{path}"), VALUE).await;
        assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (400, "usage"), "{bad}");
    }
}

#[tokio::test]
async fn a_revoked_keys_secrets_are_gone_and_the_next_key_of_its_name_has_none() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    for key in [&alice, &bob] {
        assert_eq!(stage.ask(key, "PUT /v1/secrets/TOKEN", VALUE).await.status, 200);
    }
    let sandbox = stage.sandbox(&alice, "s").await;
    stage.sessions.revoke_key("alice").await.unwrap();
    let store = cofferdam_secrets::SecretStore::open(&stage.state).unwrap();
    assert_eq!(store.list("alice").unwrap(), []);
    // Also where an earlier program, or one that was killed in between, left some.
    let (name, value) = (SecretName::new("LEFT").unwrap(), VALUE.as_bytes().to_vec());
    store.put("alice", &name, &SecretValue::new(value).unwrap(), 1).unwrap();
    let next = stage.key("alice").await;
    assert!(names(&stage.ask(&next, "GET /v1/secrets", "").await.json()).is_empty());
    let shown = stage.ask(&next, "GET /v1/sandboxes/s", "").await;
    assert_eq!(shown.json()["id"], json!(sandbox), "control: what was made stays");
    assert_eq!(names(&stage.ask(&bob, "GET /v1/secrets", "").await.json()), ["TOKEN"], "control");
    // A key that is in use keeps its secrets when one of its name is revoked once more.
    assert_eq!(stage.ask(&next, "PUT /v1/secrets/NEW", VALUE).await.status, 200);
    let first = &alice[..20];
    stage.sessions.revoke_key(first).await.unwrap();
    assert_eq!(names(&stage.ask(&next, "GET /v1/secrets", "").await.json()), ["NEW"]);
}
