//! The birth of a process that borrows our memory until it runs its program.
#![expect(unsafe_code, reason = "between clone and exec there is only the kernel")]

use cofferdam_wire::message::MAX_HANDED;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::{Errno, Result};
use rustix::thread::futex;
use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

/// Everything that a new process needs, laid out so that it only makes system calls.
pub(crate) struct ChildPlan {
    /// Programs to try, in order.
    pub(crate) programs: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) envp: Vec<CString>,
    pub(crate) cwd: CString,
    /// Where our descriptors are; the child has copies of its own from its first moment.
    pub(crate) stdio: [c_int; 3],
    /// Numbers of more descriptors, in order, and where ours are. Not more than
    /// [`MAX_HANDED`](cofferdam_wire::message::MAX_HANDED), and below [`ASIDE`].
    pub(crate) given: Vec<(c_int, c_int)>,
    /// A terminal to make the foreground terminal of the new group.
    pub(crate) terminal: Option<c_int>,
    /// Whether orphans gather under the new process.
    pub(crate) gathers_orphans: bool,
    /// Rules that keep its signals among itself and what it starts.
    pub(crate) scope: Option<c_int>,
    /// How many descriptors it may have, as the kernel takes its soft and its hard limit.
    pub(crate) open_files: Option<[u64; 2]>,
    /// As if somebody inside stopped it at once.
    #[cfg(test)]
    pub(crate) stops: bool,
}

/// Where a child failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Group = 1,
    Stdio,
    Cwd,
    Exec,
}

/// What the child and we have in common until it runs its program or ends.
struct Shared {
    plan: ChildPlan,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// The same arguments behind a shell's name and two free places, for a script without `#!`.
    shell_argv: Vec<AtomicPtr<c_char>>,
    stack: Box<[MaybeUninit<u128>]>,
    /// Not 0 for as long as the child uses any of this. The kernel clears it, and wakes who waits.
    in_use: AtomicU32,
    failed_stage: AtomicI32,
    failed_errno: AtomicI32,
}

// SAFETY: what it points to is on the heap and its own. Whoever has it may look at it from any thread.
unsafe impl Send for Starting {}

const CHILD_STACK_BYTES: usize = 64 * 1024;

/// A child that was started, and what it borrows.
#[derive(Debug)]
pub(crate) struct Starting {
    pid: i32,
    shared: NonNull<Shared>,
}

impl Starting {
    /// Starts a program like posix_spawn(3): the cost does not grow with our memory. Unlike there we
    /// are not stopped meanwhile, because whoever stops the child would stop us.
    pub(crate) fn new(plan: ChildPlan) -> Result<Self> {
        let shared = Box::new(Shared::new(plan));
        let top = shared.stack.as_ptr_range().end.cast_mut().cast::<c_void>();
        let shared = NonNull::from(Box::leak(shared));
        let in_use = address_of_in_use(shared);
        // SAFETY: the stack is big enough for a function that only makes system calls, is aligned,
        // and is kept with all else that the child uses until the kernel says that it is free.
        let pid = unsafe {
            libc::clone(
                child_main,
                top,
                libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD,
                shared.as_ptr().cast::<c_void>(),
                std::ptr::null_mut::<c_int>(),
                std::ptr::null_mut::<c_void>(),
                in_use,
            )
        };
        let starting = Self { pid, shared };
        if pid < 0 {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            starting.release();
            return Err(Errno::from_raw_os_error(errno));
        }
        Ok(starting)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it runs its program, or has ended.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared().in_use.load(Ordering::Acquire) == 0
    }

    /// Waits for that, but no longer than so long.
    pub(crate) fn settle(&self, patience: Option<Duration>) -> bool {
        let limit = patience.and_then(|patience| patience.try_into().ok());
        loop {
            let in_use = &self.shared().in_use;
            let seen = in_use.load(Ordering::Acquire);
            if seen == 0 {
                return true;
            }
            match futex::wait(in_use, futex::Flags::empty(), seen, limit.as_ref()) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return self.is_settled(),
            }
        }
    }

    /// Where and why it failed, if it did. Final once it is settled.
    pub(crate) fn failure(&self) -> Option<(Stage, Errno)> {
        let stage = match self.shared().failed_stage.load(Ordering::Acquire) {
            1 => Stage::Group,
            2 => Stage::Stdio,
            3 => Stage::Cwd,
            4 => Stage::Exec,
            _ => return None,
        };
        let errno = self.shared().failed_errno.load(Ordering::Acquire);
        Some((stage, Errno::from_raw_os_error(errno)))
    }

    /// The plan that it was started by.
    pub(crate) fn plan(&self) -> &ChildPlan {
        &self.shared().plan
    }

    /// Says that the process was waited for, so that it can use nothing any more.
    pub(crate) fn is_reaped(&self) {
        self.release();
    }

    fn release(&self) {
        self.shared().in_use.store(0, Ordering::Release);
    }

    fn shared(&self) -> &Shared {
        // SAFETY: it is freed by the drop alone, and shared by reference with the child, which
        // changes nothing in it but atomics.
        unsafe { self.shared.as_ref() }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if self.is_settled() {
            // SAFETY: it came from a box, and neither we nor the child use it any more.
            drop(unsafe { Box::from_raw(self.shared.as_ptr()) });
        }
    }
}

fn address_of_in_use(shared: NonNull<Shared>) -> *mut c_int {
    // SAFETY: the box was just leaked and is valid.
    unsafe { &raw mut (*shared.as_ptr()).in_use }.cast::<c_int>()
}

impl Shared {
    fn new(plan: ChildPlan) -> Self {
        let argv = pointers(&plan.argv);
        let envp = pointers(&plan.envp);
        let behind = argv.iter().skip(1).map(|argument| AtomicPtr::new(argument.cast_mut()));
        let before = [c"sh".as_ptr().cast_mut(), std::ptr::null_mut()].map(AtomicPtr::new);
        let shell_argv = before.into_iter().chain(behind).collect();
        Self {
            plan,
            argv,
            envp,
            shell_argv,
            stack: Box::new_uninit_slice(CHILD_STACK_BYTES / 16),
            in_use: AtomicU32::new(1),
            failed_stage: AtomicI32::new(0),
            failed_errno: AtomicI32::new(0),
        }
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// The number under which a child names a descriptor of ours.
pub(crate) fn number(fd: BorrowedFd<'_>) -> c_int {
    fd.as_raw_fd()
}

extern "C" fn child_main(shared: *mut c_void) -> c_int {
    // SAFETY: the parent passed this very type, and keeps it while the child uses it.
    let shared = unsafe { &*shared.cast::<Shared>() };
    if let Err((stage, errno)) = child_steps(shared) {
        shared.failed_errno.store(errno.raw_os_error(), Ordering::Release);
        shared.failed_stage.store(stage as i32, Ordering::Release);
    }
    loop {
        let _ = call(libc::SYS_exit_group, [127, 0, 0, 0, 0]);
    }
}

/// Between here and exec: no allocation, no lock, no formatting, and nothing of the C library, whose
/// `errno` is the parent's too.
fn child_steps(shared: &Shared) -> std::result::Result<(), (Stage, Errno)> {
    let plan = &shared.plan;
    let group = |errno| (Stage::Group, errno);
    #[cfg(test)]
    if plan.stops {
        let own = call(libc::SYS_getpid, [0; 5]).map_err(group)?;
        call(libc::SYS_kill, [own, number_of(libc::SIGSTOP), 0, 0, 0]).map_err(group)?;
    }
    call(libc::SYS_setpgid, [0; 5]).map_err(group)?;
    if let Some(terminal) = plan.terminal {
        // The group of the caller of tcsetpgrp is in the background; SIGTTOU is blocked for it.
        let own = call(libc::SYS_getpid, [0; 5]).and_then(small).map_err(group)?;
        let place = std::ptr::from_ref(&own) as usize;
        let request = usize::try_from(libc::TIOCSPGRP).unwrap_or_default();
        call(libc::SYS_ioctl, [number_of(terminal), request, place, 0, 0]).map_err(group)?;
    }
    if plan.gathers_orphans {
        let option = number_of(libc::PR_SET_CHILD_SUBREAPER);
        call(libc::SYS_prctl, [option, 1, 0, 0, 0]).map_err(group)?;
    }
    if let Some(scope) = plan.scope {
        call(libc::SYS_landlock_restrict_self, [number_of(scope), 0, 0, 0, 0]).map_err(group)?;
    }
    place_stdio(plan.stdio).map_err(|errno| (Stage::Stdio, errno))?;
    place_given(&plan.given).map_err(|errno| (Stage::Stdio, errno))?;
    if let Some(both) = &plan.open_files {
        let (resource, limits) = (libc::RLIMIT_NOFILE as usize, both.as_ptr() as usize);
        call(libc::SYS_prlimit64, [0, resource, limits, 0, 0]).map_err(group)?;
    }
    call(libc::SYS_chdir, [plan.cwd.as_ptr() as usize, 0, 0, 0, 0])
        .map_err(|errno| (Stage::Cwd, errno))?;
    let none = 0_u64;
    let set = std::ptr::from_ref(&none) as usize;
    // Blocks no signal.
    let how = number_of(libc::SIG_SETMASK);
    call(libc::SYS_rt_sigprocmask, [how, set, 0, size_of::<u64>(), 0]).map_err(group)?;
    Err((Stage::Exec, try_programs(shared)))
}

/// The first descriptor that is surely not one of the three and not close to them.
const ASIDE: usize = 100;

fn place_stdio(mut stdio: [c_int; 3]) -> Result<()> {
    for fd in stdio.iter_mut().filter(|fd| **fd < 3) {
        // Aside first, so that no stream is overwritten before it is placed.
        let aside = call(libc::SYS_fcntl, [number_of(*fd), libc::F_DUPFD as usize, ASIDE, 0, 0])?;
        *fd = small(aside)?;
    }
    for (target, fd) in (0..).zip(stdio) {
        call(libc::SYS_dup3, [number_of(fd), target, 0, 0, 0])?;
    }
    Ok(())
}

/// Places the other descriptors, and closes all that nobody asked for.
fn place_given(given: &[(c_int, c_int)]) -> Result<()> {
    let mut aside = [0; MAX_HANDED];
    for (place, (_, fd)) in aside.iter_mut().zip(given) {
        // Aside first, as the number of one may be where another one is.
        *place = call(libc::SYS_fcntl, [number_of(*fd), libc::F_DUPFD as usize, ASIDE, 0, 0])?;
    }
    let mut first = 3;
    for (fd, (target, _)) in aside.into_iter().zip(given) {
        let target = number_of(*target);
        if target > first {
            call(libc::SYS_close_range, [first, target - 1, 0, 0, 0])?;
        }
        call(libc::SYS_dup3, [fd, target, 0, 0, 0])?;
        first = target + 1;
    }
    call(libc::SYS_close_range, [first, u32::MAX as usize, 0, 0, 0]).map(drop)
}

/// Tries each program; comes back only if none could be run.
fn try_programs(shared: &Shared) -> Errno {
    let mut worst = Errno::NOENT;
    let envp = shared.envp.as_ptr() as usize;
    for program in &shared.plan.programs {
        let error = exec(program.as_ptr() as usize, shared.argv.as_ptr() as usize, envp);
        if error == Errno::NOEXEC {
            if let Some(place) = shared.shell_argv.get(1) {
                place.store(program.as_ptr().cast_mut(), Ordering::Relaxed);
            }
            let shell_argv = shared.shell_argv.as_ptr() as usize;
            return exec(c"/bin/sh".as_ptr() as usize, shell_argv, envp);
        }
        if error != Errno::NOENT && error != Errno::NOTDIR {
            worst = error;
        }
        if error != Errno::NOENT && error != Errno::NOTDIR && error != Errno::ACCESS {
            break;
        }
    }
    worst
}

fn exec(program: usize, argv: usize, envp: usize) -> Errno {
    match call(libc::SYS_execve, [program, argv, envp, 0, 0]) {
        Ok(_) => Errno::NOSYS,
        Err(errno) => errno,
    }
}

/// A small number as the kernel takes it.
fn number_of(number: c_int) -> usize {
    number as usize
}

/// An answer that is a process or a descriptor.
fn small(answer: usize) -> Result<c_int> {
    c_int::try_from(answer).map_err(|_| Errno::OVERFLOW)
}

/// One system call of the child. It touches no memory but through the addresses that it is given,
/// all of which point into [`Shared`] or the child's own stack.
fn call(number: c_long, arguments: [usize; 5]) -> Result<usize> {
    let [a, b, c, d, e] = arguments;
    let answer: c_long;
    // SAFETY: the callers above pass what each call takes; the kernel keeps all other registers.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            options(nostack)
        );
    }
    usize::try_from(answer)
        .map_err(|_| Errno::from_raw_os_error(c_int::try_from(-answer).unwrap_or(libc::EINVAL)))
}
