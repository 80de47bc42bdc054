//! Tools and their results, as the protocol has them.

use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_tools::{Outcome, Tool};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// The key of an error in the metadata of a result.
///
/// It is not the structured content: clients hold that against the schema of what the tool answers
/// when it does not fail, and some take what does not fit for a broken server.
pub(crate) const ERROR_KEY: &str = "cofferdam/error";

/// A tool as a client is told of it.
pub(crate) fn described(tool: &Tool) -> Result<rmcp::model::Tool> {
    let hints = tool.hints;
    let annotations = ToolAnnotations::from_raw(
        Some(tool.title.to_owned()),
        Some(hints.read_only),
        Some(hints.destructive),
        Some(hints.idempotent),
        Some(hints.open_world),
    );
    let input = schema(tool, &tool.input)?;
    let mut told = rmcp::model::Tool::new(tool.name, tool.description.clone(), input)
        .with_title(tool.title)
        .with_annotations(annotations);
    if let Some(output) = &tool.output {
        told = told.with_raw_output_schema(schema(tool, output)?);
    }
    Ok(told)
}

fn schema(tool: &Tool, value: &Value) -> Result<Arc<JsonObject>> {
    let mut value = value.clone();
    drop_widths(&mut value);
    match value {
        Value::Object(schema) => Ok(Arc::new(schema)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let what = format!("a schema of the tool {} is no object", tool.name);
            Err(Error::new(ErrorKind::Protocol, what))
        }
    }
}

/// Leaves out how wide a number is in this program. It is no format of JSON Schema, and a widespread
/// client prints a warning for each.
fn drop_widths(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_width = |format: &Value| {
                let kinds = ["uint", "int", "float", "double"];
                format.as_str().is_some_and(|text| kinds.iter().any(|kind| text.starts_with(kind)))
            };
            if members.get("format").is_some_and(is_width) {
                members.remove("format");
            }
            members.values_mut().for_each(drop_widths);
        }
        Value::Array(all) => all.iter_mut().for_each(drop_widths),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a call came to, as a result.
pub(crate) fn result(outcome: Outcome) -> CallToolResult {
    let content = vec![ContentBlock::text(outcome.text)];
    if !outcome.is_error {
        let mut result = CallToolResult::success(content);
        // What is no object has no place there before the protocol of 2026; the text has it.
        result.structured_content = Some(outcome.structured).filter(Value::is_object);
        return result;
    }
    let mut result = CallToolResult::error(content);
    // Other packs have errors of another shape, which is told as it is.
    let error = outcome.structured.get("error").filter(|error| error.is_object()).cloned();
    let error = error.unwrap_or(outcome.structured);
    let mut meta = MetaObject::new();
    meta.insert(ERROR_KEY.to_owned(), error);
    result.meta = Some(meta);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_widths_of_numbers_are_left_out_of_a_schema() {
        let mut schema = json!({
            "properties": {
                "size": { "type": "integer", "format": "uint64", "minimum": 0 },
                "all": { "items": { "format": "int32" }, "type": "array" },
                "format": { "type": "string" },
                "when": { "format": "date-time" },
            },
        });
        drop_widths(&mut schema);
        let expected = json!({
            "properties": {
                "size": { "type": "integer", "minimum": 0 },
                "all": { "items": {}, "type": "array" },
                "format": { "type": "string" },
                "when": { "format": "date-time" },
            },
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn an_error_is_beside_the_structured_content_and_what_is_no_object_in_the_text_alone() {
        let error = json!({ "kind": "not_found" });
        let structured = json!({ "error": error });
        let failed = result(Outcome { text: "no".to_owned(), structured, is_error: true });
        assert_eq!((failed.is_error, failed.structured_content), (Some(true), None));
        assert_eq!(failed.meta.unwrap().get(ERROR_KEY), Some(&error));
        let structured = json!({ "error": "no", "success": false });
        let other = result(Outcome {
            text: "no".to_owned(),
            structured: structured.clone(),
            is_error: true,
        });
        assert_eq!(other.meta.unwrap().get(ERROR_KEY), Some(&structured));
        let plain =
            result(Outcome { text: "x".to_owned(), structured: json!("x"), is_error: false });
        assert_eq!((plain.is_error, plain.structured_content), (Some(false), None));
    }
}
