//! What a first process is told that was cloned from one that knew nothing: its plan, and what the
//! host opened for it.

use crate::apply::{Handover, by_position, positions};
use crate::line::{Line, understand};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::plan::Plan;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// How many descriptors go with one frame.
const AT_ONCE: usize = 16;
/// How much of a plan goes in one frame. A repository with many others in it makes a long one.
const PIECE_BYTES: usize = 256 * 1024;

/// The first message on the line. The plan comes with the frames behind it, and so do the
/// descriptors: mounts, then control groups.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    plan_bytes: usize,
    /// The position of each mount.
    mounts: Vec<usize>,
    /// How many control groups there are.
    cgroups: usize,
}

/// Tells a first process what it is to become. One that is gone hears nothing.
pub fn tell(line: &mut Line, plan: &Plan, handover: Handover) -> Result<(), Errno> {
    let Handover { mounts, cgroups, awaited: _ } = handover;
    let plan = serde_json::to_vec(plan).map_err(|_| Errno::INVAL)?;
    let told = Told { plan_bytes: plan.len(), mounts: positions(&mounts), cgroups: cgroups.len() };
    line.message(0, &told, Vec::new());
    let mut pieces = plan.chunks(PIECE_BYTES);
    let mut descriptors = mounts.into_values().flatten().chain(cgroups);
    loop {
        let piece = pieces.next().unwrap_or_default();
        let given: Vec<OwnedFd> = descriptors.by_ref().take(AT_ONCE).collect();
        if piece.is_empty() && given.is_empty() {
            break;
        }
        line.frame(0, Kind::Data, piece, given);
    }
    line.drain();
    Ok(())
}

/// Waits for it. `None`: the host is gone, or said something else.
pub(crate) fn hear(line: &mut Line) -> Option<(Plan, Handover)> {
    let Told { plan_bytes, mounts: places, cgroups: groups } = understand(&next_frame(line)?)?;
    let (mut plan, mut came) = (Vec::new(), Vec::new());
    while plan.len() < plan_bytes || came.len() < places.len() + groups {
        plan.extend_from_slice(&next_frame(line)?);
        came.extend(std::iter::from_fn(|| line.take_descriptor()));
    }
    let cgroups = came.split_off(places.len());
    let mounts = by_position(places, came);
    Some((understand(&plan)?, Handover { mounts, cgroups, awaited: None }))
}

fn next_frame(line: &mut Line) -> Option<Vec<u8>> {
    loop {
        if let Some((_, body)) = line.next_frame().ok()? {
            return Some(body);
        }
        let _ = poll(&mut [PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)], None);
        line.fill().ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::plan::{Need, Op, Step};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (Line, Line) {
        let flags = SocketFlags::CLOEXEC;
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        (Line::new(a), Line::new(b))
    }

    fn open(path: &str) -> OwnedFd {
        std::fs::File::open(path).unwrap().into()
    }

    #[test]
    fn a_long_plan_and_many_descriptors_arrive_whole_and_in_order() {
        let (mut ours, mut theirs) = pair();
        let step = |n: usize| {
            let op = Op::HostName(format!("{n}").repeat(100));
            Step { op, why: String::new(), need: Need::Required }
        };
        let plan = Plan { steps: (0..5000).map(step).collect(), ..Plan::default() };
        let handover = Handover {
            mounts: (0..40).map(|n| (n * 3, vec![open("/dev/zero")])).collect(),
            cgroups: vec![open("/dev/null"), open("/dev/null")],
            awaited: None,
        };
        let sent = plan.clone();
        let sender = std::thread::spawn(move || tell(&mut ours, &sent, handover).unwrap());
        let (came, handover) = hear(&mut theirs).unwrap();
        sender.join().unwrap();
        assert_eq!(came, plan);
        let number = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_rdev;
        let zero = number(&open("/dev/zero"));
        assert_eq!(handover.mounts.len(), 40);
        let is_zero = |fds: &[OwnedFd]| fds.len() == 1 && fds.iter().all(|fd| number(fd) == zero);
        assert!(handover.mounts.iter().all(|(at, fds)| at % 3 == 0 && is_zero(fds)));
        assert!(
            handover.cgroups.len() == 2 && handover.cgroups.iter().all(|fd| number(fd) != zero)
        );
    }

    #[test]
    fn a_host_that_is_gone_says_nothing() {
        let (ours, mut theirs) = pair();
        drop(ours);
        assert!(hear(&mut theirs).is_none());
    }
}
