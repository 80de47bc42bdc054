//! `cofferdam rm`.

use crate::appeared::Watch;
use crate::door::Sessions;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::{Error, ErrorBody, ErrorReport, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Removes sessions with all that runs in them, their home directories and their logs.
///
/// The workspace stays. What could not be removed is said, and tried again by the next command.
///
/// Example: cofferdam rm agent-1 agent-2
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct RmArgs {
    /// The sessions: names, whole, or ids, or the beginning of one.
    #[arg(value_name = "SESSION", required = true)]
    pub(crate) sessions: Vec<String>,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `rm --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Removal {
    /// The ids of the sessions that are gone.
    pub(crate) removed: Vec<String>,
    /// Those that are not.
    pub(crate) failed: Vec<FailedRemoval>,
}

/// A session that could not be removed. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FailedRemoval {
    /// As it was named.
    pub(crate) session: String,
    /// Why.
    pub(crate) error: ErrorBody,
}

/// Removes the sessions, each for itself.
pub(super) fn perform(args: &RmArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let mut removal = Removal { removed: Vec::new(), failed: Vec::new() };
        for name in &args.sessions {
            match remove(sessions, name).await {
                Ok(id) => removal.removed.push(id),
                Err(error) if args.sessions.len() == 1 => return Err(error),
                Err(error) => {
                    if !args.json {
                        report::note(&format!("{name} is not removed: {}", error.chain()));
                    }
                    removal.failed.push(failed(name, &error));
                }
            }
        }
        if args.json {
            render::print_json(&removal)?;
        }
        Ok(if removal.failed.is_empty() { exit::DONE } else { exit::FAILED })
    })
}

async fn remove(sessions: &Sessions, name: &str) -> Result<String> {
    let id = sessions::find_whole(sessions, name).await?;
    let watch = Watch::begin();
    sessions.delete(&id).await?;
    watch.tell(sessions.here(), &id).await;
    Ok(id.to_string())
}

fn failed(name: &str, error: &Error) -> FailedRemoval {
    FailedRemoval { session: name.to_owned(), error: ErrorReport::from(error).error }
}
