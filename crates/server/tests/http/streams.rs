//! What is told as it comes.

use crate::stage::{Stage, request};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::StatusCode;
use cofferdam_core::fake::Call;
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

/// Pieces of a stream, until one holds this.
async fn told(body: &mut BodyDataStream, word: &str) {
    while let Some(piece) = body.next().await {
        if std::str::from_utf8(&piece.unwrap()).unwrap().contains(word) {
            return;
        }
    }
    panic!("the stream ended before {word}");
}

#[tokio::test(start_paused = true)]
async fn what_this_server_does_is_told_before_it_looks_again() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let line = request("", "GET /v1/events/stream").body(Body::empty()).unwrap();
    let mut body = stage.router.clone().oneshot(line).await.unwrap().into_body().into_data_stream();
    told(&mut body, "provisioned").await;
    for deed in ["pause", "resume"] {
        // In the middle between two looks, by a clock that stands while something is done.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let begun = tokio::time::Instant::now();
        stage.ask("", &format!("POST /v1/sandboxes/a/{deed}"), "").await;
        told(&mut body, if deed == "pause" { "paused" } else { "resumed" }).await;
        assert!(begun.elapsed() < Duration::from_millis(50), "{deed}: {:?}", begun.elapsed());
    }
    // What nobody tells, as the end of a sandbox that is killed from elsewhere, is found by looking.
    let sandbox = stage.backend.alive().remove(0);
    stage.backend.fall_asleep(&sandbox);
    told(&mut body, "paused").await;
}

/// Streams that nobody reads until they are asked for what is in them.
async fn opened(stage: &Stage, line: &str, many: usize) -> Vec<BodyDataStream> {
    let mut streams = Vec::new();
    for _ in 0..many {
        let line = request("", line).body(Body::empty()).unwrap();
        let response = stage.router.clone().oneshot(line).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        streams.push(response.into_body().into_data_stream());
    }
    streams
}

#[tokio::test(start_paused = true)]
async fn idle_streams_cost_no_more_looks_than_one() {
    let stage = Stage::new().await;
    for name in ["a", "b"] {
        stage.sandbox("", name).await;
    }
    let looks = || stage.backend.calls().iter().filter(|call| **call == Call::Journal).count();
    // How often sandboxes are asked while so many streams are followed and nothing happens.
    let idle = async |line: &str, many: usize| {
        let mut streams = opened(&stage, line, many).await;
        let mut all = futures_util::stream::iter(streams.iter_mut())
            .map(StreamExt::next)
            .buffer_unordered(many);
        // Each looks once for what was before it.
        let begin = tokio::time::timeout(Duration::from_millis(100), all.next());
        assert!(begin.await.is_err(), "nothing happens");
        let before = looks();
        let follow = tokio::time::timeout(Duration::from_secs(10), all.next());
        assert!(follow.await.is_err(), "nothing happens");
        looks() - before
    };
    let one = idle("GET /v1/events/stream?after=99", 1).await;
    assert!((70..=90).contains(&one), "two sandboxes, four times a second: {one}");
    let many = idle("GET /v1/events/stream?after=99", 50).await;
    assert!(many.abs_diff(one) <= 4, "{many}");
    // Who asks for one sandbox has no other one asked.
    let of_one = idle("GET /v1/events/stream?after=99&sandbox=a", 20).await;
    assert!(of_one.abs_diff(one / 2) <= 4, "{of_one}");
    // With the last stream nobody looks any more.
    let before = looks();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(looks(), before);
}

#[tokio::test(start_paused = true)]
async fn all_who_follow_are_told_wherever_they_began() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    stage.sandbox("", "b").await;
    let mut all = opened(&stage, "GET /v1/events/stream", 3).await;
    let mut of_a = opened(&stage, "GET /v1/events/stream?sandbox=a&after=1", 2).await;
    for stream in &mut all {
        told(stream, "provisioned").await;
    }
    // One that begins while others are followed is told what was before.
    stage.ask("", "POST /v1/sandboxes/a/pause", "").await;
    let mut later = opened(&stage, "GET /v1/events/stream", 1).await;
    told(&mut later[0], "provisioned").await;
    for stream in all.iter_mut().chain(&mut of_a) {
        told(stream, "paused").await;
    }
    // What nobody tells is found for all of them.
    stage.ask("", "POST /v1/sandboxes/a/resume", "").await;
    for sandbox in stage.backend.alive() {
        stage.backend.fall_asleep(&sandbox);
    }
    for stream in all.iter_mut().chain(&mut of_a).chain(&mut later) {
        told(stream, "resumed").await;
        told(stream, "paused").await;
    }
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

/// A long poll is asked for again and again: only the first one wakes a sandbox.
#[tokio::test]
async fn a_poll_that_goes_on_leaves_a_sandbox_paused() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let exec = stage.exec("", "a", &["hang"]).await;
    for path in ["wait?timeout_ms=10", "news?timeout_ms=10"] {
        let paused = stage.ask("", "POST /v1/sandboxes/a/pause", "").await;
        assert!(paused.status.is_success(), "{}", paused.text);
        let line = format!("GET /v1/sandboxes/a/execs/{exec}/{path}");
        for (goes_on, phase) in [("true", "paused"), ("false", "running")] {
            let asked = request("", &line).header("cofferdam-goes-on", goes_on);
            let answer = stage.send(asked.body(Body::empty()).unwrap()).await;
            assert!(answer.status.is_success(), "{}", answer.text);
            let now = stage.ask("", "GET /v1/sandboxes/a", "").await.json();
            assert_eq!(now["phase"], phase, "{path} {goes_on}");
        }
    }
}
