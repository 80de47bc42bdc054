//! Texts of the kernel, which have no size before they are read.

use crate::state::retry;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Enough for most of them at once: each further read makes the kernel write the text anew.
const AT_ONCE_BYTES: usize = 8 * 1024;

/// The text of a file below `/proc` or `/sys`.
pub(crate) fn kernel_text(path: impl AsRef<Path>) -> Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file: OwnedFd = rustix::fs::openat(CWD, path.as_ref(), flags, Mode::empty())?;
    text_of(file)
}

/// The same of one that is open.
pub(crate) fn text_of(file: impl AsFd) -> Result<String> {
    let mut bytes = Vec::with_capacity(AT_ONCE_BYTES);
    while retry(|| rustix::io::read(&file, spare_capacity(&mut bytes)))? > 0 {
        if bytes.capacity() - bytes.len() < AT_ONCE_BYTES / 2 {
            bytes.reserve(bytes.len().max(AT_ONCE_BYTES));
        }
    }
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_read_whole() {
        for path in ["/proc/self/mountinfo", "/proc/self/status", "/proc/kallsyms", "/dev/null"] {
            let whole = std::fs::read_to_string(path).unwrap();
            let read = kernel_text(path).unwrap();
            let lines = |text: &str| text.lines().count();
            assert_eq!(lines(&read), lines(&whole), "{path}");
        }
        assert!(kernel_text("/no/such/file").is_err());
    }
}
