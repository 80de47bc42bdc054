//! `cofferdam show`.

use super::{probe, ps};
use crate::door::Sessions;
use crate::moment::timestamp;
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::{LimitsCount, Result};
use cofferdam_session::{
    InitState, LayerTier, ManifestState, MetricsReport, SessionId, SessionReport,
};
use std::time::Duration;

/// Says how a session stands: its state, policy, preparation, deadlines and commands; or what it uses, or
/// what would stop an attack from inside it.
///
/// Of the commands all that run are listed, and the last 50 that have ended.
///
/// Example: cofferdam show agent-1
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ShowArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Says what the session uses now: processor time, memory, processes, connections.
    ///
    /// As the host sees it; nothing inside is asked, and nothing is woken.
    ///
    /// Example: --metrics
    #[arg(long)]
    pub(crate) metrics: bool,

    /// Attacks a sandbox made as this session's are, from inside, and says what held.
    ///
    /// The session's own sandbox is left alone. Takes some seconds. Exits with 1 where not all held that
    /// counts. `probe` does the same for options.
    ///
    /// Example: --proof
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) proof: bool,

    /// Prints what is shown as one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the session.
pub(super) fn perform(args: &ShowArgs) -> Result<u8> {
    sessions::on_reserve(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        if args.metrics {
            let metrics = session.metrics().await?;
            match args.json {
                true => render::print_json(&metrics)?,
                false => render::print_text(&usage(&metrics))?,
            }
            return Ok(exit::DONE);
        }
        if args.proof {
            return probe::show(&session.prove().await?, args.json);
        }
        let report = sessions.status(session.id()).await?;
        match args.json {
            true => render::print_json(&report)?,
            false => {
                render::print_text(&format!("{}\n", text(&report)))?;
                ps::print_some(session.execs().await?)?;
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

fn usage(metrics: &MetricsReport) -> String {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), mebibytes);
    let connections = &metrics.connections;
    let rows = [
        ("processes", metrics.processes.to_string()),
        ("cpu", metrics.cpu_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"))),
        ("memory", size(metrics.memory_bytes)),
        ("peak memory", size(metrics.peak_memory_bytes)),
        (
            "connections",
            format!(
                "{} allowed, {} denied, {} failed",
                connections.allowed, connections.denied, connections.failed
            ),
        ),
        ("sent", size(Some(connections.bytes_up))),
        ("received", size(Some(connections.bytes_down))),
    ];
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(key, value)| vec![key.to_owned(), value]).collect();
    render::table(&rows)
}

fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
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
    if let Some(alarm) = &session.alarm {
        let why = format!("{alarm}; `cofferdam resume` lets it go on");
        rows.push(vec!["frozen".to_owned(), render::plain(&why).into_owned()]);
    }
    for grant in &session.secrets {
        rows.push(vec!["secret".to_owned(), render::plain(grant).into_owned()]);
    }
    if let Some(why) = &session.unreachable {
        rows.push(vec!["unreachable".to_owned(), render::plain(why).into_owned()]);
    }
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
    if session.manifest == Some(ManifestState::Pending) {
        return "no: its manifest was not carried out".to_owned();
    }
    match (session.init, &session.init_error) {
        (InitState::Done, _) => "yes".to_owned(),
        (InitState::Pending, _) | (InitState::Failed, None) => "not yet".to_owned(),
        (InitState::Failed, Some(failure)) => {
            let code = failure.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
            let said = match failure.output.trim() {
                "" => String::new(),
                said => format!(": {said}"),
            };
            format!("no: {:?} failed with code {code}{said}", failure.command)
        }
    }
}
