//! A directory of the workspace as one stream of bytes.

use crate::header::{END_BYTES, Member, padding};
use crate::notes::{Notes, Remark};
use cofferdam_core::files::{ByteString, Entry, EntryKind, List, MAX_DEPTH, MAX_ENTRIES, Read};
use cofferdam_core::files::{MAX_PATH_BYTES, is_of_the_file};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tar::EntryType;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The most names that one archive is made of.
pub const MAX_EXPORT_ENTRIES: u64 = 1_000_000;

/// Zeros, for what is missing.
const ZEROS: [u8; 8192] = [0; 8192];

/// What is to be exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// A directory, which does not get a name in the archive itself; or a file, or a link.
    pub path: ByteString,
    /// Refuse more bytes of files than this. A hole in a file counts as the zeros that it reads as.
    pub max_bytes: u64,
}

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// How many regular files.
    pub files: u64,
    /// How many directories.
    pub directories: u64,
    /// How many symbolic links.
    pub links: u64,
    /// How many bytes the archive has for files.
    pub bytes: u64,
    /// What is not in it as it is in the workspace.
    pub notes: Notes,
}

/// Writes an archive of what is there to `sink`, file after file. Nothing is kept but a page of names
/// for each directory on the way.
///
/// It is an archive to its end also where files change meanwhile: each has the size that it was listed
/// with, cut or filled up with zeros, which is told. An error leaves an archive without an end.
pub async fn export(
    files: &Files,
    order: &Export,
    sink: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<Exported> {
    let exported = Exported::default();
    let mut out = Out { files, sink, exported, visited: 0, max_bytes: order.max_bytes };
    let top = match order.path.as_bytes() {
        b"" => b".".to_vec(),
        path => path.to_vec(),
    };
    let entry = files.stat(OsStr::from_bytes(&top)).await?;
    let first = match entry.kind {
        EntryKind::Directory => Some(Level::open(files, &top, Vec::new()).await?),
        // A link to a directory stands for it, any other for itself.
        EntryKind::Link => match Level::open(files, &top, Vec::new()).await {
            Ok(level) => Some(level),
            Err(error) if error.kind == ErrorKind::NotAFile => None,
            Err(error) => return Err(error),
        },
        EntryKind::File | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => None,
    };
    match first {
        Some(level) => out.walk(level).await?,
        None => {
            let name = top.rsplit(|byte| *byte == b'/').find(|name| !name.is_empty());
            out.member(&top, name.unwrap_or(&top), &entry).await?;
        }
    }
    out.write(&[0; END_BYTES]).await?;
    out.sink.flush().await.map_err(unwritten)?;
    Ok(out.exported)
}

/// A directory on the way.
struct Level {
    /// Its path in the workspace, and in the archive.
    path: Vec<u8>,
    name: Vec<u8>,
    entries: std::vec::IntoIter<Entry>,
    order: List,
}

impl Level {
    async fn open(files: &Files, path: &[u8], name: Vec<u8>) -> Result<Self> {
        let place = path.to_vec();
        let order = List { path: place.into(), depth: 1, after: None, limit: MAX_ENTRIES };
        let mut level = Self { path: path.to_vec(), name, entries: Vec::new().into_iter(), order };
        level.turn(files).await?;
        Ok(level)
    }

    async fn turn(&mut self, files: &Files) -> Result<()> {
        let page = files.list(&self.order).await?;
        // HOSTILE: it would never end.
        if page.entries.is_empty() && page.next.is_some() {
            return Err(lied("that behind an empty page there is another"));
        }
        (self.entries, self.order.after) = (page.entries.into_iter(), page.next);
        Ok(())
    }
}

struct Out<'a> {
    files: &'a Files,
    sink: &'a mut (dyn AsyncWrite + Send + Unpin),
    exported: Exported,
    visited: u64,
    max_bytes: u64,
}

impl Out<'_> {
    async fn walk(&mut self, first: Level) -> Result<()> {
        let mut stack = vec![first];
        while let Some(level) = stack.last_mut() {
            let Some(entry) = level.entries.next() else {
                if level.order.after.is_none() {
                    stack.pop();
                } else if let Err(error) = level.turn(self.files).await {
                    let name = level.name.clone();
                    self.unreadable(&name, error)?;
                    stack.pop();
                }
                continue;
            };
            self.count()?;
            check(&entry)?;
            let path = join(&level.path, entry.path.as_bytes());
            let name = join(&level.name, entry.path.as_bytes());
            self.member(&path, &name, &entry).await?;
            if entry.kind != EntryKind::Directory {
                continue;
            }
            if stack.len() >= MAX_DEPTH {
                self.exported.notes.add(&name, Remark::Unreadable);
                continue;
            }
            match Level::open(self.files, &path, name.clone()).await {
                Ok(level) => stack.push(level),
                Err(error) => self.unreadable(&name, error)?,
            }
        }
        Ok(())
    }

    /// Tells of what cannot be read, if it is not everything.
    fn unreadable(&mut self, name: &[u8], error: Error) -> Result<()> {
        if !is_of_the_file(&error) {
            return Err(error);
        }
        self.exported.notes.add(name, Remark::Unreadable);
        Ok(())
    }

    fn count(&mut self) -> Result<()> {
        self.visited += 1;
        if self.visited <= MAX_EXPORT_ENTRIES {
            return Ok(());
        }
        let what = format!("there are more than {MAX_EXPORT_ENTRIES} names to export");
        Err(Error::new(ErrorKind::TooLarge, what).hint("Export directories one by one."))
    }

    async fn member(&mut self, path: &[u8], name: &[u8], entry: &Entry) -> Result<()> {
        let (kind, target) = match entry.kind {
            EntryKind::File => (EntryType::Regular, [].as_slice()),
            EntryKind::Directory => (EntryType::Directory, [].as_slice()),
            EntryKind::Link => {
                let target = entry.target.as_ref().map(ByteString::as_bytes).unwrap_or_default();
                (EntryType::Symlink, target)
            }
            EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
                self.exported.notes.add(name, Remark::Skipped(entry.kind));
                return Ok(());
            }
        };
        // HOSTILE: who unpacks it may be root, and would be the owner.
        if entry.mode & 0o7000 != 0 && entry.kind != EntryKind::Link {
            self.exported.notes.add(name, Remark::IdentityLeftOut);
        }
        let bytes = if entry.kind == EntryKind::File { entry.size } else { 0 };
        let (mode, modified_ms) = (entry.mode & 0o777, entry.modified_ms);
        let shown = match entry.kind {
            EntryKind::Directory => [name, b"/"].concat(),
            EntryKind::File
            | EntryKind::Link
            | EntryKind::Fifo
            | EntryKind::Socket
            | EntryKind::Device => name.to_vec(),
        };
        let head = Member { path: &shown, kind, target, mode, modified_ms, bytes }.blocks();
        match entry.kind {
            EntryKind::File => return self.file(path, name, (head, bytes)).await,
            EntryKind::Directory => self.exported.directories += 1,
            EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
                self.exported.links += 1;
            }
        }
        self.write(&head).await
    }

    async fn file(&mut self, path: &[u8], name: &[u8], member: (Vec<u8>, u64)) -> Result<()> {
        let (head, bytes) = member;
        let total = self.exported.bytes.saturating_add(bytes);
        if total > self.max_bytes {
            let shown = String::from_utf8_lossy(name);
            let what = format!("with {shown:?} files have more than {} bytes", self.max_bytes);
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Allow more, or leave it out."));
        }
        let order = Read { path: path.to_vec().into(), length: Some(bytes), ..Read::default() };
        let mut body = Body::new(&mut *self.sink, head, bytes);
        let read = self.files.read_to(&order, &mut body).await;
        if let Some(error) = body.broken.take() {
            return Err(unwritten(error));
        }
        let remark = match read {
            Ok(_) if body.left > 0 => Some(Remark::Padded),
            Ok(read) if read.size > bytes || body.is_over => Some(Remark::Cut),
            Ok(_) => None,
            Err(error) if !is_of_the_file(&error) => return Err(error),
            // Nothing says yet that there is such a file.
            Err(_) if body.head_left().is_some() => {
                self.exported.notes.add(name, Remark::Unreadable);
                return Ok(());
            }
            Err(_) => Some(Remark::Padded),
        };
        let (head, missing) = (body.head_left(), body.left);
        self.write(&head.unwrap_or_default()).await?;
        self.zeros(missing).await?;
        self.zeros(padding(bytes) as u64).await?;
        self.exported.files += 1;
        self.exported.bytes = total;
        if let Some(remark) = remark {
            self.exported.notes.add(name, remark);
        }
        Ok(())
    }

    async fn zeros(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            let now = count.min(ZEROS.len() as u64);
            self.write(ZEROS.get(..usize::try_from(now).unwrap_or(0)).unwrap_or_default()).await?;
            count -= now;
        }
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes).await.map_err(unwritten)
    }
}

/// The bytes of a file, with its header before the first, and never more than that says.
struct Body<'s> {
    sink: &'s mut (dyn AsyncWrite + Send + Unpin),
    head: Vec<u8>,
    written: usize,
    left: u64,
    is_over: bool,
    /// Why the sink takes no more.
    broken: Option<io::Error>,
}

impl<'s> Body<'s> {
    fn new(sink: &'s mut (dyn AsyncWrite + Send + Unpin), head: Vec<u8>, left: u64) -> Self {
        Self { sink, head, written: 0, left, is_over: false, broken: None }
    }

    /// The header, if nothing of it was written.
    fn head_left(&self) -> Option<Vec<u8>> {
        (self.written == 0).then(|| self.head.clone())
    }

    fn poll(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        while let Some(head) = self.head.get(self.written..).filter(|head| !head.is_empty()) {
            match ready!(Pin::new(&mut *self.sink).poll_write(context, head))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        if room == 0 {
            self.is_over = true;
            return Poll::Ready(Ok(bytes.len()));
        }
        let fits = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        let count = ready!(Pin::new(&mut *self.sink).poll_write(context, fits))?;
        self.left -= count as u64;
        Poll::Ready(Ok(count))
    }
}

impl AsyncWrite for Body<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(self.poll(context, bytes));
        Poll::Ready(result.map_err(|error| {
            let kind = error.kind();
            self.broken = Some(error);
            kind.into()
        }))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// HOSTILE: it is to be one name, and what the header says of it is to end where it ends.
fn check(entry: &Entry) -> Result<()> {
    let name = entry.path.as_bytes();
    let is_name = !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/');
    let target = entry.target.as_ref().map(ByteString::as_bytes).unwrap_or_default();
    let is_target = !target.contains(&0) && target.len() < MAX_PATH_BYTES;
    match is_name && !name.contains(&0) && name.len() < MAX_PATH_BYTES && is_target {
        true => Ok(()),
        false => Err(lied("what can be no name in a directory")),
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory.is_empty() || directory.ends_with(b"/") {
        true => [directory, name].concat(),
        false => [directory, b"/", name].concat(),
    }
}

fn lied(what: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("the file worker listed {what}"))
}

fn unwritten(cause: io::Error) -> Error {
    Error::new(ErrorKind::Io, "write the archive").source(cause)
}
