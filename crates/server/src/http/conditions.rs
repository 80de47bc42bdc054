//! Conditions on requests that nobody here would keep.

use axum::extract::MatchedPath;
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, header};
use cofferdam_core::{Error, ErrorKind, Result};

/// The route on which a file is read, written and removed.
const FILE: &str = "/v1/sandboxes/{sandbox}/files";
/// What is kept where a file is written.
const OF_A_FILE: [HeaderName; 2] = [header::IF_MATCH, header::IF_NONE_MATCH];
/// What a change may be asked under (RFC 9110, 13.1).
const CONDITIONS: [HeaderName; 3] =
    [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_UNMODIFIED_SINCE];

/// Refuses a change under a condition that is not looked at: to do it all the same is what whoever wrote the
/// condition wanted to prevent.
pub(super) fn refuse(parts: &Parts) -> Result<()> {
    if matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let writes = parts.method == Method::PUT && route == Some(FILE);
    let is_kept = |name: &HeaderName| writes && OF_A_FILE.contains(name);
    let ignored = |name: &&HeaderName| parts.headers.contains_key(*name) && !is_kept(name);
    match CONDITIONS.iter().find(ignored) {
        Some(name) => Err(Error::new(ErrorKind::Usage, format!("{name} is no condition here"))
            .hint("Leave it out. A file is written under If-Match or If-None-Match.")),
        None => Ok(()),
    }
}
