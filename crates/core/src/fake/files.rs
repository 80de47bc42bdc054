//! Files in memory, which behave as those of a sandbox do.

mod carry;
mod tree;
mod watch;

use super::Fault;
use crate::files::{
    Body, FileEvent, FileService, FileWatch, Reply, Request, Watch, Write, refusal,
};
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use cofferdam_wire::files::Answer;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tree::Tree;
use watch::{FakeWatch, Watcher};

pub(super) use tree::Access;

/// The workspace of one fake sandbox.
#[derive(Debug)]
pub(super) struct FakeFiles {
    tree: Mutex<Tree>,
    watchers: Mutex<Vec<Watcher>>,
}

impl FakeFiles {
    pub(super) fn new(access: Access, faults: BTreeSet<Fault>) -> Self {
        Self { tree: Mutex::new(Tree::new(access, faults)), watchers: Mutex::default() }
    }

    /// The same in a layer over it: what is written to one is not seen in the other.
    pub(super) fn beside(&self) -> Self {
        Self { tree: Mutex::new(self.tree().clone()), watchers: Mutex::default() }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the tree, and tells those who watch it.
    fn change<T>(&self, renames: bool, change: impl FnOnce(&mut Tree) -> T) -> T {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tree = self.tree();
        if watchers.is_empty() {
            return change(&mut tree);
        }
        let before = tree.nodes.clone();
        let done = change(&mut tree);
        let renames = renames && !tree.faults.contains(&Fault::FilesWatchSplitsNames);
        watchers.retain(|watcher| watcher.tell(&before, &tree, renames));
        done
    }

    /// Watches until the sandbox is gone.
    pub(super) fn watch_until(
        &self,
        order: &Watch,
        gone: impl Future<Output = ()> + Send + 'static,
    ) -> Result<FileWatch> {
        let failed = |failure| refusal(&Request::Watch(order.clone()), &failure);
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let (places, known) = self.tree().watched(order).map_err(failed)?;
        let (tells, hears) = mpsc::unbounded_channel();
        let directories = known.len() as u64;
        if tells.send(FileEvent::Ready { directories }).is_ok() {
            watchers.push(Watcher { places, depth: watch::depth(order), tells, known });
        }
        let outlives = self.tree().faults.contains(&Fault::FilesWatchOutlives);
        let gone = async move {
            gone.await;
            if outlives {
                std::future::pending::<()>().await;
            }
        };
        Ok(FileWatch::new(Box::new(FakeWatch { hears, gone: Box::pin(gone) })))
    }

    /// What a command reads there.
    pub(super) fn get(&self, path: &str) -> Option<Vec<u8>> {
        self.tree().file(&path.into()).ok().map(|(_, file)| file.bytes().to_vec())
    }

    /// What a command writes there. Says whether it could.
    pub(super) fn put(&self, path: &str, bytes: &[u8]) -> bool {
        let order = Write { path: path.into(), ..Write::default() };
        self.change(false, |tree| tree.write(&order, bytes).is_ok())
    }

    /// A link that a command makes. Says whether it could.
    pub(super) fn link(&self, path: &str, target: &str) -> bool {
        self.change(false, |tree| tree.link(&path.into(), target.as_bytes()).is_ok())
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
            (Request::ReadMany(order), Body::Sink(sink)) => {
                let (all, bytes) = self.tree().read_many(order);
                sink.write_all(&bytes).await.map_err(io("pass on what was read"))?;
                Ok(Reply { answer: Answer::ReadMany(all), entries: Vec::new() })
            }
            (_, Body::Source(source)) => {
                let mut bytes = Vec::new();
                source.read_to_end(&mut bytes).await.map_err(io("read what is to be written"))?;
                self.change(false, |tree| tree.perform(request, &bytes)).map_err(failed)
            }
            (_, Body::Nothing | Body::Sink(_)) => {
                let renames = matches!(request, Request::Move(_));
                self.change(renames, |tree| tree.perform(request, b"")).map_err(failed)
            }
        }
    }

    async fn watch(&self, order: &Watch) -> Result<FileWatch> {
        self.watch_until(order, std::future::pending())
    }

    async fn open(&self) -> Result<()> {
        Ok(())
    }
}
