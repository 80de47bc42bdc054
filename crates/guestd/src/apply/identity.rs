//! Who the sandbox is: groups of processes, users, capabilities.

use super::{CallFailed, During};
use crate::sys::{self, Job};
use cofferdam_wire::plan::{Namespace, Op, Plan};
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::UnshareFlags;

pub(super) fn join_cgroups(groups: &[OwnedFd], own_view: bool) -> Result<(), CallFailed> {
    for group in groups {
        // 0 stands for the writer. Joining oneself is cheap; being attached from outside is not.
        rustix::io::write(group, b"0").during(|| "write(cgroup tasks, \"0\")".to_owned())?;
    }
    if own_view {
        // ORDER: after joining, so that the group that was joined is the root of the view.
        own_cgroup_view()?;
    }
    Ok(())
}

/// A network namespace that is being made beside.
pub(crate) struct Network(sys::Beside);

impl Network {
    /// Begins to make one.
    pub(crate) fn start(loopback: bool) -> Result<Self, CallFailed> {
        let job = if loopback { Job::NetworkWithLoopback } else { Job::Network };
        sys::Beside::start(job).map(Self).during(|| "clone(CLONE_VM)".to_owned())
    }

    /// Waits until it is made, and enters it.
    pub(super) fn join(self) -> Result<(), CallFailed> {
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        let socket = self.0.finish_network().during(|| "unshare(CLONE_NEWNET)".to_owned())?;
        let namespace = sys::network_of(socket.as_fd()).during(|| "ioctl(SIOCGSKNS)".to_owned())?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .during(|| "setns(CLONE_NEWNET)".to_owned())
    }
}

/// Takes new namespaces of the kinds that a process can take by itself. That of the network, which
/// takes the kernel longest, is made meanwhile.
pub(crate) fn leave_namespaces(plan: &Plan) -> Result<Option<Network>, CallFailed> {
    let mut network = None;
    let loopback = plan.steps.iter().any(|step| step.op == Op::LoopbackUp);
    let mut flags = UnshareFlags::empty();
    for namespace in &plan.namespaces {
        flags |= match namespace {
            Namespace::Network => {
                network = Some(Network::start(loopback)?);
                UnshareFlags::empty()
            }
            Namespace::Ipc => UnshareFlags::NEWIPC,
            Namespace::Uts => UnshareFlags::NEWUTS,
            // Given at birth, or taken when the groups are joined.
            Namespace::User | Namespace::Mount | Namespace::Pid | Namespace::Cgroup => {
                UnshareFlags::empty()
            }
        };
    }
    if !flags.is_empty() {
        sys::unshare(flags).during(|| format!("unshare({:#x})", flags.bits()))?;
    }
    Ok(network)
}

/// Enters a new network namespace.
pub(crate) fn leave_network() -> Result<(), CallFailed> {
    sys::unshare(UnshareFlags::NEWNET).during(|| "unshare(CLONE_NEWNET)".to_owned())
}

/// Takes an own view of control groups, unless groups are still to be joined: the step that joins them
/// does it then.
pub(super) fn settle_in_groups(plan: &Plan) -> Result<(), CallFailed> {
    let joins = plan.steps.iter().any(|step| step.op == Op::JoinCgroups);
    if plan.namespaces.contains(&Namespace::Cgroup) && !joins { own_cgroup_view() } else { Ok(()) }
}

/// Makes the groups that this process is in the root of what it and its descendants see.
fn own_cgroup_view() -> Result<(), CallFailed> {
    let flags = UnshareFlags::NEWCGROUP;
    sys::unshare(flags).during(|| "unshare(CLONE_NEWCGROUP)".to_owned())
}

/// Where the namespace was made beside, the interface is up already.
pub(crate) fn loopback_up() -> Result<(), CallFailed> {
    loopback().during(|| "ioctl(SIOCSIFFLAGS, \"lo\")".to_owned())
}

/// The same with the kernel's answer alone.
pub(crate) fn loopback() -> rustix::io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    sys::loopback_up(socket.as_fd())
}

/// Becomes the session's user. May be repeated.
pub(crate) fn become_user(uid: u32, gid: u32) -> Result<(), CallFailed> {
    // A user without a range of ids may not leave groups; they stay, and map to nobody inside.
    let _ = sys::clear_groups();
    sys::setresgid(gid).during(|| format!("setresgid({gid})"))?;
    sys::setresuid(uid).during(|| format!("setresuid({uid})"))
}

/// Keeps capabilities over a change of user, until they are given up for good.
pub(crate) fn keep_over_user_change() -> Result<(), CallFailed> {
    sys::prctl(libc::PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
        .map(drop)
        .during(|| "prctl(PR_SET_SECUREBITS)".to_owned())
}

const SECBIT_NO_SETUID_FIXUP: usize = 1 << 2;
/// NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off, NO_CAP_AMBIENT_RAISE, each with its lock.
const LOCKED_SECUREBITS: usize = 0b1110_1111;
/// For `--user root`: user 0 gains its capabilities again by exec, nothing else is open.
const LOCKED_SECUREBITS_OF_ROOT: usize = 0b1110_1010;
/// The last capability that any kernel knows has a smaller number.
const LAST_CAPABILITY: u8 = 63;

pub(crate) fn keep_capabilities(keep: &[u8]) -> Result<(), CallFailed> {
    let kept = keep.iter().fold(0_u64, |set, number| set | 1 << (number & 63));
    for number in 0..=LAST_CAPABILITY {
        if kept & (1 << number) != 0 {
            continue;
        }
        match sys::prctl(libc::PR_CAPBSET_DROP, usize::from(number)) {
            Ok(_) => {}
            // The first number that the kernel does not know.
            Err(rustix::io::Errno::INVAL) => break,
            Err(errno) => {
                return Err(CallFailed::new(format!("prctl(PR_CAPBSET_DROP, {number})"), errno));
            }
        }
    }
    let bits = if kept == 0 { LOCKED_SECUREBITS } else { LOCKED_SECUREBITS_OF_ROOT };
    sys::prctl(libc::PR_SET_SECUREBITS, bits)
        .map(drop)
        .during(|| format!("prctl(PR_SET_SECUREBITS, {bits:#x})"))?;
    let _ = sys::prctl(libc::PR_CAP_AMBIENT, 4 /* PR_CAP_AMBIENT_CLEAR_ALL */);
    sys::capset(kept, kept, 0).during(|| format!("capset({kept:#x})"))
}
