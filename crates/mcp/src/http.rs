//! Streamable HTTP, as a service that a server mounts.
//!
//! Nothing is kept between two requests: every call names its sandbox, whichever version of the
//! protocol the client speaks. What a client is given with its handshake (`Mcp-Session-Id`) only tells its
//! requests from those of other clients of the same owner, so that what it cancels is its own. Who asks
//! is the server's to find out: it puts an [`Owner`] into the extensions of the request, and one without
//! is refused.

use crate::MAX_MESSAGE_BYTES;
use crate::message::{error_message, fault};
use crate::open::{Aside, Open, SESSION, Sender, session};
use crate::server::{AtWork, Reach, Reached, Server, refused};
use bytes::Bytes;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_tools::{Scope, Toolbox};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Who asks, as the server that mounts the service knows. Two owners see nothing of each other as far
/// as the toolboxes that are made for them do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// What is mounted. Clones are the same.
#[derive(Clone)]
pub struct Service {
    sdk: StreamableHttpService<Server, NeverSessionManager>,
    open: Open,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl Service {
    /// Answers a request. What it asks for is given up where this is dropped, and where its owner cancels it
    /// (`notifications/cancelled`): another request, with the same session if the first one had any.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
        let (head, body) = request.into_parts();
        let (aside, sender) = (Aside::of(&body), Sender::of(&head));
        let is_known = head.headers.contains_key(SESSION);
        let request = Request::from_parts(head, Full::new(body));
        let mut response = self.sdk.handle(request).await;
        // ORDER: the SDK first, which refuses foreign hosts and pages.
        match (aside, sender) {
            (Some(Aside::Cancels(id)), Some(sender)) if response.status().is_success() => {
                self.open.give_up(sender, id);
            }
            (Some(Aside::Begins), _) if response.status().is_success() && !is_known => {
                // A client without it can do all but cancel what another one calls the same.
                if let Ok(session) = session() {
                    response.headers_mut().insert(SESSION, session);
                }
            }
            _ => {}
        }
        response
    }
}

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
    let open = Open::default();
    let (toolboxes, at_work) = (Box::new(toolboxes), Mutex::default());
    let each = Each { toolboxes, at_work, open: open.clone(), stop };
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
    let sdk = StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
    Ok(Service { sdk, open })
}

/// What is answered to a body that is no message, with its status; none where it is one.
///
/// The SDK answers these in plain text, which no client of the protocol reads.
pub fn no_message(body: &[u8]) -> Option<(StatusCode, Vec<u8>)> {
    if body.len() > MAX_MESSAGE_BYTES {
        return Some(too_long());
    }
    let (error, id) = fault(body)?;
    Some((StatusCode::BAD_REQUEST, error_message(&error, &id)))
}

/// Whether a body is the message that a client sends to give up a request of its own.
pub fn is_cancellation(body: &[u8]) -> bool {
    matches!(Aside::of(body), Some(Aside::Cancels(_)))
}

/// The same for a body that is longer than a message may be.
pub fn too_long() -> (StatusCode, Vec<u8>) {
    let what = format!("the message has more than {MAX_MESSAGE_BYTES} bytes");
    let error = Error::new(ErrorKind::TooLarge, what).hint("Send it in parts.");
    let error = ErrorData { code: ErrorCode::INVALID_REQUEST, ..refused(&error) };
    (StatusCode::PAYLOAD_TOO_LARGE, error_message(&error, &Value::Null))
}

type Toolboxes = dyn Fn(&Owner) -> Result<Arc<Toolbox>> + Send + Sync;

/// The toolboxes of the owners that ask.
struct Each {
    toolboxes: Box<Toolboxes>,
    /// What each owner has at work, while there is something.
    at_work: Mutex<HashMap<Owner, AtWork>>,
    /// What of it a client may cancel.
    open: Open,
    stop: CancellationToken,
}

impl Reach for Each {
    fn reach(&self, context: &RequestContext<RoleServer>) -> Result<Reached> {
        let request = context.extensions.get::<http::request::Parts>();
        let sender = request.and_then(Sender::of).ok_or_else(|| {
            Error::new(ErrorKind::Denied, "nobody knows who sent this request")
                .hint("Put a layer that authenticates before the service.")
        })?;
        let toolbox = (self.toolboxes)(sender.owner())?;
        let at_work = self.at_work_of(sender.owner());
        let given_up = at_work.given_up.child_token();
        let entry = self.open.enter(sender, context.id.clone(), given_up.clone());
        Ok(Reached { toolbox, at_work, given_up, known: Some(Box::new(entry)) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_message_is_an_error_of_the_protocol() {
        let check = |body: &str, code: i32, id: Value| {
            let (status, answer) = no_message(body.as_bytes()).unwrap();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
            assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &id), "{body}");
            assert_eq!(answer["error"]["code"], code, "{body}");
            assert!(answer["error"]["data"]["hint"].is_string(), "{answer}");
        };
        for broken in ["", "{", "no", "\u{0}", "\"x", "{\"params\": {\"id\": 1"] {
            check(broken, -32700, Value::Null);
        }
        // What is cut, or holds half a character, is answered to whoever waits.
        check("{\"jsonrpc\": \"2.0\", \"id\": 1,", -32700, json!(1));
        check("{\"id\": \"a\", \"method\": \"\\ud83d\"}", -32700, json!("a"));
        check(&"[".repeat(100_000), -32700, Value::Null);
        for (other, id) in [
            ("null", Value::Null),
            ("{}", Value::Null),
            ("{\"id\": 7}", json!(7)),
            ("{\"jsonrpc\": \"1.0\", \"id\": \"a\", \"method\": \"ping\"}", json!("a")),
            ("[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]", Value::Null),
        ] {
            check(other, -32600, id);
        }
        for good in [
            "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}",
            "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"nobody/knows\", \"params\": {\"a\": 1}}",
            "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}",
        ] {
            assert_eq!(no_message(good.as_bytes()), None, "{good}");
        }
    }

    #[test]
    fn a_body_that_is_too_long_is_told_the_limit() {
        let (status, answer) = no_message(&vec![b' '; MAX_MESSAGE_BYTES + 1]).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(
            (status, &answer["error"]["code"]),
            (StatusCode::PAYLOAD_TOO_LARGE, &json!(-32600))
        );
        assert_eq!(answer["error"]["data"]["kind"], "too_large");
    }
}
