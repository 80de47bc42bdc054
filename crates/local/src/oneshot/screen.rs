//! The caller's terminal while a command has one of its own.

use super::stream::{Input, Output};
use super::{OutputTo, sink};
use crate::raw_mode::RawMode;
use cofferdam_core::secret::Mask;
use cofferdam_wire::message::TerminalSize;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::stdio::{stdin, stdout};
use rustix::termios::tcgetwinsize;

/// The size of a terminal of which nothing is known.
const UNKNOWN: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// The caller's terminal, which may be none: a command can be given one all the same.
#[derive(Debug)]
pub(crate) struct Screen {
    raw: RawMode,
    reads: bool,
    output: OutputTo,
    mask: Option<Mask>,
}

impl Screen {
    /// Looks at the caller's terminal and changes nothing yet. `reads`: whether the caller's
    /// standard input goes to the command.
    pub(crate) fn new(reads: bool, output: OutputTo, mask: Option<Mask>) -> Self {
        Self { raw: RawMode::off(), reads, output, mask }
    }

    /// The caller's size.
    pub(crate) fn size(&self) -> TerminalSize {
        let of = |fd: BorrowedFd<'_>| tcgetwinsize(fd).ok().filter(|size| size.ws_row > 0);
        of(stdin())
            .or_else(|| of(stdout()))
            .map_or(UNKNOWN, |size| TerminalSize { rows: size.ws_row, columns: size.ws_col })
    }

    /// Whether the caller's terminal passes every key on.
    pub(crate) fn is_raw(&self) -> bool {
        self.raw.is_on()
    }

    /// Makes the caller's terminal pass every key on.
    pub(crate) fn enter(&mut self) {
        if self.reads {
            self.raw.enter();
        }
    }

    /// Makes the caller's terminal as it was.
    pub(crate) fn leave(&mut self) {
        self.raw.leave();
    }

    /// Ties the command's terminal to the caller's streams.
    pub(crate) fn connect(
        &self,
        master: OwnedFd,
        copy: OwnedFd,
    ) -> rustix::io::Result<(Option<Input>, Output)> {
        let output = Output::new(master, sink(self.output, stdout())?, self.mask.as_ref())?;
        let input = if self.reads { Some(Input::new(stdin(), copy)?) } else { None };
        Ok((input, output))
    }
}
