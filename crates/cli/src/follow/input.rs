//! What the caller types and sends, passed on to a command.

use super::Left;
use crate::detach_keys::KeyWatch;
use crate::door::Session;
use crate::listen::{ENDING, Listening, one};
use crate::screen;
use cofferdam_core::{Error, ErrorKind, ExecInput, ProcessId, Result, WHOLE_INPUT_BYTES};
use cofferdam_local::raw_mode::RawMode;
use std::future::pending;
use tokio::signal::unix::{Signal, SignalKind};

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
    /// Signals; without, they end the caller, and the command goes on.
    pub(crate) signals: Option<Listening>,
}

impl Passed {
    /// Nothing of the caller: signals end it as they would any program.
    pub(crate) fn nothing() -> Self {
        Self { reads: false, has_terminal: false, keys: None, signals: None }
    }
}

/// The caller, listened to, with its terminal passing every key on. The terminal is as it was when this
/// is dropped.
///
/// It is there before anything of the command is shown: whoever sees that may type at once, and a key
/// that arrives before would be the caller's own.
#[derive(Debug)]
pub(super) struct Caller {
    types: bool,
    keys: Option<KeyWatch>,
    terminal: Option<CallersTerminal>,
    signals: Signals,
}

/// What is done about signals.
#[derive(Debug)]
enum Signals {
    PassedOn(Listening),
    Leave(Listening),
    Left,
}

impl Caller {
    /// Listens to it, as far as it is to be passed on.
    pub(super) fn new(passed: Passed) -> Result<Self> {
        let Passed { reads, has_terminal, keys, signals } = passed;
        let terminal = has_terminal.then(CallersTerminal::take).transpose()?;
        let signals = match (signals, has_terminal) {
            (Some(signals), _) => Signals::PassedOn(signals),
            (None, true) => Signals::Leave(Listening::to(&ENDING)?),
            (None, false) => Signals::Left,
        };
        Ok(Self { types: reads || has_terminal, keys, terminal, signals })
    }

    /// Passes on what there is until the command is left.
    pub(super) async fn pass(self, session: &Session, exec: &ProcessId) -> Result<Left> {
        let Self { types, keys, terminal, signals } = self;
        let typed = async {
            match types {
                true => type_in(session, exec, keys).await,
                false => pending().await,
            }
        };
        let shown = async {
            match terminal {
                Some(terminal) => terminal.show(session, exec).await,
                None => pending().await,
            }
        };
        let sent = async {
            match signals {
                Signals::PassedOn(signals) => send(session, exec, signals).await,
                Signals::Leave(mut signals) => {
                    signals.next().await;
                    Ok(Left::Running)
                }
                Signals::Left => pending().await,
            }
        };
        tokio::select! {
            left = typed => left,
            left = shown => left,
            left = sent => left,
        }
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
        for piece in bytes.chunks(WHOLE_INPUT_BYTES) {
            if !give(session, exec, piece).await? {
                return pending().await;
            }
        }
        if leaves {
            return Ok(Left::Running);
        }
    }
    if let Err(error) = session.input(exec, &ExecInput::Close).await {
        lost(session, exec, error).await?;
    }
    pending().await
}

/// Gives a piece, however long that takes: one that was not taken in time is given again. `false`: the command takes no input any more.
async fn give(session: &Session, exec: &ProcessId, piece: &[u8]) -> Result<bool> {
    let piece = ExecInput::Bytes(piece.to_vec());
    loop {
        match session.input(exec, &piece).await {
            Ok(()) => return Ok(true),
            Err(error) if error.kind == ErrorKind::TimedOut => {}
            Err(error) => return lost(session, exec, error).await.map(|()| false),
        }
    }
}

/// Input did not arrive, or nobody knows whether it did. An error where the command goes on and may wait for it:
/// whoever follows it would wait for ever.
async fn lost(session: &Session, exec: &ProcessId, error: Error) -> Result<()> {
    // It takes none any more.
    if matches!(error.kind, ErrorKind::Conflict | ErrorKind::NotFound) {
        return Ok(());
    }
    // What became of one that cannot be asked for, or that ended, is told by whoever follows it.
    let goes_on = session.status(exec).await.is_ok_and(|report| report.ended_ms.is_none());
    if !goes_on {
        return Ok(());
    }
    let what = format!("input may not have reached command {exec}, which goes on");
    Err(Error::new(error.kind, what)
        .hint("See what it wrote with `cofferdam logs`, or end it with `cofferdam signal`.")
        .source(error))
}

/// Stops this program as by the key that does, because its command was stopped: the
/// [`CallersTerminal`] hears it, and the caller's shell gets its prompt back.
pub(super) fn stop_too() {
    let own = rustix::process::getpid();
    let _ = rustix::process::kill_process(own, rustix::process::Signal::TSTP);
}

/// The caller's terminal, while every key of it is passed on.
#[derive(Debug)]
struct CallersTerminal {
    raw: RawMode,
    resized: Signal,
    stopped: Signal,
    went_on: Signal,
}

impl CallersTerminal {
    fn take() -> Result<Self> {
        let resized = one(SignalKind::window_change())?;
        let stopped = one(SignalKind::from_raw(SIGTSTP))?;
        let went_on = one(SignalKind::from_raw(SIGCONT))?;
        let mut raw = RawMode::off();
        raw.enter();
        Ok(Self { raw, resized, stopped, went_on })
    }

    /// Keeps the command's terminal as large as this one, through stops of this program.
    async fn show(mut self, session: &Session, exec: &ProcessId) -> Result<Left> {
        loop {
            // It may have ended meanwhile.
            let _ = session.input(exec, &ExecInput::Resize(screen::size())).await;
            tokio::select! {
                _ = self.resized.recv() => {}
                _ = self.stopped.recv() => {
                    self.raw.leave();
                    screen::stop_job();
                    self.raw.enter();
                    // Most likely the command stopped first. It may have ended meanwhile.
                    let _ = session.signal(exec, SIGCONT).await;
                }
                _ = self.went_on.recv() => {
                    // The shell that called it back has set its own modes.
                    self.raw.enter_anew();
                }
            }
        }
    }
}

/// HOSTILE: a command that stands still takes no signal until it goes on, and would hold its caller for ever.
async fn taken(session: &Session, exec: &ProcessId, number: i32) -> Result<()> {
    session.signal(exec, number).await?;
    if ENDING.contains(&number) { session.signal(exec, SIGCONT).await } else { Ok(()) }
}

/// Passes signals on. Returns only where one comes while another is still on its way.
async fn send(session: &Session, exec: &ProcessId, mut signals: Listening) -> Result<Left> {
    loop {
        let number = signals.next().await;
        tokio::select! {
            // It may have ended meanwhile.
            _ = taken(session, exec, number) => {}
            _ = signals.next() => return Ok(Left::Abandoned),
        }
    }
}
