//! A process that lives in the prepared part of a sandbox's tree, and what is cloned from it.
//!
//! A copy of a mount namespace costs the kernel far less than the calls that built it. So the part of
//! the tree that many sandboxes have in common is built once, in a process of its own, and each of
//! them begins as a copy of that process. It never holds anything of one sandbox: what is one's own
//! goes to the copy alone.

use crate::apply::identity::Network;
use crate::apply::{CallFailed, Done, During, Footing, Handover, apply, identity, prepare};
use crate::descriptors::close_all_but;
use crate::line::{Line, understand};
use crate::live::{hand_over, settle, wipe_strings};
use crate::serve::{ForCommands, Serve};
use crate::sys;
use cofferdam_wire::message::{GENERATION, Greeting, Hello, SetupFailure};
use cofferdam_wire::plan::{IdRange, Namespace, Op, Plan};
use cofferdam_wire::template::{Ahead, Rest, RestStep, Shared};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A process that has left the host's namespaces and sees a copy of the host's tree.
#[derive(Debug)]
pub struct Outside {
    /// The host's `/proc`.
    proc: OwnedFd,
    null: OwnedFd,
    /// Whether it has a user namespace of its own, with the caller's id alone.
    is_nested: bool,
}

/// A process in a prepared tree.
#[derive(Debug)]
pub struct Template {
    outside: Outside,
    /// For its copies to see whether it is there.
    itself: OwnedFd,
    shared: Shared,
    /// The mask of modes that commands get: that of who made the template.
    mask: Mode,
    /// Where it is itself. Its sockets must not be in the network of a sandbox.
    home: Option<OwnedFd>,
    /// A network namespace for the next sandbox, which nobody was in.
    network: Option<OwnedFd>,
}

/// What a sandbox is born with, as a copy of a template.
#[derive(Debug)]
pub struct Birth {
    /// Its line to the host, on which its plan comes.
    pub line: OwnedFd,
    /// Gives one [`Release`] when its ids are known.
    pub released: OwnedFd,
    /// Whether the network namespace that it is in is its own.
    pub has_network: bool,
}

/// Lets a sandbox go on.
#[derive(Debug, Serialize, Deserialize)]
pub enum Release {
    /// Its ids are mapped.
    Mapped,
    /// It maps them by itself, to the one id that the template has.
    MapYourself {
        /// Lines for users.
        uid_map: Vec<IdRange>,
        /// Lines for groups.
        gid_map: Vec<IdRange>,
    },
}

/// A release is shorter than what a pipe takes at once.
const RELEASE_BYTES: usize = 4096;

impl Outside {
    /// Leaves the host's namespaces. Only for a process with one thread.
    ///
    /// What the host mounts or unmounts later is seen here where its mounts are shared.
    pub fn leave_host() -> Result<Self, SetupFailure> {
        Self::leave().map_err(|failed| failed.in_step("template"))
    }

    fn leave() -> Result<Self, CallFailed> {
        sys::block_signals();
        sys::reset_signals();
        sys::keep_large_memory_apart();
        wipe_strings();
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let is_nested = !user.is_root();
        let mut apart = UnshareFlags::NEWNS;
        apart.set(UnshareFlags::NEWUSER, is_nested);
        crate::share_with_host(|| sys::unshare(apart))
            .during(|| format!("unshare({:#x})", apart.bits()))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::openat(CWD, "/proc", flags, Mode::empty())
            .during(|| "open(\"/proc\")".to_owned())?;
        if is_nested {
            // Without this the kernel does not let an ordinary user map a group.
            write_own(&proc, "setgroups", "deny")?;
            write_own(&proc, "uid_map", &format!("{0} {0} 1", user.as_raw()))?;
            write_own(&proc, "gid_map", &format!("{0} {0} 1", group.as_raw()))?;
        }
        follow_host()?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let null = rustix::fs::openat(CWD, "/dev/null", flags, Mode::empty())
            .during(|| "open(\"/dev/null\")".to_owned())?;
        Ok(Self { proc, null, is_nested })
    }

    /// Whether it has a user namespace of its own, with the caller's id alone.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }

    /// Closes every descriptor but these, and lets the standard streams lead nowhere.
    pub fn keep_only(&self, kept: &[BorrowedFd<'_>]) {
        let ours = [self.proc.as_fd(), self.null.as_fd()];
        close_all_but(kept.iter().chain(&ours));
        dup_null(&self.null);
    }

    /// Builds the tree, enters it, and closes every descriptor but these.
    pub fn settle(self, shared: Shared, kept: &[BorrowedFd<'_>]) -> Result<Template, SetupFailure> {
        let in_template = |failed: CallFailed| failed.in_step("template");
        let itself = rustix::process::pidfd_open(
            rustix::process::getpid(),
            rustix::process::PidfdFlags::empty(),
        )
        .during(|| "pidfd_open(self)".to_owned())
        .map_err(in_template)?;
        let kept: Vec<BorrowedFd<'_>> = kept.iter().copied().chain([itself.as_fd()]).collect();
        self.keep_only(&kept);
        let mask = rustix::process::umask(Mode::empty());
        let _ = rustix::process::setsid();
        sys::unshare(UnshareFlags::NEWNS)
            .during(|| "unshare(CLONE_NEWNS)".to_owned())
            .map_err(in_template)?;
        prepare(&shared.tree)?;
        sys::prctl(libc::PR_SET_DUMPABLE, 0)
            .during(|| "prctl(PR_SET_DUMPABLE)".to_owned())
            .map_err(in_template)?;
        let mut template =
            Template { outside: self, itself, shared, mask, home: None, network: None };
        if template.shared.ahead != Ahead::Nothing {
            // It could not go back to that of the host, which an ordinary user has no right in.
            identity::leave_network().map_err(in_template)?;
            template.home = Some(template.own_network().map_err(in_template)?);
        }
        Ok(template)
    }
}

impl Template {
    /// Makes a network namespace for the next sandbox, where it has none. It belongs to the user
    /// namespace above the sandbox's, in which the sandbox has no right.
    pub fn make_network(&mut self) -> Result<(), SetupFailure> {
        if self.home.is_none() || self.network.is_some() {
            return Ok(());
        }
        let made = identity::leave_network()
            .and_then(|()| identity::loopback_up())
            .and_then(|()| self.own_network());
        self.leave_network()?;
        self.network = Some(made.map_err(|failed| failed.in_step("template"))?);
        Ok(())
    }

    /// Enters what was made for the next sandbox, to clone it there. Answers whether there is one. To
    /// be followed by [`Template::leave_network`].
    pub fn enter_network(&mut self) -> Result<bool, SetupFailure> {
        match self.network.take() {
            Some(network) => enter(&network).map(|()| true),
            None => Ok(false),
        }
    }

    /// Goes back to where it is itself.
    pub fn leave_network(&self) -> Result<(), SetupFailure> {
        self.home.as_ref().map_or(Ok(()), enter)
    }

    fn own_network(&self) -> Result<OwnedFd, CallFailed> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.outside.proc, "self/ns/net", flags, Mode::empty())
            .during(|| "open(/proc/self/ns/net)".to_owned())
    }

    /// What it makes ahead.
    pub fn ahead(&self) -> Ahead {
        self.shared.ahead
    }

    /// Whether the next network namespace is ready.
    pub fn has_network(&self) -> bool {
        self.network.is_some()
    }

    /// Whether sandboxes map their ids by themselves.
    pub fn is_nested(&self) -> bool {
        self.outside.is_nested
    }

    /// The host's `/proc`.
    pub fn proc(&self) -> BorrowedFd<'_> {
        self.outside.proc.as_fd()
    }

    /// The whole life of a sandbox's first process, in a copy of this one, which must be in its
    /// namespaces already.
    pub fn live(self, birth: Birth) -> ! {
        let Birth { line, released, has_network } = birth;
        close_all_but([&line, &released, &self.outside.proc, &self.outside.null, &self.itself]);
        let _ = rustix::process::setsid();
        let stood = self.stand(&released, has_network);
        drop(released);
        let mut line = Line::new(line);
        let set_up = stood.map_err(|failed| Some(failed.in_step("namespaces"))).and_then(
            |(places, network)| {
                let (plan, handover) = self.hear_plan(&mut line)?;
                settle(&plan, || self.is_there())?;
                // Plans with a way out are carried out from nothing: here the network may belong to
                // the user namespace above.
                let done = apply(&plan, Footing::Prepared, handover, network).map_err(Some)?;
                // The host keeps these: nobody may look at this process any more.
                hand_over(&mut line, places).map(|()| done).map_err(Some)
            },
        );
        match set_up {
            Ok(Done { confirmed, open_files, .. }) => {
                rustix::process::umask(self.mask);
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let hello = Hello { generation: GENERATION, version, confirmed };
                let null = self.outside.null;
                drop((self.itself, self.outside.proc, self.shared));
                let commands = ForCommands { open_files, ..ForCommands::default() };
                Serve::start(line, null, commands, &Greeting::Hello(hello))
            }
            Err(None) => sys::exit_now(1),
            Err(Some(failure)) => {
                line.last_word(&Greeting::SetupFailed(failure));
                sys::exit_now(1)
            }
        }
    }

    /// Stands in its namespaces with its ids. Answers the user and the mount namespace, and the
    /// network's where it is still being made.
    fn stand(
        &self,
        released: &OwnedFd,
        has_network: bool,
    ) -> Result<(Vec<OwnedFd>, Option<Network>), CallFailed> {
        // Before the wait, because it takes the kernel as long as much of the rest.
        let network = if has_network {
            None
        } else {
            let loopback = self.shared.common.iter().any(|step| step.op == Op::LoopbackUp);
            Some(Network::start(loopback)?)
        };
        match wait_for_release(released) {
            Some(Release::Mapped) => {}
            Some(Release::MapYourself { uid_map, gid_map }) => {
                // Files of a process that is not dumpable are not its own. The plan's last steps
                // make it so again.
                sys::prctl(libc::PR_SET_DUMPABLE, 1)
                    .during(|| "prctl(PR_SET_DUMPABLE, 1)".to_owned())?;
                write_own(&self.outside.proc, "uid_map", &lines(&uid_map))?;
                write_own(&self.outside.proc, "gid_map", &lines(&gid_map))?;
            }
            None => sys::exit_now(1),
        }
        let places = ["self/ns/user", "self/ns/mnt"].into_iter().map(|name| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&self.outside.proc, name, flags, Mode::empty())
                .during(|| format!("open(/proc/{name})"))
        });
        Ok((places.collect::<Result<_, _>>()?, network))
    }

    /// Waits for what is this sandbox's own. `None` as the error: the host is gone.
    fn hear_plan(&self, line: &mut Line) -> Result<(Plan, Handover), Option<SetupFailure>> {
        let body = loop {
            match line.next_frame() {
                Ok(Some((_, body))) => break body,
                Ok(None) => {}
                Err(_) => return Err(None),
            }
            // The host's end of the line may outlive the host, in a child that it forked.
            let mut both = [
                PollFd::from_borrowed_fd(line.socket(), PollFlags::IN),
                PollFd::new(&self.itself, PollFlags::IN),
            ];
            let _ = poll(&mut both, None);
            if both.iter().skip(1).any(|template| !template.revents().is_empty()) {
                return Err(None);
            }
            line.fill().map_err(|_| None)?;
        };
        let rest = understand::<Rest>(&body).ok_or(None)?;
        let mut given = BTreeMap::new();
        for position in rest.mounts {
            given.insert(position, line.take_descriptor().ok_or(None)?);
        }
        let cgroups = (0..rest.joins).filter_map(|_| line.take_descriptor()).collect();
        let mut mounts = BTreeMap::new();
        let mut plan = Plan { namespaces: Namespace::ALL.to_vec(), ..Plan::default() };
        for (position, step) in rest.steps.into_iter().enumerate() {
            let step = match step {
                RestStep::Own(step) => step,
                RestStep::Common(at) => self.shared.common.get(at).cloned().ok_or(None)?,
            };
            // It is up already; and where it was made ahead, not the sandbox's to change.
            if step.op == Op::LoopbackUp {
                continue;
            }
            if let Some(mount) = given.remove(&position) {
                mounts.insert(plan.steps.len(), vec![mount]);
            }
            plan.steps.push(step);
        }
        Ok((plan, Handover { mounts, cgroups, awaited: None }))
    }

    /// Whether the template lives, on the host's side of the line.
    fn is_there(&self) -> bool {
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.itself, PollFlags::IN)], Some(&now)), Ok(0))
    }
}

fn enter(network: &OwnedFd) -> Result<(), SetupFailure> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .during(|| "setns(CLONE_NEWNET)".to_owned())
        .map_err(|failed| failed.in_step("template"))
}

/// Waits to be let go. End of file means that the template is gone, or gave up.
fn wait_for_release(released: &OwnedFd) -> Option<Release> {
    let mut bytes = [0; RELEASE_BYTES];
    loop {
        match rustix::io::read(released, &mut bytes) {
            Ok(count) => return understand(bytes.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn dup_null(null: &OwnedFd) {
    let _ = rustix::stdio::dup2_stdin(null);
    let _ = rustix::stdio::dup2_stdout(null);
    let _ = rustix::stdio::dup2_stderr(null);
}

/// What the host unmounts is let go here too; nothing done here is seen by the host.
fn follow_host() -> Result<(), CallFailed> {
    use rustix::mount::{MountPropagationFlags, mount_change};
    // Of the form `DOWNSTREAM | REC`: slaves.
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", flags).during(|| "mount(/, MS_SLAVE)".to_owned())
}

fn write_own(proc: &OwnedFd, name: &str, text: &str) -> Result<(), CallFailed> {
    let call = || format!("write(/proc/self/{name}, {text:?})");
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file =
        rustix::fs::openat(proc, format!("self/{name}"), flags, Mode::empty()).during(call)?;
    match rustix::io::write(&file, text.as_bytes()).during(call)? {
        count if count == text.len() => Ok(()),
        _ => Err(CallFailed::new(call(), Errno::IO)),
    }
}

fn lines(map: &[IdRange]) -> String {
    let line = |range: &IdRange| format!("{} {} {}\n", range.inside, range.outside, range.count);
    map.iter().map(line).collect()
}
