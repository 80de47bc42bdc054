//! `cofferdam file read` by lines.

use super::file::ReadArgs;
use crate::door::Session;
use crate::render;
use clap::Args;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::FileWindow;
use cofferdam_session::window::{DEFAULT_WINDOW_LINES, LARGE_HINT, NO_TEXT_HINT, WindowOrder};

/// Which lines are wanted.
#[derive(Debug, Args)]
pub(crate) struct WindowOptions {
    /// Prints these lines of a text with their numbers, from the first to the last, which may be left
    /// out; at most 50 KiB. What follows is told on standard error.
    ///
    /// Example: --lines 100:150
    #[arg(long, value_name = "A:B", value_parser = lines,
        conflicts_with_all = ["offset", "length", "window"])]
    pub(crate) lines: Option<Lines>,

    /// Prints the first lines of a text with their numbers: at most 2000 lines and 50 KiB.
    ///
    /// Example: --window
    #[arg(long, conflicts_with_all = ["offset", "length"])]
    pub(crate) window: bool,
}

/// Lines from the first to the last, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    first: usize,
    count: usize,
}

impl WindowOptions {
    /// What is to be shown, if lines are wanted.
    pub(super) fn order(&self) -> Option<WindowOrder> {
        match (self.lines, self.window) {
            (Some(lines), _) => Some(WindowOrder { offset: lines.first - 1, limit: lines.count }),
            (None, true) => Some(WindowOrder::default()),
            (None, false) => None,
        }
    }
}

pub(super) async fn perform(args: &ReadArgs, order: WindowOrder, session: &Session) -> Result<()> {
    let window = session.read_window(&args.target.path, order).await.map_err(with_flags)?;
    if args.answer.json {
        return render::print_json(&FileWindow {
            session: session.id().to_string(),
            path: args.target.path.to_string_lossy().into_owned(),
            window,
        });
    }
    if window.lines_shown.is_some() {
        render::print_text(&format!("{}\n", window.content))?;
    }
    if let Some(truncation) = &window.truncation {
        if truncation.line_cut {
            eprintln!("cofferdam: the last line is cut");
        }
        if let Some(next) = truncation.next_offset {
            let left = window.total_lines.saturating_sub(next);
            let follow = if left == 1 { "line follows" } else { "lines follow" };
            eprintln!("cofferdam: {left} {follow}; go on with --lines {}:", next + 1);
        }
    }
    Ok(())
}

/// What helps, by the flags that do.
fn with_flags(error: Error) -> Error {
    match error.hint.as_deref() {
        Some(NO_TEXT_HINT) => error.hint(
            "Leave out --lines and --window, which prints its bytes; --offset and --length choose a part.",
        ),
        Some(LARGE_HINT) => error.hint(
            "Print a part of its bytes with --offset and --length, or search it with `cofferdam file grep`.",
        ),
        Some(_) | None => error,
    }
}

fn lines(text: &str) -> Result<Lines> {
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("{text:?} are no lines"))
            .hint("Write the first and the last line, counted from 1, as in 100:150 or 100:.")
    };
    let (first, last) = text.split_once(':').ok_or_else(wrong)?;
    let first: usize = first.parse().map_err(|_| wrong())?;
    let count = match last {
        "" => DEFAULT_WINDOW_LINES,
        last => {
            let last: usize = last.parse().map_err(|_| wrong())?;
            last.checked_sub(first).and_then(|more| more.checked_add(1)).ok_or_else(wrong)?
        }
    };
    if first == 0 { Err(wrong()) } else { Ok(Lines { first, count }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_1_and_the_last_is_among_them() {
        assert_eq!(lines("1:1").unwrap(), Lines { first: 1, count: 1 });
        assert_eq!(lines("10:12").unwrap(), Lines { first: 10, count: 3 });
        assert_eq!(lines("5:").unwrap(), Lines { first: 5, count: DEFAULT_WINDOW_LINES });
        for bad in ["", ":", "5", "0:4", "4:3", "a:b", "-1:3", "1:2:3", ":5"] {
            assert!(lines(bad).is_err(), "{bad:?}");
        }
        assert!(lines(&format!("1:{}", usize::MAX)).is_ok());
    }
}
