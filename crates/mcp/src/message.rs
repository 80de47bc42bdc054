//! What is no message, and how that is told.

use crate::bounded::id_in;
use crate::server::refused;
use cofferdam_core::{Error, ErrorKind};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId};
use serde_json::{Value, json};

/// What is wrong with a text that is no message, and the id of the request that it was to be, as far as it
/// can be found; none where it is one.
pub(crate) fn fault(text: &[u8]) -> Option<(ErrorData, Value)> {
    if serde_json::from_slice::<ClientJsonRpcMessage>(text).is_ok() {
        return None;
    }
    let (code, what, id) = match serde_json::from_slice::<Value>(text) {
        Err(error) => {
            let what = format!("the message is no JSON: {error}");
            (ErrorCode::PARSE_ERROR, what, json!(id_in(text)))
        }
        Ok(Value::Array(_)) => {
            let what = "it is a list, and messages come one by one".to_owned();
            (ErrorCode::INVALID_REQUEST, what, Value::Null)
        }
        Ok(other) => {
            let is_known = |id: &Value| serde_json::from_value::<RequestId>(id.clone()).is_ok();
            let what = match other.get("id").is_none_or(is_known) {
                true => "it is no message of JSON-RPC 2.0".to_owned(),
                false => "its id is neither a text nor a whole number below 2^63".to_owned(),
            };
            let id = other.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
            (ErrorCode::INVALID_REQUEST, what, id.unwrap_or_default())
        }
    };
    let error = Error::new(ErrorKind::Usage, what)
        .hint("Send one object with jsonrpc, method and, for an answer, id.");
    let error = ErrorData { code, ..refused(&error) };
    Some((error, id))
}

/// An error of the protocol. Its id is null where that of the request is not known, as JSON-RPC says.
#[cfg(feature = "http")]
pub(crate) fn error_message(error: &ErrorData, id: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}
