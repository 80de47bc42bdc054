//! The tools by the Model Context Protocol, at `/mcp`.

use super::door::{Door, Runs};
use super::error::Answer;
use super::tools::{refuse_half, toolbox};
use crate::Server;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_mcp::http::{Owner, Service, Settings, service};
use cofferdam_tools::{PackName, Toolbox};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use tower::ServiceExt;

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
    match service.oneshot(request).await {
        Ok(response) => Ok(response.map(Body::new).into_response()),
        Err(never) => match never {},
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
