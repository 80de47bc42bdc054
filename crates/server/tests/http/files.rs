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
async fn what_a_request_asks_for_and_would_not_get_is_refused_and_changes_nothing() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let put = "PUT /v1/sandboxes/a/files?path=x";
    let made = stage.ask("", put, "whole").await;
    let tag = made.headers["etag"].to_str().unwrap();
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    for (line, field, value, status) in [
        ("DELETE /v1/sandboxes/a/files?path=x", "if-match", "\"v1\"", 400),
        ("DELETE /v1/sandboxes/a/files?path=x", "if-match", tag, 400),
        ("DELETE /v1/sandboxes/a", "if-unmodified-since", date, 400),
        ("POST /v1/sandboxes/a/files/append?path=x", "if-none-match", "*", 400),
        (put, "if-unmodified-since", date, 400),
        (put, "content-range", "bytes 2-4/5", 400),
        (put, "content-encoding", "gzip", 415),
    ] {
        let asked = request("", line).header(field, value);
        let told = stage.send(asked.body(Body::from("new")).unwrap()).await;
        assert_eq!(
            (told.status.as_u16(), told.kind().as_str()),
            (status, "usage"),
            "{line} {field}"
        );
        assert!(told.json()["hint"].is_string(), "{}", told.text);
        let read = stage.ask("", "GET /v1/sandboxes/a/files?path=x", "").await;
        assert_eq!(read.text, "whole", "{line} {field}");
    }
    // The controls: without them it is done.
    assert_eq!(stage.ask("", put, "new").await.status, 200);
    assert_eq!(stage.ask("", "DELETE /v1/sandboxes/a/files?path=x", "").await.status, 200);
}

#[tokio::test]
async fn a_body_in_a_coding_that_nobody_undoes_is_written_nowhere() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    for (coding, status) in
        [("gzip, chunked", 501), ("chunked, chunked", 501), ("identity", 501), ("Chunked", 201)]
    {
        let put = request("", "PUT /v1/sandboxes/a/files?path=x");
        let asked = put.header("transfer-encoding", coding).body(Body::from("x")).unwrap();
        let told = stage.send(asked).await;
        assert_eq!(told.status, status, "{coding}: {}", told.text);
        let is_refused = told.text.contains("transfer coding");
        assert_eq!(is_refused, status == 501, "{coding}: {}", told.text);
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused_where_it_stands_for_text() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    for path in ["%ff", "a%c3", "%ED%A0%80", "x&parents=%ff"] {
        let told = stage.ask("", &format!("PUT /v1/sandboxes/a/files?path={path}"), "x").await;
        assert_eq!((told.status.as_u16(), told.kind().as_str()), (400, "usage"), "{path}");
        assert!(told.text.contains("path_base64"), "{}", told.text);
    }
    // The controls.
    for path in ["path=%C3%A4", "path=100%25", "path=50%", "path=%zz", "path_base64=/w=="] {
        let told = stage.ask("", &format!("PUT /v1/sandboxes/a/files?{path}"), "x").await;
        assert_eq!(told.status, 201, "{path}: {}", told.text);
    }
}

#[tokio::test]
async fn a_file_is_read_only_where_it_is_as_the_headers_say_and_what_they_cannot_say_is_refused() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let made = stage.ask("", "PUT /v1/sandboxes/a/files?path=x", "x").await;
    let tag = made.headers["etag"].to_str().unwrap();
    let read = async |field: &str, value: &str, path: &str| {
        let line = format!("GET /v1/sandboxes/a/files?path={path}");
        let request = request("", &line).header(field, value);
        stage.send(request.body(Body::empty()).unwrap()).await
    };
    for field in ["if-match", "if-none-match"] {
        for bad in ["v1", "\"v1", "", ",", tag.trim_matches('"'), "*, \"a\""] {
            for path in ["x", "missing"] {
                let told = read(field, bad, path).await;
                assert_eq!(told.status, 400, "{field}: {bad}: {}", told.text);
                assert_eq!(told.kind(), "usage");
                assert!(told.json()["hint"].is_string(), "{}", told.text);
            }
        }
    }
    let weak = format!("W/{tag}");
    let listed = format!("\"a,b\", {tag}");
    for (field, value, status) in [
        ("if-match", "*", 200),
        ("if-match", tag, 200),
        ("if-match", &listed, 200),
        ("if-match", "\"v1\"", 412),
        ("if-match", &weak, 412),
        ("if-none-match", "*", 304),
        ("if-none-match", &weak, 304),
        ("if-none-match", "\"v1\"", 200),
        // No tag, and no error either: that may be a date.
        ("if-range", "Wed, 21 Oct 2015 07:28:00 GMT", 200),
    ] {
        assert_eq!(read(field, value, "x").await.status, status, "{field}: {value}");
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

#[tokio::test]
async fn an_archive_that_is_packed_otherwise_is_refused_with_all_that_it_may_be_packed_by() {
    let stage = Stage::new().await;
    let key = stage.key("alice").await;
    stage.sandbox(&key, "s").await;
    let put = async |bytes: Vec<u8>| {
        let line = "PUT /v1/sandboxes/s/files/archive?path=d";
        stage.send(request(&key, line).body(Body::from(bytes)).unwrap()).await
    };
    let refused = put(b"BZh91AY&SY".to_vec()).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("packed with gzip, xz or zstd."), "{}", refused.text);
    // The control, which says that it is true.
    let taken = put(EMPTY_BY_XZ.to_vec()).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
}

/// An archive with nothing in it, as xz packs it.
const EMPTY_BY_XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x03, 0xff, 0x00, 0x0b, 0x5d, 0x00, 0x00,
    0x6f, 0xfd, 0xff, 0xff, 0xa3, 0xb7, 0x7f, 0x46, 0x32, 0x00, 0x00, 0x00, 0x2e, 0xaf, 0xb5, 0xef,
    0x00, 0x01, 0x23, 0x80, 0x08, 0x00, 0x00, 0x00, 0x38, 0x3b, 0x3f, 0x36, 0x3e, 0x30, 0x0d, 0x8b,
    0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
];
