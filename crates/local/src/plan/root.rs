//! The tree that a sandbox with namespaces sees, from nothing to sealed.

use super::image;
use super::{Context, HOST_NAME, Home, Late, Steps, USER_ID, WayOut};
use crate::host::HostFacts;
use crate::view::{HOME, ImageView, Place, Shown, View, WORKSPACE, WorkspaceView, is_within};
use cofferdam_core::{Limits, Spec, User};
use cofferdam_wire::plan::{Access, Bind, Depth, Layer, Op, Overlay, Owner, Step, Upper};
use std::collections::BTreeMap;

/// Device nodes that programs rely on. None of them reaches hardware or the host's state.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Parts of `/proc` that show or change the host, and that any user could read. What only the
/// host's root can open stays closed without a cover, because nobody inside is the host's root;
/// the most dangerous of those are covered all the same.
const HIDDEN_OF_PROC: &[(&str, &str)] = &[
    ("cmdline", "how the host was started"),
    ("bootconfig", "how the host was started"),
    // The kernel leaves out whose processes are not of the sandbox, except where a lock belongs to an open file.
    ("locks", "locks of other processes, with files and numbers of theirs"),
    ("keys", "key rings"),
    ("key-users", "key rings of other users"),
    ("kallsyms", "addresses of the kernel"),
    ("modules", "modules of the kernel"),
    ("kcore", "memory of the kernel"),
    ("timer_list", "timers of other processes"),
    ("sysrq-trigger", "commands to the kernel"),
    ("acpi", "hardware of the host"),
    ("asound", "hardware of the host"),
    ("bus", "hardware of the host"),
    ("driver", "hardware of the host"),
    ("scsi", "hardware of the host"),
    ("fs", "file systems of the host"),
    ("irq", "interrupts of the host"),
];

/// What names the host until it starts anew, and what is shown in its place. It lies where nobody inside can
/// change it, also on an image.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const NO_BOOT_ID: (&str, &str) = ("/dev/boot_id", "00000000-0000-4000-8000-000000000000\n");

/// The configuration of git for all users.
pub(crate) const GIT_CONFIG: &str = "/etc/gitconfig";

/// Private directories that everything may write to.
const PRIVATE: &[(&str, u32, &str)] = &[
    ("/tmp", 0o1777, "temporary files, private and limited by --disk"),
    ("/var/tmp", 0o1777, "temporary files, private and limited by --disk"),
    ("/dev/shm", 0o1777, "shared memory, private and limited by --disk"),
    (HOME, 0o755, "the home directory, private and limited by --disk"),
];

/// What every sandbox has, whatever the host holds: it is built while the host is looked at. On an
/// image that is little, for the tree begins with its layers.
pub(super) fn opening((spec, facts): (&Spec, &HostFacts), home: Home, steps: &mut Steps) {
    beginning(spec, steps);
    if spec.image.is_none() {
        furnish(facts, home, steps);
    }
}

/// Devices, processes, and private directories.
fn furnish(facts: &HostFacts, home: Home, steps: &mut Steps) {
    devices(steps);
    processes(facts, steps);
    for (path, mode, why) in PRIVATE {
        if *path != HOME || home == Home::Private {
            private(Root::Own, (path, *mode), why, steps);
        }
    }
}

/// What the tree is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// An empty file system, in which everything is made by us, and which is sealed.
    Own,
    /// Layers, in which others chose the names, and which can be written.
    Image,
}

impl Root {
    fn of(view: &View) -> Self {
        if view.image.is_some() { Self::Image } else { Self::Own }
    }
}

/// ORDER: as early as can be, because the kernel takes its time to let go of the host's tree. What is
/// shown later is opened before.
pub(super) fn enter(steps: &mut Steps) {
    steps.add(Op::Pivot, "the host's tree is gone, not merely covered");
}

pub(super) fn steps(context: &Context<'_>, steps: &mut Steps) -> Late {
    opening((context.spec, context.facts), Home::of(context.view), steps);
    match &context.view.image {
        None => {
            enter(steps);
            system(context, steps);
            etc(context, steps);
        }
        Some(view) => on_image(context, view, steps),
    }
    own(context, steps);
    places(context, steps);
    trusted(context, steps);
    let from = steps.0.len();
    steps.0.extend(pins(context));
    let late = Late { pins: from..steps.0.len() };
    for mounted in &context.view.mounts {
        // ORDER: before what hides, which then lies over it.
        let op = Op::Rebind { from: mounted.place.clone(), path: mounted.path.clone() };
        steps.add(op, mounted.why.clone());
    }
    covers(context, steps);
    if let WorkspaceView::Directory(directory) = &context.view.workspace
        && directory.at_workspace
    {
        // ORDER: after pins and covers, so that the second name has them too.
        steps.add(
            Op::Rebind { from: directory.path.clone(), path: WORKSPACE.to_owned() },
            "the workspace by its stable name, with the same protection",
        );
    }
    if context.inputs.cgroups.child_joins {
        // ORDER: before anything that could make a second process; and late, because the host makes
        // the groups while the tree is built.
        steps.add(Op::JoinCgroups, "limits hold from the first process on");
    }
    let sealed = match Root::of(context.view) {
        Root::Own => "nothing can be added to the tree outside of what is private",
        Root::Image => "nothing can be added to the devices",
    };
    steps.add(Op::SealRoot, sealed);
    let boot = Op::Rebind { from: NO_BOOT_ID.0.to_owned(), path: BOOT_ID.to_owned() };
    // ORDER: sealed first, for it is as writable as what it shows.
    steps.add(boot, "the id of the host's start stays outside");
    steps.add(Op::LoopbackUp, "servers and clients inside can meet on 127.0.0.1");
    if let Some(way_out) = context.inputs.way_out {
        way_out.steps(steps);
    }
    late
}

fn beginning(spec: &Spec, steps: &mut Steps) {
    steps.add(Op::PrivateMounts, "no mount made here is seen by the host, nor the other way round");
    steps.add(Op::HostName(HOST_NAME.to_owned()), "the host's name stays outside");
    steps.add(
        Op::NewRoot { size_bytes: spec.limits.disk_bytes.value(), inodes: Limits::DISK_FILES },
        "the tree starts empty, in memory; what is not listed below is not there",
    );
}

/// The tree of an image, with what every sandbox has over what the image has under the same names.
fn on_image(context: &Context<'_>, view: &ImageView, steps: &mut Steps) {
    steps.add(image::layers(view), image::why(view));
    // ORDER: a directory of the space at its place comes first, because it covers the space.
    let (home, root) = (Home::of(context.view), Root::Image);
    let (first, why) = (Overlay::SPACE, "temporary files, private and limited by --disk");
    private(root, (first, 0o1777), why, steps);
    let way = Op::Way { path: "/dev".to_owned() };
    steps.add(way, "devices of the sandbox's own, whatever the image has there");
    devices(steps);
    processes(context.facts, steps);
    for (path, mode, why) in PRIVATE {
        if *path != first && (*path != HOME || home == Home::Private) {
            private(root, (path, *mode), why, steps);
        }
    }
    enter(steps);
    let (resolver, resolver_why) = resolver(context);
    for (name, content, why) in [
        ("hosts", HOSTS.to_owned(), "names of the loopback address, and no other"),
        ("hostname", format!("{HOST_NAME}\n"), "the host's name stays outside"),
        ("resolv.conf", resolver, resolver_why),
    ] {
        let path = format!("/etc/{name}");
        steps.add_lenient(Op::File { path, content, mode: 0o644 }, why);
    }
    if let Some(path) = image::cwd(context.spec) {
        steps.add_lenient(Op::Start { path }, "where the image wants commands to start");
    }
}

fn system(context: &Context<'_>, steps: &mut Steps) {
    for shown in &context.view.system {
        steps.add(bind(shown), shown.why.clone());
    }
    for link in &context.view.links {
        let op = Op::Symlink { path: link.path.clone(), target: link.target.clone() };
        steps.add(op, link.why.clone());
    }
    let directory = |path: &str| Op::Directory { path: path.to_owned(), mode: 0o755 };
    steps.add(directory("/run"), "programs expect it; it is empty, without any socket of the host");
    let link = Op::Symlink { path: "/var/run".to_owned(), target: "../run".to_owned() };
    steps.add(link, "the old name of /run");
}

fn etc(context: &Context<'_>, steps: &mut Steps) {
    // What is in a home directory that stays is not ours to write.
    let mut identity = context.view.git_identity.as_ref().filter(|_| context.view.home.is_some());
    for file in &context.view.files {
        let mut content = file.content.clone();
        if file.path == GIT_CONFIG {
            content.extend(identity.take().map(|identity| format!("\n{identity}")));
        }
        let op = Op::File { path: file.path.clone(), content, mode: 0o644 };
        steps.add(op, file.why.clone());
    }
    if let Some(identity) = identity.filter(|_| !context.view.shows(GIT_CONFIG)) {
        let path = GIT_CONFIG.to_owned();
        let file = Op::File { path, content: identity.clone(), mode: 0o644 };
        steps.add(file, "your name and address for commits, and nothing else of your settings");
    }
    let redirects = context.inputs.way_out.is_some_and(WayOut::redirects);
    let resolves = if redirects { "files dns" } else { "files" };
    let (resolver, resolver_why) = resolver(context);
    let made_up = [
        ("passwd", passwd(context), "a list of users without those of the host"),
        ("group", group(context), "a list of groups without those of the host"),
        ("hosts", HOSTS.to_owned(), "names of the loopback address, and no other"),
        ("hostname", format!("{HOST_NAME}\n"), "the host's name stays outside"),
        ("machine-id", format!("{}\n", "0".repeat(32)), "the host's identity stays outside"),
        ("resolv.conf", resolver, resolver_why),
        (
            "nsswitch.conf",
            format!(
                "passwd: files\ngroup: files\nshadow: files\nhosts: {resolves}\n\
                     networks: files\nprotocols: files\nservices: files\n"
            ),
            if redirects {
                "names are looked up in these files, then asked for"
            } else {
                "names are looked up in these files only"
            },
        ),
    ];
    for (name, content, why) in made_up {
        steps.add(Op::File { path: format!("/etc/{name}"), content, mode: 0o644 }, why);
    }
    let mounts = Op::Symlink { path: "/etc/mtab".to_owned(), target: "../proc/mounts".to_owned() };
    steps.add(mounts, "the list of mounts by its old name");
}

/// What `resolv.conf` says, and why.
fn resolver(context: &Context<'_>) -> (String, &'static str) {
    let none = || (String::new(), "no name server is reachable");
    context.inputs.way_out.map_or_else(none, WayOut::resolver)
}

const HOSTS: &str = "127.0.0.1 localhost cofferdam\n::1 localhost ip6-localhost ip6-loopback\n";

fn passwd(context: &Context<'_>) -> String {
    let root_home = match context.spec.user {
        User::Root => HOME,
        User::Ordinary => "/root",
    };
    let shell = if context.view.shows("/bin/bash") { "/bin/bash" } else { "/bin/sh" };
    format!(
        "root:x:0:0:root:{root_home}:{shell}\n\
         sandbox:x:{USER_ID}:{USER_ID}:sandbox:{HOME}:{shell}\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
}

fn group(_context: &Context<'_>) -> String {
    format!("root:x:0:\ntty:x:5:\nsandbox:x:{USER_ID}:\nnogroup:x:65534:\n")
}

fn devices(steps: &mut Steps) {
    for name in DEVICES {
        let path = format!("/dev/{name}");
        steps.add(
            Op::Bind(Bind {
                source: path.clone(),
                path,
                // What is a device can be written to all the same; its times and its mode are the host's.
                access: Access::ReadOnly,
                depth: Depth::One,
                devices: true,
                owner: Owner::Same,
                identity: None,
            }),
            "a device that programs rely on and that holds nothing of the host",
        );
    }
    steps.add(
        Op::Devpts { path: "/dev/pts".to_owned() },
        "terminals of the sandbox's own; those of the host are not there",
    );
    for (name, target, why) in [
        ("ptmx", "pts/ptmx", "opens a terminal of the sandbox's own"),
        ("fd", "/proc/self/fd", "a process's own descriptors"),
        ("stdin", "/proc/self/fd/0", "a process's own standard input"),
        ("stdout", "/proc/self/fd/1", "a process's own standard output"),
        ("stderr", "/proc/self/fd/2", "a process's own standard error"),
    ] {
        let link = Op::Symlink { path: format!("/dev/{name}"), target: target.to_owned() };
        steps.add(link, why);
    }
    let (path, content) = (NO_BOOT_ID.0.to_owned(), NO_BOOT_ID.1.to_owned());
    let file = Op::File { path, content, mode: 0o444 };
    steps.add(file, "the id of a start that nobody can recognise");
}

/// How many instances of inotify a sandbox has: a dozen programs that watch files.
const WATCHES: u32 = 32;
/// How many files it may watch at least: what kernels allowed each user for long, so that programs do with it.
const WATCHED_FILES: u64 = 8192;

fn processes(facts: &HostFacts, steps: &mut Steps) {
    steps.add(
        Op::Proc { path: "/proc".to_owned() },
        "shows the sandbox's own processes; those of the host do not exist here",
    );
    // ORDER: before /proc/sys becomes read-only.
    steps.add(
        Op::NoUserNamespaces,
        "a nested user namespace would open parts of the kernel that the sandbox keeps closed",
    );
    steps.add_lenient(
        Op::Watches { instances: WATCHES, files: WATCHED_FILES.max(facts.ceilings.watches / 4) },
        "the kernel counts them on the host's user, who has few and would be left without",
    );
    for (name, what) in HIDDEN_OF_PROC {
        let mask = Op::Mask { path: format!("/proc/{name}") };
        steps.add(mask, format!("shows {what}, which stays outside"));
    }
    steps.add(
        Op::Pin { path: "/proc/sys".to_owned(), access: Access::ReadOnly },
        "settings of the kernel can be read and not written",
    );
}

/// A private directory. It lies in the file system of the root, so that one size limits all of them,
/// and is a mount of its own, which stays writable when the root is sealed.
fn private(root: Root, (path, mode): (&str, u32), why: &str, steps: &mut Steps) {
    if root == Root::Image {
        return steps.add(Op::Private { path: path.to_owned(), mode }, why);
    }
    steps.add(Op::Directory { path: path.to_owned(), mode }, why);
    let pin = Op::Pin { path: path.to_owned(), access: Access::ReadWrite };
    steps.add(pin, "stays writable when the tree around it is sealed");
}

/// The workspace and the home directory, as far as they are not the host's.
fn own(context: &Context<'_>, steps: &mut Steps) {
    if context.view.workspace == WorkspaceView::Private {
        let place = (WORKSPACE, 0o755);
        private(
            Root::of(context.view),
            place,
            "an empty workspace that goes with the sandbox",
            steps,
        );
    }
    if let Some(home) = &context.view.home {
        steps.add(bind(home), home.why.clone());
    } else if let Some(identity) = &context.view.git_identity {
        let path = format!("{HOME}/.gitconfig");
        let file = Op::File { path, content: identity.clone(), mode: 0o644 };
        steps.add(file, "your name and address for commits, and nothing else of your settings");
    }
}

fn places(context: &Context<'_>, steps: &mut Steps) {
    let beside = context.view.workspace.beside();
    for place in &context.view.places {
        match (place, beside) {
            (Place::Shown(shown), Some((path, mode))) if shown.path == path => {
                if let Some(copy) = &context.view.copy {
                    steps.add(bind(copy), copy.why.clone());
                    continue;
                }
                steps.add(overlay(context.view, shown, mode), shown.why.clone());
            }
            (Place::Shown(shown), _) => steps.add(bind(shown), shown.why.clone()),
            (Place::Layered { shown, owner }, _) => layered(shown, *owner, steps),
            (Place::Private { path, why }, _) => {
                private(Root::of(context.view), (path, 0o755), why, steps);
            }
        }
    }
}

/// Where what is trusted inside lies: in memory, and in no layer.
const TRUSTED: &str = "/run/cofferdam";
/// How large that may be, and of how many files.
const TRUSTED_BYTES: u64 = 16 << 20;
const TRUSTED_FILES: u64 = 64;

/// The certificate of the session's own authority, for hosts that have a secret.
fn trusted(context: &Context<'_>, steps: &mut Steps) {
    let Some(trusted) = &context.view.trusted else { return };
    let why = "programs trust the session's own authority, by which the gate is the hosts that have a \
               secret";
    let path = TRUSTED.to_owned();
    let (size_bytes, inodes) = (TRUSTED_BYTES, TRUSTED_FILES);
    steps.add(Op::Tmpfs { path, size_bytes, inodes, mode: 0o755 }, why);
    for (path, content) in &trusted.files {
        let (path, content) = (path.clone(), content.clone());
        steps.add(Op::Bytes { path, content, mode: 0o444 }, why);
    }
    let pin = Op::Pin { path: TRUSTED.to_owned(), access: Access::ReadOnly };
    steps.add(pin, "nobody inside changes whom programs trust");
    for cover in &trusted.covers {
        let is_there = context.view.image.is_some() || context.view.holds(&cover.path);
        if is_there {
            let op = Op::Rebind { from: cover.from.clone(), path: cover.path.clone() };
            steps.add(op, "the system's authorities with that one");
        }
    }
}

/// The steps that pin names, parents first.
pub(super) fn pins(context: &Context<'_>) -> Vec<Step> {
    // INVARIANT: a map of paths lists every parent before what is below it.
    let mut pins = held(context.view);
    if let WorkspaceView::Directory(workspace) = &context.view.workspace {
        for pin in context.pins() {
            let why = match pin.access {
                Access::ReadOnly => "what stands here decides what runs outside of the sandbox",
                Access::ReadWrite => "leads to a protected name, so it cannot be moved away",
            };
            pins.insert(format!("{}/{}", workspace.path, pin.path), (pin.access, why));
        }
    }
    let mut steps = Steps::default();
    for (path, (access, why)) in pins {
        steps.add(Op::Pin { path, access }, why);
    }
    steps.0
}

fn covers(context: &Context<'_>, steps: &mut Steps) {
    for hidden in &context.view.hidden {
        if context.view.holds(&hidden.path) {
            steps.add(Op::Mask { path: hidden.path.clone() }, hidden.why.clone());
        }
    }
}

/// Directories between a place that can be written and what is listed or hidden below it. Were one
/// moved away and another put there, the next run would take that for what the caller means, or show
/// what it hid; and where names are pinned again, those of the other.
///
/// LIMIT: a run that does not list the path does not hold the way to it.
fn held(view: &View) -> BTreeMap<String, (Access, &'static str)> {
    let is_mounted = |path| view.mounts.iter().any(|mounted| is_within(path, &mounted.path));
    let hidden = view.hidden.iter().map(|hidden| hidden.path.as_str());
    // To what is not shown leads no way, and on the way to what a mount shows nothing can be moved.
    let hidden = hidden.filter(|path| view.holds(path) && !is_mounted(path));
    let below = view.places.iter().map(Place::path).chain(hidden);
    let ancestors = below.flat_map(|path| {
        path.match_indices('/')
            .filter_map(|(end, _)| path.get(..end).filter(|name| !name.is_empty()))
    });
    let can_be_moved = |path: &str| {
        let above = view.places.iter().filter(|place| is_within(path, place.path()));
        match above.max_by_key(|place| place.path().len()) {
            Some(Place::Shown(shown)) => shown.access == Access::ReadWrite && shown.path != path,
            Some(Place::Layered { shown, owner: _ }) => shown.path != path,
            Some(Place::Private { path: own, .. }) => own != path,
            // An image can be written, and so can the private space.
            None => {
                let mut own = PRIVATE.iter().map(|(own, ..)| *own);
                let is_private = own.clone().any(|own| is_within(path, own));
                (view.image.is_some() || is_private) && !own.any(|own| own == path)
            }
        }
    };
    let why = "leads to what is listed or hidden, so it cannot be moved away";
    ancestors
        .filter(|path| can_be_moved(path))
        .map(|path| (path.to_owned(), (Access::ReadWrite, why)))
        .collect()
}

/// The workspace under the layer in which what is written to it lands.
fn overlay(view: &View, shown: &Shown, mode: u32) -> Op {
    Op::Overlay(Overlay {
        lower: vec![layer(shown)],
        upper: match &view.layer {
            Some(kept) => Upper::Kept(layer(kept)),
            None => Upper::Private { mode },
        },
        path: shown.path.clone(),
        without: view.held_names.clone(),
    })
}

/// What tools both find things in and add to.
///
/// ORDER: first as it is, to be read where the kernel makes no layer of it.
fn layered(shown: &Shown, owner: Owner, steps: &mut Steps) {
    steps.add(bind(shown), shown.why.clone());
    let overlay = Overlay {
        lower: vec![Layer { owner, ..layer(shown) }],
        upper: Upper::Private { mode: 0o755 },
        path: shown.path.clone(),
        without: Vec::new(),
    };
    let why =
        "what is fetched is the sandbox's own; the host's cache cannot be changed from inside";
    steps.add_lenient(Op::Overlay(overlay), why);
}

fn layer(shown: &Shown) -> Layer {
    Layer { source: shown.source.clone(), owner: shown.owner, identity: shown.identity }
}

fn bind(shown: &Shown) -> Op {
    Op::Bind(Bind {
        source: shown.source.clone(),
        path: shown.path.clone(),
        access: shown.access,
        // In a user namespace the kernel refuses to show less than all mounts of a directory,
        // because what lies below a mount would appear.
        depth: Depth::All,
        devices: false,
        owner: shown.owner,
        identity: shown.identity,
    })
}
