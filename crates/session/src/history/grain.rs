//! How fine the times of change of a file system are.
//!
//! Files are dated by a clock that goes by ticks, so that two changes within one have one time. Since Linux 6.13
//! a file whose time was asked for gets another one by its next change on the file systems that most people
//! have, whenever that is. No call says so, but it can be tried.

use super::walk::Mark;
use rustix::fs::{Mode, fchmod, fstat};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long two changes of a file may have one time of change where nothing else is known: the slowest
/// kernels have a hundred ticks in a second.
const GRAIN: Duration = Duration::from_millis(20);
/// The same where files have no time below a second, as on an ext4 whose inodes have 128 bytes, with as much again for
/// who goes on within it.
const WHOLE_SECONDS: Duration = Duration::from_secs(2);
/// The shortest tick of any kernel.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// How many changes are made within that. By ticks they would have two times at most.
const CHANGES: usize = 4;

/// What a time of change tells that is seen now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grain {
    /// When a look began.
    pub(super) began: SystemTime,
    /// The file system on which whatever changes after a look has another time.
    pub(super) fine: Option<u64>,
}

impl Grain {
    /// Of a look that begins when the clock of files has gone on.
    pub(super) fn waited(self) -> Self {
        std::thread::sleep(GRAIN);
        Self { began: SystemTime::now(), ..self }
    }

    /// Whether whatever changes after the look has another time than this one, which was seen in it.
    pub(super) fn tells(&self, mark: Mark) -> bool {
        // No other clock stands at a whole second for longer than a tick.
        let grain = if mark.changed.1 == 0 { WHOLE_SECONDS } else { GRAIN };
        let certain = self.began.checked_sub(grain).map_or((0, 0), moment);
        mark.changed < certain || self.fine == Some(mark.device)
    }

    /// Of a look that began at this moment, as it is in the file system of this file of our own.
    pub(super) fn tried(began: SystemTime, file: &Path) -> Self {
        Self { began, fine: fine(file) }
    }
}

fn moment(time: SystemTime) -> (i64, u32) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(0), since.subsec_nanos())
}

/// The file system of a file, if each of its changes has a time of its own.
///
/// A number that is given to another file is no way around: whoever removes the file that had it changes a
/// directory whose time was asked for, and no later time is before that one.
fn fine(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    let begun = Instant::now();
    let mut last = fstat(&file).ok()?;
    let (device, mode) = (last.st_dev, Mode::from_raw_mode(last.st_mode & 0o7777));
    for _ in 1..CHANGES {
        // What it has already is set again, which counts as a change of the file.
        fchmod(&file, mode).ok()?;
        let now = fstat(&file).ok()?;
        if (now.st_ctime, now.st_ctime_nsec) == (last.st_ctime, last.st_ctime_nsec) {
            return None;
        }
        last = now;
    }
    (begun.elapsed() < SHORTEST_TICK).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Place;
    use super::*;
    use std::fs;

    /// On file systems whose times of change are fine, that of each change is another one; on others two changes
    /// in a row have one time as a rule.
    #[test]
    fn fine_times_tell_every_change_apart() {
        let place = Place::new("history-fine");
        let folder = place.base.join("kept/cow");
        let file = place.upper().join("f");
        fs::write(&file, "0").unwrap();
        // It may be put off the processor amid the trial, and knows nothing then.
        let fine = (0..100).find_map(|_| Grain::tried(UNIX_EPOCH, &file).fine);
        let seen =
            || super::super::take::all(&folder).unwrap().into_iter().map(|found| found.mark());
        let seen = || seen().collect::<Vec<_>>();
        let mut same = 0;
        for number in 0..500 {
            let before = seen();
            match number % 2 {
                0 => fs::write(&file, number.to_string()).unwrap(),
                // Under the same number as a rule.
                _ => {
                    fs::remove_file(&file).unwrap();
                    fs::write(&file, number.to_string()).unwrap();
                }
            }
            let after = seen();
            same += usize::from(before[1] == after[1]);
        }
        assert_eq!(
            fine.is_some(),
            same == 0,
            "{same} of 500 changes have the time of the one before"
        );
    }

    #[test]
    fn a_whole_second_tells_nothing_within_it() {
        let mark = |rest| Mark { device: 1, inode: 2, changed: (1000, rest) };
        for (after_ms, rest, tells) in
            [(20, 1, false), (21, 1, true), (1999, 0, false), (2000, 0, false), (2001, 0, true)]
        {
            let began = UNIX_EPOCH + Duration::from_secs(1000) + Duration::from_millis(after_ms);
            let grain = Grain { began, fine: None };
            assert_eq!(grain.tells(mark(rest)), tells, "{after_ms} {rest}");
        }
    }
}
