//! Errors as problem documents (RFC 9457).

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};
pub(crate) use cofferdam_session::objects::ProblemReport;
use cofferdam_session::objects::advice::over_http;
use std::sync::Arc;

/// What a request failed with. Anything that fails with an [`Error`] becomes one by `?`.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    error: Error,
    retry_after_s: Option<u64>,
}

/// What handlers answer.
pub(crate) type Answer<T> = Result<T, Problem>;

impl Problem {
    /// A problem with a status that the kind of its error does not tell.
    pub(crate) fn with_status(status: StatusCode, error: Error) -> Self {
        Self { status, error, retry_after_s: None }
    }

    /// Says when to ask again.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The document. What the operating system said of the host is for the server's log alone.
    pub(crate) fn report(&self) -> ProblemReport {
        let (message, hint) = match in_place_of(self.error.kind) {
            Some((message, hint)) => (message.to_owned(), hint.map(str::to_owned)),
            None => (self.error.message.clone(), self.error.hint.as_deref().map(over_http)),
        };
        ProblemReport {
            about: "about:blank".to_owned(),
            title: self.error.kind.name().replace('_', " "),
            status: self.status.as_u16(),
            kind: self.error.kind.name().to_owned(),
            message,
            hint,
            retryable: self.error.kind.is_retryable(),
        }
    }
}

/// What is told where messages of this kind name files and calls of the host, and what would help there.
fn in_place_of(kind: ErrorKind) -> Option<(&'static str, Option<&'static str>)> {
    match kind {
        ErrorKind::Io | ErrorKind::Protocol => {
            Some(("the server could not do that; its log says why", None))
        }
        ErrorKind::Unenforceable => Some((
            "the server's host cannot enforce all that was asked for; the server's log says what",
            Some("Ask for less, or have the operator see what `cofferdam doctor` says there."),
        )),
        ErrorKind::Usage
        | ErrorKind::Config
        | ErrorKind::Denied
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::PathEscape
        | ErrorKind::NotAFile
        | ErrorKind::TooLarge
        | ErrorKind::Unsupported
        | ErrorKind::Unavailable
        | ErrorKind::SetupFailed
        | ErrorKind::TimedOut
        | ErrorKind::Canceled => None,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.kind.http_status());
        Self::with_status(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error)
    }
}

/// What went wrong, with its causes, for the log.
#[derive(Debug, Clone)]
pub(crate) struct Logged(pub(crate) Arc<str>);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Plain texts always serialise.
        let body = serde_json::to_vec(&self.report()).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("application/problem+json"),
        );
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, header::HeaderValue::from(seconds));
        }
        if self.status.is_server_error() || in_place_of(self.error.kind).is_some() {
            response.extensions_mut().insert(Logged(self.error.chain().into()));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_status_that_is_an_error() {
        for kind in ErrorKind::ALL {
            let report = Problem::from(Error::new(kind, "x")).report();
            assert!((400..600).contains(&report.status), "{kind:?}");
            assert_eq!(report.retryable, matches!(report.status, 503 | 504), "{kind:?}");
        }
    }

    #[test]
    fn what_the_host_said_stays_here() {
        let cause = std::io::Error::other("/root/secret");
        let told = |kind| {
            let error = Error::new(kind, "open /var/lib/x").source(std::io::Error::other("/y"));
            serde_json::to_string(&Problem::from(error).report()).unwrap()
        };
        assert!(told(ErrorKind::NotFound).contains("/var/lib/x"));
        for kind in [ErrorKind::Io, ErrorKind::Unenforceable] {
            assert!(!told(kind).contains("/var/lib/x"), "{kind:?}");
        }
        let chained = Problem::from(Error::new(ErrorKind::Conflict, "x").source(cause)).report();
        assert_eq!(chained.message, "x");
    }
}
