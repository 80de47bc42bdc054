//! Where the process begins.
//!
//! What Rust's runtime does before `main` costs a tenth of a bare spawn, among it a look at `/proc`
//! for the place of the main thread's stack, to word one message better. What is needed of that is
//! done here. Only with the GNU C library: others do not hand arguments to Rust this way.
#![expect(unsafe_code, reason = "the C library calls this by its name")]

use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::{c_char, c_int};
use std::os::fd::IntoRawFd;

// The standard library starts processes without a copy of this one's memory where it finds these. It
// looks in a way that, in a static program, finds only what something else refers to.
unsafe extern "C" {
    fn gnu_get_libc_version();
    fn posix_spawn_file_actions_addchdir_np();
}

/// Something else.
#[used]
static REFERRED: [unsafe extern "C" fn(); 2] =
    [gnu_get_libc_version, posix_spawn_file_actions_addchdir_np];

/// Called by the C library.
// SAFETY: nothing else in this program has the name, and this is how `main` is called.
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _words: *const *const c_char) -> c_int {
    fill_standard_streams();
    // A reader that is gone is an error to handle, not a death.
    // SAFETY: to ignore a signal calls nothing.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // So is the limit of a file's size (`ulimit -f`).
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    // Writes out what is buffered, as a return from Rust's own `main` does.
    std::process::exit(crate::perform().into())
}

/// Opens `/dev/null` where a standard stream is closed, or the next file that is opened would be
/// taken for it.
fn fill_standard_streams() {
    use rustix::stdio::{stderr, stdin, stdout};
    for stream in [stdin(), stdout(), stderr()] {
        if rustix::io::fcntl_getfd(stream) == Err(rustix::io::Errno::BADF) {
            match rustix::fs::openat(CWD, "/dev/null", OFlags::RDWR, Mode::empty()) {
                // The lowest free number is the missing one. It stays open.
                Ok(null) => drop(null.into_raw_fd()),
                Err(_) => std::process::abort(),
            }
        }
    }
}
