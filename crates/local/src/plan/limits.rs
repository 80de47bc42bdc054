//! Which limit is held by what, and how far.

use super::{Context, Steps, Tier};
use crate::cgroup::{GUEST_PROCESSES, GUEST_THREADS_OVER_A_LAYER};
use cofferdam_core::{Axis, Degree, Enforced, Limited, Limits, LimitsCount};
use cofferdam_wire::plan::{Op, Resource};

/// How one limit is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// For all processes together.
    Together,
    /// For each process by itself.
    EachProcess,
    /// Not at all.
    No,
}

/// Locked memory of one process: enough for programs that hold a key, and no more.
const LOCKED_BYTES: u64 = 8 << 20;

/// Signals that wait and timers, of which the kernel counts those of all sandboxes on the host's user.
const SIGNALS: u64 = 4096;

/// POSIX message queues, the kernel's usual limit.
const QUEUE_BYTES: u64 = 819_200;

fn memory(context: &Context<'_>) -> Held {
    if context.inputs.cgroups.memory { Held::Together } else { Held::EachProcess }
}

/// In a user namespace of its own the kernel counts the processes of the sandbox alone. Without one
/// it counts all processes of the user, and a limit would hit the wrong ones.
fn pids(context: &Context<'_>, tier: Tier) -> Held {
    match (context.inputs.cgroups.pids, tier) {
        (true, _) | (false, Tier::Namespaces) => Held::Together,
        (false, Tier::Landlock) => Held::No,
    }
}

fn cpu(context: &Context<'_>) -> Held {
    let unlimited = context.spec.limits.cpu_millis.value() == 0;
    if context.inputs.cgroups.cpu || unlimited { Held::Together } else { Held::No }
}

fn disk(tier: Tier) -> Held {
    match tier {
        Tier::Namespaces => Held::Together,
        Tier::Landlock => Held::No,
    }
}

/// The kernel counts descriptors on their way on the host's user, and refuses whoever has a lower limit than
/// there are. So sandboxes have a lower one than programs of the host can have.
fn fewer_than_host(open_files: u64) -> u64 {
    open_files - open_files / 16
}

/// The limits that each process carries.
pub(super) fn steps(context: &Context<'_>, tier: Tier, steps: &mut Steps) {
    let ceilings = &context.facts.ceilings;
    let mut limit = |resource, limit: u64, why: &str| {
        steps.add(Op::ResourceLimit { resource, limit }, why);
    };
    // Where a program of the host takes cores over a pipe 0 is no limit, and 1 is the kernel's sign that there is to be none.
    limit(Resource::Core, 1, "no memory of a process lands in a file, or in a program of the host");
    limit(
        Resource::Nofile,
        Limits::OPEN_FILES.min(fewer_than_host(ceilings.open_files)),
        "no process can use up the host's table of open files",
    );
    limit(
        Resource::Memlock,
        LOCKED_BYTES.min(ceilings.locked_bytes),
        "no process can pin the host's memory",
    );
    limit(
        Resource::Msgqueue,
        QUEUE_BYTES.min(ceilings.queue_bytes),
        "no process can use up kernel memory through queues",
    );
    limit(
        Resource::Sigpending,
        SIGNALS.min(ceilings.signals),
        "no process can use up the signals and timers of the host's user",
    );
    for resource in [Resource::Nice, Resource::Rtprio] {
        limit(resource, 0, "no process can take a higher priority than it was given");
    }
    let wished = &context.spec.limits;
    if !context.inputs.cgroups.pids && pids(context, tier) == Held::Together {
        let over_a_layer = context.view.layer.as_ref().map_or(0, |_| GUEST_THREADS_OVER_A_LAYER);
        let own = u64::from(GUEST_PROCESSES) + u64::from(over_a_layer);
        limit(
            Resource::Nproc,
            (u64::from(wished.pids.value()) + own).min(ceilings.processes),
            "no control group limits processes here, so the kernel counts them by user namespace",
        );
    }
    if memory(context) == Held::EachProcess {
        limit(
            Resource::Data,
            wished.memory_bytes.value().min(ceilings.data_bytes),
            "no control group limits memory here, so each process has a limit of its own",
        );
    }
}

/// Lowers the limits axis as far as limits are not held.
pub(super) fn lower(context: &Context<'_>, tier: Tier, enforced: &mut Enforced) {
    let mut lower = |held, what: Limited, why: &str| match held {
        Held::Together => {}
        Held::EachProcess | Held::No => {
            enforced.lower(Axis::Limits, Degree::Partial, &format!("{} {why}", what.unheld()));
        }
    };
    lower(memory(context), Limited::Memory, "no control group with a memory limit can be written");
    lower(
        pids(context, tier),
        Limited::Pids,
        "there is neither a control group nor a user namespace to count them in",
    );
    lower(cpu(context), Limited::Cpu, "no control group with a processor limit can be written");
    lower(
        disk(tier),
        Limited::Disk,
        "it is a directory of the host, for there is no mount namespace",
    );
}

/// The axis counts where the profile demands limits, or where the caller asked for one that is not
/// held in full. Default limits that do not hold are reported and judge nothing.
pub(super) fn count(context: &Context<'_>, tier: Tier) -> LimitsCount {
    let wished = &context.spec.limits;
    let lacks = |asked: bool, held: Held| asked && held != Held::Together;
    let counts = context.spec.profile.requires_limits()
        || lacks(wished.memory_bytes.is_asked(), memory(context))
        || lacks(wished.pids.is_asked(), pids(context, tier))
        || lacks(wished.cpu_millis.is_asked(), cpu(context))
        || lacks(wished.disk_bytes.is_asked(), disk(tier));
    if counts { LimitsCount::Yes } else { LimitsCount::No }
}
