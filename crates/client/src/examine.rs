//! What a sandbox uses, and what would stop an attack from inside it.

use crate::Sandbox;
use cofferdam_core::{ProbeReport, Result};
use cofferdam_session::MetricsReport;
use reqwest::Method;

impl Sandbox {
    /// What it uses now, as the host sees it.
    pub async fn metrics(&self) -> Result<MetricsReport> {
        self.ask(Method::GET, &["metrics"]).read().await
    }

    /// What came of attacks from inside a sandbox that is made as this one is. Takes some seconds.
    pub async fn prove(&self) -> Result<ProbeReport> {
        self.ask(Method::GET, &["proof"]).read().await
    }
}
