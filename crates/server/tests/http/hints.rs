//! Whoever asks wrongly is told what to do about it, at every route.

use crate::stage::{Stage, request};
use axum::body::Body;
use cofferdam_server::document;

/// The operations of the document, as `METHOD /path`.
fn operations() -> Vec<String> {
    let paths = document()["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &serde_json::Value)| {
        let methods: Vec<_> = item.as_object().unwrap().keys().cloned().collect();
        let line = |method: String| format!("{} {path}", method.to_uppercase());
        methods.into_iter().map(line).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// A path with these in the places of its sandbox and of all else.
fn filled(line: &str, sandbox: &str, other: &str) -> String {
    let (mut line, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').unwrap();
        let value = if name == "sandbox" { sandbox } else { other };
        line = format!("{line}{before}{value}");
        rest = behind;
    }
    format!("{line}{rest}")
}

/// Every answer is looked at where it is taken in, see `Stage::send`.
#[tokio::test]
async fn what_is_wrong_with_a_request_is_told_with_what_helps() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let (mut wrong, all) = (0, operations());
    assert!(all.len() > 60, "{}", all.len());
    for line in &all {
        // What is told as it happens has no end here.
        if line.contains("/stream") || line.contains("/watch") || line.contains("/news") {
            continue;
        }
        for (sandbox, other) in [("none", "none"), ("a", "none"), ("a%20b", "0"), ("%FF", "%FF")] {
            let line = filled(line, sandbox, other);
            for query in ["", "?path=missing", "?path=../x", "?limit=0", "?nobody=1", "?path=%00"] {
                for body in ["", "{", "[]", "{}", r#"{"nobody":1}"#, r#"{"path":"../x"}"#] {
                    let asked = request("", &format!("{line}{query}"));
                    let asked = asked.header("content-length", body.len());
                    let answer = stage.send(asked.body(Body::from(body)).unwrap()).await;
                    wrong += usize::from(answer.status.is_client_error());
                    if answer.status.is_client_error() && answer.status != 405 {
                        assert!(!answer.kind().is_empty(), "{line}{query} {body}");
                    }
                }
            }
            stage.sandbox_again("", "a").await;
        }
    }
    assert!(wrong > 1000, "{wrong}");
}
