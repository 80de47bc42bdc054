//! What a server answers: objects, bytes, errors.

use crate::Client;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::ProblemReport;
use cofferdam_session::objects::advice::typed;
use reqwest::{Response, StatusCode};
use serde::de::DeserializeOwned;

/// The most bytes of an object: 16 MiB of a file, each of which may take six in JSON, and what is around.
pub const MAX_OBJECT_BYTES: usize = 128 << 20;
/// What helps where a server wants a key, or another one. It says how that is sent, which is done here.
const GIVE_KEY: &str = "Give a key that `cofferdam key create` printed at the server, by \
                        COFFERDAM_KEY or in a file by --server-key-file.";
/// What a server says of a path that is none of its own.
const NOTHING_THERE: &str = "there is nothing at this path";
/// How much of an answer that is no problem document is shown.
const SHOWN_CHARS: usize = 200;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request is none, and was not sent: the same one never will be.
    Here(Error),
    /// Nobody took the connection: the server heard nothing of it.
    Unheard(Error),
    /// The way to the server is broken: nobody knows what it heard.
    Way(Error),
    /// The server said no, with this status and these words.
    Said(Said),
}

/// What a server said of an error.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) error: Error,
    /// The document.
    pub(crate) body: Vec<u8>,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Here(error) | Failure::Unheard(error) | Failure::Way(error) => error,
            Failure::Said(said) => said.error,
        }
    }
}

impl Failure {
    /// A way that is broken, or a request that could not set out on it.
    pub(crate) fn way(client: &Client, cause: reqwest::Error) -> Self {
        if cause.is_builder() {
            let what = "put a request together";
            return Self::Here(Error::new(ErrorKind::Usage, what).source(cause.without_url()));
        }
        let address = client.address();
        let error = match cause.is_timeout() && !cause.is_connect() {
            true => Error::new(ErrorKind::TimedOut, format!("hear from the server at {address}")),
            false => Error::new(ErrorKind::Unavailable, format!("reach the server at {address}"))
                .hint("Check the address, and that `cofferdam serve` runs there."),
        };
        let was_heard = !cause.is_connect();
        // The address of a request holds names of files.
        let error = error.source(cause.without_url());
        if was_heard { Self::Way(error) } else { Self::Unheard(error) }
    }
}

/// The answer if it is one, or else what it says of the error.
pub(crate) async fn checked(client: &Client, response: Response) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response);
    }
    let body = read(client, response).await?;
    Err(Failure::Said(Said { status, error: said(client, status, &body), body }))
}

/// All of an answer that is an object.
pub(crate) async fn object<T: DeserializeOwned>(
    client: &Client,
    response: Response,
) -> Result<T, Failure> {
    let body = read(client, response).await?;
    serde_json::from_slice(&body).map_err(|cause| {
        let what = format!("the server at {} answers with another object", client.address());
        Failure::Said(Said {
            status: StatusCode::OK,
            error: Error::new(ErrorKind::Protocol, what)
                .hint("Use the same version of Cofferdam on both sides.")
                .source(cause),
            body: Vec::new(),
        })
    })
}

/// All of an answer.
pub(crate) async fn read(client: &Client, mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|cause| Failure::way(client, cause))? {
        // HOSTILE: a server may be anybody.
        if body.len() + piece.len() > MAX_OBJECT_BYTES {
            let what = format!("the answer has more than {MAX_OBJECT_BYTES} bytes");
            return Err(Failure::Said(Said {
                status: response.status(),
                error: Error::new(ErrorKind::TooLarge, what).hint("Ask for less at once."),
                body: Vec::new(),
            }));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The error that an answer tells.
fn said(client: &Client, status: StatusCode, body: &[u8]) -> Error {
    if let Ok(report) = serde_json::from_slice::<ProblemReport>(body) {
        let error = told(report);
        if status == StatusCode::UNAUTHORIZED {
            return error.hint(GIVE_KEY);
        }
        let path = client.address().path().filter(|_| error.message == NOTHING_THERE);
        let Some(path) = path else { return error };
        let what = format!("the server at {} has nothing below {path}", client.address());
        return Error::new(error.kind, what)
            .hint("Leave the path out of the address, unless a proxy has the server there.");
    }
    let text: String = String::from_utf8_lossy(body)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN_CHARS)
        .collect();
    let what = format!("{} answers {status}, and as no Cofferdam would", client.address());
    let error = Error::new(ErrorKind::Protocol, what)
        .hint("Check the address, and the proxy in front of the server if there is one.");
    match text.trim() {
        "" => error,
        text => error.source(text.to_owned()),
    }
}

/// The error of a problem document.
pub(crate) fn told(report: ProblemReport) -> Error {
    let known = ErrorKind::ALL.into_iter().find(|kind| kind.name() == report.kind);
    let mut error = Error::new(known.unwrap_or(ErrorKind::Protocol), report.message);
    error.hint = report.hint.as_deref().map(typed);
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    fn problem(kind: ErrorKind, message: &str) -> Vec<u8> {
        let report = ProblemReport {
            about: "about:blank".to_owned(),
            title: String::new(),
            status: kind.http_status(),
            kind: kind.name().to_owned(),
            message: message.to_owned(),
            hint: Some("Do.".to_owned()),
            retryable: kind.is_retryable(),
        };
        serde_json::to_vec(&report).unwrap()
    }

    #[test]
    fn a_problem_is_the_same_error_here() {
        let client = Client::new(Address::parse("http://127.0.0.1:1").unwrap(), None).unwrap();
        for kind in ErrorKind::ALL {
            let error = said(&client, StatusCode::CONFLICT, &problem(kind, "what"));
            assert_eq!((error.kind, error.message.as_str()), (kind, "what"));
            assert_eq!(error.hint.as_deref(), Some("Do."));
        }
        let error = said(&client, StatusCode::BAD_GATEWAY, b"<h1>\x1b[2J</h1>");
        assert_eq!(error.kind, ErrorKind::Protocol);
        assert!(!error.chain().contains('\u{1b}'));
    }

    #[test]
    fn what_is_wrong_with_the_key_or_the_address_is_said_with_how_both_are_given() {
        let at = |address: &str, status, kind, message: &str| {
            let client = Client::new(Address::parse(address).unwrap(), None).unwrap();
            said(&client, status, &problem(kind, message))
        };
        let (root, below) = ("http://127.0.0.1:1", "http://127.0.0.1:1/foo");
        let denied = (StatusCode::UNAUTHORIZED, ErrorKind::Denied);
        let error = at(root, denied.0, denied.1, "no key is given");
        assert_eq!(
            (error.message.as_str(), error.hint.as_deref()),
            ("no key is given", Some(GIVE_KEY))
        );
        let missing = (StatusCode::NOT_FOUND, ErrorKind::NotFound);
        let error = at(below, missing.0, missing.1, NOTHING_THERE);
        assert_eq!(error.message, "the server at http://127.0.0.1:1/foo has nothing below /foo");
        assert!(error.hint.unwrap().contains("Leave the path out"));
        // What is said of a thing, or without a path, stays as it is.
        let others = [(root, NOTHING_THERE), (below, "there is no sandbox \"x\"")];
        for (address, message) in others {
            let error = at(address, missing.0, missing.1, message);
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some("Do.")));
        }
    }
}
