//! Calls and what they come to, written from the contracts of each pack.
//!
//! A file is a pack and its calls in order, on a fresh sandbox. Every field of a result is expected; `<any>`
//! stands for a value that differs from run to run, and within a text for any part of it.

use crate::stage::{Kind, Stage, call};
use cofferdam_tools::{PackName, Scope};
use serde_json::Value;
use std::path::PathBuf;

const ANY: &str = "<any>";

/// Looks whether a value is as expected, and says where it is not.
fn differs(expected: &Value, found: &Value, at: &str) -> Option<String> {
    match (expected, found) {
        (Value::String(any), _) if any == ANY => None,
        (Value::String(pattern), Value::String(text)) => {
            (!matches(pattern, text)).then(|| format!("{at}: expected {pattern:?}, found {text:?}"))
        }
        (Value::Object(wanted), Value::Object(is)) => {
            let missing = wanted.keys().find(|key| !is.contains_key(*key));
            let more = is.keys().find(|key| !wanted.contains_key(*key));
            if let Some(key) = missing.or(more) {
                return Some(format!("{at}.{key}: expected {expected}, found {found}"));
            }
            wanted.iter().find_map(|(key, value)| differs(value, &is[key], &format!("{at}.{key}")))
        }
        (Value::Array(wanted), Value::Array(is)) if wanted.len() == is.len() => wanted
            .iter()
            .zip(is)
            .enumerate()
            .find_map(|(n, (wanted, is))| differs(wanted, is, &format!("{at}[{n}]"))),
        _ => (expected != found).then(|| format!("{at}: expected {expected}, found {found}")),
    }
}

/// Whether a text has the parts of a pattern in their order, and begins and ends with it.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split(ANY);
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    match last {
        None => rest.is_empty(),
        Some("") => true,
        Some(part) => rest.is_empty() || text.ends_with(part),
    }
}

async fn play(file: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/packs/recorded").join(file);
    let play: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let pack: PackName = play["pack"].as_str().unwrap().parse().unwrap();
    let kind = if play["layered"] == true { Kind::Layered } else { Kind::Direct };
    let stage = Stage::new().await;
    let tools = stage.tools(pack, Scope::Implicit, kind);
    for (number, step) in play["calls"].as_array().unwrap().iter().enumerate() {
        let name = step["call"].as_str().unwrap();
        let outcome = call(&tools, name, step["arguments"].clone()).await;
        let at = format!("{file}, call {} ({name})", number + 1);
        if let Some(what) = differs(&step["structured"], &outcome.structured, "structured") {
            panic!("{at}: {what}\n{}", outcome.structured);
        }
        let failed = step["is_error"] == true;
        assert_eq!(outcome.is_error, failed, "{at}: {}", outcome.text);
        match step["text"].as_str() {
            Some(text) => assert!(matches(text, &outcome.text), "{at}: text {:?}", outcome.text),
            // Those who have no text of their own say what a program would read.
            None => assert_eq!(outcome.text, outcome.structured.to_string(), "{at}"),
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn cofferdam_answers_as_recorded() {
    play("cofferdam.json").await;
}

#[tokio::test]
async fn cofferdam_with_a_layer_answers_as_recorded() {
    play("cofferdam-layered.json").await;
}

#[tokio::test]
async fn everruns_answers_as_recorded() {
    play("everruns.json").await;
}

#[tokio::test]
async fn adk_answers_as_recorded() {
    play("adk.json").await;
}

#[tokio::test]
async fn fluers_answers_as_recorded() {
    play("fluers.json").await;
}

#[tokio::test]
async fn openmanus_answers_as_recorded() {
    play("openmanus.json").await;
}

#[test]
fn a_pattern_is_strict_where_it_says_something() {
    assert!(matches("a<any>c", "abbc") && matches("a", "a") && matches("<any>", ""));
    assert!(!matches("a<any>c", "abbd") && !matches("a", "ab") && !matches("b<any>", "ab"));
    let same = |a: &str, b: &str| {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        differs(&value(a), &value(b), "").is_none()
    };
    assert!(same(r#"{"a":"<any>"}"#, r#"{"a":1}"#) && !same(r#"{"a":1}"#, r#"{"a":1,"b":2}"#));
    assert!(!same("[1]", "[1,2]") && !same(r#"{"a":1,"b":2}"#, r#"{"a":1}"#));
}
