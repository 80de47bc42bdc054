//! `cofferdam ls`.

use super::create::labels;
use crate::args::label;
use crate::moment::{age, now_ms};
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::Result;
use cofferdam_session::{InitState, SessionReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lists sessions, oldest first.
///
/// Example: cofferdam ls --label agent=reviewer
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct LsArgs {
    /// Lists only those with this label. Repeatable; all must be there.
    ///
    /// Example: --label agent=reviewer
    #[arg(long, value_name = "K=V", value_parser = label())]
    pub(crate) label: Vec<(String, String)>,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `ls --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SessionList {
    /// The sessions, oldest first.
    pub(crate) sessions: Vec<SessionReport>,
}

/// Lists the sessions.
pub(super) fn perform(args: &LsArgs) -> Result<u8> {
    let labels = labels(&args.label)?;
    let sessions = sessions::on_reserve(async |sessions| sessions.list(&labels).await)?;
    match args.json {
        true => render::print_json(&SessionList { sessions })?,
        false => {
            render::print_text(&table(&sessions, now_ms()))?;
            for why in sessions.iter().filter_map(|session| session.unreachable.as_deref()) {
                report::note(why);
            }
        }
    }
    Ok(exit::DONE)
}

fn table(sessions: &[SessionReport], now_ms: u64) -> String {
    let titles = ["ID", "NAME", "STATE", "AGE", "WORKSPACE", "LABELS"].map(str::to_owned);
    let mut rows = vec![titles.to_vec()];
    rows.extend(sessions.iter().map(|session| row(session, now_ms)));
    render::table(&rows)
}

fn row(session: &SessionReport, now_ms: u64) -> Vec<String> {
    let labels: Vec<String> = session.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut state = session.phase.name().to_owned();
    if session.unreachable.is_some() {
        state.push_str(", unreachable");
    }
    if session.alarm.is_some() {
        state.push_str(", frozen by an alarm");
    }
    if session.init == InitState::Failed {
        state.push_str(", init failed");
    }
    if session.cleanup_failed.is_some() {
        state.push_str(", cleanup failed");
    }
    let mut name = session.name.as_deref().unwrap_or("-").to_owned();
    if !session.owner.is_empty() {
        // Names are unique for each owner alone.
        name = format!("{name} ({})", session.owner);
    }
    let workspace = session.workspace.as_deref().unwrap_or("(private)");
    let age = age(session.created_ms, now_ms);
    [&session.id, &name, &state, &age, workspace, &labels.join(" ")]
        .map(|cell| render::plain(cell).into_owned())
        .to_vec()
}
