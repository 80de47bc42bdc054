//! From a worker's word to an error.

use crate::{Error, ErrorKind};
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Failure, Request, Why};

/// How much of the worker's own words is passed on.
const MAX_DETAIL_CHARS: usize = 1000;

/// What helps where a control file stands in the way.
const CONTROL_FILE: &str = "It is protected. In a session that is made with --cow, or with \
    --allow-sensitive-writes, control files can be written.";

/// The error that a failure of this request is.
pub fn refusal(request: &Request, failure: &Failure) -> Error {
    let mut error = error(&in_words(request), failure);
    let hint = match (request, failure.why) {
        (Request::Remove(_), Why::Exists) => Some("Say with --recursive that all in it goes too."),
        // EBUSY: something is mounted there, and nothing replaces it.
        (_, Why::Denied | Why::Exists | Why::Io) if failure.errno == 16 => Some(CONTROL_FILE),
        (Request::Move(_) | Request::Copy(_) | Request::Carry(_), Why::Exists) => {
            Some("Choose another name, or say with --replace that it may be replaced.")
        }
        (Request::Copy(_), Why::WrongType) if failure.detail.starts_with("it is a directory") => {
            Some("Say with --recursive that a directory is copied with all that is in it.")
        }
        (Request::Watch(_), Why::TooLarge) => Some("Watch a part of it, or fewer levels."),
        (Request::Watch(_), Why::WrongType) => Some("Name the file or directory itself."),
        (Request::Watch(_), Why::Exhausted) => Some(
            "Raise fs.inotify.max_user_watches or fs.inotify.max_user_instances on this machine.",
        ),
        // EROFS
        (_, Why::Denied) if failure.errno == 30 => Some(
            "It is protected, or shown to be read only. In a session that is made with --cow, or with \
             --allow-sensitive-writes, control files can be written. With the profile read-only nothing of the \
             workspace can.",
        ),
        (_, Why::WrongType) if failure.detail.starts_with("it is a socket") => Some(
            "Where it is a control file that is not there, a socket holds its place. In a session that \
             is made with --cow, or with --allow-sensitive-writes, it can be written.",
        ),
        _ => None,
    };
    error.hint = hint.map(str::to_owned).or(error.hint);
    error
}

/// Whether an error is about one file, so that others may be read still.
pub fn is_of_the_file(error: &Error) -> bool {
    match error.kind {
        ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::PathEscape
        | ErrorKind::NotAFile
        | ErrorKind::TooLarge
        | ErrorKind::Denied
        | ErrorKind::Usage
        | ErrorKind::Io => true,
        ErrorKind::Config
        | ErrorKind::Unsupported
        | ErrorKind::Unenforceable
        | ErrorKind::Unavailable
        | ErrorKind::SetupFailed
        | ErrorKind::TimedOut
        | ErrorKind::Canceled
        | ErrorKind::Protocol => false,
    }
}

/// Whether an error is a worker's word on this request, and not the want of one.
pub fn is_answer(request: &Request, error: &Error) -> bool {
    error.message.strip_prefix(&in_words(request)).is_some_and(|rest| rest.starts_with(": "))
}

/// The same for what was to be done, in words.
pub(super) fn error(what: &str, failure: &Failure) -> Error {
    let detail = printable(&failure.detail);
    // In the message and not as its cause: it is said of what lies inside, and not of the host, so that
    // every caller may know it.
    let errno = match failure.errno {
        0 => String::new(),
        errno => format!(": {}", std::io::Error::from_raw_os_error(errno)),
    };
    let (kind, hint) = meaning(failure.why);
    let mut error = Error::new(kind, format!("{what}: {detail}{errno}"));
    error.hint = hint.map(str::to_owned);
    error
}

/// HOSTILE: the text comes from inside, and will be shown to people.
pub(super) fn printable(detail: &str) -> String {
    detail.chars().filter(|c| !c.is_control()).take(MAX_DETAIL_CHARS).collect()
}

fn meaning(why: Why) -> (ErrorKind, Option<&'static str>) {
    match why {
        Why::BadRequest => (ErrorKind::Usage, Some("Correct what is named there.")),
        Why::Escape => (
            ErrorKind::PathEscape,
            Some("Name something in the workspace, and go through no link that leaves it."),
        ),
        Why::NotFound => (ErrorKind::NotFound, Some("List the directory to see what is there.")),
        Why::WrongType => (
            ErrorKind::NotAFile,
            Some("List the directory to see what that is, and ask for what can be done with it."),
        ),
        Why::TooLarge => (ErrorKind::TooLarge, Some("Read a part of it, or allow more.")),
        Why::Exists => (ErrorKind::Conflict, Some("Choose another name.")),
        Why::Changed => (ErrorKind::Conflict, Some("Read it again, then decide anew.")),
        Why::Denied => (ErrorKind::Denied, None),
        Why::Exhausted => (ErrorKind::Unavailable, Some("Make room, then try again.")),
        Why::Io => (ErrorKind::Io, None),
    }
}

fn in_words(request: &Request) -> String {
    let one = |verb: &str, path: &ByteString| format!("{verb} {path:?}");
    match request {
        Request::Read(order) => one("read", &order.path),
        Request::Write(order) => one("write", &order.path),
        Request::Append(order) => one("append to", &order.path),
        Request::Stat { path } => one("look at", path),
        Request::List(order) => one("list", &order.path),
        Request::MakeDirectory { path } => one("make the directory", path),
        Request::Move(order) => format!("move {:?} to {:?}", order.from, order.to),
        Request::Copy(order) => format!("copy {:?} to {:?}", order.from, order.to),
        Request::Remove(order) => one("remove", &order.path),
        Request::SetMode { path, .. } => one("set the permissions of", path),
        Request::Carry(_) => "change the files".to_owned(),
        Request::Recover(_) => "put right what was begun".to_owned(),
        Request::CopyTree(order) => format!("copy {:?} to {:?}", order.from, order.to),
        Request::Watch(order) => match order.paths.as_slice() {
            [] => "watch the workspace".to_owned(),
            [path] => one("watch", path),
            paths => format!("watch {} places", paths.len()),
        },
        Request::ReadMany(order) => match order.paths.as_slice() {
            [path] => one("read", path),
            paths => format!("read {} files", paths.len()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::files::{Move, Remove};

    #[test]
    fn what_a_worker_says_cannot_reach_a_terminal_raw() {
        let request = Request::Stat { path: "a\u{1b}[2J".into() };
        let detail = "\u{1b}[2Jgone".to_owned() + &"x".repeat(2000);
        let said = refusal(&request, &Failure { why: Why::NotFound, detail, errno: 2 });
        assert_eq!(said.kind, ErrorKind::NotFound);
        assert!(!said.message.contains('\u{1b}'), "{}", said.message);
        assert!(said.message.chars().count() < MAX_DETAIL_CHARS + 100);
    }

    #[test]
    fn a_hint_names_the_option_that_helps() {
        let (from, to) = ("a".into(), "b".into());
        let order = Move { from, to, replace: false };
        let failure = |why, detail: &str| Failure { why, detail: detail.to_owned(), errno: 0 };
        let hint = |request: Request, failure: Failure| refusal(&request, &failure).hint.unwrap();
        let there = || failure(Why::Exists, "something is there already");
        assert!(hint(Request::Move(order.clone()), there()).contains("with --replace"));
        assert!(hint(Request::Copy(order.clone()), there()).contains("with --replace"));
        let remove = Remove { path: "d".into(), recursive: false };
        let full = failure(Why::Exists, "it is a directory that is not empty");
        assert!(hint(Request::Remove(remove), full).contains("with --recursive"));
        let directory = failure(Why::WrongType, "it is a directory, and no regular file");
        assert!(hint(Request::Copy(order), directory).contains("with --recursive"));
        // There is none for what nothing replaces.
        let made = hint(Request::MakeDirectory { path: "d".into() }, there());
        assert_eq!(made, "Choose another name.");
    }

    #[test]
    fn why_a_call_failed_inside_is_in_the_message() {
        let request = Request::Stat { path: "a".into() };
        let failure =
            Failure { why: Why::NotFound, detail: "it is not there".to_owned(), errno: 2 };
        let said = refusal(&request, &failure);
        assert_eq!(
            said.chain(),
            "look at \"a\": it is not there: No such file or directory (os error 2)"
        );
        assert_eq!(said.message, said.chain());
    }
}
