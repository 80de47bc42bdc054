//! Packs of tools, for programs that carry a model's calls themselves.

use super::door::{Deed, Door, Looks, Runs};
use super::error::Answer;
use super::extract::{Body, Path};
use super::objects;
use crate::Server;
use axum::Json;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{KeyScope, SessionOrder};
use cofferdam_tools::{CallContext, PackName, Scope, Toolbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(call))
}

/// A pack of tools. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToolList {
    /// Its name.
    pub(crate) pack: String,
    /// What a model should know of the place that it works in, for its system prompt.
    pub(crate) preamble: String,
    /// The tools, in the order in which they are best shown.
    pub(crate) tools: Vec<ToolReport>,
}

/// A tool, as a model is told of it. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToolReport {
    /// Its name.
    pub(crate) name: String,
    /// A few words for people.
    pub(crate) title: String,
    /// What it does, for a model.
    pub(crate) description: String,
    /// What it takes, as a JSON Schema.
    pub(crate) input: Value,
    /// What it answers where it does not fail, as a JSON Schema.
    pub(crate) output: Option<Value>,
    /// It changes nothing.
    pub(crate) read_only: bool,
    /// It may remove or overwrite what cannot be brought back.
    pub(crate) destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub(crate) idempotent: bool,
    /// It may reach what is outside the sandbox.
    pub(crate) open_world: bool,
}

/// The arguments of a tool, as its own schema says.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct ToolArguments(Map<String, Value>);

/// What a call of a tool came to; an error is one too. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToolOutcome {
    /// Short, for a model.
    pub(crate) text: String,
    /// The same for a program, and whole.
    pub(crate) structured: Value,
    /// Whether what was asked for was not done.
    pub(crate) is_error: bool,
}

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

/// Calls a tool with the arguments in the body. It takes a key with every scope, for tools do everything.
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
) -> Answer<Json<ToolOutcome>> {
    refuse_half(&door)?;
    let toolbox = toolbox(&door, pack_of(&pack)?)?;
    if !toolbox.tools().iter().any(|known| known.name == tool) {
        let what = format!("pack {pack} has no tool {tool:?}");
        return Err(Error::new(ErrorKind::NotFound, what)
            .hint("List the tools of the pack.")
            .into());
    }
    let outcome = toolbox.call(&tool, Value::Object(arguments), CallContext::new()).await;
    let cofferdam_tools::Outcome { text, structured, is_error } = outcome;
    Ok(Json(ToolOutcome { text, structured, is_error }))
}

/// Refuses a caller who may not do everything: a tool's name does not say what it takes.
pub(super) fn refuse_half<D: Deed>(door: &Door<D>) -> Result<()> {
    KeyScope::ALL.into_iter().try_for_each(|scope| door.caller.may(scope))
}

/// A pack over the sandboxes of a caller. What it makes is what the operator says.
pub(super) fn toolbox<D: Deed>(door: &Door<D>, pack: PackName) -> Result<Toolbox> {
    let order = SessionOrder::new(door.ground()?.spec());
    Ok(Toolbox::new(pack, door.sessions.clone(), Scope::Named, order))
}

fn pack_of(name: &str) -> Result<PackName> {
    PackName::ALL.into_iter().find(|pack| pack.name() == name).ok_or_else(|| {
        let names: Vec<&str> = PackName::ALL.iter().map(|pack| pack.name()).collect();
        Error::new(ErrorKind::NotFound, format!("there is no pack {name:?}"))
            .hint(format!("Use one of {}.", names.join(", ")))
    })
}
