//! The kernel calls that the tests need and no library offers.
#![expect(unsafe_code, reason = "loads filters and makes calls that no safe interface would make")]

use cofferdam_local::seccomp::{Surface, program};
use std::io;
use std::time::{Duration, Instant};

/// Runs `inside` in a thread of its own under the filter of this surface.
pub(crate) fn confined<T: Send>(surface: Surface, inside: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let confined = || {
            load(&surface);
            inside()
        };
        scope.spawn(confined).join().unwrap()
    })
}

/// Puts the filter of this surface on the calling thread for good, and tells how long the kernel
/// took to accept it.
pub(crate) fn load(surface: &Surface) -> Duration {
    let filter: Vec<libc::sock_filter> = program(surface)
        .unwrap()
        .into_iter()
        .map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k })
        .collect();
    let len = filter.len().try_into().unwrap();
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    rustix::thread::set_no_new_privs(true).unwrap();
    let before = Instant::now();
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the program and the instructions that it points to live until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) };
    let took = before.elapsed();
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    took
}

/// Makes a call: its result, or its errno.
///
/// For calls with numbers only, with pointers that are null or to C strings, and for calls that
/// the kernel or the filter refuses.
pub(crate) fn call(number: i64, arguments: [u64; 6]) -> Result<i64, i32> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the tests pass arguments that make the kernel write no memory of this process.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 {
        return Err(io::Error::last_os_error().raw_os_error().unwrap());
    }
    Ok(result)
}

/// Forks; the child makes this call at once and ends with 0, the parent gets its wait status.
pub(crate) fn status_of_child(act: extern "C" fn()) -> i32 {
    // SAFETY: the child makes two calls that touch no memory, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        act();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0, "{}", io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    status
}

/// Asks for the process id by the native ABI.
pub(crate) extern "C" fn native_getpid() {
    // SAFETY: takes nothing and changes nothing.
    unsafe { libc::syscall(libc::SYS_getpid) };
}

/// The same by the x32 ABI.
#[cfg(target_arch = "x86_64")]
pub(crate) extern "C" fn x32_getpid() {
    // SAFETY: takes nothing and changes nothing.
    unsafe { libc::syscall(0x4000_0000 | libc::SYS_getpid) };
}

/// The same by the 32-bit ABI.
#[cfg(target_arch = "x86_64")]
pub(crate) extern "C" fn ia32_getpid() {
    // SAFETY: call 20 of that ABI takes nothing; it clobbers what is listed.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") 20_u64 => _, out("r8") _, out("r9") _,
            out("r10") _, out("r11") _, options(nostack));
    }
}

/// Forks a process that has one thread, does this there, and ends with what it answers. Says how it ended.
pub(crate) fn in_child(act: impl FnOnce() -> i32) -> i32 {
    wait(start_child(act))
}

/// The same, and does not wait.
pub(crate) fn start_child(act: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the C library keeps its heap usable in the child, which takes no lock of the parent's
    // other threads and never returns from here.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(done.unwrap_or(PANICKED)) };
    }
    assert!(child > 0, "{}", io::Error::last_os_error());
    child
}

/// What a child ends with that panicked. No errno is as large.
pub(crate) const PANICKED: i32 = 255;

/// Waits for a child, and says what it ended with; more than 255 where a signal ended it.
pub(crate) fn wait(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 256 + libc::WTERMSIG(status) }
}

/// Becomes another program.
pub(crate) fn become_program(path: &std::ffi::CStr) -> io::Error {
    let words = [path.as_ptr(), std::ptr::null()];
    // SAFETY: the words end with null, as do the words of the environment, of which there are none.
    unsafe { libc::execve(path.as_ptr(), words.as_ptr(), words[1..].as_ptr()) };
    io::Error::last_os_error()
}
