//! Requests for files, sent to a server.

use crate::answer::Failure;
use crate::files::at_once;
use crate::layers::lacking;
use crate::upload::{self, Saved, Upload, save};
use crate::watch::ServerWatch;
use crate::{Sandbox, many, place};
use async_trait::async_trait;
use cofferdam_core::files::{
    Answer, Append, Body, ByteString, Copied, Entry, EntryKind, FileService, FileWatch, HasRead,
    List, Move, Only, Read, Reply, Request, Skipped, Watch, Write, Written,
};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::{
    ChmodWish, CopyWish, FileCopied, FileDone, FileEntry, FileList, MkdirWish, MoveWish,
};
use reqwest::header::{
    CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, IF_MATCH, IF_NONE_MATCH, RANGE,
};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};

/// Permissions of a file, in octal.
const MODE: &str = "cofferdam-mode";
/// When a file was changed last, in milliseconds since 1970.
const MODIFIED: &str = "cofferdam-modified-ms";

/// The files of a sandbox.
pub(crate) struct SandboxFiles(pub(crate) Sandbox);

#[async_trait]
impl FileService for SandboxFiles {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        let mut entries = Vec::new();
        let answer = match (request, body) {
            (Request::Read(order), Body::Sink(sink)) => Answer::Read(self.read(order, sink).await?),
            (Request::Write(order), Body::Source(source)) => {
                Answer::Written(self.write(order, source).await?)
            }
            (Request::Append(order), Body::Source(source)) => {
                Answer::Written(self.append(order, source).await?)
            }
            (Request::Stat { path }, _) => Answer::Entry(self.stat(path).await?),
            (Request::List(order), _) => {
                let list = self.list(order).await?;
                let next = place::bytes(list.next, list.next_base64)?;
                entries = list.entries.into_iter().map(entry).collect::<Result<_>>()?;
                Answer::Listed { next: (!next.is_empty()).then(|| next.into()) }
            }
            (Request::MakeDirectory { path }, _) => {
                Answer::Made { created: self.make_directory(path).await? }
            }
            (Request::Move(order), _) => {
                self.post::<FileDone>("move", &move_wish(order)).await?;
                Answer::Done
            }
            (Request::Copy(order), _) => {
                let wish = copy_wish(&order.from, &order.to);
                let wish = CopyWish { replace: order.replace, ..wish };
                Answer::Written(written(self.post("copy", &wish).await?)?)
            }
            (Request::CopyTree(order), _) => {
                let wish = CopyWish { recursive: true, ..copy_wish(&order.from, &order.to) };
                Answer::Copied(copied(self.post("copy", &wish).await?)?)
            }
            (Request::Remove(order), _) => {
                let ask = self.0.ask(Method::DELETE, &["files"]).path(order.path.as_bytes());
                ask.query("recursive", order.recursive).done().await?;
                Answer::Done
            }
            (Request::SetMode { path, mode }, _) => {
                Answer::Entry(self.set_mode(path, *mode).await?)
            }
            (Request::Carry(_) | Request::Recover(_), _) => {
                return Err(at_once("many files are not written"));
            }
            (Request::ReadMany(order), Body::Sink(sink)) => {
                Answer::ReadMany(many::read(&self.0, order, sink).await?)
            }
            (
                Request::ReadMany(_)
                | Request::Read(_)
                | Request::Write(_)
                | Request::Append(_)
                | Request::Watch(_),
                _,
            ) => {
                return Err(Error::new(ErrorKind::Usage, "a request comes with another body"));
            }
        };
        Ok(Reply { answer, entries })
    }

    async fn watch(&self, order: &Watch) -> Result<FileWatch> {
        ServerWatch::begin(&self.0, order).await
    }

    async fn open(&self) -> Result<()> {
        self.0.status().await.map(drop)
    }
}

impl SandboxFiles {
    async fn post<T: DeserializeOwned>(&self, what: &str, wish: &impl Serialize) -> Result<T> {
        self.0.ask(Method::POST, &["files", what]).object(wish).read().await
    }

    async fn make_directory(&self, path: &ByteString) -> Result<bool> {
        let place::Named { text, base64 } = place::named(path.as_bytes());
        let wish = MkdirWish { path: text, path_base64: base64 };
        let done: FileDone = self.post("mkdir", &wish).await?;
        done.created.ok_or_else(|| lacking("created"))
    }

    async fn set_mode(&self, path: &ByteString, mode: u32) -> Result<Entry> {
        let place::Named { text, base64 } = place::named(path.as_bytes());
        let wish = ChmodWish { path: text, path_base64: base64, mode: format!("{mode:o}") };
        self.post::<FileDone>("chmod", &wish).await?;
        self.stat(path).await
    }

    async fn stat(&self, path: &ByteString) -> Result<Entry> {
        let ask = self.0.ask(Method::GET, &["files", "stat"]).path(path.as_bytes());
        let told = entry(ask.read().await?)?;
        Ok(Entry { path: ByteString::default(), ..told })
    }

    async fn list(&self, order: &List) -> Result<FileList> {
        let mut ask = self.0.ask(Method::GET, &["files", "list"]).path(order.path.as_bytes());
        ask = ask.query("depth", order.depth).query("limit", order.limit);
        if let Some(after) = &order.after {
            let place::Named { text, base64 } = place::named(after.as_bytes());
            ask = ask.perhaps("cursor", text).perhaps("cursor_base64", base64);
        }
        ask.read().await
    }

    async fn read(
        &self,
        order: &Read,
        sink: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<HasRead> {
        let is_part = order.offset > 0 || order.length.is_some();
        let mut ask = self.0.ask(Method::GET, &["files"]).path(order.path.as_bytes());
        ask = ask.query("hash", order.hash);
        if is_part {
            let last = order.length.map(|length| order.offset.saturating_add(length.max(1)) - 1);
            let last = last.map(|last| last.to_string()).unwrap_or_default();
            ask = ask.header(RANGE, &format!("bytes={}-{last}", order.offset));
        }
        let response = match ask.send().await {
            Ok(response) => response,
            Err(Failure::Said(said)) if said.status == StatusCode::RANGE_NOT_SATISFIABLE => {
                return self.nothing_there(order).await;
            }
            Err(failure) => return Err(failure.into()),
        };
        let about = about(response.headers())?;
        if order.length == Some(0) {
            return Ok(about);
        }
        let comes: u64 = number(response.headers(), CONTENT_LENGTH.as_str())?;
        if order.max_bytes.is_some_and(|most| comes > most) {
            return Err(too_large(order, comes));
        }
        let Saved { sha256, bytes } = save(&self.0.client, response, sink).await?;
        let is_whole = bytes == about.size;
        if is_whole && about.sha256.as_ref().is_some_and(|told| *told != sha256) {
            let what = format!("read {}: what came is not what the server has", order.path);
            return Err(Error::new(ErrorKind::Protocol, what).hint("Try again."));
        }
        Ok(HasRead { bytes, ..about })
    }

    /// What is told of a file, beyond whose end somebody reads.
    async fn nothing_there(&self, order: &Read) -> Result<HasRead> {
        let ask = self.0.ask(Method::HEAD, &["files"]).path(order.path.as_bytes());
        about(ask.query("hash", order.hash).send().await?.headers())
    }

    async fn write(
        &self,
        order: &Write,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<Written> {
        let mut ask = self.0.ask(Method::PUT, &["files"]).path(order.path.as_bytes());
        ask = ask.perhaps("mode", order.mode.map(|mode| format!("{mode:o}")));
        ask = match &order.only {
            Only::Always => ask,
            Only::IfExists => ask.header(IF_MATCH, "*"),
            Only::IfMissing => ask.header(IF_NONE_MATCH, "*"),
            Only::IfMatch(hash) => ask.header(IF_MATCH, &format!("\"{hash}\"")),
        };
        self.upload(ask, source).await
    }

    async fn append(
        &self,
        order: &Append,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<Written> {
        let ask = self.0.ask(Method::POST, &["files", "append"]).path(order.path.as_bytes());
        let mode = order.mode.map(|mode| format!("{mode:o}"));
        self.upload(ask.perhaps("mode", mode), source).await
    }

    async fn upload(
        &self,
        ask: crate::ask::Ask,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<Written> {
        let sent = upload::send(ask, "application/octet-stream", source).await?;
        let Upload { answer, sha256, bytes } = sent;
        let written = written(upload::object(&self.0.client, answer).await?)?;
        if (written.bytes, &written.sha256) != (bytes, &sha256) {
            let what = "the sandbox wrote other bytes than it was sent";
            return Err(
                Error::new(ErrorKind::Protocol, what).hint("Remove the file, then try again.")
            );
        }
        Ok(written)
    }
}

fn too_large(order: &Read, comes: u64) -> Error {
    let what = format!("read {}: it has {comes} bytes, more than was allowed", order.path);
    Error::new(ErrorKind::TooLarge, what).hint("Read a part of it.")
}

/// What the headers of an answer tell of a file, of which nothing is read yet.
fn about(headers: &HeaderMap) -> Result<HasRead> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // Of a part: `bytes 0-9/120`.
    let whole = text(CONTENT_RANGE.as_str()).and_then(|range| range.rsplit_once('/'));
    let size = match whole {
        Some((_, size)) => size.parse().map_err(|_| lacking("the size of the file"))?,
        None => number(headers, CONTENT_LENGTH.as_str())?,
    };
    let sha256 = text(ETAG.as_str()).map(|tag| tag.trim_matches('"').to_owned());
    let mode = text(MODE).and_then(|mode| u32::from_str_radix(mode, 8).ok());
    Ok(HasRead {
        size,
        bytes: 0,
        sha256,
        mode: mode.ok_or_else(|| lacking(MODE))?,
        modified_ms: number(headers, MODIFIED)?,
    })
}

fn number<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Result<T> {
    let text = headers.get(name).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| lacking(name))
}

fn move_wish(order: &Move) -> MoveWish {
    let (from, to) = (place::named(order.from.as_bytes()), place::named(order.to.as_bytes()));
    MoveWish {
        from: from.text,
        from_base64: from.base64,
        to: to.text,
        to_base64: to.base64,
        replace: order.replace,
    }
}

fn copy_wish(from: &ByteString, to: &ByteString) -> CopyWish {
    let (from, to) = (place::named(from.as_bytes()), place::named(to.as_bytes()));
    CopyWish {
        from: from.text,
        from_base64: from.base64,
        to: to.text,
        to_base64: to.base64,
        ..CopyWish::default()
    }
}

fn written(done: FileDone) -> Result<Written> {
    Ok(Written {
        bytes: done.bytes.ok_or_else(|| lacking("bytes"))?,
        sha256: done.sha256.ok_or_else(|| lacking("sha256"))?,
        created: done.created.ok_or_else(|| lacking("created"))?,
    })
}

fn copied(told: FileCopied) -> Result<Copied> {
    let skipped = told.skipped.into_iter().map(|skipped| {
        Ok(Skipped { path: skipped.path.as_str().into(), kind: kind(&skipped.kind)? })
    });
    Ok(Copied {
        files: told.files,
        directories: told.directories,
        links: told.links,
        bytes: told.bytes,
        skipped: skipped.collect::<Result<_>>()?,
        skipped_more: told.skipped_more,
    })
}

fn entry(told: FileEntry) -> Result<Entry> {
    Ok(Entry {
        path: place::bytes(told.path, told.path_base64)?.into(),
        kind: kind(&told.kind)?,
        size: told.size,
        mode: u32::from_str_radix(&told.mode, 8).map_err(|_| lacking("permissions"))?,
        modified_ms: told.modified_ms,
        links: told.links,
        target: told.target.as_deref().map(Into::into),
    })
}

fn kind(name: &str) -> Result<EntryKind> {
    EntryKind::ALL
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| lacking("a known kind of file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_of_a_file() {
        let headers = |all: &[(&'static str, &'static str)]| -> HeaderMap {
            all.iter()
                .map(|(name, value)| {
                    (name.parse().unwrap(), reqwest::header::HeaderValue::from_static(value))
                })
                .collect()
        };
        let own = [(MODE, "640"), (MODIFIED, "-5"), ("etag", "\"abc\"")];
        let whole = headers(&[own.as_slice(), &[("content-length", "9")]].concat());
        let read = about(&whole).unwrap();
        assert_eq!((read.size, read.mode, read.modified_ms), (9, 0o640, -5));
        assert_eq!(read.sha256.as_deref(), Some("abc"));
        let part = [("content-length", "2"), ("content-range", "bytes 1-2/9")];
        assert_eq!(about(&headers(&[own.as_slice(), &part].concat())).unwrap().size, 9);
        assert_eq!(about(&headers(&own)).unwrap_err().kind, ErrorKind::Protocol);
    }

    #[test]
    fn an_entry_comes_back_as_it_went() {
        for kind in [EntryKind::File, EntryKind::Link, EntryKind::Device] {
            let it = Entry {
                path: b"a\xff".to_vec().into(),
                kind,
                size: 7,
                mode: 0o640,
                modified_ms: -1,
                links: 2,
                target: Some("there".into()),
            };
            assert_eq!(entry(FileEntry::of_entry(&it)).unwrap(), it);
        }
    }
}
