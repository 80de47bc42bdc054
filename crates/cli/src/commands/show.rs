//! `cofferdam show`.

use super::ps;
use crate::moment::timestamp;
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::{LimitsCount, Result};
use cofferdam_session::{InitState, LayerTier, SessionId, SessionReport, Sessions};
use std::time::Duration;

/// Says how a session stands: its state, policy, preparation, deadlines and commands.
///
/// Example: cofferdam show agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ShowArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Prints the session as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the session.
pub(super) fn perform(args: &ShowArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        let report = sessions.status(session.id()).await?;
        match args.json {
            true => render::print_json(&report)?,
            false => {
                render::print_text(&text(&report))?;
                render::print_text(&format!("\n{}", ps::table(&session.execs().await?)))?;
            }
        }
        Ok(exit::DONE)
    })
}

/// Prints a session as one JSON object where that is asked for.
pub(super) async fn print_if(is_json: bool, sessions: &Sessions, id: &SessionId) -> Result<()> {
    match is_json {
        true => render::print_json(&sessions.status(id).await?),
        false => Ok(()),
    }
}

fn text(session: &SessionReport) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let labels: Vec<String> = session.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let never = || "never".to_owned();
    let idle = session.idle_pause_ms.map(|ms| render::duration(Duration::from_millis(ms)));
    let rows = [
        ("id", session.id.clone()),
        ("name", or_none(&session.name)),
        ("state", session.phase.name().to_owned()),
        ("sandbox", format!("number {} of backend {}", session.incarnation, session.backend)),
        ("profile", session.profile.clone()),
        ("workspace", session.workspace.clone().unwrap_or_else(|| "(private)".to_owned())),
        ("writes land in", landing(session).to_owned()),
        ("image", session.image.clone().unwrap_or_else(|| "(the host's root)".to_owned())),
        ("labels", labels.join(" ")),
        ("prepared", prepared(session)),
        ("paused after", idle.unwrap_or_else(never)),
        ("ends", session.lease_until_ms.map_or_else(never, timestamp)),
        ("made", timestamp(session.created_ms)),
    ];
    let mut rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(key, value)| vec![key.to_owned(), render::plain(&value).into_owned()])
        .collect();
    if let Some(what) = &session.cleanup_failed {
        rows.push(vec!["not removed".to_owned(), render::plain(what).into_owned()]);
    }
    for what in &session.layer_left_out {
        rows.push(vec!["not in the layer".to_owned(), render::plain(what).into_owned()]);
    }
    let mut text = render::table(&rows);
    if let Some(enforced) = &session.enforced {
        text.push('\n');
        text.push_str(&render::axes(enforced, LimitsCount::Yes));
    }
    text
}

fn landing(session: &SessionReport) -> String {
    let why = session.tier_why.as_deref().unwrap_or("a copy was asked for");
    match (session.tier, &session.workspace) {
        (Some(LayerTier::Overlay), _) => "a layer beside it (copy-on-write, overlay)".to_owned(),
        (Some(tier @ (LayerTier::Reflink | LayerTier::Copy)), _) => {
            format!("a copy of it (copy-on-write, {}), because {why}", tier.name())
        }
        (None, _) if session.copy_on_write => "a layer beside it (copy-on-write)".to_owned(),
        (None, Some(_)) => "the workspace itself".to_owned(),
        (None, None) => "the session".to_owned(),
    }
}

fn prepared(session: &SessionReport) -> String {
    match (session.init, &session.init_error) {
        (InitState::Done, _) => "yes".to_owned(),
        (InitState::Pending, _) | (InitState::Failed, None) => "not yet".to_owned(),
        (InitState::Failed, Some(failure)) => {
            let code = failure.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
            format!("no: {:?} failed with code {code}: {}", failure.command, failure.output.trim())
        }
    }
}
