#![expect(
    unsafe_code,
    reason = "attacks speak to the kernel in ways that safe wrappers do not offer"
)]
//! The unsafe ground of the battery. All of it runs in a child that does one try and exits.

use rustix::process::Pid;

/// Which side of a fork this is.
pub(super) enum Forked {
    /// The new process.
    Child,
    /// The old one; the id is the child's.
    Parent(Pid),
}

/// Makes a child. The caller is single-threaded, so the child may do what it likes.
pub(super) fn fork() -> Result<Forked, i32> {
    // SAFETY: the battery is single-threaded, so no lock is held by a thread that is not copied.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        id => Pid::from_raw(id.max(0)).map(Forked::Parent).ok_or_else(errno),
    }
}

/// Ends this process at once, without running what the parent registered for its own end.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Makes any system call. Addresses among the arguments are of buffers that the caller holds for
/// the time of the call and that are as long as the call assumes, or are wrong on purpose where the
/// kernel only answers EFAULT.
pub(super) fn raw(number: i64, args: [usize; 6]) -> Result<usize, i32> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the tables of the battery hand over only arguments as described above, and no call in
    // them unmaps or writes memory of this process beyond such a buffer.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    usize::try_from(answer).map_err(|_| errno())
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Makes a system call without arguments through the 32-bit door.
#[cfg(target_arch = "x86_64")]
pub(super) fn through_32_bit_door(number: i32) -> i32 {
    let answer: i32;
    // SAFETY: int 0x80 reads the call's number from eax and writes only eax and, as seen on x86_64,
    // r8 to r11, which are given up. The kernel keeps rbx, and the call takes no argument.
    unsafe {
        core::arch::asm!(
            "int 0x80",
            inlateout("eax") number => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    answer
}

/// The length of the page that [`run_written_code`] uses.
#[cfg(target_arch = "x86_64")]
const PAGE: usize = 4096;

/// Writes a function that returns 42 into fresh memory, makes that executable and calls it.
#[cfg(target_arch = "x86_64")]
pub(super) fn run_written_code() -> Result<i32, i32> {
    /// `mov eax, 42; ret`
    const CODE: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping overlaps nothing.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, writable, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(errno());
    }
    // SAFETY: the page is mapped, writable, larger than the code, and belongs to nobody else.
    unsafe { std::ptr::copy_nonoverlapping(CODE.as_ptr(), page.cast::<u8>(), CODE.len()) };
    // SAFETY: the page was mapped above and no reference to it exists.
    if unsafe { libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
        return Err(errno());
    }
    // SAFETY: the page holds a whole function of this type.
    let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(page) };
    Ok(function())
}
