//! File workers: processes of the sandbox that serve files of its workspace to the host.
//!
//! Process 1 clones one for each connection that the host asks for, and none before. It is under the
//! same user, filter and rules as every command, so it can do nothing that a command could not. Being
//! alone on its connection it may wait for the disk and for the host without delaying anybody.
//!
//! The filter has no `openat2`, so [`walk`] goes from directory to directory by itself and resolves
//! links as text; see `docs/decisions/0013-files.md`.

mod carry;
mod change;
mod copy_tree;
mod failure;
mod list;
mod many;
mod read;
mod remove;
mod talk;
mod tally;
mod walk;
mod watch;
mod write;

use crate::descriptors::close_all_but;
use crate::sys;
use cofferdam_wire::files::{
    Answer, FILES_GENERATION, Failure, Greeting, MAX_CONNECTIONS, Request, Why,
};
use cofferdam_wire::message::Files;
use failure::{Trouble, failed};
use rustix::fd::OwnedFd;
use rustix::io::Result;
use rustix::process::Signal;
use talk::{Gone, Talk};
use walk::Root;

/// Starts a worker on a connection.
pub(crate) fn start(request: &Files, socket: &OwnedFd) -> Result<i32> {
    match sys::fork()? {
        0 => {
            // A copy of process 1 holds the line and every command's pipes.
            close_all_but([socket]);
            // Without a process namespace, nobody else would end it.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            if let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(socket, 3) {
                // That nobody asks any more is how it ends.
                let _ = work(request, Talk::new(socket));
            }
            sys::exit_now(0)
        }
        pid => Ok(pid),
    }
}

/// Says on a connection that it gets no worker, and why.
pub(crate) fn refuse(socket: &OwnedFd, refusal: &Refusal) {
    let why = match refusal {
        Refusal::TooMany => Failure {
            why: Why::Exhausted,
            detail: format!("{MAX_CONNECTIONS} connections to its files are open"),
            errno: 0,
        },
        Refusal::NoProcess(errno) => failed(*errno, "no process could be made to serve files"),
    };
    talk::say_at_once(socket, &Greeting::Refused(why));
}

/// Why a connection gets no worker.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There are as many as may be.
    TooMany,
    /// None could be made.
    NoProcess(rustix::io::Errno),
}

fn work(request: &Files, mut talk: Talk) -> std::result::Result<(), Gone> {
    let root = match Root::open(request) {
        Ok(root) => root,
        Err(failure) => return talk.greet(&Greeting::Refused(failure)),
    };
    talk.greet(&Greeting::Ready { generation: FILES_GENERATION })?;
    loop {
        let request = talk.next_request()?;
        let answer = match perform(&root, &request, &mut talk) {
            Ok(answer) => answer,
            Err(Trouble::Failed(failure)) => Answer::Failed(failure),
            Err(Trouble::Gone) => return Err(Gone),
        };
        // ORDER: what still comes belongs to this request, and must not be taken for the next.
        talk.pass_over_upload()?;
        talk.answer(&answer)?;
    }
}

fn perform(
    root: &Root,
    request: &Request,
    talk: &mut Talk,
) -> std::result::Result<Answer, Trouble> {
    match request {
        Request::Read(read) => read::read(root, read, talk),
        Request::Write(write) => write::write(root, write, talk),
        Request::Append(append) => write::append(root, append, talk),
        Request::Stat { path } => Ok(read::stat(root, path)?),
        Request::List(list) => list::list(root, list, talk),
        Request::MakeDirectory { path } => Ok(change::make_directory(root, path)?),
        Request::Move(order) => Ok(change::rename(root, order)?),
        Request::Copy(order) => write::copy(root, order, talk),
        Request::Remove(order) => Ok(remove::remove(root, order)?),
        Request::SetMode { path, mode } => Ok(change::set_mode(root, path, *mode)?),
        Request::Carry(order) => carry::carry(root, order, talk),
        Request::Recover(order) => Ok(carry::recover(root, order)?),
        Request::ReadMany(order) => many::read(root, order, talk),
        Request::CopyTree(order) => copy_tree::copy(root, order, talk),
        Request::Watch(order) => watch::watch(root, order, talk),
    }
}
