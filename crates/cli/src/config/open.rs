//! Finding and opening configuration files, without being led astray.

use crate::places;
use crate::surroundings::Surroundings;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The name of a project's file.
pub(crate) const FILE_NAME: &str = "cofferdam.toml";

/// No configuration is longer; a file that is cannot be one.
const MAX_BYTES: u64 = 1 << 20;

/// A configuration file that was opened and looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenedFile {
    /// Where it is: its directory without symbolic links, and its name.
    pub(crate) path: PathBuf,
    /// What it holds.
    pub(crate) text: String,
}

/// Finds the nearest project file from the current directory upward.
pub(crate) fn search_upward(surroundings: &Surroundings) -> Result<Option<OpenedFile>> {
    for directory in surroundings.directory()?.ancestors() {
        let path = directory.join(FILE_NAME);
        if let Some(text) = read_checked(&path).map_err(or_left_out)? {
            return Ok(Some(OpenedFile { path, text }));
        }
    }
    Ok(None)
}

/// Opens the file that somebody named. One that is not there is an error.
pub(crate) fn open_checked(path: &Path) -> Result<OpenedFile> {
    let missing = || {
        Error::new(ErrorKind::NotFound, format!("there is no file {}", path.display()))
            .hint("Name a file that exists.")
    };
    let text = read_checked(path)?.ok_or_else(missing)?;
    Ok(OpenedFile { path: places::of_file(path)?, text })
}

/// Opens the user's own file, if it is there.
pub(super) fn open_own(path: &Path) -> Result<Option<OpenedFile>> {
    match read_checked(path)? {
        Some(text) => Ok(Some(OpenedFile { path: places::of_file(path)?, text })),
        None => Ok(None),
    }
}

/// Reads a file that only its user or root can have written. `None` if there is none.
fn read_checked(path: &Path) -> Result<Option<String>> {
    // HOSTILE: the name may lie in a workspace. A link could lead to any file, and a pipe would
    // hold the opener; so neither is followed, and what was opened is looked at, not the name.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => opened,
        // A socket holds no settings. It stands for an absent file while a sandbox lives.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NXIO) => return Ok(None),
        Err(Errno::LOOP) => {
            return Err(refused(path, "it is a symbolic link", "Put a copy in its place"));
        }
        // A directory above that may not be searched holds no file that could be meant.
        Err(Errno::ACCESS) if rustix::fs::lstat(path).is_err() => return Ok(None),
        Err(cause) => return Err(unreadable(path).source(cause)),
    };
    let found = rustix::fs::fstat(&opened).map_err(|cause| unreadable(path).source(cause))?;
    let user = rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(refused(path, "it is not a regular file", "Move it away"));
    }
    if found.st_uid != user && found.st_uid != 0 {
        let why = format!("it belongs to user {}", found.st_uid);
        return Err(refused(path, &why, "Make it yours or root's with chown"));
    }
    if found.st_mode & 0o002 != 0 {
        return Err(refused(path, "everybody may write it", "Run chmod o-w on it"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.st_size).unwrap_or(0).min(1 << 16));
    File::from(opened)
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|cause| unreadable(path).source(cause))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused(path, "it is longer than 1 MiB", "Shorten it"));
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| refused(path, "it is not UTF-8", "Save it as UTF-8"))
}

fn unreadable(path: &Path) -> Error {
    let what = format!("{} cannot be read", path.display());
    Error::new(ErrorKind::Config, what).hint(remedy("Make it readable for you with chmod or chown"))
}

fn refused(path: &Path, why: &str, what_helps: &str) -> Error {
    let what = format!("{} is refused: {why}", path.display());
    Error::new(ErrorKind::Config, what).hint(remedy(what_helps))
}

fn remedy(what_helps: &str) -> String {
    format!("{what_helps}.")
}

/// The same of a file that nobody named: whoever runs something can do without it.
pub(super) fn or_left_out(error: Error) -> Error {
    match error.hint.as_deref().and_then(|hint| hint.strip_suffix('.')) {
        Some(hint) => {
            let hint = format!("{hint}, or run without it (--no-config).");
            error.hint(hint)
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_refused_is_said_with_what_helps_against_that() {
        let place = std::env::temp_dir().join(format!("cofferdam-open-{}", std::process::id()));
        std::fs::create_dir_all(place.join("directory")).unwrap();
        std::fs::write(place.join("good"), "").unwrap();
        std::fs::write(place.join("bytes"), b"\xff").unwrap();
        std::fs::write(place.join("long"), vec![b'#'; (1 << 20) + 1]).unwrap();
        std::fs::write(place.join("open"), "").unwrap();
        std::fs::set_permissions(place.join("open"), PermissionsExt::from_mode(0o666)).unwrap();
        symlink("good", place.join("link")).unwrap();
        for (name, why, remedy) in [
            ("directory", "not a regular file", "Move it away"),
            ("bytes", "not UTF-8", "Save it as UTF-8"),
            ("long", "longer than 1 MiB", "Shorten it"),
            ("open", "everybody may write it", "chmod o-w"),
            ("link", "a symbolic link", "Put a copy in its place"),
        ] {
            let error = read_checked(&place.join(name)).unwrap_err();
            assert!(error.message.contains(why), "{error}");
            assert!(error.hint.as_ref().is_some_and(|hint| hint.contains(remedy)), "{error:?}");
        }
        let error = read_checked(&place.join("link")).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("Put a copy in its place."));
        let hint = or_left_out(error).hint.unwrap();
        assert_eq!(hint, "Put a copy in its place, or run without it (--no-config).");
        // Controls: one that is good, and none.
        assert!(read_checked(&place.join("good")).unwrap().is_some());
        assert!(read_checked(&place.join("none")).unwrap().is_none());
        std::fs::remove_dir_all(place).unwrap();
    }
}
