//! `cofferdam __complete`: what the completions of the shells ask for.

use crate::args::whole;
use crate::{exit, images, render, secrets, sessions};
use clap::{Arg, Args};
use cofferdam_core::Result;
use std::ffi::OsString;

/// Prints the names that may stand at the end of a command line, one a line.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The words of the line after the program's name, the unfinished one last.
    #[arg(last = true, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// What may stand at the end of a line and is not known before.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// A session.
    Session,
    /// A command of this session.
    Exec(String),
    /// A snapshot of this session.
    Snapshot(String),
    /// A point of the history of this session.
    Point(String),
    /// An image.
    Image,
    /// A key of a server.
    Key,
    /// A secret.
    Secret,
    /// A signal.
    Signal,
}

/// Prints the names. Where there are none, or something is wrong, it prints nothing: an error would
/// stand in the middle of somebody's line.
pub(super) fn perform(args: &CompleteArgs) -> Result<u8> {
    let words: Vec<String> =
        args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // The names of a server are not asked for while somebody types.
    let is_here = !crate::door::is_chosen();
    let names = match wanted(&words).filter(|wanted| is_here || *wanted == Wanted::Signal) {
        None => Vec::new(),
        Some(Wanted::Session) => sessions::names().unwrap_or_default(),
        Some(Wanted::Exec(session)) => sessions::exec_names(&session).unwrap_or_default(),
        Some(Wanted::Snapshot(session)) => sessions::snapshot_names(&session).unwrap_or_default(),
        Some(Wanted::Point(session)) => sessions::point_names(&session).unwrap_or_default(),
        Some(Wanted::Image) => images::names().unwrap_or_default(),
        Some(Wanted::Key) => sessions::key_names().unwrap_or_default(),
        Some(Wanted::Secret) => secrets::names().unwrap_or_default(),
        Some(Wanted::Signal) => {
            cofferdam_core::Signal::NAMES.iter().copied().map(str::to_owned).collect()
        }
    };
    let begun = words.last().map_or("", String::as_str);
    // A shell would take one with a space for several.
    let is_word = |name: &&String| !name.contains(char::is_whitespace);
    for name in names.iter().filter(|name| name.starts_with(begun)).filter(is_word) {
        render::print_text(&format!("{}\n", render::plain(name)))?;
    }
    Ok(exit::DONE)
}

/// What may stand where the last of these words is.
fn wanted(words: &[String]) -> Option<Wanted> {
    let (verb, mut words) = words.split_first()?;
    let whole = whole();
    let mut verb = whole.find_subcommand(verb)?;
    // Verbs of a noun, as in `file read`.
    while verb.has_subcommands() {
        let (inner, rest) = words.split_first()?;
        (verb, words) = (verb.find_subcommand(inner)?, rest);
    }
    let (last, before) = words.split_last()?;
    if last.starts_with('-') {
        return None;
    }
    let mut places = verb.get_positionals().filter(|place| !place.is_last_set());
    let mut place = places.next();
    let mut first = None;
    let mut words = before.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            return None;
        }
        if !word.starts_with('-') {
            first = first.or(Some(word));
            place = place.filter(|place| is_many(place)).or_else(|| places.next());
        } else if verb.get_opts().any(|option| takes_next(option, word)) && words.next().is_none() {
            let option = verb.get_opts().find(|option| takes_next(option, word))?;
            return wants(option, first).filter(|_| is_completed(option));
        }
    }
    match verb.get_name() == "ensure" {
        // What it names may be there already.
        true => Some(Wanted::Session).filter(|_| first.is_none()),
        false => wants(place?, first),
    }
}

fn wants(place: &Arg, session: Option<&String>) -> Option<Wanted> {
    let name = place.get_value_names()?.first()?;
    match name.as_str() {
        SESSION | "SESSION[@N]" => Some(Wanted::Session),
        "EXEC" => session.cloned().map(Wanted::Exec),
        "SNAPSHOT" => session.cloned().map(Wanted::Snapshot),
        POINT => session.cloned().map(Wanted::Point),
        "IMAGE" => Some(Wanted::Image),
        "KEY" => Some(Wanted::Key),
        "SECRET" => Some(Wanted::Secret),
        "SIGNAL" => Some(Wanted::Signal),
        _ => None,
    }
}

/// What a session is called in the help of all verbs that take one.
const SESSION: &str = "SESSION";
/// The same of a point of a session.
const POINT: &str = "POINT";

/// Whether the value of an option is one of those that are there.
fn is_completed(option: &Arg) -> bool {
    let names = option.get_value_names().unwrap_or_default();
    names.iter().any(|name| name == SESSION || name == POINT)
}

fn is_many(place: &Arg) -> bool {
    matches!(place.get_action(), clap::ArgAction::Append)
}

/// Whether this word is the option and its value is the next word.
fn takes_next(option: &Arg, word: &str) -> bool {
    let long = option.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
    let short =
        option.get_short().is_some_and(|short| word.strip_prefix('-') == Some(&*short.to_string()));
    (long || short) && option.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<Wanted>) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(wanted(&words), expected, "{line}");
    }

    #[test]
    fn names_are_completed_where_they_may_stand() {
        let exec = || Some(Wanted::Exec("a".to_owned()));
        check("exec ", Some(Wanted::Session));
        check("exec -i --cwd x a", Some(Wanted::Session));
        check("exec --cwd ", None);
        check("exec a ", None);
        check("exec -", None);
        check("exec a -- ", None);
        check("logs a ", exec());
        check("logs -f a --offset 3 b", exec());
        check("signal a b ", Some(Wanted::Signal));
        check("rm a b ", Some(Wanted::Session));
        check("extend a ", None);
        check("wrap --session ", Some(Wanted::Session));
        check("create --name ", None);
        check("secret rm ", Some(Wanted::Secret));
        check("file read ", Some(Wanted::Session));
        check("file write --mode 644 ", Some(Wanted::Session));
        check("file read a ", None);
        check("fork ", Some(Wanted::Session));
        check("fork a ", None);
        let point = || Some(Wanted::Point("a".to_owned()));
        let snapshot = || Some(Wanted::Snapshot("a".to_owned()));
        check("undo ", Some(Wanted::Session));
        check("undo a --to ", point());
        check("undo --to ", None);
        check("undo a ", None);
        check("snapshot restore ", Some(Wanted::Session));
        check("snapshot restore a ", snapshot());
        check("snapshot rm a ", snapshot());
        check("snapshot export a ", snapshot());
        check("snapshot restore a 3 ", None);
        check("image rm ", Some(Wanted::Image));
        check("image inspect ", Some(Wanted::Image));
        check("key revoke ", Some(Wanted::Key));
        // A new one has a name that nothing has.
        check("key create ", None);
        check("ensure ", Some(Wanted::Session));
        check("ensure a ", None);
        check("file ", None);
        check("nonsense ", None);
        check("exec", None);
    }
}
