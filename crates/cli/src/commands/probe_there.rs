//! `cofferdam probe` with a server: attacks on a sandbox as it makes them.

use super::probe;
use crate::args::{ProbeArgs, VariableOptions};
use crate::door::{Order, spec};
use crate::listen::{ENDING, Listening};
use crate::{report, sessions};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::SessionId;
use cofferdam_session::objects::SandboxWish;
use std::time::Duration;

/// How long the sandbox that tells what is attacked outlives a caller of whom nothing is heard any more.
const LEASE: Duration = Duration::from_secs(600);

/// Has the server prove what holds in a sandbox of these options, and returns 0 only if all that counts does.
///
/// The server attacks one that is made as another is. So there is one for as long as this takes, in which nothing
/// runs.
pub(super) fn perform(args: &ProbeArgs) -> Result<u8> {
    let wish = spec(&args.policy, &VariableOptions::default(), &args.config)?;
    let ttl_ms = u64::try_from(LEASE.as_millis()).ok();
    let wish = SandboxWish { ttl_ms, no_checkpoints: Some(true), ..wish.into() };
    let order = Order::There(Box::new(wish));
    sessions::with(async |sessions| {
        let mut signals = Listening::to(&ENDING)?;
        let made = tokio::select! {
            made = sessions.create(&order) => made?,
            // What is being made there ends by its lease.
            _ = signals.next() => return Err(given_up()),
        };
        let id = SessionId::new(made.id)?;
        let session = sessions.session(id.clone());
        let proof = tokio::select! {
            proof = session.prove() => proof,
            _ = signals.next() => Err(given_up()),
        };
        if let Err(error) = sessions.delete(&id).await {
            let chain = error.chain();
            report::note(&format!("the sandbox {id} ends by its lease, not now: {chain}"));
        }
        probe::show(&proof?, args.json)
    })
}

fn given_up() -> Error {
    Error::new(ErrorKind::Canceled, "the attacks were given up")
}
