//! The process of a template that stands in the tree and is copied.

use super::{Answer, opener};
use crate::conversation::{lost, pair};
use crate::launch::{io_error, map_ids_below};
use crate::launcher::take_line;
use crate::sys::{self, Cloned};
use cofferdam_core::Result;
use cofferdam_guestd::line::{Line, understand};
use cofferdam_guestd::template::{Birth, Outside, Release, Template};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::SetupFailure;
use cofferdam_wire::template::{Ahead, ToTemplate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use std::process::ExitCode;

/// After this long without a request the next sandbox is prepared. Before, that would take the
/// processor from the sandbox that was just cloned.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_500_000 };

/// A template's own life. Ends with its line or its owner.
pub fn serve() -> ExitCode {
    match serve_line() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve_line() -> Result<()> {
    let (mut line, owner) = take_line()?;
    let (shared, opener) = loop {
        if let Some((_, body)) = line.next_frame().map_err(|_| lost())? {
            match (understand(&body), line.take_descriptor()) {
                (Some(ToTemplate::Become(shared)), Some(opener)) => break (shared, opener),
                _ => return Err(lost()),
            }
        }
        wait(&line, &owner, None, None)?;
        line.fill().map_err(|_| lost())?;
    };
    let children =
        sys::signals(&[libc::SIGCHLD]).map_err(|errno| io_error("watch children", errno))?;
    let stood = Outside::leave_host().and_then(|outside| {
        start_opener(&outside, opener)?;
        outside.settle(shared, &[line.socket(), owner.as_fd(), children.as_fd()])
    });
    let mut template = match stood {
        Ok(template) => template,
        Err(failure) => {
            line.last_word(&Answer::Failed { failure });
            return Err(lost());
        }
    };
    line.message(0, &Answer::Ready { is_nested: template.is_nested() }, Vec::new());
    line.drain();
    let mut next = None;
    loop {
        let is_ready = match template.ahead() {
            Ahead::Nothing => true,
            Ahead::Network => template.has_network(),
            Ahead::Process => next.is_some(),
        };
        if !wait(&line, &owner, Some(&children), (!is_ready).then_some(&QUIET))? {
            template.make_network().map_err(|_| lost())?;
            if template.ahead() == Ahead::Process {
                (template, next) = unborn(template, None).map(|(t, n)| (t, Some(n)))?;
            }
            wait(&line, &owner, Some(&children), None)?;
        }
        reap(&children);
        line.fill().map_err(|_| lost())?;
        while let Some((header, body)) = line.next_frame().map_err(|_| lost())? {
            if header.kind == Kind::Message {
                template = answer(template, &mut next, &mut line, &body)?;
            }
        }
    }
}

/// Waits until the line, or a child, has something to say. Answers whether one had, within this time.
/// Fails where the owner is gone: then the line may stay open in a child that it forked.
fn wait(
    line: &Line,
    owner: &OwnedFd,
    children: Option<&OwnedFd>,
    within: Option<&Timespec>,
) -> Result<bool> {
    let ends =
        [PollFd::new(owner, PollFlags::IN), PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)];
    let children = children.map(|children| PollFd::new(children, PollFlags::IN));
    let mut all: Vec<PollFd<'_>> = ends.into_iter().chain(children).collect();
    let happened = !matches!(poll(&mut all, within), Ok(0));
    match all.first() {
        Some(owner) if !owner.revents().is_empty() => Err(lost()),
        Some(_) | None => Ok(happened),
    }
}

fn reap(children: &OwnedFd) {
    let mut buffer = [0; 512];
    while rustix::io::read(children, &mut buffer).is_ok() {}
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// The other process: it keeps seeing the host's tree.
fn start_opener(outside: &Outside, socket: OwnedFd) -> Result<(), SetupFailure> {
    let template = rustix::process::getpid();
    match sys::clone_process(0, None) {
        Ok(Cloned::Child) => {
            outside.keep_only(&[socket.as_fd()]);
            opener::serve(socket, template);
            sys::exit_now(0)
        }
        Ok(Cloned::Parent { .. }) => Ok(()),
        Err(errno) => Err(failure("clone the opener", errno)),
    }
}

fn failure(call: &str, errno: Errno) -> SetupFailure {
    SetupFailure { step: "template".to_owned(), call: call.to_owned(), errno: errno.raw_os_error() }
}

/// A process in a sandbox's namespaces, which waits to hear whose it is. It ends with its pipe.
struct Unborn {
    pid: i32,
    pidfd: OwnedFd,
    /// The host's end.
    line: OwnedFd,
    release: OwnedFd,
}

/// Clones the first process of a sandbox.
fn unborn(mut template: Template, group: Option<&OwnedFd>) -> Result<(Template, Unborn)> {
    // ORDER: before its network is entered, or that would have a socket of ours in it.
    let (ours, theirs) = pair()?;
    let (released, release) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|errno| io_error("make a pipe", errno))?;
    let has_network = template.enter_network().map_err(|_| lost())?;
    let cloned = sys::clone_process(NAMESPACES, group.map(AsRawFd::as_raw_fd));
    if has_network && !matches!(cloned, Ok(Cloned::Child)) {
        template.leave_network().map_err(|_| lost())?;
    }
    match cloned {
        Ok(Cloned::Child) => template.live(Birth { line: theirs, released, has_network }),
        Ok(Cloned::Parent { pid, pidfd }) => {
            Ok((template, Unborn { pid, pidfd, line: ours, release }))
        }
        Err(errno) => Err(io_error("clone a sandbox", errno)),
    }
}

/// Answers a request. What fails here is no matter of the request, so that the template ends: the
/// host does without, and makes another one.
fn answer(
    mut template: Template,
    next: &mut Option<Unborn>,
    line: &mut Line,
    body: &[u8],
) -> Result<Template> {
    let Some(ToTemplate::Clone { uid_map, gid_map, born_in }) = understand(body) else {
        return Err(lost());
    };
    let group = if born_in { line.take_descriptor() } else { None };
    let ready = if born_in { None } else { next.take() };
    let cloned = match ready {
        Some(ready) => ready,
        None => {
            let cloned;
            (template, cloned) = unborn(template, group.as_ref())?;
            cloned
        }
    };
    let Unborn { pid, pidfd, line: theirs, release } = cloned;
    let done = if template.is_nested() {
        let_go(&release, &Release::MapYourself { uid_map, gid_map })
    } else {
        map_ids_below(template.proc(), &pid.to_string(), &uid_map, &gid_map)
            .map_err(|error| failure(&error.chain(), Errno::PERM))
            .and_then(|()| let_go(&release, &Release::Mapped))
    };
    match done {
        Ok(()) => line.message(0, &Answer::Born { pid }, vec![pidfd, theirs]),
        Err(failure) => line.message(0, &Answer::Failed { failure }, Vec::new()),
    }
    line.drain();
    Ok(template)
}

fn let_go(release: &OwnedFd, how: &Release) -> Result<(), SetupFailure> {
    let bytes = serde_json::to_vec(how).unwrap_or_default();
    rustix::io::write(release, &bytes).map(drop).map_err(|errno| failure("release it", errno))
}

/// All but the network, which is made ahead or by the sandbox, and the view of control groups, which
/// must begin at the group that it joins.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;
