//! What is done once for an `Idempotency-Key`: its answer is kept, and told again to whoever asks the same.
//!
//! Commands of a sandbox do without this: their key is their id, which is known as long as the sandbox.

use super::auth::Caller;
use super::error::{Answer, Problem};
use super::extract::{MAX_SANDBOX_JSON_BYTES, Raw};
use crate::Server;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The operations whose answers are kept, all of them by `POST`.
pub(super) const TAKE_KEYS: [&str; 8] = [
    "/v1/sandboxes",
    "/v1/run",
    "/v1/sandboxes/{sandbox}/fork",
    "/v1/sandboxes/{sandbox}/snapshots",
    "/v1/sandboxes/{sandbox}/extend",
    "/v1/sandboxes/{sandbox}/undo",
    "/v1/sandboxes/{sandbox}/shells/{shell}/run",
    "/v1/tools/{pack}/{tool}",
];
/// The one that knows keys by itself.
const EXECS: &str = "/v1/sandboxes/{sandbox}/execs";
/// The longest `Idempotency-Key`, in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 255;
/// How many answers of one caller are kept; the oldest go first.
const MAX_KEPT: usize = 256;
/// How many bytes they have together.
const MAX_KEPT_BYTES: usize = 16 << 20;
/// The longest answer that is kept.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Where a key is.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// What an answer has that was told before.
const REPEATED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The key of a request, if it has one.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<&[u8]>> {
    let mut all = headers.get_all(KEY).iter();
    let Some(key) = all.next().map(HeaderValue::as_bytes) else { return Ok(None) };
    if all.next().is_some() {
        return Err(Error::new(ErrorKind::Usage, "there are two Idempotency-Keys")
            .hint("Send one for each thing that is to be done once."));
    }
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        let what = format!("an Idempotency-Key has 1 to {MAX_KEY_BYTES} bytes");
        return Err(Error::new(ErrorKind::Usage, what).hint("Send a UUID, for example."));
    }
    Ok(Some(key))
}

/// Answers a request with a key from what is kept, where it was answered before.
pub(super) async fn once(State(server): State<Server>, request: Request, next: Next) -> Response {
    match asked(&request) {
        Ok(None) => next.run(request).await,
        Ok(Some((caller, what))) => {
            let answered = answered(&server, (&caller, what), request, next).await;
            answered.unwrap_or_else(IntoResponse::into_response)
        }
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Marks an answer that says in a good status that something was not done.
#[derive(Debug, Clone, Copy)]
struct NotDone;

/// The answer, which is not kept: what it is of may be tried again.
pub(super) fn not_done(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.extensions_mut().insert(NotDone);
    response
}

/// What is to be done once: the path with its names, and the key.
type What = (String, Vec<u8>);

/// What is to be done once, if anything is.
fn asked(request: &Request) -> Result<Option<(String, What)>> {
    let (path, route) = (request.uri().path(), request.extensions().get::<MatchedPath>());
    let Some(route) = route.map(MatchedPath::as_str).filter(|route| route.starts_with("/v1/"))
    else {
        return Ok(None);
    };
    // Other methods do the same twice as once.
    if request.method() != Method::POST {
        return Ok(None);
    }
    let key = key_of(request.headers())?.filter(|_| route != EXECS);
    let Some(key) = key else { return Ok(None) };
    if !TAKE_KEYS.contains(&route) {
        return Err(Error::new(ErrorKind::Usage, "this request takes no Idempotency-Key")
            .hint("Leave it out; /openapi.json says which requests take one."));
    }
    let caller = request.extensions().get::<Caller>().and_then(|caller| caller.key.as_ref());
    let caller = caller.map(|key| key.prefix.clone()).unwrap_or_default();
    Ok(Some((caller, (path.to_owned(), key.to_vec()))))
}

async fn answered(
    server: &Server,
    (caller, what): (&str, What),
    request: Request,
    next: Next,
) -> Answer<Response> {
    let (parts, body) = request.into_parts();
    let mut again = Request::from_parts(parts.clone(), body);
    // The longest of all; whoever is asked next has a limit of its own.
    DefaultBodyLimit::max(MAX_SANDBOX_JSON_BYTES).apply(&mut again);
    let Raw(bytes) = Raw::from_request(again, &()).await?;
    let asked: [u8; 32] = Sha256::digest(&bytes).into();
    let place = Held::new(&server.0.answers, caller, &what);
    // Whoever asks the same meanwhile waits here.
    let mut kept = place.place.lock().await;
    if let Some(kept) = &*kept {
        return kept.again(asked);
    }
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    // What did not succeed may be tried again.
    if !response.status().is_success() || response.extensions().get::<NotDone>().is_some() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.map_err(|error| {
        Error::new(ErrorKind::Io, "gather an answer that is to be kept").source(error)
    })?;
    let (status, kind) = (parts.status, parts.headers.get(header::CONTENT_TYPE).cloned());
    let told = Some(body.clone()).filter(|body| body.len() <= MAX_ANSWER_BYTES);
    server.0.answers.weigh(caller, &what, told.as_ref().map_or(0, Bytes::len));
    *kept = Some(Kept { asked, status, kind, told });
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// An answer.
#[derive(Debug)]
struct Kept {
    /// The SHA-256 of what was asked.
    asked: [u8; 32],
    status: StatusCode,
    kind: Option<HeaderValue>,
    /// `None` where it was too long.
    told: Option<Bytes>,
}

impl Kept {
    /// The answer to somebody who asks again.
    fn again(&self, asked: [u8; 32]) -> Answer<Response> {
        if asked != self.asked {
            let what = "this Idempotency-Key was sent with another body";
            return Err(Error::new(ErrorKind::Conflict, what)
                .hint("Send a new key for what is new.")
                .into());
        }
        let Some(told) = &self.told else {
            let what = "that was done, and its answer is too long to be told twice";
            return Err(Error::new(ErrorKind::Conflict, what)
                .hint("Ask how it stands, or send a new key to do it again.")
                .into());
        };
        let mut response = (self.status, Body::from(told.clone())).into_response();
        let headers = response.headers_mut();
        headers.extend(self.kind.clone().map(|kind| (header::CONTENT_TYPE, kind)));
        headers.insert(REPEATED, HeaderValue::from_static("true"));
        Ok(response)
    }
}

/// The answers that are kept, as long as the server lives.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<String, VecDeque<One>>>);

/// Nothing as long as it is still to be done.
type Place = Arc<tokio::sync::Mutex<Option<Kept>>>;

#[derive(Debug)]
struct One {
    what: What,
    bytes: usize,
    place: Place,
}

impl Answers {
    /// Where the answer is, or is to be.
    fn place(&self, caller: &str, what: &What) -> Place {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(caller.to_owned()).or_default();
        if let Some(one) = own.iter().find(|one| one.what == *what) {
            return one.place.clone();
        }
        if own.len() >= MAX_KEPT {
            remove_oldest(own);
        }
        let place = Place::default();
        own.push_back(One { what: what.clone(), bytes: 0, place: place.clone() });
        place
    }

    /// Removes a place that nobody else waits at.
    fn give_up(&self, caller: &str, place: &Place) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = all.get_mut(caller) else { return };
        // ORDER: counted under the lock, within which alone others come to it. One is whoever gives it up.
        own.retain(|one| !Arc::ptr_eq(&one.place, place) || Arc::strong_count(place) > 2);
    }

    /// Says how long an answer is, for which older ones make room.
    fn weigh(&self, caller: &str, what: &What, bytes: usize) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = all.get_mut(caller) else { return };
        if let Some(one) = own.iter_mut().find(|one| one.what == *what) {
            one.bytes = bytes;
        }
        while own.iter().map(|one| one.bytes).sum::<usize>() > MAX_KEPT_BYTES && remove_oldest(own)
        {
        }
    }
}

/// The place of an answer while somebody asks. One that stays empty is given up, so that what fails pushes no answer out.
struct Held<'a> {
    answers: &'a Answers,
    caller: &'a str,
    place: Place,
}

impl<'a> Held<'a> {
    fn new(answers: &'a Answers, caller: &'a str, what: &What) -> Self {
        Self { answers, caller, place: answers.place(caller, what) }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.place.try_lock().is_ok_and(|kept| kept.is_none()) {
            self.answers.give_up(self.caller, &self.place);
        }
    }
}

/// Removes the oldest one of which nobody waits for the answer. `false` where there is none.
fn remove_oldest(own: &mut VecDeque<One>) -> bool {
    let oldest = own.iter().position(|one| Arc::strong_count(&one.place) == 1);
    oldest.and_then(|at| own.remove(at)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_of_a_caller_make_room_and_none_that_is_waited_for() {
        let answers = Answers::default();
        let what = |number: usize| (format!("/v1/{number}"), b"k".to_vec());
        let count = |caller: &str| answers.0.lock().unwrap().get(caller).map_or(0, VecDeque::len);
        let has = |number: usize| {
            let all = answers.0.lock().unwrap();
            all["a"].iter().any(|one| one.what == what(number))
        };
        let waited_for = answers.place("a", &what(0));
        (1..=MAX_KEPT).for_each(|number| drop(answers.place("a", &what(number))));
        assert_eq!(count("a"), MAX_KEPT);
        assert!(has(0) && !has(1) && has(2));
        drop(answers.place("b", &what(0)));
        assert_eq!(count("a"), MAX_KEPT, "another's take no room");
        (2..7).for_each(|number| answers.weigh("a", &what(number), MAX_ANSWER_BYTES));
        assert!(has(0) && !has(2) && has(3) && has(6));
        drop(waited_for);
    }

    #[test]
    fn what_fails_pushes_no_answer_out() {
        let answers = Answers::default();
        let what = |number: usize| (format!("/v1/{number}"), b"k".to_vec());
        let has = |number: usize| {
            let all = answers.0.lock().unwrap();
            all["a"].iter().any(|one| one.what == what(number))
        };
        let done = Held::new(&answers, "a", &what(0));
        let kept = Kept { asked: [0; 32], status: StatusCode::OK, kind: None, told: None };
        *done.place.try_lock().unwrap() = Some(kept);
        drop(done);
        for number in 1..3 * MAX_KEPT {
            drop(Held::new(&answers, "a", &what(number)));
            assert!(has(0) && !has(number), "{number}");
        }
        let (one, other) = (Held::new(&answers, "a", &what(1)), Held::new(&answers, "a", &what(1)));
        drop(one);
        assert!(has(1), "somebody waits for it");
        drop(other);
        assert!(!has(1));
    }

    #[test]
    fn a_key_is_one_text_of_some_bytes() {
        let with = |keys: &[&str]| {
            let mut headers = HeaderMap::new();
            for key in keys {
                headers.append(KEY, key.parse().unwrap());
            }
            key_of(&headers).map(|key| key.map(<[u8]>::to_vec))
        };
        assert_eq!(with(&[]).unwrap(), None);
        assert_eq!(with(&["a"]).unwrap(), Some(b"a".to_vec()));
        assert!(with(&[&"x".repeat(MAX_KEY_BYTES)]).is_ok());
        for bad in [&[""] as &[_], &["a", "a"], &[&"x".repeat(MAX_KEY_BYTES + 1)]] {
            assert_eq!(with(bad).unwrap_err().kind, ErrorKind::Usage, "{bad:?}");
        }
    }
}
