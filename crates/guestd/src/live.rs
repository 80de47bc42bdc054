//! The whole life of process 1.

use crate::apply::identity::Network;
use crate::apply::{
    Done, During, Footing, Handover, Heard, Opening, apply, apply_as_told, confine, identity,
};
use crate::descriptors::close_all_but;
use crate::line::Line;
use crate::serve::{ForCommands, Serve};
use crate::{sys, told};
use cofferdam_wire::message::{GENERATION, Greeting, Hello, SetupFailure};
use cofferdam_wire::plan::{Namespace, Op, Plan};
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::process::Signal;
use std::borrow::Cow;

/// What process 1 is born with.
#[derive(Debug)]
pub struct Birth<'a> {
    /// What it does before it takes commands.
    pub errand: Errand<'a>,
    /// Its line to the host.
    pub line: OwnedFd,
    /// The host writes one byte when ids are mapped, and holds its end for as long as it lives.
    pub parent: OwnedFd,
    /// `/dev/null`, open for reading and writing.
    pub null: OwnedFd,
}

/// What process 1 is born with where it was cloned from a process that knew nothing: the rest is
/// told on its line, see [`tell`](crate::tell).
#[derive(Debug)]
pub struct Blank {
    /// As in [`Birth`].
    pub line: OwnedFd,
    /// As in [`Birth`].
    pub parent: OwnedFd,
    /// As in [`Birth`].
    pub null: OwnedFd,
}

/// What process 1 does before it takes commands.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it stands once, on the stack of who is born")]
pub enum Errand<'a> {
    /// All of it is known.
    Whole(Cow<'a, Plan>, Handover),
    /// Only its beginning; what follows is told on this connected stream socket.
    Begun(&'a Opening, OwnedFd),
}

impl Errand<'_> {
    fn plan(&self) -> &Plan {
        match self {
            Self::Whole(plan, _) => plan,
            Self::Begun(opening, _) => &opening.plan,
        }
    }

    /// All that must stay open.
    fn descriptors(&self) -> Vec<&OwnedFd> {
        match self {
            Self::Whole(_, handover) => handover.descriptors().collect(),
            Self::Begun(_, socket) => vec![socket],
        }
    }
}

/// Lives as process 1 of a sandbox: sets it up, greets the host, serves its line, and ends with it.
///
/// Called in a fresh single-threaded process that is in its namespaces already. Everything that the
/// caller's memory or descriptors held is closed or wiped before anything hostile can run.
pub fn live(birth: Birth<'_>) -> ! {
    let Birth { errand, line, parent, null } = birth;
    let mask = begin(errand.descriptors(), [&line, &parent, &null]);
    set_up_and_serve(errand, Blank { line, parent, null }, mask)
}

/// The same for one that is told what it is to become. Its memory holds nothing but that.
pub fn live_as_told(blank: Blank) -> ! {
    let Blank { line, parent, null } = blank;
    let mask = begin([], [&line, &parent, &null]);
    let mut line = Line::new(line);
    let Some((plan, handover)) = told::hear(&mut line) else { sys::exit_now(1) };
    let line = line.into_socket();
    let errand = Errand::Whole(Cow::Owned(plan), handover);
    set_up_and_serve(errand, Blank { line, parent, null }, mask)
}

/// Lets go of what was the caller's, and answers the mask of modes that is kept for commands.
fn begin<'a>(handed: impl IntoIterator<Item = &'a OwnedFd>, ours: [&'a OwnedFd; 3]) -> Mode {
    sys::block_signals();
    sys::reset_signals();
    sys::keep_large_memory_apart();
    close_others(handed, ours);
    wipe_strings();
    // The plan names exact permissions.
    let mask = rustix::process::umask(Mode::empty());
    // Out of the caller's session: nothing inside has the caller's terminal.
    let _ = rustix::process::setsid();
    mask
}

fn set_up_and_serve(errand: Errand<'_>, blank: Blank, mask: Mode) -> ! {
    let Blank { line, parent, null } = blank;
    let plan = errand.plan();
    if !plan.namespaces.contains(&Namespace::Pid) {
        // Without a process namespace, what loses its parent would go to the host's first process.
        let _ = sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    // Before the wait, because a network namespace takes the kernel as long as much of the rest; it
    // is made beside, while the tree is built.
    let apart = identity::leave_namespaces(plan);
    if !is_released(&parent) {
        sys::exit_now(1);
    }
    let scope =
        if plan.namespaces.contains(&Namespace::Pid) { None } else { confine::signal_scope() };
    let set_up = apart
        .map_err(|failed| Some(failed.in_step("namespaces")))
        .and_then(|network| settle(plan, || !has_hung_up(&parent)).map(|()| network))
        .and_then(|network| carry_out(errand, network).map_err(Some));
    // The host sees the end of the line too; this end is for the time before it is served.
    drop(parent);
    let mut line = Line::new(line);
    match set_up.and_then(|done| share(&mut line, done).map_err(Some)) {
        Ok(Done { confirmed, listeners: _, rules, open_files }) => {
            rustix::process::umask(mask);
            let hello = Hello {
                generation: GENERATION,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                confirmed,
            };
            let commands = ForCommands { scope, rules, open_files };
            Serve::start(line, null, commands, &Greeting::Hello(hello))
        }
        Err(None) => sys::exit_now(1),
        Err(Some(failure)) => {
            line.last_word(&Greeting::SetupFailed(failure));
            sys::exit_now(1)
        }
    }
}

/// Lets go of the plan too: who serves for long has no use for it.
fn carry_out(errand: Errand<'_>, network: Option<Network>) -> Result<Done, SetupFailure> {
    match errand {
        Errand::Whole(plan, handover) => apply(&plan, Footing::Host, handover, network),
        Errand::Begun(opening, socket) => apply_as_told(opening, Heard::new(socket), network),
    }
}

/// Gives the host the sockets of the gate, and the rules that it may tell of more later.
fn share(line: &mut Line, mut done: Done) -> Result<Done, SetupFailure> {
    // ORDER: the rules last, so that the host knows which they are.
    let rules = done.rules.as_ref().map(|rules| rustix::io::fcntl_dupfd_cloexec(rules, 3));
    let rules = rules.transpose().during(|| "fcntl(rules, F_DUPFD)".to_owned());
    done.listeners.extend(rules.map_err(|failed| failed.in_step("hand_over"))?);
    hand_over(line, std::mem::take(&mut done.listeners)).map(|()| done)
}

/// Gives the host what it holds for us.
pub(crate) fn hand_over(line: &mut Line, what: Vec<OwnedFd>) -> Result<(), SetupFailure> {
    if what.is_empty() {
        return Ok(());
    }
    let handed = line.hand(what).during(|| "sendmsg(descriptors for the host)".to_owned());
    handed.map_err(|failed| failed.in_step("hand_over"))
}

/// Waits until the host has mapped our ids. End of file means that the host is gone.
fn is_released(parent: &OwnedFd) -> bool {
    let mut byte = [0];
    loop {
        match rustix::io::read(parent, &mut byte) {
            Ok(count) => return count == 1,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Takes the session's user at once, keeping capabilities for the set-up, and ties our life to the
/// host's. `None` as the error: the host is gone.
pub(crate) fn settle(
    plan: &Plan,
    host_is_there: impl Fn() -> bool,
) -> Result<(), Option<SetupFailure>> {
    for step in plan.steps.iter().filter(|_| plan.namespaces.contains(&Namespace::User)) {
        let Op::Identity { uid, gid } = step.op else { continue };
        // What is made in the new root must belong to an id that the namespace knows.
        identity::keep_over_user_change()
            .and_then(|()| identity::become_user(uid, gid))
            .map_err(|failed| Some(failed.in_step("identity")))?;
    }
    // ORDER: after the change of user, which clears it; and then look whether the parent went away
    // in between. Asking for the parent's id says nothing: in a new namespace it is always 0.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if host_is_there() { Ok(()) } else { Err(None) }
}

fn has_hung_up(parent: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut ends = [PollFd::new(parent, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut ends, Some(&now)) {
        Ok(_) => ends.iter().any(|end| end.revents().contains(PollFlags::HUP)),
        Err(_) => false,
    }
}

/// Closes every descriptor but ours, and makes the first three null.
fn close_others<'a>(handed: impl IntoIterator<Item = &'a OwnedFd>, ours: [&'a OwnedFd; 3]) {
    close_all_but(handed.into_iter().chain(ours));
    let [_, _, null] = ours;
    let _ = rustix::stdio::dup2_stdin(null);
    let _ = rustix::stdio::dup2_stdout(null);
    let _ = rustix::stdio::dup2_stderr(null);
}

/// Wipes the caller's arguments and environment from this process: /proc/1/cmdline is readable
/// inside, and the arguments may hold secrets and host paths.
pub(crate) fn wipe_strings() {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    // Fields are counted behind the name, which may hold anything, in parentheses.
    let Some((_, fields)) = stat.rsplit_once(") ") else { return };
    let numbers: Vec<usize> = fields.split(' ').map(|f| f.trim().parse().unwrap_or(0)).collect();
    // Fields 48 to 51 of proc(5); the first one behind the name is field 3.
    for (start, end) in [(48, 49), (50, 51)] {
        let (start, end) = (numbers.get(start - 3), numbers.get(end - 3));
        if let (Some(&start), Some(&end)) = (start, end)
            && start != 0
            && end > start
        {
            sys::wipe(start, end - start);
        }
    }
}
