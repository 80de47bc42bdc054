//! The way out, as the contract sees it.

use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Decides on the connections that a guest asks for, and makes them. Lives on the host.
#[async_trait]
pub trait EgressGate: Send + Sync {
    /// Connects to `host` at `port`, or says why not.
    async fn dial(&self, host: &str, port: u16) -> Result<Box<dyn Duplex>>;
}

/// The gate of a sandbox without a way out: refuses everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGate;

#[async_trait]
impl EgressGate for NoGate {
    async fn dial(&self, host: &str, port: u16) -> Result<Box<dyn Duplex>> {
        Err(Error::new(ErrorKind::Denied, format!("{host}:{port} is out of reach: no way out")))
    }
}
