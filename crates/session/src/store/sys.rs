//! Room for the file that the users of a database share in memory.
//!
//! SQLite makes it longer by writing the last byte of each page, and then stores into the pages. Where the blocks of
//! a file system are smaller than a page, the others of the page stay holes: a store into one of these on a full disk
//! finds no block, and the kernel ends the program. So each of them is written before that byte, and a disk
//! that has no room says so then.
#![expect(unsafe_code, reason = "SQLite takes calls of the system from us as functions of C")]

use rusqlite::ffi;
use rustix::fd::BorrowedFd;
use rustix::fs::{fstat, fstatvfs};
use std::ffi::{c_int, c_void};
use std::sync::Once;

/// What SQLite takes for a page of memory here, whatever the machine has.
const PAGE: u64 = 4096;
/// What no file system has less of; some say other things.
const LEAST_BLOCK: u64 = 512;

type Write = unsafe extern "C" fn(c_int, *const c_void, libc::size_t, libc::off_t) -> libc::ssize_t;

/// Lets every database that is opened from now on take that room. To be called before the first one is.
pub(super) fn take_whole_pages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: no name is that of the default one.
        let system = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
        // SAFETY: what SQLite has registered stays where it is.
        let replace = unsafe { system.as_ref() }.and_then(|system| system.xSetSystemCall);
        let Some(replace) = replace else { return };
        // SAFETY: SQLite calls it as what it is, the replacement for a `pwrite`.
        let ours = unsafe { std::mem::transmute::<Write, unsafe extern "C" fn()>(write) };
        // SAFETY: both names live for ever, and no database is open yet.
        unsafe { replace(system, c"pwrite".as_ptr(), Some(ours)) };
    });
}

/// `pwrite`, which writes the blocks before the last byte of a page as well.
unsafe extern "C" fn write(
    file: c_int,
    bytes: *const c_void,
    count: libc::size_t,
    at: libc::off_t,
) -> libc::ssize_t {
    if count == 1 {
        // SAFETY: SQLite has it open while it writes to it.
        let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
        for end in holes_before(borrowed, at.unsigned_abs()) {
            // SAFETY: one byte that lives for ever.
            let wrote = unsafe { libc::pwrite(file, c"".as_ptr().cast(), 1, end.cast_signed()) };
            if wrote != 1 {
                return wrote;
            }
        }
    }
    // SAFETY: as SQLite called this.
    unsafe { libc::pwrite(file, bytes, count, at) }
}

/// The last bytes of the blocks that would be holes in a page whose last byte is written, if it is one.
fn holes_before(file: BorrowedFd<'_>, last: u64) -> impl Iterator<Item = u64> {
    let is_last = last % PAGE == PAGE - 1;
    let block = match fstatvfs(file) {
        Ok(disk) if is_last && disk.f_frsize > 0 => disk.f_frsize.max(LEAST_BLOCK),
        Ok(_) | Err(_) => PAGE,
    };
    // What was written before stays as it is.
    let length = fstat(file).map_or(u64::MAX, |found| found.st_size.unsigned_abs());
    let in_page = (1..PAGE.div_ceil(block)).map(move |number| last + number * block - PAGE);
    in_page.filter(move |end| *end >= length)
}
