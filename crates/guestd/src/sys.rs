//! The kernel, where rustix does not reach.
#![expect(unsafe_code, reason = "the one file of this crate that meets the kernel directly")]

use crate::network::Trial;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::mount::UnmountFlags;
use rustix::thread::UnshareFlags;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

fn check(answer: c_long) -> Result<c_long> {
    if answer < 0 { Err(last_errno()) } else { Ok(answer) }
}

fn last_errno() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
#[derive(Default)]
pub(crate) struct MountAttributes {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) propagation: u64,
    pub(crate) userns_fd: u64,
}

/// Changes a mount, and with `AT_RECURSIVE` in `flags` all below it.
pub(crate) fn mount_setattr(
    mount: BorrowedFd<'_>,
    flags: c_int,
    attributes: &MountAttributes,
) -> Result<()> {
    // SAFETY: the structure lives for the call and its size is given.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags | libc::AT_EMPTY_PATH,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    check(answer).map(drop)
}

/// Leaves the namespaces in `flags` for new ones.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<()> {
    // SAFETY: the descriptor table, which somebody may rely on to be shared, is never among them.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// What takes the kernel long and can be done while the rest goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    /// Makes a network namespace, and brings its loopback interface up.
    NetworkWithLoopback,
    /// Makes a network namespace.
    Network,
    /// Detaches what is mounted on the working directory, with all below it.
    Unmount,
}

/// How much stack a child has that only makes a few system calls.
const BESIDE_STACK_BYTES: usize = 64 * 1024;

/// A child that shares this process's memory and descriptors, does one thing, and ends.
#[derive(Debug)]
pub(crate) struct Beside {
    pid: i32,
    work: Box<Work>,
    /// INVARIANT: lives as long as the child may run on it.
    _stack: Vec<u128>,
}

/// What the child is asked for, and what it answers.
#[derive(Debug)]
struct Work {
    job: Job,
    /// A descriptor where the job makes one, else 0; or the negative number of an error.
    answer: AtomicI32,
}

impl Beside {
    /// Starts it. It has this process's namespaces, user, capabilities and directories of now.
    pub(crate) fn start(job: Job) -> Result<Self> {
        let mut stack = Vec::<u128>::with_capacity(BESIDE_STACK_BYTES / 16);
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end.cast::<c_void>();
        let work = Box::new(Work { job, answer: AtomicI32::new(-libc::EINTR) });
        // No signal tells of its end, so that nobody takes it for a command's.
        // SAFETY: the stack is big enough for a function that only makes system calls, is aligned,
        // and both it and the answer's place are kept until the child is gone.
        let pid = unsafe {
            libc::clone(
                work_beside,
                top,
                libc::CLONE_VM | libc::CLONE_FILES,
                std::ptr::from_ref(&*work).cast_mut().cast::<c_void>(),
            )
        };
        check(pid.into())?;
        Ok(Self { pid, work, _stack: stack })
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Result<()> {
        self.answer().map(drop)
    }

    /// Waits for its end. Answers a socket in the namespace that it made.
    pub(crate) fn finish_network(self) -> Result<OwnedFd> {
        let socket = self.answer()?;
        // SAFETY: the child made this descriptor in the table that we share, for us alone.
        Ok(unsafe { OwnedFd::from_raw_fd(socket) })
    }

    fn answer(mut self) -> Result<c_int> {
        self.wait();
        match self.work.answer.load(Ordering::Acquire) {
            answer @ 0.. => Ok(answer),
            error => Err(Errno::from_raw_os_error(-error)),
        }
    }

    fn wait(&mut self) {
        let pid = std::mem::replace(&mut self.pid, 0);
        // SAFETY: no status is wanted.
        while pid != 0 && unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) } < 0 {
            if last_errno() != Errno::INTR {
                return;
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.wait();
    }
}

/// INVARIANT: calls nothing of the C library that can fail, nor anything that allocates: the place
/// for its error number and the heap are shared.
extern "C" fn work_beside(work: *mut c_void) -> c_int {
    // SAFETY: the parent passed this very type, keeps it, and changes nothing of it.
    let work = unsafe { &*work.cast_const().cast::<Work>() };
    let done = match work.job {
        Job::NetworkWithLoopback => new_network(true),
        Job::Network => new_network(false),
        Job::Unmount => rustix::mount::unmount(c".", UnmountFlags::DETACH).map(|()| 0),
    };
    work.answer.store(done.unwrap_or_else(|errno| -errno.raw_os_error()), Ordering::Release);
    exit_now(0)
}

fn new_network(loopback: bool) -> Result<c_int> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    unshare(UnshareFlags::NEWNET)?;
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    if loopback {
        loopback_up(socket.as_fd())?;
    }
    Ok(socket.into_raw_fd())
}

/// How much stack a trial has.
const TRIAL_STACK_BYTES: usize = 256 * 1024;

/// Tries what a way out needs in a network namespace that is gone afterwards.
pub(crate) fn try_in_new_network() -> Result<Trial> {
    let mut stack = Vec::<u128>::with_capacity(TRIAL_STACK_BYTES / 16);
    let top = stack.spare_capacity_mut().as_mut_ptr_range().end.cast::<c_void>();
    let mut answer: Option<Trial> = None;
    // SAFETY: the stack is big enough and aligned. This thread stands still until the child is gone,
    // so that the child may use what is this thread's: it is as if it went on here. Descriptors and
    // namespaces are the child's own.
    let pid = unsafe {
        libc::clone(
            work_in_trial,
            top,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
            (&raw mut answer).cast::<c_void>(),
        )
    };
    check(pid.into())?;
    // SAFETY: no status is wanted.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) } < 0 {
        if last_errno() != Errno::INTR {
            break;
        }
    }
    answer.ok_or(Errno::CHILD)
}

extern "C" fn work_in_trial(answer: *mut c_void) -> c_int {
    let trial = Trial::run();
    // SAFETY: the parent passed the address of this very type, and stands still.
    unsafe { *answer.cast::<Option<Trial>>() = Some(trial) };
    exit_now(0)
}

/// The network namespace that a socket is in.
pub(crate) fn network_of(socket: BorrowedFd<'_>) -> Result<OwnedFd> {
    const SIOCGSKNS: libc::c_ulong = 0x894C;
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS as _, 0) };
    check(fd.into())?;
    // SAFETY: the kernel just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets real, effective and saved user id.
pub(crate) fn setresuid(uid: u32) -> Result<()> {
    // SAFETY: no memory is passed. The caller is single-threaded, so no thread keeps the old id.
    let answer = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
    check(answer).map(drop)
}

/// Sets real, effective and saved group id.
pub(crate) fn setresgid(gid: u32) -> Result<()> {
    // SAFETY: no memory is passed. The caller is single-threaded, so no thread keeps the old id.
    let answer = unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) };
    check(answer).map(drop)
}

/// Leaves all supplementary groups.
pub(crate) fn clear_groups() -> Result<()> {
    // SAFETY: a count of 0 reads no memory.
    let answer = unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()) };
    check(answer).map(drop)
}

/// prctl(2) with integer arguments.
pub(crate) fn prctl(option: c_int, argument: usize) -> Result<c_long> {
    // SAFETY: only options that take integers are used in this crate.
    let answer = unsafe { libc::syscall(libc::SYS_prctl, option, argument, 0, 0, 0) };
    check(answer)
}

/// Sets the effective, permitted and inheritable capabilities of this thread.
pub(crate) fn capset(effective: u64, permitted: u64, inheritable: u64) -> Result<()> {
    let header: [u32; 2] = [0x2008_0522, 0];
    let low = |set: u64| u32::try_from(set & 0xffff_ffff).unwrap_or_default();
    let high = |set: u64| u32::try_from(set >> 32).unwrap_or_default();
    let data: [u32; 6] = [
        low(effective),
        low(permitted),
        low(inheritable),
        high(effective),
        high(permitted),
        high(inheritable),
    ];
    // SAFETY: version 3 of the interface takes two structures of three words, as laid out above.
    let answer = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
    check(answer).map(drop)
}

/// The limit of open files, as a number that the calls below take.
pub(crate) const OPEN_FILES: c_int = libc::RLIMIT_NOFILE.cast_signed();

/// The hard limit of a resource.
pub(crate) fn hard_limit(resource: c_int) -> Result<u64> {
    let mut both = [0_u64; 2];
    // SAFETY: no new limit is read, and the old one of two words is written.
    let answer = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, std::ptr::null::<u64>(), both.as_mut_ptr())
    };
    check(answer)?;
    Ok(both[1])
}

/// Sets both limits of a resource.
pub(crate) fn setrlimit(resource: c_int, limit: u64) -> Result<()> {
    let both = [limit, limit];
    // SAFETY: a new limit of two words is read, and no old one is written.
    let answer = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, both.as_ptr(), std::ptr::null::<u64>())
    };
    check(answer).map(drop)
}

/// Loads a system call filter for all threads of this process, and their descendants.
pub(crate) fn load_seccomp(program: &mut [libc::sock_filter]) -> Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: the program and its length belong together and live for the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            std::ptr::from_ref(&program),
        )
    };
    // More than 0 is a thread that has another filter, and then none has this one.
    if check(answer)? == 0 { Ok(()) } else { Err(Errno::BUSY) }
}

/// `struct landlock_ruleset_attr` up to ABI 6.
#[repr(C)]
#[derive(Default)]
pub(crate) struct RulesetAttributes {
    pub(crate) handled_access_fs: u64,
    pub(crate) handled_access_net: u64,
    pub(crate) scoped: u64,
}

/// Makes a Landlock ruleset; `size` tells the kernel how much of the structure is meant.
pub(crate) fn landlock_ruleset(attributes: &RulesetAttributes, size: usize) -> Result<OwnedFd> {
    // SAFETY: the structure lives for the call and is at least `size` long.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::from_ref(attributes),
            size.min(size_of::<RulesetAttributes>()),
            0,
        )
    };
    let fd = c_int::try_from(check(answer)?).map_err(|_| Errno::OVERFLOW)?;
    // SAFETY: the kernel just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The Landlock ABI of this kernel: 0 where there is none, or it is switched off.
pub fn landlock_abi() -> u32 {
    // SAFETY: with no structure and flag 1 the kernel answers its version.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<c_void>(), 0, 1)
    };
    u32::try_from(answer).unwrap_or(0)
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: c_int,
}

/// Allows `access` beneath `path`.
pub(crate) fn landlock_allow(
    ruleset: BorrowedFd<'_>,
    path: BorrowedFd<'_>,
    access: u64,
) -> Result<()> {
    let rule = PathBeneath { allowed: access, parent: path.as_raw_fd() };
    // SAFETY: rule type 1 takes this structure, which lives for the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            1,
            std::ptr::from_ref(&rule),
            0,
        )
    };
    check(answer).map(drop)
}

/// Puts this thread and all its descendants under the ruleset.
pub(crate) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no memory is passed.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    check(answer).map(drop)
}

/// Brings the loopback interface up.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = c_char::try_from(byte).unwrap_or_default();
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
    // SAFETY: SIOCSIFFLAGS reads one ifreq.
    let request = unsafe { rustix::ioctl::Setter::<SIOCSIFFLAGS, libc::ifreq>::new(request) };
    // SAFETY: it changes an interface and nothing of this process.
    unsafe { rustix::ioctl::ioctl(socket, request) }
}

/// As in linux/sockios.h, the same on every architecture.
const SIOCSIFFLAGS: rustix::ioctl::Opcode = 0x8914;

/// Overwrites `len` bytes of this process's memory at `address` with zeros.
///
/// Meant for the argument and environment strings that the kernel put there and shows in /proc.
pub(crate) fn wipe(address: usize, len: usize) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the caller took both numbers from the kernel's own account of this process's argument
    // area, which is mapped, writable, and no longer read by anything in this process.
    unsafe { std::ptr::write_bytes(place, 0, len) };
}

/// Closes all descriptors from `first` to `last`.
pub(crate) fn close_range(first: u32, last: u32) -> Result<()> {
    // SAFETY: the caller gives ranges that hold no descriptor owned by a live value.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    check(answer).map(drop)
}

/// From this size on the allocator takes fresh pages from the system for each piece, and gives them
/// back with it.
const LARGE_BYTES: c_int = 64 * 1024;

/// Has the allocator keep large pieces apart, for as long as this process lives. By itself it would
/// put them among the others once it has freed one, and fill them with zeros by hand.
pub(crate) fn keep_large_memory_apart() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no memory is passed, and what is in use stays as it is.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES)
    };
}

/// Gives memory that is free inside this process back to the system: of the heap, and of the stack
/// below its present depth. For the first thread of a process, and for one that called
/// [`live_on_a_thread`].
pub(crate) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no memory is passed, and what is in use is not touched.
    unsafe {
        libc::malloc_trim(0)
    };
    give_stack_back();
}

/// How far below its present depth the stack is given back: what a new process's stack holds.
const STACK_BYTES: usize = 128 * 1024;
/// What is left below the present depth, for the call itself.
const STACK_MARGIN_BYTES: usize = 8 * 1024;
const PAGE_BYTES: usize = 4096;

/// The stack of a thread that calls [`live_on_a_thread`] first of all.
pub(crate) const THREAD_STACK_BYTES: usize = 512 * 1024;
/// What of it may lie above its first frame, or be no stack.
const THREAD_STACK_REST_BYTES: usize = 64 * 1024;
/// The lowest address of the stack that is given back; 0 for that of a process.
static STACK_ENDS: AtomicUsize = AtomicUsize::new(0);

/// For the only thread of a process beside the first one, which waits for it.
#[inline(never)]
pub(crate) fn live_on_a_thread() {
    let here = 0_u8;
    let depth = (&raw const here).expose_provenance();
    let ends = depth.saturating_sub(THREAD_STACK_BYTES - THREAD_STACK_REST_BYTES);
    STACK_ENDS.store(ends.next_multiple_of(PAGE_BYTES), Ordering::Relaxed);
    #[cfg(target_env = "gnu")]
    // SAFETY: no memory is passed. Two threads of which one waits need no heap each.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1)
    };
}

#[inline(never)]
fn give_stack_back() {
    let here = 0_u8;
    let depth = (&raw const here).expose_provenance();
    let end = depth.saturating_sub(STACK_MARGIN_BYTES) & !(PAGE_BYTES - 1);
    let start = end.saturating_sub(STACK_BYTES).max(STACK_ENDS.load(Ordering::Relaxed));
    let length = end.saturating_sub(start);
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(start);
    // What was never reached of a process's stack is not mapped and nothing else is there: the kernel
    // keeps a gap of a MiB below it. It says so, and gives back the rest.
    // SAFETY: the stack grows downward, and nothing is alive below the frame of a function that
    // calls nothing but this. A thread's does not end before `start`.
    unsafe { libc::madvise(start, length, libc::MADV_DONTNEED) };
}

/// Blocks every signal for this thread.
pub(crate) fn block_signals() {
    // SAFETY: all-zero bytes are a valid set, filled on the next line.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: the set lives for the call; the old one is not wanted.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) };
}

/// A descriptor that is readable when a child changed its state. The signal must be blocked.
pub(crate) fn child_signals() -> Result<OwnedFd> {
    // SAFETY: all-zero bytes are a valid set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGCHLD) };
    // SAFETY: the set lives for the call.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    check(fd.into())?;
    // SAFETY: the kernel just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A child that changed its state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waited {
    pub(crate) pid: i32,
    pub(crate) status: i32,
    pub(crate) cpu_us: u64,
    pub(crate) peak_rss_bytes: u64,
}

/// Reaps one child of those that `options` and `pid` name, if there is one.
pub(crate) fn wait4(pid: i32, options: c_int) -> Result<Option<Waited>> {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places live for the call.
    let answer = unsafe { libc::wait4(pid, &raw mut status, options, &raw mut usage) };
    if check(answer.into())? == 0 {
        return Ok(None);
    }
    let us = |t: libc::timeval| {
        u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_usec).unwrap_or(0)
    };
    Ok(Some(Waited {
        pid: answer,
        status,
        cpu_us: us(usage.ru_utime) + us(usage.ru_stime),
        peak_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

/// Sends a signal to a process, or to a group if `pid` is negative.
pub(crate) fn kill(pid: i32, signal: i32) -> Result<()> {
    // SAFETY: no memory is passed.
    let answer = unsafe { libc::kill(pid, signal) };
    check(answer.into()).map(drop)
}

/// Makes a copy of this process. The answer is 0 in the copy.
pub(crate) fn fork() -> Result<i32> {
    // SAFETY: this process has one thread, or another one that waits and holds nothing, so the copy may
    // do whatever it likes.
    let answer = unsafe { libc::fork() };
    check(answer.into())?;
    Ok(answer)
}

/// Makes a copy of this process in the new namespaces of `flags`. The answer is 0 in the copy.
pub(crate) fn fork_into(flags: c_int) -> Result<i32> {
    let flags = c_long::from(flags | libc::SIGCHLD);
    // SAFETY: no memory is shared and no stack is given, so this is a fork of a process that has one
    // thread.
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    check(answer)?;
    i32::try_from(answer).map_err(|_| Errno::OVERFLOW)
}

/// Makes `terminal` the controlling terminal of this session.
pub(crate) fn take_terminal(terminal: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no memory is passed.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) };
    check(answer.into()).map(drop)
}

/// Ends this process at once, without running anything registered for its end.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(code) }
}

/// Gives every signal its default action. Ignored ones would pass into every program, and Rust's
/// runtime ignores SIGPIPE.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: the default action is a valid one.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Blocks no signal.
pub(crate) fn unblock_signals() {
    // SAFETY: all-zero bytes are the empty set.
    let none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set lives for the call.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
}
