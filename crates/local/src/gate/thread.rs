//! A gatehouse in a thread of its own, for a holder that is a program with a runtime.

use super::{Gatehouse, failed};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Something that is done with the gatehouse where it is.
type Errand = Box<dyn FnOnce(&mut Gatehouse) + Send>;

/// Dropping it ends the gate, and waits for that.
#[derive(Debug)]
pub(crate) struct InThread {
    /// A byte in it is an errand that waits. The thread ends when this closes.
    stop: Option<OwnedFd>,
    errands: Sender<Errand>,
    thread: Option<JoinHandle<()>>,
}

impl InThread {
    /// A gate dies with the thread that starts it, so that this one does nothing else.
    pub(crate) fn start(house: Gatehouse) -> Result<Self> {
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).map_err(failed("make a pipe"))?;
        let (errands, waiting) = channel();
        let thread = std::thread::Builder::new()
            .name("gate".to_owned())
            .spawn(move || hold(house, &stopped, &waiting))
            .map_err(|e| Error::new(ErrorKind::Io, "start the gate's thread").source(e))?;
        Ok(Self { stop: Some(stop), errands, thread: Some(thread) })
    }

    /// Does something with the gatehouse, and waits for that.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Gatehouse) -> T + Send + 'static,
    ) -> Result<T> {
        let gone = || Error::new(ErrorKind::Unavailable, "the gate's thread is gone");
        let stop = self.stop.as_ref().ok_or_else(gone)?;
        let (answer, answered) = channel();
        let errand: Errand = Box::new(move |house| {
            // Whoever asked may have given up.
            let _ = answer.send(work(house));
        });
        // ORDER: the errand before the byte that tells of it.
        self.errands.send(errand).map_err(|_| gone())?;
        rustix::io::write(stop, &[1]).map_err(failed("wake the gate's thread"))?;
        answered.recv().map_err(|_| gone())
    }
}

impl Drop for InThread {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn hold(mut house: Gatehouse, stopped: &OwnedFd, errands: &Receiver<Errand>) {
    loop {
        let mut waits = vec![PollFd::new(stopped, PollFlags::IN)];
        let of_the_house = house.waits();
        let polled = of_the_house.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags));
        waits.extend(polled);
        match poll(&mut waits, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let told = waits.first().map_or(PollFlags::HUP, PollFd::revents);
        let is_turn = waits.iter().skip(1).any(|one| !one.revents().is_empty());
        drop(waits);
        drop(of_the_house);
        if told.contains(PollFlags::IN) {
            let mut bytes = [0; 64];
            if !matches!(rustix::io::read(stopped, &mut bytes), Ok(1..) | Err(Errno::INTR)) {
                return;
            }
            errands.try_iter().for_each(|errand| errand(&mut house));
        } else if !told.is_empty() {
            return;
        }
        // ORDER: what the house waits for was looked at before the errands, and may be past by now;
        // then a turn finds nothing to do.
        if is_turn {
            house.turn();
            // Nobody asks this holder for what waits, nor for what is denied before its end.
            drop((house.news(), house.take_denials()));
        }
    }
}
