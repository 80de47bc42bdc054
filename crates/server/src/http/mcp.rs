//! The tools by the Model Context Protocol, at `/mcp`.

use super::door::{Door, Runs};
use super::error::Answer;
use super::extract::Raw;
use super::tools::{refuse_half, toolbox};
use crate::Server;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_mcp::MAX_MESSAGE_BYTES;
use cofferdam_mcp::http::{Owner, Service, Settings, no_message, service, too_long};
use cofferdam_tools::{PackName, Toolbox};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Where it is.
pub(super) const PATH: &str = "/mcp";

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
    Ok(service.handle(request).await.map(Body::new))
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
    (status, [(header::CONTENT_TYPE, "application/json")], answer).into_response()
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
