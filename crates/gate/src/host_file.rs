//! Files of the host's that say where names lead, for a gate that may read no other.
//!
//! A gate may open what stood at a path when it was confined, and not what is put there later in its
//! place. Until a new gate is started, what was read at first counts.

use std::io::{ErrorKind, Read};
use std::sync::OnceLock;
use tokio::sync::Notify;

/// How much of a file is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// The host's own list of names.
pub(crate) static HOSTS: HostFile = HostFile::new("/etc/hosts");
/// The host's resolvers.
pub(crate) static RESOLVERS: HostFile = HostFile::new("/etc/resolv.conf");

/// Told when a gate can be of no use any more before it reads a file anew.
static OUTDATED: Notify = Notify::const_new();

/// A file that may become closed to this process.
pub(crate) struct HostFile {
    path: &'static str,
    /// What was in it before this process was confined, if it was.
    first: OnceLock<String>,
    /// Whether it could be read right after.
    stays_open: OnceLock<bool>,
}

/// Reads what may be closed soon. To be called before a process is confined.
pub(crate) fn look_before() {
    for file in [&HOSTS, &RESOLVERS] {
        let _ = file.first.set(file.read().unwrap_or_default());
    }
}

/// Finds out what is open still. To be called after a process was confined.
pub(crate) fn look_after() {
    for file in [&HOSTS, &RESOLVERS] {
        let _ = file.stays_open.set(file.read().is_ok());
    }
}

/// Waits until a name could not be resolved and the resolvers that count cannot be read.
pub(crate) async fn outdated() {
    OUTDATED.notified().await;
}

impl HostFile {
    const fn new(path: &'static str) -> Self {
        Self { path, first: OnceLock::new(), stays_open: OnceLock::new() }
    }

    /// What it holds, as far as it may; nothing where there is none.
    pub(crate) fn text(&self) -> String {
        match self.read() {
            Ok(text) => text,
            Err(ErrorKind::PermissionDenied) => self.first.get().cloned().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// By what it says a name could not be resolved. Where another stands in its place by now, it is time
    /// for another gate; where it was never open to this one, another would be no better.
    pub(crate) fn failed(&self) {
        let was_open = self.stays_open.get() == Some(&true);
        if was_open && self.read() == Err(ErrorKind::PermissionDenied) {
            OUTDATED.notify_one();
        }
    }

    fn read(&self) -> Result<String, ErrorKind> {
        let file = std::fs::File::open(self.path).map_err(|error| error.kind())?;
        let mut bytes = Vec::new();
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A file of this content that this process reads first.
    fn file(name: &str) -> (HostFile, std::path::PathBuf) {
        let name = format!("cofferdam-host-file-{name}.{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "first").unwrap();
        let file = HostFile::new(path.to_str().unwrap().to_owned().leak());
        file.first.set(file.read().unwrap()).unwrap();
        (file, path)
    }

    #[test]
    fn a_file_is_read_as_it_is_now() {
        let (file, path) = file("now");
        std::fs::write(&path, "second").unwrap();
        assert_eq!(file.text(), "second");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.text(), "");
    }

    #[test]
    fn of_a_file_that_is_closed_now_counts_what_was_read_first() {
        if rustix::process::geteuid().is_root() {
            println!("skipped: no file is closed to root by its mode");
            return;
        }
        let (file, path) = file("closed");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(file.text(), "first");
        std::fs::remove_file(&path).unwrap();
    }
}
