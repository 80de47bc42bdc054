//! What a gate gives up before it accepts anything.
//!
//! A gate is on the host and reads what hostile programs and servers write. So it is nobody there: an id
//! that owns nothing, no capability, a handful of files to read and none to write, and the system calls
//! of its trade. What it works with was opened by others and handed to it.

use crate::seccomp;
use crate::session_uid::UidRange;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::give_up;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, geteuid, getgroups, getpid, getppid,
    set_dumpable_behavior, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::set_no_new_privs;
use std::io;
use std::path::{Path, PathBuf};

/// The files that say where names lead.
const ABOUT_NAMES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

/// Confines this process for good: to be called by one that has one thread, as the last before it reads
/// anything. Answers what could not be taken away here, as sentences for its log.
pub fn confine() -> Result<Vec<String>> {
    alone()?;
    let parent = getppid();
    let mut missing = Vec::new();
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .map_err(refused("leave no image of its memory"))?;
    if geteuid().is_root() {
        become_nobody(&mut missing);
    }
    give_up::capabilities().map_err(failed("give up capabilities"))?;
    die_with(parent)?;
    // ORDER: after the change of user, which sets it anew.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(refused("hide its memory"))?;
    set_no_new_privs(true).map_err(refused("forgo new privileges"))?;
    if give_up::files_but(&readable()).map_err(failed("give up files"))? == 0 {
        missing.push(
            "this kernel has no Landlock: the gate can open whatever files its user can".to_owned(),
        );
    }
    let filter = seccomp::gate_program()
        .map_err(|error| Error::new(ErrorKind::SetupFailed, "confine the gate").source(error))?;
    // ORDER: last, because the filter forbids all of the above.
    if let Err(error) = give_up::calls(&filter) {
        missing.push(format!("the gate can make any system call: {error}"));
    }
    Ok(missing)
}

/// Landlock holds for a thread, and those that it starts later.
fn alone() -> Result<()> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(failed("count its threads"))?;
    match threads.count() {
        1 => Ok(()),
        count => {
            let what = format!("confine the gate: it has {count} threads already");
            Err(Error::new(ErrorKind::SetupFailed, what))
        }
    }
}

/// As root: becomes a user that nobody else is. Where this namespace of users has none for it, it stays
/// who it is, and loses its capabilities all the same.
fn become_nobody(missing: &mut Vec<String>) {
    let id = UidRange::GATES.at(getpid().as_raw_nonzero().get().unsigned_abs());
    if let Err(error) = give_up::user(id) {
        missing.push(format!("the gate is still user 0, without capabilities: {error}"));
    } else if getgroups().is_ok_and(|groups| !groups.is_empty()) {
        missing.push("the gate keeps the groups of who started it".to_owned());
    }
}

/// A change of user takes the wish to die with the parent away. Whoever lost its parent before the wish
/// was made again finds so here.
fn die_with(parent: Option<Pid>) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(refused("die with its parent"))?;
    match getppid() == parent {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::SetupFailed, "confine the gate: its parent is gone")),
    }
}

/// What it may read: no certificates, for it is handed those of the authorities that are trusted. A file that is a link is found where it leads to; whoever writes `resolv.conf`
/// elsewhere puts a new one in the place of the old, so that its directory is what counts.
fn readable() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = ABOUT_NAMES.iter().map(PathBuf::from).collect();
    let resolvers = Path::new("/etc/resolv.conf");
    if resolvers.is_symlink()
        && let Ok(real) = resolvers.canonicalize()
        && let Some(directory) = real.parent().filter(|directory| is_for_resolvers(directory))
    {
        paths.push(directory.to_owned());
    }
    paths
}

/// Not a directory that holds everything.
fn is_for_resolvers(directory: &Path) -> bool {
    directory.starts_with("/run") && directory.components().count() > 2
}

fn refused(what: &str) -> impl Fn(Errno) -> Error {
    move |errno| failed(what)(errno.into())
}

fn failed(what: &str) -> impl Fn(io::Error) -> Error {
    move |error| {
        Error::new(ErrorKind::SetupFailed, format!("confine the gate: {what}")).source(error)
    }
}
