//! `cofferdam events`.

use crate::door::Sessions;
use crate::moment::timestamp;
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::Result;
pub(crate) use cofferdam_session::EventList;
use cofferdam_session::{EventReport, SessionId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Duration;

/// Lists what happened to sessions, in order, removed ones included.
///
/// Example: cofferdam events agent-1 -f
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct EventsArgs {
    /// The session: its name or id, or the beginning of one. Default: all.
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,

    /// Goes on with what happens, until it is ended or nobody reads it any more.
    ///
    /// Example: -f
    #[arg(short = 'f', long)]
    pub(crate) follow: bool,

    /// Begins after the event of this number. Default: 0.
    ///
    /// Example: --since 1024
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true)]
    pub(crate) since: u64,

    /// Prints one JSON object on standard output; with -f one object a line, an event each.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long to wait between two looks for what is new.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Lists events, and goes on with what happens if asked to.
pub(super) fn perform(args: &EventsArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = match &args.session {
            Some(name) => Some(find(sessions, name).await?),
            None => None,
        };
        let mut since = args.since;
        let mut all = Vec::new();
        loop {
            let news = sessions.events(session.as_ref(), since).await?;
            since = news.last().map_or(since, |event| event.seq);
            let is_over = news.is_empty();
            match args.json && !args.follow {
                true => all.extend(news),
                false => news.iter().try_for_each(|event| print(args.json, event))?,
            }
            match (is_over, args.follow) {
                (true, false) => break,
                (true, true) if is_reader_gone() => break,
                (true, true) => tokio::time::sleep(LOOK_AGAIN).await,
                (false, _) => {}
            }
        }
        if args.json && !args.follow {
            render::print_json(&EventList { events: all })?;
        }
        Ok(exit::DONE)
    })
}

/// Whether nobody reads standard output any more. Who writes nothing hears of it in no other way.
fn is_reader_gone() -> bool {
    let stdout = std::io::stdout();
    let mut look = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut look, Some(&at_once)).is_ok() && look.iter().any(|fd| fd.revents().intersects(gone))
}

/// A session that is there, or was: what happened to one is kept beyond its end, under its id.
async fn find(sessions: &Sessions, name: &str) -> Result<SessionId> {
    match (sessions.find(name).await, SessionId::new(name)) {
        (Ok(id), _) | (Err(_), Ok(id)) => Ok(id),
        (Err(error), Err(_)) => Err(error),
    }
}

fn print(is_json: bool, event: &EventReport) -> Result<()> {
    if is_json {
        return render::print_json(event);
    }
    let data: Vec<String> =
        event.data.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let line = format!(
        "{}  {}  {}  {}  {}",
        event.seq,
        timestamp(event.at_ms),
        event.session,
        event.kind,
        data.join(" ")
    );
    render::print_text(&format!("{}\n", render::plain(&line)))
}
