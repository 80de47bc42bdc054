//! The shell and file tools of OpenManus: actions, parameters and results are theirs.

mod files;
mod shell;

use crate::Outcome;
use crate::outcome::ToolError;
use crate::param::Fault;
use crate::tool::Row;
use crate::toolbox::Call;
use cofferdam_core::{Error, ErrorKind, Result};
use serde_json::json;

/// The pack.
pub(crate) const ROWS: &[Row] = &[shell::ROW, files::ROW];

/// Calls one of them.
pub(crate) async fn call(name: &str, call: Call<'_>) -> Result<Outcome> {
    match name {
        "sandbox_shell" => shell::call(call).await,
        _ => files::call(call).await,
    }
}

/// Arguments that cannot be taken.
pub(crate) fn refused(fault: Fault) -> Outcome {
    failed(&fault.into())
}

/// An error: `success` is false, and `error` says why.
pub(crate) fn failed(error: &Error) -> Outcome {
    let ToolError { kind, message, hint, retryable } = ToolError::new(error);
    let structured = json!({
        "success": false, "error": message, "kind": kind, "hint": hint, "retryable": retryable,
    });
    Outcome { is_error: true, ..Outcome::json(structured) }
}

/// A parameter that an action needs.
fn needed<T>(value: Option<T>, name: &str, action: &str) -> Result<T> {
    value.ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{name} is required for {action}"))
            .hint(format!("Call again with {name}."))
    })
}
