//! The kernel, where rustix does not reach.
#![expect(
    unsafe_code,
    reason = "the one file of this crate's engine that meets the kernel directly"
)]

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::process::Pid;
use std::ffi::{c_int, c_void};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Which side of a clone this is.
pub(crate) enum Cloned {
    /// The new process.
    Child,
    /// The caller.
    Parent {
        /// The new process, as the caller's namespace counts.
        pid: i32,
        /// A descriptor for it.
        pidfd: OwnedFd,
    },
}

/// `struct clone_args` of clone3(2).
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Makes a copy of this process in the new namespaces of `flags`, and in the control group `cgroup`
/// if there is one.
///
/// The caller must have one thread only: the copy goes on with all of its memory.
pub(crate) fn clone_process(flags: c_int, cgroup: Option<c_int>) -> Result<Cloned> {
    match flags & libc::CLONE_NEWUSER {
        0 => clone_as_is(flags, cgroup),
        _ => cofferdam_guestd::share_with_host(|| clone_as_is(flags, cgroup)),
    }
}

fn clone_as_is(flags: c_int, cgroup: Option<c_int>) -> Result<Cloned> {
    let mut pidfd: c_int = -1;
    let mut arguments = CloneArguments {
        flags: u64::try_from(flags).unwrap_or(0) | CLONE_PIDFD,
        pidfd: (&raw mut pidfd).expose_provenance() as u64,
        ..CloneArguments::default()
    };
    // A sibling tells of its end as its maker does.
    if flags & libc::CLONE_PARENT == 0 {
        arguments.exit_signal = u64::try_from(libc::SIGCHLD).unwrap_or(0);
    }
    if let Some(group) = cgroup {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = u64::try_from(group).unwrap_or(u64::MAX);
    }
    // SAFETY: no memory is shared and no stack is given, so this is a fork; the structure and the
    // place for the descriptor live for the call.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, std::ptr::from_ref(&arguments), size_of::<CloneArguments>())
    };
    match i32::try_from(pid) {
        Ok(0) => Ok(Cloned::Child),
        Ok(pid) if pid > 0 => {
            // SAFETY: the kernel just made this descriptor for us alone.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid, pidfd })
        }
        _ => {
            let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            Err(Errno::from_raw_os_error(error))
        }
    }
}

/// How much stack a child has that only waits.
const WAITER_STACK_BYTES: usize = 16 * 1024;

/// A child that shares this process's memory and does nothing but wait to be killed, in the new
/// namespaces of `flags`. It must be killed and waited for before the answer is dropped.
#[derive(Debug)]
pub(crate) struct Waiter {
    pid: i32,
    /// INVARIANT: lives as long as the child may run on it.
    _stack: Vec<u128>,
}

impl Waiter {
    /// Starts one. Costs much less than a fork, because no memory is copied.
    pub(crate) fn start(flags: c_int) -> Result<Self> {
        let mut stack = Vec::<u128>::with_capacity(WAITER_STACK_BYTES / 16);
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end.cast::<c_void>();
        let own = usize::try_from(rustix::process::getpid().as_raw_nonzero().get()).unwrap_or(0);
        // SAFETY: the stack is aligned, big enough for a loop around one system call, and kept until
        // the child is gone; the child touches nothing else of the shared memory.
        let pid = unsafe {
            libc::clone(
                wait_for_ever,
                top,
                flags | libc::CLONE_VM | libc::SIGCHLD,
                std::ptr::without_provenance_mut(own),
            )
        };
        if pid < 0 {
            let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Errno::from_raw_os_error(error));
        }
        Ok(Self { pid, _stack: stack })
    }

    /// The child, as the caller's namespace counts.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // SAFETY: no memory is passed, and the process is a child that nobody has waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: no status is wanted.
        while unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) } < 0 {
            if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                return;
            }
        }
    }
}

extern "C" fn wait_for_ever(parent: *mut c_void) -> c_int {
    // ORDER: the wish to die with the parent first, then the look whether it is there still.
    // SAFETY: no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // Its copy of the descriptor table would keep the caller's pipes and locks.
    // SAFETY: nothing here uses a descriptor, and the table is not shared.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    // SAFETY: no memory is passed.
    let now = unsafe { libc::getppid() };
    if usize::try_from(now) != Ok(parent.addr()) {
        return 1;
    }
    loop {
        // SAFETY: no memory is passed.
        unsafe { libc::pause() };
    }
}

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// A descriptor that tells the current runtime when it is readable or writable.
pub(crate) fn watched(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    watched_for(fd, Interest::READABLE | Interest::WRITABLE)
}

/// The same, where only one of the two is of interest: the other one then wakes nobody.
pub(crate) fn watched_for(fd: OwnedFd, interest: Interest) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open and stays the same one for as long as it is owned.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(Into::into)
}

/// Ends this process at once, without running anything registered for its end.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(code) }
}

/// Has a write beyond the limit of a file's size fail, in place of this process.
pub(crate) fn outlive_file_limit() {
    // SAFETY: to ignore a signal calls nothing.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Whether this signal is ignored, as `nohup` and a shell's background have it.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all-zero bytes are a valid action.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and the place for the answer lives for the call.
    let done = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    done == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Blocks these signals for this thread and gives a descriptor that reads them instead.
pub(crate) fn signals(wanted: &[c_int]) -> Result<OwnedFd> {
    // SAFETY: all-zero bytes are a valid set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in wanted {
        // SAFETY: the set is ours.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    // SAFETY: the set lives for the call; the old one is not wanted.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    // SAFETY: the set lives for the call.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(Errno::from_raw_os_error(error));
    }
    // SAFETY: the kernel just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A System V shared memory segment that anybody may attach by its id while this lives. The kernel
/// removes it with its last user, so that nothing is left of a killed process.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    id: c_int,
    address: *mut c_void,
}

// SAFETY: the address is only handed back to the kernel, which takes it from any thread.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; nothing is read or written through it.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes one of a page.
    pub(crate) fn new() -> Result<Self> {
        let last = || {
            Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
        };
        // SAFETY: no memory is passed.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o666) };
        if id < 0 {
            return Err(last());
        }
        // SAFETY: the kernel chooses the place.
        let address = unsafe { libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY) };
        let failed = (address.addr() == usize::MAX).then(last);
        // ORDER: after it was attached, or it would be gone at once.
        // SAFETY: IPC_RMID takes no structure.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        failed.map_or(Ok(Self { id, address }), Err)
    }

    /// Its id, as the host counts.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the address is where the kernel attached it, and nothing refers to it.
        unsafe { libc::shmdt(self.address) };
    }
}

/// Closes every descriptor from this one on.
pub(crate) fn close_all_from(first: u32) -> Result<()> {
    // SAFETY: to be called where nothing owns such a descriptor that is used afterwards.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// The user at the other end of a local socket, as it was when that connected.
pub(crate) fn peer_uid(socket: &OwnedFd) -> Result<u32> {
    peer(socket).map(|credentials| credentials.uid)
}

/// The process at the other end of a local socket, as it was when that connected; `None` where it has
/// no number here.
pub(crate) fn peer_pid(socket: &OwnedFd) -> Option<Pid> {
    peer(socket).ok().and_then(|credentials| Pid::from_raw(credentials.pid))
}

fn peer(socket: &OwnedFd) -> Result<libc::ucred> {
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the structure and its length live for the call and are of this option's kind.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if done == 0 { Ok(credentials) } else { Err(last_error()) }
}

/// Gives memory that is free back to the system.
pub(crate) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no memory is passed, and what is in use is not touched.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Has a gate that is started find its control socket, have nothing else of ours, and die with the
/// thread that starts it.
pub(crate) fn prepare_gate(command: &mut std::process::Command, control: &OwnedFd) {
    use std::os::unix::process::CommandExt;
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    let control = control.as_raw_fd();
    let place = cofferdam_core::network::CONTROL_DESCRIPTOR;
    let parent = std::process::id();
    let prepare = move || {
        let done = |answer: std::ffi::c_long| match answer {
            0.. => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        };
        // ORDER: the wish first, then the look whether the parent is there still.
        // SAFETY: no memory is passed.
        done(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }.into())?;
        // SAFETY: no memory is passed.
        if u32::try_from(unsafe { libc::getppid() }) != Ok(parent) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        // Not in the caller's terminal, whose signals are for commands.
        // SAFETY: no memory is passed.
        done(unsafe { libc::setsid() }.into())?;
        // ORDER: before the copy, which stays open.
        // SAFETY: descriptors of this process are given up, which is about to be another program.
        let others =
            unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, CLOSE_RANGE_CLOEXEC) };
        done(others)?;
        // SAFETY: the caller keeps `control` open, which is not `place`.
        done(unsafe { libc::dup2(control, place) }.into())
    };
    // SAFETY: only system calls are made between fork and exec.
    unsafe { command.pre_exec(prepare) };
}

/// The most bytes of a handle that the kernel makes.
const HANDLE_BYTES: u32 = 128;

/// `struct file_handle` of name_to_handle_at(2), with room.
#[repr(C)]
struct FileHandle {
    bytes: u32,
    kind: c_int,
    handle: [u8; HANDLE_BYTES as usize],
}

/// The type and bytes of the handle that a file system knows a file by, whatever it is called.
pub(crate) fn file_handle(file: &OwnedFd) -> Result<(i32, Vec<u8>)> {
    let handle = [0; HANDLE_BYTES as usize];
    let mut found = FileHandle { bytes: HANDLE_BYTES, kind: 0, handle };
    let mut mount: c_int = 0;
    let (fd, call) = (file.as_raw_fd(), libc::SYS_name_to_handle_at);
    let (handle, mount) = (&raw mut found, &raw mut mount);
    // SAFETY: the structures live for the call, and the first one says how much room it has.
    let done = unsafe { libc::syscall(call, fd, c"".as_ptr(), handle, mount, libc::AT_EMPTY_PATH) };
    if done != 0 {
        return Err(last_error());
    }
    let bytes = usize::try_from(found.bytes).unwrap_or(0);
    Ok((found.kind, found.handle.get(..bytes).unwrap_or_default().to_vec()))
}

fn last_error() -> Errno {
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Errno::from_raw_os_error(error)
}

/// The process group of a process, 0 being this one. A group whose leader is outside of our pid namespace is told as 0,
/// which the type of rustix cannot hold.
pub(crate) fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory is passed.
    Some(unsafe { libc::getpgid(pid) }).filter(|group| *group >= 0)
}

/// The same of its session.
pub(crate) fn session_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory is passed.
    Some(unsafe { libc::getsid(pid) }).filter(|session| *session >= 0)
}
