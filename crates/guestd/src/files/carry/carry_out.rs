//! From a stage that is ready to changed names, and back.

use super::super::failure::{Trouble, failed, refused};
use super::super::write::{permissions, write_all};
use super::act::{Act, Ground};
use super::expect::{Sign, changed, check, check_changeable};
use super::held::name;
use super::leftover::{DONE, JOURNAL, MAX_JOURNAL_BYTES};
use super::moment;
use super::stage::{Progress, SYNCED_ALONE, Stage, unexpected};
use cofferdam_wire::files::{Before, Failure, Why};
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, Mode, OFlags};

impl Stage<'_> {
    /// Looks whether all is as expected, then changes the names. Takes all back if anything fails.
    pub(super) fn carry_out(&mut self, sign: Sign<'_>) -> Result<(), Trouble> {
        self.finish_new()?;
        self.look_first(sign)?;
        self.write_down()?;
        self.progress = Progress::Changing;
        let ground = Ground { root: self.root, held: &self.held, stage: &self.directory };
        let changed = self.acts.iter().try_for_each(|act| {
            moment()?;
            ground.perform(act, sign)
        });
        let changed = changed.and_then(|()| moment()).and_then(|()| Ok(self.finish()?));
        match changed {
            Ok(()) => {
                self.progress = Progress::Settled;
                Ok(())
            }
            Err(trouble) => Err(self.back(trouble)),
        }
    }

    fn finish_new(&mut self) -> Result<(), Failure> {
        for (path, mode) in std::mem::take(&mut self.modes).into_iter().rev() {
            let opened = match (self.made.get(&path), self.inside(&path)) {
                (Some(slot), _) => self.open_inside(*slot, &[])?,
                (None, Some((slot, below))) => self.open_inside(slot, &below)?,
                (None, None) => return Err(unexpected(&path)),
            };
            let at = format!("/proc/self/fd/{}", opened.as_raw_fd());
            rustix::fs::chmodat(rustix::fs::CWD, at, permissions(mode)?, AtFlags::empty())
                .map_err(|e| failed(e, "its permissions cannot be set"))?;
        }
        if self.files > SYNCED_ALONE {
            rustix::fs::syncfs(&self.directory)
                .map_err(|e| failed(e, "the disk does not take it"))?;
        }
        Ok(())
    }

    fn look_first(&mut self, sign: Sign<'_>) -> Result<(), Trouble> {
        for path in self.acts.iter().flat_map(Act::paths) {
            check_changeable(self.held.get(path.as_bytes())?, path.as_bytes())?;
        }
        for (path, before) in &self.expected {
            moment()?;
            match self.held.hold(path) {
                Ok(directory) => check(self.root, (directory, name(path)), path, before, sign)?,
                // Nothing is in what is not there, or is no directory.
                Err(Failure { why: Why::NotFound | Why::WrongType, .. })
                    if *before == Before::Nothing => {}
                Err(Failure { why: Why::NotFound | Why::WrongType, .. }) => {
                    return Err(changed(path).into());
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }

    /// Writes down what is going to be done, so that others can take it back.
    fn write_down(&self) -> Result<(), Trouble> {
        let text = serde_json::to_vec(&self.acts).unwrap_or_default();
        if text.is_empty() || text.len() > MAX_JOURNAL_BYTES {
            return Err(refused(Why::TooLarge, "it has too many changes with long names").into());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let new = format!("{JOURNAL}.new");
        let owner = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, new.as_str(), flags, owner)
            .map_err(|e| failed(e, "what is to be done cannot be written down"))?;
        write_all(&file, &text)?;
        // ORDER: a journal is whole, and on disk, before anything is done that it tells of.
        rustix::fs::fsync(&file)
            .and_then(|()| {
                rustix::fs::renameat(&self.directory, new.as_str(), &self.directory, JOURNAL)
            })
            .and_then(|()| rustix::fs::fsync(&self.directory))
            .map_err(|e| failed(e, "what is to be done cannot be written down"))?;
        Ok(())
    }

    /// From here on it is done, whoever dies.
    fn finish(&self) -> Result<(), Failure> {
        rustix::fs::renameat(&self.directory, JOURNAL, &self.directory, DONE)
            .map_err(|e| failed(e, "that it is done cannot be written down"))?;
        // Should the disk refuse this, a loss of power may undo what is done. Whole it is either way.
        let _ = rustix::fs::fsync(&self.directory);
        Ok(())
    }

    /// Takes back what was done, and answers why.
    fn back(&mut self, trouble: Trouble) -> Trouble {
        if is_dead() {
            return trouble;
        }
        let ground = Ground { root: self.root, held: &self.held, stage: &self.directory };
        let mut left = None;
        for act in self.acts.iter().rev() {
            // One that cannot be taken back keeps none of the others.
            left = ground.take_back(act).err().or(left);
        }
        let Some(left) = left else {
            // ORDER: a journal tells of nothing any more before what it tells of goes.
            let _ = rustix::fs::unlinkat(&self.directory, JOURNAL, AtFlags::empty());
            self.progress = Progress::Settled;
            return trouble;
        };
        self.progress = Progress::Kept;
        let kept = String::from_utf8_lossy(&self.name);
        let what = format!("{}; what was there is kept in {kept}", left.detail);
        Trouble::Failed(Failure { detail: what, ..left })
    }
}

/// Whether a test has let this worker die.
#[cfg(test)]
pub(super) fn is_dead() -> bool {
    super::fault::is_dead()
}

/// Whether a test has let this worker die.
#[cfg(not(test))]
pub(super) fn is_dead() -> bool {
    false
}
