//! The proxy of HTTP: CONNECT, and plain requests.

use crate::admit::{Refusal, admit, meaning};
use crate::answer::{self, Status};
use crate::attempt::Attempt;
use crate::first::head_end;
use crate::gate::Gate;
use crate::limits::Limits;
use crate::request::{self, Bad, Request, To, Wanted};
use crate::through::{request_through, through};
use cofferdam_core::ConnectionHow;
use cofferdam_core::policy::{Asked, Decision};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How much is read at once.
const PIECE_BYTES: usize = 4096;

/// Serves one request of one connection, whose first bytes were read.
pub(crate) async fn serve(gate: Arc<Gate>, mut client: TcpStream, mut read: Vec<u8>) {
    let limits = gate.limits;
    let mut attempt = Attempt::new(&gate, ConnectionHow::Http);
    let head = tokio::time::timeout(limits.head_time, head(&mut client, &mut read, &limits)).await;
    let wanted = match head {
        Ok(Ok(end)) => request::read(read.get(..end).unwrap_or_default(), To::Proxy, &limits)
            .map(|wanted| (wanted, read.split_off(end)))
            .map_err(|bad| {
                (if bad.is_elsewhere { Status::Denied } else { Status::Malformed }, bad)
            }),
        Ok(Err(refused)) => Err(refused),
        Err(_) => Err((Status::Late, "the head of the request took too long".into())),
    };
    match wanted {
        Err((status, bad)) => {
            let seems = request::seems_for(&read);
            if let Some(sighting) = gate.look_at(&read, &seems) {
                attempt.alarmed(&sighting, &seems).await;
                return answer::reset(client);
            }
            attempt.refused(&bad.reason);
            drop(attempt);
            let words = answer::http(status, &format!("the request is refused: {}\n", bad.reason));
            answer::farewell(client, &words, &limits).await;
        }
        Ok((Wanted::Tunnel(asked), rest)) => {
            attempt.comes(ConnectionHow::Connect);
            tunnel(attempt, client, asked, &rest).await;
        }
        Ok((Wanted::Answer(request), rest)) => {
            // Nothing is put into what is not encrypted, so that it is for nobody, allowed or not.
            if let Some(sighting) = gate.look_at(&read, &request.asked) {
                attempt.asks(&request.asked);
                attempt.alarmed(&sighting, &request.asked).await;
                return answer::reset(client);
            }
            plain(attempt, client, request, &rest).await;
        }
    }
}

/// Reads to the end of a head, and returns where that is.
async fn head(
    client: &mut TcpStream,
    read: &mut Vec<u8>,
    limits: &Limits,
) -> Result<usize, (Status, Bad)> {
    for _ in 0..limits.pieces {
        match head_end(read) {
            Ok(Some(end)) if end <= limits.head_bytes => return Ok(end),
            Ok(None) if read.len() < limits.head_bytes => {}
            Ok(_) => {
                return Err((Status::TooLarge, "the head of the request is too long".into()));
            }
            Err(bad) => return Err((Status::Malformed, bad)),
        }
        let mut piece = [0; PIECE_BYTES];
        match client.read(&mut piece).await {
            Ok(length) if length > 0 => {
                read.extend_from_slice(piece.get(..length).unwrap_or_default());
            }
            Ok(_) | Err(_) => {
                return Err((Status::Malformed, "the head of the request is cut off".into()));
            }
        }
    }
    Err((Status::TooLarge, "the head of the request came in too many pieces".into()))
}

async fn tunnel(mut attempt: Attempt, mut client: TcpStream, asked: Asked, rest: &[u8]) {
    if !rest.is_empty() {
        let bad = "something follows a CONNECT before it was answered";
        return malformed(attempt, client, &asked, bad).await;
    }
    let asked = match meaning(&attempt, asked.clone()) {
        Ok(asked) => asked,
        Err(why) => return malformed(attempt, client, &asked, &why).await,
    };
    match admit(&mut attempt, &asked).await {
        Ok(upstream) => {
            if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_ok() {
                through(attempt, client, upstream, &asked).await;
            }
        }
        Err(refusal) => refuse(attempt, client, &asked, &refusal).await,
    }
}

async fn plain(mut attempt: Attempt, client: TcpStream, request: Request, rest: &[u8]) {
    let asked = match meaning(&attempt, request.asked.clone()) {
        Ok(asked) if asked == request.asked => asked,
        Ok(asked) => {
            let why = format!("the address stands for {}: ask for that", asked.host);
            return malformed(attempt, client, &request.asked, &why).await;
        }
        Err(why) => return malformed(attempt, client, &request.asked, &why).await,
    };
    match admit(&mut attempt, &asked).await {
        Ok(upstream) => request_through(attempt, client, upstream, &request, rest).await,
        Err(refusal) => refuse(attempt, client, &asked, &refusal).await,
    }
}

async fn refuse(attempt: Attempt, client: TcpStream, asked: &Asked, refusal: &Refusal) {
    let limits = attempt.gate.limits;
    drop(attempt);
    let words = answer::http(Status::of(refusal), &answer::explained(asked, refusal));
    answer::farewell(client, &words, &limits).await;
}

async fn malformed(mut attempt: Attempt, client: TcpStream, asked: &Asked, why: &str) {
    attempt.asks(asked);
    attempt.refused(why);
    let limits = attempt.gate.limits;
    drop(attempt);
    let decision =
        Decision { allowed: false, rule: None, reason: Some(why.to_owned()), remedy: None };
    let words = answer::explained(asked, &Refusal::Denied(decision));
    answer::farewell(client, &answer::http(Status::Malformed, &words), &limits).await;
}
