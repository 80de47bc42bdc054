//! Closed sets of words in the document. `schemars` tells one as a choice of constants, each with what it
//! means; generators of clients make of that as many types as there are words. As an `enum` it is one.

use serde_json::{Map, Value};

/// Tells every closed set in a schema as an `enum`, with the meanings in its description.
pub(super) fn told_as_enums(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(told_as_enums);
            if let Some((words, meanings)) = fields.get("oneOf").and_then(words_of) {
                become_enum(fields, words, &meanings);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(told_as_enums),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The words of a choice and what is said of them, where it is one of words alone.
fn words_of(choice: &Value) -> Option<(Vec<Value>, String)> {
    let (mut words, mut meanings) = (Vec::new(), String::new());
    for one in choice.as_array()? {
        if one.get("type").and_then(Value::as_str) != Some("string") {
            return None;
        }
        match (one.get("const"), one.get("enum").and_then(Value::as_array)) {
            (Some(word), None) => words.push(word.clone()),
            (None, Some(several)) => words.extend(several.iter().cloned()),
            (Some(_), Some(_)) | (None, None) => return None,
        }
        let word = one.get("const").and_then(Value::as_str);
        if let (Some(word), Some(Value::String(meaning))) = (word, one.get("description")) {
            meanings = format!("{meanings}\n- `{word}`: {meaning}");
        }
    }
    Some((words, meanings))
}

fn become_enum(fields: &mut Map<String, Value>, words: Vec<Value>, meanings: &str) {
    fields.remove("oneOf");
    fields.insert("type".to_owned(), "string".into());
    fields.insert("enum".to_owned(), words.into());
    let said = fields.get("description").and_then(Value::as_str).unwrap_or_default();
    let said = match meanings.is_empty() {
        true => said.to_owned(),
        false => format!("{said}\n{meanings}").trim_start().to_owned(),
    };
    if !said.is_empty() {
        fields.insert("description".to_owned(), said.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_choice_of_words_is_an_enum_and_another_stays() {
        let word = |word, says| json!({ "const": word, "description": says, "type": "string" });
        let plain = json!({ "enum": ["c", "d"], "type": "string" });
        let mut schema = json!({ "properties": { "x": {
            "description": "X.", "oneOf": [word("a", "First."), word("b", "Second."), plain],
        } } });
        told_as_enums(&mut schema);
        let expected = json!({ "properties": { "x": {
            "description": "X.\n\n- `a`: First.\n- `b`: Second.",
            "type": "string", "enum": ["a", "b", "c", "d"],
        } } });
        assert_eq!(schema, expected);
        let other = json!({ "oneOf": [word("a", "First."), { "type": "object" }] });
        let mut same = other.clone();
        told_as_enums(&mut same);
        assert_eq!(same, other);
    }
}
