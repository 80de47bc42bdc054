//! What a sandbox may reach, and what became of its connections.

use crate::Sandbox;
use cofferdam_core::Result;
use cofferdam_session::{
    ConnectionList, NetworkReport, PermissionAnswer, PermissionList, PermissionReport,
};
use reqwest::Method;
use serde_json::json;

impl Sandbox {
    /// What it may reach.
    pub async fn network(&self) -> Result<NetworkReport> {
        self.ask(Method::GET, &["network"]).read().await
    }

    /// Makes these rules all there are, and lets a connection that is not allowed wait so long; where no
    /// time is given that stays as it is.
    pub async fn set_network(
        &self,
        allow: &[String],
        deny: &[String],
        ask_ms: Option<u64>,
    ) -> Result<NetworkReport> {
        let wish = json!({ "allow": allow, "deny": deny, "ask_ms": ask_ms });
        self.ask(Method::PUT, &["network"]).object(&wish).read().await
    }

    /// Allows destinations.
    pub async fn allow(&self, rules: &[String]) -> Result<NetworkReport> {
        let wish = json!({ "rules": rules });
        self.ask(Method::POST, &["network", "allow"]).object(&wish).read().await
    }

    /// Denies destinations, whatever allows them.
    pub async fn deny(&self, rules: &[String]) -> Result<NetworkReport> {
        let wish = json!({ "rules": rules });
        self.ask(Method::POST, &["network", "deny"]).object(&wish).read().await
    }

    /// What waits to be allowed, and what did so lately.
    pub async fn approvals(&self) -> Result<PermissionList> {
        self.ask(Method::GET, &["approvals"]).read().await
    }

    /// Answers something that waits, by its id.
    pub async fn answer(&self, id: &str, answer: PermissionAnswer) -> Result<PermissionReport> {
        let wish = json!({ "answer": answer });
        self.ask(Method::POST, &["approvals", id]).object(&wish).read().await
    }

    /// What became of its connections, from this place on: 0, or what an earlier answer told.
    pub async fn connections(&self, after: u64) -> Result<ConnectionList> {
        self.ask(Method::GET, &["audit"]).query("after", after).read().await
    }
}
