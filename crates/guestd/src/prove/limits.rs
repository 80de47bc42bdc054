//! Attacks by using much: P13. Each goes a little over its limit, and never further.

use super::attack::{Group, Row, Scene};
use super::outcome::{Door, Layer, Outcome, any};
use super::sys;
use rustix::fs::{FallocateFlags, StatVfs};
use rustix::process::{Resource, Rlimit};
use std::fs::OpenOptions;

const LIMIT: Group = Group { axis: "limits", promise: "P13", door: Door::Amount };

pub(super) const ROWS: &[Row] = &[
    LIMIT.check("limits.core_size", core_size, |_| can_lower(Resource::Core)),
    LIMIT.check("limits.open_files", open_files, |_| can_lower(Resource::Nofile)),
    LIMIT.check("limits.raise", raise_limits, |_| can_lower(Resource::Nofile)).confined(),
    LIMIT.check("limits.priority", priority, |_| nice(LOWEST)).confined(),
    LIMIT.check("limits.disk", disk, small_file).confined().within_ms(800).when(disk_is_limited),
    LIMIT.check("limits.disk_files", disk_files, small_file).confined().when(disk_is_limited),
    LIMIT
        .check("limits.memory", memory, some_memory)
        .confined()
        .within_ms(1200)
        .when(|s| s.request.targets.memory_bytes.is_some()),
    LIMIT
        .check("limits.pids", pids, one_process)
        .confined()
        .within_ms(1500)
        .when(|s| s.request.targets.pids.is_some()),
];

/// How much further than its limit an attack goes.
const SLACK_BYTES: u64 = 32 << 20;
/// The largest limit of memory that is tried by using it: more would take the battery's time and
/// hurt the neighbours.
const MEMORY_AT_MOST: u64 = 512 << 20;
/// The largest limit of processes that is tried by making them.
const PIDS_AT_MOST: u64 = 4096;
/// The guest, the battery, and what the kernel counts late.
const PIDS_SLACK: u64 = 32;

fn set_limit(resource: Resource, limit: u64) -> Result<(), i32> {
    let both = Rlimit { current: Some(limit), maximum: Some(limit) };
    rustix::process::setrlimit(resource, both).map_err(rustix::io::Errno::raw_os_error)
}

fn core_size(_: &Scene<'_>) -> Outcome {
    let now = rustix::process::getrlimit(Resource::Core);
    if now.maximum.is_some_and(|most| most <= 1) {
        return match set_limit(Resource::Core, 4096) {
            Ok(()) => Outcome::did("raised the size of core dumps"),
            Err(errno) => Outcome::met_at(Layer::Limit, errno, "raise the size of core dumps"),
        };
    }
    Outcome::did(format!("core dumps may have {:?} bytes", now.maximum))
}

fn open_files(_: &Scene<'_>) -> Outcome {
    /// What the kernel allows by default at most.
    const MOST: u64 = 1 << 20;
    match rustix::process::getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit <= MOST => {
            Outcome::met_at(Layer::Limit, libc::EMFILE, format!("{limit} open files at most"))
        }
        other => Outcome::did(format!("{other:?} open files")),
    }
}

fn raise_limits(_: &Scene<'_>) -> Outcome {
    any([Resource::Nproc, Resource::Nofile, Resource::Memlock, Resource::Data].map(|resource| {
        let call = format!("raise {resource:?}");
        match rustix::process::getrlimit(resource).maximum {
            None => Outcome::met(0, format!("{resource:?} has no limit to raise")),
            Some(limit) => match set_limit(resource, limit.saturating_add(1)) {
                Ok(()) => Outcome::did(call),
                Err(errno) => Outcome::met_at(Layer::Limit, errno, call),
            },
        }
    }))
}

/// Lowering one's own limit is always allowed; that shows that the call itself works.
fn can_lower(resource: Resource) -> Outcome {
    let now = rustix::process::getrlimit(resource);
    let call = format!("set {resource:?} as it is");
    match rustix::process::setrlimit(resource, now) {
        Ok(()) => Outcome::did(call),
        Err(error) => Outcome::met(error.raw_os_error(), call),
    }
}

fn nice(value: isize) -> Outcome {
    let args = [0, 0, value.cast_unsigned(), 0, 0, 0];
    Outcome::of_call("setpriority", sys::raw(libc::SYS_setpriority, args))
}

/// The niceness that everybody may take, however nice the caller is.
const LOWEST: isize = 19;
/// The one that takes most from others.
const HIGHEST: isize = -20;

/// Takes processor time from others: one step more than the caller has.
fn priority(_: &Scene<'_>) -> Outcome {
    // The system call answers with 20 less the niceness, which is never negative.
    let now = match sys::raw(libc::SYS_getpriority, [0; 6]) {
        Ok(answer) => 20 - answer.cast_signed(),
        Err(errno) => return Outcome::untried(format!("getpriority: error {errno}")),
    };
    if now == HIGHEST {
        return Outcome::untried("the caller has the highest priority already");
    }
    match nice(now - 1) {
        outcome if outcome.succeeded() => outcome,
        _ => Outcome::met_at(Layer::Limit, libc::EACCES, "setpriority"),
    }
}

fn disk_is_limited(scene: &Scene<'_>) -> bool {
    scene.request.targets.disk_bytes.is_some()
}

/// Places that are private and can be written.
const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/home/sandbox"];

/// Asks for more than the whole space at once: the kernel refuses that before it takes a page.
fn disk(scene: &Scene<'_>) -> Outcome {
    let Some(limit) = scene.request.targets.disk_bytes else {
        return Outcome::untried("the space has no limit");
    };
    any(PRIVATE.map(|place| match allocate(place, limit.saturating_add(SLACK_BYTES)) {
        Ok(()) => Outcome::did(format!("filled {place} over its limit")),
        Err(errno) => Outcome::met_at(Layer::Limit, errno, format!("fill {place} over its limit")),
    }))
}

fn allocate(place: &str, bytes: u64) -> Result<(), i32> {
    let path = format!("{place}/.cofferdam-attack-{}-fill", std::process::id());
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let file = file.map_err(|error| error.raw_os_error().unwrap_or(0))?;
    let taken = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes);
    let _ = std::fs::remove_file(&path);
    taken.map_err(rustix::io::Errno::raw_os_error)
}

fn small_file(_: &Scene<'_>) -> Outcome {
    match allocate("/tmp", 64 << 10) {
        Ok(()) => Outcome::did("took 64 KiB of /tmp"),
        Err(errno) => Outcome::met(errno, "take 64 KiB of /tmp"),
    }
}

/// A million empty files would use the kernel's memory, whatever the limit of bytes.
fn disk_files(_: &Scene<'_>) -> Outcome {
    const MOST: u64 = 4 << 20;
    let bounded = |facts: &StatVfs| facts.f_files > 0 && facts.f_files <= MOST;
    any(PRIVATE.map(|place| match rustix::fs::statvfs(place) {
        Ok(facts) if bounded(&facts) => Outcome::met_at(
            Layer::Limit,
            libc::ENOSPC,
            format!("{place} holds {} files at most", facts.f_files),
        ),
        Ok(_) => Outcome::did(format!("{place} holds any number of files")),
        Err(error) => Outcome::met(error.raw_os_error(), format!("statvfs {place}")),
    }))
}

/// Takes memory in pieces until it is refused, or killed, or over the limit.
fn memory(scene: &Scene<'_>) -> Outcome {
    let limit = scene.request.targets.memory_bytes.unwrap_or(u64::MAX);
    if limit > MEMORY_AT_MOST {
        return Outcome::untried(format!("a limit of {limit} bytes is too large to use up"));
    }
    // If one has to go, it is this child and not process 1.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    match take_memory(limit.saturating_add(SLACK_BYTES)) {
        Ok(taken) => Outcome::did(format!("took {taken} bytes")),
        Err(taken) => Outcome::met_at(
            Layer::Limit,
            libc::ENOMEM,
            format!("take more than {taken} bytes of memory"),
        ),
    }
}

/// Gives how much was taken: all of it, or as much as there was.
fn take_memory(bytes: u64) -> Result<u64, u64> {
    const PIECE: usize = 4 << 20;
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut taken = 0;
    while taken < bytes {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(PIECE).is_err() {
            return Err(taken);
        }
        // Ones, because the kernel lends pages of zeros without counting them.
        piece.resize(PIECE, 1);
        pieces.push(piece);
        taken += PIECE as u64;
    }
    Ok(taken)
}

fn some_memory(_: &Scene<'_>) -> Outcome {
    match take_memory(4 << 20) {
        Ok(taken) => Outcome::did(format!("took {taken} bytes")),
        Err(_) => Outcome::met(libc::ENOMEM, "take 4 MiB"),
    }
}

/// Makes processes that only wait, until one is refused or there are more than allowed.
fn pids(scene: &Scene<'_>) -> Outcome {
    let limit = scene.request.targets.pids.unwrap_or(u64::MAX);
    if limit > PIDS_AT_MOST {
        return Outcome::untried(format!("a limit of {limit} processes is too large to use up"));
    }
    let wanted = limit.saturating_add(PIDS_SLACK);
    let mut children = Vec::new();
    let mut outcome = Outcome::did(format!("made {wanted} processes"));
    for made in 0..wanted {
        match sys::fork() {
            Ok(sys::Forked::Child) => wait_for_the_end(),
            Ok(sys::Forked::Parent(child)) => children.push(child),
            Err(errno) => {
                let call = format!("fork after {made} processes");
                outcome = Outcome::met_at(Layer::Limit, errno, call);
                break;
            }
        }
    }
    for child in &children {
        let _ = rustix::process::kill_process(*child, rustix::process::Signal::KILL);
    }
    for child in children {
        let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
    }
    outcome
}

/// Ends with its parent, so that a bomb whose maker was killed does not stay.
fn wait_for_the_end() -> ! {
    let kill = Some(rustix::process::Signal::KILL);
    let _ = rustix::process::set_parent_process_death_signal(kill);
    std::thread::sleep(std::time::Duration::from_secs(3));
    sys::exit(0)
}

fn one_process(_: &Scene<'_>) -> Outcome {
    match sys::fork() {
        Ok(sys::Forked::Child) => sys::exit(0),
        Ok(sys::Forked::Parent(child)) => {
            let ended =
                rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
            Outcome::claim(ended.is_ok().into(), "make a process")
        }
        Err(errno) => Outcome::met(errno, "fork"),
    }
}
