//! Connections to ports inside.

use crate::check::{Stop, Verdict, fail, same};
use crate::fixture::Action;
use crate::stage::{Stage, wait_for};
use cofferdam_core::{ErrorKind, PortStream, Result};
use std::net::{Ipv4Addr, TcpListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Below the ports that the kernel gives away.
const PORT: u16 = 28_211;

/// More than a connection holds on its way.
const MANY_BYTES: usize = 3 << 20;

pub(crate) async fn bytes_survive(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    let mut echo = stage.spawn(&guest, &Action::EchoAt(PORT)).await?;
    wait_for(&mut echo, b"ready").await?;
    let every: Vec<u8> = (0..=u8::MAX).cycle().take(MANY_BYTES).collect();
    for bytes in [every.as_slice(), b"again"] {
        let stream = known(guest.connect(PORT).await)?;
        let (mut read, mut write) = tokio::io::split(stream);
        let mut back = Vec::new();
        let sent = async {
            write.write_all(bytes).await?;
            write.shutdown().await
        };
        let (sent, came) = tokio::join!(sent, read.read_to_end(&mut back));
        if let Err(error) = sent.and(came) {
            return fail(format!("the connection broke: {error}"));
        }
        same("whether every byte came back", &(back == bytes), &true)?;
    }
    echo.killer.kill();
    Ok(())
}

pub(crate) async fn nobody_listens_is_said(stage: &mut Stage) -> Verdict {
    let guest = stage.guest().await?;
    refused(known_or_refused(guest.connect(PORT).await)?)
}

pub(crate) async fn are_of_the_sandbox(stage: &mut Stage) -> Verdict {
    let here = |error| Stop::Failed(format!("listen on the host: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(here)?;
    let port = listener.local_addr().map_err(here)?.port();
    let guest = stage.guest().await?;
    refused(known_or_refused(guest.connect(port).await)?)
}

fn refused(answer: Result<PortStream>) -> Verdict {
    match answer {
        Ok(_) => fail("a connection was made"),
        Err(error) => same("the kind of the refusal", &error.kind, &ErrorKind::Unavailable),
    }
}

fn known(answer: Result<PortStream>) -> Result<PortStream, Stop> {
    Ok(known_or_refused(answer)??)
}

/// Skips where the backend has no way to ports.
fn known_or_refused(answer: Result<PortStream>) -> Result<Result<PortStream>, Stop> {
    match answer {
        Err(error) if error.kind == ErrorKind::Unsupported => {
            Err(Stop::Skipped("the backend connects to no ports".to_owned()))
        }
        other => Ok(other),
    }
}
