//! Secrets of a caller: their names, and changes of them.

use crate::Client;
use cofferdam_core::Result;
use cofferdam_core::secret::{SecretName, SecretValue};
use cofferdam_session::{SecretList, SecretReport};
use reqwest::Method;

impl Client {
    /// The caller's secrets by name. No value is ever told.
    pub async fn secrets(&self) -> Result<Vec<SecretReport>> {
        let listed: SecretList = self.ask(Method::GET, &["v1", "secrets"]).read().await?;
        Ok(listed.secrets)
    }

    /// Adds a secret, or gives one that is there another value. What is sent on the way is not overwritten
    /// in memory.
    pub async fn put_secret(&self, name: &SecretName, value: &SecretValue) -> Result<SecretReport> {
        let ask = self.ask(Method::PUT, &["v1", "secrets", name.as_str()]);
        ask.body("application/octet-stream", value.expose().to_vec()).read().await
    }

    /// Removes a secret.
    pub async fn remove_secret(&self, name: &SecretName) -> Result<()> {
        self.ask(Method::DELETE, &["v1", "secrets", name.as_str()]).done().await
    }
}
