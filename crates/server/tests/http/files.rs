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
