//! Process 1 at work under the rules for commands.
//!
//! Rules of Landlock hold for a thread and whatever it starts, for good; what they are told of later holds
//! for whoever takes them on then. So a thread serves, under them, and the first thread of process 1 waits
//! for it, to begin another one. Commands are all under what one thread took on, because two who took on
//! the same rules apart may not signal or look at each other.

use super::Serve;
use crate::sys;
use cofferdam_wire::message::Greeting;
use rustix::fd::{AsFd, OwnedFd};

/// Serves until the line is lost. The greeting is said once the rules hold.
pub(super) fn serve(mut serve: Serve, rules: &OwnedFd, greeting: &Greeting) {
    let mut greeting = Some(greeting);
    loop {
        let greets = greeting.take();
        let served = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(sys::THREAD_STACK_BYTES);
            let work = move || {
                sys::live_on_a_thread();
                sys::landlock_restrict(rules.as_fd()).ok()?;
                if let Some(greeting) = greets {
                    serve.line.message(0, greeting, Vec::new());
                }
                serve.renews = false;
                // What came behind the word that ended the thread before.
                serve.hear_on().ok()?;
                serve.work();
                serve.renews.then_some(serve)
            };
            thread.spawn_scoped(scope, work).ok()?.join().ok()?
        });
        let Some(again) = served else { return };
        serve = again;
    }
}
