//! Landlock and seccomp.

use super::{CallFailed, During};
use crate::sys::{self, RulesetAttributes};
use cofferdam_wire::plan::Landlock;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

// Rights of the file system, as in linux/landlock.h.
const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// Rights that make sense on something that is no directory.
const OF_A_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// All rights of the file system that an ABI knows.
fn known_rights(abi: u32) -> u64 {
    let first = (1 << 13) - 1;
    match abi {
        0 => 0,
        1 => first,
        2 => first | 1 << 13,
        3 | 4 => first | 1 << 13 | TRUNCATE,
        _ => first | 1 << 13 | TRUNCATE | IOCTL_DEV,
    }
}

/// Restricts this process. Answers the ABI in use, or 0 where the kernel has no Landlock.
pub(super) fn landlock(rules: &Landlock) -> Result<u32, CallFailed> {
    let Some(made) = self::rules(rules)? else { return Ok(0) };
    restrict(&made)?;
    Ok(abi(rules))
}

fn abi(rules: &Landlock) -> u32 {
    sys::landlock_abi().min(rules.abi)
}

/// Makes rules and restricts nobody. `None` where the kernel has no Landlock.
pub(super) fn rules(rules: &Landlock) -> Result<Option<OwnedFd>, CallFailed> {
    let abi = abi(rules);
    if abi == 0 {
        return Ok(None);
    }
    let known = known_rights(abi);
    let ruleset = ruleset(abi, rules.no_tcp, rules.scoped)?;
    let grants = [
        (&rules.read, READ),
        (&rules.write, known & !IOCTL_DEV),
        (&rules.devices, READ_FILE | WRITE_FILE | IOCTL_DEV),
    ];
    for (paths, rights) in grants {
        for path in paths {
            allow(ruleset.as_fd(), path, rights & known)?;
        }
    }
    Ok(Some(ruleset))
}

/// Adds to rules that this directory can be changed in every way, as [`Landlock::write`] says.
pub(super) fn allow_writing(
    (ruleset, rules): (impl AsFd, &Landlock),
    path: &str,
) -> Result<(), CallFailed> {
    allow(ruleset, path, known_rights(abi(rules)) & !IOCTL_DEV)
}

/// Leaves this thread, and those that it starts, these files and directories to read, and no other. They
/// write and run nothing, and reach no process and no abstract socket but their own. A path that is not
/// there, or that this user cannot reach, is no error. Answers the ABI, as above.
pub(crate) fn landlock_reading(paths: &[PathBuf]) -> Result<u32, CallFailed> {
    let abi = sys::landlock_abi();
    if abi == 0 {
        return Ok(0);
    }
    let ruleset = ruleset(abi, false, true)?;
    for path in paths {
        match rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(place) => grant(ruleset.as_fd(), &place, path, READ_FILE | READ_DIR)?,
            Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => {
                return Err(CallFailed::new(format!("open({path:?}) for landlock"), errno));
            }
        }
    }
    restrict(&ruleset)?;
    Ok(abi)
}

/// Rules under which nothing of the file system is allowed yet.
fn ruleset(abi: u32, no_tcp: bool, scoped: bool) -> Result<OwnedFd, CallFailed> {
    let attributes = RulesetAttributes {
        handled_access_fs: known_rights(abi),
        // Bind and connect of TCP, from ABI 4 on.
        handled_access_net: if no_tcp && abi >= 4 { 0b11 } else { 0 },
        // Abstract sockets and signals, from ABI 6 on.
        scoped: if scoped && abi >= 6 { 0b11 } else { 0 },
    };
    let size = match abi {
        1..=3 => 8,
        4 | 5 => 16,
        _ => 24,
    };
    sys::landlock_ruleset(&attributes, size)
        .during(|| format!("landlock_create_ruleset(abi {abi})"))
}

fn restrict(ruleset: &OwnedFd) -> Result<(), CallFailed> {
    sys::landlock_restrict(ruleset.as_fd()).during(|| "landlock_restrict_self".to_owned())
}

/// Rules that do nothing but keep signals within their domain, where the kernel knows such.
pub(crate) fn signal_scope() -> Option<OwnedFd> {
    const SIGNALS: u64 = 0b10;
    if sys::landlock_abi() < 6 {
        return None;
    }
    let attributes = RulesetAttributes { scoped: SIGNALS, ..RulesetAttributes::default() };
    sys::landlock_ruleset(&attributes, 24).ok()
}

fn allow(ruleset: impl AsFd, path: &str, rights: u64) -> Result<(), CallFailed> {
    let opened = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    // What is not there needs no right.
    let Some(place) = opened.map(Some).or_else(|errno| match errno {
        Errno::NOENT => Ok(None),
        other => Err(CallFailed::new(format!("open({path:?}) for landlock"), other)),
    })?
    else {
        return Ok(());
    };
    grant(ruleset, &place, Path::new(path), rights)
}

fn grant(ruleset: impl AsFd, place: &OwnedFd, path: &Path, rights: u64) -> Result<(), CallFailed> {
    let stat = rustix::fs::fstat(place).during(|| format!("fstat({path:?})"))?;
    let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let rights = if directory { rights } else { rights & OF_A_FILE };
    sys::landlock_allow(ruleset.as_fd(), place.as_fd(), rights)
        .during(|| format!("landlock_add_rule({path:?})"))
}

/// Loads the filter. Nothing that the filter forbids can be done by process 1 after this.
pub(crate) fn seccomp(program: &[(u16, u8, u8, u32)]) -> Result<(), CallFailed> {
    let mut program: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let instructions = program.len();
    sys::load_seccomp(&mut program)
        .during(|| format!("seccomp(SECCOMP_SET_MODE_FILTER, {instructions} instructions)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::plan::Landlock;

    /// Whether a thread under these rules can make a file in each directory.
    fn can_make(rules: &OwnedFd, directories: &[&Path]) -> Vec<bool> {
        std::thread::scope(|scope| {
            let restricted = scope.spawn(|| {
                sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).unwrap();
                restrict(rules).unwrap();
                let make = |directory: &&Path| std::fs::write(directory.join("made"), "x").is_ok();
                directories.iter().map(make).collect()
            });
            restricted.join().unwrap()
        })
    }

    #[test]
    fn rules_are_told_of_another_directory_and_hold_for_whoever_comes_then() {
        let ground = std::env::temp_dir().join(format!("cofferdam-rules-{}", std::process::id()));
        let [before, other, outside] = ["before", "other", "outside"].map(|name| ground.join(name));
        for directory in [&before, &other, &outside] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let planned = Landlock {
            abi: sys::landlock_abi(),
            read: vec!["/".to_owned()],
            write: vec![path(&before)],
            ..Landlock::default()
        };
        let all: [&Path; 3] = [&before, &other, &outside];
        if let Some(made) = rules(&planned).unwrap() {
            assert_eq!(can_make(&made, &all), [true, false, false]);
            allow_writing((made.as_fd(), &planned), &path(&other)).unwrap();
            assert_eq!(can_make(&made, &all), [true, true, false]);
        } else {
            println!("skipped: this kernel has no Landlock");
        }
        // The control: nothing but the rules was in the way.
        assert!(std::fs::write(outside.join("made"), "x").is_ok());
        std::fs::remove_dir_all(&ground).unwrap();
    }
}
