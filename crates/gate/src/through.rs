//! A connection that was admitted: its first bytes are checked, then all are carried.

use crate::admit::Refusal;
use crate::answer::{self, Status};
use crate::attempt::Attempt;
use crate::carry::{Broken, Carrier, Cut, Way};
use crate::first::{self, First};
use crate::gate::Gate;
use crate::limits::Limits;
use crate::request::{Bad, Request};
use crate::{hello, secrets};
use cofferdam_core::policy::{Asked, Decision, Host};
use cofferdam_terminate::Sighting;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

/// How a connection ended.
enum End {
    /// As its two sides wanted.
    Done,
    /// One of them broke off, and the other has to know.
    Broken,
    /// By the gate, for it took too long.
    Cut(Cut),
    /// Not at all yet: these first bytes are of TLS, to a host that has a secret.
    Secret(Vec<u8>),
    /// By the gate, for what was seen on its way.
    Alarm(Sighting),
    /// By the gate, for what its first bytes are.
    Refused {
        /// What is wrong with them.
        bad: Bad,
        /// Whether they may be of HTTP, so that words are understood.
        may_speak_http: bool,
        /// What they are.
        read: Vec<u8>,
    },
}

/// Carries between the two, once the first bytes have been found to name nobody but who was asked for.
/// One that was asked for by its address may name anybody.
pub(crate) async fn through(
    mut attempt: Attempt,
    mut client: TcpStream,
    mut upstream: TcpStream,
    asked: &Asked,
) {
    let counts = attempt.counts.clone();
    let limits = attempt.gate.limits;
    let end = {
        let carrier = Carrier::over(&counts, limits).watching(attempt.gate.watch(asked));
        let (inside, outside) = (client.split(), upstream.split());
        let end = tokio::select! {
            end = checked(&carrier, inside, outside, asked, &attempt.gate) => end,
            cut = carrier.cut() => End::Cut(cut),
        };
        let refused = |bad| End::Refused { bad, may_speak_http: true, read: Vec::new() };
        let end = carrier.bad().map_or(end, refused);
        carrier.seen().map_or(end, End::Alarm)
    };
    match end {
        End::Done => {}
        End::Secret(read) => secrets::put_in(attempt, (client, read), upstream, asked).await,
        End::Alarm(sighting) => {
            attempt.alarmed(&sighting, asked).await;
            reset_both(client, upstream);
        }
        End::Broken => reset_both(client, upstream),
        End::Cut(cut) => {
            attempt.ended(cut.reason());
            reset_both(client, upstream);
        }
        End::Refused { bad, may_speak_http, read } => {
            if let Some(sighting) = attempt.gate.look_at(&read, asked) {
                attempt.alarmed(&sighting, asked).await;
                return reset_both(client, upstream);
            }
            attempt.refused(&bad.reason);
            answer::reset(upstream);
            let has_heard = counts.down.load(Ordering::Relaxed) > 0;
            match may_speak_http && !has_heard {
                true => explain(client, asked, bad, &limits).await,
                false => answer::reset(client),
            }
        }
    }
}

/// Passes one request on, which was read already, and the answer back.
pub(crate) async fn request_through(
    mut attempt: Attempt,
    mut client: TcpStream,
    mut upstream: TcpStream,
    request: &Request,
    read: &[u8],
) {
    let counts = attempt.counts.clone();
    let end = {
        let watch = attempt.gate.watch(&request.asked);
        let carrier = Carrier::over(&counts, attempt.gate.limits).watching(watch);
        let (mut client_read, mut client_write) = client.split();
        let (mut upstream_read, mut upstream_write) = upstream.split();
        let up = pass(&carrier, request, read, &mut client_read, &mut upstream_write);
        let down = carrier.carry(Way::Down, &mut upstream_read, &mut client_write);
        let end = tokio::select! {
            end = both(up, down, Until::Answered) => end,
            cut = carrier.cut() => {
                attempt.ended(cut.reason());
                End::Broken
            }
        };
        carrier.seen().map_or(end, End::Alarm)
    };
    match end {
        End::Alarm(sighting) => {
            attempt.alarmed(&sighting, &request.asked).await;
            reset_both(client, upstream);
        }
        End::Broken => reset_both(client, upstream),
        End::Done | End::Cut(_) | End::Secret(_) | End::Refused { .. } => {}
    }
}

async fn checked<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    carrier: &Carrier<'_>,
    (mut inside_read, mut inside_write): (R, W),
    (mut outside_read, mut outside_write): (R, W),
    asked: &Asked,
    gate: &Gate,
) -> End {
    let limits = &gate.limits;
    let mut read = Vec::new();
    let down = carrier.carry(Way::Down, &mut outside_read, &mut inside_write);
    let mut down = std::pin::pin!(down);
    let first = match &asked.host {
        Host::Address(_) => Ok(First::Pass),
        Host::Name(_) => tokio::select! {
            first = first::look(&mut inside_read, &mut read, asked, limits) => first,
            // The server was done before anything was said to it.
            answered = &mut down => return match answered {
                Ok(()) => End::Done,
                Err(_) => End::Broken,
            },
        },
    };
    match first {
        Err(bad) => {
            let may_speak_http = first::is_http(&read) != Some(false);
            End::Refused { bad, may_speak_http, read }
        }
        Ok(First::Request(request, head_bytes)) => {
            let rest = read.get(head_bytes..).unwrap_or_default();
            let up = pass(carrier, &request, rest, &mut inside_read, &mut outside_write);
            both(up, down, Until::Answered).await
        }
        Ok(First::Pass) if gate.puts_in(asked) && hello::is_whole(&read) => End::Secret(read),
        Ok(First::Pass | First::Nothing) => {
            // Who said nothing asked for nothing, whatever the server says to that.
            let may_be_request = !read.is_empty() && !hello::is_whole(&read);
            if matches!(asked.host, Host::Name(_)) && may_be_request {
                carrier.takes_for_no_request(asked);
            }
            let up = async {
                carrier.send(Way::Up, &mut outside_write, &read).await?;
                carrier.carry(Way::Up, &mut inside_read, &mut outside_write).await
            };
            both(up, down, Until::BothEnded).await
        }
    }
}

/// When a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// When both ways have ended.
    BothEnded,
    /// When the way down has.
    Answered,
}

/// Waits for both ways. Where the outside takes no more, it may still have something to say.
async fn both(
    up: impl Future<Output = Result<(), Broken>>,
    down: impl Future<Output = Result<(), Broken>>,
    until: Until,
) -> End {
    let (mut up, mut down) = (std::pin::pin!(up), std::pin::pin!(down));
    let whole = tokio::select! {
        sent = &mut up => match sent {
            Err(Broken::From | Broken::Watched) => false,
            Ok(()) | Err(Broken::To) => down.await.is_ok(),
        },
        answered = &mut down => match (answered, until) {
            (Ok(()), Until::Answered) => true,
            (Ok(()), Until::BothEnded) => up.await.is_ok(),
            (Err(_), _) => false,
        },
    };
    if whole { End::Done } else { End::Broken }
}

/// Breaks off both sides: an end would be taken for the end of what was sent.
fn reset_both(client: TcpStream, upstream: TcpStream) {
    answer::reset(client);
    answer::reset(upstream);
}

/// Passes a request on and no byte more: what follows it from inside is read and dropped.
async fn pass(
    carrier: &Carrier<'_>,
    request: &Request,
    read: &[u8],
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<(), Broken> {
    let most = usize::try_from(request.body_bytes).unwrap_or(usize::MAX);
    let body = read.get(..read.len().min(most)).unwrap_or_default();
    // As one piece: where something in the body must not go, the head does not either.
    carrier.send(Way::Up, to, &[&request.head, body].concat()).await?;
    let left = request.body_bytes.saturating_sub(body.len() as u64);
    if carrier.carry_some(Way::Up, from, to, left).await? > 0 {
        // The body was cut off, and whoever waits for the rest of it waits in vain.
        return Err(Broken::From);
    }
    let mut dropped = [0; 4096];
    while from.read(&mut dropped).await.map_err(|_| Broken::From)? > 0 {}
    Ok(())
}

/// Says why to who speaks HTTP.
async fn explain(client: TcpStream, asked: &Asked, bad: Bad, limits: &Limits) {
    let status = match bad.is_elsewhere {
        true => Status::Denied,
        false => Status::Malformed,
    };
    let reason = Some(bad.reason);
    let refusal = Refusal::Denied(Decision { allowed: false, rule: None, reason, remedy: None });
    let words = answer::http(status, &answer::explained(asked, &refusal));
    answer::farewell(client, &words, limits).await;
}
