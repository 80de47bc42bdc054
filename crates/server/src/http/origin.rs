//! Which hosts a request may name, and which pages may ask.
//!
//! A page in a browser on this machine reaches a server that listens on loopback, by a name of its own
//! that it lets point here. Such a request names that host. A name is therefore refused unless it is
//! known; a number is none that a page could have bent.

use super::error::Problem;
use crate::Server;
use crate::serve::Way;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};
use std::net::IpAddr;

/// What a page that is allowed may send.
const HEADERS: &str = "authorization, content-type, idempotency-key, last-event-id, \
                       mcp-protocol-version, mcp-session-id";
/// What it may read of an answer, beside what any page may: a session of the Model Context Protocol is named
/// by a header, and each later request of it has to name it.
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id");
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";

/// Refuses a request for another host.
pub(super) fn check_host(server: &Server, request: &Request) -> Result<(), Problem> {
    if request.extensions().get::<Way>() == Some(&Way::Unix) {
        // No browser reaches the file of a socket.
        return Ok(());
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    };
    let also = request.uri().authority().map(Authority::as_str);
    let is_good = |host: &str| is_known(host, &server.0.options.hosts);
    if named.is_some_and(is_good) && also.is_none_or(is_good) {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Denied, "this server does not have that host's name")
        .hint("Ask by its address, or have the operator allow the name with --allow-host.");
    Err(Problem::with_status(StatusCode::MISDIRECTED_REQUEST, error))
}

/// Whether a host, with or without a port, is a number, this machine, or allowed by name.
fn is_known(host: &str, allowed: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    if host.contains('@') {
        return false;
    }
    let name = authority.host();
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// The origin of the page that asks, if it is one that may.
pub(super) fn allowed(server: &Server, request: &Request) -> Option<HeaderValue> {
    let origin = request.headers().get(header::ORIGIN)?;
    let is_allowed = |known: &String| known.as_bytes() == origin.as_bytes();
    server.0.options.origins.iter().any(is_allowed).then(|| origin.clone())
}

/// Refuses a page that nobody allowed, and answers the question whether another one may ask.
pub(super) fn check_origin(
    server: &Server,
    request: &Request,
) -> Result<Option<Response>, Problem> {
    if request.headers().get(header::ORIGIN).is_none() {
        return Ok(None);
    }
    if allowed(server, request).is_none() {
        return Err(Error::new(ErrorKind::Denied, "no page of that origin may ask this server")
            .hint("Have the operator allow it with --allow-origin.")
            .into());
    }
    let asks_first = *request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    Ok(asks_first.then(|| {
        let headers = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        ];
        (StatusCode::NO_CONTENT, headers).into_response()
    }))
}

/// Lets the page see the answer.
pub(super) fn allow(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_or_refused() {
        let allowed = ["box.example".to_owned()];
        for good in [
            "127.0.0.1",
            "127.0.0.1:7070",
            "[::1]:7070",
            "[::1]",
            "localhost",
            "LOCALHOST:1",
            "10.0.0.1:80",
            "box.example",
            "Box.Example:443",
        ] {
            assert!(is_known(good, &allowed), "{good}");
        }
        for bad in [
            "",
            "evil.test",
            "evil.test:7070",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "x@127.0.0.1",
            "box.example.evil.test",
            "127.0.0.1 evil.test",
            "localhost.",
        ] {
            assert!(!is_known(bad, &allowed), "{bad}");
        }
    }
}
