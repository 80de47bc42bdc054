//! Connections that a guest asks for.

use crate::line::channel::{Channel, Received};
use crate::line::slot::Accepts;
use crate::line::table::{MAX_EGRESS, Shared};
use crate::{Duplex, EgressGate, Result};
use cofferdam_wire::message::EgressAnswer;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

/// How much is read from a connection at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Asks the gate, answers, and carries bytes both ways until both sides have ended.
///
/// The guest may send bytes only after the answer.
pub(super) async fn serve(
    shared: Arc<Shared>,
    id: u32,
    gate: Arc<dyn EgressGate>,
    host: String,
    port: u16,
) {
    let channel = Channel::adopt(id, Arc::clone(&shared));
    let connection = match gate.dial(&host, port).await {
        Ok(connection) => connection,
        Err(error) => {
            // The line may be gone; then nobody waits for the answer.
            answer(&channel, EgressAnswer::Refused(error.chain())).await.ok();
            return;
        }
    };
    // ORDER: before the answer, because bytes may follow it at once.
    if let Some(slot) = shared.table().slot(id) {
        slot.accept(Accepts::Data);
    }
    if answer(&channel, EgressAnswer::Connected).await.is_ok() {
        let (read, write) = tokio::io::split(connection);
        tokio::join!(to_guest(&channel, read), from_guest(&channel, write));
    }
}

/// Answers that there are too many connections.
pub(super) async fn refuse(shared: Arc<Shared>, id: u32) {
    let channel = Channel::adopt(id, shared);
    let reason = format!("{MAX_EGRESS} connections are open already");
    answer(&channel, EgressAnswer::Refused(reason)).await.ok();
}

async fn answer(channel: &Channel, answer: EgressAnswer) -> Result<()> {
    channel.send_message(&answer, Vec::new()).await
}

async fn to_guest(channel: &Channel, mut read: ReadHalf<Box<dyn Duplex>>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let len = read.read(&mut buffer).await.unwrap_or(0);
        let bytes = buffer.get(..len).unwrap_or_default();
        if bytes.is_empty() {
            channel.send_end().await.ok();
            return;
        }
        if channel.send_data(bytes).await.is_err() {
            return;
        }
    }
}

async fn from_guest(channel: &Channel, mut write: WriteHalf<Box<dyn Duplex>>) {
    // A peer that takes nothing more does not end the channel: the guest does, and what it sends
    // until then is dropped.
    let mut taken = true;
    while let Ok(Received::Data(bytes)) = channel.receive().await {
        taken = taken && write.write_all(&bytes).await.is_ok();
    }
    write.shutdown().await.ok();
}
