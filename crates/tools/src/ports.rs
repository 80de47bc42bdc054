//! Where a server inside is reached, which whoever serves the tools decides.

use async_trait::async_trait;
use cofferdam_core::Result;
use cofferdam_session::Session;

/// Makes a port inside a sandbox reachable to whoever the tools are served to.
#[async_trait]
pub trait Expose: Send + Sync {
    /// An address of the port, as a URL or as host and port. Asked again, it is the same one.
    async fn expose(&self, session: &Session, port: u16) -> Result<String>;
}
