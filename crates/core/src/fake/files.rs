//! Files in memory, which behave as those of a sandbox do.

mod tree;

use super::Fault;
use crate::files::{Body, FileService, Reply, Request, Write, refusal};
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use cofferdam_wire::files::Answer;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tree::Tree;

pub(super) use tree::Access;

/// The workspace of one fake sandbox.
#[derive(Debug)]
pub(super) struct FakeFiles {
    tree: Mutex<Tree>,
}

impl FakeFiles {
    pub(super) fn new(access: Access, faults: BTreeSet<Fault>) -> Self {
        Self { tree: Mutex::new(Tree::new(access, faults)) }
    }

    /// The same in a layer over it: what is written to one is not seen in the other.
    pub(super) fn beside(&self) -> Self {
        Self { tree: Mutex::new(self.tree().clone()) }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a command reads there.
    pub(super) fn get(&self, path: &str) -> Option<Vec<u8>> {
        self.tree().file(&path.into()).ok().map(|(_, file)| file.bytes().to_vec())
    }

    /// What a command writes there. Says whether it could.
    pub(super) fn put(&self, path: &str, bytes: &[u8]) -> bool {
        let order = Write { path: path.into(), ..Write::default() };
        self.tree().write(&order, bytes).is_ok()
    }

    /// A link that a command makes. Says whether it could.
    pub(super) fn link(&self, path: &str, target: &str) -> bool {
        self.tree().link(&path.into(), target.as_bytes()).is_ok()
    }
}

#[async_trait]
impl FileService for FakeFiles {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        let failed = |failure| refusal(request, &failure);
        let io = |what| move |e| Error::new(ErrorKind::Io, what).source(e);
        match (request, body) {
            (Request::Read(order), Body::Sink(sink)) => {
                let (read, bytes) = self.tree().read(order).map_err(failed)?;
                sink.write_all(&bytes).await.map_err(io("pass on what was read"))?;
                Ok(Reply { answer: Answer::Read(read), entries: Vec::new() })
            }
            (_, Body::Source(source)) => {
                let mut bytes = Vec::new();
                source.read_to_end(&mut bytes).await.map_err(io("read what is to be written"))?;
                self.tree().perform(request, &bytes).map_err(failed)
            }
            (_, Body::Nothing | Body::Sink(_)) => self.tree().perform(request, b"").map_err(failed),
        }
    }

    async fn open(&self) -> Result<()> {
        Ok(())
    }
}
