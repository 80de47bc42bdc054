//! The time, as it is written down and waited for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Longer than anybody waits, and no clock that counts from now to then runs over: thirty years.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// When this long is over. What is longer than any wait never is.
pub(crate) fn after(patience: Duration) -> Instant {
    Instant::now() + bounded(patience)
}

/// As long as somebody says, and no longer than a clock can tell.
pub(crate) fn bounded(patience: Duration) -> Duration {
    patience.min(FOR_EVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_without_an_end_has_a_deadline_that_no_clock_runs_over() {
        let now = Instant::now();
        assert!(after(Duration::MAX) > now + FOR_EVER / 2);
        assert!(after(Duration::from_secs(1)) < now + Duration::from_secs(60));
    }
}
