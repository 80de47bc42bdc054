//! What is said over a connection to a file worker: requests for files of the workspace, one at a time.
//!
//! The host asks process 1 for a connection by [`HostOpens::Files`](crate::message::HostOpens::Files)
//! and sends the worker's end of a socket with it. Over that socket go [`frame`](crate::frame)s, whose
//! channel is the number of the request; 0 is about the connection itself. It begins with the worker's
//! [`Greeting`]. A request reads, in short:
//!
//! ```text
//! host   → worker  1  Message  {"Read":{"path":"src/main.rs","offset":0,…}}
//! worker → host    1  Data     bytes of the file
//! worker → host    1  Message  {"Read":{"size":120,"bytes":120,"sha256":null,…}}
//!
//! host   → worker  2  Message  {"Write":{"path":"notes.txt","only":"Always","mode":null}}
//! host   → worker  2  Data     bytes of the new file
//! host   → worker  2  End
//! worker → host    2  Message  {"Written":{"bytes":5,"sha256":"…","created":true}}
//! ```
//!
//! Every request is answered by exactly one message that is not [`Answer::Entries`]; a watch, by
//! [`Answer::Events`] until the host hangs up. Bytes of a file come before the answer, which may be a
//! [`Failure`] after some of them. Either side ends a connection that breaks a limit below.

mod carry;
mod path;
mod watch;

pub use carry::{
    Before, Carry, CarryEnd, MAX_CARRIED_BYTES, MAX_CARRY_DEPTH, MAX_CARRY_NAME,
    MAX_HELD_DIRECTORIES, MAX_STEP_BYTES, MAX_STEPS, STEP_HEAD_BYTES, Step, is_carry_name,
    step_length,
};
pub use path::{Part, PathError, parts};
pub use watch::{
    FileEvent, MAX_PENDING_EVENTS, MAX_WATCHED_DIRECTORIES, MAX_WATCHED_PATH_BYTES,
    MAX_WATCHED_PATHS, Watch,
};

use crate::bytes::ByteString;
use serde::{Deserialize, Serialize};

/// The generation of these messages that this code speaks.
pub const FILES_GENERATION: u32 = 3;

/// The most bytes of a message.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// The most bytes of a file in one frame.
pub const MAX_PIECE_BYTES: usize = 256 << 10;

/// The longest path, as the kernel counts.
pub const MAX_PATH_BYTES: usize = 4096;

/// How deep a path may lead, links followed. A worker holds a descriptor for each directory of it.
pub const MAX_DEPTH: usize = 128;

/// How many symbolic links are followed on one way, as the kernel does.
pub const MAX_LINKS: usize = 40;

/// The most entries of one page of a list.
pub const MAX_ENTRIES: u32 = 1000;

/// The most files of one [`ReadMany`].
pub const MAX_READ_FILES: usize = 128;

/// The most bytes of all paths of one [`ReadMany`]. In JSON each takes six at most.
pub const MAX_READ_PATH_BYTES: usize = 10 << 10;

/// How many things are copied at once, those that are skipped among them.
pub const MAX_COPY_ENTRIES: u64 = 200_000;

/// How many bytes of names of skipped things are told. In JSON each takes six at most.
pub const MAX_SKIPPED_BYTES: usize = 8 << 10;

/// How many connections to file workers one sandbox has at a time.
pub const MAX_CONNECTIONS: usize = 16;

/// The worker's first message, on channel 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Greeting {
    /// The worker takes requests.
    Ready {
        /// The newest generation that it speaks.
        generation: u32,
    },
    /// There is no worker for this connection.
    Refused(Failure),
}

/// What is asked of the files of a workspace. Paths are relative to its root, or begin with a name of
/// the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Read a regular file. Its bytes come first. Answered by [`Answer::Read`].
    Read(Read),
    /// Write a whole file, whose bytes follow. Answered by [`Answer::Written`].
    Write(Write),
    /// Add the bytes that follow to a file, which is made where it is missing. Answered by
    /// [`Answer::Written`].
    Append(Append),
    /// Describe what is there. A link at the end is not followed. Answered by [`Answer::Entry`].
    Stat {
        /// What.
        path: ByteString,
    },
    /// List a directory. Answered by [`Answer::Entries`], as often as needed, then [`Answer::Listed`].
    List(List),
    /// Make a directory, and those above it. Answered by [`Answer::Made`].
    MakeDirectory {
        /// Which.
        path: ByteString,
    },
    /// Give something another name. Answered by [`Answer::Done`].
    Move(Move),
    /// Copy a regular file. Answered by [`Answer::Written`].
    Copy(Move),
    /// Remove something. A link at the end is removed itself. Answered by [`Answer::Done`].
    Remove(Remove),
    /// Set the permissions of a regular file or a directory. Answered by [`Answer::Entry`].
    SetMode {
        /// Of what.
        path: ByteString,
        /// Which, at most 0777.
        mode: u32,
    },
    /// Carry many changes out at once, whose steps follow. Answered by [`Answer::Carried`].
    /// Since generation 2.
    Carry(Carry),
    /// Put right what a carry left whose end nobody heard. Answered by [`Answer::Recovered`].
    /// Since generation 2.
    Recover(Carry),
    /// Read several regular files. The bytes of all come first, one file behind the other. Answered by
    /// [`Answer::ReadMany`]. Since generation 2.
    ReadMany(ReadMany),
    /// Copy a directory with all that is in it, or anything else that can be copied. Answered by
    /// [`Answer::Copied`]. Since generation 2.
    CopyTree(CopyTree),
    /// Tell what happens, until the host hangs up. Answered by [`Answer::Events`], as often as there is
    /// something to tell. Since generation 3.
    Watch(Watch),
}

impl Request {
    /// The generation that this request came with.
    pub fn since(&self) -> u32 {
        match self {
            Self::Read(_)
            | Self::Write(_)
            | Self::Append(_)
            | Self::Stat { .. }
            | Self::List(_)
            | Self::MakeDirectory { .. }
            | Self::Move(_)
            | Self::Copy(_)
            | Self::Remove(_)
            | Self::SetMode { .. } => 1,
            Self::Carry(_) | Self::Recover(_) | Self::ReadMany(_) | Self::CopyTree(_) => 2,
            Self::Watch(_) => 3,
        }
    }
}

/// What is to be read at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadMany {
    /// Which files, at most [`MAX_READ_FILES`]. Links at their ends are followed.
    pub paths: Vec<ByteString>,
    /// Leave out a file that holds more than this.
    pub max_bytes: u64,
    /// Leave out a file that does not fit in this together with those before it.
    pub total_bytes: u64,
}

/// What is to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// Which file. A link at the end is followed.
    pub path: ByteString,
    /// Where to begin. Beyond the end there is nothing to read.
    pub offset: u64,
    /// How much; all the rest without it.
    pub length: Option<u64>,
    /// Whether the hash of the whole file is wanted.
    pub hash: bool,
    /// Refuse a file that holds more than this from `offset` on as far as it would be read.
    pub max_bytes: Option<u64>,
}

/// What is to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Where. Directories above it are made.
    pub path: ByteString,
    /// What must be so before.
    pub only: Only,
    /// The permissions, at most 0777. Without it those of the file that was there, or 0644.
    pub mode: Option<u32>,
}

/// What must be so for a file to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Only {
    /// Nothing.
    #[default]
    Always,
    /// The file is there.
    IfExists,
    /// Nothing is there.
    IfMissing,
    /// The file is there, and its bytes have this SHA-256, in hexadecimal.
    IfMatch(String),
}

/// What bytes are to be added to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Append {
    /// Which file.
    pub path: ByteString,
    /// The permissions of a file that is made for it, at most 0777; 0644 without it.
    pub mode: Option<u32>,
}

/// What is to be listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Which directory. A link at the end is followed.
    pub path: ByteString,
    /// How many levels: 1 for its own entries. Links are not followed further down.
    pub depth: u32,
    /// Begin behind this entry, as the last page named it.
    pub after: Option<ByteString>,
    /// At most so many entries; see [`MAX_ENTRIES`].
    pub limit: u32,
}

/// Where from and where to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// What.
    pub from: ByteString,
    /// Its new name. Directories above it are made.
    pub to: ByteString,
    /// Whether a file that is there is replaced.
    pub replace: bool,
}

/// What is to be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remove {
    /// What.
    pub path: ByteString,
    /// Whether a directory goes with all that is in it.
    pub recursive: bool,
}

/// What is to be copied with all that is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyTree {
    /// What. A link at the end is copied itself.
    pub from: ByteString,
    /// The name of the copy. Nothing may be there. Directories above it are made.
    pub to: ByteString,
    /// Refuse to copy more things than this; see [`MAX_COPY_ENTRIES`].
    pub max_entries: u64,
}

/// What a worker says to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// All bytes that were asked for have come.
    Read(HasRead),
    /// All bytes that came are in the file.
    Written(Written),
    /// What is there.
    Entry(Entry),
    /// Some entries of a list.
    Entries(Vec<Entry>),
    /// All entries of this page have come.
    Listed {
        /// Where the next page begins, if there is more.
        next: Option<ByteString>,
    },
    /// The directory is there.
    Made {
        /// Whether it was not there before.
        created: bool,
    },
    /// It is done.
    Done,
    /// It could not be done. Nothing was changed, unless the message says so.
    Failed(Failure),
    /// All steps were done.
    Carried {
        /// How many there were.
        steps: u64,
    },
    /// What has become of a carry. What it left is cleared away.
    Recovered(CarryEnd),
    /// What became of each file, in the order of the request.
    ReadMany(Vec<OneRead>),
    /// What was copied.
    Copied(Copied),
    /// What happened since the last ones were told.
    Events(Vec<FileEvent>),
}

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// How many regular files.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// How many symbolic links.
    pub links: u64,
    /// How many bytes the files hold.
    pub bytes: u64,
    /// What was not copied, being a pipe, a socket or a device; the first of them.
    pub skipped: Vec<Skipped>,
    /// How many more there were.
    pub skipped_more: u64,
}

/// Something that is not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its path below what was to be copied.
    pub path: ByteString,
    /// What it is.
    pub kind: EntryKind,
}

/// What became of one file of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OneRead {
    /// It came.
    Read(HasRead),
    /// It could not be read.
    Failed {
        /// Why.
        failure: Failure,
        /// How many bytes of it came before.
        bytes: u64,
    },
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HasRead {
    /// The size of the whole file when it was opened.
    pub size: u64,
    /// How many bytes came.
    pub bytes: u64,
    /// The SHA-256 of the whole file, in hexadecimal, where it was asked for.
    pub sha256: Option<String>,
    /// The permissions, at most 07777.
    pub mode: u32,
    /// When it was changed last, in milliseconds since 1970.
    pub modified_ms: i64,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// How many bytes were taken.
    pub bytes: u64,
    /// The SHA-256 of these bytes, in hexadecimal.
    pub sha256: String,
    /// Whether there was no such file before.
    pub created: bool,
}

/// One thing in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path below what was asked for; empty for that itself.
    pub path: ByteString,
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes.
    pub size: u64,
    /// The permissions, at most 07777.
    pub mode: u32,
    /// When it was changed last, in milliseconds since 1970.
    pub modified_ms: i64,
    /// How many names it has.
    pub links: u64,
    /// Where a symbolic link leads, as it says.
    pub target: Option<ByteString>,
}

/// What something in the workspace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe with a name.
    Fifo,
    /// A socket.
    Socket,
    /// A device of characters or of blocks.
    Device,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::File, Self::Directory, Self::Link, Self::Fifo, Self::Socket, Self::Device];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "link",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which of the reasons that users tell apart.
    pub why: Why,
    /// What was met, for people.
    pub detail: String,
    /// The kernel's answer, or 0 where it was not asked.
    pub errno: i32,
}

/// The reasons for which something cannot be done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// The request makes no sense.
    BadRequest,
    /// The path, or a link on it, leaves the workspace.
    Escape,
    /// There is no such thing.
    NotFound,
    /// It is there and of another type than the request needs.
    WrongType,
    /// It is larger than the request allows, or than fits.
    TooLarge,
    /// Something is there already, or a directory is not empty.
    Exists,
    /// The file is not as the request says, or changed meanwhile.
    Changed,
    /// The sandbox may not do that.
    Denied,
    /// There is no room, or not enough of something else.
    Exhausted,
    /// The kernel refused otherwise.
    Io,
}
