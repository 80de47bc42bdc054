//! The caller's terminal while a command of a session has one of its own.

use cofferdam_core::Terminal;
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Read};
use tokio::sync::mpsc;

/// How much is read of standard input at once.
const PIECE_BYTES: usize = 64 << 10;

/// Whether standard input, output and error are all terminals.
pub(crate) fn is_whole() -> bool {
    std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && std::io::stderr().is_terminal()
}

/// Whether keys are typed at standard input.
pub(crate) fn reads_keys() -> bool {
    std::io::stdin().is_terminal()
}

/// The size of the caller's terminal, or that of a VT100 where there is none.
pub(crate) fn size() -> Terminal {
    const FALLBACK: Terminal = Terminal { rows: 24, columns: 80 };
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let sizes = [tcgetwinsize(&stdout), tcgetwinsize(&stdin), tcgetwinsize(&stderr)];
    let known = sizes.into_iter().flatten().find(|size| size.ws_row > 0 && size.ws_col > 0);
    known.map_or(FALLBACK, |size| Terminal { rows: size.ws_row, columns: size.ws_col })
}

/// The caller's terminal passing every key on, until this is dropped or [`Raw::leave`] is called.
#[derive(Debug)]
pub(crate) struct Raw {
    before: Option<Termios>,
    is_raw: bool,
}

impl Raw {
    /// Makes the caller's terminal pass every key on. Where standard input is none, does nothing.
    pub(crate) fn enter() -> Self {
        let mut raw = Self { before: tcgetattr(stdin()).ok(), is_raw: false };
        raw.enter_again();
        raw
    }

    /// Takes the terminal though it seems taken: somebody else may have set other modes since.
    pub(crate) fn enter_anew(&mut self) {
        self.is_raw = false;
        self.enter_again();
    }

    /// The same after [`Raw::leave`].
    pub(crate) fn enter_again(&mut self) {
        if let Some(before) = self.before.as_ref().filter(|_| !self.is_raw) {
            let mut raw = before.clone();
            raw.make_raw();
            self.is_raw = tcsetattr(stdin(), OptionalActions::Drain, &raw).is_ok();
        }
    }

    /// Makes the terminal as it was.
    pub(crate) fn leave(&mut self) {
        if let Some(before) = self.before.as_ref().filter(|_| self.is_raw) {
            let _ = tcsetattr(stdin(), OptionalActions::Drain, before);
            self.is_raw = false;
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.leave();
    }
}

/// What arrives on standard input, piece by piece; ends with it.
///
/// A thread reads it, because a terminal that is made not to block does not block its other users
/// either. It ends with the process.
pub(crate) fn typed() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match stdin.read(&mut piece) {
                Ok(0) => return,
                Ok(len) => {
                    let bytes = piece.iter().copied().take(len).collect();
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    receiver
}
