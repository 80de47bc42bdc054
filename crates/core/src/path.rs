//! Names of files in a workspace.

use crate::{Error, ErrorKind, Result};
use std::fmt;

/// The longest path, in bytes; the kernel's own limit, without the zero at its end.
const MAX_PATH_BYTES: usize = 4095;
/// The longest name in a path, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Names something below the root of a workspace, in bytes: never absolute, never with `..`.
///
/// `.` and repeated slashes are dropped, so that two paths which differ are different names. A link
/// on the way can still lead out; whoever opens the path opens it beneath the root.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestPath(Vec<u8>);

impl GuestPath {
    /// The path, if these bytes can be one. A path that leaves the workspace is a `PathEscape`.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self> {
        let bytes = bytes.as_ref();
        let shown = String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes));
        let refused = |kind, what: &str, hint: &str| {
            Error::new(kind, format!("the path {shown:?} {what}")).hint(hint)
        };
        let leaves = |what: &str| {
            refused(ErrorKind::PathEscape, what, "Name files from the root of the workspace.")
        };
        let wrong = |what: &str| {
            refused(ErrorKind::Usage, what, "Name a file or a directory in the workspace.")
        };
        if bytes.starts_with(b"/") {
            return Err(leaves("is absolute"));
        }
        if bytes.contains(&0) {
            return Err(wrong("holds a zero byte"));
        }
        let mut path = Vec::with_capacity(bytes.len());
        for name in bytes.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => continue,
                b".." => return Err(leaves("goes up with \"..\"")),
                _ if name.len() > MAX_NAME_BYTES => {
                    let what = "holds a name of more than 255 bytes";
                    return Err(wrong(what));
                }
                _ => {}
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            return Err(wrong("names nothing in the workspace"));
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(wrong("is longer than 4095 bytes"));
        }
        Ok(Self(path))
    }

    /// The bytes, without a slash at either end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its names, from the root.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// The directories that it lies in, the innermost first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        let slashes = self.0.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        slashes.filter_map(|(at, _)| self.0.get(..at).map(|bytes| Self(bytes.to_vec())))
    }
}

impl fmt::Display for GuestPath {
    /// Bytes that are not text are replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: impl AsRef<[u8]>, expected: Result<&[u8], ErrorKind>) {
        let bytes = bytes.as_ref();
        let path = GuestPath::new(bytes);
        let seen = path.as_ref().map(GuestPath::as_bytes).map_err(|error| error.kind);
        assert_eq!(seen, expected, "{bytes:?}");
    }

    #[test]
    fn a_path_that_leaves_the_workspace_is_refused() {
        for bad in ["/etc/passwd", "/", "..", "../a", "a/..", "a/../../b", "./../a"] {
            check(bad, Err(ErrorKind::PathEscape));
        }
        check("a..b/..c/d..", Ok(b"a..b/..c/d.."));
    }

    #[test]
    fn a_path_has_one_spelling() {
        for same in ["a/b", "./a/b", "a//b", "a/./b", "a/b/", "././a///b/."] {
            check(same, Ok(b"a/b"));
        }
        check(b"caf\xe9/a b\nc", Ok(b"caf\xe9/a b\nc"));
    }

    #[test]
    fn what_no_file_can_be_called_is_refused() {
        for bad in ["", ".", "./", "a\0b"] {
            check(bad, Err(ErrorKind::Usage));
        }
        let longest = "n".repeat(MAX_NAME_BYTES);
        check(&longest, Ok(longest.as_bytes()));
        check(format!("{longest}n"), Err(ErrorKind::Usage));
        let deep = "a/".repeat(MAX_PATH_BYTES / 2) + "b";
        check(&deep, Ok(deep.as_bytes()));
        check(format!("c{deep}"), Err(ErrorKind::Usage));
    }

    #[test]
    fn its_directories_are_named_from_inside_out() {
        let path = GuestPath::new("a/b/c").unwrap();
        let ancestors: Vec<String> = path.ancestors().map(|path| path.to_string()).collect();
        assert_eq!(ancestors, ["a/b", "a"]);
        assert_eq!(path.names().collect::<Vec<_>>(), [b"a", b"b", b"c"]);
    }
}
