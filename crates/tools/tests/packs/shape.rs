//! Whether a result is what its schema says, as far as the schemas of these tools say anything.

use serde_json::Value;

/// Where a value is not what its schema says.
pub(crate) fn misfit(schema: &Value, value: &Value, at: &str) -> Option<String> {
    let wrong = || Some(format!("{at}: {value} is not {schema}"));
    if schema.as_bool() == Some(true) {
        return None;
    }
    if let Some(any) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
    {
        let fits = any.iter().any(|one| misfit(one, value, at).is_none());
        return if fits { None } else { wrong() };
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return wrong();
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        return wrong();
    }
    let kinds: Vec<&str> = match schema.get("type") {
        None => return None,
        Some(Value::String(kind)) => vec![kind],
        Some(kinds) => kinds.as_array().unwrap().iter().filter_map(Value::as_str).collect(),
    };
    if !kinds.iter().any(|kind| is_a(kind, value)) {
        return wrong();
    }
    inside(schema, value, at)
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no value is a {other}"),
    }
}

fn inside(schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let (Some(items), Some(all)) = (schema.get("items"), value.as_array()) {
        return all.iter().find_map(|one| misfit(items, one, &format!("{at}[]")));
    }
    let fields = value.as_object()?;
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Some(format!("{at}.{name} is missing"));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    fields.iter().find_map(|(name, value)| {
        let at = format!("{at}.{name}");
        match known.and_then(|known| known.get(name)).or(schema.get("additionalProperties")) {
            Some(schema) => misfit(schema, value, &at),
            None => Some(format!("{at} is in no schema")),
        }
    })
}

#[test]
fn what_does_not_fit_is_seen() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"],
        "properties": { "a": { "type": ["integer", "null"] }, "b": { "enum": ["x"] },
                        "c": { "type": "array", "items": { "type": "string" } } },
    });
    let check = |value: Value, fits: bool| assert_eq!(misfit(&schema, &value, "").is_none(), fits);
    check(serde_json::json!({ "a": null, "b": "x", "c": ["y"] }), true);
    check(serde_json::json!({ "b": "x" }), false);
    check(serde_json::json!({ "a": "1" }), false);
    check(serde_json::json!({ "a": 1, "b": "y" }), false);
    check(serde_json::json!({ "a": 1, "c": [1] }), false);
    check(serde_json::json!({ "a": 1, "d": 1 }), false);
}
