//! Connections that know of no proxy: they were led here on their way to an address, which stands for a
//! name or for itself.

use crate::admit::{Refusal, admit, meaning};
use crate::answer::{self, Status};
use crate::attempt::Attempt;
use crate::first::is_http;
use crate::gate::Gate;
use crate::through::through;
use cofferdam_core::ConnectionHow;
use cofferdam_core::policy::Asked;
use cofferdam_terminate::HOLDS_BACK;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// How much is read to see whether HTTP is spoken.
const PIECE_BYTES: usize = 4096;

/// Serves one connection.
pub(crate) async fn serve(gate: Arc<Gate>, client: TcpStream) {
    let mut attempt = Attempt::new(&gate, ConnectionHow::Transparent);
    let target = match (gate.original)(&client) {
        // Who connects to the port itself was led nowhere.
        Ok(target) if !target.ip().to_canonical().is_loopback() && target.port() != 0 => target,
        Ok(_) | Err(_) => {
            attempt.refused("it was not led here");
            return answer::reset(client);
        }
    };
    attempt.meant(target);
    let asked = Asked { host: target.ip().into(), port: target.port() };
    let asked = match meaning(&attempt, asked) {
        Ok(asked) => asked,
        Err(why) => {
            attempt.refused(&why);
            return answer::reset(client);
        }
    };
    match admit(&mut attempt, &asked).await {
        Ok(upstream) => through(attempt, client, upstream, &asked).await,
        Err(refusal) => {
            drop(attempt);
            refuse(client, &asked, &refusal, &gate).await;
        }
    }
}

/// Says why to who speaks HTTP, and breaks off others.
async fn refuse(mut client: TcpStream, asked: &Asked, refusal: &Refusal, gate: &Gate) {
    let limits = &gate.limits;
    let mut read = Vec::new();
    let speaks = async {
        while read.len() < limits.first_bytes {
            let mut piece = [0; PIECE_BYTES];
            let length = client.read(&mut piece).await.unwrap_or(0);
            read.extend_from_slice(piece.get(..length).unwrap_or_default());
            match is_http(&read) {
                Some(is_http) => return is_http,
                None if length == 0 => return false,
                None => {}
            }
        }
        false
    };
    let speaks = tokio::time::timeout(limits.farewell_time, speaks).await;
    if let Some(sighting) = gate.look_at(&read, asked) {
        gate.raise(&sighting, asked);
        tokio::time::sleep(HOLDS_BACK).await;
        return answer::reset(client);
    }
    match speaks {
        Ok(true) => {
            let words = answer::http(Status::of(refusal), &answer::explained(asked, refusal));
            answer::farewell(client, &words, limits).await;
        }
        Ok(false) | Err(_) => answer::reset(client),
    }
}
