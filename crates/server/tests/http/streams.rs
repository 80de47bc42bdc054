//! What is told as it comes.

use crate::stage::{Stage, request};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::StreamExt;
use std::time::Duration;
use tower::ServiceExt;

/// Reads a stream until its text fits.
async fn until(
    stage: &Stage,
    line: &str,
    last: Option<&str>,
    fits: impl Fn(&str) -> bool,
) -> String {
    let mut request = request("", line);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response =
        stage.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    let read = async {
        while !fits(&text) {
            let Some(piece) = body.next().await else { break };
            let piece: Bytes = piece.unwrap();
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(60), read).await.unwrap();
    assert!(fits(&text), "{text}");
    text
}

#[tokio::test]
async fn output_is_told_to_the_end_and_taken_up_where_it_was() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let exec = stage.exec("", "a", &["out=hello"]).await;
    let line = format!("GET /v1/sandboxes/a/execs/{exec}/stream");
    let all = until(&stage, &line, None, |text| text.contains("event: end")).await;
    assert!(all.contains("event: output") && all.contains("hello") && all.contains("id: 5.0"));
    let rest = until(&stage, &line, Some("2.0"), |text| text.contains("event: end")).await;
    assert!(rest.contains(r#""text":"llo""#), "{rest}");
    let end = until(&stage, &line, Some("5.0"), |text| text.contains("event: end")).await;
    assert!(!end.contains("event: output"), "{end}");
    let bad = request("", &line).header("last-event-id", "x").body(Body::empty()).unwrap();
    assert_eq!(stage.send(bad).await.kind(), "usage");
}

#[tokio::test]
async fn events_are_told_as_they_come_and_after_a_number() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let line = "GET /v1/events/stream";
    let (told, ()) =
        tokio::join!(until(&stage, line, None, |text| text.contains("paused")), async {
            stage.ask("", "POST /v1/sandboxes/a/pause", "").await;
        });
    assert!(told.contains("provisioned"), "{told}");
    let later = until(&stage, line, Some("1"), |text| text.contains("paused")).await;
    assert!(!later.contains("provisioned"), "{later}");
    let bad = request("", line).header("last-event-id", "x").body(Body::empty()).unwrap();
    assert_eq!(stage.send(bad).await.kind(), "usage");
}
