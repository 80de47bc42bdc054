//! Files of a sandbox's workspace.
//!
//! [`Files`] is what callers use. Behind it is a [`FileService`], which takes the requests of
//! [`cofferdam_wire::files`]: [`LinkedFiles`] for every sandbox that has a file worker inside, and one
//! in memory for tests. Nothing here opens a path on the host.

mod carry;
#[cfg(test)]
mod crowd_tests;
mod failure;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod hostile_watch_tests;
mod link;
mod many;
mod stream;
mod sys;
mod watch;

pub use carry::{Content, Load};
pub use cofferdam_wire::ByteString;
pub use cofferdam_wire::files::{
    Answer, Append, Before, Carry, CarryEnd, Copied, CopyTree, Entry, EntryKind, Failure,
    FileEvent, HasRead, List, MAX_CARRIED_BYTES, MAX_CARRY_DEPTH, MAX_CONNECTIONS,
    MAX_COPY_ENTRIES, MAX_DEPTH, MAX_ENTRIES, MAX_HELD_DIRECTORIES, MAX_LINKS, MAX_PATH_BYTES,
    MAX_PENDING_EVENTS, MAX_READ_FILES, MAX_STEPS, MAX_WATCHED_DIRECTORIES, MAX_WATCHED_PATH_BYTES,
    MAX_WATCHED_PATHS, Move, OneRead, Only, Read, ReadMany, Remove, Request, Skipped, Step, Watch,
    Why, Write, Written, is_carry_name,
};
pub use failure::{is_answer, is_of_the_file, refusal};
pub use link::{FileDoor, FileLink, LinkedFiles};
pub use many::WholeFile;
pub use watch::{EventSource, FileWatch};

use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use std::ffi::OsStr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Takes requests for files of one workspace, any number at a time.
///
/// A request that fails is answered by an error; whatever it says of the workspace comes from inside
/// and is bounded, and nothing more is promised of it.
#[async_trait]
pub trait FileService: Send + Sync {
    /// Does what is asked. A call that is given up may have been done, and never half: a file is
    /// whole or as it was. Only an append may be cut short.
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply>;

    /// Begins a watch and waits until it stands.
    async fn watch(&self, _order: &Watch) -> Result<FileWatch> {
        Err(Error::new(ErrorKind::Unsupported, "these files cannot be watched")
            .hint("List them again from time to time."))
    }

    /// Sees to it that the next request finds a connection, so that who is not let in hears it here.
    async fn open(&self) -> Result<()>;
}

/// The bytes that go with a request.
pub enum Body<'a> {
    /// None.
    Nothing,
    /// Those of a file that is written come from here.
    Source(&'a mut (dyn AsyncRead + Send + Unpin)),
    /// Those of a file that is read go there.
    Sink(&'a mut (dyn AsyncWrite + Send + Unpin)),
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The last word, which is never a failure.
    pub answer: Answer,
    /// The entries that came before it.
    pub entries: Vec<Entry>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// In the order of their names, each directory before what is in it.
    pub entries: Vec<Entry>,
    /// What [`List::after`] is for the next page, if there is more.
    pub next: Option<ByteString>,
}

/// The files of one workspace.
///
/// A path is relative to the workspace, or begins with `/workspace`, and is never read by a shell.
/// Symbolic links are followed as long as they stay inside, except by what changes, moves or removes
/// the link itself. What is no regular file is never read or written.
#[derive(Clone)]
pub struct Files(Arc<dyn FileService>);

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Files {
    /// Files that this service has.
    pub fn new(service: Arc<dyn FileService>) -> Self {
        Self(service)
    }

    /// What serves them, for what this type does not do.
    pub fn service(&self) -> &Arc<dyn FileService> {
        &self.0
    }

    /// Reads a whole file, of at most so many bytes.
    pub async fn read(&self, path: impl AsRef<OsStr>, max_bytes: u64) -> Result<Vec<u8>> {
        let order =
            Read { path: path.as_ref().into(), max_bytes: Some(max_bytes), ..Read::default() };
        let mut bytes = Vec::new();
        self.read_to(&order, &mut bytes).await?;
        Ok(bytes)
    }

    /// Reads a file or a part of it into `sink`, a piece at a time.
    pub async fn read_to(
        &self,
        order: &Read,
        sink: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<HasRead> {
        let answer = self.call(Request::Read(order.clone()), Body::Sink(sink)).await?;
        let Answer::Read(read) = answer else { return Err(unasked(&answer)) };
        Ok(read)
    }

    /// Writes a whole file, whatever was there. A reader sees the old one or the new one.
    pub async fn write(&self, path: impl AsRef<OsStr>, bytes: &[u8]) -> Result<Written> {
        let order = Write { path: path.as_ref().into(), ..Write::default() };
        let mut source = bytes;
        self.write_from(&order, &mut source).await
    }

    /// Writes a whole file from `source`, a piece at a time.
    pub async fn write_from(
        &self,
        order: &Write,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<Written> {
        written(self.call(Request::Write(order.clone()), Body::Source(source)).await?)
    }

    /// Adds bytes at the end of a file, which is made where it is missing.
    pub async fn append(&self, path: impl AsRef<OsStr>, bytes: &[u8]) -> Result<Written> {
        let order = Append { path: path.as_ref().into(), mode: None };
        let mut source = bytes;
        self.append_from(&order, &mut source).await
    }

    /// Adds what comes from `source`, a piece at a time.
    pub async fn append_from(
        &self,
        order: &Append,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<Written> {
        written(self.call(Request::Append(order.clone()), Body::Source(source)).await?)
    }

    /// Describes what is there; a link is described itself.
    pub async fn stat(&self, path: impl AsRef<OsStr>) -> Result<Entry> {
        entry(self.ask(Request::Stat { path: path.as_ref().into() }).await?)
    }

    /// Lists a page of a directory.
    pub async fn list(&self, order: &List) -> Result<Page> {
        let reply = self.0.call(&Request::List(order.clone()), Body::Nothing).await?;
        let Answer::Listed { next } = reply.answer else { return Err(unasked(&reply.answer)) };
        Ok(Page { entries: reply.entries, next })
    }

    /// Makes a directory and those above it. Says whether it was not there before.
    pub async fn make_directory(&self, path: impl AsRef<OsStr>) -> Result<bool> {
        let answer = self.ask(Request::MakeDirectory { path: path.as_ref().into() }).await?;
        let Answer::Made { created } = answer else { return Err(unasked(&answer)) };
        Ok(created)
    }

    /// Gives something another name.
    pub async fn rename(&self, order: &Move) -> Result<()> {
        done(self.ask(Request::Move(order.clone())).await?)
    }

    /// Copies a regular file; a link to it is followed.
    pub async fn copy(&self, order: &Move) -> Result<Written> {
        written(self.ask(Request::Copy(order.clone())).await?)
    }

    /// Copies a directory with all that is in it, whole or not at all; or a regular file or a link.
    /// Nothing may have the new name. Links are copied as they are; pipes, sockets and devices are
    /// skipped and told. At most [`MAX_COPY_ENTRIES`] things are copied.
    pub async fn copy_tree(&self, order: &CopyTree) -> Result<Copied> {
        let answer = self.ask(Request::CopyTree(order.clone())).await?;
        let Answer::Copied(copied) = answer else { return Err(unasked(&answer)) };
        Ok(copied)
    }

    /// Removes something. Who repeats it hears [`ErrorKind::NotFound`].
    pub async fn remove(&self, order: &Remove) -> Result<()> {
        done(self.ask(Request::Remove(order.clone())).await?)
    }

    /// Sets the permissions of a regular file or a directory, at most 0777.
    pub async fn set_mode(&self, path: impl AsRef<OsStr>, mode: u32) -> Result<Entry> {
        entry(self.ask(Request::SetMode { path: path.as_ref().into(), mode }).await?)
    }

    async fn ask(&self, request: Request) -> Result<Answer> {
        self.call(request, Body::Nothing).await
    }

    async fn call(&self, request: Request, body: Body<'_>) -> Result<Answer> {
        Ok(self.0.call(&request, body).await?.answer)
    }
}

fn written(answer: Answer) -> Result<Written> {
    let Answer::Written(written) = answer else { return Err(unasked(&answer)) };
    Ok(written)
}

fn entry(answer: Answer) -> Result<Entry> {
    let Answer::Entry(entry) = answer else { return Err(unasked(&answer)) };
    Ok(entry)
}

fn done(answer: Answer) -> Result<()> {
    if answer == Answer::Done { Ok(()) } else { Err(unasked(&answer)) }
}

/// An answer to another question.
fn unasked(answer: &Answer) -> Error {
    let what = match answer {
        Answer::Read(_) => "that it read",
        Answer::Written(_) => "that it wrote",
        Answer::Entry(_) => "what is there",
        Answer::Entries(_) | Answer::Listed { .. } => "a list",
        Answer::Made { .. } => "that it made a directory",
        Answer::Done => "that it is done",
        Answer::Failed(_) => "that it failed",
        Answer::Carried { .. } => "that it changed much",
        Answer::Recovered(_) => "what became of changes",
        Answer::ReadMany(_) => "that it read several",
        Answer::Copied(_) => "that it copied a tree",
        Answer::Events(_) => "what happened",
    };
    Error::new(ErrorKind::Protocol, format!("the file worker said {what}, which was not asked"))
}
