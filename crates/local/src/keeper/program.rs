//! Starts keepers from the static program that a library carries.

use super::order::{Answer, Order, error};
use crate::conversation::sealed;
use crate::gate::{GateProgram, GatedSecrets};
use crate::launch::{MORE_PROCESSES, io_error};
use crate::state::{StateDirectory, retry};
use cofferdam_core::{Error, ErrorKind, Result, SandboxRecord};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The argument that makes the static program a keeper.
pub const ARGUMENT: &str = "keep";
/// How long the answer may take: longer than a set-up may.
const ANSWER_WITHIN: Timespec = Timespec { tv_sec: 90, tv_nsec: 0 };
/// Leads the name of the program's copy in the state directory; its length follows.
const COPY: &str = "program-";

/// How often, and with which pause, a program is tried that somebody seems to write.
const BUSY_TRIES: u32 = 500;
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// The static program as a library carries it.
#[derive(Clone, Copy)]
pub struct CarriedProgram {
    /// What it is, to the last byte.
    pub bytes: &'static [u8],
    /// What no other program is known by, in letters and digits: made from the bytes when the library
    /// is built, because to look at all of them takes longer than to start a keeper.
    pub mark: &'static str,
}

impl std::fmt::Debug for CarriedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CarriedProgram").field("mark", &self.mark).finish_non_exhaustive()
    }
}

/// Starts a keeper, does something `meanwhile`, and waits for its answer. `None`: it died before it
/// gave one.
pub(super) fn start(
    program: CarriedProgram,
    state: &StateDirectory,
    order: &Order,
    (gate, secrets): (Option<&GateProgram>, Option<&GatedSecrets>),
    meanwhile: impl FnOnce(),
) -> Result<Option<SandboxRecord>> {
    let text = serde_json::to_vec(order)
        .map_err(|e| Error::new(ErrorKind::Usage, "write down the order").source(e))?;
    let order = sealed("cofferdam-order", &text).map_err(|e| io_error("pass on the order", e))?;
    rustix::fs::seek(&order, rustix::fs::SeekFrom::Start(0))
        .map_err(|e| io_error("pass on the order", e))?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let (answer, theirs) = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)
        .map_err(|e| io_error("make a socket", e))?;
    if let Some(secrets) = secrets {
        // ORDER: it lies there before there is a keeper, who takes it once it has let go of all else.
        hand_over(&answer, secrets.vault()).map_err(|e| io_error("pass on secrets", e))?;
    }
    let file = match copy(program, state) {
        Ok(file) => file,
        // A full disk, for one. Memory does too, though each keeper then has a copy of its own.
        Err(_) => sealed("cofferdam-box", program.bytes)
            .map_err(|e| io_error("make the keeper's program", e))?,
    };
    let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    command.arg(ARGUMENT).env_clear().current_dir("/").stderr(streamed(gate)?);
    command.stdin(Stdio::from(order)).stdout(Stdio::from(theirs));
    let mut process = spawn(&mut command).map_err(not_started)?;
    // It holds the writing end, whose closing is the end of the answer.
    drop(command);
    meanwhile();
    let text = read_answer(&answer);
    // It ends as soon as the keeper is there.
    let _ = process.wait();
    let text = text?;
    if text.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(&text) {
        Ok(Answer::Made(record)) => Ok(Some(*record)),
        Ok(Answer::NotMade(body)) => Err(error(body)),
        Err(e) => Err(Error::new(ErrorKind::Protocol, "understand the keeper").source(e)),
    }
}

/// Sends a descriptor beside one byte.
fn hand_over(socket: &OwnedFd, given: &OwnedFd) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let given = [given.as_fd()];
    beside.push(SendAncillaryMessage::ScmRights(&given));
    retry(|| sendmsg(socket, &[IoSlice::new(b"s")], &mut beside, SendFlags::NOSIGNAL)).map(drop)
}

/// The program of the gate as a standard stream, by which the keeper gets it.
fn streamed(gate: Option<&GateProgram>) -> Result<Stdio> {
    let Some(gate) = gate else { return Ok(Stdio::null()) };
    let copy = gate.descriptor().try_clone();
    copy.map(Stdio::from)
        .map_err(|e| Error::new(ErrorKind::Io, "pass on the gate's program").source(e))
}

/// Starts a process. While another thread starts one too, that one's process may for a moment hold
/// the descriptor through which we have just written the program.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    let mut tries = 0..BUSY_TRIES;
    loop {
        match command.spawn() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => match tries.next() {
                Some(_) => std::thread::sleep(BUSY_PAUSE),
                None => return Err(e),
            },
            other => return other,
        }
    }
}

fn not_started(cause: std::io::Error) -> Error {
    let is_one_too_many = cause.raw_os_error() == Some(Errno::AGAIN.raw_os_error());
    let error = Error::new(ErrorKind::SetupFailed, "start the keeper").source(cause);
    if is_one_too_many { error.hint(MORE_PROCESSES) } else { error }
}

/// Reads until the keeper closes its end: when it has said all, or is dead.
fn read_answer(answer: &OwnedFd) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match retry(|| poll(&mut [PollFd::new(answer, PollFlags::IN)], Some(&ANSWER_WITHIN))) {
            Ok(1..) => {}
            Ok(0) => {
                return Err(Error::new(ErrorKind::TimedOut, "make the sandbox")
                    .hint("Look for it with a list of sandboxes, and destroy it."));
            }
            Err(errno) => return Err(io_error("wait for the keeper", errno)),
        }
        match retry(|| rustix::io::read(answer, &mut piece)) {
            // The second where it died before it took what it was sent.
            Ok(0) | Err(Errno::CONNRESET) => return Ok(text),
            Ok(count) => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
            Err(errno) => return Err(io_error("read the keeper's answer", errno)),
        }
    }
}

/// The program as a file of the state directory, which all keepers share in memory.
fn copy(program: CarriedProgram, state: &StateDirectory) -> rustix::io::Result<OwnedFd> {
    let name = format!("{COPY}{}", program.mark);
    if let Some(file) = good_copy(&name, program, state) {
        return Ok(file);
    }
    let fresh = format!(".{COPY}{}", crate::oneshot::unique());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(state.directory(), &fresh, flags, Mode::RUSR | Mode::XUSR)?;
    // ORDER: it is on the disk before it has its name, by which it is believed from then on.
    let written = write_all(&file, program.bytes).and_then(|()| rustix::fs::fsync(&file));
    drop(file);
    let placed = written
        .and_then(|()| rustix::fs::renameat(state.directory(), &fresh, state.directory(), &name));
    if let Err(errno) = placed {
        let _ = rustix::fs::unlinkat(state.directory(), &fresh, AtFlags::empty());
        return Err(errno);
    }
    remove_others(&name, state);
    good_copy(&name, program, state).ok_or(rustix::io::Errno::NOEXEC)
}

/// Copies of other versions. A keeper that runs one goes on; a start that loses one makes its own.
fn remove_others(name: &str, state: &StateDirectory) {
    let Ok(entries) = std::fs::read_dir(state.path()) else { return };
    for other in entries.flatten().map(|entry| entry.file_name()) {
        if other != name && other.to_str().is_some_and(|other| other.starts_with(COPY)) {
            let _ = rustix::fs::unlinkat(state.directory(), other, AtFlags::empty());
        }
    }
}

fn write_all(file: &OwnedFd, mut rest: &[u8]) -> rustix::io::Result<()> {
    while !rest.is_empty() {
        let count = retry(|| rustix::io::write(file, rest))?;
        rest = rest.get(count..).unwrap_or_default();
    }
    Ok(())
}

/// The copy of this name, if it is ours, whole and can be executed.
///
/// Nobody but us and root could have put something else there: it lies in a directory of our own that no
/// sandbox sees.
fn good_copy(name: &str, program: CarriedProgram, state: &StateDirectory) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(state.directory(), name, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let own = rustix::process::geteuid().as_raw();
    let mount = rustix::fs::fstatvfs(&file).ok()?;
    let is_good = stat.st_uid == own
        && stat.st_mode & 0o7777 == 0o500
        && u64::try_from(stat.st_size).ok() == u64::try_from(program.bytes.len()).ok()
        && !mount.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
    is_good.then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn a_copy_is_made_once_and_anew_where_it_is_not_whole() {
        let directory = TestDirectory::new("program-copy");
        let state = StateDirectory::open(directory.path()).unwrap();
        let program = CarriedProgram { bytes: b"one", mark: "1" };
        let path = state.path().join("program-1");
        let inode = |file: &OwnedFd| rustix::fs::fstat(file).unwrap().st_ino;
        let first = copy(program, &state).unwrap();
        assert_eq!(inode(&copy(program, &state).unwrap()), inode(&first));
        for spoil in [
            (|path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap())
                as fn(&Path),
            |path| {
                std::fs::remove_file(path).unwrap();
                std::fs::write(path, "on").unwrap();
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o500)).unwrap();
            },
        ] {
            spoil(&path);
            let another = copy(program, &state).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), program.bytes);
            assert_eq!(rustix::fs::fstat(&another).unwrap().st_mode & 0o7777, 0o500);
        }
        // One of the same length is another all the same, and takes its place.
        copy(CarriedProgram { bytes: b"two", mark: "2" }, &state).unwrap();
        assert_eq!(std::fs::read(state.path().join("program-2")).unwrap(), b"two");
        assert!(!path.exists());
    }

    #[test]
    fn a_program_that_is_just_being_written_is_waited_for() {
        let directory = TestDirectory::new("program-busy");
        let path = directory.path().join("program");
        std::fs::copy("/bin/true", &path).unwrap();
        let writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let busy = Command::new(&path).spawn().unwrap_err();
        assert_eq!(busy.kind(), std::io::ErrorKind::ExecutableFileBusy, "the control");
        let holder = std::thread::spawn(move || {
            std::thread::sleep(BUSY_PAUSE * 10);
            drop(writer);
        });
        assert!(spawn(&mut Command::new(&path)).unwrap().wait().unwrap().success());
        holder.join().unwrap();
    }
}
