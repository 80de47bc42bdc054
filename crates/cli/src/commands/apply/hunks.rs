//! Asking for each part of a change.

#[cfg(feature = "remote")]
mod there;

use crate::door::{Chosen, Session};
use crate::render;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    ApplyOrder, Change, ChangeKind, Error, ErrorKind, GuestPath, Result, Standing,
};
use cofferdam_session::diff::{DiffHunk, FileDiff, quoted};
use std::collections::BTreeSet;
use std::ffi::OsString;
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

/// A change as somebody is asked about it, wherever its session is.
struct Shown {
    path: GuestPath,
    kind: ChangeKind,
    standing: Standing,
    /// The text of each part; none where it lands as a whole.
    parts: Vec<Vec<u8>>,
    /// The text of all of it, where it has no parts.
    text: Vec<u8>,
    /// What becomes of its permissions, where a text does not say all of that.
    permissions: Option<String>,
}

/// What is wanted of a change.
enum Wanted {
    Nothing,
    Whole,
    /// One answer for each part.
    Parts(Vec<bool>),
}

/// What somebody chose.
pub(super) struct Picked {
    /// `None` where it is nothing.
    pub(super) chosen: Option<Chosen>,
    /// What nobody was asked about, because it cannot land.
    pub(super) kept: Vec<Standing>,
}

/// Asks for each change, part by part where it has parts. What is chosen are the versions that were shown,
/// so that nothing else lands.
pub(super) async fn chosen(session: &Session, paths: &[OsString]) -> Result<Picked> {
    let mut asking = Asking::default();
    if !paths.is_empty() {
        // What is protected lands where it is named.
        let order = ApplyOrder { dry_run: true, ..ApplyOrder::default() };
        let named = session.apply(paths, order).await?.applied;
        asking.named.extend(named.into_iter().map(|change| change.path));
    }
    let chosen = match session {
        Session::Here(here) => {
            let scope = here.scope(paths).await?;
            let order = chosen_here(here, &scope, &mut asking).await?;
            order.map(|order| Chosen::Here(Box::new(order)))
        }
        #[cfg(feature = "remote")]
        Session::There(there) => there::chosen(there, paths, &mut asking).await?,
    };
    Ok(Picked { chosen, kept: asking.kept })
}

async fn chosen_here(
    session: &cofferdam_session::Session,
    scope: &[GuestPath],
    asking: &mut Asking,
) -> Result<Option<ApplyOrder>> {
    let mut diffs = Vec::new();
    session
        .diff(scope, |diff| {
            diffs.push(diff);
            Ok(())
        })
        .await?;
    // What is below a directory is asked about by itself.
    let mut order = ApplyOrder { exact: true, ..ApplyOrder::default() };
    for diff in diffs {
        let path = diff.change.path.clone();
        match asking.about(&shown(&diff))? {
            Wanted::Nothing => continue,
            Wanted::Whole => {}
            Wanted::Parts(wanted) => {
                let before = session.workspace_file(&path).await?;
                let content = diff.with_hunks(&before, |at| wanted.get(at) == Some(&true));
                order.contents.insert(path.clone(), content);
            }
        }
        order.versions.insert(path.clone(), diff.change.version);
        order.sums.extend(diff.content.map(|sum| (path.clone(), sum)));
        order.paths.push(path);
    }
    Ok((!order.paths.is_empty()).then_some(order))
}

fn shown(diff: &FileDiff) -> Shown {
    Shown {
        path: diff.change.path.clone(),
        kind: diff.change.kind,
        standing: diff.change.standing,
        parts: diff.hunks().iter().map(DiffHunk::text).collect(),
        text: if diff.has_hunks() { Vec::new() } else { diff.text() },
        permissions: permissions(&diff.change),
    }
}

/// A change of them; of what is new, those that are not the usual ones. Where only some of the parts land, they
/// stay as they are.
fn permissions(change: &Change) -> Option<String> {
    let after = change.after.as_ref().filter(|after| after.kind != EntryKind::Link)?.mode;
    match &change.before {
        Some(before) if before.kind == EntryKind::Link => Some(format!("{after:04o}")),
        Some(before) if before.mode == after => None,
        Some(before) => Some(format!("{:04o} -> {after:04o}, with all of it", before.mode)),
        None if matches!(after, 0o644 | 0o755) => None,
        None => Some(format!("{after:04o}")),
    }
}

/// Questions about changes, until nobody wants to hear more.
#[derive(Default)]
struct Asking {
    is_over: bool,
    /// What lands because somebody named it.
    named: BTreeSet<GuestPath>,
    kept: Vec<Standing>,
}

impl Asking {
    fn about(&mut self, shown: &Shown) -> Result<Wanted> {
        if self.is_over {
            return Ok(Wanted::Nothing);
        }
        if shown.standing != Standing::Lands && !self.named.contains(&shown.path) {
            self.kept.push(shown.standing);
            let name = quoted(shown.path.as_bytes());
            say(&format!("{name}: {}\n", shown.standing.reason()))?;
            return Ok(Wanted::Nothing);
        }
        let wanted = ask_all(shown, &mut self.is_over)?;
        Ok(match (wanted.contains(&true), wanted.contains(&false)) {
            (false, _) => Wanted::Nothing,
            (true, false) => Wanted::Whole,
            (true, true) => Wanted::Parts(wanted),
        })
    }
}

/// Which parts of a change are wanted: one answer for each part, or one for all of it.
fn ask_all(shown: &Shown, quit: &mut bool) -> Result<Vec<bool>> {
    let name = quoted(shown.path.as_bytes());
    if let Some(permissions) = &shown.permissions {
        say(&format!("# {name}: permissions {permissions}\n"))?;
    }
    if shown.parts.is_empty() {
        say(&format!("{} {name}\n", shown.kind.name()))?;
        say(&render::visible(&shown.text))?;
        let answer = ask(&format!("Apply this change of {name} [y,n,q,?]? "))?;
        *quit = answer == Answer::Quit;
        return Ok(vec![matches!(answer, Answer::Yes | Answer::All)]);
    }
    let mut wanted = Vec::new();
    for (at, part) in shown.parts.iter().enumerate() {
        say(&render::visible(part))?;
        let of = shown.parts.len();
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
