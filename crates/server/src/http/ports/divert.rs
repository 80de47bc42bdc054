//! Requests for the address of a port, which are passed on to whoever listens there.

use super::table::{Opened, WORD_LENGTH};
use crate::Server;
use crate::http::error::Problem;
use crate::http::guard::{Counted, Reason, tell_known};
use crate::http::head::fields_length;
use crate::stalling::Stalling;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::{Authority, PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::KEY_MARK;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::copy_bidirectional;
use tokio::task::JoinHandle;

/// The longest head of an answer of a program inside, in bytes.
const MAX_ANSWER_HEAD_BYTES: usize = 256 << 10;
/// The most fields in it: as many as the library reads.
const MAX_ANSWER_FIELDS: usize = 100;

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
    match opened(&server, &word).await {
        Ok(opened) => pass_on(&server, opened, request).await,
        Err(error) => Err(error.into()),
    }
    .unwrap_or_else(IntoResponse::into_response)
}

/// What the address with this word is of, as long as the key is good by which it was opened.
async fn opened(server: &Server, word: &str) -> Result<Opened, Error> {
    let missing = || {
        Error::new(ErrorKind::NotFound, "no port has this address any more")
            .hint("Have the port opened again.")
    };
    let opened = server.0.ports.of_word(word).ok_or_else(missing)?;
    if let Some(prefix) = opened.key()
        && !server.0.sessions.key_is_good(prefix).await?
    {
        server.0.ports.forget_key(prefix);
        return Err(missing());
    }
    Ok(opened)
}

/// The word in the name of the host, where the rest of the name is ours.
fn word_of(server: &Server, request: &Request) -> Option<String> {
    // Two of them are for two programs: who has the answer is not for a server to choose.
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let host = host.to_str().ok()?;
    let authority = host.parse::<Authority>().ok()?;
    // Of a request line with a whole address the same holds.
    if request.uri().authority().is_some_and(|asked| *asked != authority) {
        return None;
    }
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
    let counted = opened.caller.stream(server)?;
    tell_known(&request);
    let stream = opened.session.connect(opened.port).await.map_err(|error| {
        if error.kind == ErrorKind::NotFound {
            server.0.ports.forget(opened.session.id());
        }
        unreached(error)
    })?;
    let mut speaking = http1::Builder::new();
    speaking.max_buf_size(MAX_ANSWER_HEAD_BYTES);
    let spoken = speaking.handshake(TokioIo::new(Stalling::inward(stream))).await;
    let (mut sender, connection) = spoken.map_err(broken)?;
    // It ends with its two ends, or with whoever holds this.
    let inside = Inside(tokio::spawn(connection.with_upgrades()));
    let asked = wants_upgrade(request.headers()).then(|| hyper::upgrade::on(&mut request));
    prepare(&mut request, asked.is_some());
    let mut response = tokio::select! {
        response = sender.send_request(request) => response.map_err(broken)?,
        () = counted.loses_its_key() => return Err(revoked().into()),
    };
    // Whoever reads it takes more than that at once.
    if fields_length(response.headers()) > MAX_ANSWER_HEAD_BYTES {
        return Err(wrong(&too_long()));
    }
    let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if let (true, Some(outside)) = (is_upgraded, asked) {
        let upgraded = hyper::upgrade::on(&mut response);
        keep_cookies_apart(response.headers_mut());
        tokio::spawn(carry(outside, upgraded, (counted, inside)));
        return Ok(response.map(Body::new));
    }
    if is_upgraded {
        // Nobody would carry what comes behind it.
        return Err(wrong(
            "the program inside changes to another protocol, for which nobody asked",
        ));
    }
    strip(response.headers_mut());
    keep_cookies_apart(response.headers_mut());
    // A stream counts until its last byte has gone.
    let (parts, body) = response.into_parts();
    let over = counted.loses_its_key();
    let held = Held { body, over, _held: (counted, inside) };
    Ok(Response::from_parts(parts, Body::new(held)))
}

fn revoked() -> Error {
    Error::new(ErrorKind::Denied, "the key was revoked by which this port was opened")
        .hint("Have the port opened again.")
}

/// The connection to the program inside.
struct Inside(JoinHandle<hyper::Result<()>>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn broken(error: hyper::Error) -> Problem {
    let what = match error.is_parse_too_large() {
        true => too_long(),
        false => "the program inside does not speak HTTP/1".to_owned(),
    };
    unreached(Error::new(ErrorKind::Unavailable, what).source(error))
}

fn too_long() -> String {
    format!(
        "the head of what the program inside answers has more than {MAX_ANSWER_HEAD_BYTES} bytes or \
         {MAX_ANSWER_FIELDS} fields"
    )
}

fn wrong(what: &str) -> Problem {
    unreached(Error::new(ErrorKind::Unavailable, what))
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
    let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    strip(request.headers_mut());
    let headers = request.headers_mut();
    keep_key(headers);
    if is_chunked {
        // Of some methods a body is sent only where this says that there is one.
        headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
}

/// Takes out a key of ours. Who asks for a port needs none, and a client that sends it with whatever it asks this server
/// would hand the program inside all that its key may.
fn keep_key(headers: &mut HeaderMap) {
    let is_ours = |value: &HeaderValue| {
        let mut words =
            value.as_bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.any(|word| word.starts_with(KEY_MARK.as_bytes()))
    };
    if headers.get_all(header::AUTHORIZATION).iter().any(is_ours) {
        headers.remove(header::AUTHORIZATION);
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
        // Whom a request is for is nothing between neighbours, whatever the field says.
        .filter(|name| name != header::HOST)
        .collect();
    for name in named {
        headers.remove(name);
    }
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // What is said beside it of the length counts for nobody, least of all for who comes next.
        headers.remove(header::CONTENT_LENGTH);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Has each cookie go back to this address alone: one of a whole domain would go to what others run.
fn keep_cookies_apart(headers: &mut HeaderMap) {
    let header::Entry::Occupied(mut cookies) = headers.entry(header::SET_COOKIE) else { return };
    for cookie in cookies.iter_mut() {
        if let Some(apart) = without_domain(cookie.as_bytes())
            && let Ok(apart) = HeaderValue::from_bytes(&apart)
        {
            *cookie = apart;
        }
    }
}

/// The cookie without its attribute `Domain`, where it has one.
fn without_domain(cookie: &[u8]) -> Option<Vec<u8>> {
    let is_domain = |part: &[u8]| {
        let name = part.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"domain")
    };
    let parts = || cookie.split(|byte| *byte == b';').enumerate();
    let kept = |(at, part): &(usize, &[u8])| *at == 0 || !is_domain(part);
    if parts().all(|part| kept(&part)) {
        return None;
    }
    let parts: Vec<&[u8]> = parts().filter(kept).map(|(_, part)| part).collect();
    Some(parts.join(&b';'))
}

/// Carries bytes between two connections that speak something else from now on.
async fn carry(outside: OnUpgrade, inside: OnUpgrade, (counted, held): (Counted, Inside)) {
    if let (Ok(outside), Ok(inside)) = tokio::join!(outside, inside) {
        let (mut outside, mut inside) = (TokioIo::new(outside), TokioIo::new(inside));
        tokio::select! {
            // How a connection ends is a matter of its two ends.
            _ = copy_bidirectional(&mut outside, &mut inside) => {}
            () = counted.loses_its_key() => {}
        }
    }
    drop((counted, held));
}

/// A body that counts as a stream, and ends with the key of its caller.
struct Held {
    body: hyper::body::Incoming,
    over: Reason<()>,
    _held: (Counted, Inside),
}

impl hyper::body::Body for Held {
    type Data = axum::body::Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Box::new(revoked()))));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(axum::BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_ours_reaches_no_program_inside() {
        for (said, passes) in [
            ("Bearer cfd_0011", false),
            ("bearer   cfd_0011", false),
            ("cfd_0011", false),
            ("Bearer its-own", true),
            ("Basic dTpjZmRf", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(said));
            keep_key(&mut headers);
            assert_eq!(headers.contains_key(header::AUTHORIZATION), passes, "{said}");
        }
    }

    #[test]
    fn a_cookie_goes_back_to_its_own_address_alone() {
        let mut headers = HeaderMap::new();
        for cookie in [
            "sid=1; Domain=boxes.test; Path=/",
            "a=b;DOMAIN = .boxes.test",
            "c=d; domain",
            "domain=boxes.test; Secure",
            "e=f; Path=/domain=x",
        ] {
            headers.append(header::SET_COOKIE, HeaderValue::from_static(cookie));
        }
        keep_cookies_apart(&mut headers);
        let left: Vec<&str> = headers
            .get_all(header::SET_COOKIE)
            .iter()
            .map(|cookie| cookie.to_str().unwrap())
            .collect();
        let own = "domain=boxes.test; Secure";
        assert_eq!(left, ["sid=1; Path=/", "a=b", "c=d", own, "e=f; Path=/domain=x"]);
    }

    #[test]
    fn what_is_sent_in_pieces_has_no_other_length() {
        let mut headers = HeaderMap::new();
        headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("2"));
        strip(&mut headers);
        assert!(headers.is_empty(), "{headers:?}");
        let mut request = Request::new(Body::empty());
        let chunked = HeaderValue::from_static("chunked");
        request.headers_mut().insert(header::TRANSFER_ENCODING, chunked.clone());
        prepare(&mut request, false);
        assert_eq!(request.headers().get(header::TRANSFER_ENCODING), Some(&chunked));
    }
}
