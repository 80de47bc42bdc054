//! Where small work for the disk is done.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, spawn_blocking, yield_now};

/// Does what is nearly always over before another thread would wake: a look at a few names or at one
/// file.
///
/// On a runtime of one thread it is done at once, for a thread would have to be made first; whoever has
/// such a runtime stands still meanwhile, no limit of time applies, and others have their turn afterwards. On
/// other runtimes it is done where it stops nobody.
pub async fn briefly<T: Send + 'static>(
    deed: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        let done = deed();
        // Or one who asks for piece after piece would never let go, and no signal be heard.
        yield_now().await;
        return Ok(done);
    }
    spawn_blocking(deed).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{ThreadId, current};

    fn here_and_there(builder: &mut tokio::runtime::Builder) -> (ThreadId, ThreadId) {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let there = briefly(|| current().id()).await.unwrap();
            (current().id(), there)
        })
    }

    #[test]
    fn others_have_their_turn_between_one_and_the_next() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let done = runtime.block_on(async {
            let pieces = async {
                loop {
                    briefly(|| ()).await.unwrap();
                }
            };
            tokio::time::timeout(std::time::Duration::from_millis(1), pieces).await
        });
        assert!(done.is_err(), "the limit of time is never looked at");
    }

    #[test]
    fn another_thread_is_taken_only_where_there_are_several() {
        let (here, there) = here_and_there(&mut tokio::runtime::Builder::new_current_thread());
        assert_eq!(here, there);
        let (here, there) = here_and_there(&mut tokio::runtime::Builder::new_multi_thread());
        assert_ne!(here, there);
    }
}
