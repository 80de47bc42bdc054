//! A group of programs of the host that ends with us.
//!
//! A program that waits for the network does not notice that its starter is gone. So a shell leads the
//! group and reads from a pipe that nobody writes to: its end means that we are gone.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Leads the group. Whatever is in it ends with the value, or with this process.
pub(super) struct Guard {
    leader: Child,
    group: Pid,
}

impl Guard {
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", "read line; kill -KILL 0"]).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut leader = command.process_group(0).spawn()?;
        match i32::try_from(leader.id()).ok().and_then(Pid::from_raw) {
            Some(group) => Ok(Self { leader, group }),
            None => {
                drop(leader.stdin.take());
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }

    /// The next program of the group.
    pub(super) fn lead<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.process_group(self.group.as_raw_nonzero().get())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // ORDER: before the leader is waited for, or its number may be another's.
        kill_process_group(self.group, Signal::KILL).ok();
        self.leader.wait().ok();
    }
}
