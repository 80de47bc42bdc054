//! From a process's end to the report of it.

use super::Serve;
use super::running::Look;
use crate::line::understand;
use crate::{sys, terminal};
use cofferdam_wire::message::{Descendants, Ended, FromProcess};
use rustix::event::epoll;
use rustix::io::Errno;
use std::time::Instant;

impl Serve {
    pub(super) fn hear_monitor(&mut self, channel: u32) {
        let Some(running) = self.running.get_mut(&channel) else { return };
        let Some(monitor) = &running.monitor else { return };
        let mut bytes = [0; 4096];
        let count = match rustix::io::read(&monitor.reports, &mut bytes) {
            Ok(count) => count,
            Err(_) => return,
        };
        if count == 0 {
            let _ = epoll::delete(&self.epoll, &monitor.reports);
            if running.ended.is_none() {
                running.kill();
            }
            // A monitor that says nothing about the end was killed from inside.
            let _ = running.ended.get_or_insert(Ended {
                how: cofferdam_wire::message::How::Signaled(libc::SIGKILL),
                timed_out: false,
                killed_descendants: 0,
                cpu_us: 0,
                peak_rss_bytes: 0,
            });
            return;
        }
        for line in bytes.get(..count).unwrap_or_default().split(|byte| *byte == b'\n') {
            match understand(line) {
                Some(FromProcess::Ended(ended)) => running.ended = Some(ended),
                Some(message) => {
                    if let FromProcess::Started { pid } = message {
                        running.has_started(pid);
                    }
                    let gone = matches!(message, FromProcess::NotStarted(_));
                    self.line.message(channel, &message, Vec::new());
                    if gone {
                        let descendants = running.descendants;
                        self.running.remove(&channel);
                        return self.end_with(descendants);
                    }
                }
                None => {}
            }
        }
    }

    pub(super) fn reap(&mut self) {
        let mut buffer = [0; 512];
        // One signal stands for all children; what comes meanwhile makes it readable again.
        let _ = rustix::io::read(&self.signals, &mut buffer);
        loop {
            let child = match sys::wait4(-1, libc::WNOHANG) {
                Ok(Some(child)) => child,
                Ok(None) => return,
                Err(errno) => {
                    self.has_no_children = errno == Errno::CHILD;
                    return;
                }
            };
            self.own.remove(&child.pid);
            self.file_workers.remove(&child.pid);
            self.dying.remove(&child.pid);
            let main = self.running.iter_mut().find(|(_, running)| running.leader == child.pid);
            if let Some((channel, running)) = main
                && running.monitor.is_none()
                && let Look::Started(pid) = running.has_ended(terminal::ended(&child))
            {
                self.line.message(*channel, &FromProcess::Started { pid }, Vec::new());
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
        for relay in woken.iter().filter_map(|channel| self.relays.get(channel)) {
            if relay.is_asleep() {
                relay.enlarge();
            }
        }
        self.wake_relays(woken);
    }

    /// Reports every command that has ended once nothing of it is left.
    pub(super) fn finish_ended(&mut self) {
        let ended = self.running.values().filter(|running| running.ended.is_some());
        let mut outputs = ended.map(|running| &running.outputs).peekable();
        if outputs.peek().is_none() {
            return;
        }
        let outputs = outputs.flatten().copied().collect();
        self.wake_relays(outputs);
        let orphans = self.kill_orphans();
        let mut counted = false;
        for running in self.running.values_mut() {
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
            .filter(|(_, running)| running.ended.is_some() && running.outputs.is_empty())
            .map(|(channel, _)| *channel)
            .collect();
        for channel in done {
            self.drop_relays_of(channel);
            let Some(running) = self.running.remove(&channel) else { continue };
            let message = match (running.not_started, running.ended) {
                (Some(why), _) => FromProcess::NotStarted(why),
                (None, Some(ended)) => FromProcess::Ended(ended),
                (None, None) => continue,
            };
            self.line.message(channel, &message, Vec::new());
            self.end_with(running.descendants);
        }
    }

    /// Kills every child that is no command and none of ours. As a command gathers its own orphans
    /// while it lives, what comes to us outlived its command. Answers how many were new.
    fn kill_orphans(&mut self) -> u32 {
        let mut new = 0;
        if self.has_no_children {
            return new;
        }
        for pid in self.children.now() {
            let known = self.own.contains(&pid)
                || self.running.values().any(|running| running.leader == pid);
            if !known && self.dying.insert(pid) {
                let _ = sys::kill(pid, libc::SIGKILL);
                new += 1;
            }
        }
        new
    }

    /// Ends the sandbox, if it was to end with its command.
    pub(super) fn end_with(&mut self, descendants: Descendants) {
        match descendants {
            Descendants::Die => {}
            Descendants::DieWithSandbox => {
                self.line.drain();
                sys::exit_now(0);
            }
        }
    }
}
