//! What every request passes before its handler: the host that it names, who asks, how often, how many
//! at once. What changes something is written down with what came of it.

use super::auth::{self, Caller};
use super::error::{Logged, Problem};
use super::keyed::keyed;
use super::origin;
use super::untaken::Untaken;
use crate::Server;
use crate::holding::holding;
use crate::serve::Way;
use crate::stalling::Flow;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::AuditEntry;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most requests of one owner that are being answered at once; an answer of a known length counts until
/// its last byte was taken, a stream until it begins.
pub(crate) const MAX_REQUESTS: u32 = 64;
/// The most streams of one owner at once, of which each holds a connection: a quarter of those that there are, also
/// where these are fewer.
pub(crate) const MAX_STREAMS: u32 = 256;
/// The most streams of all owners, three quarters, so that there are always connections for requests.
pub(crate) const MAX_ALL_STREAMS: u32 = 768;
/// How often a stream looks whether its key was revoked.
const LOOKS_AGAIN: Duration = Duration::from_secs(1);
/// How long a message of a caller waits who says more than its key may.
const WAITS: Duration = Duration::from_millis(20);
/// The longest path that is written down, in bytes.
const AUDITED_BYTES: usize = 512;

/// What is told to anybody.
const OPEN: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/docs"];

/// How many things each owner has going on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<HashMap<String, u32>>>);

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Counts,
    owner: String,
    /// Whose stream it is, where it is one.
    stream: Option<(Server, Caller)>,
}

/// Why a stream ends that would go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// The server ends.
    Server,
    /// The key was revoked by which it was opened.
    Key,
}

impl Counted {
    /// Waits until there is a reason to end the stream. Whoever waits for something else in between goes on with
    /// the same one: one that began anew each time would never come to look at its key.
    pub(crate) fn is_over(&self) -> Reason<Over> {
        match self.stream.clone() {
            None => Box::pin(std::future::pending()),
            Some((server, caller)) => Box::pin(async move {
                tokio::select! {
                    () = server.is_to_end() => Over::Server,
                    () = is_revoked(&server, &caller) => Over::Key,
                }
            }),
        }
    }

    /// Waits until its key is revoked. What the end of a server lets end by itself needs no more.
    pub(crate) fn loses_its_key(&self) -> Reason<()> {
        match &self.stream {
            None => Box::pin(std::future::pending()),
            Some((server, caller)) => loses_its_key(server, caller),
        }
    }
}

/// Waits for a reason to end something.
pub(crate) type Reason<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Waits until the key of a caller is revoked, for what goes on while that holds.
pub(super) fn loses_its_key(server: &Server, caller: &Caller) -> Reason<()> {
    let (server, caller) = (server.clone(), caller.clone());
    Box::pin(async move { is_revoked(&server, &caller).await })
}

/// Waits until the key of a caller is revoked.
async fn is_revoked(server: &Server, caller: &Caller) {
    if caller.key.is_none() {
        return std::future::pending().await;
    }
    tokio::time::sleep(LOOKS_AGAIN).await;
    while caller.is_known_still(server).await {
        tokio::time::sleep(LOOKS_AGAIN).await;
    }
}

impl Counts {
    /// One more of this owner, unless there are so many.
    pub(crate) fn take(&self, owner: &str, most: u32) -> Result<Counted, Problem> {
        self.admit(owner, most, u32::MAX).map_err(|_| {
            let what = format!("{most} requests of this caller are at work already");
            let error = Error::new(ErrorKind::Unavailable, what).hint("Wait for one of them.");
            Problem::with_status(StatusCode::TOO_MANY_REQUESTS, error).retry_after(1)
        })
    }

    /// The same of streams, of which others leave some. Each holds one of so many connections.
    fn take_stream(&self, owner: &str, connections: usize) -> Result<Counted, Problem> {
        let (most, most_of_all) = streams_over(connections);
        self.admit(owner, most, most_of_all).map_err(|full| {
            let (status, what, hint) = match full {
                Full::Owner => (
                    StatusCode::TOO_MANY_REQUESTS,
                    format!("{most} streams of this caller are open already"),
                    "Close one of them.",
                ),
                Full::All => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("{most_of_all} streams are open already, as many as there may be"),
                    "Ask again when others have closed theirs.",
                ),
            };
            let error = Error::new(ErrorKind::Unavailable, what).hint(hint);
            Problem::with_status(status, error).retry_after(1)
        })
    }

    fn admit(&self, owner: &str, most: u32, most_of_all: u32) -> Result<Counted, Full> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(owner).copied().unwrap_or(0) >= most {
            return Err(Full::Owner);
        }
        if all.values().sum::<u32>() >= most_of_all {
            return Err(Full::All);
        }
        *all.entry(owner.to_owned()).or_default() += 1;
        Ok(Counted { counts: self.clone(), owner: owner.to_owned(), stream: None })
    }
}

/// How many streams one owner may have over so many connections, and all together.
fn streams_over(connections: usize) -> (u32, u32) {
    let quarter = u32::try_from(connections / 4).unwrap_or(u32::MAX).max(1);
    (MAX_STREAMS.min(quarter), MAX_ALL_STREAMS.min(quarter.saturating_mul(3)))
}

/// Why there is not one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    Owner,
    All,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.owner) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                all.remove(&self.owner);
            }
        }
    }
}

/// Guards one request, and gives its answer a number.
pub(super) async fn guard(State(server): State<Server>, request: Request, next: Next) -> Response {
    let number = server.next_request();
    let line = line(&request);
    let allowed = origin::allowed(&server, &request);
    let mut response = match pass(&server, request, next, (&number, &line)).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    if let Some(Logged(chain)) = response.extensions().get::<Logged>() {
        (server.0.options.log)(&format!("request {number}: {line}: {chain}"));
    }
    if let Some(origin) = allowed {
        origin::allow(&mut response, origin);
    }
    if let Ok(number) = HeaderValue::from_str(&number) {
        response.headers_mut().insert("x-request-id", number);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert("x-content-type-options", nosniff);
    response
}

async fn pass(
    server: &Server,
    request: Request,
    next: Next,
    (number, line): (&str, &str),
) -> Result<Response, Problem> {
    origin::check_host(server, &request)?;
    if let Some(answer) = origin::check_origin(server, &request)? {
        return Ok(answer);
    }
    if OPEN.contains(&request.uri().path()) {
        return Ok(next.run(request).await);
    }
    let way = request.extensions().get::<Way>().copied().unwrap_or(Way::OwnTcp);
    let caller = auth::caller(server, way, request.headers()).await?;
    server.0.rates.take(&caller, Instant::now())?;
    let mut request = request.map(|body| keyed(server, &caller, body));
    let room = server.0.untaken.check(caller.owner());
    let counted = match room.and_then(|()| server.0.requests.take(caller.owner(), MAX_REQUESTS)) {
        Ok(counted) => counted,
        Err(full) => {
            let (again, counted) = beside(server, &caller, request).await.ok_or(full)?;
            request = again;
            counted
        }
    };
    // Not before it counts: a refusal is told to anybody, and nobody's places are held by those who do not read it.
    tell_known(&request);
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(Number(number.to_owned()));
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        let response = next.run(request).await;
        return held(&server.0.untaken, response, counted, Answers::IfThereIsRoom);
    }
    let owed = Owed {
        server: server.clone(),
        owner: caller.owner().to_owned(),
        entry: Some(entry(&caller, number, line.to_owned(), 0)),
    };
    let ends_with_its_caller = ends_with_its_caller(request.uri().path());
    let server = server.clone();
    // What was begun is done, though nobody may wait for it: nothing is half done. What takes longer than an
    // ending server has time stands as if that had crashed, which the next one finishes or takes back.
    let work = tokio::spawn(async move {
        let response = tokio::select! {
            response = next.run(request) => response,
            () = server.is_cut() => Problem::from(ends()).into_response(),
        };
        owed.pay(response.status().as_u16()).await;
        // What was done is told.
        held(&server.0.untaken, response, counted, Answers::InAnyCase)
            .unwrap_or_else(IntoResponse::into_response)
    });
    let work = Work { task: work, ends_with_its_caller };
    work.done().await
}

/// Says of the connection that whoever asks over it is known.
pub(super) fn tell_known(request: &Request) {
    if let Some(flow) = request.extensions().get::<Arc<Flow>>() {
        flow.tell_known();
    }
}

/// Whether an answer is given for which its owner has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    InAnyCase,
    IfThereIsRoom,
}

/// An answer that counts as a request, and with its bytes, until it was taken, for until then it is in memory. What is
/// written while it is read has no length yet, and counts as a stream.
fn held(
    untaken: &Untaken,
    response: Response,
    counted: Counted,
    answers: Answers,
) -> Result<Response, Problem> {
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    if bytes == 0 {
        return Ok(response);
    }
    let waiting = match answers {
        Answers::InAnyCase => untaken.add(&counted.owner, bytes),
        Answers::IfThereIsRoom => untaken.take(&counted.owner, bytes)?,
    };
    Ok(holding(response, (counted, waiting)))
}

/// The request of a caller who has as many at work as may be, with another place, where it ends one of them: it
/// would wait for what it is to end.
#[cfg(feature = "mcp")]
async fn beside(server: &Server, caller: &Caller, request: Request) -> Option<(Request, Counted)> {
    let cancels = &server.0.cancels;
    let counted = cancels.take(caller.owner(), super::mcp::MAX_CANCELS).ok()?;
    Some((super::mcp::cancellation(request).await?, counted))
}

/// Without that protocol no request ends another one.
#[cfg(not(feature = "mcp"))]
async fn beside(_: &Server, _: &Caller, _: Request) -> Option<(Request, Counted)> {
    None
}

fn ends() -> Error {
    Error::new(ErrorKind::Unavailable, "the server ends")
        .hint("Ask the next one how it stands before you do it again.")
}

/// Whether what was begun is given up when its caller hangs up: a sandbox of its own is of no use to anybody
/// then, and a model's client has no other way to give a call up.
fn ends_with_its_caller(path: &str) -> bool {
    #[cfg(feature = "mcp")]
    if path == super::mcp::PATH {
        return true;
    }
    // A tool's command is killed when its call is given up, whichever way the call came.
    path == super::run::PATH || path.starts_with(super::tools::CALLED_BELOW)
}

/// What is being done for a caller.
struct Work {
    task: tokio::task::JoinHandle<Response>,
    ends_with_its_caller: bool,
}

impl Work {
    async fn done(mut self) -> Result<Response, Problem> {
        (&mut self.task)
            .await
            .map_err(|e| Error::new(ErrorKind::Io, "a request broke off").source(e).into())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if self.ends_with_its_caller {
            self.task.abort();
        }
    }
}

/// An entry of the audit that is owed: one whose work breaks off is written too.
struct Owed {
    server: Server,
    owner: String,
    entry: Option<AuditEntry>,
}

impl Owed {
    async fn pay(mut self, status: u16) {
        if let Some(entry) = self.entry.take() {
            let entry = AuditEntry { status, ..entry };
            write(self.server.clone(), self.owner.clone(), entry).await;
        }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(write(self.server.clone(), self.owner.clone(), entry));
        }
    }
}

/// The number of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Number(pub(crate) String);

/// Writes down what is done beside requests, as the messages of one that stays, or a model's calls.
#[derive(Debug, Clone)]
pub(crate) struct Minutes {
    pub(crate) server: Server,
    pub(crate) caller: Caller,
    pub(crate) number: Number,
    /// Where it is done.
    pub(crate) place: String,
}

impl Minutes {
    /// Waits until the key may ask again.
    pub(crate) async fn turn(&self) {
        while self.server.0.rates.take(&self.caller, Instant::now()).is_err() {
            tokio::time::sleep(WAITS).await;
        }
    }

    /// Writes down what was done, and what came of it.
    pub(crate) async fn note(&self, what: &str, status: u16) {
        let action = shortened(format!("{} {what}", self.place));
        let entry = entry(&self.caller, &self.number.0, action, status);
        write(self.server.clone(), self.caller.owner().to_owned(), entry).await;
    }
}

/// What a caller did.
fn entry(caller: &Caller, number: &str, action: String, status: u16) -> AuditEntry {
    let key = caller.key.as_ref().map(|key| key.prefix.clone());
    AuditEntry { key, action, status, request: number.to_owned() }
}

async fn write(server: Server, owner: String, entry: AuditEntry) {
    let what = entry.action.clone();
    if let Err(error) = server.0.sessions.audit(&owner, entry).await {
        // The deed is done; the log is what is left to say so.
        (server.0.options.log)(&format!("not in the audit: {owner:?} {what}: {}", error.chain()));
    }
}

/// Method and path of a request. What follows a `?` may be private.
fn line(request: &Request) -> String {
    shortened(format!("{} {}", request.method(), request.uri().path()))
}

fn shortened(mut line: String) -> String {
    let most = (0..=AUDITED_BYTES).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    line.truncate(most.min(line.len()));
    line
}

impl Caller {
    /// One more stream of this caller.
    pub(crate) fn stream(&self, server: &Server) -> Result<Counted, Problem> {
        let connections = server.0.options.max_connections;
        let mut counted = server.0.streams.take_stream(self.owner(), connections)?;
        counted.stream = Some((server.clone(), self.clone()));
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::untaken::MAX_UNTAKEN_BYTES;
    use axum::body::Body;

    #[test]
    fn one_owner_fills_only_what_is_its_own() {
        let counts = Counts::default();
        let mut held: Vec<Counted> =
            (0..MAX_REQUESTS).map(|_| counts.take("a", MAX_REQUESTS).unwrap()).collect();
        assert!(counts.take("a", MAX_REQUESTS).is_err());
        assert!(counts.take("b", MAX_REQUESTS).is_ok());
        held.pop();
        assert!(counts.take("a", MAX_REQUESTS).is_ok());
        drop(held);
        assert!(counts.0.lock().unwrap().is_empty());
    }

    #[test]
    fn streams_of_all_owners_leave_connections_for_requests() {
        // An owner has a share of the connections, and all of them leave some.
        for (connections, most, most_of_all) in
            [(crate::MAX_CONNECTIONS, MAX_STREAMS, MAX_ALL_STREAMS), (64, 16, 48), (1, 1, 3)]
        {
            let counts = Counts::default();
            let take = |owner: &str| counts.take_stream(owner, connections);
            let owners: Vec<String> = (0..most_of_all / most).map(|n| n.to_string()).collect();
            let mut held: Vec<Counted> =
                owners.iter().flat_map(|owner| (0..most).map(|_| take(owner).unwrap())).collect();
            let refused = |owner: &str| take(owner).unwrap_err().into_response().status();
            assert_eq!(refused("0"), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(refused("another"), StatusCode::SERVICE_UNAVAILABLE);
            held.pop();
            assert!(take("another").is_ok());
        }
    }

    #[tokio::test]
    async fn an_answer_counts_until_it_was_taken() {
        let (counts, untaken) = (Counts::default(), Untaken::default());
        let take = || counts.take("a", 1);
        let held = |answer, how| held(&untaken, answer, take().unwrap(), how);
        let answer = held("all of it".into_response(), Answers::IfThereIsRoom).unwrap();
        assert!(take().is_err(), "it waits in memory");
        let bytes = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
        assert_eq!(bytes, "all of it");
        let nothing = held(StatusCode::NO_CONTENT.into_response(), Answers::IfThereIsRoom);
        let streamed = futures_util::stream::iter([Ok::<_, std::io::Error>("some")]);
        let streamed = Response::new(Body::from_stream(streamed));
        let streamed = held(streamed, Answers::IfThereIsRoom);
        assert!(take().is_ok(), "neither of these does");
        drop((nothing, streamed));
    }

    #[tokio::test]
    async fn what_was_done_is_told_though_there_is_no_room_for_more_answers() {
        let (counts, untaken) = (Counts::default(), Untaken::default());
        let held = |how| {
            let answer = "x".repeat(1 << 20).into_response();
            held(&untaken, answer, counts.take("a", MAX_REQUESTS).unwrap(), how)
        };
        let full = [untaken.add("a", MAX_UNTAKEN_BYTES), untaken.add("a", MAX_UNTAKEN_BYTES)];
        let refused = held(Answers::IfThereIsRoom).unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(counts.0.lock().unwrap().is_empty(), "it waits no more");
        assert!(held(Answers::InAnyCase).is_ok());
        drop(full);
        assert!(held(Answers::IfThereIsRoom).is_ok(), "the control");
    }
}
