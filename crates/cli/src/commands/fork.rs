//! `cofferdam fork`.

use super::ls::SessionList;
use super::show;
use crate::door::Sessions;
use crate::listen::{ENDING, Listening};
use crate::meter::Meter;
use crate::{exit, render, report, sessions};
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::SessionId;
use std::pin::pin;

/// How many sessions one call makes at most.
const MOST: i64 = 64;

/// Makes other sessions whose workspace begins as that of a copy-on-write session is now.
///
/// What the session changed is copied while its processes stand still; they go on afterwards. With
/// SESSION@N the copy is of point N of its history, or of the snapshot with the label N. Processes, $HOME and what was written to an image are not
/// copied, and the lines that prepare a session run in the new one. All see one real workspace, and
/// none sees what another does. Prints the ids.
///
/// Example: cofferdam fork draft other-way
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ForkArgs {
    /// The session: its name, whole, or its id, or the beginning of that; with @N behind it, its point N.
    #[arg(value_name = "SESSION[@N]")]
    pub(crate) session: String,

    /// The name of the new session.
    #[arg(value_name = "NEW")]
    pub(crate) name: String,

    /// Makes so many sessions, at most 64, called NEW-1, NEW-2 and so on: all of them or none, but where this is killed
    /// (SIGKILL).
    ///
    /// Example: -n 3
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub(crate) count: Option<u32>,

    /// Prints the new session as one JSON object on standard output; with -n, the list of them.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it; 2 usage

Examples:
  cofferdam fork draft other-way
  cofferdam fork draft@2 from-there
  cofferdam fork 'draft@tests pass' from-there
  cofferdam fork draft try -n 3";

/// Forks the session.
pub(super) fn perform(args: &ForkArgs) -> Result<u8> {
    let (name, point) = origin(&args.session)?;
    sessions::with(async |sessions| {
        let id = sessions::find_whole(sessions, name).await?;
        let names = match args.count {
            None => vec![args.name.clone()],
            Some(count) => (1..=count).map(|number| format!("{}-{number}", args.name)).collect(),
        };
        let meter = Meter::start("fork", args.json);
        let made = all_or_none(sessions, (&id, point), &names).await?;
        drop(meter);
        report::note("processes and $HOME are not copied; what was written to an image neither");
        match (args.json, made.as_slice()) {
            (true, [one]) if args.count.is_none() => show::print_if(true, sessions, one).await?,
            (true, all) => {
                let mut reports = Vec::with_capacity(all.len());
                for id in all {
                    reports.push(sessions.status(id).await?);
                }
                render::print_json(&SessionList { sessions: reports })?;
            }
            (false, all) => {
                let lines: String = all.iter().map(|id| format!("{id}\n")).collect();
                render::print_text(&lines)?;
            }
        }
        Ok(exit::DONE)
    })
}

/// Forks under each name. Where one cannot be made, or somebody wants this program to end, those before it are removed
/// again.
async fn all_or_none(
    sessions: &Sessions,
    (id, point): (&SessionId, Option<&str>),
    names: &[String],
) -> Result<Vec<SessionId>> {
    let mut signals = Listening::to(&ENDING)?;
    let mut made = Vec::with_capacity(names.len());
    for name in names {
        let mut is_asked = false;
        let failure =
            match to_its_end(sessions.fork(id, point, name), &mut signals, &mut is_asked).await {
                Ok(session) => {
                    made.push(session.id().clone());
                    is_asked.then(|| Error::new(ErrorKind::Canceled, "a signal ended the forking"))
                }
                Err(error) => Some(error),
            };
        if let Some(error) = failure {
            take_back(sessions, &made).await;
            return Err(error);
        }
    }
    Ok(made)
}

/// Does it whole, for what is half made is found by nobody, and notes whether a signal came meanwhile.
async fn to_its_end<T>(
    work: impl Future<Output = T>,
    signals: &mut Listening,
    is_asked: &mut bool,
) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = signals.next() => {
                if !std::mem::replace(is_asked, true) {
                    report::note("what was made is removed again");
                }
            }
        }
    }
}

async fn take_back(sessions: &Sessions, made: &[SessionId]) {
    for id in made {
        if let Err(left) = sessions.delete(id).await {
            report::note(&format!("session {id} was made and stays: {}", left.message));
        }
    }
}

/// The session, and its point if one is named.
fn origin(text: &str) -> Result<(&str, Option<&str>)> {
    match text.split_once('@') {
        None => Ok((text, None)),
        Some((name, point)) if !point.is_empty() => Ok((name, Some(point))),
        Some(_) => Err(Error::new(ErrorKind::Usage, format!("{text:?} names no point"))
            .hint("Write SESSION@N with a number that `cofferdam history` lists, or a label.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_named_behind_an_at() {
        assert_eq!(origin("draft").unwrap(), ("draft", None));
        assert_eq!(origin("draft@12").unwrap(), ("draft", Some("12")));
        assert_eq!(origin("draft@a@b c").unwrap(), ("draft", Some("a@b c")));
        assert!(origin("draft@").is_err());
    }
}
