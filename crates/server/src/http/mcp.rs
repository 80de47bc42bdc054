//! The tools by the Model Context Protocol, at `/mcp`.

use super::door::{Door, Runs};
use super::error::{Answer, Problem};
use super::extract::Raw;
use super::tools::{refuse_half, toolbox};
use crate::Server;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_mcp::MAX_MESSAGE_BYTES;
use cofferdam_mcp::http::{
    Owner, Service, Settings, is_cancellation, no_message, service, too_long,
};
use cofferdam_tools::{PackName, Toolbox};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Where it is.
pub(super) const PATH: &str = "/mcp";

/// How many cancellations of one owner are answered at once beside other requests.
pub(super) const MAX_CANCELS: u32 = 8;
/// The longest message that is looked at for one, in bytes: it has an id and a reason.
const MAX_CANCEL_BYTES: usize = 4096;

/// What its messages are.
const JSON: &str = "application/json";
/// The most of what the SDK says in plain text that is passed on, in bytes.
const MAX_SAID_BYTES: usize = 4096;

/// The service, from its first request on, and the toolboxes of those who asked.
#[derive(Default)]
pub(crate) struct Mounted {
    service: OnceCell<Service>,
    /// That of each key as it was last: at most one for each key that there is.
    toolboxes: Arc<Mutex<HashMap<String, Arc<Toolbox>>>>,
}

impl std::fmt::Debug for Mounted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mounted").finish_non_exhaustive()
    }
}

/// The same request, where it cancels another one.
pub(super) async fn cancellation(request: Request) -> Option<Request> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST || head.uri.path() != PATH {
        return None;
    }
    // HOSTILE: no more is read than a cancellation has.
    let body = to_bytes(body, MAX_CANCEL_BYTES).await.ok()?;
    is_cancellation(&body).then(|| Request::from_parts(head, Body::from(body)))
}

pub(super) fn routes() -> axum::Router<Server> {
    axum::Router::new().route(PATH, any(answer))
}

async fn answer(
    State(server): State<Server>,
    door: Door<Runs>,
    mut request: Request,
) -> Answer<Response> {
    refuse_half(&door)?;
    let toolbox = Arc::new(toolbox(&door, PackName::Cofferdam)?);
    let mounted = &server.0.mcp;
    let service = mounted.service.get_or_try_init(|| mounted.begin(&toolbox)).await?.clone();
    let who = door.caller.key.as_ref().map_or_else(String::new, |key| key.prefix.clone());
    {
        let mut all = mounted.toolboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(who.clone(), toolbox);
    }
    request.extensions_mut().insert(Owner(who));
    let request = match message(request).await {
        Ok(request) => request,
        Err(answer) => return Ok(answer),
    };
    Ok(as_everywhere(service.handle(request).await.map(Body::new)).await)
}

/// The request with its body read, or what is answered where that is no message.
async fn message(request: Request) -> Result<Request<Bytes>, Response> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return Ok(Request::from_parts(head, Bytes::new()));
    }
    let mut again = Request::from_parts(head.clone(), body);
    DefaultBodyLimit::max(MAX_MESSAGE_BYTES).apply(&mut again);
    let body = match Raw::from_request(again, &()).await {
        Ok(Raw(body)) => body,
        Err(problem) if problem.report().kind == ErrorKind::TooLarge.name() => {
            return Err(told(too_long()));
        }
        Err(problem) => return Err(problem.into_response()),
    };
    match no_message(&body) {
        None => Ok(Request::from_parts(head, body)),
        Some(answer) => Err(told(answer)),
    }
}

fn told((status, answer): (StatusCode, Vec<u8>)) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], answer).into_response()
}

/// An answer of the SDK. What it says in plain text, of a request that is none for it, is told as any
/// route tells it.
async fn as_everywhere(response: Response) -> Response {
    let status = response.status();
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    let (what, hint) = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            ("this path does not take this method".to_owned(), "Send each message by POST.")
        }
        StatusCode::NOT_ACCEPTABLE => (
            "an answer is JSON or a stream of events, and the request does not take both"
                .to_owned(),
            "Send accept: application/json, text/event-stream.",
        ),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            "the body is not marked as JSON".to_owned(),
            "Send it with content-type: application/json.",
        ),
        other if other.is_client_error() && !is_json => (
            plain(response.into_body()).await,
            "See how the Model Context Protocol sends messages over HTTP.",
        ),
        _ => return response,
    };
    let error = Error::new(ErrorKind::Usage, what).hint(hint);
    let mut told = Problem::with_status(status, error).into_response();
    let takes = match status {
        StatusCode::METHOD_NOT_ALLOWED => Some((header::ALLOW, "POST")),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some((header::ACCEPT, JSON)),
        _ => None,
    };
    if let Some((name, value)) = takes {
        told.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    told
}

/// What the SDK says, without the name of its status.
async fn plain(body: Body) -> String {
    let bytes = to_bytes(body, MAX_SAID_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let said = text.strip_prefix("Bad Request: ").unwrap_or(&text);
    let said: String = said.chars().filter(|c| !c.is_control()).collect();
    match said.is_empty() {
        true => "the request is none of the protocol".to_owned(),
        false => format!("the request is none of the protocol: {said}"),
    }
}

impl Mounted {
    async fn begin(&self, told: &Toolbox) -> Result<Service> {
        let toolboxes = Arc::clone(&self.toolboxes);
        let of = move |owner: &Owner| {
            let all = toolboxes.lock().unwrap_or_else(PoisonError::into_inner);
            let own = all.get(&owner.0).cloned();
            own.ok_or_else(|| Error::new(ErrorKind::Denied, "nobody knows who sent this request"))
        };
        // Host and origin were looked at before.
        service(told, of, Settings::default()).await
    }
}
