//! What waits in a sandbox to be allowed, and the answers.

use super::door::{Approves, Door, Looks};
use super::error::Answer;
use super::extract::{Body, Path};
use super::network;
use super::objects;
use crate::Server;
use axum::Json;
use cofferdam_core::{Error, ErrorKind, Opening, Result};
use cofferdam_session::{
    PermissionAnswer, PermissionId, PermissionList, PermissionReport, SessionId,
};
use schemars::JsonSchema;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(approvals)).routes(routes!(answer))
}

/// An answer to what waits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerWish {
    /// `once`: what waits may go on, and nothing that comes later; `session`: the sandbox may reach it from
    /// now on; `deny`.
    pub(crate) answer: AnswerName,
}

/// What somebody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerName {
    /// This time.
    Once,
    /// For the sandbox.
    Session,
    /// For the user: on the machine of the server alone.
    Profile,
    /// No.
    Deny,
}

/// What waits to be allowed, and what did so lately.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/approvals", tag = "network",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "In the order in which it began.", body = objects::Approvals),
))]
async fn approvals(door: Door<Looks>, Path(sandbox): Path<String>) -> Answer<Json<PermissionList>> {
    Ok(Json(door.session(&sandbox).await?.permissions().await?))
}

/// Answers something that waits, within what the operator of the server allows. A key has to have the scope
/// `approve` for it: whoever may only run commands does not answer what these ask for.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/approvals/{approval}", tag = "network",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("approval" = String, Path, description = "What waits, by its id.")),
    request_body = objects::ApprovalAnswer, responses(
    (status = 200, description = "What came of it.", body = objects::Approval),
))]
async fn answer(
    door: Door<Approves>,
    Path((sandbox, approval)): Path<(String, String)>,
    Body(AnswerWish { answer }): Body<AnswerWish>,
) -> Answer<Json<PermissionReport>> {
    let session = door.session(&sandbox).await?;
    let id = id(session.id(), &approval)?;
    let answer = match answer {
        AnswerName::Deny => PermissionAnswer::Deny,
        AnswerName::Once => PermissionAnswer::Once,
        AnswerName::Session => PermissionAnswer::Session,
        AnswerName::Profile => return Err(of_the_machine().into()),
    };
    if answer != PermissionAnswer::Deny {
        let all = session.permissions().await?.permissions;
        let waiting =
            all.iter().find(|one| one.id == approval).ok_or_else(|| missing(&approval))?;
        may_open(&door, &waiting.allow)?;
    }
    Ok(Json(session.answer_permission(&id, answer).await?))
}

/// The id of something that waits in this session, written out in full.
fn id(session: &SessionId, text: &str) -> Result<PermissionId> {
    let (named, target) = PermissionId::split(text).map_err(|_| missing(text))?;
    match named == session.as_str() {
        true => Ok(PermissionId::new(session.clone(), target)),
        false => Err(missing(text)),
    }
}

/// Fails unless the operator allows that this is opened.
fn may_open(door: &Door<Approves>, allow: &str) -> Result<()> {
    let Opening::Rule(rule) = Opening::of_remedy(allow)? else {
        return Err(Error::new(
            ErrorKind::Denied,
            "a port of the server's machine is for its operator to open",
        )
        .hint("Answer it with `cofferdam approve` on that machine."));
    };
    network::may_open(door, vec![rule]).map(drop)
}

fn of_the_machine() -> Error {
    Error::new(ErrorKind::Usage, "the configuration of the server's machine is its operator's")
        .hint("Answer \"session\", or use `cofferdam approve --profile` on that machine.")
}

fn missing(text: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("nothing is known to wait as {text:?}"))
        .hint("List what waits, and write the whole id.")
}
