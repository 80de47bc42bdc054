//! What verbs of `file` read on the host.

use crate::beside::local;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// The bytes of a file, or of standard input for `-`. More than the limit are refused.
pub(super) fn read_input(path: &Path, max_bytes: usize) -> Result<Vec<u8>> {
    let unread = |cause| local("read", path, cause);
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        opened(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(unread)?;
    if bytes.len() > max_bytes {
        let what = format!("{} has more than {max_bytes} bytes", path.display());
        return Err(Error::new(ErrorKind::TooLarge, what).hint("Send it in parts."));
    }
    Ok(bytes)
}

/// What was read, to be told of.
pub(super) fn named(path: &Path, what: &str) -> String {
    match path == Path::new("-") {
        true => format!("{what} of standard input"),
        false => format!("{what} {}", path.display()),
    }
}

/// HOSTILE: a pipe that a command put in the place of a file would be waited for. One that the caller made is
/// a descriptor, as of `<(…)`, and read as one.
fn opened(path: &Path) -> std::io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let is_pipe = file.metadata()?.file_type().is_fifo();
    if is_pipe && !path.starts_with("/dev/fd") && !path.starts_with("/proc/self/fd") {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is a pipe"));
    }
    rustix::io::ioctl_fionbio(&file, false)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_verb_reads_on_the_host_has_a_limit() {
        let path = std::env::temp_dir().join(format!("cofferdam-input-{}", std::process::id()));
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_input(&path, 5).unwrap(), b"12345");
        assert_eq!(read_input(&path, 4).unwrap_err().kind, ErrorKind::TooLarge);
        std::fs::remove_file(&path).unwrap();
        let missing = read_input(&path, 5).unwrap_err();
        assert_eq!((missing.kind, missing.hint.is_some()), (ErrorKind::NotFound, true));
    }
}
