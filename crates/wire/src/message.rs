//! The messages of generations 1 to 3. New fields are optional; a new message raises the generation.
//!
//! Generation 2 added [`Descendants::Stay`], and with it [`Ended::left_below`] and
//! [`FromProcess::Emptied`]; and [`HostOpens::Files`]. A keeper, which needs them, refuses a guest of
//! generation 1; any other host speaks to such a guest as before. Generation 3 added
//! [`HostOpens::Port`].

use crate::bytes::ByteString;
use serde::{Deserialize, Serialize};

/// The generation that this code speaks. The lower of two sides rules.
pub const GENERATION: u32 = 3;

/// The first generation that knows [`HostOpens::Files`].
pub const FILES_SINCE: u32 = 2;

/// The first generation that knows [`HostOpens::Port`].
pub const PORTS_SINCE: u32 = 3;

/// The guest's first message, on channel 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Greeting {
    /// The sandbox stands and takes commands.
    Hello(Hello),
    /// The sandbox could not be set up. Nothing was run in it.
    SetupFailed(SetupFailure),
}

/// Who is inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The newest generation that the guest speaks.
    pub generation: u32,
    /// The guest program's version.
    pub version: String,
    /// How the set-up went.
    pub confirmed: Confirmed,
}

/// What the guest can say of its own set-up that the plan does not: every other step was done, or
/// there would be no greeting. The host looks for itself before it believes any of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The kernel accepted the system call filter.
    pub seccomp: bool,
    /// The ABI of the Landlock rules that the kernel accepted, or 0.
    pub landlock_abi: u32,
    /// Steps that could not be done and were allowed to fail, each with its reason.
    pub skipped: Vec<String>,
}

/// A step of the plan that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupFailure {
    /// What was being done, as in the plan.
    pub step: String,
    /// The system call and its arguments.
    pub call: String,
    /// The kernel's answer.
    pub errno: i32,
}

/// What the host may open a channel with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostOpens {
    /// Start a command. Answered by [`FromProcess`] on the same channel.
    Spawn(Box<Spawn>),
    /// Run the battery of attacks. Answered by one [`crate::message::Proof`], then `End`.
    Prove(Box<Prove>),
    /// Answered by an empty `Data` frame.
    Ping,
    /// Serve files over the socket that comes with the message. Answered over that socket alone, as
    /// [`files`](crate::files) says.
    Files(Box<Files>),
    /// Connect to a port of the sandbox's own loopback, and carry bytes between it and the socket that
    /// comes with the message. Answered over that socket alone, as [`port`](crate::port) says.
    Port(Port),
    /// Put whatever is started from here on under the rules for commands as they are now. Nothing but
    /// process 1 is there. Answered by nothing.
    RenewRules,
}

/// Which port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its number.
    pub port: u16,
}

/// Whose files are served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The directory that no path leaves; absolute inside.
    pub root: ByteString,
    /// Other absolute names that paths and links may have for it.
    pub names: Vec<ByteString>,
}

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// The caller's name for this run.
    pub id: String,
    /// Program and arguments. The program is looked up in `PATH` of `env` if it has no slash.
    pub argv: Vec<ByteString>,
    /// The whole environment.
    pub env: Vec<(ByteString, ByteString)>,
    /// The working directory, absolute inside.
    pub cwd: ByteString,
    /// What standard input, output and error are.
    pub stdio: Stdio,
    /// End the command and all its descendants after this long.
    pub timeout_ms: Option<u64>,
    /// Whether descendants are killed when the command ends.
    pub descendants: Descendants,
    /// When the host hears of it.
    #[serde(default)]
    pub news: News,
    /// What becomes of the descriptors that come behind those of the streams, in order; at most
    /// [`MAX_HANDED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<Handed>,
}

/// The most descriptors that come with a command beside its streams.
pub const MAX_HANDED: usize = 12;

/// Where files with what a command is handed are. A mount of its own, in memory.
pub const HANDED_DIRECTORY: &str = "/run/secrets";

/// What a command has of a descriptor that came with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Handed {
    /// The descriptor, under this number.
    Descriptor(u32),
    /// A file of this name in [`HANDED_DIRECTORY`] with what is in it, until nothing is left of the
    /// command.
    File(String),
}

/// When the host hears what a command does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// As it happens.
    #[default]
    AtOnce,
    /// With its end. [`FromProcess::Started`] may be left out, and output may wait until there is
    /// much of it: every message costs a command that ends at once as much as its start.
    Together,
}

/// What becomes of a command's descendants when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Descendants {
    /// They are killed, and the ending is reported when none is left.
    Die,
    /// The sandbox ends with the command: process 1 exits and the kernel kills all others.
    DieWithSandbox,
    /// They go on, and the ending is reported at once. Where any do, it says below which process, and
    /// [`FromProcess::Emptied`] follows when the last of them is gone. Until then they can be killed
    /// and get signals, and the command's time goes on for them. A command that is killed while it
    /// runs takes them with it. Not for streams that are carried on the line. Since generation 2.
    Stay,
}

/// Standard input, output and error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdio {
    /// Three separate streams.
    Streams {
        /// Standard input.
        stdin: Stream,
        /// Standard output.
        stdout: Stream,
        /// Standard error.
        stderr: Stream,
    },
    /// One pseudo-terminal of the sandbox's own for all three. Its master comes back as a
    /// descriptor with an empty `Data` frame, before [`FromProcess::Started`].
    Terminal(TerminalSize),
}

/// One standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// `/dev/null`.
    Null,
    /// The descriptor with this position among those that came with the message.
    Descriptor(u32),
    /// Carried on this channel of the line.
    Line(u32),
}

/// Rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// What the host says on a command's channel after it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToProcess {
    /// Send a signal to the command's process group; once it has ended, to all that it left.
    Signal(i32),
    /// The terminal has a new size.
    Resize(TerminalSize),
    /// Kill the command and all its descendants, also those that it left.
    Kill,
}

/// What the guest says on a command's channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromProcess {
    /// The program runs.
    Started {
        /// Its process id inside.
        pid: i32,
    },
    /// The command was stopped by a signal of job control.
    Stopped {
        /// The signal.
        signal: i32,
    },
    /// The program never ran.
    NotStarted(NotStarted),
    /// The command ended. Nothing follows on this channel unless it left something.
    Ended(Ended),
    /// What the command left when it ended is gone. Nothing follows on this channel. Since
    /// generation 2.
    Emptied,
}

/// Why a program did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStarted {
    /// Which of the reasons that users tell apart.
    pub reason: NotStartedReason,
    /// The kernel's answer.
    pub errno: i32,
    /// What was tried, for people.
    pub detail: String,
}

/// The reasons for which a program does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotStartedReason {
    /// No such program.
    NotFound,
    /// It is there and cannot be executed.
    NotExecutable,
    /// The working directory is missing, or no directory.
    BadWorkingDirectory,
    /// No more processes, memory or descriptors.
    Exhausted,
    /// The request makes no sense.
    BadRequest,
}

impl NotStartedReason {
    /// The exit code that stands for it: 126 and 127 as a shell's, 125 for what is no matter of the
    /// program.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::NotFound => 127,
            Self::NotExecutable | Self::Exhausted => 126,
            Self::BadWorkingDirectory | Self::BadRequest => 125,
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its exit status.
    pub how: How,
    /// Whether the guest killed it because its time was over.
    pub timed_out: bool,
    /// How many descendants were still running and were killed.
    pub killed_descendants: u32,
    /// Processor time of the command and its waited-for children, in microseconds.
    pub cpu_us: u64,
    /// The largest resident size of one of its processes, in bytes.
    pub peak_rss_bytes: u64,
    /// The process, by its id inside, below which descendants go on, where some do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_below: Option<i32>,
}

/// The two ways in which a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// By `exit`.
    Exited(i32),
    /// By a signal.
    Signaled(i32),
}

/// The one thing that a guest may ask for on its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestOpens {
    /// A connection to the outside. The host answers on the same channel with [`EgressAnswer`].
    Egress {
        /// The name that was asked for.
        host: String,
        /// The port.
        port: u16,
    },
}

/// The host's answer to [`GuestOpens::Egress`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EgressAnswer {
    /// Bytes may flow.
    Connected,
    /// The reason, for people.
    Refused(String),
}

/// Which attacks to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prove {
    /// Host facts that the attacks need as their targets.
    pub targets: Targets,
    /// The environment that a command would get. It is searched for what must not be in it.
    #[serde(default)]
    pub env: Vec<(ByteString, ByteString)>,
}

/// Things outside that the attacks try to reach, and things inside that must work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets {
    /// A file outside that holds `canary`, at its host path.
    pub outside_file: String,
    /// What the outside file holds.
    pub canary: String,
    /// More files outside that hold `canary`: in the home directory, `/tmp`, `/run` and so on.
    #[serde(default)]
    pub other_outside_files: Vec<String>,
    /// A directory outside to write to, at its host path.
    pub outside_directory: String,
    /// The workspace inside.
    pub workspace: String,
    /// Whether the workspace may be written.
    pub workspace_writable: bool,
    /// Whether the root is an image: its own, and to be written, whatever names it has.
    #[serde(default, skip_serializing_if = "is_not")]
    pub image: bool,
    /// The capabilities that commands keep in their own user namespace, a bit each by the kernel's numbers.
    #[serde(default, skip_serializing_if = "is_none_kept")]
    pub kept_capabilities: u64,
    /// Protected names below the workspace, relative to it.
    pub protected: Vec<String>,
    /// A process id on the host, which must not be visible.
    pub host_pid: i32,
    /// When that process started, in clock ticks since boot: field 22 of its `stat`. It tells the
    /// process from one inside that happens to have the same number.
    #[serde(default)]
    pub host_pid_started: u64,
    /// A TCP port on the host's loopback that listens.
    pub host_port: u16,
    /// Whether connections are led to a gate: then addresses have a route, which leads back inside.
    #[serde(default, skip_serializing_if = "is_not")]
    pub redirected: bool,
    /// Ports of the gate inside, if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_ports: Vec<u16>,
    /// A path name socket on the host that listens.
    pub host_socket: String,
    /// An abstract socket on the host that listens, without its leading NUL.
    pub host_abstract: String,
    /// A System V shared memory segment on the host that anybody may attach.
    #[serde(default)]
    pub host_shared_memory: Option<i32>,
    /// A variable of the caller's environment that must not be inside.
    pub secret_variable: String,
    /// The host's name.
    #[serde(default)]
    pub host_name: String,
    /// What the host's `/etc/machine-id` holds, without its end of line.
    #[serde(default)]
    pub machine_id: String,
    /// The id of the host's start, without its end of line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// The most processes that may exist, if limited.
    pub pids: Option<u64>,
    /// The most memory, if limited.
    pub memory_bytes: Option<u64>,
    /// The size of the private writable space, if limited.
    pub disk_bytes: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_not(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none_kept(set: &u64) -> bool {
    *set == 0
}

/// What the battery found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// One row an attack.
    pub checks: Vec<Check>,
}

/// One promise, attacked and controlled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its stable name, as in `files.read_outside`.
    pub name: String,
    /// The promise of SECURITY.md that it belongs to, as in `P1`.
    pub promise: String,
    /// The axis it counts for: `files`, `network`, `processes`, `limits` or `environment`.
    pub axis: String,
    /// What the attack met.
    pub attack: Attempt,
    /// The same action where it must succeed.
    pub control: Attempt,
    /// Which layer stopped the attack, as far as can be told: `view`, `namespace`, `seccomp`,
    /// `landlock`, `capability`, `permission`, `limit`, `mount` or `unknown`.
    pub layer: String,
}

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attempt {
    /// It did what it meant to.
    Succeeded(String),
    /// The kernel answered with this error.
    Failed {
        /// Its number.
        errno: i32,
        /// What was called.
        call: String,
    },
    /// It could not be tried here; the reason.
    NotTried(String),
}
