//! What a client asks, passed on to a toolbox.

use crate::{resources, tools};
use cofferdam_core::{Error, ErrorKind, ErrorReport, Result};
use cofferdam_tools::{CallContext, Outcome, Progress, Scope, Toolbox};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// How many calls and reads of one client are at work at the same time; others wait for them.
pub const MAX_CALLS_AT_ONCE: usize = 64;
/// Tools that look how it stands and end what hangs: they answer soon, and have places of their own, for
/// whoever has all others in use needs them most.
const SOON_DONE: [&str; 2] = ["sandbox_status", "shell_kill"];
/// How many of these are at work at the same time.
const MAX_SOON_DONE: usize = 8;
/// How many reports of progress wait to be sent; more are left out, for the next tells more.
const REPORTS_WAITING: usize = 16;

/// How somebody reaches the toolbox of a request.
pub(crate) trait Reach: Send + Sync + 'static {
    /// The toolbox of this request, and what counts how many are at work.
    fn reach(&self, context: &RequestContext<RoleServer>) -> Result<Reached>;
}

/// What a request works with.
pub(crate) struct Reached {
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) at_work: AtWork,
    /// Ends this request, and may end others.
    pub(crate) given_up: CancellationToken,
    /// Where the request is known by its id as long as this is kept.
    pub(crate) known: Option<Box<dyn Send + Sync>>,
}

/// What one client has at work. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct AtWork {
    places: Arc<Semaphore>,
    soon_done: Arc<Semaphore>,
    /// Ends all of it.
    pub(crate) given_up: CancellationToken,
}

impl AtWork {
    pub(crate) fn new(given_up: CancellationToken) -> Self {
        let places = |most| Arc::new(Semaphore::new(most));
        Self { places: places(MAX_CALLS_AT_ONCE), soon_done: places(MAX_SOON_DONE), given_up }
    }

    /// Whether somebody else has it, too: whoever is at work does.
    #[cfg(feature = "http")]
    pub(crate) fn is_shared(&self) -> bool {
        [&self.places, &self.soon_done].into_iter().any(|places| Arc::strong_count(places) > 1)
    }

    /// Waits until nothing is at work any more, or `patience` is over, and lets nothing begin after
    /// that.
    pub(crate) async fn settle(&self, patience: Duration) {
        let all = |most: usize| u32::try_from(most).unwrap_or(u32::MAX);
        let idle = async {
            tokio::join!(
                self.places.acquire_many(all(MAX_CALLS_AT_ONCE)),
                self.soon_done.acquire_many(all(MAX_SOON_DONE)),
            )
        };
        let idle = tokio::time::timeout(patience, idle).await;
        self.places.close();
        self.soon_done.close();
        drop(idle);
    }

    /// A place for a call of this tool, or for something else, when there is one; none where no more begin.
    async fn place(self, tool: Option<&str>) -> Option<OwnedSemaphorePermit> {
        let is_soon_done = tool.is_some_and(|tool| SOON_DONE.contains(&tool));
        let places = if is_soon_done { self.soon_done } else { self.places };
        places.acquire_owned().await.ok()
    }
}

/// A request that has its place.
struct Begun {
    toolbox: Arc<Toolbox>,
    given_up: CancellationToken,
    _known: Option<Box<dyn Send + Sync>>,
    _place: OwnedSemaphorePermit,
}

/// The tools of a toolbox, as the protocol wants them asked for. Clones are the same.
pub struct Server {
    told: Arc<Told>,
    reach: Arc<dyn Reach>,
}

/// What is the same for every client.
struct Told {
    tools: Vec<Tool>,
    scope: Scope,
    instructions: String,
}

impl Clone for Server {
    fn clone(&self) -> Self {
        Self { told: Arc::clone(&self.told), reach: Arc::clone(&self.reach) }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("scope", &self.told.scope).finish_non_exhaustive()
    }
}

impl Server {
    /// Tells what `toolbox` has, and asks the one that is reached.
    pub(crate) async fn new(toolbox: &Toolbox, reach: Arc<dyn Reach>) -> Result<Self> {
        let tools = toolbox.tools().iter().map(tools::described).collect::<Result<_>>()?;
        let (scope, instructions) = (toolbox.scope(), toolbox.preamble().await);
        Ok(Self { told: Arc::new(Told { tools, scope, instructions }), reach })
    }

    /// The toolbox of a request, which may be a call of a tool, when there is room for one more.
    async fn begin(
        &self,
        context: &RequestContext<RoleServer>,
        tool: Option<&str>,
    ) -> Result<Begun, ErrorData> {
        let reached = self.reach.reach(context).map_err(|e| refused(&e))?;
        let Reached { toolbox, at_work, given_up, known } = reached;
        let canceled = async {
            tokio::select! {
                () = context.ct.cancelled() => {}
                () = given_up.cancelled() => {}
            }
        };
        tokio::select! {
            place = at_work.place(tool) => match place {
                Some(place) => Ok(Begun { toolbox, given_up, _known: known, _place: place }),
                None => Err(refused(&Error::new(ErrorKind::Unavailable, "the connection is closing"))),
            },
            () = canceled => {
                Err(refused(&Error::new(ErrorKind::Canceled, "the request was canceled")))
            }
        }
    }
}

/// Calls a tool and tells whoever wants to know how far it is.
async fn call(
    Begun { toolbox, given_up, .. }: &Begun,
    (name, arguments): (&str, Value),
    request: RequestContext<RoleServer>,
) -> Outcome {
    let (one, all) = (request.ct.clone(), given_up.clone());
    let context = CallContext::new().canceled_by(async move {
        tokio::select! {
            () = one.cancelled() => {}
            () = all.cancelled() => {}
        }
    });
    let Some(token) = request.meta.get_progress_token() else {
        return toolbox.call(name, arguments, context).await;
    };
    let (say, heard) = mpsc::channel(REPORTS_WAITING);
    // Who does not keep up hears less often.
    let context = context.with_progress(move |progress| drop(say.try_send(progress)));
    let called = toolbox.call(name, arguments, context);
    // ORDER: all reports before the answer, after which the client knows the token no more.
    tokio::join!(called, pass_on(heard, token, &request.peer)).0
}

async fn pass_on(
    mut heard: mpsc::Receiver<Progress>,
    token: ProgressToken,
    peer: &Peer<RoleServer>,
) {
    while let Some(progress) = heard.recv().await {
        let mut report = ProgressNotificationParam::new(token.clone(), progress.done)
            .with_message(progress.message);
        report.total = progress.total;
        // Whether somebody listens is not what the call depends on.
        peer.notify_progress(report).await.ok();
    }
}

/// An error as one of the protocol.
pub(crate) fn refused(error: &Error) -> ErrorData {
    let data = serde_json::to_value(ErrorReport::from(error)).ok();
    let data = data.and_then(|mut report| report.get_mut("error").map(Value::take));
    let message = match &error.hint {
        Some(hint) => format!("{}. {hint}", error.chain()),
        None => error.chain(),
    };
    match error.kind {
        ErrorKind::NotFound => ErrorData::resource_not_found(message, data),
        ErrorKind::Usage
        | ErrorKind::Config
        | ErrorKind::Conflict
        | ErrorKind::PathEscape
        | ErrorKind::NotAFile
        | ErrorKind::TooLarge
        | ErrorKind::Unsupported
        | ErrorKind::Denied => ErrorData::invalid_params(message, data),
        ErrorKind::Unenforceable
        | ErrorKind::Unavailable
        | ErrorKind::SetupFailed
        | ErrorKind::TimedOut
        | ErrorKind::Canceled
        | ErrorKind::Protocol
        | ErrorKind::Io => ErrorData::internal_error(message, data),
    }
}

/// A request that the SDK does not know by what it holds: its parameters are none that its method takes, or
/// nobody knows the method.
fn unknown(CustomRequest { method, params, .. }: &CustomRequest) -> ErrorData {
    let params = params.clone().unwrap_or_else(|| Value::Object(Default::default()));
    let (is, takes) = match method.as_str() {
        "tools/call" => (
            serde_json::from_value::<CallToolRequestParams>(params).err(),
            "Send params with name, the name of a tool, and arguments, an object.",
        ),
        "resources/read" => (
            serde_json::from_value::<ReadResourceRequestParams>(params).err(),
            "Send params with uri, the address of a resource.",
        ),
        _ => (None, ""),
    };
    match is {
        Some(is) => {
            refused(&Error::new(ErrorKind::Usage, format!("params of {method}: {is}")).hint(takes))
        }
        None => {
            let what = format!("{method} is not a method of this server");
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, what, None)
        }
    }
}

/// One page holds all of it.
fn refuse_cursor(request: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor.as_ref()) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("this list has one page and no cursor", None)),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let name = Implementation::new("cofferdam", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(self.told.instructions.clone())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        refuse_cursor(request.as_ref())?;
        Ok(ListToolsResult { tools: self.told.tools.clone(), ..Default::default() })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.told.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        let begun = self.begin(&context, Some(name)).await?;
        let is_known = self.get_tool(name).is_some();
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let outcome = call(&begun, (name, arguments), context).await;
        if !is_known {
            // The request itself makes no sense; the toolbox says which tools there are.
            return Err(ErrorData::invalid_params(outcome.text, None));
        }
        Ok(tools::result(outcome).into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown(&request))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let begun = self.begin(&context, None).await?;
        let cursor = request.and_then(|request| request.cursor);
        let listed = resources::list(&begun.toolbox, cursor.as_deref()).await;
        listed.map_err(|error| refused(&begun.toolbox.advised(error)))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        refuse_cursor(request.as_ref())?;
        Ok(resources::templates(self.told.scope))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let begun = self.begin(&context, None).await?;
        let read = resources::read(&begun.toolbox, &request.uri).await;
        read.map(Into::into).map_err(|error| refused(&begun.toolbox.advised(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_has_every_place_in_use_still_looks_and_ends_what_hangs() {
        let at_work = AtWork::new(CancellationToken::new());
        let mut in_use = Vec::new();
        for _ in 0..MAX_CALLS_AT_ONCE {
            in_use.push(at_work.clone().place(Some("shell_exec")).await.unwrap());
        }
        let soon = async |tool: Option<&'static str>| {
            let place = at_work.clone().place(tool);
            tokio::time::timeout(Duration::from_millis(50), place).await.ok()
        };
        for tool in SOON_DONE {
            assert!(matches!(soon(Some(tool)).await, Some(Some(_))), "{tool}");
        }
        for tool in [Some("shell_exec"), Some("nobody_knows"), None] {
            assert!(soon(tool).await.is_none(), "{tool:?}");
        }
        in_use.clear();
        at_work.settle(Duration::from_secs(9)).await;
        for tool in [Some("shell_kill"), None] {
            assert!(matches!(soon(tool).await, Some(None)), "nothing begins any more: {tool:?}");
        }
    }
}
