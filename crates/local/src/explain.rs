//! A plan in sentences, for `cofferdam explain`: every mount, namespace and rule with its reason,
//! and what is not possible here.

use crate::plan::{Planned, Tier};
use cofferdam_core::{Enforced, Spec, made_visible};
use cofferdam_wire::plan::{
    Access, Bind, Landlock, Listen, Namespace, Need, Op, Overlay, Owner, Resource, Step, Upper,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A plan for people, as an object. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The profile's name.
    pub profile: String,
    /// What holds the sandbox.
    pub tier: ExplainedTier,
    /// Where the workspace is inside.
    pub workspace: String,
    /// Where commands start.
    pub cwd: String,
    /// The namespaces that are new.
    pub namespaces: Vec<Reasoned>,
    /// What is done before the first command, in order.
    pub steps: Vec<Reasoned>,
    /// Names of the variables that commands get. Values may be secret and are not shown.
    pub variables: Vec<String>,
    /// The directories in which programs are looked for.
    pub path: Vec<String>,
    /// Whether there is a way out.
    #[serde(default)]
    pub way_out: bool,
    /// The rules of the way out, in words of the command line.
    pub egress: Vec<String>,
    /// How far each axis would hold here.
    pub enforced: Enforced,
    /// Remarks: what was left out, and why.
    pub notes: Vec<String>,
}

/// What holds a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplainedTier {
    /// Namespaces, with Landlock and a system call filter on top.
    Namespaces,
    /// Landlock and a system call filter alone.
    Landlock,
}

/// Something that is done, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reasoned {
    /// What, as a sentence without its period.
    pub what: String,
    /// Why, in the same form.
    pub why: String,
}

/// Explains a plan. Pure.
pub fn explain(spec: &Spec, planned: &Planned) -> Explanation {
    let path = planned.env.get(std::ffi::OsStr::new("PATH"));
    Explanation {
        profile: spec.profile.name().to_owned(),
        tier: match planned.tier {
            Tier::Namespaces => ExplainedTier::Namespaces,
            Tier::Landlock => ExplainedTier::Landlock,
        },
        workspace: planned.workspace.clone(),
        cwd: planned.cwd.clone(),
        namespaces: planned.plan.namespaces.iter().map(|kind| namespace(*kind)).collect(),
        steps: planned.plan.steps.iter().map(|step| reasoned_on(spec, step)).collect(),
        variables: planned.env.keys().map(|name| name.to_string_lossy().into_owned()).collect(),
        path: path
            .map(|path| path.to_string_lossy().split(':').map(str::to_owned).collect())
            .unwrap_or_default(),
        way_out: planned.way_out.is_some(),
        egress: planned
            .way_out
            .iter()
            .flat_map(|way_out| &way_out.policy.allow)
            .map(ToString::to_string)
            .collect(),
        enforced: planned.enforced.clone(),
        notes: planned.notes.clone(),
    }
}

impl Explanation {
    /// The explanation as text.
    pub fn text(&self) -> String {
        let mut lines = vec![match self.tier {
            ExplainedTier::Namespaces => format!(
                "Profile {}: held by namespaces, with Landlock and a system call filter on top.",
                self.profile
            ),
            ExplainedTier::Landlock => format!(
                "Profile {}: user namespaces are forbidden here, so Landlock and a system call \
                 filter are all that holds.",
                self.profile
            ),
        }];
        lines.push(format!("Commands start in {}; the workspace is {}.", self.cwd, self.workspace));
        section(&mut lines, "New namespaces:", self.namespaces.iter().map(Reasoned::sentence));
        section(&mut lines, "Before the first command:", self.steps.iter().map(Reasoned::sentence));
        lines.push(String::new());
        lines.push(match (self.way_out, self.egress.is_empty()) {
            (false, _) => "There is no way out of the sandbox's network.".to_owned(),
            (true, true) => "The way out leads to no host until one is allowed.".to_owned(),
            (true, false) => format!("The way out leads to {} only.", self.egress.join(", ")),
        });
        lines.push(format!("Variables: {}.", self.variables.join(" ")));
        lines.push(format!("Programs are looked for in {}.", self.path.join(" ")));
        let not_possible = self.enforced.reasons.iter().map(|reason| format!("{reason}."));
        section(&mut lines, "Not possible here:", not_possible);
        section(&mut lines, "Remarks:", self.notes.iter().map(|note| format!("{note}.")));
        lines.push(String::new());
        // Names of the workspace are in some, and whoever chose them writes no line.
        let lines: Vec<_> = lines.iter().map(|line| made_visible(line)).collect();
        lines.join("\n")
    }
}

impl Reasoned {
    fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }

    fn sentence(&self) -> String {
        format!("{}: {}.", self.what, self.why)
    }
}

fn section(lines: &mut Vec<String>, title: &str, sentences: impl Iterator<Item = String>) {
    let mut sentences = sentences.peekable();
    if sentences.peek().is_some() {
        lines.push(String::new());
        lines.push(title.to_owned());
        lines.extend(sentences.map(|sentence| format!("  {sentence}")));
    }
}

fn namespace(kind: Namespace) -> Reasoned {
    let (name, why) = match kind {
        Namespace::User => ("user", "ids and capabilities inside mean nothing outside"),
        Namespace::Mount => ("mount", "the tree of files is made from nothing"),
        Namespace::Pid => (
            "pid",
            "the host's processes do not exist inside, and all of the \
                                   sandbox's die with its first",
        ),
        Namespace::Network => ("network", "there is a loopback interface and no other"),
        Namespace::Ipc => ("ipc", "shared memory and queues of the host are not there"),
        Namespace::Uts => ("uts", "the host's name stays outside"),
        Namespace::Cgroup => ("cgroup", "paths of control groups of the host stay outside"),
    };
    Reasoned::new(name, why)
}

/// On an image the tree stays writable, and only what was made for devices is sealed.
fn reasoned_on(spec: &Spec, step: &Step) -> Reasoned {
    match (&spec.image, &step.op) {
        (Some(_), Op::SealRoot) => Reasoned::new("Makes /dev read-only", step.why.clone()),
        _ => reasoned(step),
    }
}

fn reasoned(step: &Step) -> Reasoned {
    let what = action(&step.op);
    match step.need {
        Need::Required => Reasoned::new(what, step.why.clone()),
        Need::BestEffort => {
            Reasoned::new(format!("{what}, if the kernel lets us"), step.why.clone())
        }
    }
}

/// What a step does, as a sentence without its period.
#[expect(clippy::too_many_lines, reason = "a line a step, so that a new one is told")]
pub fn action(op: &Op) -> String {
    match op {
        Op::PrivateMounts => "Makes all mounts private".to_owned(),
        Op::JoinCgroups => "Joins the control groups".to_owned(),
        Op::HostName(name) => format!("Calls the host {name}"),
        Op::NewRoot { size_bytes, inodes } => {
            format!("Starts an empty tree of at most {size_bytes} bytes and {inodes} files")
        }
        Op::Directory { path, mode } => format!("Makes the directory {path} (mode {mode:o})"),
        Op::Start { path } => format!("Makes the directory {path}, where it is missing"),
        Op::File { path, content, .. } => {
            format!("Makes the file {path} ({} bytes)", content.len())
        }
        Op::Bytes { path, content, .. } => {
            format!("Makes the file {path} ({} bytes)", content.as_bytes().len())
        }
        Op::Symlink { path, target } => format!("Links {path} to {target}"),
        Op::Tmpfs { path, size_bytes, inodes, .. } => format!(
            "Mounts an empty file system at {path} of at most {size_bytes} bytes and {inodes} files"
        ),
        Op::Bind(bind) => bound(bind),
        Op::Overlay(overlay) => layered(overlay),
        Op::Rebind { from, path } => format!("Shows {from} at {path} too"),
        Op::Proc { path } => format!("Mounts a process file system at {path}"),
        Op::Devpts { path } => format!("Mounts own terminals at {path}"),
        Op::Mask { path } => format!("Hides {path}"),
        Op::Pin { path, access } => match access {
            Access::ReadOnly => format!("Pins {path} read-only"),
            Access::ReadWrite => format!("Pins {path} in place, writable"),
        },
        Op::Space { path, size_bytes, inodes } => {
            format!("Mounts the sandbox's own space at {path} ({size_bytes} bytes, {inodes} files)")
        }
        Op::Private { path, .. } => format!("Makes {path} a private directory"),
        Op::Way { path } => format!("Makes {path} a way to what is shown below it"),
        Op::SealRoot => "Makes the tree read-only".to_owned(),
        Op::Pivot => "Enters the tree and drops the host's".to_owned(),
        Op::LoopbackUp => "Brings the loopback interface up".to_owned(),
        Op::NoUserNamespaces => "Forbids further user namespaces".to_owned(),
        Op::Watches { instances, files } => {
            format!("Limits inotify to {instances} instances that watch {files} files")
        }
        Op::ResourceLimit { resource, limit } => {
            format!("Limits {} of each process to {limit}", resource_name(*resource))
        }
        Op::Identity { uid, gid } => format!("Becomes user {uid} and group {gid} inside"),
        Op::Capabilities { keep } => match keep.is_empty() {
            true => "Gives up all capabilities".to_owned(),
            false => format!("Gives up all capabilities but the numbers {}", numbers(keep)),
        },
        Op::NoNewPrivileges => "Forbids new privileges".to_owned(),
        Op::NotDumpable => "Closes the first process to others".to_owned(),
        Op::Landlock(rules) => format!("Restricts {}", landlock(rules)),
        Op::CommandRules(rules) => format!("Restricts every command on top: {}", landlock(rules)),
        Op::Seccomp { program } => {
            format!("Loads a system call filter of {} instructions", program.len())
        }
        Op::LocalRoutes { v6: true } => "Leads every address back inside".to_owned(),
        Op::LocalRoutes { v6: false } => "Leads every address of IPv4 back inside".to_owned(),
        Op::Redirect { transparent, names } => {
            format!("Leads TCP to port {transparent} and questions for names to port {names}")
        }
        Op::EgressGate { rules, listen } => gate(rules, listen),
    }
}

fn gate(rules: &[String], listen: &[Listen]) -> String {
    let mut ports: Vec<u16> = listen.iter().map(|listen| listen.port).collect();
    ports.dedup();
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let places = if rules.is_empty() { "nothing yet".to_owned() } else { rules.join(", ") };
    format!("Hands the sockets of ports {} to the gate, a way out to {places}", ports.join(", "))
}

fn bound(bind: &Bind) -> String {
    let access = match (bind.devices, bind.access) {
        (true, _) => "as a device",
        (false, Access::ReadOnly) => "read-only",
        (false, Access::ReadWrite) => "writable",
    };
    let place = match bind.source == bind.path {
        true => bind.path.clone(),
        false => format!("{} at {}", bind.source, bind.path),
    };
    match bind.owner {
        Owner::Same => format!("Shows {place} {access}"),
        Owner::Mapped { uid, gid } => format!(
            "Shows {place} {access}, with what belongs to {uid}:{gid} on disk as the sandbox's own"
        ),
    }
}

fn layered(overlay: &Overlay) -> String {
    let lower: Vec<&str> = overlay.lower.iter().map(|layer| layer.source.as_str()).collect();
    let upper = match &overlay.upper {
        Upper::Kept(kept) => format!("{}/upper", kept.source),
        Upper::Private { .. } => "the private space".to_owned(),
    };
    let place = match *lower == [overlay.path.as_str()] {
        true => overlay.path.clone(),
        false => format!("{} at {}", lower.join(" over "), overlay.path),
    };
    let owned = overlay.lower.iter().find_map(|layer| match layer.owner {
        Owner::Same => None,
        Owner::Mapped { uid, gid } => Some((uid, gid)),
    });
    let owned = owned.map_or_else(String::new, |(uid, gid)| {
        format!(", with what belongs to {uid}:{gid} on disk as the sandbox's own")
    });
    format!("Shows {place} under a layer, and what is written there lands in {upper}{owned}")
}

fn landlock(rules: &Landlock) -> String {
    let mut text = format!(
        "files by Landlock (ABI {}) to reading {}, writing {}, devices {}",
        rules.abi,
        rules.read.join(" "),
        if rules.write.is_empty() { "nothing".to_owned() } else { rules.write.join(" ") },
        rules.devices.join(" "),
    );
    if rules.no_tcp {
        text.push_str("; refuses TCP");
    }
    if rules.scoped {
        text.push_str("; keeps signals and abstract sockets inside");
    }
    text
}

fn numbers(list: &[u8]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn resource_name(resource: Resource) -> &'static str {
    match resource {
        Resource::Nproc => "processes",
        Resource::Nofile => "open files",
        Resource::Data => "bytes of private memory",
        Resource::Fsize => "bytes of a file",
        Resource::Core => "bytes of a core dump",
        Resource::Memlock => "bytes of locked memory",
        Resource::Msgqueue => "bytes of message queues",
        Resource::Sigpending => "waiting signals and timers",
        Resource::Nice => "what can be taken of niceness",
        Resource::Rtprio => "priority in real time",
    }
}
