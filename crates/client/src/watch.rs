//! What happens to files, told by a server.

use crate::sse::Events;
use crate::{Sandbox, place};
use async_trait::async_trait;
use cofferdam_core::files::{ByteString, EventSource, Failure, FileEvent, FileWatch, Watch, Why};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::FileEventReport;
use reqwest::Method;

/// A watch at a server. There is no replay: where the way breaks it ends.
pub(crate) struct ServerWatch {
    events: Events,
}

impl ServerWatch {
    pub(crate) async fn begin(sandbox: &Sandbox, order: &Watch) -> Result<FileWatch> {
        let mut ask = sandbox
            .ask(Method::GET, &["files", "watch"])
            .query("max_directories", order.max_directories)
            .query("max_pending", order.max_pending);
        if order.depth != u32::MAX {
            ask = ask.query("depth", order.depth);
        }
        match order.paths.as_slice() {
            [] => {}
            [one] => ask = ask.path(one.as_bytes()),
            _ => {
                let what = "a server watches one place at a time";
                return Err(Error::new(ErrorKind::Unsupported, what)
                    .hint("Watch a directory that holds all of them."));
            }
        }
        let response = ask.send().await?;
        let events = Events::new(sandbox.client.clone(), response);
        Ok(FileWatch::new(Box::new(Self { events })))
    }
}

#[async_trait]
impl EventSource for ServerWatch {
    async fn next(&mut self) -> Result<Vec<FileEvent>> {
        let Some(event) = self.events.next().await? else {
            return Err(Error::new(ErrorKind::Unavailable, "the server ended the watch")
                .hint("Look at everything again, and watch anew."));
        };
        event.problem()?;
        Ok(vec![happened(event.object()?)?])
    }
}

fn happened(told: FileEventReport) -> Result<FileEvent> {
    let FileEventReport { path, path_base64, from, from_base64, directory, .. } = told;
    let path: ByteString = place::bytes(path, path_base64)?.into();
    let directory = directory.unwrap_or_default();
    Ok(match told.event.as_str() {
        "ready" => FileEvent::Ready { directories: told.directories.unwrap_or_default() },
        "created" => FileEvent::Created { path, directory },
        "modified" => FileEvent::Modified { path },
        "attributes" => FileEvent::Attributes { path, directory },
        "removed" => FileEvent::Removed { path, directory },
        "renamed" => {
            let from = place::bytes(from, from_base64)?.into();
            FileEvent::Renamed { from, to: path, directory }
        }
        "overflow" => FileEvent::Overflow,
        "unwatched" => {
            let detail = told.reason.unwrap_or_default();
            FileEvent::Unwatched { path, failure: Failure { why: Why::Io, detail, errno: 0 } }
        }
        other => {
            let what = format!("the server tells of {other:?}, which nobody knows");
            return Err(Error::new(ErrorKind::Protocol, what));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_comes_back_as_it_went() {
        let path = || ByteString::from(b"a\xff".to_vec());
        let failure = Failure { why: Why::Io, detail: "x".to_owned(), errno: 0 };
        for event in [
            FileEvent::Ready { directories: 3 },
            FileEvent::Created { path: path(), directory: true },
            FileEvent::Modified { path: path() },
            FileEvent::Attributes { path: path(), directory: false },
            FileEvent::Removed { path: path(), directory: true },
            FileEvent::Renamed { from: path(), to: "b".into(), directory: false },
            FileEvent::Overflow,
            FileEvent::Unwatched { path: path(), failure },
        ] {
            assert_eq!(happened(FileEventReport::new("s", &event)).unwrap(), event);
        }
    }
}
