//! A key, which is neither shown nor taken from where others read it.

use cofferdam_core::{Error, ErrorKind, Result};
use reqwest::header::HeaderValue;
use rustix::fs::OFlags;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The most bytes of a file that holds a key.
pub const MAX_KEY_FILE_BYTES: u64 = 4096;
/// What helps where a file cannot be read.
const NAME_FILE: &str =
    "Name with --server-key-file a file of yours with what `cofferdam key create` printed.";
/// What others may do with a file, as bits of its permissions.
const OF_OTHERS: u32 = 0o077;

/// A key of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key, if the text can be one. `source` is where it comes from, as errors name it.
    pub fn new(text: &str, source: &str) -> Result<Self> {
        let text = text.trim();
        let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_key {
            return Err(Error::new(ErrorKind::Config, format!("{source} holds no key"))
                .hint("Put there what `cofferdam key create` printed."));
        }
        Ok(Self(text.to_owned()))
    }

    /// The key in a file that is its owner's alone: whoever else could read it, it is refused.
    pub fn from_file(path: &Path) -> Result<Self> {
        let failed = |cause: std::io::Error| {
            let is = |kind| cause.kind() == kind;
            let kind = if is(std::io::ErrorKind::NotFound) {
                ErrorKind::NotFound
            } else if is(std::io::ErrorKind::PermissionDenied) {
                ErrorKind::Denied
            } else {
                ErrorKind::Io
            };
            Error::new(kind, format!("read the key in {path:?}")).hint(NAME_FILE).source(cause)
        };
        // A pipe would keep us waiting.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            let what = format!("the key is to be in {path:?}, which is no regular file");
            return Err(Error::new(ErrorKind::NotAFile, what).hint(NAME_FILE));
        }
        let own = rustix::process::geteuid().as_raw();
        if about.uid() != own && about.uid() != 0 {
            let what = format!("the key in {path:?} is in a file of another user");
            return Err(Error::new(ErrorKind::Denied, what).hint("Use a file of your own."));
        }
        if about.mode() & OF_OTHERS != 0 {
            let what = format!("the key in {path:?} can be read or written by others");
            return Err(Error::new(ErrorKind::Denied, what)
                .hint(format!("Make it yours alone: chmod 600 {}", path.display())));
        }
        let mut text = String::new();
        file.take(MAX_KEY_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_KEY_FILE_BYTES {
            let what = format!("{path:?} has more than {MAX_KEY_FILE_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Put the key alone there."));
        }
        Self::new(&text, &format!("{path:?}"))
    }

    /// What is sent.
    pub(crate) fn header(&self) -> Result<HeaderValue> {
        let value = HeaderValue::try_from(format!("Bearer {}", self.0));
        let mut value =
            value.map_err(|_| Error::new(ErrorKind::Config, "the key cannot be sent"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(key)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    struct File(PathBuf);

    impl File {
        fn new(name: &str, content: &str, mode: u32) -> Self {
            let path = std::env::temp_dir().join(format!("key-{}-{name}", std::process::id()));
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Self(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_key_is_taken_from_a_file_that_is_ones_own() {
        let file = File::new("good", "cd_abc\n", 0o600);
        assert_eq!(Key::from_file(&file.0).unwrap(), Key("cd_abc".to_owned()));
        for (mode, at) in [(0o640, 0), (0o604, 1), (0o620, 2), (0o666, 3)] {
            let file = File::new(&format!("open-{at}"), "cd_abc", mode);
            assert_eq!(Key::from_file(&file.0).unwrap_err().kind, ErrorKind::Denied, "{mode:o}");
        }
        let none = std::env::temp_dir().join("there-is-no-such-key");
        assert_eq!(Key::from_file(&none).unwrap_err().kind, ErrorKind::NotFound);
        let full = "x".repeat(usize::try_from(MAX_KEY_FILE_BYTES).unwrap());
        assert!(Key::from_file(&File::new("full", &full, 0o600).0).is_ok());
        let long = File::new("long", &format!("{full}x"), 0o600);
        assert_eq!(Key::from_file(&long.0).unwrap_err().kind, ErrorKind::TooLarge);
    }

    #[test]
    fn a_key_is_a_word_that_nobody_sees() {
        for bad in ["", "  ", "two words", "line\nend", "\u{7f}"] {
            assert_eq!(Key::new(bad, "it").unwrap_err().kind, ErrorKind::Config, "{bad:?}");
        }
        let key = Key::new("canary", "it").unwrap();
        assert!(!format!("{key:?} {:?}", key.header().unwrap()).contains("canary"));
    }
}
