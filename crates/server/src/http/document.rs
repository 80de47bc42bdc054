//! The document of the interface, OpenAPI 3.1, from the code.

use super::door::SCOPES;
use super::objects;
use super::once::TAKE_KEYS;
use super::resources::resources;
use axum::Json;
use axum::response::Html;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The document, as it is served.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| complete(resources().into_openapi()));
    &DOCUMENT
}

pub(super) async fn openapi() -> Json<&'static Value> {
    Json(document())
}

pub(super) async fn page() -> Html<&'static str> {
    Html(include_str!("page.html"))
}

/// What a key may be good for.
fn scopes() -> String {
    let names: Vec<&str> = SCOPES.iter().map(|scope| scope.name()).collect();
    format!("A key from `cofferdam key create`. Its scopes are of: {}.", names.join(", "))
}

/// Puts in what the routes do not say: the objects' own schemas, who may ask, and what every route may
/// answer.
fn complete(openapi: utoipa::openapi::OpenApi) -> Value {
    let mut document = serde_json::to_value(openapi).unwrap_or_default();
    let info = json!({
        "title": "Cofferdam",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Sandboxes for AI agents.",
        "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
    });
    put(&mut document, "info", info);
    let components = json!({
        "schemas": objects::schemas(),
        "securitySchemes": {
            "key": { "type": "http", "scheme": "bearer", "description": scopes() },
        },
    });
    put(&mut document, "components", components);
    put(&mut document, "security", json!([{ "key": [] }, {}]));
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        if TAKE_KEYS.contains(&path.as_str()) {
            take_key(item);
        }
        let operations = item.as_object_mut().into_iter().flatten();
        operations.for_each(|(_, operation)| complete_operation(operation));
    }
    document
}

fn complete_operation(operation: &mut Value) {
    // Functions are named by what they do, so only with the tag is that one of a kind.
    let parts = ["/tags/0", "/operationId"].map(|part| operation.pointer(part));
    let [tag, verb] = parts.map(|part| part.and_then(Value::as_str).unwrap_or_default());
    let name = if tag == verb { verb.to_owned() } else { format!("{tag}_{verb}") };
    put(operation, "operationId", Value::String(name));
    // Without a key, in the words that generators know for it.
    if operation.get("security") == Some(&json!([{}])) {
        put(operation, "security", json!([]));
    }
    let problem = <objects::ProblemDocument as utoipa::ToSchema>::name();
    let problem = json!({
        "description": "What went wrong.",
        "content": { "application/problem+json": {
            "schema": { "$ref": format!("#/components/schemas/{problem}") },
        } },
    });
    if let Some(responses) = operation.get_mut("responses") {
        put(responses, "default", problem);
    }
}

/// Tells of the key by which a request is answered once.
fn take_key(item: &mut Value) {
    let key = json!({
        "name": "idempotency-key", "in": "header", "required": false,
        "description": "A text of the caller's, new for each request, of at most 255 bytes. The same \
            request with the same key again does nothing, and has the answer that the first one had; \
            with another body it is a conflict.",
        "schema": { "type": ["string", "null"] },
    });
    let Some(operation) = item.get_mut("post").and_then(Value::as_object_mut) else { return };
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    parameters.as_array_mut().into_iter().for_each(|all| all.push(key.clone()));
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}
