//! Attacks on terminals: P11.

use super::attack::{Group, Row, Scene};
use super::outcome::{Door, Layer, Outcome};
use super::sys;
use rustix::pty::OpenptFlags;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};

const TERMINAL: Group = Group { axis: "processes", promise: "P11", door: Door::Call };

pub(super) const ROWS: &[Row] = &[
    TERMINAL.check("processes.push_input", |_| on_own(push, "TIOCSTI"), window_size),
    TERMINAL.check(
        "processes.push_input_high_bits",
        |_| on_own(push_high, "TIOCSTI, high bits"),
        window_size,
    ),
    TERMINAL.check("processes.paste_selection", |_| on_own(paste, "TIOCLINUX"), window_size),
    TERMINAL.check(
        "processes.paste_selection_high_bits",
        |_| on_own(paste_high, "TIOCLINUX, high bits"),
        window_size,
    ),
    TERMINAL.check("processes.callers_terminal", callers_terminal, window_size),
    TERMINAL.check("processes.other_terminals", other_terminals, window_size),
    TERMINAL.usable("use.terminal", window_size),
];

const PUSH: usize = 0x5412;
const PASTE: usize = 0x541c;
const SIZE: usize = 0x5413;
const TAKE: usize = 0x540e;
/// A filter that compares 64 bits misses this; the kernel reads 32.
const HIGH: usize = 1 << 32;

/// A terminal of its own: both ends.
struct Pair {
    _master: OwnedFd,
    slave: File,
}

fn open_pair() -> std::io::Result<Pair> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let path = name.to_string_lossy().into_owned();
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOCTTY);
    let slave = options.read(true).write(true).open(path)?;
    Ok(Pair { _master: master, slave })
}

fn ioctl(file: &File, request: usize, argument: usize) -> Result<usize, i32> {
    let number = usize::try_from(file.as_raw_fd()).unwrap_or(usize::MAX);
    sys::raw(libc::SYS_ioctl, [number, request, argument, 0, 0, 0])
}

/// The kernel wants a controlling terminal for this, so the child makes its own to be one.
fn on_own(act: fn(&File) -> Result<usize, i32>, call: &str) -> Outcome {
    let pair = match open_pair() {
        Ok(pair) => pair,
        Err(error) => return Outcome::untried(format!("no terminal could be made: {error}")),
    };
    if let Err(errno) = lead_a_session(&pair.slave) {
        return Outcome::untried(format!("no controlling terminal could be had: error {errno}"));
    }
    match act(&pair.slave) {
        // Not a console: the kernel was asked all the same.
        Err(libc::ENOTTY | libc::EINVAL) => Outcome::did(format!("{call} reached the kernel")),
        other => Outcome::of_call(call, other),
    }
}

/// The leader of a process group cannot lead a session, so a child does it in its place.
fn lead_a_session(slave: &File) -> Result<(), i32> {
    match sys::fork()? {
        sys::Forked::Child => {}
        sys::Forked::Parent(child) => {
            // The answer is the child's; this one only waits.
            let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
            sys::exit(0)
        }
    }
    rustix::process::setsid().map_err(rustix::io::Errno::raw_os_error)?;
    ioctl(slave, TAKE, 0).map(drop)
}

fn push(slave: &File) -> Result<usize, i32> {
    ioctl(slave, PUSH, b"x".as_ptr() as usize)
}

fn push_high(slave: &File) -> Result<usize, i32> {
    ioctl(slave, PUSH | HIGH, b"x".as_ptr() as usize)
}

fn paste(slave: &File) -> Result<usize, i32> {
    ioctl(slave, PASTE, [3_u8, 0].as_ptr() as usize)
}

fn paste_high(slave: &File) -> Result<usize, i32> {
    ioctl(slave, PASTE | HIGH, [3_u8, 0].as_ptr() as usize)
}

fn window_size(_: &Scene<'_>) -> Outcome {
    let pair = match open_pair() {
        Ok(pair) => pair,
        Err(error) => return Outcome::of::<()>("make a terminal", &Err(error)),
    };
    let mut size = [0_u16; 4];
    Outcome::of_call("TIOCGWINSZ", ioctl(&pair.slave, SIZE, size.as_mut_ptr() as usize))
}

fn callers_terminal(_: &Scene<'_>) -> Outcome {
    match OpenOptions::new().read(true).write(true).open("/dev/tty") {
        Ok(_) => Outcome::did("open /dev/tty"),
        Err(error) => {
            Outcome::met_at(Layer::View, error.raw_os_error().unwrap_or(0), "open /dev/tty")
        }
    }
}

/// The sandbox has a set of terminals of its own, and the battery has opened none of them.
fn other_terminals(_: &Scene<'_>) -> Outcome {
    let mut names = match std::fs::read_dir("/dev/pts") {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name()),
        Err(error) => return Outcome::of::<()>("list /dev/pts", &Err(error)),
    };
    match names.find(|name| name.to_str().is_some_and(|n| n.parse::<u32>().is_ok())) {
        Some(name) => Outcome::did(format!("there is /dev/pts/{}", name.display())),
        None => Outcome::met_at(Layer::View, libc::ENOENT, "find another terminal"),
    }
}
