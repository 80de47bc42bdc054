//! From an [`Error`] to a sentence or an object. The only place that prints one.

use crate::blocking::NotTaken;
use crate::exit;
use crate::render::{self, plain};
use crate::verb::{Glance, VerbName};
use cofferdam_core::{Error, ErrorKind, ErrorReport};
use cofferdam_local::launch::{FEWER_ON_THEIR_WAY, MORE_FILES};
use rustix::io::Errno;
use std::borrow::Cow;
use std::error::Error as StdError;
use std::io::{IsTerminal, Write};

/// Prints the error as the caller wants it, and returns the exit code that stands for it.
pub(crate) fn print(glance: Glance, error: Error) -> u8 {
    let error = advised(error);
    let is_told = glance.json && render::print_json(&ErrorReport::from(&error)).is_ok();
    if !is_told {
        let text = sentence(glance.verb, &error, style());
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    exit::of_error(glance.verb, error.kind)
}

/// What helps where a disk takes nothing more.
const ROOM: &str =
    "Free some space on that disk, or set COFFERDAM_HOME to a directory on another one.";

/// The same of where the caller wants it.
pub(crate) const ROOM_THERE: &str = "Make room where it goes, or have it go elsewhere.";

/// What helps where a disk fails.
const DISK: &str = "See what the kernel says of that disk (`dmesg`), then try again.";

/// Whatever could not be opened or sent: where this process may open no more, nothing else helps. Whatever could not be
/// written on a full disk wants room, unless the error knows better; a disk that fails wants to be looked at.
fn advised(error: Error) -> Error {
    let causes = std::iter::successors(StdError::source(&error), |cause| StdError::source(*cause));
    let is = |errno: Errno| {
        causes.clone().any(|cause| {
            let cause: Option<&std::io::Error> = cause.downcast_ref();
            cause.and_then(std::io::Error::raw_os_error) == Some(errno.raw_os_error())
        })
    };
    let (opens_no_more, is_full) = (is(Errno::MFILE), is(Errno::NOSPC) || is(Errno::DQUOT));
    let is_callers = causes.clone().any(|cause| {
        let within = cause.downcast_ref().and_then(std::io::Error::get_ref);
        matches!(within, Some(within) if within.is::<NotTaken>())
    });
    if opens_no_more {
        error.hint(MORE_FILES)
    } else if is(Errno::TOOMANYREFS) {
        error.hint(FEWER_ON_THEIR_WAY)
    } else if is_full && error.hint.is_none() {
        error.hint(if is_callers { ROOM_THERE } else { ROOM })
    } else if is(Errno::IO) && error.hint.is_none() {
        error.hint(DISK)
    } else {
        error
    }
}

/// Where something makes no sense that a file says, and not the command line: names the file. Other errors stay.
pub(crate) fn of_file(what: &str, error: Error) -> Error {
    if error.kind != ErrorKind::Usage {
        return error;
    }
    let hint = error.hint.clone();
    let told = Error::new(error.kind, format!("{what} cannot be used"));
    Error { hint, ..told }.source(Said(error))
}

/// What is wrong with what a file says.
#[derive(Debug)]
struct Said(Error);

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Said {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        StdError::source(&self.0)
    }
}

/// Prints one line about a run on standard error.
pub(crate) fn note(text: &str) {
    let Style { name, end, .. } = style();
    // Where standard error is gone there is nobody left to tell.
    let _ = writeln!(std::io::stderr().lock(), "{name}cofferdam:{end} {}", told(text));
}

/// From how many lines on a message is output of a program, and no name with odd characters.
const QUOTED_LINES: usize = 4;

/// What somebody else may have written, visible. Of output each line stands by itself, marked so that none passes for
/// one of ours.
fn told(text: &str) -> Cow<'_, str> {
    if text.lines().count() < QUOTED_LINES {
        return plain(text);
    }
    let lines: Vec<_> = text.lines().map(plain).collect();
    Cow::Owned(lines.join("\n  | "))
}

/// The marks around parts of a sentence; empty where nobody sees colours.
#[derive(Debug, Clone, Copy)]
struct Style {
    name: &'static str,
    hint: &'static str,
    end: &'static str,
}

const PLAIN: Style = Style { name: "", hint: "", end: "" };
const COLOURED: Style = Style { name: "\x1b[1;31m", hint: "\x1b[1;36m", end: "\x1b[0m" };

fn style() -> Style {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if std::io::stderr().is_terminal() && !dumb && !set("NO_COLOR") { COLOURED } else { PLAIN }
}

fn sentence(verb: VerbName, error: &Error, style: Style) -> String {
    let Style { name, hint, end } = style;
    let is_of_file = error.source.as_ref().is_some_and(|source| source.is::<Said>());
    let doing = match error.kind {
        ErrorKind::Usage if !is_of_file => "read the command line",
        ErrorKind::Config => "read the configuration",
        ErrorKind::Usage
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::PathEscape
        | ErrorKind::NotAFile
        | ErrorKind::TooLarge
        | ErrorKind::Unsupported
        | ErrorKind::Denied
        | ErrorKind::Unenforceable
        | ErrorKind::Unavailable
        | ErrorKind::SetupFailed
        | ErrorKind::TimedOut
        | ErrorKind::Canceled
        | ErrorKind::Protocol
        | ErrorKind::Io => verb.doing(),
    };
    let mut text = format!("{name}cofferdam:{end} failed to {doing}: {}\n", told(&error.chain()));
    if let Some(advice) = &error.hint {
        text.extend(["\n", hint, "hint:", end, " ", &plain(advice), "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_sentence_with_its_causes_and_a_hint() {
        let cause = Error::new(ErrorKind::Io, "permission denied");
        let error = Error::new(ErrorKind::SetupFailed, "mount /proc").source(cause).hint("Do.");
        assert_eq!(
            sentence(VerbName::Run, &error, PLAIN),
            "cofferdam: failed to run the command: mount /proc: permission denied\n\nhint: Do.\n"
        );
    }

    #[test]
    fn what_a_file_says_is_no_fault_of_the_command_line() {
        let wrong = |kind| {
            let cause = Error::new(kind, "line 3").source(Error::new(ErrorKind::Io, "why"));
            of_file("the patch a.diff", cause.hint("Do."))
        };
        assert_eq!(
            sentence(VerbName::File, &wrong(ErrorKind::Usage), PLAIN),
            "cofferdam: failed to work on the files: the patch a.diff cannot be used: line 3: why\n\nhint: Do.\n"
        );
        assert_eq!(wrong(ErrorKind::Usage).kind, ErrorKind::Usage, "the exit code stays");
        assert_eq!(wrong(ErrorKind::Conflict).message, "line 3");
        // The control.
        let usage = Error::new(ErrorKind::Usage, "no such flag");
        assert!(sentence(VerbName::File, &usage, PLAIN).contains("read the command line"));
    }

    #[test]
    fn a_limit_of_open_files_is_named_however_deep_it_is_the_cause() {
        let hint = |errno: Errno| {
            let cause = Error::new(ErrorKind::Io, "open it").source(std::io::Error::from(errno));
            advised(Error::new(ErrorKind::Config, "read it").source(cause).hint("Do.")).hint
        };
        assert_eq!(hint(Errno::ACCESS).as_deref(), Some("Do."));
        assert!(hint(Errno::MFILE).unwrap().contains("ulimit -n"));
        assert_eq!(hint(Errno::TOOMANYREFS).as_deref(), Some(FEWER_ON_THEIR_WAY));
    }

    #[test]
    fn a_full_disk_is_told_with_what_helps_where_nothing_better_is_known() {
        let error = |errno: Errno| {
            Error::new(ErrorKind::Io, "write it").source(std::io::Error::from(errno))
        };
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            assert_eq!(advised(error(errno)).hint.as_deref(), Some(ROOM));
            assert_eq!(advised(error(errno).hint("Do.")).hint.as_deref(), Some("Do."));
        }
        assert_eq!(advised(error(Errno::IO)).hint.as_deref(), Some(DISK));
        assert_eq!(advised(error(Errno::ACCESS)).hint, None);
    }

    #[test]
    fn where_the_caller_has_output_go_is_named_where_it_is_full() {
        use crate::blocking::Outgoing;
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut out = Outgoing::to_file(full, std::path::Path::new("out.tar"));
        let cause = out.write_all(b"x").unwrap_err();
        assert_eq!(cause.kind(), std::io::ErrorKind::StorageFull);
        let error = advised(Error::new(ErrorKind::Io, "pass on what was read").source(cause));
        assert!(error.chain().contains("write to \"out.tar\": No space left"), "{error:?}");
        assert_eq!(error.hint.as_deref(), Some(ROOM_THERE));
        let cause = std::io::Error::from(Errno::NOSPC);
        let error = crate::beside::local("write", std::path::Path::new("out.pdf"), cause);
        assert_eq!(advised(error).hint.as_deref(), Some(ROOM_THERE));
    }

    #[test]
    fn a_name_from_inside_cannot_paint_the_terminal() {
        let error = Error::new(ErrorKind::NotFound, "a\x1b[2Jb\nc");
        let text = sentence(VerbName::Run, &error, PLAIN);
        assert!(text.contains("a\\u{1b}[2Jb\\nc"), "{text}");
    }

    #[test]
    fn output_in_an_error_keeps_its_lines_and_none_passes_for_ours() {
        let what = "init command \"x\" exited 1: one\n\u{1b}[2J\r\nhint: Do evil.\nlast";
        let text = sentence(VerbName::Run, &Error::new(ErrorKind::SetupFailed, what), PLAIN);
        let expected = "cofferdam: failed to run the command: init command \"x\" exited 1: one\n  \
                        | \\u{1b}[2J\n  | hint: Do evil.\n  | last\n";
        assert_eq!(text, expected);
    }
}
