//! One connection, from the sandbox's TLS to the host's.

use crate::authority::Authority;
use crate::injector::Injector;
use crate::upstream::Upstream;
use crate::watch::{Sighting, Watch};
use bytes::Bytes;
use cofferdam_core::{Error, ErrorKind, Result};
use http::header::{self, HeaderName};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How long either side may take to agree on TLS.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long whoever caused an alarm hears nothing: its holder is to stop it before it knows.
pub const HOLDS_BACK: Duration = Duration::from_secs(2);
/// How long the sandbox may take for the head of a request, the wait for a next one included.
pub const HEAD_WITHIN: Duration = Duration::from_secs(120);
/// The longest head of a request or an answer, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How many headers either may have.
pub const MAX_HEADERS: usize = 128;

/// What is answered to the sandbox: the host's own body, or words of ours.
type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;

/// Ends TLS for the hosts that have a secret.
#[derive(Debug, Clone)]
pub struct Terminator {
    authority: Arc<Authority>,
    injector: Arc<Injector>,
    upstream: Upstream,
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
    /// as often as the host hangs up between requests. `alarm` is told at once of what must not go to this
    /// host; the request that has it does not go there.
    ///
    /// Fails where the client did not agree on TLS; what fails later is an answer to the client.
    pub async fn serve<C, U, D, F>(
        &self,
        client: C,
        (host, port): (&str, u16),
        dial: D,
        alarm: impl Fn(Sighting) + Send + Sync,
    ) -> Result<Terminated>
    where
        C: AsyncRead + AsyncWrite + Send + Unpin,
        U: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        D: Fn() -> F + Send + Sync,
        F: Future<Output = io::Result<U>> + Send,
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
        let link = Link {
            terminator: self,
            host,
            port,
            dial,
            alarm: &alarm,
            sender: Mutex::new(None),
            requests: AtomicU64::new(0),
        };
        let service =
            service_fn(|request| async { Ok::<_, io::Error>(link.answer(request).await) });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(client), service)
            .await;
        // A client that hangs up in the middle is no error of anybody's.
        drop(served);
        Ok(Terminated { requests: link.requests.load(Ordering::Relaxed) })
    }
}

/// The way from one connection of the sandbox to the host.
struct Link<'a, D, A> {
    terminator: &'a Terminator,
    host: &'a str,
    port: u16,
    dial: D,
    alarm: &'a A,
    sender: Mutex<Option<SendRequest<Watched>>>,
    requests: AtomicU64,
}

impl<D, F, U, A> Link<'_, D, A>
where
    D: Fn() -> F + Send + Sync,
    F: Future<Output = io::Result<U>> + Send,
    U: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    A: Fn(Sighting) + Send + Sync,
{
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        match self.pass(request).await {
            Ok(answer) => answer,
            Err(Refusal { status, why }) => words(status, &why),
        }
    }

    async fn pass(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let (mut head, body) = request.into_parts();
        self.check(&head)?;
        let seen = self.terminator.injector.work(self.host, &mut head);
        let seen = seen.map_err(|e| refusal(StatusCode::BAD_REQUEST, e.message))?;
        if let Some(sighting) = seen {
            return Err(self.raise(sighting).await);
        }
        head.version = Version::HTTP_11;
        head.uri = origin_form(&head.uri)?;
        strip(&mut head.headers);
        // Answered here; the body comes when the client sends it.
        head.headers.remove(header::EXPECT);
        let (told, mut telling) = tokio::sync::mpsc::channel(1);
        let watch = self.terminator.injector.watch(self.host);
        let body = Watched { body, watch, told, has_ended: false };
        let mut sender = self.sender.lock().await;
        let ready = match sender.as_mut() {
            Some(open) => open.ready().await.is_ok(),
            None => false,
        };
        if !ready {
            *sender = Some(self.connect().await?);
        }
        let Some(open) = sender.as_mut() else {
            return Err(refusal(StatusCode::BAD_GATEWAY, "no connection"));
        };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let sent = open.send_request(Request::from_parts(head, body)).await;
        if let Ok(sighting) = telling.try_recv() {
            *sender = None;
            return Err(self.raise(sighting).await);
        }
        let (mut head, body) = match sent {
            Ok(response) => response.into_parts(),
            Err(_) => {
                *sender = None;
                let why = format!("{} hung up before it answered", self.host);
                return Err(refusal(StatusCode::BAD_GATEWAY, why));
            }
        };
        strip(&mut head.headers);
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    /// One name in TLS and in each request, and nothing that is not a request.
    fn check(&self, head: &http::request::Parts) -> Result<(), Refusal> {
        if length(head) > MAX_HEAD_BYTES {
            let why = format!("the head of the request is longer than {MAX_HEAD_BYTES} bytes");
            return Err(refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
        }
        if head.method == Method::CONNECT || head.method == Method::TRACE {
            // The second answers with what it got: the value would come in.
            let why = format!("{} is not passed on to a host that has a secret", head.method);
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, why));
        }
        if head.headers.contains_key(header::UPGRADE) {
            let why = "a connection to a host that has a secret cannot become another protocol";
            return Err(refusal(StatusCode::NOT_IMPLEMENTED, why));
        }
        let mut hosts = head.headers.get_all(header::HOST).iter();
        let (first, second) = (hosts.next(), hosts.next());
        let first = first.and_then(|host| host.to_str().ok());
        let is_asked = |authority: &str| {
            let asked = authority.to_ascii_lowercase();
            asked == self.host || asked == format!("{}:{}", self.host, self.port)
        };
        let in_uri = head.uri.authority().is_none_or(|authority| is_asked(authority.as_str()));
        if second.is_none() && first.is_some_and(is_asked) && in_uri {
            return Ok(());
        }
        let why = format!("{} was asked for, and the request is for another host", self.host);
        Err(refusal(StatusCode::MISDIRECTED_REQUEST, why))
    }

    async fn connect(&self) -> Result<SendRequest<Watched>, Refusal> {
        let failed = |why: String| refusal(StatusCode::BAD_GATEWAY, why);
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
        // It ends with the sender.
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn raise(&self, sighting: Sighting) -> Refusal {
        let what = match &sighting.secret {
            Some(name) => format!("the placeholder of secret {name}"),
            None => "a canary".to_owned(),
        };
        let why = format!("the request has {what}, which is not for {}", self.host);
        (self.alarm)(sighting);
        tokio::time::sleep(HOLDS_BACK).await;
        refusal(StatusCode::FORBIDDEN, why)
    }
}

/// The body of a request, looked through on its way.
struct Watched {
    body: Incoming,
    watch: Watch,
    told: tokio::sync::mpsc::Sender<Sighting>,
    has_ended: bool,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            return Poll::Pending;
        };
        let seen = match &frame {
            Some(Ok(frame)) => match (frame.data_ref(), frame.trailers_ref()) {
                (Some(piece), _) => this.watch.look(piece),
                (None, Some(trailers)) => {
                    trailers.values().find_map(|value| this.watch.look(value.as_bytes()))
                }
                (None, None) => None,
            },
            Some(Err(_)) => None,
            None if this.has_ended => None,
            None => {
                this.has_ended = true;
                this.watch.finish()
            }
        };
        if let Some(sighting) = seen {
            let _ = this.told.try_send(sighting);
            // The request breaks off: what was sent of it is no whole one.
            return Poll::Ready(Some(Err(io::ErrorKind::PermissionDenied.into())));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Why a request is not passed on.
struct Refusal {
    status: StatusCode,
    why: String,
}

fn refusal(status: StatusCode, why: impl Into<String>) -> Refusal {
    Refusal { status, why: why.into() }
}

/// Words of ours in place of an answer.
fn words(status: StatusCode, why: &str) -> Answer {
    let text = Bytes::from(format!("cofferdam: {why}\n"));
    let body = Full::new(text).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// How long a head is. The reader stops a little later, by how much came at once.
fn length(head: &http::request::Parts) -> usize {
    // A header has a colon, a space and a line end, too.
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    headers.sum::<usize>() + target
}

/// What hosts take: a path and a query.
fn origin_form(uri: &Uri) -> Result<Uri, Refusal> {
    let bad = || refusal(StatusCode::BAD_REQUEST, "the request has no path");
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
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_A_HOP {
        headers.remove(name);
    }
}
