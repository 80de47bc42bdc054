//! The plan where user namespaces are forbidden: Landlock and the filter are the only layers.

use super::{Context, Late, Planned, Steps, Tier, confinement, enforced, limits};
use crate::environment::{Identity, environment};
use crate::view::{Place, WorkspaceView, is_within};
use cofferdam_core::{Error, ErrorKind, Result, User};
use cofferdam_wire::plan::{Access, Landlock, Op, Plan};

/// Files and directories of the host that most programs read and that are not among the shown ones,
/// because a private root has its own.
const ALSO_READ: &[&str] =
    &["/proc", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf"];

/// Device nodes that programs rely on.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts",
    "/dev/ptmx",
];

pub(super) fn plan(context: &Context<'_>) -> Result<Planned> {
    refuse_what_needs_a_root(context)?;
    let mut steps = Steps::default();
    if context.inputs.cgroups.child_joins {
        steps.add(Op::JoinCgroups, "limits hold from the first process on");
    }
    limits::steps(context, Tier::Landlock, &mut steps);
    if context.facts.is_root() {
        let ids = context.inputs.ids;
        let identity = Op::Identity { uid: ids.uid, gid: ids.gid };
        steps.add(identity, "commands are a user of the session's own, never root of the host");
    }
    steps.add_lenient(
        Op::Capabilities { keep: Vec::new() },
        "commands hold no capability at all; an ordinary user has none to give up",
    );
    confinement::privileges(&mut steps);
    landlock(context, &mut steps);
    confinement::last(context, &mut steps);

    let scratch = context.inputs.scratch;
    let private = scratch.map(str::to_owned).or_else(|| workspace(context)).unwrap_or_default();
    let place = workspace(context).unwrap_or_else(|| private.clone());
    let identity = Identity {
        user: "sandbox",
        home: context.view.home.as_ref().map_or(&private, |home| &home.path),
        temporary: &private,
        owns_workspace: context.owns_workspace() && !context.facts.is_root(),
    };
    Ok(Planned {
        plan: Plan { steps: steps.0, ..Plan::default() },
        late: Late::default(),
        tier: Tier::Landlock,
        enforced: enforced::without_namespaces(context),
        limits_count: limits::count(context, Tier::Landlock),
        env: environment(context.spec, context.view, &identity, None)?,
        workspace: place.clone(),
        cwd: place,
        way_out: None,
        notes: Vec::new(),
    })
}

/// Some wishes mean nothing without a root of one's own, and no degree of less would be honest.
fn refuse_what_needs_a_root(context: &Context<'_>) -> Result<()> {
    let obstacle = context.facts.obstacle();
    let refused = |what: &str| {
        let error = Error::new(
            ErrorKind::Unenforceable,
            format!("{what} needs user namespaces, which are forbidden here"),
        );
        Err(match obstacle {
            Some(obstacle) => {
                error.hint(format!("{} forbids them: {}", obstacle.found(), obstacle.remedy()))
            }
            None => error,
        })
    };
    if context.spec.user == User::Root {
        return refused("--user root");
    }
    if !context.spec.secrets.is_empty() {
        return refused("--secret");
    }
    if context.view.image.is_some() {
        return refused("an image");
    }
    if context.view.workspace.beside().is_some() {
        return refused("a copy-on-write workspace");
    }
    if !context.view.mounts.is_empty() {
        return refused("a directory that is mounted in the workspace");
    }
    if context.view.workspace == WorkspaceView::Private && context.inputs.scratch.is_none() {
        return refused("a private workspace");
    }
    Ok(())
}

fn workspace(context: &Context<'_>) -> Option<String> {
    match &context.view.workspace {
        WorkspaceView::Directory(directory) => Some(directory.path.clone()),
        WorkspaceView::Private => None,
    }
}

fn landlock(context: &Context<'_>, steps: &mut Steps) {
    if context.facts.landlock_abi == 0 {
        return;
    }
    let view = context.view;
    let mut read: Vec<String> = ALSO_READ.iter().map(|path| (*path).to_owned()).collect();
    // By source: a place that is shown under another name inside has only its own name here.
    read.extend(view.system.iter().map(|shown| shown.source.clone()));
    read.extend(view.files.iter().map(|file| file.path.clone()));
    let mut write = Vec::new();
    let is_hidden = |path: &str| view.hidden.iter().any(|hidden| is_within(path, &hidden.path));
    read.retain(|path| !is_hidden(path));
    for place in view.places.iter().filter(|place| !is_hidden(place.path())) {
        match place {
            Place::Shown(shown) if shown.access == Access::ReadOnly => {
                read.push(shown.source.clone());
            }
            Place::Shown(shown) => write.push(shown.source.clone()),
            // Landlock makes no layers.
            Place::Layered { shown, owner: _ } => read.push(shown.source.clone()),
            // Would be writable on the host itself. The tool has to do with the scratch directory.
            Place::Private { .. } => {}
        }
    }
    write.extend(context.inputs.scratch.map(str::to_owned));
    write.extend(view.home.iter().map(|home| home.path.clone()));
    steps.add(
        Op::Landlock(Landlock {
            abi: context.facts.landlock_abi,
            read,
            write,
            devices: DEVICES.iter().map(|path| (*path).to_owned()).collect(),
            no_tcp: true,
            scoped: true,
        }),
        "the only layer over files here: what is not listed cannot be opened",
    );
}
