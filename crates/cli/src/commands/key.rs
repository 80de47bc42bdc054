//! `cofferdam key`.

use super::serve::allowed;
use crate::args::choice;
use crate::choice::Choice;
use crate::moment::timestamp;
use crate::{exit, render, sessions};
use clap::{Args, Subcommand};
use cofferdam_core::{Caller, Error, ErrorKind, Result, Spec, Workspace, parse_bytes};
use cofferdam_session::{KeyReport, KeyRights, KeyScope, Quota};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Makes, lists and revokes keys, with which others ask a server.
///
/// What is made with a key belongs to it: sandboxes, commands, files, events and snapshots of one key
/// do not exist for another. From the first key on, nobody is let in over TCP without one.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    pub(crate) verb: KeyVerb,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam key create ci --max-sandboxes 8 --max-memory 16G
  cofferdam key create reader --scope look --scope files-read --rate 50/s
  cofferdam key ls
  cofferdam key revoke ci";

/// What is done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyVerb {
    Create(KeyCreateArgs),
    Ls(KeyLsArgs),
    Revoke(KeyRevokeArgs),
}

/// Makes a key and prints it. It is kept nowhere, so nobody can print it again.
///
/// Example: cofferdam key create ci --max-sandboxes 8 --max-memory 16G
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct KeyCreateArgs {
    /// Its name, to which belongs what is made with it. A name that was revoked can be used again, and
    /// has the sandboxes that it had, but none of its secrets.
    ///
    /// 1 to 64 letters, digits, '-', '_' or '.'.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// For what it is good: look, manage, run, files-read, files-write, secrets or approve. Repeatable. Default: all
    /// but approve, so that an agent does not answer what it asks for.
    ///
    /// Example: --scope look --scope run
    #[arg(long, value_name = "SCOPE", value_parser = choice::<KeyScope>())]
    pub(crate) scope: Vec<KeyScope>,

    /// How many sandboxes there may be, those of single runs included. Default: no limit.
    ///
    /// Example: --max-sandboxes 8
    #[arg(long, value_name = "N")]
    pub(crate) max_sandboxes: Option<u32>,

    /// How much memory the limits of all its sandboxes may allow together. Default: no limit.
    ///
    /// Example: --max-memory 16G
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) max_memory: Option<u64>,

    /// How many requests a second are answered. Default: no limit.
    ///
    /// Example: --rate 50/s
    #[arg(long, value_name = "N/s", value_parser = parse_rate)]
    pub(crate) rate: Option<u32>,

    /// Lets a request name this directory as its workspace. Repeatable. Default: none.
    ///
    /// Example: --allow-workspace ~/src/project
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) allow_workspace: Vec<PathBuf>,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists keys, those that were revoked too, by how they begin.
///
/// Example: cofferdam key ls
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct KeyLsArgs {
    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Makes a key no good any more, from the next request on. What was made with it stays, but for its
/// secrets, which are removed.
///
/// Example: cofferdam key revoke ci
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct KeyRevokeArgs {
    /// Its name, or how it begins, as `key ls` lists it.
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    /// Prints the key as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `key create --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeyCreated {
    /// The key, without what is secret.
    pub(crate) key: KeyReport,
    /// The whole key. Nobody is told it again.
    pub(crate) secret: String,
}

/// What `key ls --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeyList {
    /// The keys, oldest first.
    pub(crate) keys: Vec<KeyReport>,
}

impl Choice for KeyScope {
    const WHAT: &'static str = "scope";
    const ALL: &'static [Self] = &KeyScope::ALL;

    fn named(self) -> &'static str {
        self.name()
    }
}

/// Reads `N/s`.
pub(crate) fn parse_rate(text: &str) -> Result<u32> {
    let number = text.strip_suffix("/s").and_then(|number| number.parse().ok());
    number.filter(|rate| *rate > 0).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{text:?} is not a rate"))
            .hint("Write how many a second, as in 50/s.")
    })
}

/// Does it.
pub(super) fn perform(args: &KeyArgs) -> Result<u8> {
    match &args.verb {
        KeyVerb::Create(args) => create(args),
        KeyVerb::Ls(args) => list(args),
        KeyVerb::Revoke(args) => revoke(args),
    }
}

fn create(args: &KeyCreateArgs) -> Result<u8> {
    let template = Spec::new(Workspace::Private, Caller::default());
    let workspaces = allowed(&args.allow_workspace, &template)?;
    let mut scopes = match args.scope.is_empty() {
        true => KeyScope::USUAL.to_vec(),
        false => args.scope.clone(),
    };
    scopes.sort_unstable();
    scopes.dedup();
    let quota = Quota { max_sandboxes: args.max_sandboxes, max_memory_bytes: args.max_memory };
    let rights = KeyRights { scopes, quota, max_rate: args.rate, workspaces };
    let made = sessions::here(async |sessions| sessions.create_key(&args.name, rights).await);
    let (key, secret) = made?;
    let prefix = key.prefix.clone();
    let shown = match args.json {
        true => render::print_json(&KeyCreated { key, secret }),
        false => render::print_text(&format!("{secret}\n")),
    };
    if let Err(error) = shown {
        // Nobody has it, and nobody will.
        sessions::here_on_reserve(async |sessions| sessions.revoke_key(&prefix).await)?;
        return Err(error.hint("The key could not be shown and is revoked: make another one."));
    }
    Ok(exit::DONE)
}

fn list(args: &KeyLsArgs) -> Result<u8> {
    let keys = sessions::here_on_reserve(async |sessions| sessions.keys().await)?;
    match args.json {
        true => render::print_json(&KeyList { keys })?,
        false => render::print_text(&table(&keys))?,
    }
    Ok(exit::DONE)
}

fn revoke(args: &KeyRevokeArgs) -> Result<u8> {
    let key = sessions::here_on_reserve(async |sessions| sessions.revoke_key(&args.key).await)?;
    if args.json {
        render::print_json(&key)?;
    }
    Ok(exit::DONE)
}

fn table(keys: &[KeyReport]) -> String {
    let titles = ["KEY", "NAME", "MADE", "STATE", "SCOPES", "LIMITS"].map(str::to_owned);
    let mut rows = vec![titles.to_vec()];
    rows.extend(keys.iter().map(row));
    render::table(&rows)
}

fn row(key: &KeyReport) -> Vec<String> {
    let scopes: Vec<&str> = key.rights.scopes.iter().map(|scope| scope.name()).collect();
    let state = if key.revoked_ms.is_some() { "revoked" } else { "good" };
    let Quota { max_sandboxes, max_memory_bytes } = key.rights.quota;
    let limits = [
        max_sandboxes.map(|most| format!("{most} sandboxes")),
        max_memory_bytes.map(|most| format!("{} memory", render::bytes(most))),
        key.rights.max_rate.map(|most| format!("{most}/s")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    vec![
        key.prefix.clone(),
        key.name.clone(),
        timestamp(key.created_ms),
        state.to_owned(),
        scopes.join(" "),
        if limits.is_empty() { "-".to_owned() } else { limits.join(", ") },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_so_many_a_second() {
        assert_eq!(parse_rate("50/s").unwrap(), 50);
        for bad in ["", "50", "0/s", "-1/s", "50/m", "x/s"] {
            assert!(parse_rate(bad).is_err(), "{bad:?}");
        }
    }
}
