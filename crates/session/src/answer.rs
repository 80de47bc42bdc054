//! Answers of backends, with a limit on the waiting.

use cofferdam_core::{Error, ErrorKind, Result};
use std::time::Duration;

/// How long a backend may take to make a sandbox.
pub(crate) const CREATE_LIMIT: Duration = Duration::from_secs(120);
/// The same where it may have to copy a workspace first.
pub(crate) const COPY_LIMIT: Duration = Duration::from_secs(3600);
/// How long a backend may take for anything else.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(30);

/// The answer, unless it takes too long: then nobody knows whether it was done.
pub(crate) async fn within<T>(
    limit: Duration,
    what: &str,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer,
        Err(_) => {
            let what = format!("the backend did not {what} within {} s", limit.as_secs());
            Err(Error::new(ErrorKind::TimedOut, what)
                .hint("Try again; what was done meanwhile is found and not done twice."))
        }
    }
}

/// What a sandbox tells, asked as any call; `None` where there is no sandbox to ask.
pub(crate) async fn if_there<T>(
    what: &str,
    call: impl Future<Output = Result<T>>,
) -> Result<Option<T>> {
    match within(CALL_LIMIT, what, call).await {
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Unavailable) => {
            Ok(None)
        }
        answer => answer.map(Some),
    }
}
