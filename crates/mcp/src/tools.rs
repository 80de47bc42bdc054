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
    value.as_object().cloned().map(Arc::new).ok_or_else(|| {
        Error::new(ErrorKind::Protocol, format!("a schema of the tool {} is no object", tool.name))
    })
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
    let error = outcome.structured.get("error").cloned().unwrap_or(outcome.structured);
    let mut meta = MetaObject::new();
    meta.insert(ERROR_KEY.to_owned(), error);
    result.meta = Some(meta);
    result
}
