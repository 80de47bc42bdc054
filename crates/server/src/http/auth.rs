//! Who asks, and how often.

use super::error::Problem;
use crate::Server;
use crate::serve::Way;
use axum::http::{HeaderMap, StatusCode, header};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{KeyReport, KeyScope, Quota};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who asks, and what that caller may do.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The key; `None` is the local user, who may do everything.
    pub(crate) key: Option<Arc<KeyReport>>,
}

impl Caller {
    /// Whether the key is still good. Where the database cannot be read nothing was revoked that anybody knows of.
    pub(crate) async fn is_known_still(&self, server: &Server) -> bool {
        match &self.key {
            Some(key) => !matches!(server.0.sessions.key_is_good(&key.prefix).await, Ok(false)),
            None => true,
        }
    }

    /// Whose sessions are seen; empty is the local user.
    pub(crate) fn owner(&self) -> &str {
        self.key.as_ref().map_or("", |key| key.name.as_str())
    }

    /// How much there may be.
    pub(crate) fn quota(&self) -> Quota {
        self.key.as_ref().map(|key| key.rights.quota).unwrap_or_default()
    }

    /// Fails unless the caller is allowed that.
    pub(crate) fn may(&self, scope: KeyScope) -> Result<()> {
        match &self.key {
            Some(key) if !key.rights.scopes.contains(&scope) => {
                let what = format!("key {} has no scope {}", key.prefix, scope.name());
                Err(Error::new(ErrorKind::Denied, what)
                    .hint("Ask the operator for a key with that scope."))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Finds out who asks.
///
/// By the file of a socket nobody comes but the user whose server it is. By TCP a caller without a key
/// is that user only as long as there never was a key, and where the kernel says that the other end is
/// theirs.
pub(super) async fn caller(
    server: &Server,
    way: Way,
    headers: &HeaderMap,
) -> Result<Caller, Problem> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let given = all.next();
    if all.next().is_some() {
        // Each is read by somebody on the way: who asks is not for a server to choose.
        return Err(Error::new(ErrorKind::Usage, "there are two authorizations")
            .hint("Send one `authorization: Bearer KEY`.")
            .into());
    }
    let Some(given) = given else {
        let needs_key = way != Way::Unix && server.requires_keys().await?;
        return match way {
            _ if needs_key => Err(unknown("no key is given")),
            Way::Unix | Way::OwnTcp => Ok(Caller { key: None }),
            Way::Tcp => Err(unknown("another user of this machine asks without a key")),
            Way::UnclearTcp(errno) => Err(unclear(errno)),
        };
    };
    let secret = given.to_str().ok().and_then(|given| {
        let (scheme, secret) = given.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(secret.trim())
    });
    let Some(secret) = secret else { return Err(unknown("the authorization is no bearer key")) };
    match server.0.sessions.key_of(secret).await? {
        Some(key) => Ok(Caller { key: Some(Arc::new(key)) }),
        None => Err(unknown("the key is not known here, or was revoked")),
    }
}

/// Not a refusal: the one who asks may well be the user whose server it is.
fn unclear(errno: rustix::io::Errno) -> Problem {
    let what = "the server could not find out whose the connection is; its log says why";
    Error::new(ErrorKind::Unavailable, what)
        .hint("Ask again, or with a key, of which nobody has to find that out.")
        .source(std::io::Error::from(errno))
        .into()
}

fn unknown(what: &str) -> Problem {
    let error = Error::new(ErrorKind::Denied, what)
        .hint("Send `authorization: Bearer KEY` with a key from `cofferdam key create`.");
    Problem::with_status(StatusCode::UNAUTHORIZED, error)
}

/// How often each key asked lately: a bucket that fills by its rate, and holds a second's worth.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<String, Bucket>>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// After how long a full bucket is as good as none.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// From how many buckets on those are dropped.
const MANY: usize = 1024;

impl Rates {
    /// Takes one request of a caller, unless there are too many.
    pub(super) fn take(&self, caller: &Caller, now: Instant) -> Result<(), Problem> {
        let Some(key) = &caller.key else { return Ok(()) };
        let Some(rate) = key.rights.max_rate else { return Ok(()) };
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > MANY {
            buckets.retain(|_, bucket| now.duration_since(bucket.at) < FORGOTTEN);
        }
        let most = f64::from(rate);
        let bucket = buckets.entry(key.prefix.clone()).or_insert(Bucket { left: most, at: now });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * most).min(most);
        bucket.at = now;
        if bucket.left < 1.0 {
            let what = format!("key {} asks more than {rate} times a second", key.prefix);
            let error = Error::new(ErrorKind::Unavailable, what).hint("Ask again in a second.");
            return Err(Problem::with_status(StatusCode::TOO_MANY_REQUESTS, error).retry_after(1));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use cofferdam_session::KeyRights;
    use rustix::io::Errno;

    #[test]
    fn who_could_not_be_looked_up_is_told_that_and_not_that_a_key_is_missing() {
        let told = unclear(Errno::MFILE).into_response();
        assert_eq!(told.status(), StatusCode::SERVICE_UNAVAILABLE);
        let logged = told.extensions().get::<crate::http::error::Logged>().unwrap();
        assert!(logged.0.contains("os error 24"), "{logged:?}");
    }

    fn caller(rate: Option<u32>, scopes: &[KeyScope]) -> Caller {
        let rights = KeyRights { scopes: scopes.to_vec(), max_rate: rate, ..KeyRights::default() };
        let key = KeyReport {
            prefix: "cfd_1".to_owned(),
            name: "a".to_owned(),
            rights,
            created_ms: 0,
            revoked_ms: None,
        };
        Caller { key: Some(Arc::new(key)) }
    }

    #[test]
    fn a_rate_is_so_many_in_a_second() {
        let (rates, now) = (Rates::default(), Instant::now());
        let limited = caller(Some(2), &[]);
        assert!(rates.take(&limited, now).is_ok());
        assert!(rates.take(&limited, now).is_ok());
        assert!(rates.take(&limited, now).is_err());
        assert!(rates.take(&limited, now + Duration::from_millis(600)).is_ok());
        assert!(rates.take(&limited, now + Duration::from_millis(600)).is_err());
        assert!((0..99).all(|_| rates.take(&caller(None, &[]), now).is_ok()));
    }

    #[test]
    fn a_key_is_good_for_its_scopes_alone() {
        let looks = caller(None, &[KeyScope::Look]);
        for scope in KeyScope::ALL {
            assert_eq!(looks.may(scope).is_ok(), scope == KeyScope::Look, "{scope:?}");
            assert!(Caller { key: None }.may(scope).is_ok());
        }
    }
}
