//! One at a time, over all processes of this machine.
//!
//! A lock is an advisory lock on a file below `locks`, which the kernel lets go when its owner
//! dies. It is waited for by asking again, so a future that waits can be dropped at any time.

use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// The first wait between two tries; it doubles up to the last.
const FIRST_WAIT: Duration = Duration::from_millis(1);
const LAST_WAIT: Duration = Duration::from_millis(16);
/// How often it is looked whether who holds a lock was stopped.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(2);
/// How often a lock is taken anew because its file was removed meanwhile.
const ATTEMPTS: usize = 64;

/// The locks of one state directory.
#[derive(Debug, Clone)]
pub(crate) struct Locks {
    directory: PathBuf,
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: OwnedFd,
}

impl Locks {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The keys that have a file.
    pub(crate) fn keys(&self) -> Result<Vec<String>> {
        let failed = |e: std::io::Error| {
            Error::new(ErrorKind::Io, format!("list {}", self.directory.display())).source(e)
        };
        let mut keys = Vec::new();
        let entries = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(keys),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            keys.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        Ok(keys)
    }

    /// Takes a lock if nobody holds it.
    pub(crate) fn try_take(&self, key: &str) -> Result<Option<Lock>> {
        let path = self.directory.join(key);
        let failed = |e: Errno| {
            Error::new(ErrorKind::Io, format!("lock {}", path.display()))
                .source(std::io::Error::from(e))
        };
        for _ in 0..ATTEMPTS {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = open(&path, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(e) => return Err(failed(e)),
            }
            // Whoever held it last may have removed the file: then this one locks nothing.
            let mine = fstat(&file).map_err(failed)?;
            match stat(&path) {
                Ok(named) if (named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino) => {
                    return Ok(Some(Lock { path, file }));
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(None)
    }

    /// Takes a lock, waiting for it so long, but not for somebody who stands still.
    pub(crate) async fn take(&self, key: &str, patience: Duration) -> Result<Lock> {
        let (begun, mut looked) = (Instant::now(), Instant::now());
        let mut wait = FIRST_WAIT;
        loop {
            if let Some(lock) = self.try_take(key)? {
                return Ok(lock);
            }
            if looked.elapsed() >= LOOKED_AT_EVERY {
                looked = Instant::now();
                if let Some(stopped) = self.stopped_holder(key) {
                    let what = format!("process {stopped}, which is at work on {key}, is stopped");
                    return Err(Error::new(ErrorKind::Unavailable, what).hint(format!(
                        "Let it go on (`kill -CONT {stopped}`, or `fg` where it was started), or kill it."
                    )));
                }
            }
            if begun.elapsed() >= patience {
                let what = format!("somebody has been at work on {key} for {patience:?}");
                return Err(Error::new(ErrorKind::Unavailable, what)
                    .hint("Try again when the other command is done."));
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_WAIT);
        }
    }

    /// Who holds a lock and was stopped (SIGSTOP, or the key of its terminal), as far as that can be seen from here.
    fn stopped_holder(&self, key: &str) -> Option<u32> {
        let file = stat(self.directory.join(key)).ok()?;
        let (major, minor) = (rustix::fs::major(file.st_dev), rustix::fs::minor(file.st_dev));
        let named = format!("{major:02x}:{minor:02x}:{}", file.st_ino);
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`, see proc_locks(5).
        let holder = locks.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_it = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&&*named);
            is_it.then(|| words.get(4)?.parse::<u32>().ok()).flatten()
        })?;
        let stat = std::fs::read_to_string(format!("/proc/{holder}/stat")).ok()?;
        // Behind the name in brackets, in which anything may stand.
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        (state == 'T').then_some(holder)
    }
}

impl Lock {
    /// Removes the file, so that the locks of what is gone do not pile up, and lets go.
    pub(crate) fn retire(self) {
        // What stays is an empty file, and the next one who locks it goes on from there.
        std::fs::remove_file(&self.path).ok();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that another thread is just starting holds a copy of the descriptor until it runs its
        // program. Closing ours would leave the lock with it.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_copied_holds_nothing() {
        let directory =
            std::env::temp_dir().join(format!("cofferdam-copied-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let locks = Locks::new(directory.clone());
        let held = locks.try_take("a").unwrap().unwrap();
        let copy = rustix::io::dup(&held.file).unwrap();
        drop(held);
        assert!(locks.try_take("a").unwrap().is_some());
        drop(copy);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[tokio::test]
    async fn a_lock_is_held_by_one_and_let_go_by_drop() {
        let directory = std::env::temp_dir().join(format!("cofferdam-lock-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let locks = Locks::new(directory.clone());
        let held = locks.try_take("a").unwrap().unwrap();
        assert!(locks.try_take("a").unwrap().is_none());
        assert!(locks.try_take("b").unwrap().is_some());
        let late = locks.take("a", Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(late.kind, ErrorKind::Unavailable);
        let waits = tokio::spawn({
            let locks = locks.clone();
            async move { locks.take("a", Duration::from_secs(10)).await }
        });
        tokio::task::yield_now().await;
        held.retire();
        let next = waits.await.unwrap().unwrap();
        assert!(locks.try_take("a").unwrap().is_none(), "the file of the new owner is the lock");
        drop(next);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[tokio::test]
    async fn nobody_waits_for_who_was_stopped() {
        let directory =
            std::env::temp_dir().join(format!("cofferdam-stopped-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let locks = Locks::new(directory.clone());
        let mut holder = std::process::Command::new("flock");
        holder.arg(directory.join("a")).args(["sh", "-c", "echo held; kill -STOP $PPID"]);
        let mut holder = holder.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut out = std::io::BufReader::new(holder.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut said).unwrap();
        let refused = locks.take("a", Duration::from_secs(60)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        assert!(refused.message.contains("is stopped"), "{refused}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
