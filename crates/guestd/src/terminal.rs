//! Pseudo-terminals.

use cofferdam_wire::message::TerminalSize;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Result;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// A terminal of the sandbox's own.
pub(crate) struct Pair {
    pub(crate) master: OwnedFd,
    pub(crate) slave: OwnedFd,
}

/// Opens a terminal of this size.
pub(crate) fn open(size: TerminalSize) -> Result<Pair> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = rustix::fs::openat(CWD, "/dev/pts/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(
        &master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )?;
    resize(&master, size)?;
    Ok(Pair { master, slave })
}

/// Changes a terminal's size; its foreground group hears of it.
pub(crate) fn resize(master: impl AsFd, size: TerminalSize) -> Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(master, size)
}
