//! What requests do to files.

use crate::stage::{Stage, request};
use axum::body::Body;

#[tokio::test]
async fn a_file_is_written_only_where_it_is_as_if_match_says() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let write = async |field: &str, value: &str| {
        let request = request("", "PUT /v1/sandboxes/a/files?path=x").header(field, value);
        stage.send(request.body(Body::from("x")).unwrap()).await
    };
    // Nothing is there that could be so.
    for wanted in ["*", "\"v1\""] {
        assert_eq!(write("if-match", wanted).await.status, 412, "{wanted}");
    }
    let made = write("if-none-match", "*").await;
    assert_eq!(made.status, 201, "{}", made.text);
    let tag = made.headers["etag"].to_str().unwrap();
    for other in ["\"v1\"", "W/\"v1\"", &format!("W/{tag}"), "\"a\", \"b\""] {
        let told = write("if-match", other).await;
        assert_eq!((told.status.as_u16(), told.kind().as_str()), (412, "conflict"), "{other}");
    }
    for none in ["v1", "\"v1", ""] {
        assert_eq!(write("if-match", none).await.kind(), "usage", "{none}");
    }
    for same in ["*", tag, &format!("\"v1\", {tag}")] {
        assert_eq!(write("if-match", same).await.status, 200, "{same}");
    }
}

#[tokio::test]
async fn an_archive_of_more_than_was_allowed_is_refused_and_never_begun() {
    let stage = Stage::new().await;
    let key = stage.key("alice").await;
    stage.sandbox(&key, "s").await;
    for (name, bytes) in [("a/small", 10), ("b/large", 1000)] {
        let line = format!("PUT /v1/sandboxes/s/files?path={name}");
        let body = Body::from("x".repeat(bytes));
        assert_eq!(stage.send(request(&key, &line).body(body).unwrap()).await.status, 201);
    }
    let get = async |query: &str| {
        stage.ask(&key, &format!("GET /v1/sandboxes/s/files/archive{query}"), "").await
    };
    let none = get("?max_bytes=0").await;
    assert_eq!((none.status.as_u16(), none.kind().as_str()), (400, "usage"), "{}", none.text);
    for less in ["?max_bytes=1", "?max_bytes=1009", "?path=b/large&max_bytes=999"] {
        let refused = get(less).await;
        let told = (refused.status.as_u16(), refused.kind());
        assert_eq!(told, (413, "too_large".to_owned()), "{less}: {}", refused.text);
        assert!(refused.text.contains("more than"), "{less}: {}", refused.text);
    }
    // The control: as much as there is may pass.
    for enough in ["?max_bytes=1010", "?path=b/large&max_bytes=1000", ""] {
        let archive = get(enough).await;
        assert_eq!(archive.headers["content-type"], "application/x-tar", "{enough}");
        assert!(archive.status == 200 && archive.text.len() > 2000, "{enough}");
    }
}
