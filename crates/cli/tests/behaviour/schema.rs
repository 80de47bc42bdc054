//! Whether an object is what its published schema says: the part of JSON Schema that the schemas of
//! this program use. A word that is not known here is a failure, so that none is passed over.

use crate::place::Place;
use serde_json::Value;

/// Words that say nothing about an object.
const WORDS_FOR_PEOPLE: [&str; 6] =
    ["$schema", "$defs", "title", "description", "format", "default"];

/// Fails unless the object is what `config schema NAME` says, and has no field besides.
pub(crate) fn is_valid(place: &Place, name: &str, object: &Value) {
    let said = place.says(&["config", "schema", name], 0);
    let root = said.object();
    if let Err(why) = check(&root, &root, object) {
        panic!("{name}: {why} in {object}");
    }
}

fn check(root: &Value, schema: &Value, object: &Value) -> Result<(), String> {
    let Some(words) = schema.as_object() else {
        return (schema == &Value::Bool(true)).then_some(()).ok_or("nothing fits".to_owned());
    };
    for (word, value) in words {
        match word.as_str() {
            "$ref" => check(root, referred(root, value), object)?,
            "type" => is_of_type(value, object)?,
            "required" => has_all(value, object)?,
            "properties" => has_only(root, words, value, object)?,
            "additionalProperties" => {}
            "items" => {
                for item in object.as_array().into_iter().flatten() {
                    check(root, value, item)?;
                }
            }
            "anyOf" | "oneOf" => {
                let mut all = value.as_array().unwrap().iter();
                if !all.any(|one| check(root, one, object).is_ok()) {
                    return Err(format!("{object} fits none of {value}"));
                }
            }
            "enum" if !value.as_array().unwrap().contains(object) => {
                return Err(format!("{object} is none of {value}"));
            }
            "const" if value != object => return Err(format!("{object} is not {value}")),
            "minimum" if object.is_number() && object.as_f64() < value.as_f64() => {
                return Err(format!("{object} is below {value}"));
            }
            "maximum" if object.is_number() && object.as_f64() > value.as_f64() => {
                return Err(format!("{object} is above {value}"));
            }
            "enum" | "const" | "minimum" | "maximum" => {}
            known if WORDS_FOR_PEOPLE.contains(&known) => {}
            other => return Err(format!("this test does not know {other:?}")),
        }
    }
    Ok(())
}

fn referred<'a>(root: &'a Value, reference: &Value) -> &'a Value {
    let path = reference.as_str().unwrap().strip_prefix('#').unwrap();
    root.pointer(path).unwrap()
}

fn is_of_type(wanted: &Value, object: &Value) -> Result<(), String> {
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => object.is_null(),
        "boolean" => object.is_boolean(),
        "string" => object.is_string(),
        "array" => object.is_array(),
        "object" => object.is_object(),
        "integer" => object.is_i64() || object.is_u64(),
        "number" => object.is_number(),
        other => panic!("there is no type {other:?}"),
    };
    let fits = match wanted.as_array() {
        Some(names) => names.iter().any(is),
        None => is(wanted),
    };
    if fits { Ok(()) } else { Err(format!("{object} is no {wanted}")) }
}

fn has_all(names: &Value, object: &Value) -> Result<(), String> {
    let mut names = names.as_array().unwrap().iter().filter_map(Value::as_str);
    match names.find(|name| object.is_object() && object.get(name).is_none()) {
        Some(missing) => Err(format!("{missing:?} is missing")),
        None => Ok(()),
    }
}

fn has_only(
    root: &Value,
    words: &serde_json::Map<String, Value>,
    known: &Value,
    object: &Value,
) -> Result<(), String> {
    for (name, value) in object.as_object().into_iter().flatten() {
        match (known.get(name), words.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema)) => {
                check(root, schema, value).map_err(|why| format!("{name}: {why}"))?;
            }
            (None, None) => return Err(format!("{name:?} is not in the schema")),
        }
    }
    Ok(())
}
