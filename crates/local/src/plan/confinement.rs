//! What a process gives up, and the second layers.

use super::{Context, Steps, Tier, limits};
use crate::view::{HOME, Place, WORKSPACE, WorkspaceView};
use cofferdam_core::User;
use cofferdam_wire::plan::{Access, Landlock, Op};

/// What [`User::Root`] keeps in its own user namespace, with the kernel's numbers. A package manager
/// needs these; none reaches beyond ids of the namespace.
const KEPT_BY_ROOT: &[(u8, &str)] = &[
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (3, "FOWNER"),
    (4, "FSETID"),
    (5, "KILL"),
    (6, "SETGID"),
    (7, "SETUID"),
    (18, "SYS_CHROOT"),
];

pub(super) fn steps(context: &Context<'_>, steps: &mut Steps) {
    limits::steps(context, Tier::Namespaces, steps);
    identity(context, steps);
    privileges(steps);
    landlock(context, steps);
    last(context, steps);
}

fn identity(context: &Context<'_>, steps: &mut Steps) {
    let (uid, gid) = context.ids_inside();
    let (keep, who, what) = match context.spec.user {
        User::Ordinary => {
            (Vec::new(), "commands are an ordinary user", "commands hold no capability at all")
        }
        User::Root => (
            KEPT_BY_ROOT.iter().map(|(number, _)| *number).collect(),
            "commands are root of their own user namespace, and nobody on the host",
            "root inside keeps what a package manager needs, in its own user namespace only",
        ),
    };
    steps.add(Op::Identity { uid, gid }, who);
    steps.add(Op::Capabilities { keep }, what);
}

pub(super) fn privileges(steps: &mut Steps) {
    steps.add(Op::NoNewPrivileges, "programs with a set-id bit give nothing");
    steps.add(Op::NotDumpable, "no command can read or trace the sandbox's first process");
}

/// The second layer over the tree. Reading is granted at the root, for the tree holds nothing but
/// what may be read; a directory of the host that leaked in from elsewhere is not below this root.
fn landlock(context: &Context<'_>, steps: &mut Steps) {
    if context.facts.landlock_abi == 0 {
        return;
    }
    let mut write: Vec<String> =
        ["/tmp", "/var/tmp", "/dev/shm", HOME, "/proc"].map(str::to_owned).to_vec();
    if context.view.image.is_some() {
        // What is written to an image lands in what is the sandbox's own.
        write.push("/".to_owned());
    }
    if context.view.workspace == WorkspaceView::Private {
        write.push(WORKSPACE.to_owned());
    }
    for place in &context.view.places {
        match place {
            Place::Shown(shown) if shown.access == Access::ReadOnly => {}
            Place::Shown(_) | Place::Layered { .. } | Place::Private { .. } => {
                write.push(place.path().to_owned());
            }
        }
    }
    let rules = |write| Landlock {
        abi: context.facts.landlock_abi,
        read: vec!["/".to_owned()],
        write,
        devices: vec!["/dev".to_owned()],
        // Servers on the sandbox's own loopback have to work.
        no_tcp: false,
        scoped: true,
    };
    let mut own = rules(write);
    if context.view.layer.is_some() {
        // A rule is about a directory and not about a path: what takes the place of the workspace would
        // be closed to whoever is under rules of before.
        let commands = std::mem::replace(&mut own, rules(vec!["/".to_owned()]));
        steps.add(
            Op::CommandRules(commands),
            "the workspace may become another one, which these rules are then told",
        );
    }
    steps.add(
        Op::Landlock(own),
        "a second layer: should a mount be wrong, files outside of this tree stay closed",
    );
}

pub(super) fn last(context: &Context<'_>, steps: &mut Steps) {
    // ORDER: last, because the filter forbids most of the steps above.
    steps.add(
        Op::Seccomp { program: context.inputs.seccomp.to_vec() },
        "closes the parts of the kernel that no build or test needs",
    );
}
