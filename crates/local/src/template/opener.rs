//! The process of a template that sees the host's tree: it opens mounts, and pins names.

use super::Answer;
use crate::launch::{Standing, id_namespace, pin_within};
use cofferdam_core::{Error, Result};
use cofferdam_guestd::apply::{LostPin, prepare_bind};
use cofferdam_guestd::line::{Line, understand};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::message::SetupFailure;
use cofferdam_wire::plan::{Bind, Owner};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an opener is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToOpener {
    /// Detached mounts of these. Files of a mapped owner become those of `user`.
    Open { binds: Vec<Bind>, user: (u32, u32) },
    /// Pins in the user and mount namespace that come with the message.
    Pin { pins: Vec<LostPin> },
}

/// How many pairs of owners are remembered. Each keeps a user namespace, which takes the kernel a
/// process to make; a sandbox after another mostly has the same user.
const MAX_OWNERS: usize = 64;

/// User and group on disk, and those that they become.
type Owners = ((u32, u32), (u32, u32));

/// Serves until the line or the template ends.
pub(super) fn serve(socket: OwnedFd, template: Pid) {
    let _ = rustix::process::setsid();
    // ORDER: the wish to die with the template first, then the look whether it is there still.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if rustix::process::getppid() != Some(template) {
        return;
    }
    let mut line = Line::new(socket);
    let mut owners = BTreeMap::new();
    while let Ok(()) = line.fill() {
        while let Ok(Some((header, body))) = line.next_frame() {
            if header.kind != Kind::Message {
                continue;
            }
            let Some(request) = understand(&body) else { return };
            let (answer, given) = match answer(request, &mut line, &mut owners) {
                Ok(answered) => answered,
                Err(failure) => (Answer::Failed { failure }, Vec::new()),
            };
            line.message(0, &answer, given);
            line.drain();
        }
        let _ = poll(&mut [PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)], None);
    }
}

fn answer(
    request: ToOpener,
    line: &mut Line,
    owners: &mut BTreeMap<Owners, OwnedFd>,
) -> Result<(Answer, Vec<OwnedFd>), SetupFailure> {
    match request {
        ToOpener::Open { binds, user } => {
            let opened: Result<Vec<_>, _> =
                binds.iter().map(|bind| open(bind, user, owners)).collect();
            Ok((Answer::Opened, opened?))
        }
        ToOpener::Pin { pins } => {
            let (user, mount) = (line.take_descriptor(), line.take_descriptor());
            let (Some(user), Some(mount)) = (user, mount) else {
                return Err(unable("take the namespaces to pin in"));
            };
            pin_within(&Standing { user, mount }, &pins).map_err(|e| unable(&e.chain()))?;
            Ok((Answer::Pinned, Vec::new()))
        }
    }
}

fn open(
    bind: &Bind,
    user: (u32, u32),
    owners: &mut BTreeMap<Owners, OwnedFd>,
) -> Result<OwnedFd, SetupFailure> {
    let Owner::Mapped { uid, gid } = bind.owner else { return prepare_bind(bind, None) };
    let key = ((uid, gid), user);
    if !owners.contains_key(&key) {
        if owners.len() >= MAX_OWNERS {
            owners.clear();
        }
        let made = id_namespace((uid, gid), user).map_err(|e: Error| unable(&e.chain()))?;
        owners.insert(key, made);
    }
    prepare_bind(bind, owners.get(&key).map(AsFd::as_fd))
}

fn unable(call: &str) -> SetupFailure {
    SetupFailure { step: "opener".to_owned(), call: call.to_owned(), errno: libc::EIO }
}
