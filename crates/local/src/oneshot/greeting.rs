//! The guest's first word.

use super::lost_line;
use crate::launch::io_error;
use cofferdam_core::Result;
use cofferdam_guestd::line::{Line, understand};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::{Greeting, Hello, SetupFailure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// How long a set-up may take: far more than it does, and less than a caller's patience.
const SET_UP_S: i64 = 60;

/// Waits for the greeting. Gives the descriptors that came before it, too.
pub(crate) fn await_hello(line: &mut Line) -> Result<Result<(Hello, Vec<OwnedFd>), SetupFailure>> {
    let mut is_lost = false;
    loop {
        let frame = line.next_frame().map_err(|_| lost_line("it carried what is no frame"))?;
        if let Some((header, body)) = frame {
            // A copy of a template hands over its namespaces first, and one with a way out sockets.
            if header.kind != Kind::Message {
                continue;
            }
            return match understand::<Greeting>(&body) {
                Some(Greeting::Hello(hello)) => {
                    let came = std::iter::from_fn(|| line.take_descriptor()).collect();
                    Ok(Ok((hello, came)))
                }
                Some(Greeting::SetupFailed(failure)) => Ok(Err(failure)),
                None => Err(lost_line("its greeting makes no sense")),
            };
        }
        if is_lost {
            return Err(lost_line("the first process died during the set-up"));
        }
        let timeout = Timespec { tv_sec: SET_UP_S, tv_nsec: 0 };
        let mut wait = [PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)];
        match poll(&mut wait, Some(&timeout)) {
            Ok(0) => return Err(lost_line("the set-up took more than a minute")),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(io_error("wait for the sandbox", errno)),
        }
        // What came before the end may still be a greeting: it is looked at before the loss is told.
        is_lost = line.fill().is_err();
    }
}
