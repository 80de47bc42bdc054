//! What verbs of `file` read on the host.

use cofferdam_core::{Error, ErrorKind, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The bytes of a file, or of standard input for `-`. More than the limit are refused.
pub(super) fn read_input(path: &Path, max_bytes: usize) -> Result<Vec<u8>> {
    let unread = |e| Error::new(ErrorKind::Io, format!("read {}", path.display())).source(e);
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(unread)?;
    if bytes.len() > max_bytes {
        let what = format!("{} has more than {max_bytes} bytes", path.display());
        return Err(Error::new(ErrorKind::TooLarge, what).hint("Send it in parts."));
    }
    Ok(bytes)
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
        assert_eq!(read_input(&path, 5).unwrap_err().kind, ErrorKind::Io);
    }
}
