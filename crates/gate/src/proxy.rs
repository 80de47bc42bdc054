//! The one port of the proxy: which protocol is spoken is told by the first byte.

use crate::attempt::Attempt;
use crate::gate::Gate;
use crate::{answer, http, socks};
use cofferdam_core::ConnectionHow;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Serves one connection.
pub(crate) async fn serve(gate: Arc<Gate>, mut client: TcpStream) {
    match tokio::time::timeout(gate.limits.head_time, client.read_u8()).await {
        Ok(Ok(socks::VERSION)) => socks::serve(gate, client).await,
        Ok(Ok(byte)) if byte.is_ascii_alphabetic() => http::serve(gate, client, vec![byte]).await,
        Ok(Ok(_)) => {
            let mut attempt = Attempt::new(&gate, ConnectionHow::Http);
            attempt.refused("neither HTTP nor SOCKS5 is spoken");
            answer::reset(client);
        }
        // Nothing was asked for: there is nothing to write down.
        Ok(Err(_)) | Err(_) => answer::reset(client),
    }
}
