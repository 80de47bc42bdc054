//! The tools about a sandbox as a whole.

use crate::Outcome;
use crate::param::{Kind, Param};
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::Result;
use cofferdam_session::{EnsuredHow, SessionId, SessionReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// How a sandbox stands.
#[derive(Serialize, JsonSchema)]
struct Status {
    /// Whether there is one.
    exists: bool,
    /// What it took to have it run; null where that was not asked for.
    how: Option<EnsuredHow>,
    /// How it stands, if it exists.
    sandbox: Option<SessionReport>,
    /// How many labels and remarks the report leaves out, for there are too many.
    left_out: usize,
}

/// The schema of what several tools answer alike: how a sandbox stands is described once, by
/// `sandbox_status`, and would else be most of what a client reads.
fn as_status() -> Value {
    let mut schema = output_of::<Status>();
    if let Some(sandbox) = schema.pointer_mut("/properties/sandbox") {
        *sandbox = json!({
            "type": ["object", "null"],
            "additionalProperties": true,
            "description": "How it stands, if it exists, with the fields that sandbox_status answers.",
        });
    }
    schema
}

pub(super) const ENSURE: Row = Row {
    name: "sandbox_ensure",
    title: "Have a sandbox run",
    about: "Makes the sandbox if it is not there, wakes it if it is paused, and replaces it if it was lost; \
            then processes are gone, and files stay. What it may do is not yours to choose.",
    params: &[],
    output: as_status,
    conduct: Conduct::Of(Hints::SETTLES),
};

pub(super) async fn ensure(call: Call<'_>) -> Result<Outcome> {
    let ensured = call.sandboxes.ensure(call.name()).await?;
    status_of(&call, ensured.session.id(), Some(ensured.how)).await
}

pub(super) const STATUS: Row = Row {
    name: "sandbox_status",
    title: "Look at a sandbox",
    about: "Says whether the sandbox exists, runs or is paused, and how far its policy holds. Makes and \
            wakes nothing.",
    params: &[],
    output: output_of::<Status>,
    conduct: Conduct::Of(Hints::LOOKS),
};

pub(super) async fn status(call: Call<'_>) -> Result<Outcome> {
    let Some(session) = call.sandboxes.existing(call.name()).await? else {
        let status = Status { exists: false, how: None, sandbox: None, left_out: 0 };
        return Ok(Outcome::done("There is no sandbox yet.", json!(status)));
    };
    status_of(&call, session.id(), None).await
}

pub(super) const PAUSE: Row = Row {
    name: "sandbox_pause",
    title: "Pause a sandbox",
    about: "Stops everything in the sandbox where it stands. The next command or file call wakes it.",
    params: &[],
    output: as_status,
    conduct: Conduct::Of(Hints::SETTLES),
};

pub(super) async fn pause(call: Call<'_>) -> Result<Outcome> {
    let session = call.sandboxes.there(call.name()).await?;
    call.sandboxes.sessions.pause(session.id()).await?;
    status_of(&call, session.id(), None).await
}

pub(super) const RESUME: Row = Row {
    name: "sandbox_resume",
    title: "Resume a sandbox",
    about: "Lets everything in a paused sandbox go on.",
    params: &[],
    output: as_status,
    conduct: Conduct::Of(Hints::SETTLES),
};

pub(super) async fn resume(call: Call<'_>) -> Result<Outcome> {
    let session = call.sandboxes.there(call.name()).await?;
    call.sandboxes.sessions.wake(session.id()).await?;
    status_of(&call, session.id(), None).await
}

/// What became of a sandbox that was to go.
#[derive(Serialize, JsonSchema)]
struct Deleted {
    /// Whether there was one.
    deleted: bool,
    /// Its id, if so.
    sandbox: Option<String>,
}

pub(super) const DELETE: Row = Row {
    name: "sandbox_delete",
    title: "Remove a sandbox",
    about: "Ends the sandbox and removes it with its home directory, its history, and changes that were not \
            applied. The workspace itself stays. One that is not there is removed already.",
    params: &[],
    output: output_of::<Deleted>,
    conduct: Conduct::Of(Hints::REMOVES),
};

pub(super) async fn delete(call: Call<'_>) -> Result<Outcome> {
    let Some(session) = call.sandboxes.existing(call.name()).await? else {
        let deleted = Deleted { deleted: false, sandbox: None };
        return Ok(Outcome::done("There was no sandbox.", json!(deleted)));
    };
    let deleted = call.sandboxes.sessions.delete(session.id()).await?;
    let deleted = Deleted { deleted, sandbox: Some(session.id().to_string()) };
    Ok(Outcome::done(format!("Sandbox {} is removed.", session.id()), json!(deleted)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkArguments {
    name: String,
    #[serde(default)]
    point: Option<String>,
}

pub(super) const FORK: Row = Row {
    name: "sandbox_fork",
    title: "Fork a sandbox",
    about: "Makes another sandbox whose workspace begins as this one's is now, or was at an earlier point. \
            The sandbox must be copy-on-write. Processes and the home directory are not copied. Name the \
            new one in the parameter sandbox of later calls.",
    params: &[
        Param::required("name", Kind::Word, "The name of the new sandbox; must be free."),
        Param::optional(
            "point",
            Kind::Word,
            "The number of a point of the history, or the label of a snapshot. Left out: now.",
        ),
    ],
    output: as_status,
    conduct: Conduct::Of(Hints::ADDS),
};

pub(super) async fn fork(call: Call<'_>) -> Result<Outcome> {
    let ForkArguments { name, point } = call.arguments()?;
    let session = call.sandboxes.there(call.name()).await?;
    let sessions = &call.sandboxes.sessions;
    let forked = sessions.fork(session.id(), point.as_deref(), &name).await?;
    status_of(&call, forked.id(), Some(EnsuredHow::Created)).await
}

async fn status_of(call: &Call<'_>, id: &SessionId, how: Option<EnsuredHow>) -> Result<Outcome> {
    let report = call.sandboxes.sessions.status(id).await?;
    let text = text(&report);
    Ok(Outcome::fitting(1, |whole| {
        let (mut report, mut left_out) = (report.clone(), 0);
        if whole == 0 {
            left_out = report.labels.len() + report.layer_left_out.len();
            report.labels.clear();
            report.layer_left_out.clear();
        }
        let status = Status { exists: true, how, sandbox: Some(report), left_out };
        Outcome::done(text.clone(), json!(status))
    }))
}

fn text(report: &SessionReport) -> String {
    let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let name = report.name.as_deref().unwrap_or(&report.id);
    let phase = word(json!(report.phase));
    let place = report.workspace_inside.as_deref().unwrap_or("/workspace");
    let writes = if report.copy_on_write {
        "; changes stay in the sandbox until they are applied"
    } else {
        ""
    };
    let mut text = format!(
        "Sandbox {name} is {phase}. Profile {}; workspace {place}{writes}.",
        report.profile
    );
    for reason in report.enforced.iter().flat_map(|enforced| &enforced.reasons) {
        write!(text, "\nNot fully enforced: {reason}").ok();
    }
    if let Some(error) = &report.init_error {
        write!(text, "\nIts preparation failed: {}", json!(error)).ok();
    }
    text
}
