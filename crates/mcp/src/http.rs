//! Streamable HTTP, as a service that a server mounts.
//!
//! Nothing is kept between two requests: every call names its sandbox, whichever version of the
//! protocol the client speaks. Who asks is the server's to find out: it puts an [`Owner`] into the
//! extensions of the request, and one without is refused.

use crate::MAX_MESSAGE_BYTES;
use crate::server::{AtWork, Reach, Reached, Server};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_tools::{Scope, Toolbox};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Who asks, as the server that mounts the service knows. Two owners see nothing of each other as far
/// as the toolboxes that are made for them do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// What is mounted: a tower service over requests of any body.
pub type Service = StreamableHttpService<Server, NeverSessionManager>;

/// Which requests are served, and until when.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The hosts that a request may name, with or without a port. Empty where whoever mounts the
    /// service looks at `Host` and `Origin` before it.
    pub hosts: Vec<String>,
    /// The origins that a browser may name, as `https://app.example.com:443`. None where `hosts` is not
    /// empty: then every request from a page is refused.
    pub origins: Vec<String>,
    /// Ends what is being served.
    pub stop: CancellationToken,
}

/// The service. Each request works with the toolbox that `toolboxes` makes for its owner, which is to
/// have the pack of `told` and [`Scope::Named`].
pub async fn service(
    told: &Toolbox,
    toolboxes: impl Fn(&Owner) -> Result<Arc<Toolbox>> + Send + Sync + 'static,
    settings: Settings,
) -> Result<Service> {
    if told.scope() != Scope::Named {
        let what = "over HTTP there is no connection that a sandbox could belong to";
        return Err(Error::new(ErrorKind::Usage, what).hint("Make the toolbox with Scope::Named."));
    }
    let stop = settings.stop.clone();
    let each = Each { toolboxes: Box::new(toolboxes), at_work: Mutex::default(), stop };
    let server = Server::new(told, Arc::new(each)).await?;
    let mut config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .with_cancellation_token(settings.stop);
    config = if settings.hosts.is_empty() {
        config.disable_allowed_hosts()
    } else {
        config.with_allowed_hosts(settings.hosts).enforce_origin_validation()
    };
    let config = config.with_allowed_origins(settings.origins);
    Ok(Service::new(move || Ok(server.clone()), Arc::default(), config))
}

type Toolboxes = dyn Fn(&Owner) -> Result<Arc<Toolbox>> + Send + Sync;

/// The toolboxes of the owners that ask.
struct Each {
    toolboxes: Box<Toolboxes>,
    /// What each owner has at work, while there is something.
    at_work: Mutex<HashMap<Owner, AtWork>>,
    stop: CancellationToken,
}

impl Reach for Each {
    fn reach(&self, context: &RequestContext<RoleServer>) -> Result<Reached> {
        let request = context.extensions.get::<http::request::Parts>();
        let owner = request.and_then(|request| request.extensions.get::<Owner>());
        let owner = owner.ok_or_else(|| {
            Error::new(ErrorKind::Denied, "nobody knows who sent this request")
                .hint("Put a layer that authenticates before the service.")
        })?;
        let toolbox = (self.toolboxes)(owner)?;
        Ok(Reached { toolbox, at_work: self.at_work_of(owner) })
    }
}

impl Each {
    fn at_work_of(&self, owner: &Owner) -> AtWork {
        let mut all = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has nothing at work is forgotten, so that this does not grow with all who ever asked.
        all.retain(|known, at_work| known == owner || at_work.is_shared());
        let own = all.entry(owner.clone());
        own.or_insert_with(|| AtWork::new(self.stop.clone())).clone()
    }
}
