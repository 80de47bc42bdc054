//! Asking for each part of a change.

use crate::render;
use cofferdam_core::{ApplyOrder, Error, ErrorKind, GuestPath, Result, Standing};
use cofferdam_session::Session;
use cofferdam_session::diff::{FileDiff, quoted};
use std::io::{BufRead, Write};

/// What may be answered.
const HELP: &str = "\
y - this lands
n - this does not land
a - this lands, and all that follows in this file
d - this does not land, and nothing that follows in this file
q - nothing that follows lands
? - say this again
";

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    All,
    None,
    Quit,
}

/// Asks for each change, part by part where it has parts; `None` where nothing was chosen. The order
/// has the versions that were shown, so that nothing else lands.
pub(super) async fn chosen(session: &Session, scope: &[GuestPath]) -> Result<Option<ApplyOrder>> {
    let mut diffs = Vec::new();
    session
        .diff(scope, |diff| {
            diffs.push(diff);
            Ok(())
        })
        .await?;
    let mut order = ApplyOrder::default();
    let mut quit = false;
    for diff in diffs {
        if quit {
            break;
        }
        let path = diff.change.path.clone();
        if diff.change.standing != Standing::Lands {
            say(&format!("{}: {}\n", quoted(path.as_bytes()), diff.change.standing.reason()))?;
            continue;
        }
        let wanted = ask_all(&diff, &mut quit)?;
        if !wanted.contains(&true) {
            continue;
        }
        if diff.has_hunks() && wanted.contains(&false) {
            let before = session.workspace_file(&path).await?;
            let content = diff.with_hunks(&before, |at| wanted.get(at) == Some(&true));
            order.contents.insert(path.clone(), content);
        }
        order.versions.insert(path.clone(), diff.change.version);
        order.paths.push(path);
    }
    Ok((!order.paths.is_empty()).then_some(order))
}

/// Which parts of a change are wanted: one answer for each hunk, or one for all of it.
fn ask_all(diff: &FileDiff, quit: &mut bool) -> Result<Vec<bool>> {
    let hunks = diff.hunks();
    let name = quoted(diff.change.path.as_bytes());
    if hunks.is_empty() {
        let text = diff.text();
        say(&format!("{} {name}\n", diff.change.kind.name()))?;
        say(&render::visible(&text))?;
        let answer = ask(&format!("Apply this change of {name} [y,n,q,?]? "))?;
        *quit = answer == Answer::Quit;
        return Ok(vec![matches!(answer, Answer::Yes | Answer::All)]);
    }
    let mut wanted = Vec::new();
    for (at, hunk) in hunks.iter().enumerate() {
        say(&render::visible(&hunk.text()))?;
        let of = hunks.len();
        let answer = ask(&format!("Apply part {} of {of} of {name} [y,n,a,d,q,?]? ", at + 1))?;
        wanted.push(matches!(answer, Answer::Yes | Answer::All));
        match answer {
            Answer::Yes | Answer::No => continue,
            Answer::All => wanted.resize(of, true),
            Answer::None => wanted.resize(of, false),
            Answer::Quit => {
                wanted.resize(of, false);
                *quit = true;
            }
        }
        break;
    }
    Ok(wanted)
}

fn ask(question: &str) -> Result<Answer> {
    loop {
        say(question)?;
        let mut line = String::new();
        let read = std::io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|error| Error::new(ErrorKind::Io, "read the answer").source(error))?;
        match answer(line.trim()) {
            // Whoever has left wants nothing more.
            _ if read == 0 => return Ok(Answer::Quit),
            Some(answer) => return Ok(answer),
            None => say(HELP)?,
        }
    }
}

fn answer(text: &str) -> Option<Answer> {
    match text {
        "y" => Some(Answer::Yes),
        "n" => Some(Answer::No),
        "a" => Some(Answer::All),
        "d" => Some(Answer::None),
        "q" => Some(Answer::Quit),
        _ => None,
    }
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Error::new(ErrorKind::Io, "write to the terminal").source(error))
}
