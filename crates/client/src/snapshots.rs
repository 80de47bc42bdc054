//! Points that somebody named.

use crate::upload::{Upload, save};
use crate::{Sandbox, layers::lacking, upload};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_core::Result;
use cofferdam_session::objects::{SnapshotList, SnapshotWish};
use cofferdam_session::{SnapshotExported, SnapshotImported, SnapshotReport, UndoReport};
use reqwest::Method;
use tokio::io::{AsyncRead, AsyncWrite};

/// What is in an exported snapshot and what was left out, as an object in base64.
const EXPORTED: &str = "cofferdam-exported";

impl Sandbox {
    /// Keeps what it changed in its workspace as it is now.
    pub async fn snapshot(&self, label: Option<String>) -> Result<SnapshotReport> {
        self.ask(Method::POST, &["snapshots"]).object(&SnapshotWish { label }).read().await
    }

    /// Its snapshots, oldest first.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotReport>> {
        Ok(self.ask(Method::GET, &["snapshots"]).read::<SnapshotList>().await?.snapshots)
    }

    /// Puts its workspace back to a snapshot, by number or label.
    pub async fn restore(&self, snapshot: &str) -> Result<UndoReport> {
        self.ask(Method::POST, &["snapshots", snapshot, "restore"]).read().await
    }

    /// Removes a snapshot.
    pub async fn remove_snapshot(&self, snapshot: &str) -> Result<SnapshotReport> {
        self.ask(Method::DELETE, &["snapshots", snapshot]).read().await
    }

    /// Writes a snapshot as one file, and says what is in it. What breaks off is an error, and no snapshot.
    pub async fn export_snapshot(
        &self,
        snapshot: &str,
        sink: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<SnapshotExported> {
        let response = self.ask(Method::GET, &["snapshots", snapshot, "export"]).send().await?;
        let told = response.headers().get(EXPORTED).map(|told| told.as_bytes().to_vec());
        let told = told.and_then(|told| URL_SAFE_NO_PAD.decode(told).ok());
        let told = told.and_then(|told| serde_json::from_slice(&told).ok());
        save(&self.client, response, sink).await?;
        told.ok_or_else(|| lacking(EXPORTED))
    }

    /// Makes a snapshot of an exported one, all of it or nothing.
    pub async fn import_snapshot(
        &self,
        source: &mut (dyn AsyncRead + Send + Unpin),
        label: Option<String>,
    ) -> Result<SnapshotImported> {
        let ask = self.ask(Method::POST, &["snapshots", "import"]).perhaps("label", label);
        let Upload { answer, .. } = upload::send(ask, "application/octet-stream", source).await?;
        upload::object(&self.client, answer).await
    }
}
