//! The tools about a sandbox as a whole.

use crate::Outcome;
use crate::tool::{Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::Result;
use cofferdam_session::SessionReport;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// How a sandbox stands.
#[derive(Serialize, JsonSchema)]
struct Status {
    /// Whether there is one.
    exists: bool,
    /// How it stands, if so.
    sandbox: Option<SessionReport>,
}

pub(super) const STATUS: Row = Row {
    name: "sandbox_status",
    title: "Look at a sandbox",
    about: "Says whether the sandbox exists, runs or is paused, and how far its policy holds. Makes and \
            wakes nothing.",
    params: &[],
    output: output_of::<Status>,
    hints: Hints::LOOKS,
};

pub(super) async fn status(call: Call<'_>) -> Result<Outcome> {
    let Some(session) = call.sandboxes.existing(call.name()).await? else {
        let status = Status { exists: false, sandbox: None };
        return Ok(Outcome::done("There is no sandbox yet.", json!(status)));
    };
    let report = call.sandboxes.sessions.status(session.id()).await?;
    let phase = json!(report.phase);
    let text = format!(
        "Sandbox {} is {}; profile {}.",
        report.name.as_deref().unwrap_or(&report.id),
        phase.as_str().unwrap_or_default(),
        report.profile
    );
    Ok(Outcome::done(text, json!(Status { exists: true, sandbox: Some(report) })))
}
