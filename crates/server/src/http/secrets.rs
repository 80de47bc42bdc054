//! Secrets of a caller: their names, and changes of them. No answer has a value.

use super::door::{Deed, Door, Looks, SetsSecrets};
use super::error::Answer;
use super::extract::{Path, unkeyed};
use super::objects;
use super::secret_body::SecretBody;
use crate::Server;
use axum::Json;
use axum::http::StatusCode;
use cofferdam_core::secret::{GivenSecret, SecretGrant, SecretName, SecretWish};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::ExecWish;
use cofferdam_session::{SecretList, SecretReport};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put, remove))
}

/// The caller's secrets by name, without their values.
#[utoipa::path(get, path = "/v1/secrets", tag = "secrets", responses(
    (status = 200, description = "All of them.", body = objects::Secrets),
))]
async fn list(door: Door<Looks>) -> Answer<Json<SecretList>> {
    Ok(Json(SecretList { secrets: door.sessions.secrets().await? }))
}

/// Adds a secret, or gives one that is there another value. The body is the value, byte for byte, of at most
/// 65536 bytes; it is encrypted at rest and never told again.
#[utoipa::path(put, path = "/v1/secrets/{secret}", tag = "secrets",
    params(("secret" = String, Path, description = "Its name: 1 to 64 letters, digits, `-`, `_` or `.`.")),
    request_body(content = inline(objects::Bytes), content_type = "application/octet-stream"), responses(
    (status = 200, description = "It has this value now.", body = objects::Secret),
))]
async fn put(
    door: Door<SetsSecrets>,
    Path(secret): Path<String>,
    SecretBody(value): SecretBody,
) -> Answer<Json<SecretReport>> {
    let name = name(secret)?;
    // What is revoked has its secrets removed, and one that came later would stay.
    if !door.caller.is_known_still(&door.server).await {
        return Err(unkeyed());
    }
    let report = door.sessions.put_secret(name.clone(), value).await?;
    // ORDER: looked at again behind it: a revocation in between has removed what was there before.
    if door.caller.is_known_still(&door.server).await {
        return Ok(Json(report));
    }
    match door.sessions.remove_secret(name).await {
        Err(error) if error.kind != ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Err(unkeyed()),
    }
}

/// Removes a secret. Commands that have it keep it until they end.
#[utoipa::path(delete, path = "/v1/secrets/{secret}", tag = "secrets",
    params(("secret" = String, Path, description = "Its name.")), responses(
    (status = 204, description = "It is gone."),
))]
async fn remove(door: Door<SetsSecrets>, Path(secret): Path<String>) -> Answer<StatusCode> {
    door.sessions.remove_secret(name(secret)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Fails unless the caller may grant secrets, and has those that a sandbox is to be granted.
pub(super) async fn may_grant<D>(door: &Door<D>, wishes: &[String]) -> Result<()> {
    if wishes.is_empty() {
        return Ok(());
    }
    door.caller.may(SetsSecrets::SCOPE)?;
    let grants = wishes.iter().map(|grant| grant.parse()).collect::<Result<Vec<SecretGrant>>>()?;
    for name in SecretGrant::names(&grants) {
        if !door.sessions.has_secret(name.clone()).await? {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no secret {name}"))
                .hint(format!("Add it with `cofferdam secret add {name}`, by the same key.")));
        }
    }
    Ok(())
}

/// What a command is given of the caller's secrets. Fails unless the caller may have it given.
pub(super) async fn given<D>(door: &Door<D>, wish: &ExecWish) -> Result<Vec<GivenSecret>> {
    let files = wish.secret_files.iter().map(|text| SecretWish::file(text));
    let descriptors = wish.secret_descriptors.iter().map(|text| SecretWish::descriptor(text));
    let wishes = files.chain(descriptors).collect::<Result<Vec<_>>>()?;
    if !wishes.is_empty() {
        door.caller.may(SetsSecrets::SCOPE)?;
    }
    door.sessions.given_secrets(wishes).await
}

fn name(text: String) -> Result<SecretName> {
    SecretName::new(text)
}
