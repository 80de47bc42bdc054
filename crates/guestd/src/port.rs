//! Port workers: processes of the sandbox that carry bytes between the host and a port inside.
//!
//! Process 1 clones one for each connection that the host asks for. It is under the same user, filter
//! and rules as every command, so it reaches what a command reaches. What comes from inside is bytes
//! alone: a descriptor of the sandbox's would be the sandbox's choice of what the host reads.

use crate::descriptors::close_all_but;
use crate::sys;
use cofferdam_wire::frame::{self, Kind};
use cofferdam_wire::message::Port;
use cofferdam_wire::port::PortAnswer;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use rustix::process::Signal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a program inside may take to take a connection. Its queue may be full.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// How much is carried at once, each way.
const BUFFER_BYTES: usize = 64 << 10;

/// Starts a worker on a connection.
pub(crate) fn start(request: Port, socket: &OwnedFd) -> Result<i32> {
    match sys::fork()? {
        0 => {
            // A copy of process 1 holds the line and every command's pipes.
            close_all_but([socket]);
            // Without a process namespace, nobody else would end it.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            serve(request, socket);
            sys::exit_now(0)
        }
        pid => Ok(pid),
    }
}

/// Answers on a connection, and waits for nobody.
pub(crate) fn answer(socket: &OwnedFd, answer: &PortAnswer) -> Result<()> {
    let mut bytes = Vec::new();
    let body = serde_json::to_vec(answer).map_err(|_| Errno::INVAL)?;
    frame::encode(0, Kind::Message, &body, &mut bytes).map_err(|_| Errno::INVAL)?;
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::send(socket, &bytes, flags).map(drop)
}

fn serve(request: Port, socket: &OwnedFd) {
    let stream = match connect(request.port) {
        Ok(stream) => stream,
        Err(refusal) => {
            // The host may have given up.
            let _ = answer(socket, &refusal);
            return;
        }
    };
    if answer(socket, &PortAnswer::Connected).is_ok() && stream.set_nonblocking(true).is_ok() {
        // How it ends is seen by both ends.
        let _ = carry(socket.as_fd(), stream.as_fd());
    }
}

/// Some servers listen on one of the two loopback addresses alone.
fn connect(port: u16) -> std::result::Result<TcpStream, PortAnswer> {
    let mut failed = None;
    for address in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let address = SocketAddr::new(address, port);
        match TcpStream::connect_timeout(&address, TAKEN_WITHIN) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::ETIMEDOUT);
                // A kernel without IPv6 has no second address, and then nobody listens there.
                let nobody = [libc::ECONNREFUSED, libc::EADDRNOTAVAIL, libc::EAFNOSUPPORT];
                if !nobody.contains(&errno) {
                    let call = format!("connect to {address}");
                    failed.get_or_insert(PortAnswer::Failed { call, errno });
                }
            }
        }
    }
    Err(failed.unwrap_or(PortAnswer::NobodyListens))
}

/// Carries bytes both ways until both directions have ended, or the host has hung up.
fn carry(host: BorrowedFd<'_>, inside: BorrowedFd<'_>) -> Result<()> {
    let mut in_ = Way::new(host, inside);
    let mut out = Way::new(inside, host);
    while !(in_.is_over && out.is_over) {
        let at_host = in_.wants() | out.offers();
        let at_inside = out.wants() | in_.offers();
        // What has hung up is told whatever is asked, and again and again: an end that nobody waits
        // for is not asked, but for the host's when it has said all.
        let asked = [(host, at_host, in_.is_over), (inside, at_inside, false)];
        let asked = asked.into_iter().filter(|(_, flags, always)| *always || !flags.is_empty());
        let mut polled: Vec<_> =
            asked.map(|(end, flags, _)| PollFd::from_borrowed_fd(end, flags)).collect();
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let host_is_gone =
            polled.first().is_some_and(|first| first.revents().contains(PollFlags::HUP));
        if in_.is_over && host_is_gone {
            return Ok(());
        }
        in_.work();
        out.work();
    }
    Ok(())
}

/// One direction.
struct Way<'a> {
    from: BorrowedFd<'a>,
    to: BorrowedFd<'a>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_over: bool,
}

impl<'a> Way<'a> {
    fn new(from: BorrowedFd<'a>, to: BorrowedFd<'a>) -> Self {
        Self { from, to, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, is_over: false }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// What it waits for where it reads.
    fn wants(&self) -> PollFlags {
        if self.is_over || !self.is_empty() { PollFlags::empty() } else { PollFlags::IN }
    }

    /// What it waits for where it writes.
    fn offers(&self) -> PollFlags {
        if self.is_over || self.is_empty() { PollFlags::empty() } else { PollFlags::OUT }
    }

    /// Carries what can be carried now. An end that fails is one that has ended.
    fn work(&mut self) {
        if self.is_over {
            return;
        }
        if self.is_empty() {
            let flags = RecvFlags::DONTWAIT;
            match rustix::net::recv(self.from, self.buffer.as_mut_slice(), flags) {
                Err(Errno::AGAIN | Errno::INTR) => return,
                Ok((0, _)) | Err(_) => return self.end(),
                Ok((count, _)) => (self.start, self.end) = (0, count),
            }
        }
        let rest = self.buffer.get(self.start..self.end).unwrap_or_default();
        match rustix::net::send(self.to, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) => self.start += count,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.end(),
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        // The other end may be gone already.
        let _ = rustix::net::shutdown(self.to, Shutdown::Write);
    }
}
