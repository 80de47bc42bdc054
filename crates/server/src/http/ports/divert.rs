//! Requests for the address of a port, which are passed on to whoever listens there.

use super::table::{Opened, WORD_LENGTH};
use crate::Server;
use crate::http::error::Problem;
use crate::http::guard::{Counted, MAX_STREAMS};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::{Authority, PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

/// What is between two neighbours alone (RFC 9110, 7.6.1).
const HOP_BY_HOP: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Passes a request on where its host is the address of a port, and nowhere else.
///
/// It comes before every other check: the word in the address is what lets a caller in, and what is
/// asked is for the program inside to judge. The sandbox is reached by its own loopback alone.
pub(in crate::http) async fn divert(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    let Some(word) = word_of(&server, &request) else { return next.run(request).await };
    let Some(opened) = server.0.ports.of_word(&word) else {
        let error = Error::new(ErrorKind::NotFound, "no port has this address any more")
            .hint("Have the port opened again.");
        return Problem::from(error).into_response();
    };
    pass_on(&server, opened, request).await.unwrap_or_else(IntoResponse::into_response)
}

/// The word in the name of the host, where the rest of the name is ours.
fn word_of(server: &Server, request: &Request) -> Option<String> {
    let host = request.headers().get(header::HOST)?.to_str().ok()?;
    let authority = host.parse::<Authority>().ok()?;
    let (word, rest) = authority.host().split_once('.')?;
    let domain = server.domain()?;
    let is_ours = domain.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case(rest));
    (is_ours && word.len() == WORD_LENGTH && !host.contains('@')).then(|| word.to_ascii_lowercase())
}

async fn pass_on(
    server: &Server,
    opened: Opened,
    mut request: Request,
) -> Result<Response, Problem> {
    let counted = server.0.streams.take(&opened.owner, MAX_STREAMS)?;
    let stream = opened.session.connect(opened.port).await.map_err(|error| {
        if error.kind == ErrorKind::NotFound {
            server.0.ports.forget(opened.session.id());
        }
        unreached(error)
    })?;
    let broken = |error: hyper::Error| {
        let what = "the program inside does not speak HTTP/1";
        unreached(Error::new(ErrorKind::Unavailable, what).source(error))
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with its two ends.
    tokio::spawn(connection.with_upgrades());
    let asked = wants_upgrade(request.headers()).then(|| hyper::upgrade::on(&mut request));
    prepare(&mut request, asked.is_some());
    let mut response = sender.send_request(request).await.map_err(broken)?;
    let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if let (true, Some(outside)) = (is_upgraded, asked) {
        let inside = hyper::upgrade::on(&mut response);
        tokio::spawn(carry(outside, inside, counted));
        return Ok(response.map(Body::new));
    }
    strip(response.headers_mut());
    // A stream counts until its last byte has gone.
    let (parts, body) = response.into_parts();
    Ok(Response::from_parts(parts, Body::new(Held { body, _counted: counted })))
}

fn unreached(error: Error) -> Problem {
    if matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TimedOut) {
        return Problem::with_status(StatusCode::BAD_GATEWAY, error);
    }
    error.into()
}

fn wants_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
        && headers.get_all(header::CONNECTION).iter().any(|value| {
            let words = value.to_str().unwrap_or_default().split(',');
            words.map(str::trim).any(|word| word.eq_ignore_ascii_case("upgrade"))
        })
}

/// Makes a request one of ours: from its path on, without what was meant for us.
fn prepare(request: &mut Request, upgrades: bool) {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    let upgrade = request.headers().get(header::UPGRADE).cloned().filter(|_| upgrades);
    strip(request.headers_mut());
    if let Some(upgrade) = upgrade {
        let headers = request.headers_mut();
        headers.insert(header::CONNECTION, header::HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
}

/// Takes out what is between neighbours, and what the field says that names such.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Carries bytes between two connections that speak something else from now on.
async fn carry(outside: OnUpgrade, inside: OnUpgrade, counted: Counted) {
    if let (Ok(outside), Ok(inside)) = tokio::join!(outside, inside) {
        // How a connection ends is a matter of its two ends.
        let _ = copy_bidirectional(&mut TokioIo::new(outside), &mut TokioIo::new(inside)).await;
    }
    drop(counted);
}

/// A body that counts as a stream.
struct Held {
    body: hyper::body::Incoming,
    _counted: Counted,
}

impl hyper::body::Body for Held {
    type Data = axum::body::Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
