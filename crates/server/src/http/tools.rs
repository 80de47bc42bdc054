//! Packs of tools, for programs that carry a model's calls themselves.

use super::door::{Deed, Door, Looks, Runs};
use super::error::Answer;
use super::extract::{Body, Path};
use super::guard::Minutes;
use super::objects;
use super::once::not_done;
use super::ports::Exposer;
use super::wish::{OnGround, SpecWish};
use crate::Server;
use axum::Json;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind, Result};
pub(crate) use cofferdam_session::objects::{ToolArguments, ToolList, ToolOutcome, ToolReport};
use cofferdam_session::{KeyScope, SessionOrder};
use cofferdam_tools::{CallContext, Notice, PackName, Scope, Toolbox};
use serde_json::Value;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(call))
}

/// Where the tools of a pack are called.
pub(super) const CALLED_BELOW: &str = "/v1/tools/";

/// The tools of a pack: cofferdam, everruns, adk, fluers or openmanus. Every call names its sandbox.
#[utoipa::path(get, path = "/v1/tools/{pack}", tag = "tools",
    params(("pack" = String, Path, description = "The pack.")), responses(
    (status = 200, description = "All of them.", body = objects::Tools),
))]
async fn list(door: Door<Looks>, Path(pack): Path<String>) -> Answer<Json<ToolList>> {
    let toolbox = toolbox(&door, pack_of(&pack)?)?;
    let tools = toolbox.tools().iter().map(|tool| ToolReport {
        name: tool.name.to_owned(),
        title: tool.title.to_owned(),
        description: tool.description.clone(),
        input: tool.input.clone(),
        output: tool.output.clone(),
        read_only: tool.hints.read_only,
        destructive: tool.hints.destructive,
        idempotent: tool.hints.idempotent,
        open_world: tool.hints.open_world,
    });
    let tools = tools.collect();
    Ok(Json(ToolList { pack, preamble: toolbox.preamble().await, tools }))
}

/// Calls a tool with the arguments in the body. It takes a key with every scope but `approve`, for tools do everything
/// else.
/// An error of the tool is an outcome, with `is_error`.
#[utoipa::path(post, path = "/v1/tools/{pack}/{tool}", tag = "tools",
    params(("pack" = String, Path, description = "The pack."),
        ("tool" = String, Path, description = "The tool.")),
    request_body = objects::ToolArguments, responses(
    (status = 200, description = "What it came to.", body = objects::ToolResult),
))]
async fn call(
    door: Door<Runs>,
    Path((pack, tool)): Path<(String, String)>,
    Body(ToolArguments(arguments)): Body<ToolArguments>,
) -> Answer<Response> {
    refuse_half(&door)?;
    let toolbox = toolbox(&door, pack_of(&pack)?)?;
    if !toolbox.tools().iter().any(|known| known.name == tool) {
        let what = format!("pack {pack} has no tool {tool:?}");
        return Err(Error::new(ErrorKind::NotFound, what)
            .hint("List the tools of the pack.")
            .into());
    }
    // Dropped with this answer where its caller hangs up. The call is told, and ends in its own way.
    let (caller, gone) = tokio::sync::oneshot::channel::<()>();
    let context = CallContext::new().canceled_by(async move {
        let _ = gone.await;
    });
    let calling =
        tokio::spawn(async move { toolbox.call(&tool, Value::Object(arguments), context).await });
    let outcome = calling.await;
    drop(caller);
    let outcome =
        outcome.map_err(|e| Error::new(ErrorKind::Io, "a call of a tool broke off").source(e))?;
    let cofferdam_tools::Outcome { text, structured, is_error } = outcome;
    let told = Json(ToolOutcome { text, structured, is_error });
    Ok(if is_error { not_done(told) } else { told.into_response() })
}

/// Refuses a caller who may not do everything: a tool's name does not say what it takes.
pub(super) fn refuse_half<D: Deed>(door: &Door<D>) -> Result<()> {
    // No tool changes a secret.
    let scopes = KeyScope::USUAL.into_iter().filter(|scope| *scope != KeyScope::Secrets);
    scopes.into_iter().try_for_each(|scope| door.caller.may(scope))
}

/// A pack over the sandboxes of a caller. What it makes is what the operator says; what it reaches is that, and
/// what the caller could ask for by the other routes.
pub(super) fn toolbox<D: Deed>(door: &Door<D>, pack: PackName) -> Result<Toolbox> {
    let ground = door.ground()?;
    // As a request that wishes nothing has it, so that what it makes is no other kind.
    let order = SessionOrder::new(SpecWish::default().on(&ground)?);
    let toolbox = Toolbox::new(pack, door.sessions.clone(), Scope::Named, order)
        .over(ground.workspaces())
        .noticed(Arc::new(door.minutes(format!("tool {pack}"))));
    Ok(match Exposer::of(door) {
        Some(exposer) => toolbox.exposing(Arc::new(exposer)),
        None => toolbox,
    })
}

#[async_trait::async_trait]
impl Notice for Minutes {
    async fn called(&self, tool: &str, sandbox: Option<&str>, is_error: bool) {
        let what = format!("{tool} {}", sandbox.unwrap_or_default());
        self.note(what.trim_end(), if is_error { 422 } else { 200 }).await;
    }
}

fn pack_of(name: &str) -> Result<PackName> {
    PackName::ALL.into_iter().find(|pack| pack.name() == name).ok_or_else(|| {
        let names: Vec<&str> = PackName::ALL.iter().map(|pack| pack.name()).collect();
        Error::new(ErrorKind::NotFound, format!("there is no pack {name:?}"))
            .hint(format!("Use one of {}.", names.join(", ")))
    })
}
