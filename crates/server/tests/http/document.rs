//! The document: kept as a file, and true.

use cofferdam_server::document;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Every operation: method, path, and what is said of it.
pub(crate) fn operations() -> Vec<(String, String, &'static Value)> {
    let paths = document()["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
    });
    each.collect()
}

#[test]
fn the_document_is_the_one_that_is_kept() {
    // Who runs these tests as somebody else has the sources elsewhere.
    let here = std::env::var("CARGO_MANIFEST_DIR");
    let here = here.unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let file = Path::new(&here).join("../../docs/openapi.json");
    let text = serde_json::to_string_pretty(document()).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == text, "docs/openapi.json differs: look at it, then run again with BLESS=1");
}

#[test]
fn every_operation_is_described_and_named_once() {
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations() {
        let what = format!("{method} {path}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{what}");
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{what} has the name {name} of another");
        for (status, response) in operation["responses"].as_object().unwrap() {
            let text = response["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{what}: {status} has no description");
        }
        assert!(operation["responses"]["default"].is_object(), "{what}");
    }
    assert!(names.len() > 15, "{names:?}");
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, check: &mut impl FnMut(&str)) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(to)) = fields.get("$ref") {
                    check(to);
                }
                fields.values().for_each(|value| walk(value, check));
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, check)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut count = 0;
    walk(document(), &mut |to| {
        count += 1;
        let pointer = to.strip_prefix('#').unwrap();
        assert!(document().pointer(pointer).is_some(), "{to}");
    });
    assert!(count > 20);
    let schemas = document()["components"]["schemas"].as_object().unwrap();
    let empty: Vec<_> =
        schemas.iter().filter(|(_, schema)| **schema == serde_json::json!({})).collect();
    assert!(empty.is_empty(), "{empty:?}");
}

#[test]
fn every_route_of_a_hint_is_one_of_the_document() {
    let all = document()["paths"].as_object().unwrap();
    for (sign, here) in cofferdam_session::objects::advice::ADVICE {
        let Some((method, path)) = here.split_once(' ').filter(|_| !here.contains('`')) else {
            // The name or value of a field.
            assert!(document().to_string().contains(here.trim_matches('`')), "{sign}: {here}");
            continue;
        };
        let path = path.replace('…', "/v1/sandboxes/{sandbox}");
        let method = all.get(&path).and_then(|route| route.get(method.to_lowercase()));
        assert!(method.is_some(), "{sign}: {here}");
    }
}
