//! Where work is done that blocks its thread.
//!
//! On a runtime of several threads the way to another thread and back is some 0.1 ms, and a change of a session has ten
//! such pieces. In a task of our own ([`to_its_end`], [`apart`]) such a piece is done where the task is, and the
//! runtime puts another thread in the place of this one. In a task of the caller's it cannot be: others may wait in
//! it, and a `LocalSet` forbids it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle, block_in_place, spawn, spawn_blocking, yield_now};

tokio::task_local! {
    /// Set in tasks of our own.
    static OWN: ();
}

fn is_own() -> bool {
    OWN.try_with(|()| ()).is_ok()
}

/// Does what blocks.
pub async fn blocking<T: Send + 'static>(
    deed: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if is_own() && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        return Ok(block_in_place(deed));
    }
    spawn_blocking(deed).await
}

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
    blocking(deed).await
}

/// Does something to its end in a task of our own, whether anybody waits for that or not.
pub async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    spawn(OWN.scope((), work)).await
}

/// Does something in a task of our own where that gains anything. Whoever drops this gives it up, at the latest when it
/// waits next.
pub async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    if is_own() || Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(work.await);
    }
    GivenUp(spawn(OWN.scope((), work))).await
}

/// Begins something that goes on beside what the caller does next, in a task of our own. On a runtime of one thread it
/// is done when it is waited for. Whoever drops this gives it up.
pub fn beside<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Pin<Box<dyn Future<Output = Result<T, JoinError>> + Send>> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Box::pin(async move { Ok(work.await) });
    }
    Box::pin(GivenUp(spawn(OWN.scope((), work))))
}

/// A task that ends with whoever waits for it.
struct GivenUp<T>(JoinHandle<T>);

impl<T> Future for GivenUp<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for GivenUp<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{ThreadId, current};
    use std::time::Duration;
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::oneshot;

    fn with_threads() -> Runtime {
        Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
    }

    fn here_and_there(builder: &mut Builder) -> (ThreadId, ThreadId) {
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let there = briefly(|| current().id()).await.unwrap();
            (current().id(), there)
        })
    }

    #[test]
    fn others_have_their_turn_between_one_and_the_next() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let done = runtime.block_on(async {
            let pieces = async {
                loop {
                    briefly(|| ()).await.unwrap();
                }
            };
            tokio::time::timeout(Duration::from_millis(1), pieces).await
        });
        assert!(done.is_err(), "the limit of time is never looked at");
    }

    #[test]
    fn another_thread_is_taken_only_where_there_are_several() {
        let (here, there) = here_and_there(&mut Builder::new_current_thread());
        assert_eq!(here, there);
        let (here, there) = here_and_there(&mut Builder::new_multi_thread());
        assert_ne!(here, there);
    }

    #[test]
    fn what_is_beside_goes_on_while_its_caller_blocks() {
        let (say, said) = std::sync::mpsc::channel();
        let together = async move {
            let begun = beside(async move { say.send(current().id()).unwrap() });
            let wait =
                move || (current().id(), said.recv_timeout(Duration::from_secs(60)).unwrap());
            let (here, there) = blocking(wait).await.unwrap();
            assert_ne!(here, there);
            begun.await.unwrap();
        };
        with_threads().block_on(to_its_end(together)).unwrap();
    }

    #[test]
    fn with_one_thread_it_is_done_when_it_is_waited_for() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (say, said) = std::sync::mpsc::channel();
        runtime.block_on(async {
            let begun = beside(async move { say.send(()).unwrap() });
            tokio::task::yield_now().await;
            assert!(said.try_recv().is_err());
            begun.await.unwrap();
            said.try_recv().unwrap();
        });
    }

    async fn where_it_blocks() -> (ThreadId, ThreadId) {
        let here = current().id();
        (here, blocking(|| current().id()).await.unwrap())
    }

    #[test]
    fn in_a_task_of_ours_it_blocks_where_it_is() {
        let runtime = with_threads();
        for (is_ours, (here, there)) in [
            (true, runtime.block_on(to_its_end(where_it_blocks())).unwrap()),
            (true, runtime.block_on(apart(where_it_blocks())).unwrap()),
            (false, runtime.block_on(where_it_blocks())),
            (false, runtime.block_on(runtime.spawn(where_it_blocks())).unwrap()),
        ] {
            assert_eq!(here == there, is_ours);
        }
        // Neither does it where the caller's tasks are bound to a thread.
        let set = tokio::task::LocalSet::new();
        let (here, there) = set.block_on(&runtime, apart(where_it_blocks())).unwrap();
        assert_eq!(here, there);
        assert_ne!(here, current().id());
    }

    #[test]
    fn others_go_on_while_all_threads_are_blocked() {
        let runtime = with_threads();
        let done = runtime.block_on(async {
            let (say, said) = std::sync::mpsc::channel();
            let heard = std::sync::Arc::new(std::sync::Mutex::new(said));
            let waiting: Vec<_> = (0..8)
                .map(|_| {
                    let heard = std::sync::Arc::clone(&heard);
                    spawn(to_its_end(blocking(move || heard.lock().unwrap().recv().unwrap())))
                })
                .collect();
            for number in 0..8 {
                let say = say.clone();
                spawn(async move { say.send(number).unwrap() }).await.unwrap();
            }
            let mut sum = 0;
            for one in waiting {
                sum += one.await.unwrap().unwrap().unwrap();
            }
            sum
        });
        assert_eq!(done, 28);
    }

    #[test]
    fn who_is_dropped_gives_up_what_is_apart_and_nothing_else() {
        let runtime = with_threads();
        runtime.block_on(async {
            let (say, said) = oneshot::channel::<()>();
            let limit = Duration::from_millis(1);
            let for_ever = apart(async move {
                std::future::pending::<()>().await;
                drop(say);
            });
            assert!(tokio::time::timeout(limit, for_ever).await.is_err());
            assert!(said.await.is_err(), "it was dropped");
            let (go, gone) = oneshot::channel();
            let (say, said) = oneshot::channel();
            let to_the_end = to_its_end(async move {
                gone.await.unwrap();
                say.send(()).unwrap();
            });
            assert!(tokio::time::timeout(limit, to_the_end).await.is_err());
            go.send(()).unwrap();
            said.await.unwrap();
        });
    }
}
