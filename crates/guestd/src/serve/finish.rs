//! From a process's end to the report of it.

use super::Serve;
use super::running::{Look, Running};
use crate::line::understand;
use crate::{reap, sys};
use cofferdam_wire::message::{Descendants, FromProcess};
use rustix::event::epoll;
use rustix::io::Errno;
use std::time::Instant;

impl Serve {
    /// Takes what a monitor says, as far as it has come.
    pub(super) fn hear_monitor(&mut self, channel: u32) {
        let mut bytes = [0; 4096];
        while let Some(running) = self.running.get_mut(&channel) {
            let Some(monitor) = &running.monitor else { return };
            let count = match rustix::io::read(&monitor.reports, &mut bytes) {
                Ok(0) => {
                    let _ = epoll::delete(&self.epoll, &monitor.reports);
                    return;
                }
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(_) => return,
            };
            for line in bytes.get(..count).unwrap_or_default().split(|byte| *byte == b'\n') {
                if let Some(message) = understand(line) {
                    self.monitor_says(channel, message);
                }
            }
        }
    }

    fn monitor_says(&mut self, channel: u32, message: FromProcess) {
        let Some(running) = self.running.get_mut(&channel) else { return };
        match message {
            FromProcess::Ended(ended) => running.end(ended),
            FromProcess::Started { pid } => {
                running.has_started(pid);
                self.line.message(channel, &message, Vec::new());
            }
            FromProcess::Stopped { .. } => self.line.message(channel, &message, Vec::new()),
            // It says what it gathered by going away.
            FromProcess::Emptied => {}
            FromProcess::NotStarted(_) => {
                self.line.message(channel, &message, Vec::new());
                if let Some(running) = self.running.remove(&channel) {
                    self.end_with(running.descendants);
                }
            }
        }
    }

    /// A monitor was waited for: what was left below it is ours by now.
    fn take_over(&mut self, channel: u32) {
        // ORDER: its last words first.
        self.hear_monitor(channel);
        if let Some(running) = self.running.get_mut(&channel) {
            running.lose_monitor();
        }
    }

    pub(super) fn reap(&mut self) {
        let mut buffer = [0; 512];
        // One signal stands for all children; what comes meanwhile makes it readable again.
        let _ = rustix::io::read(&self.signals, &mut buffer);
        loop {
            let child = match sys::wait4(-1, libc::WNOHANG | libc::WUNTRACED) {
                Ok(Some(child)) => child,
                Ok(None) => return,
                Err(errno) => {
                    self.has_no_children = errno == Errno::CHILD;
                    return;
                }
            };
            if libc::WIFSTOPPED(child.status) {
                // A monitor is stopped from inside only: nobody is to wait for what it has to tell.
                if self.own.contains(&child.pid) {
                    let _ = sys::kill(child.pid, libc::SIGCONT);
                }
                continue;
            }
            self.own.remove(&child.pid);
            self.file_workers.remove(&child.pid);
            self.port_workers.remove(&child.pid);
            self.dying.remove(&child.pid);
            let of = |running: &Running| match &running.monitor {
                Some(monitor) => monitor.pid == child.pid,
                None => running.leader == child.pid,
            };
            let Some((channel, running)) = self.running.iter_mut().find(|(_, r)| of(r)) else {
                continue;
            };
            let channel = *channel;
            if running.monitor.is_some() {
                self.take_over(channel);
            } else if let Look::Started(pid) = running.has_ended(reap::ended(&child)) {
                self.line.message(channel, &FromProcess::Started { pid }, Vec::new());
            }
        }
    }

    /// Looks after what is to be looked after by now.
    pub(super) fn watch_clock(&mut self) {
        let now = Instant::now();
        let mut woken = Vec::new();
        for (channel, running) in &mut self.running {
            if running.is_overdue(now) {
                running.timed_out = true;
                running.kill();
            }
            if running.is_due(now) {
                if let Look::Started(pid) = running.look(now) {
                    self.line.message(*channel, &FromProcess::Started { pid }, Vec::new());
                }
                woken.extend(running.outputs.iter().copied());
            }
        }
        self.wake_relays(woken);
    }

    /// Reports every command that has ended: at once where its descendants stay, else once nothing of
    /// it is left.
    pub(super) fn finish_ended(&mut self) {
        for (channel, running) in &mut self.running {
            if let Some(ended) = running.untold_end() {
                self.line.message(*channel, &FromProcess::Ended(ended), Vec::new());
            }
        }
        let ended = self.running.values().filter(|running| running.is_over());
        let mut outputs = ended.map(|running| &running.outputs).peekable();
        if outputs.peek().is_none() {
            return;
        }
        let outputs = outputs.flatten().copied().collect();
        self.wake_relays(outputs);
        let orphans = self.kill_orphans();
        let mut counted = false;
        for running in self.running.values_mut().filter(|running| running.is_over()) {
            if let Some(ended) = &mut running.ended {
                if !counted {
                    ended.killed_descendants += orphans;
                    counted = true;
                }
                ended.timed_out = running.timed_out;
            }
        }
        if !self.dying.is_empty() {
            return;
        }
        let done: Vec<u32> = self
            .running
            .iter()
            .filter(|(_, running)| running.is_over() && running.outputs.is_empty())
            .map(|(channel, _)| *channel)
            .collect();
        for channel in done {
            self.drop_relays_of(channel);
            self.handed_files.let_go(channel);
            let Some(running) = self.running.remove(&channel) else { continue };
            let descendants = running.descendants;
            if let Some(message) = running.last_word() {
                self.line.message(channel, &message, Vec::new());
            }
            self.end_with(descendants);
        }
    }

    /// Kills every child that is no command and none of ours. As a command gathers its own orphans
    /// while it lives, what comes to us outlived its command. Answers how many were new and still ran:
    /// what ended before and was waited for by nobody comes to us too.
    fn kill_orphans(&mut self) -> u32 {
        let mut new = 0;
        if self.has_no_children {
            return new;
        }
        for pid in self.children.now() {
            let known = self.own.contains(&pid)
                || self.running.values().any(|running| running.leader == pid);
            if !known && self.dying.insert(pid) {
                new += u32::from(!reap::has_ended(pid));
                let _ = sys::kill(pid, libc::SIGKILL);
            }
        }
        new
    }

    /// Ends the sandbox, if it was to end with its command.
    pub(super) fn end_with(&mut self, descendants: Descendants) {
        match descendants {
            Descendants::Die | Descendants::Stay => {}
            Descendants::DieWithSandbox => {
                self.line.drain();
                sys::exit_now(0);
            }
        }
    }
}
