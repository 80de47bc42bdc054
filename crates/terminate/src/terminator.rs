//! One connection, from the sandbox's TLS to the host's.

use crate::authority::Authority;
use crate::body::{Seen, Watched};
use crate::injector::{Injector, length};
use crate::upstream::Upstream;
use crate::watch::Sighting;
use bytes::Bytes;
use cofferdam_core::{Error, ErrorKind, Result};
use http::header::{self, HeaderName};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How long either side may take to agree on TLS.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long whoever caused an alarm hears nothing: its holder is to stop it before it knows.
pub const HOLDS_BACK: Duration = Duration::from_secs(2);
/// How long a connection on which something was seen, or that ended inside, may take to end outside.
pub const FAREWELL_WITHIN: Duration = Duration::from_secs(2);
/// How long the sandbox may take for the head of a request, the wait for a next one included.
pub const HEAD_WITHIN: Duration = Duration::from_secs(120);
/// The longest head of a request or an answer, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How many headers either may have.
pub const MAX_HEADERS: usize = 128;

/// How much of what a client said is repeated.
const MAX_QUOTED_CHARS: usize = 100;

/// What is answered to the sandbox: the host's own body, or words of ours.
type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;

/// Ends TLS for the hosts that have a secret.
#[derive(Debug, Clone)]
pub struct Terminator {
    authority: Arc<Authority>,
    injector: Arc<Injector>,
    upstream: Upstream,
}

/// What the holder of a terminator is told while a connection lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something was on its way that must not go there, and did not.
    Alarm(Sighting),
    /// A request was refused for what it is, in these words. The connection ends with the answer.
    Refused(String),
    /// A request got no answer of the host's that could be passed on, for this reason.
    Failed(String),
}

/// What went over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminated {
    /// How many requests were sent on.
    pub requests: u64,
}

impl Terminator {
    /// For one session.
    pub fn new(authority: Arc<Authority>, injector: Arc<Injector>, upstream: Upstream) -> Self {
        Self { authority, injector, upstream }
    }

    /// Serves one connection of the sandbox to its end.
    ///
    /// `host` is the name that the sandbox asked for, in lower case, and `port` its port; a client that
    /// says another name in TLS or in a request is refused. `dial` connects to an address that was checked,
    /// as often as the host hangs up between requests. `told` is called at once for what must not go to this
    /// host, whether it is in a head or in a body, and whether or not the host has answered already; the
    /// request that has it does not go there as a whole, and the connection ends.
    ///
    /// Fails where the client did not agree on TLS; what fails later is an answer to the client.
    pub async fn serve<C, U, D, F>(
        &self,
        client: C,
        (host, port): (&str, u16),
        dial: D,
        told: impl Fn(Notice) + Send + Sync,
    ) -> Result<Terminated>
    where
        C: AsyncRead + AsyncWrite + Send + Unpin,
        U: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        D: Fn() -> F + Send + Sync,
        F: Future<Output = io::Result<U>> + Send,
    {
        let client = self.accept(client, host).await?;
        let link = Link {
            terminator: self,
            host,
            port,
            dial,
            told: &told,
            seen: Arc::default(),
            out: Mutex::default(),
            requests: AtomicU64::new(0),
        };
        let service =
            service_fn(|request| async { Ok::<_, io::Error>(link.answer(request).await) });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(client), service);
        let mut served = Box::pin(served);
        let left = tokio::select! {
            biased;
            () = link.seen.came() => Some(served),
            // A client that hangs up in the middle is no error of anybody's.
            _ = &mut served => {
                drop(served);
                link.finish().await;
                None
            }
        };
        if let Some(sighting) = link.seen.get() {
            told(Notice::Alarm(sighting));
            tokio::time::sleep(HOLDS_BACK).await;
            link.seen.tell();
        }
        if let Some(mut served) = left {
            served.as_mut().graceful_shutdown();
            let _ = timeout(FAREWELL_WITHIN, served).await;
        }
        Ok(Terminated { requests: link.requests.load(Ordering::Relaxed) })
    }

    /// Agrees on TLS with the client, for this name and no other.
    async fn accept<C>(&self, client: C, host: &str) -> Result<TlsStream<C>>
    where
        C: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.authority.serve_as(host)?);
        let refused = |what: String| {
            Error::new(ErrorKind::Denied, what)
                .hint("Have the program trust the session's authority, which $SSL_CERT_FILE names.")
        };
        let client = timeout(HANDSHAKE_WITHIN, acceptor.accept(client))
            .await
            .map_err(|_| Error::new(ErrorKind::TimedOut, format!("agree on TLS for {host}")))?
            .map_err(|e| refused(format!("agree on TLS for {host}")).source(e))?;
        let said = client.get_ref().1.server_name();
        if said.is_some_and(|said| !said.eq_ignore_ascii_case(host)) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("{host} was asked for, and another name in TLS"),
            ));
        }
        Ok(client)
    }
}

/// The way from one connection of the sandbox to the host.
struct Link<'a, D, N> {
    terminator: &'a Terminator,
    host: &'a str,
    port: u16,
    dial: D,
    told: &'a N,
    seen: Arc<Seen>,
    out: Mutex<Out>,
    requests: AtomicU64,
}

/// Connections to the host: the one that is used, and what carries it and those before. All end with it.
#[derive(Default)]
struct Out {
    sender: Option<SendRequest<Watched>>,
    carried: JoinSet<()>,
}

impl<D, F, U, N> Link<'_, D, N>
where
    D: Fn() -> F + Send + Sync,
    F: Future<Output = io::Result<U>> + Send,
    U: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    N: Fn(Notice) + Send + Sync,
{
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        match self.pass(request).await {
            Ok(answer) => answer,
            Err(refusal) => {
                match refusal.fault {
                    Fault::Request => (self.told)(Notice::Refused(refusal.why.clone())),
                    Fault::Host => (self.told)(Notice::Failed(refusal.why.clone())),
                    Fault::Alarm => {}
                }
                words(refusal)
            }
        }
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let (mut head, body) = request.into_parts();
        let injector = &self.terminator.injector;
        // ORDER: before anything is refused, for a request that is refused is worth an alarm as well.
        if let Some(sighting) = injector.look(self.host, &head) {
            return Err(self.alarmed(sighting).await);
        }
        self.check(&head)?;
        let put_in = injector.work(self.host, &mut head);
        put_in.map_err(|e| refused(StatusCode::BAD_REQUEST, e.message))?;
        head.version = Version::HTTP_11;
        head.uri = origin_form(&head.uri)?;
        strip(&mut head.headers);
        // Answered here; the body comes when the client sends it.
        head.headers.remove(header::EXPECT);
        let watch = injector.watch(self.host);
        let body = Watched::new(body, watch, Arc::clone(&self.seen));
        let sent = self.send(Request::from_parts(head, body)).await?;
        if let Some(sighting) = self.seen.get() {
            return Err(self.alarmed(sighting).await);
        }
        let (mut head, body) = sent.map_err(|e| failed(unanswered(self.host, &e)))?.into_parts();
        if !is_plain_or_chunked(&head.headers) {
            let why = format!("{} answered in a transfer coding that is not chunked", self.host);
            return Err(failed(why));
        }
        strip(&mut head.headers);
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    /// Sends it over the connection that is open, or a new one.
    async fn send(
        &self,
        request: Request<Watched>,
    ) -> Result<hyper::Result<Response<Incoming>>, Refusal> {
        let mut out = self.out.lock().await;
        let is_ready = match out.sender.as_mut() {
            Some(open) => open.ready().await.is_ok(),
            None => false,
        };
        if !is_ready {
            let sender = self.connect(&mut out.carried).await?;
            out.sender = Some(sender);
        }
        let Some(open) = out.sender.as_mut() else { return Err(failed("no connection")) };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let sent = open.send_request(request).await;
        if sent.is_err() {
            out.sender = None;
        }
        Ok(sent)
    }

    /// Returns when nothing of a body is on its way any more.
    async fn finish(&self) {
        let mut out = self.out.lock().await;
        out.sender = None;
        let all = async { while out.carried.join_next().await.is_some() {} };
        let _ = timeout(FAREWELL_WITHIN, all).await;
    }

    /// One name in TLS and in each request, and nothing that is not a request.
    fn check(&self, head: &http::request::Parts) -> Result<(), Refusal> {
        if length(head) > MAX_HEAD_BYTES {
            let why = format!("the head of the request is longer than {MAX_HEAD_BYTES} bytes");
            return Err(refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
        }
        let Self { host, port, .. } = self;
        if head.method == Method::CONNECT || head.method == Method::TRACE {
            // The second answers with what it got: the value would come in.
            let method = &head.method;
            let why = format!("{method} is not passed on to {host}:{port}, which has a secret");
            return Err(refused(StatusCode::METHOD_NOT_ALLOWED, why));
        }
        if head.headers.contains_key(header::UPGRADE) {
            let why = format!(
                "a connection to {host}:{port}, which has a secret, cannot become another protocol"
            );
            return Err(refused(StatusCode::NOT_IMPLEMENTED, why));
        }
        if !is_plain_or_chunked(&head.headers) {
            let why = format!(
                "the body has a transfer coding that is not chunked, which is not passed on to {host}:{port}"
            );
            return Err(refused(StatusCode::NOT_IMPLEMENTED, why));
        }
        match self.elsewhere(head) {
            None => Ok(()),
            Some(said) => {
                let why = format!(
                    "{host}:{port} was asked for, and the request is for {said}: each host has \
                     connections of its own"
                );
                Err(refused(StatusCode::MISDIRECTED_REQUEST, why))
            }
        }
    }

    /// Whom a request is for, where that is not who was asked for.
    fn elsewhere(&self, head: &http::request::Parts) -> Option<String> {
        let is_asked = |authority: &str| {
            let asked = authority.to_ascii_lowercase();
            asked == self.host || asked == format!("{}:{}", self.host, self.port)
        };
        let hosts: Vec<_> = head.headers.get_all(header::HOST).iter().collect();
        let host = match *hosts {
            [] => return Some("no host".to_owned()),
            [host] => String::from_utf8_lossy(host.as_bytes()),
            _ => return Some("several hosts".to_owned()),
        };
        let in_uri = head.uri.authority().map(http::uri::Authority::as_str);
        [Some(&*host), in_uri].into_iter().flatten().find(|said| !is_asked(said)).map(quoted)
    }

    async fn connect(&self, carried: &mut JoinSet<()>) -> Result<SendRequest<Watched>, Refusal> {
        let host = self.host;
        let stream = (self.dial)().await.map_err(|e| failed(format!("connect to {host}: {e}")))?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| failed(format!("{host} is no name for a certificate")))?;
        let connector = TlsConnector::from(Arc::clone(&self.terminator.upstream.0));
        let stream = timeout(HANDSHAKE_WITHIN, connector.connect(name, stream))
            .await
            .map_err(|_| failed(format!("{host} took too long to agree on TLS")))?
            .map_err(|e| failed(format!("agree on TLS with {host}: {e}")))?;
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
        let (sender, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| failed(format!("begin with {host}")))?;
        while carried.try_join_next().is_some() {}
        // It ends with the sender.
        carried.spawn(async { drop(connection.await) });
        Ok(sender)
    }

    /// Returns once the holder was told, for who caused it is to hear nothing before that.
    async fn alarmed(&self, sighting: Sighting) -> Refusal {
        let what = match &sighting.secret {
            Some(name) => format!("the placeholder of secret {name}"),
            None => "a canary".to_owned(),
        };
        let why = format!("the request has {what}, which is not for {}", self.host);
        self.seen.put(sighting);
        self.seen.was_told().await;
        Refusal { status: StatusCode::FORBIDDEN, why, fault: Fault::Alarm }
    }
}

/// Why a request is not passed on, or its answer.
struct Refusal {
    status: StatusCode,
    why: String,
    fault: Fault,
}

/// What is at fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The request is refused for what it is.
    Request,
    /// The host, or the way to it.
    Host,
    /// Something that must not go there, of which its holder was told.
    Alarm,
}

fn refused(status: StatusCode, why: impl Into<String>) -> Refusal {
    Refusal { status, why: why.into(), fault: Fault::Request }
}

fn failed(why: impl Into<String>) -> Refusal {
    Refusal { status: StatusCode::BAD_GATEWAY, why: why.into(), fault: Fault::Host }
}

/// Why a host's answer is none.
fn unanswered(host: &str, error: &hyper::Error) -> String {
    if error.is_parse_too_large() {
        let most = format!("{MAX_HEAD_BYTES} bytes or {MAX_HEADERS} headers");
        return format!("{host} answered with a head of more than {most}");
    }
    match error.is_parse() {
        true => format!("{host} answered with what is no HTTP"),
        false => format!("{host} hung up before it answered"),
    }
}

/// Words of ours in place of an answer.
fn words(refusal: Refusal) -> Answer {
    let text = Bytes::from(format!("cofferdam: {}\n", refusal.why));
    let body = Full::new(text).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = refusal.status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    if refusal.fault == Fault::Request {
        // What is refused costs a connection, so that there are no more such lines than connections.
        answer.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    }
    answer
}

/// What a client said, fit for a line of text.
fn quoted(said: &str) -> String {
    said.chars().filter(|it| !it.is_control()).take(MAX_QUOTED_CHARS).collect()
}

/// Whether a body is as it is, or in chunks, which both sides read and write anew. Any other coding would be lost.
fn is_plain_or_chunked(headers: &http::HeaderMap) -> bool {
    let values = headers.get_all(header::TRANSFER_ENCODING).iter();
    let codings: Vec<&[u8]> =
        values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).collect();
    match *codings {
        [] => true,
        [coding] => coding.trim_ascii().eq_ignore_ascii_case(b"chunked"),
        _ => false,
    }
}

/// What hosts take: a path and a query.
fn origin_form(uri: &Uri) -> Result<Uri, Refusal> {
    let bad = || refused(StatusCode::BAD_REQUEST, "the request has no path");
    let path = uri.path_and_query().ok_or_else(bad)?;
    Uri::builder().path_and_query(path.clone()).build().map_err(|_| bad())
}

/// Headers that are for the next one on the way alone.
fn strip(headers: &mut http::HeaderMap) {
    const OF_A_HOP: [&str; 8] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "transfer-encoding",
        "upgrade",
    ];
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
    for name in OF_A_HOP {
        headers.remove(name);
    }
}
