//! A sandbox as a list of steps, made on the host and carried out in the box.
//!
//! A plan holds no decision any more: whoever carries it out does each step in order and stops at
//! the first that fails, unless the step says that it may be skipped.

use crate::ByteString;
use serde::{Deserialize, Serialize};

/// Everything that is done before a sandbox takes its first command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which namespaces are new.
    pub namespaces: Vec<Namespace>,
    /// How ids inside stand for ids outside. Empty where there is no user namespace.
    pub uid_map: Vec<IdRange>,
    /// The same for groups.
    pub gid_map: Vec<IdRange>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The capabilities that commands keep in their own user namespace, a bit each by the kernel's numbers;
    /// `None` where the plan takes none away.
    pub fn kept_capabilities(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| {
            let Op::Capabilities { keep } = &step.op else { return None };
            Some(keep.iter().fold(0, |set, number| set | 1 << (number & 63)))
        })
    }
}

/// A kind of namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Namespace {
    /// User and group ids, capabilities.
    User,
    /// Mounts.
    Mount,
    /// Process ids.
    Pid,
    /// Network interfaces, addresses, ports, abstract sockets.
    Network,
    /// System V objects and POSIX message queues.
    Ipc,
    /// Host name.
    Uts,
    /// The view of control groups.
    Cgroup,
}

impl Namespace {
    /// All that a sandbox has of its own.
    pub const ALL: [Self; 7] =
        [Self::User, Self::Mount, Self::Pid, Self::Network, Self::Ipc, Self::Uts, Self::Cgroup];
}

/// `count` ids from `inside` on stand for those from `outside` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRange {
    /// The first id inside.
    pub inside: u32,
    /// The first id outside.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

/// One thing to do, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What.
    pub op: Op,
    /// Why, as a sentence for people without its period. Not sent into the box.
    #[serde(default, skip_serializing)]
    pub why: String,
    /// Whether the sandbox stands when this fails.
    pub need: Need,
}

/// How much a step matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Need {
    /// The sandbox does not start without it.
    Required,
    /// Its failure is reported in [`crate::message::Confirmed::skipped`] and the next step follows.
    BestEffort,
}

/// What can be done. All paths are absolute and mean the new root, unless called `source`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Make all mounts private, so that nothing done here is seen outside.
    PrivateMounts,
    /// Join the control groups whose `tasks` descriptors were handed over.
    JoinCgroups,
    /// Set the host name.
    HostName(String),
    /// Mount an empty file system and build the new root in it.
    NewRoot {
        /// Its size limit.
        size_bytes: u64,
        /// Its limit of files.
        inodes: u64,
    },
    /// Make a directory, and its parents.
    Directory {
        /// Where.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// Make the directory that commands start in, as far as it is not there, through links as they are
    /// inside. Nothing gives way for it.
    Start {
        /// Where.
        path: String,
    },
    /// Make a file with this content.
    File {
        /// Where.
        path: String,
        /// What is in it.
        content: String,
        /// Its permission bits.
        mode: u32,
    },
    /// Make a file with these bytes.
    Bytes {
        /// Where.
        path: String,
        /// What is in it.
        content: ByteString,
        /// Its permission bits.
        mode: u32,
    },
    /// Make a symbolic link.
    Symlink {
        /// Where.
        path: String,
        /// Where it points.
        target: String,
    },
    /// Mount an empty file system in memory.
    Tmpfs {
        /// Where.
        path: String,
        /// Its size limit.
        size_bytes: u64,
        /// Its limit of files.
        inodes: u64,
        /// The permission bits of its root.
        mode: u32,
    },
    /// Show a file or directory of the host.
    Bind(Bind),
    /// Show layers as one tree, in which what is written lands in the uppermost.
    Overlay(Overlay),
    /// Show a part of the new root at another place of it, with all that is mounted below.
    Rebind {
        /// What.
        from: String,
        /// Where.
        path: String,
    },
    /// Mount a process file system.
    Proc {
        /// Where.
        path: String,
    },
    /// Mount an own set of pseudo-terminals.
    Devpts {
        /// Where.
        path: String,
    },
    /// Cover a file with `/dev/null`, or a directory with an empty one, read-only. What is not
    /// there needs no cover.
    Mask {
        /// What.
        path: String,
    },
    /// Make what is there a mount of its own: it cannot be renamed or removed.
    Pin {
        /// What.
        path: String,
        /// Whether it can be written.
        access: Access,
    },
    /// In a prepared tree: mount the sandbox's own file system in memory here, for [`Op::Private`]
    /// and [`Op::Way`] to take directories of. The first private directory covers it.
    Space {
        /// Where.
        path: String,
        /// Its size limit.
        size_bytes: u64,
        /// Its limit of files.
        inodes: u64,
    },
    /// Show a new directory of the space here, to be written.
    Private {
        /// Where.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// Show a new directory of the space here, for steps to make things below it until
    /// [`Op::SealRoot`] makes it read-only.
    Way {
        /// Where.
        path: String,
    },
    /// Make the new root itself read-only. What is mounted below keeps its own access.
    SealRoot,
    /// Make the new root the root, and drop the old one.
    Pivot,
    /// Bring the loopback interface up.
    LoopbackUp,
    /// Forbid new user namespaces below this one.
    NoUserNamespaces,
    /// At most so much of inotify in this user namespace.
    Watches {
        /// How many instances.
        instances: u32,
        /// How many files all of them may watch.
        files: u64,
    },
    /// Limit a resource of each process; open files, of each command and what it starts.
    ResourceLimit {
        /// Which.
        resource: Resource,
        /// Both its soft and its hard limit.
        limit: u64,
    },
    /// Become this user and group, and leave all other groups where the kernel allows it.
    Identity {
        /// User id inside.
        uid: u32,
        /// Group id inside.
        gid: u32,
    },
    /// Give up all capabilities but these, by number, in all sets, for good.
    Capabilities {
        /// What stays.
        keep: Vec<u8>,
    },
    /// No program may gain privileges any more.
    NoNewPrivileges,
    /// Nobody inside may read or trace process 1.
    NotDumpable,
    /// Restrict the file system and more by Landlock.
    Landlock(Landlock),
    /// Restrict every command, and whatever else is started, by these rules on top. They are handed to the host
    /// before the greeting, which adds to them when another directory takes the place of one.
    CommandRules(Landlock),
    /// Load a system call filter; the program as the kernel takes it: code, jt, jf, k.
    Seccomp {
        /// The program.
        program: Vec<(u16, u8, u8, u32)>,
    },
    /// Lead every address to the sandbox itself, through the loopback interface.
    LocalRoutes {
        /// Those of IPv6 too.
        v6: bool,
    },
    /// Lead TCP that goes to no loopback address to one port of it, and questions for names to
    /// another. All else that goes to no loopback address fails at once.
    Redirect {
        /// Where TCP is led.
        transparent: u16,
        /// Where questions for names are led.
        names: u16,
    },
    /// Make the sockets that the host's gate accepts on, and hand them to the host, in this order,
    /// beside a frame that comes before the greeting. Nobody inside keeps them.
    EgressGate {
        /// The rules that the gate decides by at first, for explanation.
        rules: Vec<String>,
        /// The sockets.
        listen: Vec<Listen>,
    },
}

/// A socket that is bound to a port of every address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// What it takes.
    pub transport: Transport,
    /// From whom.
    pub families: Families,
    /// Its port.
    pub port: u16,
}

/// What a socket takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Which addresses a socket has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Families {
    /// Those of IPv4.
    V4,
    /// Those of IPv6.
    V6,
    /// All.
    Both,
}

/// A host path that is shown inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Its path on the host.
    pub source: String,
    /// Where it is shown.
    pub path: String,
    /// Whether it can be written.
    pub access: Access,
    /// Whether mounts below it are shown too.
    pub depth: Depth,
    /// Device nodes below it work. Only for nodes of `/dev`.
    pub devices: bool,
    /// Files of the first pair's host ids appear as, and are made as, those of the second.
    pub owner: Owner,
    /// What it was when the plan was made: device and inode. Another one is refused.
    pub identity: Option<(u64, u64)>,
}

/// Layers of the host that are shown as one tree. None of [`Overlay::lower`] is ever written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// What shows through, uppermost first; at least one and at most [`Overlay::MOST_LAYERS`].
    pub lower: Vec<Layer>,
    /// Where what is written lands.
    pub upper: Upper,
    /// Where the tree is shown. At `/` it becomes the new root, in which nothing that stands in the way
    /// of a later step is followed: it gives way. What was the new root until then is the space for
    /// [`Op::Private`] and [`Op::Way`], and the first of these is at [`Overlay::SPACE`].
    pub path: String,
    /// Paths below it at which a socket of the uppermost layer does not show through.
    pub without: Vec<String>,
}

impl Overlay {
    /// Where the space lies under an image, until the first private directory covers it.
    pub const SPACE: &str = "/tmp";

    /// The most layers of [`Overlay::lower`]. Their names have to fit into one mount option.
    pub const MOST_LAYERS: usize = 64;

    /// The host directories, in the order in which they are handed over.
    pub fn sources(&self) -> impl Iterator<Item = &Layer> {
        let kept = match &self.upper {
            Upper::Kept(kept) => Some(kept),
            Upper::Private { mode: _ } => None,
        };
        self.lower.iter().chain(kept)
    }
}

/// A directory of the host that is a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Its path on the host.
    pub source: String,
    /// Whose files it shows.
    pub owner: Owner,
    /// What it was when the plan was made: device and inode. Another one is refused.
    pub identity: Option<(u64, u64)>,
}

/// Where what is written to an overlay lands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upper {
    /// In `upper` of this directory of the host, with `work` beside it for the kernel. Both are there.
    Kept(Layer),
    /// In the sandbox's private space, gone with it.
    Private {
        /// The permission bits of the tree's root.
        mode: u32,
    },
}

/// Whether files can be changed through a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// No.
    ReadOnly,
    /// Yes, as far as permissions go.
    ReadWrite,
}

/// How far a bind reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Depth {
    /// The one mount.
    One,
    /// All mounts below.
    All,
}

/// Whose files a bind shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// As they are.
    Same,
    /// Files of this user and group on disk belong to the sandbox's user (id-mapped mount).
    Mapped {
        /// User id on disk.
        uid: u32,
        /// Group id on disk.
        gid: u32,
    },
}

/// A limit of one process, by its name without `RLIMIT_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resource {
    /// Processes of this user in this user namespace.
    Nproc,
    /// Open descriptors.
    Nofile,
    /// Private writable memory, in bytes.
    Data,
    /// A file's size, in bytes.
    Fsize,
    /// Core dumps, in bytes.
    Core,
    /// Locked memory, in bytes.
    Memlock,
    /// POSIX message queues, in bytes.
    Msgqueue,
    /// Signals that wait, and timers.
    Sigpending,
    /// How far below 20 the niceness may be set.
    Nice,
    /// The highest priority in real time.
    Rtprio,
}

/// Rules for Landlock. What a rule does not grant below its path is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// The newest ABI that was known when the plan was made; the box never uses a newer one.
    pub abi: u32,
    /// Directories and files that can be read and executed.
    pub read: Vec<String>,
    /// Directories and files that can be read, written, and changed in every way.
    pub write: Vec<String>,
    /// Device nodes that can be read, written and controlled.
    pub devices: Vec<String>,
    /// TCP is refused by Landlock too.
    pub no_tcp: bool,
    /// Abstract sockets and signals do not reach out of the sandbox.
    pub scoped: bool,
}
