//! Sandboxes: the sessions of a caller.

use super::door::{Deed, Door, Looks, Manages, Runs};
use super::error::Answer;
use super::extract::{Body, Path, Query};
use super::objects;
use super::secrets::may_grant;
use super::wish::{OnGround, lie_on};
use crate::Server;
use crate::traces::Fact;
use axum::Json;
use axum::http::StatusCode;
use cofferdam_core::{Error, ErrorKind, Result};
pub(crate) use cofferdam_session::objects::{SandboxPage, SandboxWish};
use cofferdam_session::{EnsuredHow, SessionId, SessionReport};
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most sandboxes of one page.
pub(crate) const MAX_PAGE: usize = 200;
/// How many there are unless a request says otherwise.
const DEFAULT_PAGE: usize = 50;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(ensure, show, delete))
}

/// Which sandboxes are wanted.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Those that have all these labels: `key=value`, separated by commas. In a label `\,`, `\=` and `\\` stand for a
    /// comma, a sign of equality and a backslash.
    label: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// Where the page begins: the `next_cursor` of the one before.
    cursor: Option<String>,
}

/// Makes a sandbox. A name that is taken is a conflict.
#[utoipa::path(post, path = "/v1/sandboxes", tag = "sandboxes",
    request_body = objects::SandboxWish, responses(
    (status = 201, description = "It is made and prepared.", body = objects::Sandbox),
))]
async fn create(
    door: Door<Manages>,
    Body(wish): Body<SandboxWish>,
) -> Answer<(StatusCode, Json<SessionReport>)> {
    may_prepare(&door, &wish)?;
    may_grant(&door, &wish.secrets).await?;
    let ground = door.ground()?;
    let mut order = wish.on(&ground)?;
    let _held = lie_on(&ground, (wish.image.as_deref(), wish.pull), &mut order.spec).await?;
    let session = made(&door, door.sessions.create(&order), |session| session.id()).await?;
    // The request does not name it.
    let what = format!("made {}", session.id());
    door.minutes("POST /v1/sandboxes".to_owned()).note(&what, StatusCode::CREATED.as_u16()).await;
    Ok((StatusCode::CREATED, Json(door.sessions.status(session.id()).await?)))
}

/// Refuses commands of one who may run none.
fn may_prepare<D: Deed>(door: &Door<D>, wish: &SandboxWish) -> Result<()> {
    if wish.init.as_ref().is_some_and(|lines| !lines.is_empty()) {
        door.caller.may(Runs::SCOPE)?;
    }
    Ok(())
}

/// Makes something with a sandbox, and tells how long that took.
async fn made<T>(
    door: &Door<Manages>,
    making: impl Future<Output = Result<T>>,
    id: impl Fn(&T) -> &SessionId,
) -> Result<T> {
    let span = door.span.part("create");
    let made = making.await.inspect_err(|_| span.failed())?;
    door.span.tell(Fact::Sandbox(id(&made)));
    span.tell(Fact::Sandbox(id(&made)));
    Ok(made)
}

/// Lists sandboxes, oldest first.
#[utoipa::path(get, path = "/v1/sandboxes", tag = "sandboxes", params(ListQuery), responses(
    (status = 200, description = "A page of them.", body = objects::SandboxPage),
))]
async fn list(door: Door<Looks>, Query(query): Query<ListQuery>) -> Answer<Json<SandboxPage>> {
    let labels = labels(query.label.as_deref())?;
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        let what = format!("a page of {limit} is not one of 1 to {MAX_PAGE}");
        let error = Error::new(ErrorKind::Usage, what);
        return Err(error.hint("Read a longer list in several pages.").into());
    }
    let all = door.sessions.list(&labels).await?;
    Ok(Json(page(all, limit, query.cursor.as_deref())?))
}

/// The sandbox of this name, running and prepared: made, resumed or recovered if it has to be.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its name.")),
    request_body = objects::SandboxWish, responses(
    (status = 200, description = "It was there.", body = objects::Sandbox),
    (status = 201, description = "It is made.", body = objects::Sandbox),
))]
async fn ensure(
    door: Door<Manages>,
    Path(name): Path<String>,
    Body(mut wish): Body<SandboxWish>,
) -> Answer<(StatusCode, Json<SessionReport>)> {
    if let Some(other) = wish.name.as_ref().filter(|other| **other != name) {
        let what = format!("the body names {other:?}, and the path {name:?}");
        return Err(Error::new(ErrorKind::Usage, what).hint("Name it in the path alone.").into());
    }
    wish.name = Some(name);
    may_prepare(&door, &wish)?;
    may_grant(&door, &wish.secrets).await?;
    let ground = door.ground()?;
    let mut order = wish.on(&ground)?;
    let _held = lie_on(&ground, (wish.image.as_deref(), wish.pull), &mut order.spec).await?;
    let ensuring = door.sessions.ensure(&order);
    let ensured = made(&door, ensuring, |ensured| ensured.session.id()).await?;
    let status = match ensured.how {
        EnsuredHow::Created => StatusCode::CREATED,
        EnsuredHow::Running | EnsuredHow::Resumed | EnsuredHow::Recovered => StatusCode::OK,
    };
    Ok((status, Json(door.sessions.status(ensured.session.id()).await?)))
}

/// How a sandbox stands.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "As it stands now.", body = objects::Sandbox),
))]
async fn show(door: Door<Looks>, Path(sandbox): Path<String>) -> Answer<Json<SessionReport>> {
    let session = door.session(&sandbox).await?;
    Ok(Json(door.sessions.status(session.id()).await?))
}

/// Removes a sandbox with all that it has.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 204, description = "It is gone."),
))]
async fn delete(door: Door<Manages>, Path(sandbox): Path<String>) -> Answer<StatusCode> {
    let session = door.session(&sandbox).await?;
    door.sessions.delete(session.id()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Labels of a query.
fn labels(text: Option<&str>) -> Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    let mut rest = text.unwrap_or_default();
    while !rest.is_empty() {
        let (pair, after) = cut(rest, ',').unwrap_or((rest, ""));
        rest = after;
        if pair.is_empty() {
            continue;
        }
        let Some((key, value)) = cut(pair, '=') else {
            return Err(Error::new(ErrorKind::Usage, format!("{pair:?} is not a label")).hint(
                "Write key=value, several separated by commas; one that is in a label has a backslash before it.",
            ));
        };
        labels.insert(meant(key), meant(value));
    }
    Ok(labels)
}

/// What stands before and behind the first sign of this sort that has no backslash before it.
fn cut(text: &str, sign: char) -> Option<(&str, &str)> {
    let mut is_led = false;
    let is_it = |c: char| {
        let was_led = is_led;
        is_led = c == '\\' && !was_led;
        c == sign && !was_led
    };
    let at = text.find(is_it)?;
    Some((text.get(..at)?, text.get(at + sign.len_utf8()..)?))
}

/// The text without the backslashes before signs that would mean something else.
fn meant(text: &str) -> String {
    let mut meant = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let led = rest.as_str().chars().next().filter(|_| c == '\\');
        match led.filter(|led| [',', '=', '\\'].contains(led)) {
            Some(led) => {
                meant.push(led);
                rest.next();
            }
            None => meant.push(c),
        }
    }
    meant
}

/// The page after a cursor, which is the moment and the id of the last one before it: what came or went
/// meanwhile moves nothing.
fn page(mut all: Vec<SessionReport>, limit: usize, cursor: Option<&str>) -> Result<SandboxPage> {
    if let Some(cursor) = cursor {
        let after = cursor.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, id)));
        let Some((at_ms, id)) = after else {
            return Err(Error::new(ErrorKind::Usage, format!("{cursor:?} is no cursor"))
                .hint("Use the next_cursor of the page before."));
        };
        let after: (u64, &str) = (at_ms, id);
        all.retain(|session| (session.created_ms, session.id.as_str()) > after);
    }
    let is_last = all.len() <= limit;
    all.truncate(limit);
    let last = all.last().filter(|_| !is_last);
    let next_cursor = last.map(|session| format!("{}-{}", session.created_ms, session.id));
    Ok(SandboxPage { sessions: all, next_cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_with_a_comma_can_be_asked_for() {
        let check = |text: &str, wanted: &[(&str, &str)]| {
            let wanted = wanted.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            assert_eq!(labels(Some(text)).unwrap(), wanted.collect(), "{text}");
        };
        check("", &[]);
        check("a=b,,c=d=e,", &[("a", "b"), ("c", "d=e")]);
        check(r"a=b\,c,d=", &[("a", "b,c"), ("d", "")]);
        check(r"a\=b=c\\,d=e", &[("a=b", r"c\"), ("d", "e")]);
        check(r"a=b\c\", &[("a", r"b\c\")]);
        for bad in ["a", r"a\=b", "a=b,c"] {
            assert!(labels(Some(bad)).unwrap_err().hint.unwrap().contains("backslash"), "{bad}");
        }
    }
}
