//! Clones the first process of a sandbox and gives it its ids.

pub(crate) mod layer;

use crate::blank::Blank;
use crate::cow::{self, tier::NOT_SET_UP};
use crate::plan::Late;
use crate::sys::{self, Cloned};
use crate::whose::Whose;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::apply::{
    Handover, Joined, LostPin, Mounts, Names, Opening, Told, pin_again, prepare_bind, prepare_layer,
};
use cofferdam_guestd::line::Line;
use cofferdam_guestd::{Birth, Errand, live, tell};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::SetupFailure;
use cofferdam_wire::plan::{IdRange, Namespace, Need, Op, Plan, Step};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The control groups that a sandbox is born into.
#[derive(Debug, Default)]
pub struct Groups {
    /// Files through which the new process joins by itself.
    pub join: Vec<OwnedFd>,
    /// A directory of the unified hierarchy to be born in.
    pub born_in: Option<OwnedFd>,
}

/// A process that was cloned. Dropping it ends the sandbox.
#[derive(Debug)]
pub struct Born {
    /// As the caller's namespace counts.
    pub pid: i32,
    /// A descriptor for it.
    pub pidfd: OwnedFd,
    line: Option<OwnedFd>,
    namespaces: Mutex<Option<Standing>>,
    /// User namespaces that stand for the owners of layers, once one was exchanged.
    owners: Mutex<BTreeMap<Whose, OwnedFd>>,
    /// The process dies when this closes before it serves.
    hold: OwnedFd,
}

/// The namespaces of a sandbox in which mounts are made.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) user: OwnedFd,
    pub(crate) mount: OwnedFd,
}

/// Starts the first process of a sandbox. It sets itself up while the caller goes on; its greeting
/// on the line says how that went.
///
/// The caller must have one thread only.
pub fn launch(plan: &Plan, groups: Groups) -> Result<Born> {
    let Prepared { mounts, .. } = prepare_mounts(plan, 0)?;
    let handover = Handover { mounts, cgroups: groups.join, awaited: None };
    give_birth(Errand::Whole(Cow::Borrowed(plan), handover), plan, groups.born_in.as_ref())
}

/// The same where the first process is a copy of a process that knows nothing, and not of the
/// caller, whose child it is nevertheless.
pub(crate) fn launch_from(blank: &mut Blank, plan: &Plan, groups: Groups) -> Result<Born> {
    let Prepared { mounts, .. } = prepare_mounts(plan, 0)?;
    let handover = Handover { mounts, cgroups: groups.join, awaited: None };
    let Cradle { ours, theirs, parent, hold, null } = Cradle::new()?;
    let birth = cofferdam_guestd::Blank { line: theirs, parent, null };
    let flags = clone_flags(&plan.namespaces);
    let (pid, pidfd) = blank.clone_first(flags, birth, groups.born_in.as_ref())?;
    let (namespaces, owners) = Default::default();
    let mut born = Born { pid, pidfd, line: None, namespaces, owners, hold };
    let mut line = Line::new(ours);
    tell(&mut line, plan, handover)
        .map_err(|errno| io_error("tell the sandbox its plan", errno))?;
    born.line = Some(line.into_socket());
    born.release(plan)?;
    Ok(born)
}

/// A sandbox that builds its tree while the host looks and prepares. Dropping it ends the sandbox.
#[derive(Debug)]
pub(crate) struct Early {
    born: Born,
    told: OwnedFd,
    /// What stood for ids. To end it takes a while.
    waiters: Vec<sys::Waiter>,
}

/// Starts the first process of a sandbox as [`launch`] does, before more than the beginning of its
/// plan is known. It gets no further until [`Early::tell`], and starts nothing until
/// [`Early::complete`].
pub(crate) fn launch_early(opening: &Opening, born_in: Option<&OwnedFd>) -> Result<Early> {
    let (told, socket) = pair().map_err(|errno| io_error("make a socket", errno))?;
    let born = give_birth(Errand::Begun(opening, socket), &opening.plan, born_in)?;
    Ok(Early { born, told, waiters: Vec::new() })
}

impl Early {
    /// Tells it the plan, which must begin as the sandbox began. It goes as far as the steps of
    /// `late`.
    pub(crate) fn tell(&mut self, opening: &Opening, plan: &Plan, late: &Late) -> Result<()> {
        if !opening.begins(plan) {
            return Err(Error::new(ErrorKind::SetupFailed, "the plan is not what was begun"));
        }
        let Prepared { mounts, waiters } = prepare_mounts(plan, opening.known)?;
        let steps = plan.steps.get(opening.known..).unwrap_or_default().to_vec();
        let told = Told { steps, pins: late.pins.clone(), mounts };
        // One that failed already takes nothing any more; its last word says why.
        let _ = told.send(&self.told);
        self.waiters = waiters;
        Ok(())
    }

    /// Tells it the names that it waits for. `plan` is the one that it was told, with the pins that
    /// `late` has room for.
    pub(crate) fn name(&self, plan: &Plan, late: &Late) {
        let pin = |step: &Step| {
            let Op::Pin { path, access } = &step.op else { return None };
            Some((path.clone(), *access))
        };
        let cover = |step: &Step| {
            let Op::Mask { path } = &step.op else { return None };
            Some(path.clone())
        };
        let names = plan.steps.get(late.pins.clone()).unwrap_or_default();
        let names = Names {
            pins: names.iter().filter_map(pin).collect(),
            covers: names.iter().filter_map(cover).collect(),
        };
        // As above.
        let _ = names.send(&self.told);
    }

    /// Hands over the groups, which it waits for last.
    pub(crate) fn complete(self, join: Vec<OwnedFd>) -> Born {
        // As above.
        let _ = Joined(join).send(&self.told);
        self.born
    }
}

fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn give_birth(errand: Errand<'_>, plan: &Plan, born_in: Option<&OwnedFd>) -> Result<Born> {
    let Cradle { ours, theirs, parent, hold, null } = Cradle::new()?;
    let born_in = born_in.map(AsRawFd::as_raw_fd);
    match sys::clone_process(clone_flags(&plan.namespaces), born_in).map_err(not_cloned)? {
        Cloned::Child => {
            drop(hold);
            drop(ours);
            live(Birth { errand, line: theirs, parent, null })
        }
        Cloned::Parent { pid, pidfd } => {
            let (namespaces, owners) = Default::default();
            let mut born = Born { pid, pidfd, line: Some(ours), namespaces, owners, hold };
            born.release(plan)?;
            Ok(born)
        }
    }
}

/// What lies between a sandbox's first process and the one who has it cloned.
struct Cradle {
    /// Our end of the line, and the sandbox's.
    ours: OwnedFd,
    theirs: OwnedFd,
    /// The sandbox's end of what we hold for as long as we live.
    parent: OwnedFd,
    hold: OwnedFd,
    null: OwnedFd,
}

impl Cradle {
    fn new() -> Result<Self> {
        let opened = |what: &'static str| move |errno| io_error(what, errno);
        let (ours, theirs) = pair().map_err(opened("make the line"))?;
        let (parent, hold) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(opened("make a pipe"))?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let null = rustix::fs::openat(CWD, "/dev/null", flags, Mode::empty())
            .map_err(opened("open /dev/null"))?;
        Ok(Self { ours, theirs, parent, hold, null })
    }
}

impl Drop for Born {
    fn drop(&mut self) {
        self.kill();
        let _ = self.wait();
    }
}

impl Born {
    /// Gives it its ids, and lets it go on.
    fn release(&mut self, plan: &Plan) -> Result<()> {
        if plan.namespaces.contains(&Namespace::User) {
            map_ids(self.pid, &plan.uid_map, &plan.gid_map)?;
            // ORDER: before it goes on, because nobody may look at it once it has.
            self.namespaces = Mutex::new(Some(Standing {
                user: open_namespace(self.pid, "user")?,
                mount: open_namespace(self.pid, "mnt")?,
            }));
        }
        let released = rustix::io::write(&self.hold, b"1");
        released.map(drop).map_err(|errno| io_error("release the sandbox", errno))
    }

    /// Our end of the line, once. Closing it ends the sandbox.
    pub fn take_line(&mut self) -> Option<OwnedFd> {
        self.line.take()
    }

    /// Pins names inside that lost their pin because the host put another file there.
    ///
    /// The caller must have one thread only.
    pub fn pin_again(&self, pins: &[LostPin]) -> Result<()> {
        match &*self.standing() {
            Some(namespaces) => pin_within(namespaces, pins),
            None => Ok(()),
        }
    }

    /// Ends the sandbox, and with it everything in its process namespace.
    pub(crate) fn kill(&self) {
        // What is gone already is gone.
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
    }

    /// Lets go of the mounts of a sandbox that ends, as soon as it is gone: in a thread, because the
    /// kernel takes its time. Nothing can be pinned any more.
    pub(crate) fn let_go(&self) -> Option<JoinHandle<()>> {
        let namespaces = self.standing().take()?;
        let pidfd = self.pidfd.try_clone().ok()?;
        let thread = std::thread::Builder::new().name("unmount".to_owned());
        // Where no thread can be made, they are let go of in that attempt.
        let thread = thread.spawn(move || {
            use rustix::event::{PollFd, PollFlags, poll};
            while poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None) == Err(Errno::INTR) {}
            drop(namespaces);
        });
        thread.ok()
    }

    fn standing(&self) -> MutexGuard<'_, Option<Standing>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a directory inside, to look at and not to use.
    ///
    /// The caller must have one thread only.
    pub(crate) fn open_inside(&self, path: &str) -> Option<OwnedFd> {
        let namespaces = self.standing();
        let namespaces = namespaces.as_ref()?;
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
        match sys::clone_process(0, None).ok()? {
            Cloned::Child => {
                let found = join(namespaces).and_then(|()| {
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                    rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
                });
                let mut line = Line::new(theirs);
                line.frame(0, Kind::Data, b"", found.into_iter().collect());
                line.drain();
                sys::exit_now(0)
            }
            Cloned::Parent { pidfd, .. } => {
                drop(theirs);
                use rustix::process::{WaitId, WaitIdOptions, waitid};
                let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
                let mut line = Line::new(ours);
                line.fill().ok()?;
                line.take_descriptor()
            }
        }
    }

    /// Waits until process 1, and with it everything in its process namespace, is gone.
    pub fn wait(&self) -> Result<()> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        loop {
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED) {
                Ok(_) | Err(Errno::CHILD) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(io_error("wait for the sandbox", errno)),
            }
        }
    }
}

/// Pins names in these namespaces. The caller must have one thread only, and a right in them.
pub(crate) fn pin_within(namespaces: &Standing, pins: &[LostPin]) -> Result<()> {
    match sys::clone_process(0, None).map_err(not_cloned)? {
        Cloned::Child => {
            let done = join(namespaces).is_ok() && pin_again(pins).is_ok();
            sys::exit_now(i32::from(!done))
        }
        Cloned::Parent { pidfd, .. } => {
            use rustix::process::{WaitId, WaitIdOptions, waitid};
            let ended = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)
                .map_err(|errno| io_error("wait for a pin", errno))?;
            match ended.and_then(|status| status.exit_status()) {
                Some(0) => Ok(()),
                _ => Err(Error::new(ErrorKind::Unenforceable, "a name could not be pinned again")),
            }
        }
    }
}

fn join(namespaces: &Standing) -> rustix::io::Result<()> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    // ORDER: the user namespace first, which gives the right to enter the other.
    move_into_link_name_space(namespaces.user.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(namespaces.mount.as_fd(), Some(LinkNameSpaceType::Mount))
}

fn clone_flags(namespaces: &[Namespace]) -> i32 {
    namespaces.iter().fold(0, |flags, namespace| {
        flags
            | match namespace {
                Namespace::User => libc::CLONE_NEWUSER,
                Namespace::Mount => libc::CLONE_NEWNS,
                Namespace::Pid => libc::CLONE_NEWPID,
                // The new process takes these by itself, at the same time as we map its ids; the
                // view of control groups must begin at the group that it joins.
                Namespace::Network | Namespace::Ipc | Namespace::Uts | Namespace::Cgroup => 0,
            }
    })
}

/// Mounts that were opened for the box, by the position of their step.
#[derive(Default)]
struct Prepared {
    mounts: Mounts,
    /// What stood for the ids on disk, and is needed no more.
    waiters: Vec<sys::Waiter>,
}

/// Opens what the box cannot: with ids mapped, or below directories that its user may not search.
fn prepare_mounts(plan: &Plan, from: usize) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    if !rustix::process::geteuid().is_root() {
        return Ok(prepared);
    }
    let mut owners = Owners { plan, user: outside_ids(plan), namespaces: BTreeMap::new() };
    for (position, step) in plan.steps.iter().enumerate().skip(from) {
        let mut opened = Vec::new();
        if let Op::Bind(bind) = &step.op {
            let owner = owners.namespace(Whose::of(bind.owner), &mut prepared.waiters)?;
            opened.push(prepare_bind(bind, owner).map_err(|failure| not_prepared(&failure))?);
        } else if let Op::Overlay(overlay) = &step.op {
            for layer in overlay.sources() {
                let owner = Whose::of_layer(plan, overlay, layer.owner);
                let owner = owners.namespace(owner, &mut prepared.waiters)?;
                match (prepare_layer(layer, owner), step.need) {
                    (Ok(layer), _) => opened.push(layer),
                    // It fails again, and is passed over, where it is done.
                    (Err(_), Need::BestEffort) => break,
                    (Err(failure), Need::Required) => return Err(not_prepared(&failure)),
                }
            }
        }
        if !opened.is_empty() {
            prepared.mounts.insert(position, opened);
        }
    }
    Ok(prepared)
}

/// User namespaces that stand for owners on disk.
struct Owners<'a> {
    plan: &'a Plan,
    user: (u32, u32),
    namespaces: BTreeMap<Whose, OwnedFd>,
}

impl Owners<'_> {
    fn namespace(
        &mut self,
        whose: Whose,
        waiters: &mut Vec<sys::Waiter>,
    ) -> Result<Option<BorrowedFd<'_>>> {
        let namespace = &*match self.namespaces.entry(whose) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(place) => {
                let (namespace, waiter) = match whose {
                    Whose::Nobody => return Ok(None),
                    Whose::One(disk) => stand_for(disk, self.user)?,
                    Whose::All => stand_for_all(&self.plan.uid_map, &self.plan.gid_map)?,
                };
                waiters.push(waiter);
                place.insert(namespace)
            }
        };
        Ok(Some(namespace.as_fd()))
    }
}

/// The sandbox's user and group as the host counts them.
pub(crate) fn outside_ids(plan: &Plan) -> (u32, u32) {
    let outside = |map: &[IdRange], id: u32| {
        map.iter()
            .find(|range| id >= range.inside && id - range.inside < range.count)
            .map_or(id, |range| range.outside + (id - range.inside))
    };
    for step in &plan.steps {
        if let Op::Identity { uid, gid } = step.op {
            return (outside(&plan.uid_map, uid), outside(&plan.gid_map, gid));
        }
    }
    (0, 0)
}

/// A user namespace that stands for one pair of ids, for id-mapped mounts.
pub(crate) fn id_namespace(disk: (u32, u32), user: (u32, u32)) -> Result<OwnedFd> {
    stand_for(disk, user).map(|(namespace, _)| namespace)
}

/// The same, with the process that it was made for.
fn stand_for(disk: (u32, u32), user: (u32, u32)) -> Result<(OwnedFd, sys::Waiter)> {
    let one = |inside, outside| [IdRange { inside, outside, count: 1 }];
    stand_for_all(&one(disk.0, user.0), &one(disk.1, user.1))
}

/// The same for many ids.
fn stand_for_all(uids: &[IdRange], gids: &[IdRange]) -> Result<(OwnedFd, sys::Waiter)> {
    let waiter = sys::Waiter::start(libc::CLONE_NEWUSER).map_err(not_cloned)?;
    map_ids(waiter.pid(), uids, gids)?;
    Ok((open_namespace(waiter.pid(), "user")?, waiter))
}

fn open_namespace(pid: i32, kind: &str) -> Result<OwnedFd> {
    let path = format!("/proc/{pid}/ns/{kind}");
    rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| io_error("open a namespace", errno))
}

fn map_ids(pid: i32, uids: &[IdRange], gids: &[IdRange]) -> Result<()> {
    map_ids_below(CWD, &format!("/proc/{pid}"), uids, gids)
}

/// Maps the ids of the process whose directory of a `/proc` this is.
pub(crate) fn map_ids_below(
    proc: BorrowedFd<'_>,
    process: &str,
    uids: &[IdRange],
    gids: &[IdRange],
) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(proc, process, flags, Mode::empty())
        .map_err(|errno| io_error("open the new process in /proc", errno))?;
    if !rustix::process::geteuid().is_root() {
        // Without this the kernel does not let an ordinary user map a group.
        write_map(directory.as_fd(), "setgroups", "deny")?;
    }
    write_map(directory.as_fd(), "uid_map", &lines(uids))?;
    write_map(directory.as_fd(), "gid_map", &lines(gids))
}

fn lines(map: &[IdRange]) -> String {
    let line = |range: &IdRange| format!("{} {} {}\n", range.inside, range.outside, range.count);
    map.iter().map(line).collect()
}

fn write_map(process: BorrowedFd<'_>, name: &str, text: &str) -> Result<()> {
    let failed = |errno| {
        Error::new(ErrorKind::Unavailable, format!("ids cannot be mapped ({name})"))
            .hint("Run `cofferdam doctor` to see what forbids user namespaces here.")
            .source(std::io::Error::from(errno))
    };
    let file = rustix::fs::openat(process, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed)?;
    rustix::io::write(&file, text.as_bytes()).map(drop).map_err(failed)
}

/// What helps where the kernel makes no more processes.
pub const MORE_PROCESSES: &str = "Raise the limit of processes of your user (`ulimit -u`) or of the control group, or end some of them.";

/// What helps where this process may open no more files.
pub const MORE_FILES: &str = "Raise the limit of open files (`ulimit -n`).";

/// What helps where the kernel takes no descriptors beside a message. It counts those of all processes of a user.
pub const FEWER_ON_THEIR_WAY: &str = "Programs of your user sent more open files than you may have and do not receive them: end the sandbox \
     or the program that does (`cofferdam ls`), or raise the limit (`ulimit -n`).";

pub(crate) fn not_cloned(errno: Errno) -> Error {
    let what = match errno {
        Errno::PERM | Errno::ACCESS => "this host does not let us make namespaces",
        Errno::NOSPC | Errno::USERS => "the limit of namespaces is reached",
        Errno::AGAIN | Errno::NOMEM => "no more processes can be made",
        _ => "the sandbox's first process cannot be made",
    };
    let remedy = match errno {
        Errno::AGAIN => MORE_PROCESSES,
        _ => "Run `cofferdam doctor` for the remedy, or accept less with --on-unavailable degrade.",
    };
    Error::new(ErrorKind::Unavailable, what).hint(remedy).source(std::io::Error::from(errno))
}

pub(crate) fn not_prepared(failure: &SetupFailure) -> Error {
    let error = Error::new(ErrorKind::SetupFailed, failure.call.clone())
        .source(std::io::Error::from_raw_os_error(failure.errno));
    if failure.call.contains("IDMAP") {
        error.hint(
            "Put the directory on a file system with id-mapped mounts (ext4, xfs, btrfs), or run as the user who owns it.",
        )
    } else {
        error
    }
}

/// What helps where a sandbox could not be set up, as far as its last word tells.
pub(crate) fn remedy(failure: &SetupFailure) -> Option<&'static str> {
    let is_closed = failure.step == "mask" && failure.errno == libc::EACCES;
    let of_limit = match failure.errno {
        libc::EAGAIN if failure.call.starts_with("clone(") => Some(MORE_PROCESSES),
        libc::EMFILE => Some(MORE_FILES),
        libc::ETOOMANYREFS => Some(FEWER_ON_THEIR_WAY),
        _ => None,
    };
    of_limit.or_else(|| cow::remedy(failure)).or(is_closed.then_some(
        "Commands have a user of their own, to whom a directory above that is closed, so that nothing is shown \
         by it: leave it out, name what they are to read (--read), or make it the workspace (-w).",
    ))
}

/// The error for a sandbox that could not be set up, by its own last word.
pub(crate) fn not_set_up(failure: &SetupFailure) -> Error {
    let what = format!("{NOT_SET_UP}{}: {}", failure.step, failure.call);
    let error = Error::new(ErrorKind::SetupFailed, what)
        .source(std::io::Error::from_raw_os_error(failure.errno));
    match remedy(failure) {
        Some(remedy) => error.hint(remedy),
        None => error,
    }
}

pub(crate) fn io_error(what: &str, errno: Errno) -> Error {
    Error::new(ErrorKind::Io, what.to_owned()).source(std::io::Error::from(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_processes_is_named_where_it_is_what_was_met() {
        let hint = |errno| not_cloned(errno).hint.unwrap();
        assert!(hint(Errno::AGAIN).contains("ulimit -u"));
        assert!(hint(Errno::PERM).contains("cofferdam doctor"));
        let failure =
            |call: &str, errno| SetupFailure { step: "pivot".into(), call: call.into(), errno };
        let met = remedy(&failure("clone(CLONE_VM)", libc::EAGAIN));
        assert_eq!(met, Some(MORE_PROCESSES));
        assert_eq!(remedy(&failure("clone(CLONE_VM)", libc::EPERM)), None);
        assert_eq!(remedy(&failure("mount(/)", libc::EAGAIN)), None);
        assert!(remedy(&failure("open(/)", libc::EMFILE)).unwrap().contains("ulimit -n"));
        let met = remedy(&failure("sendmsg(descriptors for the host)", libc::ETOOMANYREFS));
        assert_eq!(met, Some(FEWER_ON_THEIR_WAY));
    }
}
