//! Connections to ports inside a session's sandbox.

use crate::answer::{CALL_LIMIT, within};
use crate::files::is_of_the_sandbox;
use crate::ready::ATTEMPTS;
use crate::session::Session;
use cofferdam_core::{Error, ErrorKind, PortStream, Result};

impl Session {
    /// Connects to a port of the sandbox's own loopback: what listens there is reached, whether it
    /// listens on one loopback address or on all addresses. The session is in use until the
    /// connection is dropped.
    ///
    /// A sandbox that sleeps is resumed, one that is lost is recovered, though servers in it are gone
    /// then. It is unavailable where nobody listens.
    pub async fn connect(&self, port: u16) -> Result<PortStream> {
        if port == 0 {
            return Err(Error::new(ErrorKind::Usage, "no program listens on port 0")
                .hint("Use a port from 1 to 65535."));
        }
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let ready = self.ready().await?;
            let connect = ready.backend.connect(&ready.record, port);
            match within(CALL_LIMIT, "connect to a port of a sandbox", connect).await {
                Ok(link) => return link.connected().await,
                // It fell asleep or was lost since.
                Err(error) if is_of_the_sandbox(error.kind) => last = Some(error),
                Err(error) => return Err(error),
            }
            self.settle().await?;
        }
        Err(last.unwrap_or_else(|| Error::new(ErrorKind::Unavailable, "reach the sandbox")))
    }
}
