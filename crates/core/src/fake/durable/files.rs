//! Files of a durable sandbox in memory.

use super::world::World;
use crate::fake::files::FakeFiles;
use crate::files::{Body, FileService, FileWatch, Reply, Request, Watch};
use crate::{Error, ErrorKind, Result, SandboxId, SandboxStatus};
use async_trait::async_trait;
use std::sync::Arc;

/// The files of one sandbox, as long as it runs.
pub(super) struct DurableFiles {
    pub(super) world: Arc<World>,
    pub(super) id: SandboxId,
}

impl DurableFiles {
    fn running(&self) -> Result<Arc<FakeFiles>> {
        let mut state = self.world.state();
        let sandbox = state.living(&self.id)?;
        match sandbox.status {
            SandboxStatus::Paused => {
                Err(Error::new(ErrorKind::Conflict, format!("sandbox {} is paused", self.id)))
            }
            SandboxStatus::Running | SandboxStatus::Gone => Ok(Arc::clone(&sandbox.files)),
        }
    }
}

#[async_trait]
impl FileService for DurableFiles {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        let files = self.running()?;
        files.call(request, body).await
    }

    async fn watch(&self, order: &Watch) -> Result<FileWatch> {
        let files = self.running()?;
        let (world, id) = (Arc::clone(&self.world), self.id.clone());
        files.watch_until(order, async move {
            let mut changed = world.changed();
            while world.state().status(&id) != SandboxStatus::Gone
                && changed.changed().await.is_ok()
            {}
        })
    }

    async fn open(&self) -> Result<()> {
        self.running().map(drop)
    }
}
