//! Sandboxes as copies of a process that lives in the prepared part of their tree.
//!
//! Two processes belong to a template. One stands in the tree and is copied; it hears of nothing that
//! is one sandbox's own. The other stayed in a copy of the host's tree: it opens what a sandbox shows
//! at places of its own, and pins names in sandboxes that live. Both end with the line of the one who
//! started them, and with that one itself.

mod opener;
mod process;
mod table;

use crate::backend::First;
use crate::conversation::{Conversation, lost, pair};
use crate::launch::{Groups, Standing, io_error};
use crate::plan::Split;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::apply::LostPin;
use cofferdam_guestd::line::Line;
use cofferdam_wire::message::SetupFailure;
use cofferdam_wire::plan::{IdRange, Op, Plan, Step};
use cofferdam_wire::template::{RestStep, Shared, ToTemplate};
use opener::ToOpener;
pub use process::serve;
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
pub(crate) use table::Templates;

/// The argument with which the static program is started as a template.
pub const ARGUMENT: &str = "template";

/// The most descriptors that one message carries.
const MAX_GIVEN: usize = 16;

/// What a template or an opener answers. Descriptors come with it as each request says.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// It stands.
    Ready {
        is_nested: bool,
    },
    /// With a descriptor of the process, and the host's end of its line.
    Born {
        pid: i32,
    },
    /// With the mounts.
    Opened,
    Pinned,
    Failed {
        failure: SetupFailure,
    },
}

/// A template that stands. Dropping it ends it, and every sandbox that came from it.
#[derive(Debug)]
pub(crate) struct Template {
    process: Mutex<Conversation>,
    opener: Mutex<Conversation>,
    is_nested: bool,
}

impl Template {
    /// Starts one from the bytes of the static program, and waits until it stands.
    fn start(program: &[u8], shared: &Shared) -> Result<Self> {
        let mut process = Conversation::start(program, Some(ARGUMENT))?;
        let (ours, theirs) = pair()?;
        let become_one = ToTemplate::Become(shared.clone());
        match process.ask::<_, Answer>(&become_one, vec![theirs])?.0 {
            Answer::Ready { is_nested } => Ok(Self {
                process: Mutex::new(process),
                opener: Mutex::new(Conversation::over(ours)),
                is_nested,
            }),
            Answer::Failed { failure } => Err(failed(&failure)),
            Answer::Born { .. } | Answer::Opened | Answer::Pinned => Err(lost()),
        }
    }

    /// Whether both of its processes are there.
    fn is_there(&self) -> bool {
        [&self.process, &self.opener]
            .into_iter()
            .all(|process| process.lock().is_ok_and(|process| process.is_there()))
    }

    /// Clones a sandbox of this plan, which was split. Answers its first process and our end of its
    /// line, on which its namespaces and its greeting come when it stands.
    pub(crate) fn launch(
        &self,
        plan: &Plan,
        split: Split,
        groups: Groups,
    ) -> Result<(First, OwnedFd)> {
        let Split { mut rest, .. } = split;
        let born_in = groups.born_in.is_some();
        let request = ToTemplate::Clone {
            uid_map: self.above(&plan.uid_map)?,
            gid_map: self.above(&plan.gid_map)?,
            born_in,
        };
        // ORDER: the clone is under way while its mounts are opened.
        let mut process = self.process.lock().map_err(|_| lost())?;
        process.say(&request, groups.born_in.into_iter().collect());
        let opened = self.open(plan, &rest.steps);
        let answer = process.hear::<Answer>();
        drop(process);
        let (pid, pidfd, line) = match answer? {
            (Answer::Born { pid }, came) => {
                let [pidfd, line] = came.try_into().map_err(|_| lost())?;
                (pid, pidfd, line)
            }
            (Answer::Failed { failure }, _) => return Err(failed(&failure)),
            (Answer::Ready { .. } | Answer::Opened | Answer::Pinned, _) => return Err(lost()),
        };
        // From here on its drop ends it.
        let first = First { pid, pidfd };
        let (positions, mut descriptors) = opened?;
        rest.mounts = positions;
        rest.joins = groups.join.len();
        descriptors.extend(groups.join);
        if descriptors.len() > MAX_GIVEN {
            return Err(Error::new(ErrorKind::SetupFailed, "too many places are shown"));
        }
        let mut line = Line::new(line);
        line.message(0, &rest, descriptors);
        line.drain();
        Ok((first, line.into_socket()))
    }

    /// A map of ids as the template's user namespace counts them.
    fn above(&self, map: &[IdRange]) -> Result<Vec<IdRange>> {
        match (self.is_nested, map) {
            (false, _) => Ok(map.to_vec()),
            // It has one id of its own, which is the caller's.
            (true, [one]) if one.count == 1 => Ok(vec![*one]),
            (true, _) => Err(Error::new(ErrorKind::SetupFailed, "more ids than a template has")),
        }
    }

    /// Opens the places of the host that are this sandbox's own, with their positions.
    fn open(&self, plan: &Plan, steps: &[RestStep]) -> Result<(Vec<usize>, Vec<OwnedFd>)> {
        let (positions, binds): (Vec<usize>, Vec<_>) = steps
            .iter()
            .enumerate()
            .filter_map(|(position, step)| match step {
                RestStep::Own(Step { op: Op::Bind(bind), .. }) => Some((position, bind.clone())),
                RestStep::Own(_) | RestStep::Common(_) => None,
            })
            .unzip();
        if positions.is_empty() {
            return Ok((positions, Vec::new()));
        }
        if positions.len() > MAX_GIVEN {
            return Err(Error::new(ErrorKind::SetupFailed, "too many places are shown"));
        }
        let user = crate::launch::outside_ids(plan);
        let request = ToOpener::Open { binds, user };
        let mut opener = self.opener.lock().map_err(|_| lost())?;
        opener.say(&request, Vec::new());
        match opener.hear::<Answer>()? {
            (Answer::Opened, came) if came.len() == positions.len() => Ok((positions, came)),
            (Answer::Failed { failure }, _) => Err(failed(&failure)),
            (_, _) => Err(lost()),
        }
    }

    /// Pins names inside a sandbox that came from this template.
    pub(crate) fn pin_again(&self, inside: &Standing, pins: &[LostPin]) -> Result<()> {
        let copy = |fd: &OwnedFd| {
            rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(|e| io_error("copy a descriptor", e))
        };
        let given = vec![copy(&inside.user)?, copy(&inside.mount)?];
        let request = ToOpener::Pin { pins: pins.to_vec() };
        match self.opener.lock().map_err(|_| lost())?.ask::<_, Answer>(&request, given)?.0 {
            Answer::Pinned => Ok(()),
            Answer::Failed { failure } => Err(failed(&failure)),
            Answer::Ready { .. } | Answer::Born { .. } | Answer::Opened => Err(lost()),
        }
    }
}

fn failed(failure: &SetupFailure) -> Error {
    Error::new(ErrorKind::SetupFailed, format!("{}: {}", failure.step, failure.call))
        .source(std::io::Error::from_raw_os_error(failure.errno))
}
