//! Paths as these tools take them: relative, and never above the workspace.

use cofferdam_core::{Error, ErrorKind, Result};

/// The path with what goes up taken back: `a/b/../c` is `a/c`. One that is absolute, names a drive, or
/// goes above the workspace at any point is a `PathEscape`.
pub(super) fn relative(path: &str) -> Result<String> {
    let escapes = |why: &str| {
        let shown: String = path.chars().take(80).collect();
        Error::new(ErrorKind::PathEscape, format!("the path {shown:?} {why}"))
            .hint("Use a path relative to the workspace.")
    };
    let mut bytes = path.bytes();
    let is_drive =
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic()) && bytes.next() == Some(b':');
    if path.is_empty() {
        return Err(escapes("is empty"));
    }
    if path.starts_with(['/', '\\']) || is_drive {
        return Err(escapes("is absolute"));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or_else(|| escapes("leads out of the workspace"))?;
            }
            name => names.push(name),
        }
    }
    Ok(if names.is_empty() { ".".to_owned() } else { names.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_workspace() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(relative(path).ok().as_deref(), expected, "{path:?}");
        };
        check("a/b/../c", Some("a/c"));
        check("./a//b/", Some("a/b"));
        check("a/..", Some("."));
        check(".", Some("."));
        for bad in ["", "/a", "../x", "a/../../x", "C:\\x", "c:/x", "\\x"] {
            check(bad, None);
            assert_eq!(relative(bad).unwrap_err().kind, ErrorKind::PathEscape, "{bad:?}");
        }
    }
}
