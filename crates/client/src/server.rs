//! The server itself, runs in sandboxes of their own, and tools.

use crate::Client;
use cofferdam_core::{Result, RunReport};
use cofferdam_session::objects::{HealthReport, RunWish, ToolArguments, ToolList, ToolOutcome};
use reqwest::Method;
use serde_json::{Map, Value};

impl Client {
    /// Whether the server lives.
    pub async fn health(&self) -> Result<HealthReport> {
        self.ask(Method::GET, &["healthz"]).read().await
    }

    /// Whether it can work.
    pub async fn readiness(&self) -> Result<HealthReport> {
        self.ask(Method::GET, &["readyz"]).read().await
    }

    /// What it counts, in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String> {
        let response = self.ask(Method::GET, &["metrics"]).send().await?;
        let text = response.text().await;
        Ok(text.map_err(|cause| crate::answer::Failure::way(self, cause))?)
    }

    /// Runs a command in a fresh sandbox, which is ended on every way out, and says what came of it. It
    /// ends too where this is given up.
    pub async fn run(&self, wish: &RunWish) -> Result<RunReport> {
        self.ask(Method::POST, &["v1", "run"]).object(wish).read().await
    }

    /// The tools of a pack for a model.
    pub async fn tools(&self, pack: &str) -> Result<ToolList> {
        self.ask(Method::GET, &["v1", "tools", pack]).read().await
    }

    /// Calls a tool. Its errors are outcomes.
    pub async fn call(
        &self,
        pack: &str,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolOutcome> {
        let arguments = ToolArguments(arguments);
        self.ask(Method::POST, &["v1", "tools", pack, tool]).object(&arguments).read().await
    }
}
