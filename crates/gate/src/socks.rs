//! The proxy of SOCKS5: connections, by name or address, and nothing else.

use crate::admit::{Refusal, admit, meaning};
use crate::answer;
use crate::attempt::Attempt;
use crate::gate::Gate;
use crate::request::nobody;
use crate::through::through;
use cofferdam_core::ConnectionHow;
use cofferdam_core::policy::{Asked, Host};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The version, as the first byte of each message.
pub(crate) const VERSION: u8 = 5;

/// The way to say who one is that says nothing.
const NO_AUTHENTICATION: u8 = 0;

/// None of the ways that were offered.
const NO_METHOD: u8 = 0xff;

/// The one command that there is.
const CONNECT: u8 = 1;

/// What a request is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Done = 0,
    Failed = 1,
    Denied = 2,
    Unreachable = 4,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

/// Serves one connection, whose first byte was read.
pub(crate) async fn serve(gate: Arc<Gate>, mut client: TcpStream) {
    let limits = gate.limits;
    let mut attempt = Attempt::new(&gate, ConnectionHow::Socks5);
    let asked = match tokio::time::timeout(limits.head_time, greeted(&mut client)).await {
        Ok(Ok(asked)) => asked,
        Ok(Err(refused)) => {
            let nobody = nobody();
            if let Some(sighting) = gate.look_at(&refused.named, &nobody) {
                attempt.alarmed(&sighting, &nobody).await;
                return answer::reset(client);
            }
            attempt.refused(refused.reason);
            return say(client, refused.reply, &limits).await;
        }
        Err(_) => {
            attempt.refused("the request took too long");
            return answer::reset(client);
        }
    };
    let asked = match meaning(&attempt, asked.clone()) {
        Ok(asked) => asked,
        Err(why) => {
            attempt.asks(&asked);
            attempt.refused(&why);
            return say(client, Some(Reply::Denied), &limits).await;
        }
    };
    match admit(&mut attempt, &asked).await {
        Ok(upstream) => {
            if client.write_all(&message(Reply::Done)).await.is_ok() {
                through(attempt, client, upstream, &asked).await;
            }
        }
        Err(refusal) => {
            drop(attempt);
            let reply = match refusal {
                Refusal::Denied(_) => Reply::Denied,
                Refusal::Failed { .. } => Reply::Unreachable,
            };
            say(client, Some(reply), &limits).await;
        }
    }
}

/// Why there is nothing to ask for, and what is said about it.
pub(crate) struct Refused {
    reason: &'static str,
    reply: Option<Reply>,
    /// What was named that is no name of a host.
    named: Vec<u8>,
}

impl From<io::Error> for Refused {
    fn from(_: io::Error) -> Self {
        Self { reason: "the request is cut off", reply: None, named: Vec::new() }
    }
}

/// What is asked for behind the first byte.
pub(crate) async fn greeted(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> Result<Asked, Refused> {
    let mut named = Vec::new();
    let refused = |reason, reply| Err(Refused { reason, reply, named: Vec::new() });
    let mut methods = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return refused("no way without a password was offered", None);
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [version, command, reserved, kind] = head;
    if version != VERSION || reserved != 0 {
        return refused("the request is malformed", Some(Reply::Failed));
    }
    let host = match kind {
        1 => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await?;
            Some(Host::from(IpAddr::from(address)))
        }
        3 => {
            named = vec![0; client.read_u8().await?.into()];
            client.read_exact(&mut named).await?;
            std::str::from_utf8(&named).ok().and_then(|name| name.parse().ok())
        }
        4 => {
            let mut address = [0; 16];
            client.read_exact(&mut address).await?;
            Some(Host::from(IpAddr::from(address)))
        }
        _ => return refused("the kind of address is unknown", Some(Reply::NoSuchAddress)),
    };
    let port = client.read_u16().await?;
    if command != CONNECT {
        return refused("nothing but a connection can be asked for", Some(Reply::NoSuchCommand));
    }
    match host {
        Some(host) if port > 0 => Ok(Asked { host, port }),
        Some(_) | None => {
            let reason = "the host or its port is malformed";
            Err(Refused { reason, reply: Some(Reply::Denied), named })
        }
    }
}

/// A reply. The address in it tells nothing: where the gate dials from is no matter for the inside.
fn message(reply: Reply) -> [u8; 10] {
    [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]
}

async fn say(client: TcpStream, reply: Option<Reply>, limits: &crate::limits::Limits) {
    match reply {
        Some(reply) => answer::farewell(client, &message(reply), limits).await,
        None => answer::farewell(client, &[], limits).await,
    }
}
