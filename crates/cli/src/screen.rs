//! The caller's terminal while a command of a session has one of its own.

use cofferdam_core::Terminal;
use cofferdam_local::raw_mode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, Read};
use std::sync::Mutex;
use tokio::sync::mpsc;

/// How much is read of standard input at once.
const PIECE_BYTES: usize = 64 << 10;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Held by who reads standard input, while there is something, and by who stops this program.
static READING: Mutex<()> = Mutex::new(());

/// Whether standard input, output and error are all terminals, and what is typed there is for this program, which it is
/// not in the background of a shell.
pub(crate) fn is_whole() -> bool {
    std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && std::io::stderr().is_terminal()
        && !raw_mode::is_in_background()
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

/// Stops this program with its job, see [`raw_mode::stop_job`]. Nothing that is typed from then on is for it: a shell may
/// be told of the others' stop before its own threads stand still.
pub(crate) fn stop_job() {
    let _held = READING.try_lock();
    raw_mode::stop_job();
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
            is_there(None);
            let held = READING.lock();
            if !is_there(Some(&AT_ONCE)) {
                continue;
            }
            let read = stdin.read(&mut piece);
            drop(held);
            match read {
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

/// Whether a read of standard input would not wait, within that time. Where that cannot be told, the read tells why.
fn is_there(within: Option<&Timespec>) -> bool {
    let stdin = PollFd::from_borrowed_fd(stdin(), PollFlags::IN);
    !matches!(poll(&mut [stdin], within), Ok(0) | Err(Errno::INTR))
}
