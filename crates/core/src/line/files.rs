//! Connections to file workers that a guest is asked for on its line.

use crate::files::{FileDoor, FileLink, LinkedFiles};
use crate::line::channel::Line;
use crate::line::slot::Accepts;
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use cofferdam_wire::message::{self, FILES_SINCE, Hello, HostOpens};
use std::ffi::{OsStr, OsString};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The name that a workspace has in every sandbox.
const WORKSPACE: &str = "/workspace";

/// The request for a file worker, whose workspace is this directory inside.
pub fn file_request(root: &OsStr) -> HostOpens {
    let names = vec![WORKSPACE.into()];
    HostOpens::Files(Box::new(message::Files { root: root.into(), names }))
}

/// A line that carries descriptors to a guest that serves files.
pub(super) struct FileLine {
    line: Line,
    root: OsString,
}

impl FileLine {
    pub(super) fn new(line: &Line, hello: &Hello, root: &OsStr) -> Result<Self> {
        let refused = |what| Err(Error::new(ErrorKind::Unsupported, what));
        if line.descriptors().is_none() {
            return refused("this sandbox is reached by a stream that carries no descriptors");
        }
        if hello.generation < FILES_SINCE {
            return refused("what is inside this sandbox is too old to serve files");
        }
        Ok(Self { line: line.clone(), root: root.to_owned() })
    }

    pub(super) fn files(self) -> Arc<LinkedFiles<Self>> {
        Arc::new(LinkedFiles::new(self))
    }
}

#[async_trait]
impl FileDoor for FileLine {
    /// The pair is made here, so that what comes from inside is bytes alone and no descriptor.
    async fn connect(&self) -> Result<FileLink> {
        let (ours, theirs) = UnixStream::pair().map_err(|e| {
            Error::new(ErrorKind::Io, "make a connection to the sandbox's files").source(e)
        })?;
        // The answer comes over the connection; nothing may come on the channel.
        let channel = self.line.open_channel(Accepts::Nothing)?;
        channel.send_message(&file_request(&self.root), vec![theirs.into()]).await?;
        FileLink::new(ours, None).await
    }
}
