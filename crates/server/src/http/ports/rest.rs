//! Addresses of ports: given, listed, taken back.

use super::table::Opened;
use crate::Server;
use crate::http::auth::Caller;
use crate::http::door::{Deed, Door, Runs};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path};
use crate::http::objects;
use async_trait::async_trait;
use axum::Json;
use axum::http::StatusCode;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::Session;
use cofferdam_tools::Expose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(open, list)).routes(routes!(close))
}

/// A port that is to have an address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PortWish {
    /// The port inside, from 1 to 65535.
    pub(crate) port: u16,
}

/// A port inside, and where it is reached. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PortReport {
    /// The port inside.
    pub(crate) port: u16,
    /// Where it is reached by HTTP, web sockets included. Whoever knows it needs no key, so it is a
    /// secret; nobody can guess it. It ends with the server, with the sandbox, with the key by which it was
    /// opened, and when it is closed.
    pub(crate) url: String,
}

/// The ports of a sandbox that have an address. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PortList {
    /// By port.
    pub(crate) ports: Vec<PortReport>,
}

/// Gives a port of a sandbox an address that a browser can open: every request for that host is passed to
/// whoever listens on the port inside. A port that has one keeps it.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/ports", tag = "ports",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::PortOrder, responses(
    (status = 200, description = "It has an address already.", body = objects::Port),
    (status = 201, description = "It has an address now.", body = objects::Port),
))]
async fn open(
    door: Door<Runs>,
    Path(sandbox): Path<String>,
    Body(wish): Body<PortWish>,
) -> Answer<(StatusCode, Json<PortReport>)> {
    let session = door.session(&sandbox).await?;
    let PortWish { port } = wish;
    if port == 0 {
        return Err(Error::new(ErrorKind::Usage, "no program listens on port 0")
            .hint("Use a port from 1 to 65535.")
            .into());
    }
    let domain = domain(&door.server)?;
    forget_revoked(&door.server).await?;
    forget_gone(&door.server, &door.caller).await?;
    let caller = door.caller.clone();
    let (word, is_new) = door.server.0.ports.open(Opened { caller, session, port })?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(PortReport { port, url: url(&domain, &word) })))
}

/// The ports of a sandbox that have an address.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/ports", tag = "ports",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "All of them.", body = objects::Ports),
))]
async fn list(door: Door<Runs>, Path(sandbox): Path<String>) -> Answer<Json<PortList>> {
    let session: Session = door.session(&sandbox).await?;
    forget_revoked(&door.server).await?;
    let known = door.server.0.ports.of_session(session.id());
    if known.is_empty() {
        return Ok(Json(PortList { ports: Vec::new() }));
    }
    let domain = domain(&door.server)?;
    let report = |(port, word): (u16, String)| PortReport { port, url: url(&domain, &word) };
    Ok(Json(PortList { ports: known.into_iter().map(report).collect() }))
}

/// Takes the address from a port. Connections that stand go on.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/ports/{port}", tag = "ports",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("port" = u16, Path, description = "The port inside.")), responses(
    (status = 204, description = "It has no address any more."),
))]
async fn close(door: Door<Runs>, Path((sandbox, port)): Path<(String, u16)>) -> Answer<StatusCode> {
    let session = door.session(&sandbox).await?;
    if door.server.0.ports.close(session.id(), port) {
        return Ok(StatusCode::NO_CONTENT);
    }
    let what = format!("port {port} of this sandbox has no address");
    Err(Error::new(ErrorKind::NotFound, what).hint("List the ports of the sandbox.").into())
}

/// Gives ports of one caller's sandboxes their addresses, for tools.
pub(in crate::http) struct Exposer {
    server: Server,
    caller: Caller,
}

impl Exposer {
    /// None where ports have no addresses here.
    pub(in crate::http) fn of<D: Deed>(door: &Door<D>) -> Option<Self> {
        let (server, caller) = (door.server.clone(), door.caller.clone());
        server.domain().is_some().then_some(Self { server, caller })
    }
}

#[async_trait]
impl Expose for Exposer {
    async fn expose(&self, session: &Session, port: u16) -> Result<String> {
        let domain = domain(&self.server)?;
        forget_revoked(&self.server).await?;
        forget_gone(&self.server, &self.caller).await?;
        let opened = Opened { caller: self.caller.clone(), session: session.clone(), port };
        Ok(url(&domain, &self.server.0.ports.open(opened)?.0))
    }
}

/// Takes the addresses from ports whose keys were revoked.
async fn forget_revoked(server: &Server) -> Result<()> {
    for prefix in server.0.ports.keys() {
        if !server.0.sessions.key_is_good(&prefix).await? {
            server.0.ports.forget_key(&prefix);
        }
    }
    Ok(())
}

/// Takes the addresses from ports of sandboxes that are gone, before they leave no room for others: nobody
/// can close them by their sandbox any more.
async fn forget_gone(server: &Server, caller: &Caller) -> Result<()> {
    for session in server.0.ports.in_the_way(caller) {
        match session.sessions().status(session.id()).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                server.0.ports.forget(session.id());
            }
            found => drop(found?),
        }
    }
    Ok(())
}

fn domain(server: &Server) -> Result<String> {
    server.domain().ok_or_else(|| {
        let what = "this server has no name under which ports could have addresses";
        Error::new(ErrorKind::Unsupported, what).hint(
            "Have the operator start it on 127.0.0.1 or with --port-domain, or connect over the \
             WebSocket of the port.",
        )
    })
}

fn url(domain: &str, word: &str) -> String {
    // Where a server is reached from elsewhere, somebody in front of it speaks TLS.
    let scheme = if is_here(domain) { "http" } else { "https" };
    format!("{scheme}://{word}.{domain}/")
}

fn is_here(domain: &str) -> bool {
    domain.split(':').next() == Some("localhost")
}
