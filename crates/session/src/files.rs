//! The files of a session.

use crate::answer::{CALL_LIMIT, within};
use crate::carries::{self, Begun, Which};
use crate::outside::Outside;
use crate::ready::ATTEMPTS;
use crate::session::Session;
use crate::watch::SessionWatch;
use async_trait::async_trait;
use cofferdam_core::files::{
    Answer, Body, CarryEnd, FileService, FileWatch, Reply, Request, Watch, is_answer,
};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

impl Session {
    /// The files of its workspace. Each request resumes a session that sleeps and recovers one that
    /// is lost; between the first one and the drop of these files it does not fall asleep.
    pub fn files(&self) -> Files {
        let (present, begun) = (Mutex::default(), Mutex::default());
        Files::new(Arc::new(SessionFiles { session: self.clone(), present, begun }))
    }
}

/// Files of whichever sandbox is the present one.
struct SessionFiles {
    session: Session,
    /// Those of the sandbox of this incarnation.
    present: Mutex<Option<(u32, Files)>>,
    /// The carries of these files whose end is not known, by name.
    begun: Mutex<BTreeMap<String, Begun>>,
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
                    within(CALL_LIMIT, "find the files of a sandbox", files).await?
                }
            };
            let open = files.service().open();
            match within(CALL_LIMIT, "reach the files of a sandbox", open).await {
                Ok(()) => {
                    if self.known(ready.incarnation).is_none() {
                        self.put_right(&files).await;
                        self.remember(ready.incarnation, &files);
                    }
                    return Ok((ready.incarnation, files));
                }
                // It fell asleep or was lost since.
                Err(e) if is_of_the_sandbox(e.kind) => last = Some(e),
                Err(e) => return Err(e),
            }
            self.session.settle().await?;
        }
        Err(last.unwrap_or_else(|| Error::new(ErrorKind::Unavailable, "reach the files")))
    }

    /// What others left who were killed is put right before anything else is asked of a sandbox.
    async fn put_right(&self, files: &Files) {
        let places = &self.session.sessions.0.places;
        carries::put_right(places, &self.session.id, files.service().as_ref(), Which::Abandoned)
            .await;
    }

    /// Carries something out, which is noted until its end is known.
    async fn carry(
        &self,
        service: &dyn FileService,
        (request, name): (&Request, &str),
        body: Body<'_>,
    ) -> Result<Reply> {
        let begun = carries::begin(&self.session.sessions.0.places, &self.session.id, name)?;
        self.begun().insert(name.to_owned(), begun);
        let answer = service.call(request, body).await;
        match &answer {
            Ok(_) => self.ended(name),
            // It changed nothing, unless something could not be taken back.
            Err(error) if is_answer(request, error) => {
                if carries::recover(service, name).await {
                    self.ended(name);
                }
            }
            // Whoever asks now what has become of it asks by this way, too.
            Err(_) => {}
        }
        answer
    }

    fn ended(&self, name: &str) {
        if let Some(begun) = self.begun().remove(name) {
            begun.ended();
        }
    }

    fn begun(&self) -> MutexGuard<'_, BTreeMap<String, Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (_, files) = self.present().await?;
        let _underway = changes_files(request).then(|| self.session.begin_outside(Outside::Files));
        // ORDER: only the connection is tried again; a request that was sent may have been done.
        let service = files.service();
        if let Request::Carry(order) = request {
            return self.carry(service.as_ref(), (request, &order.name), body).await;
        }
        let reply = service.call(request, body).await?;
        if let (Request::Recover(order), Answer::Recovered(end)) = (request, &reply.answer)
            && *end != CarryEnd::Busy
        {
            self.ended(&order.name);
        }
        Ok(reply)
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
