//! Another layer in the place of the workspace's, under a sandbox that lives on.
//!
//! Two requests of one client: the sandbox is cleared of all processes, the client exchanges two
//! directories, and the layer is mounted anew. A client that is gone in between leaves a sandbox with
//! a layer that is not the session's any more, so that it is ended.

use super::exec::Killed;
use super::keep::Keeper;
use super::talk::Request;
use super::tree::{children, descendants, stat};
use crate::cow;
use crate::launch::layer::{Renewal, reap};
use cofferdam_core::{DestroyReason, Error, ErrorKind, Result};
use cofferdam_wire::message::HostOpens;
use cofferdam_wire::plan::{Access, Landlock, Op, Overlay, Plan, Upper};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long all processes together may take to go.
const CLEARED_WITHIN: Duration = Duration::from_secs(5);
/// The longest pause between two looks at that. What the guest says ends it sooner.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000 };

/// Whether commands of this plan have rules that are handed to the host.
pub(super) fn has_rules(plan: &Plan) -> bool {
    rules(plan).is_some_and(|rules| rules.abi > 0)
}

fn rules(plan: &Plan) -> Option<&Landlock> {
    plan.steps.iter().find_map(|step| {
        let Op::CommandRules(rules) = &step.op else { return None };
        Some(rules)
    })
}

/// The layer that stays, with what was mounted after it and holds a copy of it, where nothing else was
/// mounted on it or on that.
fn renewable(plan: &Plan) -> Option<Renewable<'_>> {
    let ops: Vec<&Op> = plan.steps.iter().map(|step| &step.op).collect();
    let is_it = |op: &&Op| matches!(op, Op::Overlay(Overlay { upper: Upper::Kept(_), .. }));
    let place = ops.iter().position(is_it)?;
    let Op::Overlay(overlay) = ops.get(place)? else { return None };
    // Names in an image are its own, and mounts there are found by name.
    if ops.iter().any(|op| mounts_at(op) == Some("/")) {
        return None;
    }
    let mut found = Renewable { overlay, pins: Vec::new(), shown_at: Vec::new() };
    for op in ops.iter().skip(place + 1) {
        if let Op::Rebind { from, path } = op
            && *from == overlay.path
        {
            found.shown_at.push(path);
        } else if let Op::Pin { path, access } = op
            && is_below(&overlay.path, path)
            && overlay.path != *path
        {
            // What is pinned is a copy with all that is mounted below it.
            found.pins.push((path, *access));
        } else if mounts_at(op).is_some_and(|path| found.has(path)) {
            return None;
        }
    }
    Some(found)
}

/// A layer that can be mounted anew.
struct Renewable<'a> {
    overlay: &'a Overlay,
    /// Directories above it that were pinned after it, outermost first.
    pins: Vec<(&'a str, Access)>,
    /// Where else it is shown.
    shown_at: Vec<&'a str>,
}

impl Renewable<'_> {
    /// Whether something that is mounted here would be lost.
    fn has(&self, path: &str) -> bool {
        let pinned = self.pins.iter().map(|(path, _)| *path);
        let mut all = pinned.chain(self.shown_at.iter().copied()).chain([&*self.overlay.path]);
        all.any(|above| is_below(path, above))
    }
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where a step mounts something, or makes something in what is mounted.
fn mounts_at(op: &Op) -> Option<&str> {
    match op {
        Op::Directory { path, .. }
        | Op::Start { path }
        | Op::File { path, .. }
        | Op::Bytes { path, .. }
        | Op::Symlink { path, .. }
        | Op::Tmpfs { path, .. }
        | Op::Rebind { path, .. }
        | Op::Proc { path }
        | Op::Devpts { path }
        | Op::Mask { path }
        | Op::Pin { path, .. }
        | Op::Space { path, .. }
        | Op::Private { path, .. }
        | Op::Way { path } => Some(path),
        Op::Bind(bind) => Some(&bind.path),
        Op::Overlay(overlay) => Some(&overlay.path),
        Op::PrivateMounts
        | Op::JoinCgroups
        | Op::HostName(_)
        | Op::NewRoot { .. }
        | Op::SealRoot
        | Op::Pivot
        | Op::LoopbackUp
        | Op::NoUserNamespaces
        | Op::Watches { .. }
        | Op::ResourceLimit { .. }
        | Op::Identity { .. }
        | Op::Capabilities { .. }
        | Op::NoNewPrivileges
        | Op::NotDumpable
        | Op::Landlock(_)
        | Op::CommandRules(_)
        | Op::Seccomp { .. }
        | Op::LocalRoutes { .. }
        | Op::Redirect { .. }
        | Op::EgressGate { .. } => None,
    }
}

impl Keeper<'_> {
    /// Ends all processes, while nothing of them runs.
    pub(super) fn clear_for_layer(&mut self, client: u64) -> Result<()> {
        let plan = &self.assembly.planned.plan;
        let has_all = rules(plan).is_none_or(|rules| rules.abi == 0) || self.rules.is_some();
        if renewable(plan).is_none() || !has_all {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the layer of this sandbox cannot be exchanged while it lives",
            )
            .hint("End the sandbox first."));
        }
        if !self.is_held || self.alarm.is_some() {
            let what = format!("sandbox {} is not held", self.record.id);
            return Err(Error::new(ErrorKind::Conflict, what).hint("Hold it first."));
        }
        self.cleared = Some(client);
        // The connections' own processes are among those that end.
        self.hang_up_workers();
        for exec in self.execs.iter_mut() {
            if let Some(live) = exec.live.as_mut().filter(|live| live.killed.is_none()) {
                live.killed = Some((Killed::ByClient, Instant::now()));
            }
        }
        // ORDER: before anything goes on. What was killed while it stood still runs no more.
        for pid in descendants(self.born.pid) {
            kill(pid, None);
        }
        self.resume()?;
        if self.is_cleared() {
            return Ok(());
        }
        self.over.get_or_insert(DestroyReason::Error);
        Err(Error::new(ErrorKind::TimedOut, "the sandbox's processes do not end"))
    }

    /// Waits until nothing is left but the first process, and all that ended was told of.
    fn is_cleared(&mut self) -> bool {
        let until = Instant::now() + CLEARED_WITHIN;
        loop {
            let left = children(self.born.pid);
            if left.is_empty() && self.execs.channels().is_empty() {
                return self.over.is_none();
            }
            // One that was just being made when the others were stopped.
            left.into_iter().for_each(|pid| kill(pid, Some(self.born.pid)));
            let is_lost = self.line.flush().is_err();
            let mut wait = [PollFd::from_borrowed_fd(self.line.socket(), PollFlags::IN)];
            if !is_lost && poll(&mut wait, Some(&LOOK)) == Ok(1) {
                self.hear();
            }
            if is_lost || self.over.is_some() || Instant::now() >= until {
                return false;
            }
        }
    }

    /// Mounts the layer that is there now.
    pub(super) fn renew_layer(&mut self, client: u64) -> Result<()> {
        let plan = &self.assembly.planned.plan;
        let Some(Renewable { overlay, pins, shown_at }) =
            renewable(plan).filter(|_| self.cleared == Some(client))
        else {
            return Err(Error::new(ErrorKind::Conflict, "this client has not had it cleared"));
        };
        let rules = self.rules.as_ref().map(rustix::fd::AsFd::as_fd).zip(rules(plan));
        let renewal = Renewal { plan, overlay, pins: &pins, shown_at: &shown_at, rules };
        let renewed = match &overlay.upper {
            Upper::Kept(layer) => cow::layer::ensure_work(Path::new(&layer.source)),
            Upper::Private { .. } => Ok(()),
        };
        match renewed.and_then(|()| self.born.renew_layer(renewal)) {
            Ok(process) => {
                if self.rules.is_some() {
                    let channel = self.execs.take_channel();
                    self.line.message(channel, &HostOpens::RenewRules, Vec::new());
                }
                self.cleared = None;
                if let Some(last) = self.renewing.replace(process) {
                    reap(&last);
                }
                Ok(())
            }
            Err(error) => {
                self.over.get_or_insert(DestroyReason::Error);
                Err(error)
            }
        }
    }

    /// The end of a layer that was is over.
    pub(super) fn reap_renewing(&mut self) {
        if let Some(process) = self.renewing.take() {
            reap(&process);
        }
    }

    /// Ends it where whoever had it cleared is gone: the layer may be another one by now.
    pub(super) fn end_what_stays_cleared(&mut self) {
        if self.cleared.is_some_and(|client| !self.conns.contains_key(&client)) {
            self.over.get_or_insert(DestroyReason::Error);
        }
    }

    /// Fails for what would have something run in it while it is cleared.
    pub(super) fn refuse_while_cleared(&self, client: u64, request: &Request) -> Result<()> {
        let runs_something = matches!(
            request,
            Request::Start(_)
                | Request::Files
                | Request::WatchFiles
                | Request::Port { .. }
                | Request::Pause
                | Request::Hold
                | Request::ClearForLayer
        );
        if runs_something && self.cleared.is_some() {
            let what = format!("sandbox {} gets another layer", self.record.id);
            return Err(Error::new(ErrorKind::Conflict, what)
                .hint(if self.cleared == Some(client) { "Renew it." } else { "Try again." }));
        }
        Ok(())
    }
}

/// Kills a process: one that stands still, whose number is its own, or a child of this parent.
fn kill(pid: i32, parent: Option<i32>) {
    let Some(number) = Pid::from_raw(pid) else { return };
    let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else { return };
    // ORDER: after the descriptor, which cannot come to mean another process any more.
    let is_it = parent.is_none_or(|parent| stat(pid).is_some_and(|found| found.parent == parent));
    if is_it {
        let _ = pidfd_send_signal(&process, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::plan::{Layer, Need, Owner, Step};

    fn overlay(path: &str) -> Op {
        let layer =
            |source: &str| Layer { source: source.to_owned(), owner: Owner::Same, identity: None };
        Op::Overlay(Overlay {
            lower: vec![layer(path)],
            upper: Upper::Kept(layer("/kept")),
            path: path.to_owned(),
            without: Vec::new(),
        })
    }

    fn pin(path: &str) -> Op {
        Op::Pin { path: path.to_owned(), access: Access::ReadWrite }
    }

    fn shown_at(path: &str) -> Op {
        Op::Rebind { from: "/home/ann/proj".to_owned(), path: path.to_owned() }
    }

    fn mask(path: &str) -> Op {
        Op::Mask { path: path.to_owned() }
    }

    /// What is to be mounted again after the layer: pins, and where it is shown.
    fn again(ops: Vec<Op>) -> Option<(Vec<String>, Vec<String>)> {
        let step = |op| Step { op, why: String::new(), need: Need::Required };
        let plan = Plan { steps: ops.into_iter().map(step).collect(), ..Plan::default() };
        let found = renewable(&plan)?;
        let pins = found.pins.iter().map(|(path, _)| (*path).to_owned()).collect();
        Some((pins, found.shown_at.iter().map(|path| (*path).to_owned()).collect()))
    }

    #[test]
    fn what_lies_on_a_layer_alone_is_mounted_again() {
        let proj = || overlay("/home/ann/proj");
        let own = |pins: &[&str], shown: &[&str]| {
            let all = |list: &[&str]| list.iter().map(|path| (*path).to_owned()).collect();
            Some((all(pins), all(shown)))
        };
        assert_eq!(again(vec![proj(), shown_at("/workspace")]), own(&[], &["/workspace"]));
        // What was pinned before holds no copy of it.
        let ops = vec![pin("/home"), proj(), pin("/home/ann"), shown_at("/workspace")];
        assert_eq!(again(ops), own(&["/home/ann"], &["/workspace"]));
        let beside = vec![proj(), mask("/home/ann/project"), pin("/home/bob"), mask("/etc/x")];
        assert_eq!(again(beside), own(&[], &[]));
        // What would be lost.
        for lost in [
            vec![proj(), mask("/home/ann/proj/.env"), shown_at("/workspace")],
            vec![proj(), shown_at("/workspace"), mask("/workspace/.env")],
            vec![proj(), pin("/home/ann"), mask("/home/ann/.netrc")],
            vec![proj(), pin("/home/ann/proj")],
            vec![overlay("/"), proj()],
            vec![proj(), overlay("/")],
            vec![],
        ] {
            assert_eq!(again(lost.clone()), None, "{lost:?}");
        }
    }
}
