//! The way out, as far as it lies inside: routes, rules and sockets of the sandbox's own network.
//!
//! Nothing here reaches anything. The sockets are handed to the host before anything hostile runs;
//! whoever holds them there decides what becomes of a connection.

mod listeners;
mod message;
mod routes;
mod rules;

use crate::apply::{CallFailed, During};
use crate::sys;
use rustix::io::Errno;

pub(crate) use listeners::listen;

/// Leads every address to the sandbox itself.
pub(crate) fn lead_here(v6: bool) -> Result<(), CallFailed> {
    routes::lead_v4_here().during(|| "add a local route for every address".to_owned())?;
    if v6 {
        let call = || "add a local route for every IPv6 address".to_owned();
        routes::lead_v6_here().during(call)?;
    }
    Ok(())
}

/// Leads TCP to one port of the loopback address, and questions for names to another.
pub(crate) fn redirect(transparent: u16, names: u16) -> Result<(), CallFailed> {
    let call = || "set rules of nf_tables that redirect".to_owned();
    rules::set(transparent, names).during(call)
}

/// What a network namespace of this kernel can do for a way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Whether connections can be led to a gate of which programs know nothing, or why not.
    pub works: Result<(), String>,
    /// Whether that holds for IPv6 too.
    pub v6: bool,
}

/// Ports that are as good as others where nothing is to be reached.
const TRIED: (u16, u16) = (1, 2);

/// What came of each part of a trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    pub(crate) loopback: Result<(), Errno>,
    pub(crate) v4: Result<(), Errno>,
    pub(crate) rules: Result<(), Errno>,
    pub(crate) v6: Result<(), Errno>,
}

impl Trial {
    /// Tries everything in the network namespace of this process, which must be a new one.
    pub(crate) fn run() -> Self {
        Self {
            loopback: crate::apply::identity::loopback(),
            v4: routes::lead_v4_here(),
            rules: rules::set(TRIED.0, TRIED.1),
            v6: listeners::has_v6().and_then(|()| routes::lead_v6_here()),
        }
    }
}

impl Redirection {
    /// Tries it in a namespace that is gone at once. Takes the kernel about a millisecond.
    pub fn try_out() -> Self {
        let failed =
            |what: &str, errno: Errno| Self { works: Err(format!("{what}: {errno}")), v6: false };
        let trial = match sys::try_in_new_network() {
            Ok(trial) => trial,
            Err(errno) => return failed("a network namespace cannot be made to try it", errno),
        };
        let works = [
            (trial.loopback, "its loopback interface cannot be brought up"),
            (trial.v4, "it takes no local route for every address"),
            (trial.rules, "it has no nf_tables that redirect (modules nf_tables and nft_redir)"),
        ];
        for (done, what) in works {
            if let Err(errno) = done {
                return failed(what, errno);
            }
        }
        Self { works: Ok(()), v6: trial.v6.is_ok() }
    }
}

#[cfg(test)]
mod tests;
