//! What the caller types and sends, passed on to a command.

use super::Left;
use crate::detach_keys::KeyWatch;
use crate::listen::{ENDING, Listening, one};
use crate::screen;
use cofferdam_core::{ErrorKind, ExecInput, ProcessId, Result};
use cofferdam_local::raw_mode::RawMode;
use cofferdam_session::Session;
use std::future::pending;
use tokio::signal::unix::SignalKind;

/// How much goes to a command at once. A pipe takes so much whole or not at all, so that a piece that
/// was not taken in time can be given again.
const PIECE_BYTES: usize = 4096;

/// Signals that are passed on to the command.
const PASSED_ON: [SignalKind; 6] = [
    SignalKind::interrupt(),
    SignalKind::terminate(),
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
];
/// What stops a program from its terminal, and what lets it go on.
const SIGTSTP: i32 = 20;
const SIGCONT: i32 = 18;

/// What of the caller reaches the command.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Standard input.
    pub(crate) reads: bool,
    /// Keys and size of the caller's terminal; standard input too.
    pub(crate) has_terminal: bool,
    /// Keys that leave the terminal.
    pub(crate) keys: Option<KeyWatch>,
    /// Signals; else they end the caller, and the command goes on.
    pub(crate) signals: bool,
}

impl Passed {
    /// Nothing of the caller: signals end it as they would any program.
    pub(crate) fn nothing() -> Self {
        Self { reads: false, has_terminal: false, keys: None, signals: false }
    }
}

/// Passes on what there is until the command is left. The terminal is as it was when this returns or
/// is dropped.
pub(super) async fn pass(session: &Session, exec: &ProcessId, passed: Passed) -> Result<Left> {
    let Passed { reads, has_terminal, keys, signals } = passed;
    let raw = has_terminal.then(|| {
        let mut raw = RawMode::off();
        raw.enter();
        raw
    });
    let typed = async {
        match reads || has_terminal {
            true => type_in(session, exec, keys).await,
            false => pending().await,
        }
    };
    let shown = async {
        match raw {
            Some(raw) => show(session, exec, raw).await,
            None => pending().await,
        }
    };
    let sent = async {
        match (signals, has_terminal) {
            (true, _) => send(session, exec).await,
            (false, true) => leave_at_a_signal().await,
            (false, false) => pending().await,
        }
    };
    tokio::select! {
        left = typed => left,
        left = shown => left,
        left = sent => left,
    }
}

/// Passes standard input on. Returns only where the keys that leave were typed.
async fn type_in(session: &Session, exec: &ProcessId, keys: Option<KeyWatch>) -> Result<Left> {
    let mut typed = screen::typed();
    let mut keys = keys;
    while let Some(bytes) = typed.recv().await {
        let (bytes, leaves) = match &mut keys {
            Some(keys) => {
                let taken = keys.take(&bytes);
                (taken.bytes, taken.leaves)
            }
            None => (bytes, false),
        };
        for piece in bytes.chunks(PIECE_BYTES) {
            if !give(session, exec, piece).await {
                return pending().await;
            }
        }
        if leaves {
            return Ok(Left::Running);
        }
    }
    // It may have ended meanwhile.
    let _ = session.input(exec, &ExecInput::Close).await;
    pending().await
}

/// Gives a piece, however long that takes. `false`: the command takes no input any more.
async fn give(session: &Session, exec: &ProcessId, piece: &[u8]) -> bool {
    let piece = ExecInput::Bytes(piece.to_vec());
    loop {
        match session.input(exec, &piece).await {
            Ok(()) => return true,
            Err(error) if error.kind == ErrorKind::TimedOut => {}
            Err(_) => return false,
        }
    }
}

/// Stops this program as by the key that does, because its command was stopped: [`show`] hears it,
/// and the caller's shell gets its prompt back.
pub(super) fn stop_too() {
    let own = rustix::process::getpid();
    let _ = rustix::process::kill_process(own, rustix::process::Signal::TSTP);
}

/// Keeps the command's terminal as large as the caller's, through stops of this program.
async fn show(session: &Session, exec: &ProcessId, mut raw: RawMode) -> Result<Left> {
    let mut resized = one(SignalKind::window_change())?;
    let mut stopped = one(SignalKind::from_raw(SIGTSTP))?;
    let mut went_on = one(SignalKind::from_raw(SIGCONT))?;
    loop {
        // It may have ended meanwhile.
        let _ = session.input(exec, &ExecInput::Resize(screen::size())).await;
        tokio::select! {
            _ = resized.recv() => {}
            _ = stopped.recv() => {
                raw.leave();
                let own = rustix::process::getpid();
                let _ = rustix::process::kill_process(own, rustix::process::Signal::STOP);
                raw.enter();
                // Most likely the command stopped first. It may have ended meanwhile.
                let _ = session.signal(exec, SIGCONT).await;
            }
            _ = went_on.recv() => {
                // The shell that called it back has set its own modes.
                raw.enter_anew();
            }
        }
    }
}

/// Passes signals on. Returns only where one comes while another is still on its way.
async fn send(session: &Session, exec: &ProcessId) -> Result<Left> {
    let mut signals = Listening::to(&PASSED_ON)?;
    loop {
        let number = signals.next().await;
        tokio::select! {
            // It may have ended meanwhile.
            _ = session.signal(exec, number) => {}
            _ = signals.next() => return Ok(Left::Abandoned),
        }
    }
}

async fn leave_at_a_signal() -> Result<Left> {
    Listening::to(&ENDING)?.next().await;
    Ok(Left::Running)
}
