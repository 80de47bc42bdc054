//! What a gate says to its holder, over the control socket.

use cofferdam_core::network::FromGate;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// How much may be left untold to a holder that does not listen. Further news is dropped.
const UNTOLD: usize = 1024;

/// Takes news. What is said first is told first.
#[derive(Clone)]
pub(crate) struct Teller(mpsc::Sender<FromGate>);

impl Teller {
    /// What there is to tell comes out of the receiver.
    pub(crate) fn new() -> (Self, mpsc::Receiver<FromGate>) {
        let (told, untold) = mpsc::channel(UNTOLD);
        (Self(told), untold)
    }

    pub(crate) fn tell(&self, news: FromGate) {
        let _ = self.0.try_send(news);
    }
}

/// Tells the other side of the control socket what there is to tell, as it takes it.
pub(crate) async fn tell(mut told: mpsc::Receiver<FromGate>, to: Arc<UnixStream>) {
    while let Some(news) = told.recv().await {
        let Ok(mut line) = serde_json::to_vec(&news) else { continue };
        line.push(b'\n');
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            if to.writable().await.is_err() {
                return;
            }
            match to.try_write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                // The other side is gone, which ends this gate.
                Err(_) => return,
            }
        }
    }
}
