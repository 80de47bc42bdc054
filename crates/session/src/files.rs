//! The files of a session.

use crate::answer::{CALL_LIMIT, within};
use crate::outside::Outside;
use crate::ready::ATTEMPTS;
use crate::session::Session;
use crate::watch::SessionWatch;
use async_trait::async_trait;
use cofferdam_core::files::{Body, FileService, FileWatch, Reply, Request, Watch};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use std::sync::{Arc, Mutex, PoisonError};

impl Session {
    /// The files of its workspace. Each request resumes a session that sleeps and recovers one that
    /// is lost; between the first one and the drop of these files it does not fall asleep.
    pub fn files(&self) -> Files {
        Files::new(Arc::new(SessionFiles { session: self.clone(), present: Mutex::default() }))
    }
}

/// Files of whichever sandbox is the present one.
struct SessionFiles {
    session: Session,
    /// Those of the sandbox of this incarnation.
    present: Mutex<Option<(u32, Files)>>,
}

impl SessionFiles {
    /// The files of the present sandbox, with a connection, and which sandbox that is.
    async fn present(&self) -> Result<(u32, Files)> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let ready = self.session.ready().await?;
            let known = self.known(ready.incarnation);
            let files = match known {
                Some(files) => files,
                None => {
                    let files = ready.backend.files(&ready.record);
                    let files = within(CALL_LIMIT, "find the files of a sandbox", files).await?;
                    self.remember(ready.incarnation, &files);
                    files
                }
            };
            let open = files.service().open();
            match within(CALL_LIMIT, "reach the files of a sandbox", open).await {
                Ok(()) => return Ok((ready.incarnation, files)),
                // It fell asleep or was lost since.
                Err(e) if is_of_the_sandbox(e.kind) => last = Some(e),
                Err(e) => return Err(e),
            }
            self.session.settle().await?;
        }
        Err(last.unwrap_or_else(|| Error::new(ErrorKind::Unavailable, "reach the files")))
    }

    fn known(&self, incarnation: u32) -> Option<Files> {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.as_ref().filter(|(of, _)| *of == incarnation).map(|(_, files)| files.clone())
    }

    fn remember(&self, incarnation: u32, files: &Files) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        *present = Some((incarnation, files.clone()));
    }
}

/// Whether an error says that a sandbox fell asleep or was lost.
pub(crate) fn is_of_the_sandbox(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Unavailable)
}

/// Whether a request may leave another tree than it finds.
fn changes_files(request: &Request) -> bool {
    match request {
        Request::Write(_)
        | Request::Append(_)
        | Request::MakeDirectory { .. }
        | Request::Move(_)
        | Request::Copy(_)
        | Request::Remove(_)
        | Request::SetMode { .. }
        | Request::Carry(_)
        | Request::Recover(_)
        | Request::CopyTree(_) => true,
        Request::Read(_)
        | Request::Stat { .. }
        | Request::List(_)
        | Request::ReadMany(_)
        | Request::Watch(_) => false,
    }
}

#[async_trait]
impl FileService for SessionFiles {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        let files = self.present().await?.1;
        let _underway = changes_files(request).then(|| self.session.begin_outside(Outside::Files));
        // ORDER: only the connection is tried again; a request that was sent may have been done.
        files.service().call(request, body).await
    }

    async fn watch(&self, order: &Watch) -> Result<FileWatch> {
        let (incarnation, files) = self.present().await?;
        let watch = files.watch(order).await?;
        let session = self.session.clone();
        Ok(FileWatch::new(Box::new(SessionWatch { session, incarnation, watch })))
    }

    async fn open(&self) -> Result<()> {
        self.present().await.map(drop)
    }
}
